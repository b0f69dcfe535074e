//! What every page promises, whatever browser asks.

use reqwest::{
    Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, ORIGIN, REFERRER_POLICY},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{CONFIRMED, Visits, agent_with_report, assert_forms_name, cookies, location, service};
use crate::support::{
    client::{PASSWORD, data, id, send},
    in_both_modes,
    service::{Mode, Service},
    web::Web,
};

in_both_modes!(a_browser_is_known_by_its_cookie_and_by_nothing_else, each_role_reaches_its_pages);

/// The pages, and the least role that reaches them; `admin` for those of the operator.
const REACHES: [(&str, &str); 24] = [
    ("/", "asker"),
    ("/agents", "asker"),
    ("/account", "asker"),
    ("/invitations", "asker"),
    ("/documents", "editor"),
    ("/documents/new", "editor"),
    ("/documents/<document>", "editor"),
    ("/collections", "editor"),
    ("/search?query=captain", "editor"),
    ("/agents/new", "builder"),
    ("/agents/<agent>/publish", "builder"),
    ("/traces", "asker"),
    ("/evaluations", "builder"),
    ("/agents/<agent>/versions", "builder"),
    ("/tokens", "builder"),
    ("/sources", "editor"),
    ("/documents/duplicates", "editor"),
    ("/webhooks", "builder"),
    ("/prompts", "builder"),
    ("/tools", "builder"),
    ("/members", "owner"),
    ("/usage", "owner"),
    ("/audit", "owner"),
    ("/jobs", "admin"),
];

