//! The page that the link of a citation opens.

use reqwest::{
    Method, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS,
    },
};
use serde_json::{Value, json};
use url::Url;

use crate::support::{
    client::{Client, data, id, send},
    in_both_modes,
    pdf::pdf_with_pages,
    service::{Mode, Service},
    web::Web,
};

in_both_modes!(
    a_link_opens_the_passage_with_the_quoted_words_marked,
    an_address_that_opens_all_of_a_document_is_not_shown,
    a_document_that_has_changed_is_named_and_nothing_of_it_is_shown,
    what_opens_nothing_is_one_and_the_same_page
);

/// What the quoted words stand in: the page opens where they are.
const MARK: &str = "<mark tabindex=\"-1\" autofocus>";
const PAGES: [&str; 3] = [
    "Chapter one. The expedition left Bergen in the spring of 1911.",
    "Chapter two. Its captain, Solveig Aas, had sailed the route twice before.",
    "Chapter three. The ship returned with four hundred specimens of moss.",
];

/// What proxies say of a request that they hand on.
const FORWARDED: [(&str, &str); 2] = [("X-Forwarded-Host", "kb.example.com"), ("X-Forwarded-Proto", "https")];

/// The link of the first citation of an answer from one document, asked with these headers.
async fn link_with(client: &Client, document: &Value, question: &str, headers: &[(&str, &str)]) -> String {
    let agent = client.create_agent(&json!({"name": "guide", "type": "CHATVENDOR"})).await;
    client.link(id(&agent), id(document)).await;
    let body = json!({"model": id(&agent), "messages": [{"role": "user", "content": question}]});
    let mut request = client.request_anywhere(Method::POST, "/v1/chat/completions").json(&body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer: Value = send(request).await.json().await.expect("JSON");
    let citation = &answer["choices"][0]["message"]["annotations"][0]["url_citation"];
    citation["url"].as_str().unwrap_or_else(|| panic!("nothing is cited: {answer:#}")).to_owned()
}

/// The path of such a link.
async fn path(client: &Client, document: &Value, question: &str) -> String {
    let link = link_with(client, document, question, &[]).await;
    format!("/cite/{}", link.split_once("/cite/").expect("a link of a citation").1)
}

/// A page as somebody without credentials gets it.
async fn open(client: &Client, path: &str) -> (StatusCode, HeaderMap, String) {
    let answer = send(client.request_outside(Method::GET, path)).await;
    let (status, headers) = (answer.status(), answer.headers().clone());
    (status, headers, answer.text().await.expect("a text"))
}

/// What stands between two parts of a page.
fn between<'a>(page: &'a str, start: &str, end: &str) -> &'a str {
    let after = page.split_once(start).unwrap_or_else(|| panic!("no {start}: {page}")).1;
    after.split_once(end).unwrap_or_else(|| panic!("no {end}: {page}")).0
}

async fn note(client: &Client, content: &str) -> Value {
    client.ingest(&json!({"name": "Gate", "type": "TXT", "content": content})).await
}

async fn a_link_opens_the_passage_with_the_quoted_words_marked(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let url = web.serve("/report.pdf", "application/pdf", pdf_with_pages(&PAGES));
    // A passage a page.
    let splitter = json!({"type": "character", "chunk_size": 80, "chunk_overlap": 0});
    let document = json!({"name": "report.pdf", "type": "PDF", "url": url, "splitter": splitter});
    let document = client.ingest(&document).await;

    let link = link_with(&client, &document, "Which captain had sailed the route before?", &[]).await;
    let path = link.strip_prefix(&service.base_url()).expect("the address that was asked");
    assert!(path.starts_with("/cite/"), "{link}");
    let (status, headers, page) = open(&client, path).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let marked = between(&page, MARK, "</mark>");
    assert!(PAGES[1].contains(marked) && marked.contains("Solveig Aas"), "{page}");
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("no {words}: {page}"));
    assert!(at("expedition left Bergen") < at(MARK) && at("</mark>") < at("specimens of moss"), "{page}");
    assert!(page.contains("<html lang=\"en\">") && page.contains("<title>report.pdf · Lectern</title>"));
    assert!(page.contains("Page 2"), "{page}");
    // In another tab: it may stand beside a conversation, which is not left.
    let source = format!("<a href=\"{url}#page=2\" target=\"_blank\" rel=\"noopener noreferrer\">");
    assert!(page.contains(&source), "{page}");
    assert!(!page.contains("<script") && !page.contains("style="), "{page}");

    assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
    assert_eq!(headers[REFERRER_POLICY], "no-referrer", "the link is not told to where the page leads");
    assert_eq!(headers[CACHE_CONTROL], "private, no-store");
    assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(headers["x-robots-tag"], "noindex");
    let policy = headers[CONTENT_SECURITY_POLICY].to_str().expect("text");
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    assert!(!policy.contains("script-src"), "{policy}");

    let style = between(&page, "<link rel=\"stylesheet\" href=\"..", "\"");
    let (status, headers, _) = open(&client, style).await;
    assert_eq!(status, StatusCode::OK, "{style}");
    assert_eq!(headers[CONTENT_TYPE], "text/css; charset=utf-8");
    let head = send(client.request_outside(Method::HEAD, path)).await;
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(head.headers()[CACHE_CONTROL], "private, no-store");
    assert_eq!(head.text().await.expect("no body"), "");
    let refused = send(client.request_outside(Method::POST, path)).await;
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert!(refused.text().await.expect("a text").starts_with("<!doctype html>"));
}

