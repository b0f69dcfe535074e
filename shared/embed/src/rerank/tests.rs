//! The reranker of a server, against servers that play it.

use std::time::Duration;

use futures::StreamExt as _;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::*;
use crate::scripted::{ScriptedReply, ScriptedRequest, ScriptedServer};

fn reranker(server: &ScriptedServer) -> ServerReranker {
    let config = ServerRerankerConfig {
        url: server.url.join("/v1").unwrap(),
        api_key: Some(SecretString::from("sk-hunter2")),
        model: "reranker-small".to_owned(),
        languages: None,
    };
    ServerReranker::new(config).unwrap()
}

/// The scores of three passages, and the error that came instead of further ones.
async fn scored(server: &ScriptedServer, within: Duration) -> (Vec<(usize, f32)>, Option<RerankError>) {
    let passages = ["one", "two", "three"].map(str::to_owned).to_vec();
    let mut scores = reranker(server).score("which".to_owned(), passages, within);
    let mut found = Vec::new();
    while let Some(score) = scores.next().await {
        match score {
            Ok(PassageScore { place, score }) => found.push((place, score)),
            Err(error) => return (found, Some(error)),
        }
    }
    (found, None)
}

async fn answered(answer: Value) -> (Vec<(usize, f32)>, Option<RerankError>) {
    let server = ScriptedServer::start(move |_: &ScriptedRequest| ScriptedReply::json(&answer)).await;
    scored(&server, Duration::from_secs(20)).await
}

#[tokio::test]
async fn a_server_is_asked_once_for_all_passages() {
    let server = ScriptedServer::start(|_: &ScriptedRequest| {
        ScriptedReply::json(&json!({"model": "m", "results": [
            {"index": 2, "relevance_score": 0.9, "document": {"text": "three"}}, {"index": 0, "relevance_score": -1.5},
        ]}))
    })
    .await;
    let (scores, problem) = scored(&server, Duration::from_secs(20)).await;
    assert_eq!(scores, [(2, 0.9), (0, -1.5)], "{problem:?}");
    let asked = server.requests();
    assert_eq!((asked.len(), asked[0].path.as_str()), (1, "/v1/rerank"));
    assert_eq!(asked[0].header("authorization"), Some("Bearer sk-hunter2"));
    assert_eq!(
        asked[0].json(),
        json!({"model": "reranker-small", "query": "which", "documents": ["one", "two", "three"], "top_n": 3,
               "return_documents": false})
    );
}

#[tokio::test]
async fn the_answers_of_several_vendors_are_read() {
    for (list, score) in [("results", "relevance_score"), ("data", "relevance_score"), ("results", "score")] {
        let (scores, problem) = answered(json!({list: [{"index": 1, score: 0.5}]})).await;
        assert_eq!(scores, [(1, 0.5)], "{list} {score}: {problem:?}");
    }
}

#[tokio::test]
async fn what_no_such_server_answers_is_an_error() {
    for answer in [
        json!({}),
        json!({"results": "none"}),
        json!({"results": [{"index": 3, "relevance_score": 1}]}),
        json!({"results": [{"index": 0, "relevance_score": 1}, {"index": 0, "relevance_score": 2}]}),
        json!({"results": [{"index": 0, "relevance_score": 1e300}]}),
        json!({"results": [{"index": 0}]}),
    ] {
        let (scores, problem) = answered(answer.clone()).await;
        assert!(scores.is_empty() && matches!(problem, Some(RerankError::Away(_))), "{answer}: {problem:?}");
    }
}

#[tokio::test]
async fn what_the_operator_has_to_change_is_said_without_secrets() {
    for (status, words) in [
        (401, "LECTERN_RERANK_API_KEY"),
        (404, "LECTERN_RERANK_URL, LECTERN_RERANK_MODEL"),
        (307, "LECTERN_RERANK_URL"),
        (422, "is the model one for reranking?"),
    ] {
        let server =
            ScriptedServer::start(move |_: &ScriptedRequest| ScriptedReply::new(status, "sk-hunter2 which"))
                .await;
        let (_, problem) = scored(&server, Duration::from_secs(20)).await;
        let Some(RerankError::Refused(problem)) = problem else { panic!("{status}: {problem:?}") };
        assert!(problem.contains(words) && !problem.contains("hunter2"), "{status}: {problem}");
    }
}

#[tokio::test]
async fn a_server_that_fails_again_and_again_is_away() {
    let server = ScriptedServer::start(|_: &ScriptedRequest| ScriptedReply::new(500, "which")).await;
    let (_, problem) = scored(&server, Duration::from_secs(20)).await;
    assert!(matches!(problem, Some(RerankError::Away(_))), "{problem:?}");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_server_is_not_waited_for_beyond_the_time() {
    let server = ScriptedServer::start(|_: &ScriptedRequest| ScriptedReply::ok("{}").stall(1)).await;
    let (scores, problem) = scored(&server, Duration::from_millis(100)).await;
    assert!(scores.is_empty() && matches!(problem, Some(RerankError::Away(_))), "{problem:?}");
    server.left_by(1).await;
}

#[test]
fn an_address_that_cannot_be_asked_is_refused() {
    let config = ServerRerankerConfig {
        url: "ftp://example.com".parse().unwrap(),
        api_key: None,
        model: "m".to_owned(),
        languages: None,
    };
    assert!(matches!(ServerReranker::new(config), Err(RerankError::Refused(_))));
}
