//! Conversations: they are there still when a page is loaded anew, for whoever had them and for nobody else.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    QUESTION, Visits, agent_with_report, assert_no_complaints, location,
    people::{Team, read},
    service, sign_in,
};
use crate::support::{
    browser::{Browser, Key},
    client::{Client, id, send},
    loopback::Gate,
    model::{Model, Reply},
};

const FORGETS: &str = "Earlier questions are not remembered";

/// An agent that remembers what was said before.
async fn clerk(client: &Client, model: &Model) -> Value {
    let agent = json!({"name": "Clerk", "type": "CHATVENDOR", "llm": model.llm("m"), "hasMemory": true});
    client.create_agent(&agent).await
}

/// The name of the conversation that a page goes on with.
fn session(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"session\" value=\"").expect("its input");
    rest.split('"').next().expect("its value").to_owned()
}

/// The questions that a page shows, in their order.
fn questions(page: &str) -> Vec<&str> {
    let shown = page.split("<div class=\"question\"").skip(1);
    shown.filter_map(|rest| rest.split(['>', '<']).nth(1)).collect()
}

async fn ask(visits: &mut Visits<'_>, path: &str, question: &str, session: &str) -> String {
    let answer = visits.submit(path, &[("question", question), ("session", session)]).await;
    assert_eq!(answer.status(), StatusCode::OK, "{question}");
    answer.text().await.expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_told_again_to_whoever_had_it_and_to_nobody_else() {
    let joined = Team::with("asker").await;
    let model = Model::scripted(["At nine.", "At five.", "On Sunday."].map(Reply::text)).await;
    let agent = clerk(&joined.inside, &model).await;
    let path = format!("/agents/{}/ask", id(&agent));
    let mut ben = joined.visits("ben@example.com").await;
    let begun = session(&read(&ben, &path).await);
    ask(&mut ben, &path, "When do you open?", &begun).await;
    let page = ask(&mut ben, &path, "And close?", &begun).await;
    let address = format!("{path}?session={begun}");
    for page in [page, read(&ben, &address).await] {
        assert_eq!(questions(&page), ["When do you open?", "And close?"], "{page}");
        assert!(page.contains("At nine.") && page.contains("At five."), "{page}");
        assert_eq!(session(&page), begun, "it goes on");
        // What comes of the form is at an address that tells it again.
        assert!(page.contains(&format!("&#38;session={begun}\"")), "{page}");
    }
    let page = ask(&mut ben, &path, "And when not?", &begun).await;
    assert_eq!(questions(&page).len(), 3, "{page}");
    let told = model.bodies().last().expect("a request")["messages"].to_string();
    assert!(told.contains("At nine.") && told.contains("At five."), "{told}");

    // Whoever says of an answer that it helped comes back to all of them.
    let action = page.split("action=\"../../feedback/").nth(1).and_then(|rest| rest.split('"').next());
    let told = ben.submit(&format!("/feedback/{}", action.expect("a form")), &[("rating:number", "1")]).await;
    let back = format!("/{}", location(&told).trim_start_matches("../"));
    let told = read(&ben, &back).await;
    assert_eq!(questions(&told).len(), 3, "{back}");
    // Which of them it was is said there from then on.
    assert_eq!(told.matches("Said so far: It helped.").count(), 1, "{told}");

    // Another one begins without a word of it, and under another name.
    assert!(page.contains("<a class=\"button\" href=\"ask\" data-anew>New conversation</a>"), "{page}");
    let page = read(&ben, &path).await;
    assert!(questions(&page).is_empty() && session(&page) != begun, "{page}");
    // So it is for a colleague who has the address, be it the workspace's owner.
    let ada = joined.visits("ada@example.com").await;
    let page = read(&ada, &address).await;
    assert!(questions(&page).is_empty() && !page.contains("At nine."), "{page}");
    // An address may say anything.
    for name in ["%00", "a%0Ab", &"a".repeat(300), "%FF"] {
        assert!(questions(&read(&ben, &format!("{path}?session={name}")).await).is_empty(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_has_a_page_of_their_own_answers() {
    let joined = Team::with("asker").await;
    let model = Model::start().await;
    model.always(Reply::text("At nine."));
    let agent = clerk(&joined.inside, &model).await;
    assert_eq!(joined.inside.predict(id(&agent), "What does it cost?").await.0, StatusCode::OK);
    let path = format!("/agents/{}/ask", id(&agent));
    let (mut ben, ada) = (joined.visits("ben@example.com").await, joined.visits("ada@example.com").await);
    assert!(read(&ben, "/").await.contains("href=\"traces\">Answers</a>"), "it is in the menu");
    assert!(read(&ben, "/traces").await.contains("Every answer that you are given is kept"));
    ask(&mut ben, &path, "When do you open?", "mine").await;
    let own = read(&ben, "/traces").await;
    assert!(own.contains("<h1>Your answers</h1>") && own.contains("When do you open?"), "{own}");
    assert!(!own.contains("What does it cost?"), "{own}");
    let trace = own.split("href=\"traces/").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    let told = read(&ben, &format!("/traces/{trace}")).await;
    assert!(
        told.contains("At nine.") && told.contains("/ask?session=mine\">your conversation</a>"),
        "{told}"
    );
    // Nobody else can go on in it.
    let told = read(&ada, &format!("/traces/{trace}")).await;
    assert!(told.contains("in the conversation mine") && !told.contains("session=mine"), "{told}");
    let all = read(&ada, "/traces").await;
    assert!(all.contains("When do you open?") && all.contains("What does it cost?"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_memory_says_that_it_forgets() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let remembers = clerk(&owner, &model).await;
    let (forgets, _) = agent_with_report(&owner).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    for (agent, slug, says) in [(id(&remembers), "clerk", false), (forgets.as_str(), "guide", true)] {
        let form = [("slug", slug), ("access", "public"), ("questions:lines", ""), ("origins:lines", "")];
        let published = visits.submit(&format!("/agents/{agent}/publish"), &form).await;
        assert_eq!(published.status(), StatusCode::SEE_OTHER, "{slug}");
        for path in [format!("/agents/{agent}/ask"), format!("/ask/{slug}")] {
            assert_eq!(read(&visits, &path).await.contains(FORGETS), says, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_at_the_end_of_an_answer_is_what_became_of_it() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = clerk(&owner, &model).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let path = format!("/agents/{}/ask/stream", id(&agent));
    for (reply, said) in [
        (Reply::text("At nine."), "The answer is complete."),
        (Reply::text("At").finished_by("length"), "The answer was cut where the model may write no more."),
    ] {
        model.reply(reply);
        let told = ask(&mut visits, &path, "When do you open?", "mine").await;
        assert!(told.contains(&format!("\"said\":\"{said}\"")), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_to_be_asked_again_later_is_said_to_be_and_when() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::status_with_headers(429, &[("retry-after", "3600")], &json!({})));
    let agent = clerk(&owner, &model).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let form = [("slug", "clerk"), ("access", "public"), ("questions:lines", ""), ("origins:lines", "")];
    visits.submit(&format!("/agents/{}/publish", id(&agent)), &form).await;
    let asks = format!("/agents/{}/ask", id(&agent));
    for path in
        [asks.clone(), format!("{asks}/stream"), "/ask/clerk".to_owned(), "/ask/clerk/stream".to_owned()]
    {
        let told = visits.submit(&path, &[("question", "When do you open?")]).await;
        let told = told.text().await.expect("a text");
        assert!(told.contains("Try again in 60 minutes."), "{path}: {told}");
        // Strangers learn when, and not why.
        assert_eq!(told.contains("limiting requests"), path.starts_with("/agents"), "{path}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_loads_the_page_anew_goes_on_where_it_was() {
    let Some(browser) = Browser::start().await else { return };
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = clerk(&owner, &model).await;
    sign_in(&browser, &service, "ada@example.com").await;
    let page = format!("{}/agents/{}/ask", service.base_url(), id(&agent));
    browser.goto(&page).await;
    let reload = async || {
        browser.script("window.isOld = true; location.reload()", vec![]).await;
        browser
            .wait_until("the page anew", "!window.isOld && document.documentElement.matches('.scripted')")
            .await;
    };
    model.reply(Reply::text("At nine."));
    browser.fill("#question", "When do you open?").await;
    browser.click("[data-ask] .main").await;
    browser.wait_for("[data-answer]").await;
    reload().await;
    browser.wait_for("[data-answer]").await;
    assert!(browser.text("[data-log]").await.contains("At nine."));
    // In the middle of an answer, the question is kept.
    let gate = Gate::default();
    model.reply(Reply::gated("At", &gate, " five."));
    browser.fill("#question", "And close?").await;
    browser.click("[data-ask] .main").await;
    browser
        .wait_until("its beginning", "document.querySelector('.answer.plain')?.textContent === 'At'")
        .await;
    reload().await;
    browser.wait_until("the question", "document.querySelector('#question').value === 'And close?'").await;
    assert!(browser.text("[data-log]").await.contains("When do you open?"));
    model.reply(Reply::text("At five."));
    browser.click("[data-ask] .main").await;
    browser.wait_until("both answers", "document.querySelectorAll('[data-answer]').length === 2").await;
    assert!(!browser.text("[data-log]").await.contains("was loaded anew"), "it is answered now");
    let told = model.bodies().last().expect("a request")["messages"].to_string();
    assert!(told.contains("At nine."), "it goes on in the same conversation: {told}");
    // So it is for whoever left the page meanwhile, and comes back.
    let gate = Gate::default();
    model.reply(Reply::gated("Not", &gate, " then."));
    browser.fill("#question", "And at night?").await;
    browser.click("[data-ask] .main").await;
    browser
        .wait_until("its beginning", "document.querySelector('.answer.plain')?.textContent === 'Not'")
        .await;
    browser.goto(&service.base_url()).await;
    browser.script("history.back()", vec![]).await;
    let is_back = "performance.getEntriesByType('navigation')[0].loadEventEnd > 0 && \
                   document.querySelector('#question')?.value === 'And at night?'";
    browser.wait_until("the question", is_back).await;
    model.reply(Reply::text("Not then."));
    browser.click("[data-ask] .main").await;
    browser.wait_until("the answer", "document.querySelectorAll('[data-answer]').length === 3").await;
    // What could not be answered can be asked again, then too.
    model.reply(Reply::status(401, &json!({})));
    browser.fill("#question", "And on Sunday?").await;
    browser.click("[data-ask] .main").await;
    browser.wait_for(".turn .problem").await;
    reload().await;
    browser
        .wait_until("the question", "document.querySelector('#question').value === 'And on Sunday?'")
        .await;
    assert!(browser.text("[data-log]").await.contains("the run failed"));
    browser.click("[data-anew]").await;
    browser.wait_until("a new one", "!document.querySelector('.question')").await;
    reload().await;
    assert!(!browser.exists(".question").await && browser.value("#question").await.is_empty());

    // What the service does not keep, the tab does, for as long as it shows the page.
    let (forgets, _) = agent_with_report(&owner).await;
    let form = json!({"slug": "guide", "access": "public"});
    let put = owner.request(Method::PUT, &format!("/agents/{forgets}/publication")).json(&form);
    assert!(send(put).await.status().is_success());
    browser.goto(&format!("{}/ask/guide", service.base_url())).await;
    browser.fill("#question", QUESTION).await;
    browser.click("[data-ask] .main").await;
    browser.wait_for("[data-answer] .cite").await;
    let named = "document.querySelector('[name=session]').value";
    let before = browser.script(&format!("return {named}"), vec![]).await;
    // An impatient finger says it once, and the field for why is there afterwards.
    let twice = "const { fetch } = window; window.sent = 0;
        window.fetch = (...all) => { window.sent += 1; return fetch(...all); };
        for (let at = 0; at < 2; at += 1) document.querySelector(\"[data-feedback] [value='1']\").click()";
    browser.script(twice, vec![]).await;
    browser.wait_until("thanks", "document.querySelector('[data-feedback] .note')").await;
    assert_eq!(browser.script("return window.sent", vec![]).await, json!(1));
    assert!(browser.exists("[data-feedback] textarea").await);
    reload().await;
    browser.wait_for("[data-answer] .cite").await;
    assert_eq!(browser.script(&format!("return {named}"), vec![]).await, before);
    assert!(browser.text("[data-feedback]").await.contains("Your feedback is kept"), "it is not asked again");
    browser.click("[data-anew]").await;
    browser.wait_until("a new one", "!document.querySelector('.question')").await;
    assert_no_complaints(&browser).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_enter_that_ends_a_conversion_to_kanji_sends_nothing() {
    let Some(browser) = Browser::start().await else { return };
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_report(&owner).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/agents/{agent}/ask", service.base_url())).await;
    browser.fill("#question", "船長は誰ですか").await;
    // As Chromium and Firefox tell it, and as Safari does.
    let converted = "const box = document.querySelector('#question');
        const enter = { key: 'Enter', bubbles: true, cancelable: true };
        const isLeft = [{ isComposing: true }, { keyCode: 229 }].map((how) =>
            box.dispatchEvent(new KeyboardEvent('keydown', { ...enter, ...how })));
        return [...isLeft, document.querySelectorAll('.question').length, box.value]";
    assert_eq!(browser.script(converted, vec![]).await, json!([true, true, 0, "船長は誰ですか"]));
    browser.press(&Key::Enter).await;
    browser.wait_for("[data-answer]").await;
    assert_no_complaints(&browser).await;
    browser.close().await;
}
