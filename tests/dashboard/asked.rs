//! What cannot be taken back is asked about first: in a dialog, and without scripts on a page in between.

use reqwest::{Response, StatusCode};
use serde_json::json;

use super::{CONFIRMED, PAGES, Visits, assert_no_complaints, location, service, sign_in};
use crate::{
    matrix::things::{asked, evaluated},
    support::{
        browser::Browser,
        client::{PASSWORD, id},
        command::upload,
        in_both_modes,
        pdf::pdf_with_pages,
        service::{Mode, Service},
    },
};

in_both_modes!(
    without_scripts_each_deletion_leads_to_a_page_that_asks,
    a_filter_that_cannot_be_read_lets_nothing_be_deleted,
    a_document_names_its_source_and_is_found_by_it,
    all_that_one_asked_is_deleted_from_the_list_of_their_answers,
    what_a_prompt_said_goes_from_earlier_versions_where_that_is_ticked,
);

async fn text_of(answer: Response) -> String {
    answer.text().await.expect("a text")
}

/// The page that asks, of a form that was not done.
async fn question_of(answer: Response, path: &str) -> String {
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    let page = text_of(answer).await;
    assert!(page.contains("<h1>Are you sure?</h1>") && page.contains(">Back</a>"), "{path}: {page}");
    page
}

/// What a browser sends by the button of the page that asks, and where.
fn answer_of(page: &str) -> (String, Vec<(String, String)>) {
    let form = page.split("<form class=\"card\"").nth(1).and_then(|rest| rest.split("</form>").next());
    let form = form.expect("a form");
    let attribute = |tag: &str, name: &str| {
        let value = tag.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        let value = value.expect("a value").replace("&#34;", "\"").replace("&#60;", "<");
        value.replace("&#62;", ">").replace("&#39;", "'").replace("&#38;", "&")
    };
    let action = attribute(form, "action");
    let hidden =
        form.split("<input type=\"hidden\"").skip(1).map(|rest| rest.split('>').next().expect("its end"));
    let fields = hidden.map(|tag| (attribute(tag, "name"), attribute(tag, "value")));
    let confirmed = [(CONFIRMED.0.to_owned(), CONFIRMED.1.to_owned())];
    (format!("/{}", action.trim_start_matches("../")), fields.chain(confirmed).collect())
}

async fn confirm(visits: &mut Visits<'_>, page: &str, more: &[(&str, &str)]) -> Response {
    let (path, fields) = answer_of(page);
    let fields = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    visits.submit(&path, &fields.chain(more.iter().copied()).collect::<Vec<_>>()).await
}

