//! Answers on pages: their numbers lead to their sources, and where there are none, or none any more, that is said.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    QUESTION as ABOUT_THE_CAPTAIN, Visits, agent_with_report, assert_no_complaints,
    browsers::assert_for_everybody, people::read, service, sign_in,
};
use crate::support::{
    browser::Browser,
    client::{Client, data, envelope, id, send},
    command::upload,
    in_both_modes,
    model::{Model, Reply},
    service::{Mode, Service},
};

in_both_modes!(of_a_document_that_was_deleted_its_answers_say_so);

const CELLAR: &str = "# Bicycles\n\nBicycles belong in the cellar, behind the boiler.\n";
const HALL: &str = "# Prams\n\nPrams may stand in the hall, next to the letter boxes.\n";
/// A passage, whose sentence goes over two lines, and another one.
const BOTH: &str = "Bicycles belong in the cellar,\nbehind the old boiler.\n\n\
                    Prams may stand in the hall, beside the letter boxes, if they are folded.";
const QUESTION: &str = "Where do bicycles and prams belong?";

/// An agent of this model with a document for each of these rules.
async fn porter(owner: &Client, model: &Model, rules: &[&str]) -> (String, Vec<String>) {
    let llm = model.llm("m");
    let agent = owner.create_agent(&json!({"name": "Porter", "type": "CHATVENDOR", "llm": llm})).await;
    let mut documents = Vec::new();
    for rule in rules {
        let document = upload(owner, "rules.md", rule.as_bytes()).await;
        owner.wait_until_ingested(id(&document)).await;
        owner.link(id(&agent), id(&document)).await;
        documents.push(id(&document).to_owned());
    }
    (id(&agent).to_owned(), documents)
}

/// What somebody reads who asks this agent on its page.
async fn asked(visits: &mut Visits<'_>, agent: &str) -> String {
    let answer = visits.submit(&format!("/agents/{agent}/ask"), &[("question", QUESTION)]).await;
    assert_eq!(answer.status(), StatusCode::OK);
    answer.text().await.expect("a text")
}

/// The way to the newest trace.
async fn newest(owner: &Client) -> String {
    let traces: Value = owner.read("/traces").await;
    format!("/traces/{}", id(&traces[0]["trace"]))
}

