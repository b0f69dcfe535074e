//! What is one user's does not exist for another, wherever its id is sent.

use std::collections::BTreeMap;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Operation, operations,
    rows::{Row, rows},
    things::{NOUNS, Things, answer},
};
use crate::support::{
    client::{Client, envelope, send},
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(another_users_ids_are_unknown_wherever_they_stand, a_user_can_make_every_request_by_api_token);

async fn another_users_ids_are_unknown_wherever_they_stand(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let hers = Things::of(&ada, "The gate opens at nine.").await;
    let own = Things::of(&grace, "The gate closes at six.").await;
    let script =
        grace.create("/api-tokens", &json!({ "description": "another script's", "role": "owner" })).await;
    let script = script["token"].as_str().expect("a value");
    let before = [everything(&ada, &hers).await, everything(&grace, &own).await];

    let described = operations(&grace).await;
    let mut swapped = 0;
    for row in rows() {
        let name = row.operation();
        let operation = described.iter().find(|operation| operation.name == name);
        let operation = operation.unwrap_or_else(|| panic!("{name} is no operation"));
        for (header, credential) in ways(operation, grace.token(), script) {
            let ask = async |things: &Things| {
                let request = row.request(&grace, things).header(header, &credential);
                envelope(send(request).await).await
            };
            if row.is_for_admins() {
                let (status, refusal) = ask(&hers).await;
                assert_eq!(status, StatusCode::FORBIDDEN, "{name} by somebody who is no admin: {refusal:#}");
                continue;
            }
            for noun in row.nouns() {
                let (status, refusal) = ask(&own.with(noun, hers.id(noun))).await;
                let about = format!("{name} with the {noun} of another user, by {header}: {refusal:#}");
                assert_eq!(status, StatusCode::NOT_FOUND, "{about}");
                let nobody = Uuid::now_v7().to_string();
                let (_, nobodys) = ask(&own.with(noun, &nobody)).await;
                let nobodys = without(&nobodys["error"], &nobody);
                let told = without(&refusal["error"], hers.id(noun));
                assert_eq!(told, nobodys, "it tells that it is somebody's: {about}");
                // An id of another kind is as unknown as one of nobody's.
                let other_kind = own.id(if noun == "prompt" { "agent" } else { "prompt" });
                let (status, refusal) = ask(&own.with(noun, other_kind)).await;
                assert_eq!(status, StatusCode::NOT_FOUND, "{name} with a {noun} that is none: {refusal:#}");
                let told = without(&refusal["error"], other_kind);
                assert_eq!(told, nobodys, "{name} with a {noun} that is none");
                swapped += 1;
            }
            if !row.nouns().is_empty() {
                let (status, refusal) = ask(&hers).await;
                assert_eq!(status, StatusCode::NOT_FOUND, "{name}, all of it another's: {refusal:#}");
            }
        }
    }
    assert!(swapped > 50, "so few ids prove nothing: {swapped}");
    let after = [everything(&ada, &hers).await, everything(&grace, &own).await];
    for (user, (before, after)) in ["Ada", "Grace"].into_iter().zip(before.iter().zip(&after)) {
        for (what, before) in before {
            assert_eq!(&after[what], before, "{what} of {user} has changed");
        }
    }
}

/// What the matrix of users refuses is refused for its ids: with one's own, every one of the requests succeeds.
async fn a_user_can_make_every_request_by_api_token(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let own = Things::of(&ada, "The gate opens at nine.").await;
    let script =
        ada.create("/api-tokens", &json!({ "description": "does everything", "role": "owner" })).await;
    let bearer = format!("Bearer {}", script["token"].as_str().expect("a value"));
    for row in rows() {
        let request = row.request(&ada, &own);
        let request = if row.needs_sign_in() {
            request.bearer_auth(ada.token())
        } else {
            request.header("Authorization", &bearer)
        };
        let (status, _, answer) = answer(request).await;
        assert_eq!(status, StatusCode::OK, "{}: {answer:#}", row.operation());
    }
}

/// An error as text, without the id that it repeats.
fn without(error: &Value, id: &str) -> String {
    error.to_string().replace(id, "…")
}

/// The headers that an operation takes credentials in.
fn ways(operation: &Operation, sign_in: &str, api_token: &str) -> Vec<(&'static str, String)> {
    let bearer = |token: &str| ("Authorization", format!("Bearer {token}"));
    let mut ways = vec![bearer(sign_in), bearer(api_token)];
    if operation.takes_api_token {
        ways.push(("X_SERVICE_API_KEY", api_token.to_owned()));
    }
    ways
}

/// Everything that a user can see, by the request that shows it.
async fn everything(user: &Client, things: &Things) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let is_admin = user.user()["isAdmin"] == true;
    let shows =
        |row: &Row| row.method == Method::GET && !row.is_outside() && (is_admin || !row.is_for_admins());
    for row in rows().into_iter().filter(shows) {
        let request = row.request(user, things).bearer_auth(user.token());
        let (status, _, mut answer) = answer(request).await;
        assert_eq!(status, StatusCode::OK, "{}: {answer:#}", row.target);
        forget_uses(&mut answer);
        all.insert(row.target.to_owned(), answer);
    }
    assert!(all.len() > NOUNS.len(), "so little proves nothing");
    all
}

/// API tokens tell when they were last used, which they may be meanwhile, and the audit log tells what was exported, as it is by
/// reading everything.
fn forget_uses(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("lastUsedAt");
            object.values_mut().for_each(forget_uses);
        }
        Value::Array(items) => {
            items.retain(|item| item["action"] != "exported");
            items.iter_mut().for_each(forget_uses);
        }
        Value::String(text) => {
            // An export has an object in each line.
            let object = |line: &str| serde_json::from_str(line).ok().filter(Value::is_object);
            if let Some(lines @ [_, ..]) = text.lines().map(object).collect::<Option<Vec<_>>>().as_deref() {
                *value = Value::from(lines);
                forget_uses(value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
