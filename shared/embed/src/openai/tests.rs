//! The embedder against servers that play the embedding server.

mod failures;

use std::time::Duration;

use lectern_shared::retry::RetryBackoff;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::scripted::{ScriptedReply, ScriptedRequest as Asked, ScriptedServer as Scripted};

/// Patient with servers, not with pauses.
fn quick() -> ServerRetryPolicy {
    ServerRetryPolicy {
        connect: Duration::from_secs(10),
        silence: Duration::from_secs(20),
        pauses: RetryBackoff { first: Duration::from_millis(1), longest: Duration::from_millis(5) },
        longest_wait: Duration::from_secs(5),
        passages: Duration::from_secs(20),
        question: Duration::from_secs(20),
        opening: Duration::from_secs(20),
    }
}

fn config(server: &Scripted) -> OpenAiConfig {
    OpenAiConfig {
        url: server.url.join("/v1").unwrap(),
        api_key: Some(SecretString::from("sk-hunter2")),
        model: "embedder-small".to_owned(),
        dimensions: None,
        max_tokens: 1_000,
        languages: None,
    }
}

/// An embedder of dimension 2 that has not asked anything yet.
fn embedder(server: &Scripted) -> OpenAiEmbedder {
    OpenAiEmbedder::build(config(server), 2, quick()).unwrap()
}

