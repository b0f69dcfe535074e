//! API tokens, and the headers in which they and sign-ins come.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::text;
use crate::{
    shapes::is_timestamp,
    support::{
        DEADLINE,
        client::{data, envelope, id, send},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(
    an_api_token_shows_its_value_in_every_answer,
    an_api_token_does_everything_that_a_sign_in_does,
    predict_takes_an_api_token_in_each_of_its_headers,
    a_deleted_api_token_opens_nothing_any_more,
    an_api_token_tells_when_it_was_last_used
);

async fn an_api_token_shows_its_value_in_every_answer(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let created = ada.create("/api-tokens", &json!({ "description": "for the build" })).await;
    let other = ada.create("/api-tokens", &json!({ "description": "for the build" })).await;
    let value = text(&created["token"]);
    let digits = value.strip_prefix("lec_").expect("a token says whose it is");
    assert!(digits.len() == 43 && digits.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{value}");
    assert_ne!(other["token"], created["token"]);
    assert_eq!(created["description"], "for the build");
    assert_eq!(&created["user"], ada.user());

    let path = format!("/api-tokens/{}", id(&created));
    assert_eq!(ada.read(&path).await, created);
    assert_eq!(ada.read("/api-tokens").await, json!([other, created]));
    assert_eq!(data(ada.delete(&path).await), created);
    assert_eq!(ada.read("/api-tokens").await, json!([other]));
    assert_eq!(ada.get(&path).await.0, StatusCode::NOT_FOUND);
    assert_eq!(ada.delete(&path).await.0, StatusCode::NOT_FOUND);
}

async fn an_api_token_does_everything_that_a_sign_in_does(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let token = ada.create("/api-tokens", &json!({ "description": "a script's" })).await;
    let script = ada.with_token(text(&token["token"]));

    assert_eq!(&script.read("/users/me").await, ada.user());
    let document = json!({ "name": "Note", "type": "TXT", "content": "The gate opens at nine." });
    let document = script.ingest(&document).await;
    let agent = script.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await;
    script.link(id(&agent), id(&document)).await;
    let question = json!({ "input": { "input": "When does the gate open?" } });
    let answer = script.create(&format!("/agents/{}/predict", id(&agent)), &question).await;
    assert!(text(&answer).contains("nine"), "{answer}");
    script.create("/api-tokens", &json!({ "description": "made by another" })).await;
}

async fn predict_takes_an_api_token_in_each_of_its_headers(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = ada.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await;
    let token = ada.create("/api-tokens", &json!({ "description": "a script's" })).await;
    let token = text(&token["token"]);

    let path = format!("/api/v1/agents/{}/predict", id(&agent));
    for (header, value) in [
        ("X_SERVICE_API_KEY", token.to_owned()),
        ("X-Service-Api-Key", token.to_owned()),
        ("Autorization", format!("Bearer {token}")),
        ("Authorization", format!("Bearer {token}")),
        ("Authorization", format!("Bearer {}", ada.token())),
    ] {
        let request = ada.request_outside(Method::POST, &path).header(header, value);
        let (status, answer) =
            envelope(send(request.json(&json!({ "input": { "input": "?!" } }))).await).await;
        assert_eq!(status, StatusCode::OK, "{header}: {answer:#}");
    }
    // A header that has the form of the other one.
    let request =
        ada.request_outside(Method::POST, &path).header("X_SERVICE_API_KEY", format!("Bearer {token}"));
    let (status, answer) = envelope(send(request.json(&json!({ "input": { "input": "?!" } }))).await).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{answer:#}");
    assert!(text(&answer["error"]["message"]).contains("alone in `X_SERVICE_API_KEY`"), "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_spellings_of_the_bearer_header_are_read_and_its_scheme_in_any_case() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    for header in ["Autorization", "Authorization", "autorization"] {
        for scheme in ["Bearer", "bearer", "BEARER"] {
            let request = ada.request_outside(Method::GET, "/api/v1/users/me");
            let request = request.header(header, format!("{scheme} {}", ada.token()));
            let (status, answer) = envelope(send(request).await).await;
            assert_eq!(status, StatusCode::OK, "{header}: {scheme} …: {answer:#}");
        }
    }
}

async fn a_deleted_api_token_opens_nothing_any_more(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = ada.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await;
    let lost = ada.create("/api-tokens", &json!({ "description": "lost" })).await;
    let kept = ada.create("/api-tokens", &json!({ "description": "kept" })).await;
    let [lost_one, kept_one] = [&lost, &kept].map(|token| ada.with_token(text(&token["token"])));
    let predict = format!("/api/v1/agents/{}/predict", id(&agent));
    let ask = async |header: &str| {
        let request = ada.request_outside(Method::POST, &predict).header(header, text(&lost["token"]));
        envelope(send(request.json(&json!({ "input": { "input": "Well?" } }))).await).await.0
    };
    lost_one.read("/documents").await;
    assert_eq!(ask("X_SERVICE_API_KEY").await, StatusCode::OK);

    data(ada.delete(&format!("/api-tokens/{}", id(&lost))).await);
    assert_eq!(lost_one.get("/documents").await.0, StatusCode::UNAUTHORIZED);
    for header in ["X_SERVICE_API_KEY", "X-Service-Api-Key"] {
        assert_eq!(ask(header).await, StatusCode::UNAUTHORIZED, "{header}");
    }
    kept_one.read("/documents").await;
}

async fn an_api_token_tells_when_it_was_last_used(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let token = ada.create("/api-tokens", &json!({ "description": "a script's" })).await;
    assert_eq!(token["lastUsedAt"], Value::Null);

    ada.with_token(text(&token["token"])).read("/users/me").await;
    let started = Instant::now();
    let path = format!("/api-tokens/{}", id(&token));
    let used = loop {
        let used = ada.read(&path).await["lastUsedAt"].take();
        if !used.is_null() {
            break used;
        }
        assert!(started.elapsed() < DEADLINE, "the use of {path} was not noted");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(is_timestamp(&used), "{used}");
}
