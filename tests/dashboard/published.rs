//! Published agents: over the interface, and as those meet them who have no account.

use reqwest::{
    Method, StatusCode,
    header::{CONTENT_SECURITY_POLICY, ORIGIN},
};
use serde_json::{Value, json};

use super::{QUESTION, Visits, agent_with_report, assert_no_complaints};
use crate::support::{
    browser::Browser,
    client::{Client, data, envelope, id, send},
    in_both_modes,
    model::{Model, Reply},
    process::POLL,
    service::{Mode, Service},
    web::Web,
    within_deadline,
};

in_both_modes!(
    a_page_is_open_to_whom_its_builder_says,
    feedback_is_kept_with_the_answer_of_whoever_gives_it,
    strangers_are_told_the_answer_and_its_sources_and_nothing_else,
    a_page_without_its_token_is_said_to_be_closed,
    the_token_of_a_page_says_when_it_was_last_asked,
    a_page_whose_agent_takes_more_than_a_question_says_so_before_anybody_types,
);

async fn publish(client: &Client, agent: &str, page: &Value) -> (StatusCode, Value) {
    envelope(send(client.request(Method::PUT, &format!("/agents/{agent}/publication")).json(page)).await)
        .await
}

async fn ask(client: &Client, origin: &str, slug: &str) -> (StatusCode, String) {
    let body = format!("question={}", QUESTION.replace(' ', "+"));
    let request =
        client.request_outside(Method::POST, &format!("/ask/{slug}")).header(ORIGIN, origin).body(body);
    let answer = send(request.header("content-type", "application/x-www-form-urlencoded")).await;
    (answer.status(), answer.text().await.expect("a text"))
}

