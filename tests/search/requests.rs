//! What can be asked, and what is refused.

use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::{ask, names, note, search};
use crate::{
    bodies::Refused,
    support::{
        client::{envelope, send},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(the_longest_questions_are_answered);

/// An object of so many keys.
fn keys(count: usize) -> Value {
    (0..count).map(|key| (format!("key {key}"), json!(key))).collect::<Map<_, _>>().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_field_of_a_search_is_named() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    client.ingest(&note("Rules", "The gate is green.")).await;
    let all_wrong = json!({
        "query": 5, "documentIds": "x", "agentId": 7, "filter": [], "limit": "x", "mode": "semantic",
    });
    for (body, named) in [
        (json!({}), &["query"][..]),
        (all_wrong, &["agentId", "documentIds", "filter", "limit", "mode", "query"]),
        (json!({ "query": null }), &["query"]),
        (json!({ "query": "" }), &["query"]),
        (json!({ "query": " \n\u{3000}" }), &["query"]),
        (json!({ "query": ["gate"] }), &["query"]),
        (json!({ "query": "é".repeat(10_001) }), &["query"]),
        (json!({ "query": "ga\0te" }), &["query"]),
        (json!({ "query": "gate", "limit": 0 }), &["limit"]),
        (json!({ "query": "gate", "limit": 51 }), &["limit"]),
        (json!({ "query": "gate", "limit": -1 }), &["limit"]),
        (json!({ "query": "gate", "limit": 2.5 }), &["limit"]),
        (json!({ "query": "gate", "limit": "x" }), &["limit"]),
        (json!({ "query": "gate", "limit": u64::MAX }), &["limit"]),
        (json!({ "query": "gate", "mode": "HYBRID" }), &["mode"]),
        (json!({ "query": "gate", "mode": ["dense"] }), &["mode"]),
        (json!({ "query": "gate", "documentIds": { "0": "x" } }), &["documentIds"]),
        (json!({ "query": "gate", "documentIds": ["x", 1, null] }), &["documentIds.1", "documentIds.2"]),
        (json!({ "query": "gate", "documentIds": vec!["x"; 1_001] }), &["documentIds"]),
        (json!({ "query": "gate", "filter": "year" }), &["filter"]),
        (json!({ "query": "gate", "filter": keys(21) }), &["filter"]),
        (json!({ "query": "gate", "filter": { "year": {} } }), &["filter.year"]),
        (json!({ "query": "gate", "filter": { "year": [] } }), &["filter.year"]),
        (json!({ "query": "gate", "filter": { "year": [[2026]] } }), &["filter.year"]),
        (
            json!({ "query": "gate", "filter": { "year": [2026, {}], "team": [null, []] } }),
            &["filter.team", "filter.year"],
        ),
        (json!({ "query": "gate", "filter": { "year": vec![2026; 101] } }), &["filter.year"]),
        (json!({ "query": "gate", "filter": { "year": "20\0" } }), &["filter.year"]),
    ] {
        assert_eq!(Refused::by(client.post("/search", &body).await).paths(), named, "{body:.200}");
    }
    for body in [
        json!({ "query": "é".repeat(10_000) }),
        json!({ "query": "gate", "limit": 1, "mode": "lexical" }),
        json!({ "query": "gate", "limit": 50, "mode": "hybrid" }),
        json!({ "query": "gate", "filter": keys(20) }),
        json!({ "query": "gate", "filter": { "year": vec![2026; 100] } }),
        json!({ "query": "gate", "cursor": 5, "userId": "somebody", "colour": {} }),
    ] {
        let (status, answer) = client.post("/search", &body).await;
        assert_eq!(status, StatusCode::OK, "{body:.200}: {answer:#}");
    }
}

/// A search makes nothing, so sending it again is searching again.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_is_made_anew_whatever_key_it_is_sent_with() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let keyed = async |question: &str| {
        let request = client.request(Method::POST, "/search").header("Idempotency-Key", "the same");
        let answer = send(request.json(&json!({ "query": question }))).await;
        assert_eq!(answer.headers().get("idempotent-replayed"), None);
        let (status, answer) = envelope(answer).await;
        assert_eq!(status, StatusCode::OK, "{answer:#}");
        answer["data"].as_array().expect("an array").len()
    };
    assert_eq!(keyed("gate").await, 0);
    client.ingest(&note("Rules", "The gate is green.")).await;
    assert_eq!(keyed("gate").await, 1);
    assert_eq!(keyed("cellar").await, 0);
}

/// Each search is a request like any other.
#[tokio::test(flavor = "multi_thread")]
async fn searches_count_towards_the_limit_of_requests() {
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_RATE_LIMIT", "5/h burst 5").start().await;
    let client = service.signed_up("ada@example.com").await;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(client.post("/search", &json!({ "query": "gate" })).await.0);
    }
    assert_eq!(statuses.last(), Some(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
    assert!(statuses.contains(&StatusCode::OK), "{statuses:?}");
}

async fn the_longest_questions_are_answered(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    client.ingest(&note("Rules", "The gate is green.")).await;
    let different = (0..1_400).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" ");
    for question in [
        format!("gate {}", &different[..9_900]),
        format!("{} gate", "x".repeat(9_990)),
        "gate ".repeat(2_000),
        format!("gate {}", "门".repeat(9_990)),
        format!("gate {}", "( ".repeat(4_990)),
        format!("gate {}", "\u{301}".repeat(9_990)),
        format!("gate {}", "a_b-c.d/".repeat(1_200)),
    ] {
        let found = ask(&client, &question).await;
        assert_eq!(names(&found), ["Rules"], "{question:.60}");
    }
    let found = search(&client, json!({ "query": "' OR 1=1; DROP TABLE chunks; -- gate \" * ^ ~2" })).await;
    assert_eq!(names(&found), ["Rules"], "nothing in a question is an operator");
}
