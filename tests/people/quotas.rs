//! What workspaces may hold and use, which the operator decides.

use std::time::Duration;

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Team, ask, assert_refused};
use crate::{
    dashboard::Visits,
    support::{
        client::{Client, data, envelope, id, send},
        in_both_modes,
        loopback::Gate,
        model::{INPUT_TOKENS, Model, OUTPUT_TOKENS, Reply},
        service::{Mode, Service},
        within_deadline,
    },
};

in_both_modes!(
    quotas_are_the_operators_to_set,
    documents_and_bytes_over_the_quota_are_refused_with_what_is_used,
    tokens_over_the_months_quota_are_refused_with_what_is_used,
    tokens_of_an_answer_that_is_cut_off_count,
    the_last_tokens_of_a_month_are_for_one_run_at_a_time,
);

/// A workspace of somebody's, and the operator, who is no member.
async fn setting(service: &Service) -> (Client, Team) {
    let operator = service.signed_up("operator@example.com").await;
    let ada = service.signed_up("ada@example.com").await;
    (operator, Team::of(&ada, "Archive").await)
}

/// Sets all of a workspace's quotas.
async fn set(operator: &Client, team: &Team, quotas: Value) {
    let changed = data(operator.patch(&team.path(""), &json!({ "quotas": quotas })).await);
    for (name, value) in quotas.as_object().expect("quotas") {
        assert_eq!(&changed["quotas"][name], value, "{name}: {changed:#}");
    }
    assert!(changed["used"]["documents"].is_u64(), "no quota is set blindly: {changed:#}");
}

async fn quotas_are_the_operators_to_set(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (operator, team) = setting(&service).await;
    let editor = team.joined(&service, "editor", "editor").await;
    let body = json!({ "quotas": { "documents": 1_000_000 } });
    for member in [&team.owner, &editor] {
        assert_refused(&member.patch(&team.path(""), &body).await, 403, "forbidden");
    }
    let quotas = json!({ "documents": 5, "bytes": 1_000, "tokensPerMonth": 100, "costPerMonth": 1.5 });
    set(&operator, &team, quotas.clone()).await;
    assert_eq!(editor.read(&team.path("")).await["quotas"], quotas);
    for (name, value) in [
        ("documents", json!(-1)),
        ("bytes", json!("many")),
        ("bytes", json!(1.5)),
        ("tokensPerMonth", json!(0.5)),
        ("costPerMonth", json!(-0.5)),
    ] {
        let answer = operator.patch(&team.path(""), &json!({ "quotas": { name: value } })).await;
        assert_refused(&answer, 422, "invalid_fields");
    }
    // The operator sets the limits of a workspace, and does not enter it.
    let operator_in = operator.in_workspace(&team.workspace);
    assert_refused(&operator_in.get("/documents").await, 404, "workspace");
    assert_refused(&operator.patch(&team.path(""), &json!({ "name": "Mine" })).await, 404, "not_found");
}

/// Refused for a quota, and the message says what is used.
#[track_caller]
fn assert_over(answer: &(StatusCode, Value), used: &str) {
    assert_refused(answer, 403, "quota_exceeded");
    let message = answer.1["error"]["message"].as_str().expect("a sentence");
    assert!(message.contains(used), "it does not say {used}: {message}");
}

async fn documents_and_bytes_over_the_quota_are_refused_with_what_is_used(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (operator, team) = setting(&service).await;
    let editor = team.joined(&service, "editor", "editor").await;
    let note = json!({ "name": "Note", "type": "TXT", "content": "The gate opens at nine." });
    set(&operator, &team, json!({ "documents": 1 })).await;
    let first = editor.ingest(&note).await;
    assert_over(&editor.post("/documents", &note).await, "1 of 1");
    set(&operator, &team, json!({ "documents": 0 })).await;
    assert_over(&editor.post("/documents", &note).await, "1 of 0");
    set(&operator, &team, json!({ "documents": 1 })).await;
    let script = super::api_token(&team.owner, json!({})).await;
    assert_over(&editor.with_token(&script).post("/documents", &note).await, "1 of 1");
    let used = editor.read(&team.path("")).await["used"].clone();
    assert_eq!(used["documents"], 1, "{used:#}");
    let bytes = used["bytes"].as_u64().expect("a number");
    assert!(bytes >= 23, "{used:#}");
    // It is that workspace's limit, and nobody else's.
    let ada = service.client().sign_in("ada@example.com", crate::support::client::PASSWORD).await;
    ada.create_document(&note).await;

    set(&operator, &team, json!({ "bytes": bytes })).await;
    assert_over(&editor.post("/documents", &note).await, &bytes.to_string());
    set(&operator, &team, json!({})).await;
    let second = editor.ingest(&note).await;
    assert_ne!(id(&second), id(&first));
    // A place that is given up can be taken again.
    set(&operator, &team, json!({ "documents": 2 })).await;
    assert_over(&editor.post("/documents", &note).await, "2 of 2");
    data(editor.delete(&format!("/documents/{}", id(&first))).await);
    editor.create_document(&note).await;
}

