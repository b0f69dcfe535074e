//! Values that an agent's prompt takes besides the question: pages ask for them, and send them with it.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Visits, assert_no_complaints, browsers::assert_for_everybody, location, service, sign_in};
use crate::support::{
    browser::Browser,
    client::{Client, id},
    loopback::Gate,
    model::{Model, Reply},
};

/// An agent that remembers, whose prompt takes a company and a place, and its prompt.
async fn clerk(owner: &Client, model: &Model) -> (Value, Value) {
    let prompt = json!({
        "name": "Clerk", "template": "You work for {company}, in {place}. {chat_history}",
        "input_variables": ["company", "place", "chat_history"],
    });
    let prompt = owner.create("/prompts", &prompt).await;
    let agent = json!({
        "name": "Clerk", "type": "CHATVENDOR", "llm": model.llm("m"), "promptId": id(&prompt),
        "hasMemory": true,
    });
    (owner.create_agent(&agent).await, prompt)
}

/// What the model was told the last time that it was asked.
fn told(model: &Model) -> String {
    model.bodies().last().expect("a request")["messages"].to_string()
}

/// The input for a value, with what stands in it.
fn input(name: &str, of: &str, text: &str) -> String {
    format!(
        "<label for=\"value-{name}\">{name}</label><textarea id=\"value-{name}\" name=\"values.{name}\" form=\"{of}\" dir=\"auto\" rows=\"1\" required>{text}</textarea>"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_prompt_takes_is_asked_for_and_goes_with_each_question() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::text("At nine."));
    let (agent, _) = clerk(&owner, &model).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let ask = format!("/agents/{}/ask", id(&agent));
    let page = visits.get(&ask).await.text().await.expect("a text");
    for name in ["company", "place"] {
        assert!(page.contains(&input(name, "ask", "")), "{name}: {page}");
    }
    assert!(!page.contains("values.chat_history"), "it comes by itself: {page}");

    // What is missing is said in words, and nothing is asked.
    let form = [("question", "When do you open?"), ("values.company", "Fjord & Co"), ("values.place", " ")];
    let refused = visits.submit(&ask, &form).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let words = refused.text().await.expect("a text");
    assert!(words.contains("<strong>place</strong> is required: the agent"), "{words}");
    assert!(!words.contains("<strong>company</strong>") && model.bodies().is_empty(), "{words}");

    let form = [
        ("question", "When do you open?"),
        ("session", "mine"),
        ("values.company", "Fjord & Co"),
        ("values.place", "Bergen"),
    ];
    let page = visits.submit(&ask, &form).await.text().await.expect("a text");
    assert!(page.contains("At nine."), "{page}");
    assert!(told(&model).contains("You work for Fjord & Co, in Bergen."), "{}", told(&model));
    // They stand there for the next question of the conversation.
    for (name, text) in [("company", "Fjord &#38; Co"), ("place", "Bergen")] {
        assert!(page.contains(&input(name, "ask", text)), "{name}: {page}");
    }
    let form = [&form[1..], &[("question", "And when do you close?")]].concat();
    let page = visits.submit(&ask, &form).await.text().await.expect("a text");
    let last = told(&model);
    assert!(last.contains("in Bergen.") && last.contains("At nine."), "{last}");

    // So they do where somebody comes back to an answer, and where it is asked again.
    let trace = page.split("action=\"../../feedback/").nth(1).and_then(|rest| rest.split('?').next());
    let trace = trace.expect("a form").to_owned();
    let page = visits.get(&format!("{ask}?answer={trace}")).await.text().await.expect("a text");
    assert!(page.contains(&input("place", "ask", "Bergen")), "{page}");
    let page = visits.get(&format!("/traces/{trace}")).await.text().await.expect("a text");
    assert!(page.contains("id=\"again\"") && page.contains(&input("place", "again", "Bergen")), "{page}");
    let again = format!("/traces/{trace}/again");
    let refused = visits.submit(&again, &[("values.company", "Fjord & Co")]).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text().await.expect("a text").contains("<strong>place</strong> is required"));
    let form = [("values.company", "Fjord & Co"), ("values.place", "Oslo")];
    let asked = visits.submit(&again, &form).await;
    assert_eq!(asked.status(), StatusCode::SEE_OTHER);
    assert!(location(&asked).contains("?now="), "{}", location(&asked));
    assert!(told(&model).contains("in Oslo."), "{}", told(&model));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_prompt_takes_values_says_so_and_is_not_published() {
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let (agent, prompt) = clerk(&owner, &model).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let path = format!("/agents/{}", id(&agent));
    let page = async |rest: &str| visits.get(&format!("{path}{rest}")).await.text().await.expect("a text");
    let shown = page("").await;
    assert!(shown.contains("Its prompt takes {company}, {place}: whoever asks it gives that"), "{shown}");
    let shown = page("/publish").await;
    assert!(shown.contains("Its prompt takes {company}, {place}, which a published page"), "{shown}");
    assert!(!shown.contains("name=\"slug\""), "nothing that could only fail is offered: {shown}");
    // Without a model nothing is told to it.
    owner.patch(&path, &json!({"llm": {"provider": "extractive"}})).await;
    let shown = page("/ask").await;
    assert!(!shown.contains("values.company") && shown.contains("name=\"question\""), "{shown}");
    owner.patch(&path, &json!({"llm": model.llm("m")})).await;
    let short = json!({"template": "Be brief.", "input_variables": []});
    owner.patch(&format!("/prompts/{}", id(&prompt)), &short).await;
    for rest in ["", "/ask", "/publish"] {
        let shown = page(rest).await;
        assert!(!shown.contains("Its prompt takes") && !shown.contains("values.company"), "{rest}: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_says_which_value_is_missing_and_keeps_those_that_were_given() {
    let Some(browser) = Browser::start().await else { return };
    let service = service().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::text("At nine."));
    let (agent, _) = clerk(&owner, &model).await;
    sign_in(&browser, &service, "ada@example.com").await;
    browser.goto(&format!("{}/agents/{}/ask", service.base_url(), id(&agent))).await;
    browser.wait_for("#value-company").await;
    assert_for_everybody(&browser, "the values of a prompt").await;
    browser.fill("#value-company", "Fjord").await;
    browser.fill("#question", "When do you open?").await;
    browser.click("[data-ask] .main").await;
    browser.wait_until("the missing value", "document.activeElement.id === 'value-place'").await;
    assert_eq!(browser.value("#question").await, "When do you open?");
    assert!(model.bodies().is_empty());
    // The service says of what a browser lets through what is missing, by the name that it has on the page.
    browser.fill("#value-place", "  ").await;
    browser.click("[data-ask] .main").await;
    browser.wait_for(".turn .problem").await;
    let words = browser.text(".turn .problem").await;
    assert!(words.contains("place is required") && !words.contains("values."), "{words}");
    browser.fill("#value-place", "Bergen").await;
    browser.click("[data-ask] .main").await;
    browser.wait_for("[data-answer]").await;
    assert!(told(&model).contains("You work for Fjord, in Bergen."), "{}", told(&model));
    assert_eq!(browser.value("#value-place").await, "Bergen");
    // A page that is loaded anew in the middle of an answer has lost none that went with the question.
    browser.fill("#value-place", "Oslo").await;
    let gate = Gate::default();
    model.reply(Reply::gated("At", &gate, " five."));
    browser.fill("#question", "And close?").await;
    browser.click("[data-ask] .main").await;
    browser
        .wait_until(
            "its beginning",
            "[...document.querySelectorAll('.answer.plain')].at(-1)?.textContent === 'At'",
        )
        .await;
    browser.script("location.reload()", vec![]).await;
    browser.wait_until("the question", "document.querySelector('#question').value === 'And close?'").await;
    assert_eq!(browser.value("#value-place").await, "Oslo");
    assert_no_complaints(&browser).await;
    browser.close().await;
}
