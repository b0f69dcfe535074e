//! What is kept of a question and its answer, and who may have it deleted.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Team, api_token, assert_refused, ingested, question, quoting_agent, user_id};
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
    of_two_turns_with_the_same_words_the_other_is_still_remembered,
    an_answer_that_is_deleted_is_not_given_again,
    a_trace_says_who_asked_and_traces_are_listed_by_that,
    all_that_one_asked_is_deleted_at_once_and_nothing_of_others,
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

async fn of_two_turns_with_the_same_words_the_other_is_still_remembered(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = agent_of(&ada, &model).await;
    model.always(Reply::text("First of all."));
    let first = say(&ada, &agent, "Go on.").await;
    model.always(Reply::text("Then as well."));
    say(&ada, &agent, "Go on.").await;
    data(ada.delete(&first).await);
    say(&ada, &agent, "What did you say?").await;
    let told = model.bodies().pop().expect("a request").to_string();
    assert!(told.contains("Then as well.") && !told.contains("First of all."), "{told}");
}

async fn an_answer_that_is_deleted_is_not_given_again(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::text("I see."));
    let agent = agent_of(&ada, &model).await;
    let mut body = question("I like red.");
    body["cache_ttl"] = json!(3600);
    let ask = async || {
        let (status, answer) = ada.post(&format!("/agents/{agent}/predict"), &body).await;
        assert_eq!(status, StatusCode::OK, "{answer:#}");
        id(&answer["trace"]).to_owned()
    };
    let first = ask().await;
    assert_eq!((ask().await, model.bodies().len()), (first.clone(), 1));
    data(ada.delete(&format!("/traces/{first}")).await);
    let second = ask().await;
    assert_eq!(model.bodies().len(), 2);
    data(ada.post("/traces/delete", &json!({ "askedBy": user_id(&ada) })).await);
    assert!(ask().await != second && model.bodies().len() == 3);
}

/// The paths of the traces that somebody is shown, the newest first.
async fn listed(person: &Client, query: &str) -> Vec<String> {
    let traces = person.read(&format!("/traces{query}")).await;
    let traces = traces.as_array().expect("a list");
    traces.iter().map(|trace| format!("/traces/{}", id(trace))).collect()
}

async fn a_trace_says_who_asked_and_traces_are_listed_by_that(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let builder = team.joined(&service, "builder", "builder").await;
    let asker = team.joined(&service, "asker", "asker").await;
    let agent = quoting_agent(&builder, "guide").await;
    let body = json!({ "description": "a page's", "role": "asker", "agentId": agent });
    let token = team.owner.create("/api-tokens", &body).await;
    let bound = ada.with_token(token["token"].as_str().expect("a value"));
    let own = say(&asker, &agent, "When does the gate open?").await;
    let others = say(&builder, &agent, "When does it close?").await;
    let of_token = say(&bound, &agent, "Where is it?").await;

    for (trace, user, by_token) in [
        (&own, json!(user_id(&asker)), Value::Null),
        (&others, json!(user_id(&builder)), Value::Null),
        // Whoever made the token need not have asked.
        (&of_token, Value::Null, token["id"].clone()),
    ] {
        let asked_by = json!({ "userId": user, "tokenId": by_token });
        assert_eq!(builder.read(trace).await["askedBy"], asked_by, "{trace}");
    }
    assert_eq!(bound.read(&of_token).await["askedBy"], json!({ "userId": null, "tokenId": token["id"] }));
    let by = |asker: &str| format!("?askedBy={asker}");
    let nothing: [String; 0] = [];
    assert_eq!(listed(&builder, "").await, [of_token.clone(), others.clone(), own.clone()]);
    assert_eq!(listed(&builder, &by(user_id(&asker))).await, std::slice::from_ref(&own));
    assert_eq!(listed(&builder, &by(user_id(&builder))).await, std::slice::from_ref(&others));
    assert_eq!(listed(&builder, &by(id(&token))).await, [of_token]);
    assert_eq!(listed(&builder, &by(user_id(&ada))).await, nothing);
    // By asking for others, nobody sees more than their own.
    assert_eq!(listed(&asker, &by(user_id(&asker))).await, [own]);
    assert_eq!(listed(&asker, &by(user_id(&builder))).await, nothing);
    assert_refused(&builder.get("/traces?askedBy=somebody").await, 404, "not_found");
}

async fn all_that_one_asked_is_deleted_at_once_and_nothing_of_others(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = Team::of(&ada, "Archive").await;
    let builder = team.joined(&service, "builder", "builder").await;
    let asker = team.joined(&service, "asker", "asker").await;
    let model = Model::start().await;
    model.always(Reply::text("I see."));
    let (agent, other) = (agent_of(&builder, &model).await, agent_of(&builder, &model).await);
    let bound = json!({ "role": "asker", "agentId": agent });
    let bound = ada.with_token(&api_token(&team.owner, bound).await);
    for (person, agent) in [(&asker, &agent), (&asker, &other), (&bound, &agent)] {
        say(person, agent, "I like red.").await;
    }
    let kept = say(&builder, &agent, "I like blue.").await;
    let delete = async |person: &Client, asker: &str| {
        person.post("/traces/delete", &json!({ "askedBy": asker })).await
    };
    let done = |traces: u64| json!({ "traces": traces, "remembered": traces, "hasMore": false });

    // Others than builders find their own alone, and holders of a token that is shared nobody's.
    assert_eq!(data(delete(&asker, user_id(&builder)).await), done(0));
    assert_refused(&delete(&bound, user_id(&ada)).await, 403, "token_restricted");
    assert_refused(&delete(&builder, "somebody").await, 404, "not_found");
    let elsewhere = service.signed_up("stranger@example.com").await;
    assert_eq!(data(delete(&elsewhere, user_id(&asker)).await), done(0));

    assert_eq!(data(delete(&builder, user_id(&asker)).await), done(2));
    assert_eq!(data(delete(&builder, user_id(&asker)).await), done(0), "again");
    assert_eq!(listed(&asker, "").await, [""; 0]);
    assert_eq!(listed(&builder, "").await.len(), 2, "that of the token is not its maker's");
    say(&asker, &agent, "What do I like?").await;
    let told = model.bodies().pop().expect("a request").to_string();
    assert!(!told.contains("I like red."), "{told}");
    assert_eq!(data(delete(&asker, user_id(&asker)).await), done(1));
    assert!(listed(&builder, "").await.contains(&kept));

    let log = team.owner.read(&team.path("/audit?limit=2")).await;
    for (line, (who, traces)) in log.as_array().expect("lines").iter().zip([(&asker, "1"), (&builder, "2")]) {
        assert_eq!((&line["action"], &line["actor"]["userId"]), (&json!("deleted"), &json!(user_id(who))));
        assert_eq!(line["target"], json!({ "kind": "traces", "id": user_id(&asker) }), "{log:#}");
        assert_eq!(line["details"], json!({ "traces": traces, "remembered": traces }), "{log:#}");
    }
}
