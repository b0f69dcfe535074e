//! In which language texts are said to be that stand on pages: those read them aloud, hyphenate and draw them that know it.

use reqwest::StatusCode;
use serde_json::json;

use super::{Visits, people::read, service};
use crate::support::{
    client::{Client, id},
    command::upload,
    model::{Model, Reply},
};

const GERMAN: &str =
    "Der schnelle Fuchs springt über den faulen Hund und läuft danach wieder in den dunklen Wald zurück.";
const JAPANESE: &str = "休暇は一年に三十日あります。申請は上司に出してください。";

/// The document of this text, read.
async fn document(owner: &Client, name: &str, text: &str) -> String {
    let document = upload(owner, name, text.as_bytes()).await;
    owner.wait_until_ingested(id(&document)).await;
    id(&document).to_owned()
}

/// The language of the first of the elements that begin so.
fn language<'a>(html: &'a str, element: &str) -> &'a str {
    let (_, rest) = html.split_once(element).unwrap_or_else(|| panic!("no {element}: {html}"));
    let (attributes, _) = rest.split_once('>').expect("its end");
    let (_, value) = attributes.split_once("lang=\"").unwrap_or_else(|| panic!("no language: {attributes}"));
    value.split('"').next().expect("its value")
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_on_pages_are_in_their_own_language_and_not_in_that_of_the_page() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::text(&format!("“{GERMAN}” [1]")));
    let agent =
        owner.create_agent(&json!({"name": "Porter", "type": "CHATVENDOR", "llm": model.llm("m")})).await;
    let fox = document(&owner, "fuchs.txt", GERMAN).await;
    owner.link(id(&agent), &fox).await;
    let leave = document(&owner, "leave.txt", JAPANESE).await;
    let ports = document(&owner, "ports.txt", "Rio de Janeiro, Buenos Aires, Lima").await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;

    for (document, tag) in [(&fox, "de"), (&leave, "ja"), (&ports, "")] {
        let page = read(&visits, &format!("/documents/{document}")).await;
        assert!(page.contains("<html lang=\"en\">"), "{page}");
        assert_eq!(language(&page, "<p class=\"context\""), tag, "{page}");
    }
    let found = read(&visits, "/search?query=Fuchs").await;
    assert!(found.contains("lang=\"de\">Der schnelle Fuchs"), "{found}");

    let answer = visits.submit(&format!("/agents/{}/ask", id(&agent)), &[("question", GERMAN)]).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let page = answer.text().await.expect("a text");
    for element in ["<div class=\"question\"", "<div class=\"answer\"", "“<bdi"] {
        assert_eq!(language(&page, element), "de", "{element}: {page}");
    }
    let link = page.split("data-cite href=\"").nth(1).and_then(|rest| rest.split('"').next());
    let cited = read(&visits, &format!("/{}", link.expect("a link").trim_start_matches("../"))).await;
    assert_eq!(language(&cited, "<blockquote"), "de", "{cited}");

    // A word or two tell nothing.
    let answer = visits.submit(&format!("/agents/{}/ask", id(&agent)), &[("question", "Fuchs")]).await;
    let page = answer.text().await.expect("a text");
    assert_eq!(language(&page, "<div class=\"question\""), "", "{page}");
}
