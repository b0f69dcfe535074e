//! A reranking server on loopback, for which the passage is best that has the most stars.

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::loopback::Listening;

/// What a server does instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RerankTrouble {
    /// It answers with this status.
    Status(u16),
    /// It never answers.
    Silence,
}

#[derive(Default)]
struct Shared {
    requests: Mutex<Vec<Value>>,
    trouble: Mutex<Option<RerankTrouble>>,
}

/// The server. It stops when it is dropped.
pub struct RerankServer {
    shared: Arc<Shared>,
    listening: Listening,
}

impl RerankServer {
    /// The key that it asks for.
    pub const KEY: &str = "sk-rerank-key-of-these-tests";

    /// Starts a server.
    pub async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let answer = {
            let shared = Arc::clone(&shared);
            move |uri: Uri, headers: HeaderMap, body: Bytes| async move {
                assert_eq!(uri.path(), "/v1/rerank");
                assert_eq!(headers["authorization"], format!("Bearer {}", Self::KEY));
                shared.answer(&body).await
            }
        };
        let router = Router::new().fallback(answer);
        Self { shared, listening: Listening::start(router).await }
    }

    /// What `LECTERN_RERANK_URL` is to be.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.listening.address())
    }

    /// Every request so far, in order.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().clone()
    }

    /// What it does from now on instead of answering; it answers again when none.
    pub fn trouble(&self, trouble: Option<RerankTrouble>) {
        *self.shared.trouble.lock() = trouble;
    }
}

impl Shared {
    async fn answer(&self, body: &[u8]) -> Response {
        let body: Value = serde_json::from_slice(body).expect("a request in JSON");
        let documents: Vec<String> = serde_json::from_value(body["documents"].clone()).expect("texts");
        self.requests.lock().push(body);
        let trouble = *self.trouble.lock();
        match trouble {
            Some(RerankTrouble::Status(status)) => {
                return StatusCode::from_u16(status).expect("a status").into_response();
            }
            Some(RerankTrouble::Silence) => std::future::pending::<()>().await,
            None => {}
        }
        let stars = |text: &String| text.matches('*').count();
        let results: Vec<Value> = documents
            .iter()
            .enumerate()
            .map(|(index, text)| json!({"index": index, "relevance_score": stars(text)}))
            .collect();
        axum::Json(json!({"model": "stars", "results": results})).into_response()
    }
}