async fn tokens_over_the_months_quota_are_refused_with_what_is_used(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (operator, team) = setting(&service).await;
    let asker = team.joined(&service, "asker", "asker").await;
    let model = Model::start().await;
    model.always(Reply::text("I see."));
    let agent = json!({ "name": "guide", "type": "CHATVENDOR", "llm": model.llm("m") });
    let agent = id(&team.owner.create_agent(&agent).await).to_owned();
    let each = INPUT_TOKENS + OUTPUT_TOKENS;
    set(&operator, &team, json!({ "tokensPerMonth": each + 1 })).await;
    for _ in 0..2 {
        let (status, answer) = ask(&asker, &agent, "Well?").await;
        assert_eq!(status, StatusCode::OK, "{answer:#}");
    }
    let asked = model.requests().len();
    let used = (2 * each).to_string();
    assert_over(&ask(&asker, &agent, "Well?").await, &used);
    assert_over(&ask(&team.owner, &agent, "Well?").await, &used);
    assert_eq!(model.requests().len(), asked, "the model was not asked");
    let shown = asker.read(&team.path("")).await["used"].to_string();
    assert!(shown.contains(&used), "{shown}");
    // It counts on a page for members, whichever workspace their browser is in.
    let page = json!({ "slug": "guide", "access": "members" });
    let publication = format!("/agents/{agent}/publication");
    data(envelope(send(team.owner.request(Method::PUT, &publication).json(&page)).await).await);
    let browser = service.client();
    let mut visits = Visits::new(&service, &browser);
    visits.sign_in("asker@example.com").await;
    let question = [("question", "Well?")];
    assert_eq!(visits.submit("/ask/guide", &question).await.status(), StatusCode::FORBIDDEN);
    set(&operator, &team, json!({ "tokensPerMonth": 100 * each })).await;
    assert_eq!(visits.submit("/ask/guide", &question).await.status(), StatusCode::OK);
    assert_eq!(ask(&asker, &agent, "Well?").await.0, StatusCode::OK);
}

async fn the_last_tokens_of_a_month_are_for_one_run_at_a_time(mode: Mode) {
    const AT_ONCE: usize = 10;
    let service = Service::in_mode(mode).start().await;
    let (operator, team) = setting(&service).await;
    let asker = team.joined(&service, "asker", "asker").await;
    let (model, gate) = (Model::start().await, Gate::default());
    let agent = json!({ "name": "guide", "type": "CHATVENDOR", "llm": model.llm("m") });
    let agent = id(&team.owner.create_agent(&agent).await).to_owned();
    let allowed = 4 * (INPUT_TOKENS + OUTPUT_TOKENS) + 1;
    set(&operator, &team, json!({ "tokensPerMonth": allowed })).await;
    model.always(Reply::text("I see."));
    for _ in 0..4 {
        assert_eq!(ask(&asker, &agent, "Well?").await.0, StatusCode::OK);
    }
    // One token is left, and nobody knows what those use that are answered at the moment.
    model.always(Reply::gated("Let me", &gate, " think."));
    let answers = join_all((0..AT_ONCE).map(|_| ask(&asker, &agent, "Well?")));
    let released = async {
        gate.wait_until_reached().await;
        gate.release();
    };
    let (answers, ()) = tokio::join!(answers, released);
    let (answered, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|(status, _)| *status == StatusCode::OK);
    assert_eq!(answered.len(), 1, "{refused:#?}");
    for answer in &refused {
        assert_over(answer, &format!("of {allowed} tokens"));
    }
}

async fn tokens_of_an_answer_that_is_cut_off_count(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let (_, team) = setting(&service).await;
    let asker = team.joined(&service, "asker", "asker").await;
    let model = Model::start().await;
    let agent = json!({ "name": "guide", "type": "CHATVENDOR", "llm": model.llm("m") });
    let agent = id(&team.owner.create_agent(&agent).await).to_owned();
    let used = async || {
        let workspace = team.owner.read(&team.path("")).await;
        workspace["used"]["tokensThisMonth"].as_u64().expect("a number")
    };
    model.reply(Reply::status(401, &json!({})));
    assert_refused(&ask(&asker, &agent, "Well?").await, 502, "provider_unauthorized");
    assert_eq!(used().await, 0, "the model has not said a word");
    model.reply(Reply::cut_after("Half an answer"));
    assert_refused(&ask(&asker, &agent, "Well?").await, 502, "provider_truncated");
    let after_half = used().await;
    assert!(after_half > 0);

    // Somebody reads the answer, and hangs up before it is said what it used.
    model.reply(Reply::silent_after("The harbour gate opens at half past six."));
    let body = json!({ "input": { "input": "Well?" }, "has_streaming": true });
    let asked = asker.request(Method::POST, &format!("/agents/{agent}/predict")).json(&body);
    let mut answer = send(asked).await;
    let mut read = String::new();
    while !read.contains("half") {
        let piece = within_deadline("the answer", answer.chunk()).await.expect("a stream");
        read.push_str(&String::from_utf8_lossy(&piece.expect("more of the answer")));
    }
    drop(answer);
    let counted = async {
        while used().await == after_half {
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    within_deadline("the tokens to be counted", counted).await;
    // The next answer counts as the model says, and once.
    let before = used().await;
    model.reply(Reply::text("I see."));
    assert_eq!(ask(&asker, &agent, "Well?").await.0, StatusCode::OK);
    assert_eq!(used().await, before + INPUT_TOKENS + OUTPUT_TOKENS);
}
