//! Embeddings: the service's own model, as OpenAI's clients ask for one.

use futures::future::join_all;
use serde_json::{Value, json};

use super::{post, success};
use crate::{
    embedding::model_is_there,
    support::{
        client::Client,
        embeddings::Embeddings,
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(
    texts_become_vectors_of_the_services_model,
    what_is_sent_in_parallel_waits_for_its_turn,
    without_a_model_there_is_none,
);

const MODEL: &str = "synonyms";

async fn embed(client: &Client, fields: Value) -> Value {
    let mut body = json!({ "model": MODEL });
    for (name, value) in fields.as_object().expect("fields") {
        body[name] = value.clone();
    }
    success(post(client, "/embeddings", &body).await)
}

/// The numbers of a vector that is written as Base64.
fn decoded(text: &str) -> Vec<f64> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let digit = DIGITS.iter().position(|digit| *digit == byte).expect("a digit of Base64");
        bits = (bits << 6) | u32::try_from(digit).expect("a digit");
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).expect("a byte"));
        }
    }
    bytes.chunks_exact(4).map(|four| f64::from(f32::from_le_bytes(four.try_into().expect("four")))).collect()
}

async fn texts_become_vectors_of_the_services_model(mode: Mode) {
    let server = Embeddings::start().await;
    let service = Service::in_mode(mode)
        .env("LECTERN_EMBEDDER", "openai-compatible")
        .env("LECTERN_EMBEDDING_URL", &server.url())
        .env("LECTERN_EMBEDDING_MODEL", MODEL)
        .start()
        .await;
    let ada = service.signed_up("ada@example.com").await;
    model_is_there(&service).await;
    let one = embed(&ada, json!({ "input": "a car" })).await;
    let several = embed(&ada, json!({ "input": ["a car", "a doctor"], "encoding_format": "float" })).await;
    let list = several["data"].as_array().expect("a list");
    assert_eq!((&several["object"], &several["model"], list.len()), (&json!("list"), &json!(MODEL), 2));
    assert_eq!(several["data"][0]["embedding"], one["data"][0]["embedding"], "{several:#}");
    assert_ne!(several["data"][1]["embedding"], one["data"][0]["embedding"], "{several:#}");
    for (index, vector) in list.iter().enumerate() {
        assert_eq!((&vector["object"], &vector["index"]), (&json!("embedding"), &json!(index)));
    }
    assert!(several["usage"]["total_tokens"].is_u64(), "{several:#}");

    let encoded = embed(&ada, json!({ "input": "a car", "encoding_format": "base64" })).await;
    let encoded = decoded(encoded["data"][0]["embedding"].as_str().expect("a text"));
    let plain: Vec<f64> = serde_json::from_value(one["data"][0]["embedding"].clone()).expect("numbers");
    assert_eq!(encoded.len(), plain.len());
    for (encoded, plain) in encoded.iter().zip(&plain) {
        assert!((encoded - plain).abs() < 1e-6, "{encoded} is not {plain}");
    }

    for (field, value) in [
        ("input", json!("")),
        ("input", json!([])),
        ("input", json!([1, 2, 3])),
        ("input", json!([["a"]])),
        ("encoding_format", json!("hex")),
        ("dimensions", json!(3)),
    ] {
        let mut body = json!({ "model": MODEL, "input": "a car" });
        body[field] = value;
        let (status, answer) = post(&ada, "/embeddings", &body).await;
        assert_eq!(status.as_u16(), 400, "{body}: {answer:#}");
        let param = answer["error"]["param"].as_str().expect("the field");
        assert!(param.starts_with(field), "{body}: {answer:#}");
    }
    let body = json!({ "model": "text-embedding-3-small", "input": "a car" });
    let (status, answer) = post(&ada, "/embeddings", &body).await;
    assert_eq!((status.as_u16(), &answer["error"]["code"]), (404, &json!("model_not_found")), "{answer:#}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(MODEL)), "{answer:#}");
}

async fn what_is_sent_in_parallel_waits_for_its_turn(mode: Mode) {
    let server = Embeddings::start().await;
    let service = Service::in_mode(mode)
        .env("LECTERN_EMBEDDER", "openai-compatible")
        .env("LECTERN_EMBEDDING_URL", &server.url())
        .env("LECTERN_EMBEDDING_MODEL", MODEL)
        .start()
        .await;
    let ada = service.signed_up("ada@example.com").await;
    model_is_there(&service).await;
    let batches = (0..40).map(|batch| {
        let texts: Vec<String> = (0..50).map(|text| format!("car {text} of batch {batch}")).collect();
        embed(&ada, json!({ "input": texts }))
    });
    for vectors in join_all(batches).await {
        assert_eq!(vectors["data"].as_array().map(Vec::len), Some(50), "{vectors:#}");
    }
}

async fn without_a_model_there_is_none(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let answer = post(&ada, "/embeddings", &json!({ "model": MODEL, "input": "a car" })).await;
    super::assert_refused(&answer, 404, "model_not_found");
}