async fn without_scripts_each_deletion_leads_to_a_page_that_asks(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let report = upload(&owner, "report.pdf", &pdf_with_pages(&PAGES)).await;
    let collection = owner.create("/collections", &json!({"name": "Shelf <1>"})).await;
    owner
        .create_document(
            &json!({"name": "Kept", "type": "TXT", "content": "A note.", "collectionIds": [id(&collection)]}),
        )
        .await;
    let agent = owner.create_agent(&json!({"name": "Guide", "type": "CHATVENDOR"})).await;
    let prompt = json!({"name": "Short", "template": "Be short.", "input_variables": []});
    let prompt = owner.create("/prompts", &prompt).await;
    let tool = json!({"name": "Helper", "type": "AGENT", "metadata": {"agentId": id(&agent)}});
    let tool = owner.create("/tools", &tool).await;
    let webhook = json!({"url": "http://127.0.0.1:9/told", "events": ["document.failed"]});
    let webhook = owner.create("/webhooks", &webhook).await;
    let token = owner.create("/api-tokens", &json!({"description": "for the build"})).await;
    owner.wait_until_ingested(id(&report)).await;
    let (evaluation, case, _) = evaluated(&owner, id(&report)).await;
    let (source, run) = asked(&owner).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    // A source asks before it deletes much, and the answer is asked about too.
    let path = format!("/sources/{source}/runs/{run}/confirm");
    let question = text_of(visits.get(&format!("/sources/{source}/runs/{run}")).await).await;
    let question = button_of(&question, "Delete these documents?");
    let asked = question_of(visits.submit(&path, &[("confirm", question.as_str())]).await, &path).await;
    assert!(asked.contains("1 of 1 documents are gone"), "{asked}");
    assert_eq!(owner.read(&format!("/sources/{source}/runs/{run}")).await["state"], "waiting");
    let cases = format!("/evaluations/{evaluation}/cases");
    let llm = json!({"provider": "extractive", "model": "extractive"});
    let clerk = owner.create_agent(&json!({"name": "Clerk", "type": "CHATVENDOR", "llm": llm})).await;
    let (_, answer) = owner.predict(id(&clerk), "When does the gate open?").await;
    let trace = id(&answer["trace"]);
    for (page, path, list, words) in [
        (format!("/traces/{trace}"), format!("/traces/{trace}/delete"), "/traces", "this answer"),
        ("/tools".to_owned(), format!("/tools/{}/delete", id(&tool)), "/tools", "the tool “Helper”"),
        ("/prompts".to_owned(), format!("/prompts/{}/delete", id(&prompt)), "/prompts", "the prompt “Short”"),
        ("/tokens".to_owned(), format!("/tokens/{}/delete", id(&token)), "/api-tokens", "“for the build”"),
        (
            format!("/webhooks/{}", id(&webhook)),
            format!("/webhooks/{}/delete", id(&webhook)),
            "/webhooks",
            "/told",
        ),
        (format!("/agents/{}", id(&agent)), format!("/agents/{}/delete", id(&agent)), "/agents", "“Guide”"),
        (
            format!("/collections/{}", id(&collection)),
            format!("/collections/{}/delete", id(&collection)),
            "/collections",
            "“Shelf &#60;1&#62;”? Its documents (1) stay.",
        ),
        (
            format!("/evaluations/{evaluation}"),
            format!("/evaluations/{evaluation}/cases/{case}/delete"),
            cases.as_str(),
            "the case “When does the gate open?”",
        ),
        (
            format!("/evaluations/{evaluation}"),
            format!("/evaluations/{evaluation}/delete"),
            "/evaluations",
            "“Questions”, with its cases (0)",
        ),
        (format!("/sources/{source}"), format!("/sources/{source}/delete"), "/sources", "the source “Site”"),
        (
            format!("/documents/{}", id(&report)),
            format!("/documents/{}/delete", id(&report)),
            "/documents",
            "the document “report.pdf”",
        ),
    ] {
        let html = text_of(visits.get(&page).await).await;
        let count = async || owner.read(list).await.as_array().map(Vec::len);
        let before = count().await;
        let question = button_of(&html, words);
        let asked = question_of(visits.submit(&path, &[("confirm", question.as_str())]).await, &path).await;
        assert!(asked.contains(words), "{path}: {asked}");
        // Whoever sends no question is asked all the same.
        question_of(visits.submit(&path, &[]).await, &path).await;
        assert_eq!(count().await, before, "{path}: nothing is done yet");
        let done = confirm(&mut visits, &asked, &[]).await;
        assert_eq!(done.status(), StatusCode::SEE_OTHER, "{path}");
        assert_eq!(count().await, before.map(|before| before - 1), "{path}");
    }

    // A password is no part of a page, and is asked for there.
    let asked = visits.submit("/account/delete", &[("password", PASSWORD)]).await;
    let asked = question_of(asked, "the account").await;
    assert!(!asked.contains(PASSWORD) && asked.contains("type=\"password\""), "{asked}");
    let gone = confirm(&mut visits, &asked, &[("password", PASSWORD)]).await;
    assert_eq!(location(&gone), "../sign-in?said=account-deleted");
}