async fn an_address_that_opens_all_of_a_document_is_not_shown(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let url = web.serve("/report.pdf", "application/pdf", pdf_with_pages(&PAGES));
    let document = json!({"name": "Report", "type": "PDF", "url": format!("{url}?sig=open-sesame")});
    let document = client.ingest(&document).await;
    let link = link_with(&client, &document, "Which captain had sailed the route before?", &[]).await;
    let path = link.strip_prefix(&service.base_url()).expect("the address that was asked");
    let (status, _, page) = open(&client, path).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert!(page.contains("Solveig Aas") && !page.contains(&url), "{page}");
    // Whoever keeps documents sees where it is.
    let shown = client.read(&format!("/documents/{}", id(&document))).await;
    assert_eq!(shown["url"], format!("{url}?sig=open-sesame"), "{shown:#}");
}

async fn a_document_that_has_changed_is_named_and_nothing_of_it_is_shown(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let (before, after) = ("The gate opens at nine.", "The gate stays shut for good.");
    let document = note(&client, before).await;
    let path = path(&client, &document, "When does the gate open?").await;
    assert!(open(&client, &path).await.2.contains(before));

    let becomes = async |content: &str| {
        let change = json!({"content": content});
        data(client.patch(&format!("/documents/{}", id(&document)), &change).await);
        client.wait_until_ingested(id(&document)).await;
        open(&client, &path).await
    };
    let (status, _, page) = becomes(after).await;
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("<h1 dir=\"auto\">Gate</h1>") && page.contains("has changed"), "{page}");
    assert!(!page.contains("nine") && !page.contains("shut"), "{page}");
    let (_, _, page) = becomes(before).await;
    assert!(page.contains(before), "it stands there again: {page}");
}

async fn what_opens_nothing_is_one_and_the_same_page(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let document = note(&client, "The gate opens at nine.").await;
    let path = path(&client, &document, "When does the gate open?").await;
    let (cut, lengthened) = (&path[..path.len() - 4], format!("{path}AAAA"));
    let made_up = format!("/cite/{}", "A".repeat(146));
    data(client.delete(&format!("/documents/{}", id(&document))).await);
    let mut pages = Vec::new();
    for path in
        [path.as_str(), cut, &lengthened, &made_up, "/cite/x", "/cite/%ff", "/cite/", "/cite", "/cite/a/b"]
    {
        let (status, headers, page) = open(&client, path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8", "{path}");
        assert!(headers.contains_key(CONTENT_SECURITY_POLICY), "{path}");
        let request = headers["x-request-id"].to_str().expect("an id");
        assert!(page.contains(request), "{path}: whoever asks for help can name it");
        let style = between(&page, "rel=\"stylesheet\" href=\"", "\"");
        let icon = between(&page, "rel=\"icon\" type=\"image/svg+xml\" href=\"", "\"");
        let asked = Url::parse("http://lectern.example").and_then(|root| root.join(path));
        let home = between(&page, "<p><a href=\"", "\"");
        let led_to = |link: &str| asked.clone().and_then(|asked| asked.join(link)).expect("an address");
        assert_eq!(led_to(style).path(), "/assets/style.css", "{path}");
        assert_eq!(led_to(icon).path(), "/assets/icon.svg", "{path}");
        assert_eq!(led_to(home).path(), "/", "{path}");
        let page = page.replace(request, "").replace(style, "").replace(icon, "");
        pages.push(page.replace(&format!("\"{home}\""), ""));
    }
    assert!(!pages[0].contains("Gate"), "{}", pages[0]);
    assert!(pages.iter().all(|page| *page == pages[0]), "{pages:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_users_wrote_is_text_on_the_page() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let content = "The gate opens at nine. <b onclick=\"alert(1)\">Closed</b> on Sundays & holidays.";
    let document = json!({"name": "Gates & \"doors\"", "type": "TXT", "content": content});
    let document = client.ingest(&document).await;
    let (_, _, page) = open(&client, &path(&client, &document, "When does the gate open?").await).await;
    assert!(page.contains("The gate opens at nine."), "{page}");
    assert!(page.contains("<title>Gates &#38; &#34;doors&#34; · Lectern</title>"), "{page}");
    assert!(!page.contains("<b ") && page.contains("&#60;b onclick=&#34;alert(1)&#34;&#62;Closed"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_begins_with_the_operators_address_if_there_is_one() {
    let address = "https://lectern.example.com/kb";
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_PUBLIC_URL", address).start().await;
    let client = service.signed_up("ada@example.com").await;
    let document = note(&client, "The gate opens at nine.").await;
    let link = link_with(&client, &document, "When does the gate open?", &FORWARDED).await;
    let path = link.strip_prefix(address).unwrap_or_else(|| panic!("{link}"));
    assert_eq!(open(&client, path).await.0, StatusCode::OK, "{link}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_begins_as_a_trusted_proxy_was_asked_and_as_no_stranger_says() {
    for (trusted, is_believed) in [("127.0.0.0/8", true), ("192.0.2.0/24", false)] {
        let service = Service::in_mode(Mode::Embedded).env("LECTERN_TRUSTED_PROXIES", trusted).start().await;
        let client = service.signed_up("ada@example.com").await;
        let document = note(&client, "The gate opens at nine.").await;
        let link = link_with(&client, &document, "When does the gate open?", &FORWARDED).await;
        let expected = if is_believed { "https://kb.example.com".to_owned() } else { service.base_url() };
        assert!(link.starts_with(&format!("{expected}/cite/")), "{link}");
    }
}
