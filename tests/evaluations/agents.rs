//! Which agent a run asks, whatever becomes of the evaluation and of the agent.

use serde_json::{Value, json};

use super::{case, document, ended, evaluation, result, run, signed_up};
use crate::support::{
    client::{data, id},
    in_both_modes,
    loopback::Gate,
    model::{Model, Reply},
    service::Mode,
};

in_both_modes!(
    a_run_tells_which_agent_it_asked,
    a_run_that_waits_asks_the_agent_that_it_was_begun_with,
    a_run_tells_how_many_cases_failed
);

async fn a_run_tells_which_agent_it_asked(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let warranty = document(&client, "Warranty", "The warranty lasts two years.").await;
    let quoter = client.create_agent(&json!({"name": "Quoter", "type": "CHATVENDOR"})).await;
    let helper = client.create_agent(&json!({"name": "Helper", "type": "CHATVENDOR"})).await;
    client.link(id(&quoter), &warranty).await;
    let set = evaluation(&client, json!({"agentId": id(&quoter)})).await;
    case(&client, &set, "How long?", json!([{"documentId": warranty}])).await;
    let first = run(&client, &set, json!({"mode": "lexical"})).await;
    let searched = run(&client, &set, json!({"mode": "lexical", "answers": false})).await;
    assert_eq!(searched["agentId"], Value::Null, "nobody was asked");
    let path = format!("/evaluations/{set}");
    data(client.patch(&path, &json!({"agentId": id(&helper)})).await);
    let second = run(&client, &set, json!({"mode": "lexical"})).await;
    data(client.delete(&format!("/agents/{}", id(&quoter))).await);

    let runs = client.read(&format!("{path}/runs")).await;
    assert_eq!([&runs[0]["agentId"], &runs[2]["agentId"]], [&helper["id"], &quoter["id"]], "{runs:#}");
    let compared = client.read(&format!("{path}/runs/{}/compare/{}", id(&second), id(&first))).await;
    let asked = [&compared["run"]["agentId"], &compared["other"]["agentId"]];
    assert_eq!(asked, [&helper["id"], &quoter["id"]], "{compared:#}");
}

async fn a_run_that_waits_asks_the_agent_that_it_was_begun_with(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let model = Model::start().await;
    let create = async |name: &str| {
        client.create_agent(&json!({"name": name, "type": "CHATVENDOR", "llm": model.llm(name)})).await
    };
    let (quoter, helper) = (create("quoter").await, create("helper").await);
    let set = evaluation(&client, json!({"agentId": id(&quoter)})).await;
    case(&client, &set, "Who founded the company?", json!("decline")).await;
    let runs = format!("/evaluations/{set}/runs");
    let gate = Gate::default();
    model.reply(Reply::gated("Nobody ", &gate, "knows."));
    model.always(Reply::text("Nobody knows."));
    // Of a workspace one goes on at a time.
    let going_on = client.create(&runs, &json!({"mode": "lexical"})).await;
    gate.wait_until_reached().await;
    let waiting = client.create(&runs, &json!({"mode": "lexical"})).await;
    data(client.patch(&format!("/evaluations/{set}"), &json!({"agentId": id(&helper)})).await);
    gate.release();
    for started in [going_on, waiting] {
        let ended = ended(&client, &set, &started).await;
        assert_eq!(ended["agentId"], quoter["id"], "{ended:#}");
        let trace = &result(&ended, "Who founded the company?")["answer"]["traceId"];
        let trace = client.read(&format!("/traces/{}", trace.as_str().expect("an id"))).await;
        assert_eq!(trace["agentId"], quoter["id"], "{trace:#}");
    }
    assert!(model.bodies().iter().all(|body| body["model"] == "quoter"));
}

async fn a_run_tells_how_many_cases_failed(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let model = Model::start().await;
    model.always(Reply::status(400, &json!({"error": {"message": "No."}})));
    let agent = json!({"name": "clerk", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    let set = evaluation(&client, json!({"agentId": id(&agent)})).await;
    for question in ["Who founded the company?", "When was that?"] {
        case(&client, &set, question, json!("decline")).await;
    }
    run(&client, &set, json!({"mode": "lexical"})).await;
    let runs = client.read(&format!("/evaluations/{set}/runs")).await;
    let seen = (&runs[0]["state"], &runs[0]["done"], &runs[0]["metrics"]["failed"]);
    assert_eq!(seen, (&json!("succeeded"), &json!(2), &json!(2)), "{runs:#}");
}