/// The question of the button of a page that has these words in it.
fn button_of(html: &str, words: &str) -> String {
    let questions = html.split("name=\"confirm\" value=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut asking = questions.filter(|question| question.contains(words));
    asking.next().expect("a button that asks so").replace("&#60;", "<").replace("&#62;", ">")
}

async fn a_filter_that_cannot_be_read_lets_nothing_be_deleted(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let mut all = Vec::new();
    for number in 0..3 {
        let document = json!({"name": format!("Fact sheet {number:02}"), "type": "TXT", "content": format!("{number}.")});
        all.push(id(&owner.ingest(&document).await).to_owned());
    }
    let collection = owner.create("/collections", &json!({"name": "Shelf"})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let count = async || owner.read("/documents").await.as_array().map(Vec::len);
    for filter in
        ["state=Failed", "type=WORD", "collection=bad", "source=bad", "nmae=Fact", "name=", "name=a&name=b"]
    {
        for action in ["delete", "collect", "ingest"] {
            let form = [
                CONFIRMED,
                ("action", action),
                ("all:boolean", "true"),
                ("filter", filter),
                ("collection", id(&collection)),
            ];
            let refused = visits.submit("/documents/bulk", &form).await;
            assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY, "{action}, {filter}");
        }
    }
    assert_eq!(count().await, Some(3));
    assert_eq!(owner.read(&format!("/collections/{}", id(&collection))).await["documents"], 0);
    // On the list it is said, and nothing is shown as if it matched.
    for (query, said) in
        [("state=Failed", "no such state"), ("type=WORD", "no such type"), ("source=bad", "no such source")]
    {
        let list = visits.get(&format!("/documents?{query}")).await;
        assert_eq!(list.status(), StatusCode::UNPROCESSABLE_ENTITY, "{query}");
        let list = text_of(list).await;
        assert!(list.contains(said) && !list.contains("data-bulk"), "{query}: {list}");
    }
    // States are understood as the API tells them, and spaces as they are typed.
    let ready = text_of(visits.get("/documents?state=SUCCEEDED&name=sheet").await).await;
    assert!(ready.contains("<span data-total>3 documents</span> with this filter"), "{ready}");
    assert!(ready.contains("<option value=\"done\" selected>"), "{ready}");
    let form = |filter| [("action", "delete"), ("all:boolean", "true"), ("filter", filter)];
    let none = visits.submit("/documents/bulk", &form("name=Fact sheet 00&state=FAILED")).await;
    assert!(location(&none).contains("said=unmatched"), "{}", location(&none));

    // Without scripts all that match, and what is selected, are counted in the question; and in what is said afterwards.
    let asked = visits.submit("/documents/bulk", &form("name=Fact sheet 00&state=SUCCEEDED")).await;
    let asked = question_of(asked, "one").await;
    assert!(asked.contains("Delete 1 document by this filter?"), "{asked}");
    let selected = [("action", "delete"), ("ids:list", all[1].as_str()), ("ids:list", all[2].as_str())];
    let selected = [&selected[..], &[("filter", "sort=name")]].concat();
    let asked = question_of(visits.submit("/documents/bulk", &selected).await, "selected").await;
    assert!(asked.contains("Delete 2 documents that you have selected?"), "{asked}");
    assert_eq!(count().await, Some(3));
    let done = confirm(&mut visits, &asked, &[]).await;
    assert_eq!(location(&done), "../documents?said=deleted&count=2&sort=name");
    assert_eq!(count().await, Some(1));
    let list = text_of(visits.get("/documents?said=deleted&count=2&sort=name").await).await;
    assert!(list.contains("Deleted 2 documents. Nothing finds them any more."), "{list}");
    let list = text_of(visits.get("/documents?said=deleted&count=<b>").await).await;
    assert!(list.contains("Deleted. Nothing finds it any more."), "{list}");
}

async fn all_that_one_asked_is_deleted_from_the_list_of_their_answers(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let llm = json!({"provider": "extractive", "model": "extractive"});
    let clerk = owner.create_agent(&json!({"name": "Clerk", "type": "CHATVENDOR", "llm": llm})).await;
    let (_, answer) = owner.predict(id(&clerk), "When does the gate open?").await;
    let (trace, ada) = (id(&answer["trace"]), id(owner.user()));
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let one = format!("traces?askedBy={ada}");
    let named = |root: &str| format!("asked by <a href=\"{root}{one}\"><bdi>ada@example.com</bdi></a>");
    let list = text_of(visits.get("/traces").await).await;
    assert!(list.contains(&named("")) && !list.contains("Delete all of theirs"), "{list}");
    let page = text_of(visits.get(&format!("/traces/{trace}")).await).await;
    assert!(page.contains(&named("../")), "{page}");
    let list = text_of(visits.get(&format!("/{one}")).await).await;
    assert!(list.contains("What <bdi>ada@example.com</bdi> asked.") && list.contains(trace), "{list}");
    let nobody = text_of(visits.get(&format!("/traces?askedBy={}", id(&clerk))).await).await;
    assert!(nobody.contains("No answer is kept that is like that.") && !nobody.contains(trace), "{nobody}");

    let question = button_of(&list, "all answers to ada@example.com");
    let form = [("confirm", question.as_str()), ("asker", ada)];
    let asked = question_of(visits.submit("/traces/delete", &form).await, "all of theirs").await;
    let count = async || owner.read("/traces").await.as_array().map(Vec::len);
    assert_eq!(count().await, Some(1), "nothing is done yet");
    let done = confirm(&mut visits, &asked, &[]).await;
    assert_eq!(location(&done), "../traces?said=answers-deleted");
    assert_eq!(count().await, Some(0));
    let list = text_of(visits.get("/traces?said=answers-deleted").await).await;
    assert!(list.contains("Nothing is kept of the answers any more"), "{list}");
}

async fn what_a_prompt_said_goes_from_earlier_versions_where_that_is_ticked(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    for is_ticked in [false, true] {
        let prompt = json!({"name": "Short", "template": "Ben is ill.", "input_variables": []});
        let prompt = owner.create("/prompts", &prompt).await;
        let agent = json!({"name": "Guide", "type": "CHATVENDOR", "promptId": id(&prompt)});
        let agent = owner.create_agent(&agent).await;
        let ticked = [("confirm", "Delete it?"), ("erase:boolean", "true")];
        let sent = if is_ticked { &ticked[..] } else { &ticked[..1] };
        let path = format!("/prompts/{}/delete", id(&prompt));
        let asked = question_of(visits.submit(&path, sent).await, &path).await;
        assert_eq!(confirm(&mut visits, &asked, &[]).await.status(), StatusCode::SEE_OTHER);
        let versions = text_of(visits.get(&format!("/agents/{}/versions", id(&agent))).await).await;
        let says = [
            versions.contains("Ben is ill."),
            versions.contains("versions/1/restore"),
            !versions.contains("Its prompt was erased"),
        ];
        assert_eq!(says, [!is_ticked; 3], "{versions}");
    }
}

async fn a_document_names_its_source_and_is_found_by_it(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let own = owner.create_document(&json!({"name": "Own", "type": "TXT", "content": "A note."})).await;
    let (source, _) = asked(&owner).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let list = text_of(visits.get(&format!("/documents?source={source}")).await).await;
    assert!(list.contains("<span data-total>1 document</span>"), "{list}");
    assert!(list.contains(&format!("<option value=\"{source}\" selected>Site</option>")), "{list}");
    assert!(!list.contains(id(&own)), "{list}");
    let found = list.split("id=\"document-").nth(1).and_then(|rest| rest.split('"').next()).expect("a row");
    let page = text_of(visits.get(&format!("/documents/{found}")).await).await;
    assert!(
        page.contains(&format!(
            "<dt>Comes from</dt><dd><a href=\"../sources/{source}\" dir=\"auto\">Site</a>"
        )),
        "{page}"
    );
    let page = text_of(visits.get(&format!("/documents/{}", id(&own))).await).await;
    assert!(!page.contains("Comes from"), "{page}");
    let page = text_of(visits.get(&format!("/sources/{source}")).await).await;
    assert!(page.contains(&format!("documents?source={source}\">1 document</a>")), "{page}");
    // The source of others finds nothing.
    let other = service.signed_up("ben@example.com").await;
    let theirs = owner.read("/documents").await;
    assert!(theirs.as_array().is_some_and(|all| all.len() == 2), "{theirs:#}");
    other.create_document(&json!({"name": "Else", "type": "TXT", "content": "A note."})).await;
    visits.sign_in("ben@example.com").await;
    let list = text_of(visits.get(&format!("/documents?source={source}")).await).await;
    assert!(list.contains("No document is like that.") && !list.contains("Site"), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_says_how_many_and_its_button_stays_in_reach() {
    let Some(browser) = Browser::start().await else { return };
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    for number in 0..30 {
        let document =
            json!({"name": format!("Note {number:02}"), "type": "TXT", "content": format!("{number}.")});
        owner.create_document(&document).await;
    }
    owner
        .create("/collections", &json!({"name": "What people who travel for us ask about most often"}))
        .await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.set_size(360, 740).await;
    browser.goto(&format!("{}/documents", service.base_url())).await;
    browser
        .script(
            "window.asked = []; window.confirm = (said) => { window.asked.push(said); return window.says; };",
            vec![],
        )
        .await;
    let select =
        "[...document.querySelectorAll('[name=\"ids:list\"]')].slice(-2).forEach((box) => box.click());";
    browser.script(&format!("{select} window.scrollTo(0, document.body.scrollHeight)"), vec![]).await;
    let in_reach = "(() => {
        const { top, bottom } = document.querySelector('[data-confirm-all]').getBoundingClientRect();
        return top >= 0 && bottom <= innerHeight;
    })()";
    browser.wait_until("the buttons, at the end of the list", in_reach).await;
    let leaves_room = "document.querySelector('.selection').offsetHeight < innerHeight * 0.4";
    browser.wait_until("room for the list below them", leaves_room).await;
    let delete = "document.querySelector('[data-confirm-all]').click(); return window.asked.at(-1)";
    let said = browser.script(delete, vec![]).await;
    assert_eq!(
        said,
        json!("Delete the 2 documents that you have selected? Nothing finds them from then on.")
    );
    let all = format!("document.querySelector('[name=\"all:boolean\"]').click(); {delete}");
    let said = browser.script(&all, vec![]).await;
    assert!(
        said.as_str().is_some_and(|said| said.starts_with("Delete 30 documents of this workspace")),
        "{said}"
    );
    assert_eq!(owner.read("/documents").await.as_array().map(Vec::len), Some(30), "it was answered by no");
    browser
        .script("document.querySelector('[name=\"all:boolean\"]').click(); window.says = true;", vec![])
        .await;
    browser.click("[data-confirm-all]").await;
    browser.wait_for(".notice").await;
    assert_eq!(browser.text(".notice").await, "Deleted 2 documents. Nothing finds them any more.");
    assert_eq!(owner.read("/documents").await.as_array().map(Vec::len), Some(28));
    assert_no_complaints(&browser).await;
    browser.close().await;
}