fn inputs(request: &Asked) -> Vec<String> {
    request.json()["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// A direction for each text: its number of characters.
fn direction(text: &str) -> [f64; 2] {
    let angle = f64::from(u32::try_from(text.chars().count()).unwrap()) / 1_000.0;
    [3.0 * angle.cos(), 3.0 * angle.sin()]
}

fn answer(request: &Asked) -> Value {
    let data: Vec<_> = inputs(request)
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": direction(text)}))
        .collect();
    json!({"object": "list", "data": data, "model": "embedder-small", "usage": {"total_tokens": 1}})
}

/// A server that is good but for what `first` answers; it is told how often it was asked before.
async fn server_but(
    first: impl Fn(&Asked, usize) -> Option<ScriptedReply> + Send + Sync + 'static,
) -> Scripted {
    let asked = Mutex::new(0);
    Scripted::start(move |request| {
        let before = {
            let mut asked = asked.lock();
            *asked += 1;
            *asked - 1
        };
        first(request, before).unwrap_or_else(|| ScriptedReply::json(&answer(request)))
    })
    .await
}

fn assert_directions(vectors: &[Vec<f32>], texts: &[String]) {
    assert_eq!(vectors.len(), texts.len());
    for (vector, text) in vectors.iter().zip(texts) {
        let wanted = direction(text);
        for (number, wanted) in vector.iter().zip(wanted) {
            assert!((f64::from(*number) - wanted / 3.0).abs() < 1e-6, "{text}: {vector:?}");
        }
    }
}

/// Texts that all differ in length.
fn texts(count: usize) -> Vec<String> {
    (1..=count).map(|length| "x".repeat(length)).collect()
}

#[tokio::test]
async fn passages_come_back_in_their_order_and_of_unit_length_whatever_order_the_server_has() {
    let server = server_but(|request, _| {
        let mut answer = answer(request);
        answer["data"].as_array_mut().unwrap().reverse();
        Some(ScriptedReply::json(&answer))
    })
    .await;
    let embedder = embedder(&server);
    let texts = texts(200);
    assert_directions(&embedder.embed_passages(texts.clone()).await.unwrap(), &texts);
    assert_directions(&[embedder.embed_question("abc").await.unwrap()], &["abc".to_owned()]);
    assert_eq!(embedder.embed_passages(Vec::new()).await.unwrap(), Vec::<Vec<f32>>::new());

    let asked = server.requests();
    let mut sizes: Vec<_> = asked.iter().map(|request| inputs(request).len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 8, 64, 64, 64]);
    for request in asked {
        assert_eq!(request.path, "/v1/embeddings");
        assert_eq!(request.header("authorization"), Some("Bearer sk-hunter2"));
        let body = request.json();
        assert_eq!((&body["model"], &body["encoding_format"]), (&json!("embedder-small"), &json!("float")));
        assert_eq!(body.get("dimensions"), None);
    }
}

#[tokio::test]
async fn the_dimension_is_learned_from_one_word_or_asked_for_and_required() {
    let server = server_but(|_, _| None).await;
    let learned = OpenAiEmbedder::connect(config(&server)).await.unwrap();
    assert_eq!(learned.space().dimensions, 2);
    assert_eq!(server.requests().len(), 1);

    let asking = |dimensions| OpenAiConfig { dimensions: Some(dimensions), ..config(&server) };
    let two = OpenAiEmbedder::connect(asking(2)).await.unwrap();
    assert_eq!(server.requests().len(), 1, "nothing has to be learned");
    two.embed_question("x").await.unwrap();
    assert_eq!(server.requests()[1].json()["dimensions"], 2);

    let three = OpenAiEmbedder::connect(asking(3)).await.unwrap();
    let error = three.embed_question("x").await.unwrap_err();
    assert!(matches!(error, EmbedError::Refused(_)));
    assert!(error.to_string().contains("vectors of 2 numbers, where 3 are expected"), "{error}");
    assert!(OpenAiEmbedder::with_dimensions(asking(3), 2).is_err());
}

#[tokio::test]
async fn a_space_is_the_place_the_model_and_the_dimension_and_not_the_key() {
    let server = server_but(|_, _| None).await;
    let build = |config| OpenAiEmbedder::with_dimensions(config, 2).unwrap().space().clone();
    let space = build(config(&server));
    let port = server.url.port().unwrap();
    assert_eq!(space.fact("kind"), Some("openai-compatible"));
    assert_eq!(space.fact("server"), Some(format!("127.0.0.1:{port}/v1").as_str()));
    assert_eq!((space.fact("model"), space.fact("dimensions")), (Some("embedder-small"), Some("2")));
    assert!(!format!("{space:?} {:?} {:?}", embedder(&server), config(&server)).contains("hunter2"));

    let same = OpenAiConfig { api_key: None, dimensions: Some(2), ..config(&server) };
    assert_eq!(build(same), space);
    let other = OpenAiConfig { model: "embedder-large".to_owned(), ..config(&server) };
    assert_ne!(build(other).id, space.id);
}

#[tokio::test]
async fn a_model_knows_all_languages_unless_the_operator_says_which() {
    let server = server_but(|_, _| None).await;
    assert!(embedder(&server).knows(Language::Japanese));
    let english = OpenAiConfig { languages: Some(vec![Language::English]), ..config(&server) };
    let english = OpenAiEmbedder::with_dimensions(english, 2).unwrap();
    assert!(english.knows(Language::English) && !english.knows(Language::Japanese));
}

#[tokio::test]
async fn texts_are_cut_at_the_limit_before_they_are_sent() {
    let server = server_but(|_, _| None).await;
    let short = OpenAiConfig { max_tokens: 3, ..config(&server) };
    let embedder = OpenAiEmbedder::build(short, 2, quick()).unwrap();
    assert_eq!((embedder.max_tokens(), embedder.count_tokens("one two three four")), (3, 4));
    embedder.embed_passages(vec!["東京都庁舎".to_owned(), "ok".to_owned()]).await.unwrap();
    embedder.embed_question("one two three four").await.unwrap();
    let sent: Vec<_> = server.requests().iter().map(inputs).collect();
    assert_eq!(sent, [vec!["東京都", "ok"], vec!["one two three "]]);
}

#[tokio::test]
async fn a_question_does_not_wait_for_passages() {
    let server = server_but(|request, _| {
        (inputs(request).len() > 1).then(|| ScriptedReply::json(&answer(request)).stall(0))
    })
    .await;
    let embedder = std::sync::Arc::new(embedder(&server));
    let passages = tokio::spawn({
        let embedder = std::sync::Arc::clone(&embedder);
        async move { embedder.embed_passages(texts(640)).await }
    });
    while server.requests().len() < PASSAGES_AT_ONCE {
        tokio::task::yield_now().await;
    }
    embedder.embed_question("now").await.unwrap();
    // Whoever goes away takes the requests along.
    passages.abort();
    server.left_by(PASSAGES_AT_ONCE).await;
    assert_eq!(server.requests().len(), PASSAGES_AT_ONCE + 1);
}
