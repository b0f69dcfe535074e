//! What is kept of a question and its answer, and who may have it deleted.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Team, api_token, assert_refused, ingested, question, quoting_agent};
use crate::support::{
    client::{Client, data, id},
    in_both_modes,
    model::{Model, Reply},
    service::{Mode, Service},
};

in_both_modes!(
    an_answer_is_deleted_by_whoever_asked_and_by_those_who_build_agents,
    nothing_is_remembered_of_an_answer_that_is_deleted,
    a_case_outlives_the_answer_that_it_was_made_of,
);

/// Asks in a session, and returns the path of the trace.
async fn say(person: &Client, agent: &str, text: &str) -> String {
    let mut body = question(text);
    body["session"] = json!("a");
    let (status, answer) = person.post(&format!("/agents/{agent}/predict"), &body).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    format!("/traces/{}", id(&answer["trace"]))
}

/// An agent of a model that remembers what was said.
async fn agent_of(builder: &Client, model: &Model) -> String {
    let agent = json!({ "name": "guide", "type": "CHATVENDOR", "hasMemory": true, "llm": model.llm("m") });
    id(&builder.create_agent(&agent).await).to_owned()
}

async fn an_answer_is_deleted_by_whoever_asked_and_by_those_who_build_agents(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let builder = team.joined(&service, "builder", "builder").await;
    let editor = team.joined(&service, "editor", "editor").await;
    let asker = team.joined(&service, "asker", "asker").await;
    let stranger = service.signed_up("stranger@example.com").await;
    let model = Model::start().await;
    model.always(Reply::text("I see."));
    let agent = agent_of(&builder, &model).await;
    let bound = json!({ "role": "asker", "agentId": agent });
    let bound = ada.with_token(&api_token(&team.owner, bound).await);

    let own = say(&asker, &agent, "I like red.").await;
    let others = say(&editor, &agent, "I like blue.").await;
    let of_token = say(&bound, &agent, "I like green.").await;
    data(asker.post(&format!("{own}/feedback"), &json!({ "rating": 1, "text": "Nice." })).await);
    for (person, trace) in [(&asker, &others), (&editor, &own), (&asker, &of_token), (&stranger, &own)] {
        assert_refused(&person.delete(trace).await, 404, "not_found");
    }
    // Many may hold it, who are nobody to one another.
    assert_refused(&bound.delete(&of_token).await, 403, "token_restricted");
    for (person, trace) in [(&asker, &own), (&builder, &others), (&team.owner, &of_token)] {
        assert_eq!(data(person.delete(trace).await), Value::Null);
        assert_refused(&team.owner.get(trace).await, 404, "not_found");
        assert_refused(&person.delete(trace).await, 404, "not_found");
    }
    assert_eq!(team.owner.read("/traces").await, json!([]));
    let log = team.owner.read(&team.path("/audit?limit=3")).await;
    for (line, trace) in log.as_array().expect("a list").iter().zip([&of_token, &others, &own]) {
        let target = line["target"]["id"].as_str().expect("an id");
        assert_eq!(format!("/traces/{target}"), *trace, "{log:#}");
        assert_eq!(
            (&line["action"], &line["target"]["kind"]),
            (&json!("deleted"), &json!("trace")),
            "{log:#}"
        );
        assert_eq!(line["details"], json!({ "agent": agent }), "{log:#}");
    }
}

async fn nothing_is_remembered_of_an_answer_that_is_deleted(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::text("I see."));
    let agent = agent_of(&ada, &model).await;
    let red = say(&ada, &agent, "I like red.").await;
    say(&ada, &agent, "I like blue.").await;
    data(ada.delete(&red).await);
    say(&ada, &agent, "What do I like?").await;
    let told = model.bodies().pop().expect("a request").to_string();
    assert!(told.contains("I like blue.") && !told.contains("I like red."), "{told}");
}

async fn a_case_outlives_the_answer_that_it_was_made_of(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = quoting_agent(&ada, "guide").await;
    let document = ingested(&ada, "Rules", "The gate opens at nine.").await;
    ada.link(&agent, &document).await;
    let trace = say(&ada, &agent, "When does the gate open?").await;
    let evaluation = ada.create("/evaluations", &json!({ "name": "Gate" })).await;
    ada.create(&format!("{trace}/cases"), &json!({ "evaluationId": id(&evaluation) })).await;
    let cases = format!("/evaluations/{}/cases", id(&evaluation));
    let before = ada.read(&cases).await;
    assert_eq!(before[0]["question"], "When does the gate open?", "{before:#}");
    data(ada.delete(&trace).await);
    assert_eq!(ada.read(&cases).await, before);
}