async fn a_page_is_open_to_whom_its_builder_says(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("owner@example.com").await;
    service.signed_up("other@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    let guest = service.client();
    let origin = service.base_url();
    let open =
        async |slug: &str| send(guest.request_outside(Method::GET, &format!("/ask/{slug}"))).await.status();

    let public = json!({"slug": "guide", "access": "public", "ratePerMinute": 4, "origins": ["https://www.example.com"]});
    assert_eq!(open("guide").await, StatusCode::NOT_FOUND);
    let page = data(publish(&owner, &agent, &public).await);
    assert_eq!(page["url"], format!("{origin}/ask/guide"));

    // Anybody asks, within the page's own rate, and sees the answer and its sources; not how it came about.
    assert_eq!(open("guide").await, StatusCode::OK);
    let (status, text) = ask(&guest, &origin, "guide").await;
    assert_eq!(status, StatusCode::OK, "{text}");
    assert!(
        text.contains("Solveig Aas") && text.contains("class=\"cite\"") && text.contains("Verified"),
        "{text}"
    );
    assert!(!text.contains("How it came about") && !text.contains("/documents/"), "{text}");
    let cited = text.split("href=\"../cite/").nth(1).expect("a source").split('"').next().expect("its end");
    let cited = send(guest.request_outside(Method::GET, &format!("/cite/{cited}"))).await;
    assert!(cited.text().await.expect("a text").contains("</mark>"));
    // All that a minute has may come at once.
    for _ in 0..3 {
        assert_eq!(ask(&guest, &origin, "guide").await.0, StatusCode::OK);
    }
    let mut refused = None;
    for _ in 0..5 {
        let (status, text) = ask(&guest, &origin, "guide").await;
        refused = refused.or((status == StatusCode::TOO_MANY_REQUESTS).then_some(text));
    }
    let told = refused.expect("there is a limit for all of them together");
    assert!(told.contains("Try again in some seconds") && !told.contains("API token"), "{told}");

    // In frames of the sites that it names, and of no other.
    let framed = send(guest.request_outside(Method::GET, "/embed/guide")).await;
    let policy = framed.headers()[CONTENT_SECURITY_POLICY].to_str().expect("text").to_owned();
    assert!(policy.ends_with("frame-ancestors https://www.example.com"), "{policy}");

    // With a link that nobody can guess.
    let by_link = json!({"slug": "guide", "access": "link"});
    let page = data(publish(&owner, &agent, &by_link).await);
    let slug = page["slug"].as_str().expect("a text").to_owned();
    assert!(slug.starts_with("guide-") && slug.len() > 25, "{slug}");
    assert_eq!((open("guide").await, open(&slug).await), (StatusCode::NOT_FOUND, StatusCode::OK));

    // For members: others are asked to sign in, or find nothing.
    data(publish(&owner, &agent, &json!({"slug": "guide", "access": "members"})).await);
    assert_eq!(open("guide").await, StatusCode::SEE_OTHER);
    assert_eq!(open(&slug).await, StatusCode::NOT_FOUND);
    let (client, stranger) = (service.client(), service.client());
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("owner@example.com").await;
    assert_eq!(visits.get("/ask/guide").await.status(), StatusCode::OK);
    let asked = visits.submit("/ask/guide", &[("question", QUESTION)]).await;
    assert!(asked.text().await.expect("a text").contains("Solveig Aas"));
    let mut others = Visits::new(&service, &stranger);
    others.sign_in("other@example.com").await;
    assert_eq!(others.get("/ask/guide").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(others.submit("/ask/guide", &[("question", QUESTION)]).await.status(), StatusCode::NOT_FOUND);
    for bad in ["%00", "%FF", "a%2Fb"] {
        assert_eq!(open(bad).await, StatusCode::NOT_FOUND, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_too_long_to_be_sent_is_said_to_be_in_words() {
    let service = Service::start().await;
    let owner = service.signed_up("owner@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    data(publish(&owner, &agent, &json!({"slug": "guide", "access": "public"})).await);
    let guest = service.client();
    let mut visits = Visits::new(&service, &guest);
    // Short enough for its field, and not as forms are sent.
    let question = "Кто был капитаном? ".repeat(300);
    let refused = visits.submit("/ask/guide", &[("question", &question)]).await;
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let told = refused.text().await.expect("a text");
    assert!(told.contains("What you wrote is too long to be sent. Make it shorter"), "{told}");
    assert!(told.contains("what you wrote is still there") && !told.contains("bytes"), "{told}");
    // Too long for its field, it is that field which is named.
    let refused = visits.submit("/ask/guide", &[("question", &"a".repeat(10_001))]).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let told = refused.text().await.expect("a text");
    assert!(told.contains("10000") || told.contains("10,000"), "{told}");
}

async fn strangers_are_told_the_answer_and_its_sources_and_nothing_else(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("owner@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "Guide", "type": "CHATVENDOR", "llm": model.llm("clockwork")});
    let agent = id(&owner.create_agent(&agent).await).to_owned();
    // What is asked is in it, so that it is found.
    let text = format!("Bicycles belong in the cellar. {QUESTION}");
    let rules = json!({"name": "House rules", "type": "TXT", "content": text});
    owner.link(&agent, id(&owner.ingest(&rules).await)).await;
    data(publish(&owner, &agent, &json!({"slug": "guide", "access": "public"})).await);
    let (guest, origin) = (service.client(), service.base_url());
    let page = send(guest.request_outside(Method::GET, "/ask/guide")).await.text().await.expect("a text");
    assert!(page.contains("maxlength=\"10000\""), "as many as are taken: {page}");

    // What a model puts into a document's mouth is told to be no words of it.
    let invented = "Bicycles belong on the roof top";
    model.reply(Reply::text(&format!("It says \"{invented}\" [1].")));
    let (status, text) = ask(&guest, &origin, "guide").await;
    assert_eq!(status, StatusCode::OK, "{text}");
    assert!(text.contains("Not in this source") && !text.contains("The passage says"), "{text}");
    model.reply(Reply::text("The cellar is for bicycles [1]."));
    let (_, text) = ask(&guest, &origin, "guide").await;
    assert!(
        text.contains("The passage says: “<bdi") && text.contains(">Bicycles belong in the cellar.</bdi>”"),
        "{text}"
    );
    assert!(!text.contains("clockwork") && !text.contains("tokens"), "what it took is its builder's: {text}");

    model.always(Reply::status(401, &json!({"error": "no such key"})));
    let (status, text) = ask(&guest, &origin, "guide").await;
    assert_eq!(status, StatusCode::BAD_GATEWAY, "{text}");
    assert!(text.contains("cannot answer at the moment") && !text.contains("provider"), "{text}");
}

async fn a_page_whose_agent_takes_more_than_a_question_says_so_before_anybody_types(mode: Mode) {
    const TOLD: &str = "Nobody can ask on this page";
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("owner@example.com").await;
    let model = Model::start().await;
    let prompt = |template: &str, variables: &[&str]| json!({"name": "Clerk", "template": template, "input_variables": variables});
    let made = owner.create("/prompts", &prompt("Be brief.", &[])).await;
    let agent = json!({"name": "Clerk", "type": "CHATVENDOR", "llm": model.llm("m"), "promptId": id(&made)});
    let agent = id(&owner.create_agent(&agent).await).to_owned();
    let page = json!({"slug": "clerk", "access": "public", "origins": ["https://www.example.com"]});
    data(publish(&owner, &agent, &page).await);
    let (guest, origin) = (service.client(), service.base_url());
    let open =
        async |path: &str| send(guest.request_outside(Method::GET, path)).await.text().await.expect("a text");
    for path in ["/ask/clerk", "/embed/clerk"] {
        let shown = open(path).await;
        assert!(shown.contains("name=\"question\"") && !shown.contains(TOLD), "{path}: {shown}");
    }
    owner.patch(&format!("/prompts/{}", id(&made)), &prompt("You work for {company}.", &["company"])).await;
    for path in ["/ask/clerk", "/embed/clerk"] {
        let shown = open(path).await;
        assert!(shown.contains(TOLD) && !shown.contains("name=\"question\""), "{path}: {shown}");
        assert!(!shown.contains("company"), "its prompt is its builder's: {path}: {shown}");
    }
    // Whoever had it open before is told the same, and not to try again.
    let (status, told) = ask(&guest, &origin, "clerk").await;
    assert_eq!(status, StatusCode::CONFLICT, "{told}");
    assert!(told.contains(TOLD) && !told.contains("Try again later") && !told.contains("company"), "{told}");
    // No such page is made, and its builder is told why.
    let (status, refused) = publish(&owner, &agent, &page).await;
    assert_eq!((status, &refused["error"]["code"]), (StatusCode::CONFLICT, &json!("needs_values")));
    assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("(company)")), "{refused}");
    owner.patch(&format!("/prompts/{}", id(&made)), &prompt("Be brief.", &[])).await;
    data(publish(&owner, &agent, &page).await);
    assert!(!open("/ask/clerk").await.contains(TOLD));
}

async fn a_page_without_its_token_is_said_to_be_closed(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("owner@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("owner@example.com").await;
    let shown = async |path: String| visits.get(&path).await.text().await.expect("a text");
    let pages = [format!("/agents/{agent}"), format!("/agents/{agent}/publish")];
    data(publish(&owner, &agent, &json!({"slug": "guide", "access": "public"})).await);
    for page in pages.clone() {
        assert!(!shown(page).await.contains("does not answer any more"));
    }
    assert!(shown(pages[1].clone()).await.contains("inputmode=\"numeric\" value=\"60\""), "its rate");
    let tokens = owner.read("/api-tokens").await;
    let tokens = tokens.as_array().expect("a list").iter();
    let of_page =
        |token: &&Value| token["description"].as_str().is_some_and(|text| text.ends_with("ask/guide"));
    let token = tokens.clone().find(of_page).expect("the page's token");
    let listed = shown("/tokens".to_owned()).await;
    for told in ["</a> alone", "at most 60 requests a minute", "the page of a published agent"] {
        assert!(listed.contains(told), "{told}: {listed}");
    }
    data(owner.delete(&format!("/api-tokens/{}", id(token))).await);
    for page in pages.clone() {
        let text = shown(page).await;
        assert!(text.contains("does not answer any more") && text.contains("Publish"), "{text}");
    }
    data(publish(&owner, &agent, &json!({"slug": "guide", "access": "public"})).await);
    for page in pages {
        assert!(!shown(page).await.contains("does not answer any more"));
    }
}

async fn the_token_of_a_page_says_when_it_was_last_asked(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("owner@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    data(publish(&owner, &agent, &json!({"slug": "guide", "access": "public"})).await);
    let last_use = async || {
        let tokens = owner.read("/api-tokens").await;
        let of_page = |token: &&Value| token["agentId"] == agent.as_str();
        tokens.as_array().expect("a list").iter().find(of_page).expect("the page's token")["lastUsedAt"]
            .clone()
    };
    assert_eq!(last_use().await, Value::Null);
    assert_eq!(ask(&service.client(), &service.base_url(), "guide").await.0, StatusCode::OK);
    // It is noted beside the answer.
    let noted = async {
        while last_use().await.is_null() {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the use to be noted", noted).await;
}

async fn feedback_is_kept_with_the_answer_of_whoever_gives_it(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("owner@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    let (_, answer) = owner.predict(&agent, QUESTION).await;
    let trace = answer["trace"]["id"].as_str().expect("an id").to_owned();
    data(publish(&owner, &agent, &json!({"slug": "guide", "access": "public"})).await);
    let guest = service.client();
    let (_, text) = ask(&guest, &service.base_url(), "guide").await;
    let action = text
        .split("action=\"../ask/guide/feedback/")
        .nth(1)
        .expect("a form")
        .split('"')
        .next()
        .expect("its end");
    let say = async |trace: &str| {
        let request = guest.request_outside(Method::POST, &format!("/ask/guide/feedback/{trace}"));
        let request = request.header(ORIGIN, service.base_url()).body("rating:number=1&text=Right");
        let answer = send(request.header("content-type", "application/x-www-form-urlencoded")).await;
        (answer.status(), answer.text().await.expect("a text"))
    };
    // Whoever said it has the question and its answer before them still, and can go on from there.
    let (status, page) = say(action).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    for shown in [QUESTION, "Solveig Aas", "class=\"cite\"", "Thank you.", ">Right</textarea>"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(page.contains("action=\"../../../ask/guide\"") && !page.contains("How it came about"), "{page}");
    let (status, refused) = say(&trace).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "the owner's own answer");
    assert!(!refused.contains("Solveig Aas"), "{refused}");
    // The address alone shows nobody what somebody else was told.
    let opened = send(guest.request_outside(Method::GET, &format!("/ask/guide/feedback/{action}"))).await;
    assert_eq!(opened.status(), StatusCode::OK);
    let opened = opened.text().await.expect("a text");
    assert!(opened.contains("name=\"question\"") && !opened.contains("Solveig Aas"), "{opened}");
    let told = owner.read(&format!("/traces/{action}")).await;
    assert_eq!(told["feedback"]["text"], "Right");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_widget_answers_on_the_pages_of_a_site_that_may_show_it() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let owner = service.signed_up("owner@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    let (site, elsewhere) = (Web::start().await, Web::start().await);
    let script = format!(
        "<!doctype html><head><title>Shop</title><script src=\"{}/embed.js\" data-page=\"guide\" data-label=\"Ask us\" data-accent=\"#8a2be2\"></script></head><body><h1>Shop</h1></body>",
        service.base_url()
    );
    let [good, bad] = [&site, &elsewhere].map(|web| web.serve("/shop", "text/html", script.clone()));
    let origin = good.trim_end_matches("/shop");
    let page = json!({"slug": "guide", "access": "public", "origins": [origin], "accent": "#8a2be2"});
    data(publish(&owner, &agent, &page).await);

    browser.goto(&good).await;
    let host = "[...document.body.children].find((child) => child.shadowRoot)?.shadowRoot";
    browser.wait_until("the button", &format!("{host}?.querySelector('button')")).await;
    browser.script(&format!("{host}.querySelector('button').click()"), vec![]).await;
    browser.enter_frame(&format!("{host}.querySelector('iframe')")).await;
    browser.fill("#question", QUESTION).await;
    browser.click("[data-ask] .main").await;
    browser.wait_for("[data-answer] .cite").await;
    browser.click("[data-answer] .cite").await;
    browser.wait_for(".source mark").await;
    browser.leave_frame().await;
    assert_no_complaints(&browser).await;

    // Another site gets a frame with nothing in it.
    browser.goto(&bad).await;
    browser.wait_until("the button", &format!("{host}?.querySelector('button')")).await;
    browser.script(&format!("{host}.querySelector('button').click()"), vec![]).await;
    browser.enter_frame(&format!("{host}.querySelector('iframe')")).await;
    browser.wait_until("what the browser shows instead", "document.readyState === 'complete'").await;
    assert!(!browser.exists("#question").await);
    browser.close().await;
}
