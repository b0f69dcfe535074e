//! What pages say: of failures, of what is missing, of what waits, and of what was done.

use reqwest::{
    Method, Response, StatusCode,
    header::{ACCEPT, COOKIE, ORIGIN},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{QUESTION, Visits, agent_with_report, form_addresses, location, people::Team, service, sign_in};
use crate::support::{
    browser::Browser,
    client::{data, id, send},
    in_both_modes,
    process::POLL,
    service::{Mode, Service},
    web::Web,
    within_deadline,
};

in_both_modes!(
    the_audit_log_names_what_is_there_still_and_shows_its_id,
    a_document_that_waits_for_its_next_try_says_when_that_is,
    a_job_that_is_queued_again_is_said_to_be,
);

/// The menu of those who are signed in.
const MENU: &str = "<nav aria-label=\"Pages\">";

async fn text_of(answer: Response) -> String {
    answer.text().await.expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_leaves_the_menu_to_whoever_is_signed_in() {
    let service = service().await;
    // The first account is the operator's.
    service.signed_up("ada@example.com").await;
    let ben = service.signed_up("ben@example.com").await;
    let client = service.client();
    let (mut visits, stranger) = (Visits::new(&service, &client), Visits::new(&service, &client));
    visits.sign_in("ben@example.com").await;
    let open = async |visits: &Visits<'_>, path: &str| {
        let request = client.request_outside(Method::GET, path).header(COOKIE, &visits.cookies);
        let answer = send(request.header(ACCEPT, "text/html")).await;
        (answer.status(), text_of(answer).await)
    };
    let missing = format!("/documents/{}?said=saved", Uuid::now_v7());
    for (path, status) in [
        (missing.as_str(), StatusCode::NOT_FOUND),
        ("/documents/no/such/page", StatusCode::NOT_FOUND),
        ("/nothing-is-called-so", StatusCode::NOT_FOUND),
        ("/jobs", StatusCode::FORBIDDEN),
    ] {
        let (told, page) = open(&visits, path).await;
        assert_eq!(told, status, "{path}: {page}");
        assert!(page.contains(MENU) && page.contains(">ben</a>"), "{path}: {page}");
        assert!(page.contains("Request ") && !page.contains("Saved."), "{path}: {page}");
    }
    let (status, page) = open(&stranger, "/nothing-is-called-so").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(page.contains("There is nothing here") && !page.contains(MENU), "{page}");

    // What is gone when something is to be done with it, by a button that is pressed twice, is said to be so, and its list is near.
    let invitations = format!("/workspaces/{}/invitations", id(ben.user()));
    let invitation = ben.create(&invitations, &json!({"role": "asker"})).await;
    let withdraw = format!("/members/invitations/{}/withdraw", id(&invitation));
    assert_eq!(visits.submit(&withdraw, &[]).await.status(), StatusCode::SEE_OTHER);
    let again = visits.submit(&withdraw, &[]).await;
    assert_eq!(again.status(), StatusCode::NOT_FOUND);
    let page = text_of(again).await;
    assert!(page.contains("It is not there any more") && page.contains(MENU), "{page}");
    assert!(page.contains("<a class=\"button\" href=\"../../../members\">Members</a>"), "{page}");

    // What was sent and is wrong has it too, and shows code as code.
    let tool = [("name", "Compute"), ("type", "COMPUTE_ALPHA")];
    let refused = visits.submit("/tools", &tool).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let page = text_of(refused).await;
    assert!(page.contains(MENU) && page.contains("<code>app_id</code>") && !page.contains('`'), "{page}");
    let tools = text_of(visits.get("/tools").await).await;
    assert!(tools.contains("href=\"docs/#/Tools/createTool\""), "{tools}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_removed_while_a_page_is_open_is_told_so_there() {
    let Some(browser) = Browser::start().await else { return };
    let Team { service, ben, workspace, inside, .. } = Team::with("editor").await;
    let web = Web::start().await;
    // As long as it is read, the page asks often.
    let slow = json!({"name": "Slow", "type": "URL", "url": web.hang("/slow")});
    inside.create_document(&slow).await;
    sign_in(&browser, &service, "ben@example.com").await;
    browser.select("#workspace", id(&workspace)).await;
    browser.click_text("button", "Change").await;
    browser
        .wait_until("the workspace", "document.querySelector('#workspace option[selected]').text === 'Team'")
        .await;
    browser.goto(&format!("{}/documents", service.base_url())).await;
    browser.wait_for("#rows[data-live='2']").await;
    let member = format!("/workspaces/{}/members/{}", id(&workspace), id(ben.user()));
    assert!(inside.delete(&member).await.0.is_success());
    let told = "document.querySelector('.notice')?.innerText.includes('you are no member of it any more')";
    browser.wait_until("what is said", told).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_provider_signed_nobody_in_is_said_in_words_to_whoever_is_signed_in_already_too() {
    const BOX: &str = "[data-sign-in-problem]:not([hidden])";
    let Some(browser) = Browser::start().await else { return };
    let service = service().await;
    let base = service.base_url();
    service.signed_up("ada@example.com").await;
    browser.goto(&format!("{base}/#/sign-in?error=oidc_token")).await;
    browser.wait_for(BOX).await;
    let said = browser.text(BOX).await;
    assert_eq!(
        said,
        "What the provider answered cannot be believed. Try again, and tell the operator if it goes on."
    );
    sign_in(&browser, &service, "ada@example.com").await;
    for (error, words) in [
        ("oidc_token", "What the provider answered cannot be believed."),
        ("unavailable", "something that it needs is away"),
        // What an address says is never shown.
        ("constructor", "Signing in did not work."),
    ] {
        browser.goto(&format!("{base}/account")).await;
        browser.goto(&format!("{base}/#/sign-in?error={error}")).await;
        browser.wait_for(BOX).await;
        let said = browser.text(BOX).await;
        assert!(said.contains(words) && said.ends_with("You are signed in as before."), "{error}: {said}");
        assert!(browser.exists("nav[aria-label=Pages]").await, "{error}: the menu stays");
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_cases_that_is_refused_is_said_to_be_on_its_page() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let evaluation = owner.create("/evaluations", &json!({"name": "Questions"})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let path = format!("/evaluations/{}/import", id(&evaluation));
    let import = async |rows: &str, accept: &str| {
        let file = format!(
            "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"cases.csv\"\r\n\r\n{rows}\r\n--x--\r\n"
        );
        let request = client.request_outside(Method::POST, &path).header(COOKIE, &visits.cookies);
        let request = request.header(ORIGIN, &visits.origin).header(ACCEPT, accept);
        send(request.header("content-type", "multipart/form-data; boundary=x").body(file)).await
    };

    let refused = import("asked,expect\nWho founded it?,decline", "text/html").await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let page = text_of(refused).await;
    assert!(page.contains("No case was added") && page.contains("column <code>question</code>"), "{page}");
    assert!(
        page.contains("Questions</h1>") && page.contains("type=\"file\""),
        "it can be mended here: {page}"
    );
    // The page stays at that address, and opens there anew.
    let page = text_of(visits.get(&path).await).await;
    assert!(page.contains("Questions</h1>") && !page.contains("No case was added"), "{page}");
    // A script shows it itself.
    let refused = import("asked,expect\nWho founded it?,decline", "application/json").await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let told: Value = refused.json().await.expect("JSON");
    assert_eq!(told["error"]["fields"][0]["path"], "file", "{told:#}");

    let added = import("question,expect\nWho founded it?,decline", "text/html").await;
    assert_eq!(added.status(), StatusCode::SEE_OTHER);
    let page_after = async |answer: &Response| {
        let (_, query) = location(answer).split_once('?').expect("what is said");
        text_of(visits.get(&format!("/evaluations/{}?{query}", id(&evaluation))).await).await
    };
    let page = page_after(&added).await;
    assert!(page.contains("1 case was added.") && !page.contains("Added."), "{page}");
    let cases = owner.read(&format!("/evaluations/{}/cases", id(&evaluation))).await;
    assert_eq!(cases.as_array().map(Vec::len), Some(1), "{cases:#}");
    // What is there already is left out, and what a document does not say is named.
    owner.ingest(&json!({"name": "Warranty", "type": "TXT", "content": "It lasts two years."})).await;
    let rows =
        "question,document,quote,expect\nWho founded it?,,,decline\nHow long?,Warranty,lasts ten years,";
    let page = page_after(&import(rows, "text/html").await).await;
    assert!(page.contains("1 case was added; 1 was there already."), "{page}");
    assert!(page.contains("The document does not say what is quoted: line 3."), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_that_an_evaluation_is_needed_to_become_a_case_of() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    let (_, answer) = owner.predict(&agent, QUESTION).await;
    let path = format!("/traces/{}", id(&answer["trace"]));
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let page = text_of(visits.get(&path).await).await;
    assert!(
        page.contains("There is no evaluation yet") && page.contains("href=\"../evaluations\""),
        "{page}"
    );
    assert!(!page.contains("name=\"evaluationId\""), "{page}");
    owner.create("/evaluations", &json!({"name": "Questions"})).await;
    let page = text_of(visits.get(&path).await).await;
    assert!(!page.contains("There is no evaluation yet") && page.contains("name=\"evaluationId\""), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_shows_which_of_its_documents_it_cannot_answer_from() {
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_JOB_MAX_ATTEMPTS", "1").start().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let path = format!("/agents/{agent}");
    let page = text_of(visits.get(&path).await).await;
    assert!(page.contains("report.pdf") && !page.contains("class=\"state"), "all is well: {page}");

    let web = Web::start().await;
    let gone = json!({"name": "Gone", "type": "TXT", "url": web.url("/gone.txt")});
    let gone = owner.create_document(&gone).await;
    owner.wait_until_ingested(id(&gone)).await;
    let (url, gate) = web.gate("/slow", "text/plain", "Slow and steady.");
    let slow = owner.create_document(&json!({"name": "Slow", "type": "TXT", "url": url})).await;
    gate.wait_until_reached().await;
    for document in [&gone, &slow] {
        owner.link(&agent, id(document)).await;
    }
    // What has failed is tried again for the agent.
    owner.wait_until_ingested(id(&gone)).await;
    let page = text_of(visits.get(&path).await).await;
    for said in [
        "<span class=\"state bad\">Failed</span><span class=\"note\">It cannot answer from it.</span>",
        "<span class=\"state busy\">Is being read</span><span class=\"note\">It cannot answer from it yet.</span>",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    gate.release();
    owner.wait_until_ingested(id(&slow)).await;
    let page = text_of(visits.get(&path).await).await;
    assert_eq!(page.matches("class=\"state").count(), 1, "{page}");
    // Why it failed is told without the names that programs have for things.
    for path in [format!("/documents/{}", id(&gone)), "/documents".to_owned(), "/".to_owned()] {
        let page = text_of(visits.get(&path).await).await;
        assert!(page.contains("Check the address.") && !page.contains("the url"), "{path}: {page}");
    }
}

async fn the_audit_log_names_what_is_there_still_and_shows_its_id(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let token = owner.create("/api-tokens", &json!({"description": "for the build"})).await;
    let webhook = json!({"url": "http://127.0.0.1:9/path-key?key=query-key", "events": ["document.failed"]});
    let webhook = owner.create("/webhooks", &webhook).await;
    let collection = owner.create("/collections", &json!({"name": "Shelf"})).await;
    data(owner.delete(&format!("/collections/{}", id(&collection))).await);
    let note = json!({"name": "Lost note", "type": "TXT", "content": "A note."});
    let document = owner.ingest(&note).await;
    data(owner.delete(&format!("/documents/{}", id(&document))).await);
    let invite = json!({"email": "grace@example.com", "role": "editor"});
    let invitation = owner.create(&format!("/workspaces/{}/invitations", id(owner.user())), &invite).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let page = text_of(visits.get("/audit").await).await;
    for (kind, name, id) in [
        ("user", "ada@example.com", id(owner.user())),
        ("api token", "for the build", id(&token)),
        ("webhook", "http://127.0.0.1:9", id(&webhook)),
        ("invitation", "grace@example.com", id(&invitation)),
    ] {
        let cell = format!("{kind} <span dir=\"auto\">{name}</span><div class=\"note\">{id}</div></td>");
        assert!(page.contains(&cell), "{cell}: {page}");
    }
    assert!(!page.contains("path-key") && !page.contains("query-key"), "what may open something: {page}");
    let invited = "member invited<div class=\"note\" dir=\"auto\">to editor</div>";
    assert!(page.contains(invited), "which right was given: {page}");
    let some = text_of(visits.get("/audit?action=member_invited&actor=&since=2020-01-31").await).await;
    assert!(some.contains(invited) && !some.contains(id(&token)), "only what is asked for: {some}");
    for kept in ["value=\"member_invited\" selected", "type=\"date\" value=\"2020-01-31\""] {
        assert!(some.contains(kept), "{kept}: {some}");
    }
    let timed = "/audit?since=2020-01-31T09%3A30%3A00Z&until=2020-01-31T09%3A45%3A00%2B01%3A00";
    let timed = text_of(visits.get(timed).await).await;
    for kept in
        ["since\" autocomplete=\"off\" value=\"2020-01-31T09:30:00Z\"", "value=\"2020-01-31T09:45:00+01:00\""]
    {
        assert!(timed.contains(kept), "{kept}: {timed}");
    }
    assert!(timed.contains("Nothing like that has been noted."), "{timed}");
    assert!(
        page.contains(&format!("collection {}</td>", id(&collection))),
        "it has no name any more: {page}"
    );
    // A document leads to its receipt, which has its name.
    let link = format!("document <a href=\"documents/{}\"", id(&document));
    assert!(page.contains(&link), "{link}: {page}");
    let receipt = visits.get(&format!("/documents/{}/receipt", id(&document))).await;
    assert!(text_of(receipt).await.contains("Lost note was deleted"));
}

async fn a_document_that_waits_for_its_next_try_says_when_that_is(mode: Mode) {
    const TRIED_NEXT: &str = "It is tried next in ";
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let busy = json!({"name": "Busy", "type": "TXT", "url": web.status("/busy.txt", 503)});
    let document = owner.create_document(&busy).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let path = format!("/documents/{}", id(&document));
    let said = async {
        loop {
            let page = text_of(visits.get(&path).await).await;
            if let Some((_, said)) = page.split_once(TRIED_NEXT) {
                break said.to_owned();
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let said = within_deadline("when it is tried next", said).await;
    let (wait, at) = said.split_once(", at <time datetime=\"").expect("in how long, and when");
    assert!(wait.ends_with("second") || wait.ends_with("seconds"), "{wait}");
    assert!(at.starts_with("20") && at.contains("UTC</time>."), "{at}");
}

async fn a_job_that_is_queued_again_is_said_to_be(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_JOB_MAX_ATTEMPTS", "1").start().await;
    let owner = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let gone = json!({"name": "Gone", "type": "TXT", "url": web.url("/gone.txt")});
    let gone = owner.create_document(&gone).await;
    owner.wait_until_ingested(id(&gone)).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let forms = form_addresses(&text_of(visits.get("/jobs").await).await);
    let retry = forms.iter().find(|address| address.contains("/retry?")).expect("a job that failed");
    let queued = visits.submit(&format!("/{retry}"), &[]).await;
    assert_eq!(queued.status(), StatusCode::SEE_OTHER);
    let jobs = location(&queued).trim_start_matches("../").to_owned();
    let page = text_of(visits.get(&format!("/{jobs}")).await).await;
    assert!(page.contains("The job waits in the queue again."), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_and_tables_are_read_on_a_phone() {
    let Some(browser) = Browser::start().await else { return };
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    let (_, answer) = owner.predict(&agent, QUESTION).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.set_size(390, 800).await;
    for page in ["usage".to_owned(), format!("traces/{}", id(&answer["trace"]))] {
        browser.goto(&format!("{}/{page}", service.base_url())).await;
        browser.wait_for("svg.chart text").await;
        let lowest = "return Math.round(Math.min(...[...document.querySelectorAll('svg.chart text')]
            .map((text) => text.getBoundingClientRect().height)))";
        let lowest = browser.script(lowest, vec![]).await;
        assert!(lowest.as_u64() >= Some(12), "{page}: {lowest} pixels");
        let widest = "return Math.round(Math.max(...[...document.querySelectorAll('svg.chart rect')]
            .map((bar) => bar.getBoundingClientRect().right)))";
        let widest = browser.script(widest, vec![]).await;
        assert!(widest.as_u64() <= Some(390), "{page}: {widest} pixels");
    }
    browser.goto(&format!("{}/documents", service.base_url())).await;
    browser.wait_for("tbody td").await;
    let label = "return getComputedStyle(document.querySelector('td[data-label=State]'), '::before').content";
    for (width, is_labelled) in [(390, true), (1_280, false)] {
        browser.set_size(width, 800).await;
        let content = browser.script(label, vec![]).await;
        assert_eq!(content != json!("none"), is_labelled, "{width} pixels wide: {content}");
    }
    browser.close().await;
}
