//! Searches by meaning: what they are narrowed to as well, what they say of how passages were found, and what is answered
//! while the model is away.

use axum::response::IntoResponse;
use reqwest::{Method, StatusCode, header::RETRY_AFTER};
use serde_json::{Value, json};

use super::{names, note, search};
use crate::{
    embedding::model_is_there,
    support::{
        client::{Client, envelope, id, send},
        embeddings::Embeddings,
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(
    each_mode_tells_by_what_it_found_a_passage,
    what_is_found_by_meaning_is_narrowed_as_all_else,
    while_the_model_is_away_only_searches_by_meaning_alone_are_refused
);

async fn start(mode: Mode, server: &Embeddings) -> (Service, Client) {
    let service = Service::in_mode(mode)
        .env("LECTERN_EMBEDDER", "openai-compatible")
        .env("LECTERN_EMBEDDING_URL", &server.url())
        .env("LECTERN_EMBEDDING_MODEL", "synonyms");
    let service = service.start().await;
    let client = service.signed_up("ada@example.com").await;
    model_is_there(&service).await;
    (service, client)
}

async fn each_mode_tells_by_what_it_found_a_passage(mode: Mode) {
    let server = Embeddings::start().await;
    let (_service, client) = start(mode, &server).await;
    client.ingest(&note("Garage", "The automobile needs new tyres.")).await;
    client.ingest(&note("Clinic", "The physician is away in August.")).await;
    let first = async |query: &str, mode: &str| {
        let found = search(&client, json!({ "query": query, "mode": mode })).await;
        found.first().cloned().unwrap_or_default()
    };
    for (query, mode, name, by_meaning, by_words) in [
        ("car", "dense", "Garage", true, false),
        ("doctor", "dense", "Clinic", true, false),
        ("automobile", "dense", "Garage", true, false),
        ("automobile", "lexical", "Garage", false, true),
        ("automobile", "hybrid", "Garage", true, true),
        ("doctor", "hybrid", "Clinic", true, false),
    ] {
        let found = first(query, mode).await;
        assert_eq!(found["documentName"], name, "{query}, {mode}: {found:#}");
        let scores = &found["scores"];
        assert_eq!(
            (scores["dense"].is_f64(), scores["lexical"].is_f64()),
            (by_meaning, by_words),
            "{query}, {mode}: {found:#}"
        );
    }
    assert_eq!(first("car", "lexical").await, Value::Null, "no such word is there");
}

async fn what_is_found_by_meaning_is_narrowed_as_all_else(mode: Mode) {
    let server = Embeddings::start().await;
    let (service, client) = start(mode, &server).await;
    let mut ids = Vec::new();
    for (name, year) in [("north", 2025), ("south", 2026)] {
        let mut body = note(name, &format!("The automobile of the {name} yard."));
        body["metadata"] = json!({ "year": year });
        ids.push(id(&client.ingest(&body).await).to_owned());
    }
    let agent = client.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await;
    client.link(id(&agent), &ids[0]).await;
    for mode in ["dense", "hybrid"] {
        let found = async |narrowed: Value| {
            let mut body = json!({ "query": "car", "mode": mode });
            body.as_object_mut()
                .expect("an object")
                .extend(narrowed.as_object().cloned().unwrap_or_default());
            names(&search(&client, body).await).join(", ")
        };
        assert_eq!(found(json!({})).await, "north, south", "{mode}");
        assert_eq!(found(json!({ "filter": { "year": 2026 } })).await, "south", "{mode}");
        assert_eq!(found(json!({ "documentIds": [ids[0]] })).await, "north", "{mode}");
        assert_eq!(found(json!({ "agentId": id(&agent) })).await, "north", "{mode}");
        assert_eq!(found(json!({ "agentId": id(&agent), "filter": { "year": 2026 } })).await, "", "{mode}");
        assert_eq!(found(json!({ "documentIds": [] })).await, "", "{mode}");
    }
    let grace = service.signed_up("grace@example.com").await;
    let of_grace = search(&grace, json!({ "query": "car", "mode": "dense" })).await;
    assert_eq!(names(&of_grace), [""; 0]);
}

async fn while_the_model_is_away_only_searches_by_meaning_alone_are_refused(mode: Mode) {
    let server = Embeddings::start().await;
    let (_service, client) = start(mode, &server).await;
    client.ingest(&note("Garage", "The automobile needs new tyres.")).await;
    let ask = async |query: &str, mode: &str| {
        let body = json!({ "query": query, "mode": mode });
        let answer = send(client.request(Method::POST, "/search").json(&body)).await;
        let waits = answer.headers().contains_key(RETRY_AFTER);
        let (status, answer) = envelope(answer).await;
        (status, waits, answer)
    };
    for (trouble, passes) in [(StatusCode::INTERNAL_SERVER_ERROR, true), (StatusCode::UNAUTHORIZED, false)] {
        server.trouble(move |_| Some((trouble, "the question was: secret plans").into_response()));
        // Each question is a new one: the vectors of earlier ones are known.
        let (status, waits, refusal) = ask(&format!("dense {trouble}"), "dense").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{refusal:#}");
        assert_eq!(refusal["error"]["code"], "embedding_model_unavailable", "{refusal:#}");
        assert_eq!(waits, passes, "{trouble}: whether it helps to wait");
        assert!(!refusal.to_string().contains("secret plans"), "{refusal:#}");
        for mode in ["hybrid", "lexical"] {
            let (status, _, answer) = ask(&format!("automobile {trouble}"), mode).await;
            assert_eq!(status, StatusCode::OK, "{mode}: {answer:#}");
            assert_eq!(answer["data"][0]["documentName"], "Garage", "{mode}: {answer:#}");
        }
    }
    server.well();
    let (status, _, answer) = ask("car", "dense").await;
    assert_eq!(
        (status, &answer["data"][0]["documentName"]),
        (StatusCode::OK, &json!("Garage")),
        "{answer:#}"
    );
}