async fn a_browser_is_known_by_its_cookie_and_by_nothing_else(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);

    // Whoever is not known is asked to sign in, and comes back to where they wanted to go.
    let asked = visits.get("/documents?state=dead").await;
    assert_eq!(asked.status(), StatusCode::SEE_OTHER);
    assert_eq!(location(&asked), "./sign-in?next=documents%3Fstate%3Ddead");

    let account =
        [("email", "ada@example.com"), ("password", PASSWORD), ("name", "Ada"), ("next", "documents")];
    let made = visits.submit("/sign-up", &account).await;
    assert_eq!((made.status(), location(&made)), (StatusCode::SEE_OTHER, "./documents"));
    let [cookie] = cookies(made.headers()).try_into().expect("one cookie");
    for part in ["lectern_session=", "; HttpOnly", "; SameSite=Lax", "; Path=/"] {
        assert!(cookie.contains(part), "{part}: {cookie}");
    }
    assert!(!cookie.contains("Secure"), "there is no TLS here: {cookie}");

    let page = visits.get("/documents").await;
    assert_eq!(page.status(), StatusCode::OK);
    let headers = page.headers().clone();
    assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
    assert_eq!(headers[CACHE_CONTROL], "private, no-store");
    assert_eq!(headers[REFERRER_POLICY], "same-origin");
    let policy = headers[CONTENT_SECURITY_POLICY].to_str().expect("text");
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    assert!(policy.ends_with("frame-ancestors 'none'"), "{policy}");
    let page = page.text().await.expect("a text");
    assert!(!page.contains("style=\"") && !page.contains("<script>") && !page.contains(" onclick"), "{page}");

    // The same cookie opens the interface for programs, as the scripts of the pages use it.
    let read = async |cookies: &str| {
        let request = client.request_outside(Method::GET, "/api/v1/documents").header(COOKIE, cookies);
        send(request).await.status()
    };
    assert_eq!(read(&visits.cookies).await, StatusCode::OK);
    assert_eq!(read("lectern_session=x").await, StatusCode::UNAUTHORIZED);

    // What is changed is changed by pages of this service alone.
    let body = json!({"name": "Note", "type": "TXT", "content": "A note."});
    for (headers, taken) in [
        (vec![], false),
        (vec![("origin", "https://evil.example")], false),
        (vec![("origin", "null")], false),
        (vec![("sec-fetch-site", "same-site")], false),
        (vec![("sec-fetch-site", "cross-site"), ("origin", visits.origin.as_str())], false),
        (vec![("sec-fetch-site", "same-origin")], true),
        (vec![("origin", visits.origin.as_str())], true),
    ] {
        for (path, form) in [("/api/v1/documents", false), ("/documents/new", true)] {
            let mut request = client.request_outside(Method::POST, path).header(COOKIE, &visits.cookies);
            for (name, value) in &headers {
                request = request.header(*name, *value);
            }
            let request = if form {
                let fields = "name=Note&type=TXT&content=A+note.";
                request.header("content-type", "application/x-www-form-urlencoded").body(fields)
            } else {
                request.json(&body)
            };
            let answer = send(request).await;
            let status = answer.status();
            if taken {
                assert!(
                    status == StatusCode::OK || status == StatusCode::SEE_OTHER,
                    "{path} {headers:?}: {status}"
                );
            } else {
                assert_eq!(status, StatusCode::FORBIDDEN, "{path} {headers:?}");
            }
        }
    }
    let documents: Value = {
        let request =
            client.request_outside(Method::GET, "/api/v1/documents").header(COOKIE, &visits.cookies);
        send(request).await.json().await.expect("JSON")
    };
    assert_eq!(documents["data"].as_array().map(Vec::len), Some(4), "{documents:#}");
    // A page of elsewhere signs nobody in, either.
    let form = "email=ada%40example.com&password=x";
    let request = client.request_outside(Method::POST, "/sign-in").header(ORIGIN, "https://evil.example");
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
    assert_eq!(send(request).await.status(), StatusCode::FORBIDDEN);

    // A script is told where to go, and in words that its sign-in has ended.
    let as_script = async |cookies: &str| {
        let request = client.request_outside(Method::POST, "/collections").header(COOKIE, cookies);
        let request =
            request.header(ORIGIN, &visits.origin).header("accept", "application/json").body("name=Shelf");
        let answer = send(request.header("content-type", "application/x-www-form-urlencoded")).await;
        (answer.status(), answer.json::<Value>().await.expect("JSON"))
    };
    let (status, told) = as_script(&visits.cookies).await;
    assert!(
        told["next"].as_str().is_some_and(|next| next.starts_with("./collections/")),
        "{status} {told:#}"
    );
    let (status, told) = as_script("lectern_session=x").await;
    assert_eq!((status, told["error"]["code"].as_str()), (StatusCode::UNAUTHORIZED, Some("unauthorized")));
    assert!(
        told["error"]["message"].as_str().is_some_and(|words| words.contains("Sign in again")),
        "{told:#}"
    );

    let left = visits.submit("/sign-out", &[]).await;
    assert_eq!(left.status(), StatusCode::SEE_OTHER);
    assert_eq!(visits.get("/documents").await.status(), StatusCode::SEE_OTHER);
    service.assert_no_secret_in_logs(&[PASSWORD]);
}

