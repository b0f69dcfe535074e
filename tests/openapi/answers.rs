//! Answers that only some requests get: the document tells of them, too.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Operation, document, operations, schema::Schemas};
use crate::support::{
    client::{PASSWORD, id},
    model::{Model, Reply},
    service::Service,
};

fn operation<'a>(document: &'a Value, name: &str) -> Operation<'a> {
    let found = operations(document).into_iter().find(|operation| operation.id == name);
    found.unwrap_or_else(|| panic!("there is no operation {name}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn how_an_agent_answers_whole_and_in_pieces_and_how_its_model_fails_is_described() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    let document = document();
    let ask = async |name: &str, path: &str, body: &Value| {
        operation(&document, name).send(client.request_anywhere(Method::POST, path).json(body)).await.0
    };
    let messages = json!([{"role": "user", "content": "Well?"}]);
    for (name, path, mut body) in [
        (
            "openaiCreateChatCompletion",
            "/v1/chat/completions".to_owned(),
            json!({"model": id(&agent), "messages": messages}),
        ),
        ("openaiCreateResponse", "/v1/responses".to_owned(), json!({"model": id(&agent), "input": "Well?"})),
        ("predict", format!("/api/v1/agents/{}/predict", id(&agent)), json!({"input": {"input": "Well?"}})),
    ] {
        model.reply(Reply::text("It opens at nine."));
        assert_eq!(ask(name, &path, &body).await, StatusCode::OK, "{name}");
        model.reply(Reply::status(401, &json!({"error": {"message": "No such key."}})));
        assert_eq!(ask(name, &path, &body).await, StatusCode::BAD_GATEWAY, "{name}");
        body["stream"] = json!(true);
        body["has_streaming"] = json!(true);
        model.reply(Reply::text("It opens at nine."));
        assert_eq!(ask(name, &path, &body).await, StatusCode::OK, "{name}");
    }
    // The newest are those of predict.
    let traces = client.read("/traces").await;
    for (trace, streamed, status) in
        [(0, true, StatusCode::OK), (1, false, StatusCode::BAD_GATEWAY), (2, false, StatusCode::OK)]
    {
        let path = format!("/api/v1/traces/{}/replay", id(&traces[trace]["trace"]));
        let replayed = ask("replayTrace", &path, &json!({"has_streaming": streamed})).await;
        assert_eq!(replayed, status, "{:#}", traces[trace]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn that_a_last_owner_cannot_delete_the_account_is_described() {
    let service = Service::start().await;
    let (ada, grace) =
        (service.signed_up("ada@example.com").await, service.signed_up("grace@example.com").await);
    let team = ada.create("/workspaces", &json!({"name": "Support"})).await;
    let invitations = format!("/workspaces/{}/invitations", id(&team));
    let invitation = ada.create(&invitations, &json!({"role": "editor"})).await;
    grace.create("/invitations/accept", &json!({"token": invitation["token"]})).await;
    let document = document();
    let request = ada.request(Method::DELETE, "/users/me").json(&json!({"password": PASSWORD}));
    let (status, answer) = operation(&document, "deleteMe").send(request).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (StatusCode::CONFLICT, &json!("last_owner")),
        "{answer:#}"
    );
}

/// Generated clients refuse what fits more than one of the forms of which it has to fit exactly one.
#[test]
fn an_address_alone_is_what_a_site_may_have_and_a_feed() {
    let document = document();
    let config = &document["components"]["schemas"]["SourceConfig"];
    for given in [
        json!({"url": "https://example.com/handbook/"}),
        json!({"bucket": "handbook"}),
        json!({"path": "/srv/handbook"}),
    ] {
        let problems = Schemas(&document).problems(config, &given);
        assert!(problems.is_empty(), "{given}: {problems:#?}");
    }
}