/// What somebody reads who asks this agent: on its page, and on the page of the answer's trace.
async fn now_and_later(visits: &mut Visits<'_>, owner: &Client, agent: &str) -> [String; 2] {
    let told = asked(visits, agent).await;
    [told, read(visits, &newest(owner).await).await]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_number_of_an_answer_opens_its_source_now_and_later() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::text("In the cellar and the hall [1, 2]. So it is【1】, as they say [1-2]."));
    let (agent, _) = porter(&owner, &model, &[CELLAR, HALL]).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    for html in now_and_later(&mut visits, &owner, &agent).await {
        let marks = html.split("class=\"cite\"").skip(1).filter_map(|rest| rest.split(['>', '<']).nth(1));
        assert_eq!(marks.collect::<Vec<_>>(), ["1", "2", "1", "1", "2"], "{html}");
        // Sources of one name are told apart by the headings that they stand under.
        let sources = html.split("<ol class=\"sources\">").nth(1).expect("sources");
        for heading in ["Bicycles", "Prams"] {
            assert!(sources.contains(&format!("dir=\"auto\">{heading}</span>")), "{heading}: {sources}");
        }
        assert!(!html.contains("names no source"), "{html}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quotation_is_marked_in_its_source_now_and_later() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let (agent, _) = porter(&owner, &model, &[]).await;
    let splitter = json!({"type": "character", "chunk_size": 80, "chunk_overlap": 0});
    let rules = json!({"name": "Rules", "type": "TXT", "content": BOTH, "splitter": splitter});
    let rules = owner.ingest(&rules).await;
    owner.link(&agent, id(&rules)).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let sentence = "Bicycles belong in the cellar,\nbehind the old boiler.";
    for (quote, marked) in [
        ("Bicycles belong in the cellar, behind the old boiler.", sentence),
        ("Bicycles belong in … the old boiler.", sentence),
        // Of what goes over two passages, what the first one has.
        ("behind the old boiler. Prams may stand in the hall", "behind the old boiler."),
    ] {
        model.always(Reply::text(&format!("“{quote}” [1]")));
        for html in now_and_later(&mut visits, &owner, &agent).await {
            assert!(html.contains("The quoted words stand in the document"), "{quote}: {html}");
            let link = html.split("data-cite href=\"").nth(1).and_then(|rest| rest.split('"').next());
            let source = format!("/{}", link.expect("a link").trim_start_matches("../"));
            let source = read(&visits, &source).await;
            assert!(source.contains(&format!(">{marked}</mark>")), "{quote}: {source}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_source_says_that_it_has_none() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::text("Somewhere else, I should think [99]."));
    let (agent, _) = porter(&owner, &model, &[CELLAR, HALL]).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    for html in now_and_later(&mut visits, &owner, &agent).await {
        assert!(
            html.contains("Somewhere else, I should think.") && html.contains("names no source"),
            "{html}"
        );
    }
    // On a page for everybody, too.
    let page = json!({"slug": "porter", "access": "public", "ratePerMinute": 9});
    let path = format!("/agents/{agent}/publication");
    data(envelope(send(owner.request(Method::PUT, &path).json(&page)).await).await);
    let mut guest = Visits::new(&service, &client);
    let answer = guest.submit("/ask/porter", &[("question", QUESTION)]).await;
    assert!(answer.text().await.expect("a text").contains("names no source"));
    // What says itself that nothing was found needs nothing said besides.
    let llm = json!({"provider": "extractive", "model": "extractive"});
    let silent = owner.create_agent(&json!({"name": "Silent", "type": "CHATVENDOR", "llm": llm})).await;
    let refused = asked(&mut visits, id(&silent)).await;
    assert!(refused.contains("Nothing in the linked documents"), "{refused}");
    assert!(!refused.contains("names no source"), "{refused}");
}

async fn of_a_document_that_was_deleted_its_answers_say_so(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::text("“Bicycles belong in the cellar, behind the boiler.” [1]"));
    let (agent, rules) = porter(&owner, &model, &[CELLAR]).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    asked(&mut visits, &agent).await;
    let path = newest(&owner).await;
    let kept = owner.read(&path).await;
    let before = visits.get(&path).await.text().await.expect("a text");
    assert!(before.contains("The quoted words stand in the document"), "{before}");
    assert!(!before.contains(">Deleted") && before.contains("data-cite"), "{before}");

    let (status, answer) = owner.delete(&format!("/documents/{}", rules[0])).await;
    assert!(status.is_success(), "{answer:#}");
    let after = visits.get(&path).await.text().await.expect("a text");
    assert!(after.contains("The quoted words stood in the document"), "{after}");
    assert!(after.contains("The document was deleted since"), "{after}");
    assert!(after.contains(">Deleted since<"), "the passages that the model was given: {after}");
    assert!(!after.contains("data-cite"), "nothing opens it: {after}");
    let mut links = after.split("href=\"").filter_map(|rest| rest.split('"').next());
    let receipt = links.find(|link| link.ends_with("/receipt")).expect("its receipt");
    let receipt = visits.get(&format!("/{}", receipt.trim_start_matches("../"))).await;
    assert_eq!(receipt.status(), StatusCode::OK);
    let told = receipt.text().await.expect("a text");
    assert!(told.contains("rules.md was deleted") && told.contains("stays in their traces"), "{told}");
    assert_eq!(owner.read(&path).await, kept, "what is kept is what it was");
}

#[tokio::test(flavor = "multi_thread")]
async fn how_answers_came_about_is_read_by_everybody_however_many_there_are() {
    let Some(browser) = Browser::start().await else { return };
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/agents/{agent}/ask", service.base_url())).await;
    for number in 1..=2 {
        browser.fill("#question", ABOUT_THE_CAPTAIN).await;
        browser.click("[data-ask] .main").await;
        let answered = format!("document.querySelectorAll('[data-answer]').length === {number}");
        browser.wait_until("the answer", &answered).await;
    }
    let open = "for (const details of document.querySelectorAll('details')) details.open = true;
        return [document.querySelectorAll('[data-answer] pre').length > 1,
            document.querySelectorAll('[data-answer] :is(section[aria-label], [role=region])').length]";
    assert_eq!(browser.script(open, vec![]).await, json!([true, 0]), "the same landmark again and again");
    assert_for_everybody(&browser, "answers, and how they came about").await;

    // What stands in a field as an example is read in both schemes.
    browser.goto(&format!("{}/documents", service.base_url())).await;
    for is_dark in [false, true] {
        browser.prefers_dark(is_dark).await;
        let contrast = "const luminance = (css) => {
                const [red, green, blue] = css.match(/[\\d.]+/g).map((part) => part / 255).map((part) =>
                    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
                return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
            };
            const field = document.querySelector('#metadata');
            const [words, ground] = [getComputedStyle(field, '::placeholder').color, getComputedStyle(field).backgroundColor];
            const [dark, light] = [luminance(words), luminance(ground)].sort((one, other) => one - other);
            return (light + 0.05) / (dark + 0.05)";
        let contrast = browser.script(contrast, vec![]).await;
        assert!(contrast.as_f64() >= Some(4.5), "dark: {is_dark}: {contrast}");
    }
    assert_no_complaints(&browser).await;
    browser.close().await;
}
