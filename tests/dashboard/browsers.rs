//! The ways of people through the pages, in a real browser.

use serde_json::{Value, json};

use super::{PAGES, QUESTION, agent_with_report, assert_forms_name, assert_no_complaints, file, sign_in};
use crate::support::{
    browser::{Browser, Key},
    client::{PASSWORD, data, id},
    pdf::pdf_with_pages,
    service::{Mode, Service},
};

/// The narrowest and a usual width.
const WIDTHS: [u32; 2] = [320, 1_280];

/// Fails when a page is hard to use for somebody: in light and dark, narrow and wide.
pub(super) async fn assert_for_everybody(browser: &Browser, page: &str) {
    for width in WIDTHS {
        browser.set_size(width, 900).await;
        for dark in [false, true] {
            browser.prefers_dark(dark).await;
            let found = browser.axe().await;
            assert!(found.is_empty(), "{page}, {width} pixels wide, dark: {dark}: {found:#?}");
        }
        let width_needed = browser.script("return document.documentElement.scrollWidth", vec![]).await;
        assert!(width_needed.as_u64() <= Some(width.into()), "{page} needs {width_needed} pixels");
    }
    browser.prefers_dark(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_sign_up_over_a_document_and_an_agent_to_the_first_cited_answer() {
    let Some(browser) = Browser::start().await else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let report = file(folder.path(), "report.pdf", &pdf_with_pages(&PAGES));
    let service = Service::start().await;
    let base = service.base_url();

    browser.goto(&format!("{base}/sign-up?next=")).await;
    assert_for_everybody(&browser, "sign-up").await;
    browser.fill("#name", "Ada").await;
    browser.fill("#email", "ada@example.com").await;
    browser.fill("#password", PASSWORD).await;
    browser.click("button.main").await;
    browser.wait_for(".steps").await;
    assert_for_everybody(&browser, "the first page").await;

    browser.click(".steps a.main").await;
    browser.wait_for("[data-upload]").await;
    assert_for_everybody(&browser, "adding documents").await;
    browser.upload("#file", &report).await;
    browser.click("[data-upload] button.main").await;
    browser.wait_for("[data-uploads] td a").await;
    // Deleted and added again, it is another document.
    let first = browser.script("return document.querySelector('[data-uploads] td a').href", vec![]).await;
    let first = first.as_str().and_then(|link| link.rsplit('/').next()).expect("an id").to_owned();
    let owner = service.client().sign_in("ada@example.com", PASSWORD).await;
    data(owner.delete(&format!("/documents/{first}")).await);
    browser.upload("#file", &report).await;
    browser.click("[data-upload] button.main").await;
    browser.wait_until("both", "document.querySelectorAll('[data-uploads] td a').length === 2").await;
    let links =
        "new Set([...document.querySelectorAll('[data-uploads] td a')].map((link) => link.href)).size";
    assert_eq!(browser.script(&format!("return {links}"), vec![]).await, json!(2));
    browser.click("[data-uploads] tbody tr:last-child a").await;
    // It becomes ready while one looks at it.
    browser.wait_for("#progress .state.good").await;
    browser.wait_for("figure img").await;
    browser
        .wait_until("the picture of its page", "document.querySelector('figure img').naturalWidth > 500")
        .await;
    assert_for_everybody(&browser, "a document").await;

    browser.goto(&format!("{base}/agents/new")).await;
    browser.fill("#name", "Guide").await;
    browser.select("#provider", "extractive").await;
    browser.fill("#model", "extractive").await;
    assert_for_everybody(&browser, "making an agent").await;
    browser.click("form[data-form] > button.main").await;
    browser.wait_for("[data-ask]").await;
    browser.fill("#question", QUESTION).await;
    browser.press(&Key::Enter).await;
    browser.wait_for("[data-answer] .cite").await;
    assert!(browser.text(".answer").await.contains("Solveig Aas"));
    assert!(browser.text(".sources").await.contains("Verified"), "in words");
    assert_for_everybody(&browser, "an answer").await;

    // The source beside it, with the words marked in the text and on the page as it looks.
    browser.set_size(1_280, 900).await;
    browser.click(".cite").await;
    browser.wait_for(".source mark").await;
    assert!(browser.text(".source mark").await.contains("Solveig Aas"));
    browser.wait_until("its page", "document.querySelector('.source img')?.naturalWidth > 500").await;
    assert_for_everybody(&browser, "an answer with its source").await;
    browser.press(&Key::Escape).await;
    browser.wait_until("back at the mark", "document.activeElement.matches('.cite')").await;
    assert!(!browser.exists(".source").await);

    browser.click_text("button", "Yes").await;
    browser.wait_until("thanks", "document.activeElement.textContent.startsWith('Thank you')").await;
    browser.goto(&format!("{base}/traces?rating=1")).await;
    browser.click("tbody a").await;
    browser.wait_for("svg.chart").await;
    assert_for_everybody(&browser, "a trace").await;
    browser.click_text("button", "Replay it").await;
    browser.wait_for(".notice").await;
    assert!(browser.text(".notice").await.contains("the same answer"));
    // What the agent says now stands beside what it said then.
    browser.click_text("button", "Ask it again").await;
    browser.wait_until("both answers", "document.querySelectorAll('[data-answer]').length === 2").await;
    assert_for_everybody(&browser, "an answer then and now").await;
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_for_everybody_and_none_is_heavy() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let workspace = owner.create("/workspaces", &json!({"name": "Team"})).await;
    let team = owner.in_workspace(id(&workspace));
    let (agent, document) = agent_with_report(&team).await;
    let failed = json!({"name": "Gone", "type": "URL", "url": "http://127.0.0.1:9/gone"});
    team.create_document(&failed).await;
    let collection =
        team.create("/collections", &json!({"name": "Shelf", "description": "What we keep"})).await;
    team.create("/prompts", &json!({"name": "Short", "template": "Be short.", "input_variables": []})).await;
    let tool = json!({"name": "Helper", "type": "AGENT", "metadata": {"agentId": agent}});
    team.create("/tools", &tool).await;
    let webhook = json!({"url": "http://127.0.0.1:9/told", "events": ["document.failed"]});
    let webhook = id(&team.create("/webhooks", &webhook).await).to_owned();
    let (source, run) = crate::matrix::things::asked(&team).await;
    let (evaluation, _, evaluated) = crate::matrix::things::evaluated(&team, &document).await;
    let again = team.create(&format!("/evaluations/{evaluation}/runs"), &json!({})).await;
    let beside = format!("evaluations/{evaluation}/runs/{}/compare?with={evaluated}", id(&again));
    let origins = ["https://www.example.com"];
    let token =
        json!({"description": "for the site", "agentId": agent, "origins": origins, "ratePerMinute": 5});
    team.create("/api-tokens", &token).await;
    team.create(&format!("/workspaces/{}/invitations", id(&workspace)), &json!({"role": "asker"})).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.select("#workspace", id(&workspace)).await;
    browser.click_text("button", "Change").await;
    browser
        .wait_until("the workspace", "document.querySelector('#workspace option[selected]').text === 'Team'")
        .await;
    for path in [
        String::new(),
        "agents".to_owned(),
        format!("agents/{agent}"),
        format!("agents/{agent}/publish"),
        format!("agents/{agent}/ask"),
        "documents".to_owned(),
        format!("documents/{document}?page=2"),
        "documents?name=nothing+is+called+so".to_owned(),
        "collections".to_owned(),
        format!("collections/{}", id(&collection)),
        "search?query=captain".to_owned(),
        "traces".to_owned(),
        "prompts".to_owned(),
        "tools".to_owned(),
        "tokens".to_owned(),
        "webhooks".to_owned(),
        format!("webhooks/{webhook}"),
        "evaluations".to_owned(),
        format!("evaluations/{evaluation}"),
        format!("evaluations/{evaluation}/runs/{evaluated}"),
        beside,
        format!("agents/{agent}/versions"),
        "sources".to_owned(),
        "sources/new?type=site".to_owned(),
        "sources/new?type=feed".to_owned(),
        "sources/new?type=s3".to_owned(),
        format!("sources/{source}"),
        format!("sources/{source}/runs/{run}"),
        "documents/duplicates".to_owned(),
        "members".to_owned(),
        "usage".to_owned(),
        "audit".to_owned(),
        "account".to_owned(),
        "invitations".to_owned(),
        "jobs".to_owned(),
        // What is not here may be in another workspace.
        "documents/01976f0e-0000-7000-8000-000000000000".to_owned(),
    ] {
        browser.goto(&format!("{}/{path}", service.base_url())).await;
        assert_for_everybody(&browser, &path).await;
        assert_forms_name(id(&workspace), &path, &browser.html().await);
        // The pictures of a document's pages are its own, however large it is. What changes by itself is fetched again and
        // again, as long as the page is open.
        let weighed = browser
            .script(
                "const loaded = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
                     .filter((entry) => !/\\/pages\\/\\d/.test(entry.name) && entry.initiatorType !== 'fetch');
                 return [loaded.reduce((sum, entry) => sum + entry.decodedBodySize, 0), loaded.length];",
                vec![],
            )
            .await;
        // As it is; what a proxy in front compresses is a third of it.
        assert!(weighed[0].as_u64() < Some(60_000), "{path}: {weighed}");
        assert!(weighed[1].as_u64() <= Some(6), "{path}: {weighed}");
    }
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_refused_says_so_in_its_place_and_keeps_what_was_written() {
    let Some(browser) = Browser::start().await else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let note = file(folder.path(), "note.txt", b"The roof is closed in winter.");
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let workspace = owner.create("/workspaces", &json!({"name": "Team"})).await;
    let team = owner.in_workspace(id(&workspace));
    let base = service.base_url();
    sign_in(&browser, &service, "ada@example.com").await;

    // Another workspace is chosen in another tab while something is written here.
    browser.goto(&format!("{base}/documents/new")).await;
    browser.fill("#text-name", "Note").await;
    browser.fill("#content", "Half a sentence").await;
    let choose = "return fetch('../workspace', { method: 'POST', body: new URLSearchParams({ workspace: arguments[0] }) })
        .then((response) => response.ok)";
    assert_eq!(browser.script(choose, vec![json!(id(&workspace))]).await, json!(true));
    browser.click("form[action*='new/text'] button.main").await;
    browser.wait_for("form[action*='new/text'] .problem").await;
    let said = browser.text("form[action*='new/text'] .problem").await;
    assert!(said.contains("opened in another workspace"), "{said}");
    assert_eq!(browser.value("#content").await, "Half a sentence");
    browser.upload("#file", &note).await;
    browser.click("[data-upload] button.main").await;
    browser.wait_for("[data-uploads] td button").await;
    assert!(browser.text("[data-uploads] tbody").await.contains("opened in another workspace"));
    for client in [&owner, &team] {
        assert_eq!(client.read("/documents").await, json!([]), "it is added nowhere");
    }

    // A token is not made as it was asked for, and then it is, and is shown.
    browser.goto(&format!("{base}/tokens")).await;
    browser.fill("#description", "for the build").await;
    browser.fill("#rate", "0").await;
    browser.fill("#origins", "https://www.example.com\nexample.com").await;
    browser.click("form[action*='tokens?'] button.main").await;
    browser.wait_for("#rate-wrong").await;
    assert!(browser.text("#origins-wrong").await.starts_with("“example.com” must be an origin"));
    assert_eq!(browser.value("#description").await, "for the build");
    browser.fill("#origins", "https://www.example.com").await;
    browser.fill("#rate", "5").await;
    browser.click("form[action*='tokens?'] button.main").await;
    browser.wait_for(".notice .copied").await;
    let tokens = team.read("/api-tokens").await;
    let rates: Vec<_> =
        tokens.as_array().expect("a list").iter().map(|token| &token["ratePerMinute"]).collect();
    assert_eq!(rates, [&json!(5)], "it is made once");

    // Somebody has to be the owner.
    browser.goto(&format!("{base}/members")).await;
    browser.script("window.confirm = () => true;", vec![]).await;
    browser.click("form[action*='/remove?'] button").await;
    browser.wait_for("form[action*='/remove?'] .problem").await;
    browser.fill("#email", "ben@example.com").await;
    browser.click("form[action*='members?'] button.main").await;
    browser.wait_for(".notice .copied").await;
    let invitations = team.read(&format!("/workspaces/{}/invitations", id(&workspace))).await;
    assert_eq!(invitations.as_array().map(Vec::len), Some(1), "it is made once");
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_used_by_keyboard_alone() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    // To the next thing that can be used, until it is the one.
    let reach = async |what: &str, css: &str| {
        for _ in 0..80 {
            let is_there = format!("return document.activeElement.matches({})", json!(css));
            if browser.script(&is_there, vec![]).await == json!(true) {
                return;
            }
            browser.press(&Key::Tab).await;
        }
        panic!("{what} cannot be reached by keyboard");
    };
    browser.goto(&format!("{}/sign-in?next=agents", service.base_url())).await;
    reach("the e-mail", "#email").await;
    browser.press("ada@example.com").await;
    browser.press(&Key::Tab).await;
    browser.press(PASSWORD).await;
    browser.press(&Key::Enter).await;
    browser.wait_for("nav").await;
    // Past the navigation at once.
    browser.press(&Key::Tab).await;
    browser.press(&Key::Enter).await;
    reach("the agent", &format!("main a[href$='{agent}/ask']")).await;
    browser.press(&Key::Enter).await;
    browser.wait_for("[data-ask]").await;
    reach("the question", "#question").await;
    browser.press(QUESTION).await;
    browser.press(&Key::Enter).await;
    browser.wait_for("[data-answer] .cite").await;
    browser.script("document.querySelector('[data-log]').tabIndex = -1; document.querySelector('[data-log]').focus()", vec![]).await;
    reach("the source", ".cite").await;
    browser.press(&Key::Enter).await;
    browser.wait_for(".source mark").await;
    browser.wait_until("its button", "document.activeElement.textContent === 'Close'").await;
    browser.press(&Key::Enter).await;
    browser.wait_until("back at the mark", "document.activeElement.matches('.cite')").await;
    reach("feedback", "[data-feedback] button[value='-1']").await;
    browser.press(&Key::Enter).await;
    browser.wait_until("thanks", "document.activeElement.textContent.startsWith('Thank you')").await;
    // Who has said no can still say why, which goes with it.
    reach("what was wrong", "[data-feedback] textarea").await;
    browser.press("It was the mate.").await;
    reach("its button", "[data-feedback] details button").await;
    browser.press(&Key::Enter).await;
    browser.wait_until("all of it is told", "!document.querySelector('[data-feedback]')").await;
    let told = owner.read("/traces").await[0]["feedback"].clone();
    assert_eq!((&told["rating"], &told["text"]), (&json!(-1), &json!("It was the mate.")));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_a_link_or_a_form_works_without_scripts() {
    let Some(browser) = Browser::start().await else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let report = file(folder.path(), "report.pdf", &pdf_with_pages(&PAGES));
    let service = Service::start().await;
    let base = service.base_url();
    browser.scripts_off().await;
    browser.goto(&format!("{base}/sign-up")).await;
    browser.fill("#email", "ada@example.com").await;
    browser.fill("#password", PASSWORD).await;
    browser.click("button.main").await;
    browser.wait_for(".steps").await;
    browser.goto(&format!("{base}/documents/new")).await;
    browser.upload("#file", &report).await;
    browser.click("form[enctype] button.main").await;
    browser.wait_for("#progress").await;
    let owner = service.client().sign_in("ada@example.com", PASSWORD).await;
    let documents = owner.read("/documents").await;
    owner.wait_until_ingested(id(&documents[0])).await;
    browser.goto(&format!("{base}/agents/new")).await;
    browser.fill("#name", "Guide").await;
    browser.select("#provider", "extractive").await;
    browser.fill("#model", "extractive").await;
    browser.click("form[data-form] > button.main").await;
    browser.wait_for("#question").await;
    browser.fill("#question", QUESTION).await;
    browser.click(".ask-box .main").await;
    browser.wait_for("[data-answer] .cite").await;
    assert!(browser.text(".answer").await.contains("Solveig Aas"));
    browser.click_text("button", "No").await;
    browser.wait_for(".notice").await;
    assert!(browser.text(".answer").await.contains("Solveig Aas"), "it is still there");
    let traces = owner.read("/traces?rating=-1").await;
    assert_eq!(traces.as_array().map(Vec::len), Some(1));
    // A form that is wrong says so, and leaves what was written where it was.
    browser.goto(&format!("{base}/documents/new")).await;
    browser.fill("#url", "https://user:secret@a.example/").await;
    browser.fill("#url-name", "Kept").await;
    browser.click("form[data-form] button.main").await;
    browser.wait_for("main ul strong").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_see_what_the_other_does_and_what_needs_a_hand() {
    let (Some(one), Some(other)) = (Browser::start().await, Browser::start().await) else { return };
    // With the usual attempts, the failure is known after half a minute.
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_JOB_MAX_ATTEMPTS", "1").start().await;
    let owner = service.signed_up("ada@example.com").await;
    for browser in [&one, &other] {
        sign_in(browser, &service, "ada@example.com").await;
        browser.goto(&format!("{}/documents", service.base_url())).await;
    }
    let document = owner.ingest(&json!({"name": "First", "type": "TXT", "content": "The first note."})).await;
    for browser in [&one, &other] {
        browser.goto(&format!("{}/documents", service.base_url())).await;
        browser.wait_for("#rows").await;
    }
    // What is selected and in focus stays so while rows come and change.
    one.click(&format!("input[value='{}']", id(&document))).await;
    let failed =
        json!({"name": "<img src=x onerror=alert(1)>", "type": "URL", "url": "http://127.0.0.1:9/gone"});
    let gone = owner.create_document(&failed).await;
    for browser in [&one, &other] {
        browser.wait_until("both rows", "document.querySelectorAll('tbody tr').length === 2").await;
        browser.wait_until("that it failed", "document.querySelector('tbody .state.bad')").await;
    }
    let checked =
        format!("document.activeElement.value === '{0}' && document.activeElement.checked", id(&document));
    assert_eq!(
        one.script(&format!("return {checked}"), vec![]).await,
        json!(true),
        "focus and selection stay"
    );
    assert!(other.text("tbody").await.contains("<img src=x onerror=alert(1)>"), "a name is text");

    // The reason, what to do, and the button that does it.
    other.goto(&format!("{}/documents/{}", service.base_url(), id(&gone))).await;
    assert!(other.text(".problem").await.contains("upload the file instead"));
    other.click("#again").await;
    other.wait_for(".notice").await;
    // One deletes it, and the other's page says that it is gone.
    data(owner.delete(&format!("/documents/{}", id(&gone))).await);
    one.wait_until("one row", "document.querySelectorAll('tbody tr').length === 1").await;
    other.wait_until("its receipt", "document.querySelector('h1').textContent.endsWith('was deleted')").await;
    assert_no_complaints(&one).await;
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_is_invited_asks_and_reaches_nothing_else() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("owner@example.com").await;
    let workspace = owner.create("/workspaces", &json!({"name": "Team"})).await;
    let team = owner.in_workspace(id(&workspace));
    agent_with_report(&team).await;
    let path = format!("/workspaces/{}/invitations", id(&workspace));
    let invitation = team.create(&path, &json!({"role": "asker"})).await;
    service.signed_up("ben@example.com").await;
    let link = invitation["url"].as_str().expect("a link").to_owned();
    let link = format!(
        "{}/{}",
        service.base_url(),
        link.split_once("/#").map(|(_, hash)| format!("#{hash}")).expect("a hash")
    );

    browser.goto(&link).await;
    browser.wait_for("#email").await;
    browser.fill("#email", "ben@example.com").await;
    browser.fill("#password", PASSWORD).await;
    browser.click("button.main").await;
    // The code is filled in from the link.
    browser.wait_until("the code", "document.querySelector('[data-invitation]')?.value").await;
    browser.click("main button.main").await;
    // What the invitation is to stood in a notice before.
    browser.wait_for(".notice[role=status]").await;
    assert!(browser.text(".notice[role=status]").await.contains("member of this workspace"));
    let navigation = browser.text("nav").await;
    assert!(navigation.contains("Agents") && !navigation.contains("Documents"), "{navigation}");
    browser.click("main a.main").await;
    browser.wait_for("#question").await;
    browser.fill("#question", QUESTION).await;
    browser.click(".ask-box .main").await;
    browser.wait_for("[data-answer] .cite").await;
    assert!(!browser.text("[data-answer]").await.contains("How it came about"));
    browser.click(".cite").await;
    browser.wait_for(".source mark").await;
    browser.wait_until("its page", "document.querySelector('.source img')?.naturalWidth > 500").await;

    // Removed, the next thing that is asked is refused with words, and the page leads home.
    let members = team.read(&format!("/workspaces/{}/members", id(&workspace))).await;
    let member =
        members.as_array().expect("a list").iter().find(|member| member["email"] == "ben@example.com");
    let member = member.expect("Ben")["userId"].as_str().expect("an id").to_owned();
    data(team.delete(&format!("/workspaces/{}/members/{member}", id(&workspace))).await);
    browser.fill("#question", QUESTION).await;
    browser.click(".ask-box .main").await;
    browser.wait_for(".turn .problem").await;
    browser.goto(&service.base_url()).await;
    browser.wait_for("nav").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_says_so_and_the_question_is_kept() {
    let Some(browser) = Browser::start().await else { return };
    let mut service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/agents/{agent}/ask", service.base_url())).await;
    service.kill();
    browser.fill("#question", QUESTION).await;
    browser.click(".ask-box .main").await;
    browser.wait_for(".turn .problem").await;
    let said = browser.text(".turn .problem").await;
    assert!(said.contains("The service cannot be reached"), "{said}");
    assert_eq!(browser.value("#question").await, QUESTION);
    let text: Value =
        browser.script("return document.querySelector('[data-status]').textContent", vec![]).await;
    assert!(!text.as_str().expect("a text").is_empty(), "it is said aloud, too");
    browser.close().await;
}
