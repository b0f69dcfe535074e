//! What forms promise: each changes the workspace of its page or nothing, makes one thing however often it is sent, and says what
//! to change.

use reqwest::{
    Method, StatusCode,
    header::{COOKIE, ORIGIN},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    QUESTION, Visits, agent_with_report, assert_no_complaints, file, form_addresses, location,
    people::{Team, read},
    service, sign_in,
};
use crate::support::{
    browser::Browser,
    client::{Client, PASSWORD, id, send},
    in_both_modes,
    process::POLL,
    service::{Mode, Service},
    web::Web,
    within_deadline,
};

in_both_modes!(
    what_a_page_sends_changes_its_own_workspace_or_nothing,
    what_is_shown_once_is_made_once_although_its_form_is_sent_again,
    a_button_that_has_a_source_run_is_pressed_twice_for_one_run,
    a_file_that_is_sent_again_is_taken_once
);

async fn what_a_page_sends_changes_its_own_workspace_or_nothing(mode: Mode) {
    const OTHER: &str = "opened in another workspace";
    const FORM: &str = "application/x-www-form-urlencoded";
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let workspace = owner.create("/workspaces", &json!({"name": "Team"})).await;
    let team = owner.in_workspace(id(&workspace));
    let kept = owner.create_document(&json!({"name": "Kept", "type": "TXT", "content": "A note."})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let address = async |visits: &Visits<'_>, page: &str, form: &str| {
        let html = visits.get(page).await.text().await.expect("a text");
        let found = form_addresses(&html).into_iter().find(|address| address.starts_with(form));
        format!("/{}", found.expect("a form"))
    };
    let new = address(&visits, "/documents/new", "documents/new/text?").await;
    let upload = new.replace("/documents/new/text", "/documents/upload");
    let delete =
        address(&visits, &format!("/documents/{}", id(&kept)), &format!("{}/delete?", id(&kept))).await;
    let delete = format!("/documents{delete}");
    let note = [("name", "Note"), ("content", "A note.")];

    // In another tab, somebody goes on in another workspace.
    let chosen = visits.submit("/workspace", &[("workspace", id(&workspace))]).await;
    assert_eq!(chosen.status(), StatusCode::SEE_OTHER);
    for (path, form) in [(&new, &note[..]), (&delete, &[])] {
        let refused = visits.submit(path, form).await;
        assert_eq!(refused.status(), StatusCode::CONFLICT, "{path}");
        let text = refused.text().await.expect("a text");
        assert!(text.contains(OTHER) && text.contains("<!doctype html>"), "{path}: {text}");
        assert!(text.contains("what you wrote is still there"), "{path}: {text}");
    }
    // As scripts send it; a file as well, be it to a page or to the interface for programs.
    let file = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nA note.\r\n--x--\r\n";
    for (path, content_type, body) in [
        (new.clone(), FORM, "name=Note&content=A+note."),
        (upload.clone(), "multipart/form-data; boundary=x", file),
        (format!("/api/v1{upload}"), "multipart/form-data; boundary=x", file),
    ] {
        let request = client.request_outside(Method::POST, &path).header(COOKIE, &visits.cookies);
        let request = request.header(ORIGIN, &visits.origin).header("accept", "application/json");
        let answer = send(request.header("content-type", content_type).body(body)).await;
        assert_eq!(answer.status(), StatusCode::CONFLICT, "{path}");
        let told: Value = answer.json().await.expect("JSON");
        assert_eq!(told["error"]["code"], "other_workspace", "{path}: {told:#}");
        assert!(told["error"]["message"].as_str().is_some_and(|words| words.contains(OTHER)), "{told:#}");
    }
    let count = async |client: &Client| client.read("/documents").await.as_array().map(Vec::len);
    assert_eq!((count(&owner).await, count(&team).await), (Some(1), Some(0)), "nothing was done");

    // Back in its workspace, the same form is taken; and so is one of a page from before the upgrade, where somebody is.
    let before = visits.submit("/documents/new/text", &note).await;
    assert_eq!(before.status(), StatusCode::SEE_OTHER);
    assert_eq!((count(&owner).await, count(&team).await), (Some(1), Some(1)));
    let own = address(&visits, "/documents/new", "documents/new/text?").await;
    assert_eq!(own, format!("/documents/new/text?page-workspace={}", id(&workspace)));
    let (_, own) = new.split_once('=').expect("a workspace");
    visits.submit("/workspace", &[("workspace", own)]).await;
    assert_eq!(visits.submit(&new, &note).await.status(), StatusCode::SEE_OTHER);
    assert_eq!((count(&owner).await, count(&team).await), (Some(2), Some(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_signs_in_again_goes_on_in_the_workspace_that_they_were_in_and_nobody_else_does() {
    let team = Team::with("editor").await;
    team.service.signed_up("cleo@example.com").await;
    let mut visits = team.visits("ben@example.com").await;
    let forms = form_addresses(&read(&visits, "/documents/new").await);
    let form = forms.iter().find(|address| address.starts_with("documents/new/text?")).expect("a form");

    // As it is done in another tab, while the form is open in this one.
    visits.submit("/sign-out", &[]).await;
    assert_eq!(visits.get("/documents").await.status(), StatusCode::SEE_OTHER);
    visits.sign_in("ben@example.com").await;
    let sent = visits.submit(&format!("/{form}"), &[("name", "Note"), ("content", "A note.")]).await;
    assert_eq!(sent.status(), StatusCode::SEE_OTHER);
    assert_eq!(team.inside.read("/documents").await[0]["name"], "Note");

    // Somebody else at this browser begins in their own, and is told of no other.
    visits.submit("/sign-out", &[]).await;
    visits.sign_in("cleo@example.com").await;
    assert!(read(&visits, "/documents").await.contains("There are no documents yet"));
}

async fn what_is_shown_once_is_made_once_although_its_form_is_sent_again(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let workspace = owner.create("/workspaces", &json!({"name": "Team"})).await;
    let team = owner.in_workspace(id(&workspace));
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    visits.submit("/workspace", &[("workspace", id(&workspace))]).await;
    let between = |text: &str, start: &str| {
        text.split(start).nth(1).and_then(|rest| rest.split('"').next()).expect(start).to_owned()
    };
    let invitations = format!("/workspaces/{}/invitations", id(&workspace));
    for (page, list, fields) in [
        ("/tokens", "/api-tokens", vec![("description", "for the build"), ("role", "asker")]),
        ("/members", invitations.as_str(), vec![("role", "asker")]),
        (
            "/webhooks",
            "/webhooks",
            vec![("url", "http://127.0.0.1:9/told"), ("events:list", "document.failed")],
        ),
    ] {
        let html = visits.get(page).await.text().await.expect("a text");
        let nonce = between(&html, "name=\"nonce\" value=\"");
        let form = [&fields[..], &[("nonce", nonce.as_str())]].concat();
        let mut shown = Vec::new();
        // Loaded again, a page that shows what was made sends its form again.
        for _ in 0..2 {
            let answer = visits.submit(page, &form).await;
            assert_eq!(answer.status(), StatusCode::OK, "{page}");
            shown.push(between(&answer.text().await.expect("a text"), "readonly value=\""));
        }
        assert_eq!(shown[0], shown[1], "{page}");
        assert_eq!(team.read(list).await.as_array().map(Vec::len), Some(1), "{page}");
    }

    // A webhook's new secret is another one by another form alone.
    let page = format!("/webhooks/{}", id(&team.read("/webhooks").await[0]));
    let rotate = format!("{page}/rotate");
    let mut secrets = Vec::new();
    for _ in 0..2 {
        let html = visits.get(&page).await.text().await.expect("a text");
        let nonce = between(&html, "name=\"nonce\" value=\"");
        for _ in 0..2 {
            let answer = visits.submit(&rotate, &[("nonce", nonce.as_str())]).await;
            assert_eq!(answer.status(), StatusCode::OK);
            secrets.push(between(&answer.text().await.expect("a text"), "readonly value=\""));
        }
    }
    assert_eq!((&secrets[0], &secrets[2]), (&secrets[1], &secrets[3]));
    assert_ne!(secrets[1], secrets[2]);
    // The page follows what changes at the address that it stays at, and shows no secret there.
    let followed = visits.get(&rotate).await;
    assert_eq!(followed.status(), StatusCode::OK);
    let html = followed.text().await.expect("a text");
    assert!(html.contains("id=\"deliveries\" data-live=") && !html.contains(&secrets[3]), "{html}");
}

async fn a_button_that_has_a_source_run_is_pressed_twice_for_one_run(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    web.serve("/a", "text/html", "<title>a</title><p>Page a.</p>");
    web.serve("/sitemap.xml", "text/plain", web.url("/a"));
    let site = json!({"name": "Site", "type": "site", "config": {"url": web.url("/")}});
    let source = owner.create("/sources", &site).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let (page, api) = (format!("/sources/{}", id(&source)), format!("/sources/{}/runs", id(&source)));
    for (button, runs) in [("Run now", 1), ("Try it", 2), ("Read everything anew", 3)] {
        let html = visits.get(&page).await.text().await.expect("a text");
        let mut forms = html.split("<form ").filter_map(|rest| rest.split("</form>").next());
        let form = forms.find(|form| form.contains(&format!(">{button}</button>"))).expect(button);
        let inputs = form.split("<input type=\"hidden\" name=\"").skip(1);
        let fields: Vec<(&str, &str)> = inputs
            .filter_map(|input| input.split_once("\" value=\""))
            .filter_map(|(name, rest)| Some((name, rest.split('"').next()?)))
            .collect();
        assert!(fields.iter().any(|(name, _)| *name == "nonce"), "{button}: {form}");
        let path = format!("{page}/run");
        let first = visits.submit(&path, &fields).await;
        let again = visits.submit(&path, &fields).await;
        assert_eq!(
            (first.status(), again.status()),
            (StatusCode::SEE_OTHER, StatusCode::SEE_OTHER),
            "{button}"
        );
        assert_eq!(location(&first), location(&again), "{button}");
        let ended = async {
            while matches!(owner.read(&api).await[0]["state"].as_str(), Some("queued" | "running")) {
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline("the end of the run", ended).await;
        assert_eq!(owner.read(&api).await.as_array().map(Vec::len), Some(runs), "{button}");
    }
}

async fn a_file_that_is_sent_again_is_taken_once(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let evaluation = owner.create("/evaluations", &json!({"name": "Questions"})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let set = format!("/evaluations/{}", id(&evaluation));
    let (import, cases) = (format!("{set}/import"), format!("{set}/cases"));
    let table = ["question,expect\nWho founded it?,decline", "question,expect\nWho sold it?,decline"];
    for (page, path, list, files) in [
        (set.as_str(), import.as_str(), cases.as_str(), table),
        ("/documents/new", "/documents/upload", "/documents", ["a,b\n1,2", "a,b\n3,4"]),
    ] {
        let html = visits.get(page).await.text().await.expect("a text");
        let form = html.split("<form ").find(|form| form.contains("multipart/form-data")).expect("a form");
        let nonce = form.split("name=\"nonce\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        let nonce = nonce.expect("what tells it from others");
        let submit = async |file: &str| {
            let body = format!(
                "--x\r\nContent-Disposition: form-data; name=\"nonce\"\r\n\r\n{nonce}\r\n\
                 --x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\n\r\n{file}\r\n--x--\r\n"
            );
            let request = client.request_outside(Method::POST, path).header(COOKIE, &visits.cookies);
            let request = request.header(ORIGIN, &visits.origin);
            let request = request.header("content-type", "multipart/form-data; boundary=x");
            let answer = send(request.body(body)).await;
            assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{page}");
            location(&answer).to_owned()
        };
        let count = async || owner.read(list).await.as_array().map(Vec::len);
        let first = submit(files[0]).await;
        assert_eq!(submit(files[0]).await, first, "{page}");
        assert_eq!(count().await, Some(1), "{page}");
        // With another file it is another form.
        submit(files[1]).await;
        assert_eq!(count().await, Some(2), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_with_an_answer_leaves_a_page_that_opens_again() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    let (status, answer) = owner.predict(&agent, QUESTION).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let path = format!("/traces/{}/replay", id(&answer["trace"]));
    assert_eq!(visits.submit(&path, &[]).await.status(), StatusCode::OK);
    let opened = visits.get(&path).await;
    assert_eq!(opened.status(), StatusCode::OK);
    let html = opened.text().await.expect("a text");
    assert!(html.contains(QUESTION) && !html.contains("Replayed from its record"), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_asked_for_again_stays_beside_the_one_before_whatever_is_said_of_either() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    let (status, answer) = owner.predict(&agent, QUESTION).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    let then = id(&answer["trace"]).to_owned();
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let asked = visits.submit(&format!("/traces/{then}/again"), &[]).await;
    assert_eq!(asked.status(), StatusCode::SEE_OTHER);
    let both = location(&asked).trim_start_matches("../").to_owned();
    let now = both.strip_prefix(&format!("traces/{then}?now=")).expect("the other answer").to_owned();
    // Loaded as often as one likes, the page asks nothing again.
    for _ in 0..2 {
        let html = visits.get(&format!("/{both}")).await.text().await.expect("a text");
        assert_eq!(html.matches("data-answer").count(), 2, "{html}");
        assert!(
            html.contains("<h2>Then</h2>") && html.contains("<h2>Now, by the agent as it is</h2>"),
            "{html}"
        );
    }
    assert_eq!(owner.read("/traces").await.as_array().map(Vec::len), Some(2));
    for (rated, words) in [(&then, "Right"), (&now, "Too short")] {
        let html = visits.get(&format!("/{both}")).await.text().await.expect("a text");
        let of_answer = |address: &&String| address.contains(&format!("/{rated}?"));
        let addresses = form_addresses(&html);
        let mut addresses = addresses.iter().filter(|address| address.starts_with("feedback/"));
        let address = addresses.find(of_answer).expect("a form").clone();
        let said = [("rating:number", "1"), ("text", words)];
        let told = visits.submit(&format!("/{address}"), &said).await;
        let back = location(&told).trim_start_matches("../").to_owned();
        assert_eq!(back, format!("{both}&said=thanks"));
        let html = visits.get(&format!("/{back}")).await.text().await.expect("a text");
        assert_eq!(html.matches("data-answer").count(), 2, "{html}");
        assert!(html.contains("Thank you.") && html.contains(words), "{html}");
        let kept = owner.read(&format!("/traces/{rated}")).await;
        assert_eq!(kept["feedback"]["text"], words, "{kept:#}");
    }
    // What is not there to compare with, or is another agent's answer, is said to be gone.
    let (other, _) = agent_with_report(&owner).await;
    let (_, other) = owner.predict(&other, QUESTION).await;
    for gone in [id(&other["trace"]).to_owned(), Uuid::now_v7().to_string()] {
        let opened = visits.get(&format!("/traces/{then}?now={gone}")).await;
        assert_eq!(opened.status(), StatusCode::OK);
        let html = opened.text().await.expect("a text");
        assert_eq!(html.matches("data-answer").count(), 1, "{html}");
        assert!(html.contains("is not kept any more"), "{html}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_says_whether_an_answer_helped_comes_back_to_it() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    let other = owner.create_agent(&json!({"name": "Other", "type": "CHATVENDOR"})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let asked = visits.submit(&format!("/agents/{agent}/ask"), &[("question", QUESTION)]).await;
    let page = asked.text().await.expect("a text");
    let forms = form_addresses(&page);
    let form = forms.iter().find(|address| address.starts_with("feedback/")).expect("a form").clone();
    let trace = form.split(['/', '?']).nth(1).expect("an id").to_owned();
    let said = [("rating:number", "-1"), ("text", "Too short")];
    let told = visits.submit(&format!("/{form}"), &said).await;
    assert_eq!(location(&told), format!("../agents/{agent}/ask?answer={trace}&said=thanks"));
    let back = visits.get(&format!("/agents/{agent}/ask?answer={trace}&said=thanks")).await;
    let back = back.text().await.expect("a text");
    for shown in [QUESTION, "Solveig Aas", "data-cite", "Thank you.", ">Too short</textarea>"] {
        assert!(back.contains(shown), "{shown}: {back}");
    }
    // It is the answer of that agent, and what names none shows the page as it is before anything is asked.
    let elsewhere = format!("/agents/{}/ask?answer={trace}", id(&other));
    for path in [elsewhere, format!("/agents/{agent}/ask?answer=none")] {
        let opened = visits.get(&path).await;
        assert_eq!(opened.status(), StatusCode::OK, "{path}");
        let opened = opened.text().await.expect("a text");
        assert!(opened.contains("name=\"question\"") && !opened.contains("Solveig Aas"), "{path}: {opened}");
    }
    // On the page of its trace it is that page.
    let page = visits.get(&format!("/traces/{trace}")).await.text().await.expect("a text");
    let forms = form_addresses(&page);
    let form = forms.iter().find(|address| address.starts_with("feedback/trace/")).expect("a form").clone();
    let told = visits.submit(&format!("/{form}"), &[("rating:number", "1")]).await;
    assert_eq!(location(&told), format!("../../traces/{trace}?said=thanks"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_form_says_what_to_change_and_a_repeated_one_makes_one_thing() {
    let service = service().await;
    service.signed_up("ada@example.com").await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let wrong = visits.submit("/documents/new", &[("name", ""), ("type", "TXT"), ("content", "")]).await;
    assert_eq!(wrong.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let text = wrong.text().await.expect("a text");
    assert!(
        text.contains("<strong>Name</strong> is required") && text.contains("<strong>Address</strong>"),
        "{text}"
    );
    let form = [("nonce", "one"), ("name", "Note"), ("type", "TXT"), ("content", "A note.")];
    let first = visits.submit("/documents/new", &form).await;
    let again = visits.submit("/documents/new", &form).await;
    assert_eq!(location(&first), location(&again));
    let other = [("nonce", "one"), ("name", "Other"), ("type", "TXT"), ("content", "A note.")];
    assert_ne!(location(&visits.submit("/documents/new", &other).await), location(&first));
    for garbage in ["%", "a=%FF&b", "=&=&=", "&&&", "ids:list=x&all:boolean=true&action=eat"] {
        let request = client.request_outside(Method::POST, "/documents/bulk").header(COOKIE, &visits.cookies);
        let request = request.header(ORIGIN, &visits.origin).body(garbage);
        let answer = send(request.header("content-type", "application/x-www-form-urlencoded")).await;
        assert!(answer.status().is_client_error(), "{garbage}: {}", answer.status());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_sent_when_the_sign_in_has_ended_is_sent_again_by_its_button() {
    let Some(browser) = Browser::start().await else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let note = file(folder.path(), "note.txt", b"The roof is closed in winter.");
    let service = service().await;
    service.signed_up("ada@example.com").await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/documents/new", service.base_url())).await;
    let post = |path: &str, fields: &Value| {
        format!(
            "return fetch('../{path}', {{ method: 'POST', body: new URLSearchParams({fields}) }}).then(() => 1)"
        )
    };
    // As it is done in another tab.
    browser.script(&post("sign-out", &json!({})), vec![]).await;
    browser.upload("#file", &note).await;
    browser.click("[data-upload] button.main").await;
    browser.wait_for("[data-uploads] td button").await;
    let told = browser.text("[data-uploads] td[data-label=State]").await;
    assert!(told.contains("Your sign-in has ended.") && !told.contains("Authorization"), "{told}");
    let known = json!({"email": "ada@example.com", "password": PASSWORD});
    browser.script(&post("sign-in", &known), vec![]).await;
    browser.click("[data-uploads] td button").await;
    browser.wait_for("[data-uploads] td a").await;
    assert!(
        browser.exists("[data-uploads] td:focus").await,
        "nobody who uses keys is sent to the top of the page"
    );
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_once_is_copied_by_a_button_that_says_so() {
    let Some(browser) = Browser::start().await else { return };
    let service = service().await;
    service.signed_up("ada@example.com").await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/members", service.base_url())).await;
    browser.click("form[action*='members?'] button.main").await;
    browser.wait_for(".notice .copied").await;
    let copy =
        "window.copied = []; navigator.clipboard.writeText = async (text) => { window.copied.push(text); }";
    browser.script(copy, vec![]).await;
    browser.click(".notice button").await;
    browser
        .wait_until("what is said", "document.querySelector('.notice .note')?.innerText === 'Copied.'")
        .await;
    let copied = browser.script("return window.copied", vec![]).await;
    assert_eq!(copied, json!([browser.value(".notice .copied").await]));
    // Where browsers do not have that, it is copied otherwise, or can be by hand; whoever uses keys stays there.
    let refuse = "navigator.clipboard.writeText = async () => { throw new Error('no'); };
        document.execCommand = () => window.allowed";
    browser.script(refuse, vec![]).await;
    for (allowed, words, focused) in
        [(true, "Copied.", ".notice button:focus"), (false, "did not let it", ".notice .copied:focus")]
    {
        browser.script("window.allowed = arguments[0]", vec![json!(allowed)]).await;
        browser.script("document.querySelector('.notice .note').textContent = ''", vec![]).await;
        browser.click(".notice button").await;
        let said = format!("document.querySelector('.notice .note').innerText.includes({})", json!(words));
        browser.wait_until("what is said", &said).await;
        assert!(browser.exists(focused).await, "{focused}");
    }
    assert_no_complaints(&browser).await;
    browser.close().await;
}