async fn each_role_reaches_its_pages(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("owner@example.com").await;
    let workspace = owner.create("/workspaces", &json!({"name": "Team"})).await;
    let team = owner.in_workspace(id(&workspace));
    let (agent, document) = agent_with_report(&team).await;
    let mut people = vec![("owner", "owner@example.com".to_owned())];
    for role in ["asker", "editor", "builder"] {
        let email = format!("{role}@example.com");
        let member = service.signed_up(&email).await;
        let path = format!("/workspaces/{}/invitations", id(&workspace));
        let invitation = team.create(&path, &json!({"role": role})).await;
        data(member.post("/invitations/accept", &json!({"token": invitation["token"]})).await);
        people.push((role, email));
    }
    let rank =
        |role: &str| ["asker", "editor", "builder", "owner", "admin"].iter().position(|known| *known == role);
    for (role, email) in people {
        let client = service.client();
        let mut visits = Visits::new(&service, &client);
        visits.sign_in(&email).await;
        let chosen = visits.submit("/workspace", &[("workspace", id(&workspace))]).await;
        assert_eq!(chosen.status(), StatusCode::SEE_OTHER, "{role}");
        let home = visits.get("/").await.text().await.expect("a text");
        for (page, least) in REACHES {
            let path = page.replace("<agent>", &agent).replace("<document>", &document);
            // The first account is the operator's.
            let may = if least == "admin" { role == "owner" } else { rank(role) >= rank(least) };
            let answer = visits.get(&path).await;
            let expected = if may { StatusCode::OK } else { StatusCode::FORBIDDEN };
            assert_eq!(answer.status(), expected, "{role} {page}");
            let text = answer.text().await.expect("a text");
            assert!(text.starts_with("<!doctype html>"), "{role} {page}: {text}");
            assert_forms_name(id(&workspace), page, &text);
            // Nobody is shown a way to where they may not go.
            let first = page.split(['/', '?']).nth(1).expect("a folder");
            let is_linked = home.contains(&format!("href=\"{first}\""));
            assert!(!is_linked || may || !path.ends_with(first), "{role} is shown {page}");
        }
        // What is not there, or somebody else's, is one and the same.
        for path in
            [format!("/documents/{}", Uuid::now_v7()), "/documents/x".to_owned(), "/documents/%FF".to_owned()]
        {
            let expected =
                if rank(role) >= rank("editor") { StatusCode::NOT_FOUND } else { StatusCode::FORBIDDEN };
            let status = visits.get(&path).await.status();
            assert!(status == expected || status == StatusCode::NOT_FOUND, "{role} {path}: {status}");
        }
    }
    // A stranger's workspace cannot be chosen, and one that was left is not held on to.
    let stranger = service.client();
    service.signed_up("stranger@example.com").await;
    let mut visits = Visits::new(&service, &stranger);
    visits.sign_in("stranger@example.com").await;
    let chosen = visits.submit("/workspace", &[("workspace", id(&workspace))]).await;
    assert_eq!(chosen.status(), StatusCode::NOT_FOUND);
    visits.cookies = format!("{}; lectern_workspace={}", visits.cookies, id(&workspace));
    let sent_home = visits.get("/documents").await;
    assert_eq!(sent_home.status(), StatusCode::SEE_OTHER);
    assert_eq!(location(&sent_home), "./?said=workspace-gone");
    assert!(cookies(sent_home.headers())[0].starts_with("lectern_workspace=; "), "it is taken away");
    assert_eq!(visits.get(&format!("/agents/{agent}/ask")).await.status(), StatusCode::SEE_OTHER);
    visits.cookies = visits.cookies.split("; lectern_workspace=").next().expect("the sign-in").to_owned();
    let home = visits.get("/?said=workspace-gone").await.text().await.expect("a text");
    assert!(home.contains("you are no member of it any more. You are in your own now."), "{home}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_that_is_pressed_after_the_sign_in_has_ended_leads_to_a_page() {
    let service = service().await;
    service.signed_up("ada@example.com").await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    let some = Uuid::now_v7();
    let pressed = [
        (format!("/documents/{some}/delete"), "../../sign-in?next=documents&said=undone"),
        (format!("/webhooks/{some}/test"), "../../sign-in?next=webhooks&said=undone"),
        (format!("/feedback/{some}"), "../sign-in?next=&said=undone"),
        ("/workspace".to_owned(), "./sign-in?next=&said=undone"),
    ];
    for (path, asked) in &pressed {
        assert_eq!(location(&visits.submit(path, &[]).await), *asked, "{path}");
    }
    let asked = visits.get("/sign-in?next=documents&said=undone").await.text().await.expect("a text");
    assert!(
        asked.contains(
            "<p class=\"notice neutral\" role=\"status\">Your sign-in had ended, so nothing was done"
        ),
        "{asked}"
    );
    visits.sign_in("ada@example.com").await;
    for page in ["/documents", "/webhooks", "/"] {
        assert_eq!(visits.get(page).await.status(), StatusCode::OK, "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_was_done_that_is_no_success() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let note = owner.ingest(&json!({"name": "Note", "type": "TXT", "content": "A note."})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    // All that match, where none does; and stopping what has ended.
    let all =
        [CONFIRMED, ("action", "delete"), ("all:boolean", "true"), ("filter", "name=nothing+is+called+so")];
    let page = format!("/documents/{}", id(&note));
    let unmatched = "/documents?said=unmatched&name=nothing+is+called+so".to_owned();
    for (path, form, led_to, words) in [
        ("/documents/bulk".to_owned(), &all[..], unmatched, "No document matches"),
        (format!("{page}/cancel"), &[], format!("{page}?said=ended"), "It had ended already"),
    ] {
        let sent = visits.submit(&path, form).await;
        assert_eq!(format!("/{}", location(&sent).trim_start_matches("../")), led_to, "{path}");
        let shown = visits.get(&led_to).await.text().await.expect("a text");
        assert!(
            shown.contains(&format!("<p class=\"notice neutral\" role=\"status\">{words}")),
            "{path}: {shown}"
        );
    }
    let done = visits.get("/documents?said=deleted").await.text().await.expect("a text");
    assert!(done.contains("Deleted.") && !done.contains("neutral"), "{done}");
    // What is stopped twice is stopped once.
    let web = Web::start().await;
    let (url, gate) = web.gate("/slow.txt", "text/plain", "A slow note.");
    let slow = owner.create_document(&json!({"name": "Slow", "type": "TXT", "url": url})).await;
    gate.wait_until_reached().await;
    let page_of_slow = format!("/documents/{}", id(&slow));
    for said in ["stopped", "ended"] {
        let sent = visits.submit(&format!("{page_of_slow}/cancel"), &[]).await;
        assert!(location(&sent).ends_with(&format!("?said={said}")), "{}", location(&sent));
    }
    gate.release();
    // What was selected is deleted by one and, a moment later, by another.
    let other = owner.ingest(&json!({"name": "Other", "type": "TXT", "content": "Another note."})).await;
    let selected = [("ids:list", id(&note)), ("ids:list", id(&other))];
    data(owner.delete(&page).await);
    for (action, said) in [
        ("ingest", "queued&count=1"),
        ("delete", "deleted&count=1"),
        ("delete", "unmatched"),
        ("ingest", "unmatched"),
    ] {
        let form = [&[CONFIRMED, ("action", action)], &selected[..]].concat();
        let sent = visits.submit("/documents/bulk", &form).await;
        assert_eq!(location(&sent), format!("../documents?said={said}&"), "{action}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_find_the_icon_where_a_page_names_none() {
    let service = service().await;
    let client = service.client();
    for path in ["/favicon.ico", "/assets/icon.svg"] {
        let icon = send(client.request_outside(Method::GET, path)).await;
        assert_eq!(icon.status(), StatusCode::OK, "{path}");
        assert_eq!(icon.headers()[CONTENT_TYPE], "image/svg+xml", "{path}");
        assert!(icon.text().await.expect("a text").starts_with("<svg"), "{path}");
    }
    // Pages of failures show it too.
    let failed = send(client.request_outside(Method::GET, "/sign-in/nowhere")).await;
    let policy = failed.headers()[CONTENT_SECURITY_POLICY].to_str().expect("text").to_owned();
    assert_eq!(failed.status(), StatusCode::NOT_FOUND);
    assert!(policy.contains("img-src 'self'"), "{policy}");
    let page = failed.text().await.expect("a text");
    assert!(
        page.contains("<link rel=\"icon\" type=\"image/svg+xml\" href=\"../assets/icon.svg\">"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_keeps_what_is_chosen_however_much_there_is_to_choose_from() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let prompt = |name: &str| json!({"name": name, "template": "Be brief.", "input_variables": []});
    let chosen = owner.create("/prompts", &prompt("Chosen")).await;
    let agent = json!({"name": "Guide", "type": "CHATVENDOR", "promptId": chosen["id"]});
    let agent = owner.create_agent(&agent).await;
    let shelf = owner.create("/collections", &json!({"name": "Chosen"})).await;
    let source = json!({
        "name": "News", "type": "feed", "collectionId": shelf["id"],
        "config": {"url": "http://127.0.0.1:9/feed"},
    });
    let source = owner.create("/sources", &source).await;
    for number in 0..200 {
        let name = format!("Another {number}");
        owner.create("/prompts", &prompt(&name)).await;
        owner.create("/collections", &json!({"name": name})).await;
    }
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    for (page, chosen) in
        [(format!("/agents/{}", id(&agent)), &chosen), (format!("/sources/{}", id(&source)), &shelf)]
    {
        let html = visits.get(&page).await.text().await.expect("a text");
        let option = format!("<option value=\"{}\" selected>Chosen</option>", id(chosen));
        assert!(html.contains(&option), "{page}: {html}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_jobs_go_on_on_another_page() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    for number in 0..51 {
        let note = json!({"name": format!("Note {number}"), "type": "TXT", "content": "A note."});
        owner.create_document(&note).await;
    }
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let page = async |path: &str| {
        let html = visits.get(path).await.text().await.expect("a text");
        let mut links = html.split("href=\"").filter_map(|rest| rest.split('"').next());
        let next = links.find(|link| link.starts_with("jobs?"));
        (html.matches("<td data-label=\"Whose\"").count(), next.map(|next| next.replace("&#38;", "&")))
    };
    let (rows, next) = page("/jobs").await;
    assert_eq!(rows, 50);
    let next = next.expect("another page");
    assert_eq!(page(&format!("/{next}")).await, (1, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_users_wrote_is_text_on_every_page() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let hostile = "</title><script>alert(1)</script>\"' onmouseover=x <img src=x onerror=alert(1)>";
    let document = owner
        .ingest(&json!({"name": hostile, "type": "TXT", "content": hostile, "description": hostile, "metadata": {"a": hostile}}))
        .await;
    let llm = json!({"provider": "extractive", "model": hostile});
    let agent = json!({"name": hostile, "type": "CHATVENDOR", "description": hostile, "llm": llm});
    let agent = owner.create_agent(&agent).await;
    owner.link(id(&agent), id(&document)).await;
    let collection = owner.create("/collections", &json!({"name": hostile, "description": hostile})).await;
    owner.create("/prompts", &json!({"name": hostile, "template": hostile, "input_variables": []})).await;
    owner.create("/api-tokens", &json!({"description": hostile})).await;
    let (_, answer) = owner.predict(id(&agent), hostile).await;
    let trace = answer["trace"]["id"].as_str().expect("an id").to_owned();
    let feedback = json!({"rating": -1, "text": hostile});
    data(owner.post(&format!("/traces/{trace}/feedback"), &feedback).await);
    let page = json!({"slug": "guide", "access": "public", "title": hostile, "greeting": hostile, "questions": [hostile]});
    let published = owner.request(Method::PUT, &format!("/agents/{}/publication", id(&agent))).json(&page);
    assert_eq!(send(published).await.status(), StatusCode::OK);

    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let name = format!(
        "/documents?name={}",
        url::form_urlencoded::byte_serialize(hostile.as_bytes()).collect::<String>()
    );
    let query = name.replace("/documents?name", "/search?query");
    for path in [
        "/".to_owned(),
        name,
        query,
        format!("/documents/{}", id(&document)),
        "/agents".to_owned(),
        format!("/agents/{}", id(&agent)),
        format!("/agents/{}/ask", id(&agent)),
        format!("/agents/{}/publish", id(&agent)),
        "/collections".to_owned(),
        format!("/collections/{}", id(&collection)),
        "/prompts".to_owned(),
        "/tokens".to_owned(),
        "/traces".to_owned(),
        format!("/traces/{trace}"),
        "/ask/guide".to_owned(),
    ] {
        let answer = visits.get(&path).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let text = answer.text().await.expect("a text");
        assert!(text.contains("script"), "it is shown: {path}");
        assert!(!text.contains("<script>") && !text.contains("<img src=x"), "{path}: {text}");
    }
    let asked = visits.submit(&format!("/agents/{}/ask", id(&agent)), &[("question", hostile)]).await;
    let text = asked.text().await.expect("a text");
    assert!(!text.contains("<script>alert") && !text.contains("<img src=x"), "{text}");
}
