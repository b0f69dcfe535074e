//! Evaluations in a browser: an answer becomes a case, the case is run, and a change is judged by it.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Visits, assert_no_complaints, browsers::assert_for_everybody, sign_in};
use crate::{
    evaluations::{case, evaluation, run},
    support::{
        browser::Browser,
        client::id,
        model::{Model, Reply},
        service::Service,
    },
};

#[tokio::test(flavor = "multi_thread")]
async fn of_several_words_under_one_number_a_case_expects_those_that_were_chosen() {
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let text = "The warranty lasts two years from the day of purchase. It covers all parts of the engine.";
    let document = owner.ingest(&json!({"name": "Warranty", "type": "TXT", "content": text})).await;
    let told = "It \"lasts two years from the day\", \"covers all parts\" and is \"free of any charge\" [1].";
    let model = Model::scripted([Reply::text(told)]).await;
    let agent = json!({"name": "Clerk", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = owner.create_agent(&agent).await;
    owner.link(id(&agent), id(&document)).await;
    let (_, answer) = owner.predict(id(&agent), "What does the warranty cover?").await;
    let trace = id(&answer["trace"]);
    let evaluation = owner.create("/evaluations", &json!({"name": "Questions"})).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;

    let page = visits.get(&format!("/traces/{trace}")).await.text().await.expect("a text");
    let choices = page.split("name=\"place:number\"").nth(1).expect("a choice").split("</select>").next();
    let choices = choices.expect("its end").to_owned();
    assert!(!choices.contains("free of any charge"), "the document does not say so: {choices}");
    for quote in ["covers all parts", "lasts two years from the day"] {
        let before = choices.split(quote).next().expect("what stands before it");
        let place =
            before.rsplit("value=\"").next().and_then(|rest| rest.split('"').next()).expect("a value");
        let form = [("evaluationId", id(&evaluation)), ("place:number", place)];
        let added = visits.submit(&format!("/traces/{trace}/case"), &form).await;
        assert_eq!(added.status(), StatusCode::SEE_OTHER, "{quote}");
        let cases = owner.read(&format!("/evaluations/{}/cases", id(&evaluation))).await;
        assert_eq!(cases[0]["expect"][0]["quote"], quote, "{cases:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_whose_document_is_not_the_only_one_of_its_name_says_so_at_its_field() {
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let rules = ["Bicycles belong in the cellar.", "Prams may stand in the hall."];
    let mut documents = Vec::new();
    for text in rules {
        documents.push(owner.ingest(&json!({"name": "Rules", "type": "TXT", "content": text})).await);
    }
    let evaluation = owner.create("/evaluations", &json!({"name": "Questions"})).await;
    let path = format!("/evaluations/{}/cases", id(&evaluation));
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    for name in ["Rules", "Customs"] {
        let form = [("question", "Where do bicycles belong?"), ("document", name)];
        let refused = visits.submit(&path, &form).await;
        assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY, "{name}");
        let page = refused.text().await.expect("a text");
        assert!(page.contains("<strong>Document</strong> must be the name of one document alone"), "{page}");
    }
    // Its id tells it apart.
    let form = [("question", "Where do bicycles belong?"), ("document", id(&documents[0]))];
    assert_eq!(visits.submit(&path, &form).await.status(), StatusCode::SEE_OTHER);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_version_of_the_agent_is_chosen_where_an_evaluation_is_run() {
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let text = "The warranty lasts two years.";
    let document = owner.ingest(&json!({"name": "Warranty.txt", "type": "TXT", "content": text})).await;
    let agent = owner.create_agent(&json!({"name": "Clerk", "type": "CHATVENDOR"})).await;
    owner.link(id(&agent), id(&document)).await;
    let set = json!({"name": "Questions", "agentId": id(&agent)});
    let set = owner.create("/evaluations", &set).await;
    let case = json!({"question": "How long does it last?", "expect": [{"documentId": id(&document)}]});
    owner.create(&format!("/evaluations/{}/cases", id(&set)), &case).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let path = format!("/evaluations/{}", id(&set));
    let page = visits.get(&path).await.text().await.expect("a text");
    assert!(!page.contains("agentVersion"), "it was never changed: {page}");
    // Any passage will do, and of which document is said.
    assert!(page.contains(">any passage</a>") && page.contains(">Warranty.txt</span>"), "{page}");

    owner.patch(&format!("/agents/{}", id(&agent)), &json!({"name": "Scribe"})).await;
    let page = visits.get(&path).await.text().await.expect("a text");
    let choice = page.split("name=\"agentVersion:number\"").nth(1).expect("a choice of versions");
    let choice = choice.split("</select>").next().expect("its end");
    let former = choice.split("<option value=\"").nth(2).and_then(|rest| rest.split('"').next());
    let former = former.expect("the version of before").to_owned();
    let form = [("mode:nullable", "lexical"), ("answers:boolean", "true"), ("agentVersion:number", &former)];
    let started = visits.submit(&format!("{path}/run"), &form).await;
    assert_eq!(started.status(), StatusCode::SEE_OTHER);
    let runs = owner.read(&format!("{path}/runs")).await;
    assert_eq!(runs[0]["agentVersion"].to_string(), former, "{runs:#}");
    // As it is now, where nothing is chosen; and the way of searching is called as where it is chosen.
    let form = [("mode:nullable", "lexical"), ("answers:boolean", "true"), ("agentVersion:number", "")];
    assert_eq!(visits.submit(&format!("{path}/run"), &form).await.status(), StatusCode::SEE_OTHER);
    let runs = owner.read(&format!("{path}/runs")).await;
    assert_ne!(runs[0]["agentVersion"].to_string(), former, "{runs:#}");
    let page = visits.get(&path).await.text().await.expect("a text");
    assert!(page.contains(&format!("by words, with answers of Scribe, version {former}")), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_runs_say_which_agent_was_asked_and_what_failed_and_tell_them_apart() {
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let document = json!({"name": "Warranty.txt", "type": "TXT", "content": "The warranty lasts two years."});
    let document = owner.ingest(&document).await;
    let model = Model::start().await;
    model.always(Reply::status(400, &json!({"error": {"message": "No."}})));
    let quoter = owner.create_agent(&json!({"name": "Quoter", "type": "CHATVENDOR"})).await;
    let helper = json!({"name": "Helper", "type": "CHATVENDOR", "llm": model.llm("m")});
    let helper = owner.create_agent(&helper).await;
    for agent in [&quoter, &helper] {
        owner.link(id(agent), id(&document)).await;
    }
    let set = evaluation(&owner, json!({"agentId": id(&quoter)})).await;
    case(&owner, &set, "How long does it last?", json!([{"documentId": id(&document)}])).await;
    let how = json!({"mode": "lexical"});
    let (first, second) = (run(&owner, &set, how.clone()).await, run(&owner, &set, how.clone()).await);
    let path = format!("/evaluations/{set}");
    owner.patch(&path, &json!({"agentId": id(&helper)})).await;
    let failed = run(&owner, &set, how).await;
    owner.delete(&format!("/agents/{}", id(&quoter))).await;
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;
    let page = async |path: &str| visits.get(path).await.text().await.expect("a text");

    let list = page(&path).await;
    assert!(list.contains("with answers of Helper, version 2"), "{list}");
    assert!(list.contains("with answers of Quoter (deleted), version 2"), "{list}");
    assert!(list.contains(">Done, all failed</span>") && list.contains("the only case failed, "), "{list}");
    assert!(page("/evaluations").await.contains("the only case failed, "));
    let shown = page(&format!("{path}/runs/{}", id(&failed))).await;
    assert!(shown.contains("with answers of Helper, version 2"), "{shown}");
    let label = |run: &Value| {
        let option = shown.split(&format!("<option value=\"{}\">", id(run))).nth(1);
        option.and_then(|rest| rest.split("</option>").next()).expect("an option").to_owned()
    };
    assert!(label(&first).contains("of Quoter (deleted), version 2"), "{shown}");
    assert_ne!(label(&first), label(&second));
    let compared = page(&format!("{path}/runs/{}/compare?with={}", id(&failed), id(&first))).await;
    assert!(
        compared.contains("of Helper, version 2") && compared.contains("of Quoter (deleted)"),
        "{compared}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_tells_its_question_without_documents_too_and_a_failure_is_told_apart() {
    let service = Service::start().await;
    let owner = service.signed_up("ada@example.com").await;
    let model = Model::scripted([Reply::text("It is a fox.")]).await;
    let agent = json!({"name": "Talker", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = owner.create_agent(&agent).await;
    let (_, answer) = owner.predict(id(&agent), "What is red and quick?").await;
    model.reply(Reply::status(400, &json!({"error": {"message": "No."}})));
    let (status, _) = owner.predict(id(&agent), "And what is slow?").await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    let client = service.client();
    let mut visits = Visits::new(&service, &client);
    visits.sign_in("ada@example.com").await;

    let page = visits.get("/traces").await.text().await.expect("a text");
    let rows: Vec<&str> = page.split("<tr>").filter(|row| row.contains("data-label=\"Question\"")).collect();
    let [failed, answered] = rows.as_slice() else { panic!("two rows: {page}") };
    assert!(failed.contains("And what is slow?") && failed.contains(">No answer</span>"), "{failed}");
    assert!(answered.contains("What is red and quick?") && !answered.contains("No answer"), "{answered}");
    // So it can be asked again, and become a case of what is to be declined.
    let trace = visits.get(&format!("/traces/{}", id(&answer["trace"]))).await.text().await.expect("a text");
    assert!(trace.contains("What is red and quick?</h1>") && trace.contains("Ask it again"), "{trace}");
    assert!(
        trace.contains(">Talker</a> (version 1) answered") && trace.contains("Make it a case"),
        "{trace}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_becomes_a_case_and_a_change_is_judged_by_it() {
    let Some(browser) = Browser::start().await else { return };
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let text = "The warranty lasts two years from the day of purchase.";
    let document = client.ingest(&json!({"name": "Warranty", "type": "TXT", "content": text})).await;
    let model = Model::start().await;
    model.always(Reply::text("It \"lasts two years from the day\" [1]."));
    let prompt = json!({"name": "Clerk", "template": "Cite what you say.", "input_variables": []});
    let prompt = client.create("/prompts", &prompt).await;
    let agent =
        json!({"name": "Clerk", "type": "CHATVENDOR", "llm": model.llm("m"), "promptId": id(&prompt)});
    let agent = client.create_agent(&agent).await;
    client.link(id(&agent), id(&document)).await;
    let (_, answer) = client.predict(id(&agent), "How long does the warranty last?").await;
    sign_in(&browser, &service, "ada@example.com").await;

    browser.goto(&format!("{}/evaluations", service.base_url())).await;
    browser.fill("#name", "Warranty questions").await;
    browser.select("#agent", id(&agent)).await;
    browser.click_text("button", "Add it").await;
    browser
        .wait_until("the evaluation", "document.querySelector('h1')?.innerText === 'Warranty questions'")
        .await;
    let evaluation = browser.url().await;
    assert_for_everybody(&browser, "a new evaluation").await;

    // One click on what was cited.
    browser.goto(&format!("{}/traces/{}", service.base_url(), id(&answer["trace"]))).await;
    browser.click_text("button", "Add it").await;
    browser.wait_until("what was done", "document.body.innerText.includes('Added.')").await;
    browser.goto(&evaluation).await;
    browser.fill("#question", "Who founded the company?").await;
    browser.click_text("button", "Add it").await;
    browser.wait_until("both cases", "document.body.innerText.includes('2 cases')").await;
    // What names nothing is refused, and what was typed stays.
    browser.fill("#question", "Where is it?").await;
    browser.fill("#document", "no such document").await;
    browser.click_text("button", "Add it").await;
    browser.wait_until("what is wrong", "document.body.innerText.includes('one document alone')").await;
    assert_eq!(browser.value("#question").await, "Where is it?");

    browser.goto(&evaluation).await;
    browser.select("#mode", "lexical").await;
    browser.click_text("button", "Run it").await;
    let done = "document.querySelector('#run .state.good')?.innerText === 'Done'";
    browser.wait_until("the end of the run", done).await;
    let page = browser.text("main").await;
    assert!(page.contains("Cites what answers") && page.contains("Declined, as it should"), "{page}");
    assert_for_everybody(&browser, "a run").await;

    // A worse prompt, and its run beside the one before.
    model.always(Reply::text("Three years, I think."));
    let worse = json!({"template": "Answer from memory."});
    client.patch(&format!("/prompts/{}", id(&prompt)), &worse).await;
    browser.goto(&evaluation).await;
    browser.select("#mode", "lexical").await;
    browser.click_text("button", "Run it").await;
    browser.wait_until("the end of the run", done).await;
    browser.click_text("button", "Compare").await;
    browser.wait_until("both runs", "document.querySelector('h1')?.innerText === 'Two runs'").await;
    let page = browser.text("main").await;
    assert!(page.contains("How long does the warranty last?") && page.contains("1 case differs"), "{page}");
    assert_for_everybody(&browser, "two runs").await;

    // And the way back.
    browser.goto(&format!("{}/agents/{}", service.base_url(), id(&agent))).await;
    browser.click_text("a", "Versions").await;
    browser.wait_until("the versions", "document.querySelector('h1')?.innerText === 'Versions'").await;
    assert!(browser.text("tbody").await.contains("its prompt"));
    assert_for_everybody(&browser, "versions").await;
    browser.script("window.confirm = () => true;", vec![]).await;
    browser.click("tbody button").await;
    browser.wait_until("three versions", "document.querySelectorAll('tbody tr').length === 3").await;
    let restored = client.read(&format!("/agents/{}", id(&agent))).await;
    let restored = client.read(&format!("/prompts/{}", restored["promptId"].as_str().expect("an id"))).await;
    assert_eq!(restored["template"], "Cite what you say.");
    assert_no_complaints(&browser).await;
    browser.close().await;
}
