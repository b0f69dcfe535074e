//! An embedding server on loopback that speaks OpenAI's protocol and knows a few synonyms.

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

/// Words that mean the same.
const MEANINGS: [&[&str]; 4] =
    [&["car", "automobile"], &["doctor", "physician"], &["salary", "wage"], &["dog", "puppy"]];

/// What a server does instead of answering.
type Trouble = Box<dyn Fn(&[String]) -> Option<Response> + Send + Sync>;

#[derive(Default)]
struct Shared {
    /// Every text that was embedded, in order.
    texts: Mutex<Vec<String>>,
    /// The credentials of the last request.
    authorization: Mutex<Option<String>>,
    trouble: Mutex<Option<Trouble>>,
}

/// The server. It stops when it is dropped.
pub struct Embeddings {
    shared: Arc<Shared>,
    listening: Listening,
}

impl Embeddings {
    /// Starts a server.
    pub async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let answer = {
            let shared = Arc::clone(&shared);
            move |uri: Uri, headers: HeaderMap, body: Bytes| async move {
                assert_eq!(uri.path(), "/v1/embeddings");
                shared.answer(&headers, &body)
            }
        };
        let router = Router::new().fallback(answer);
        Self { shared, listening: Listening::start(router).await }
    }

    /// What `LECTERN_EMBEDDING_URL` is to be.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.listening.address())
    }

    /// Every text that was embedded so far, in order.
    pub fn texts(&self) -> Vec<String> {
        self.shared.texts.lock().clone()
    }

    /// The credentials of the last request.
    pub fn authorization(&self) -> Option<String> {
        self.shared.authorization.lock().clone()
    }

    /// From now on `trouble` decides which requests are answered otherwise.
    pub fn trouble(&self, trouble: impl Fn(&[String]) -> Option<Response> + Send + Sync + 'static) {
        *self.shared.trouble.lock() = Some(Box::new(trouble));
    }

    /// From now on every request is answered as it should be.
    pub fn well(&self) {
        *self.shared.trouble.lock() = None;
    }
}

impl Shared {
    fn answer(&self, headers: &HeaderMap, body: &[u8]) -> Response {
        let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
        *self.authorization.lock() = text("authorization").map(str::to_owned);
        let body: Value = serde_json::from_slice(body).expect("a request in JSON");
        let texts: Vec<String> = match &body["input"] {
            Value::String(text) => vec![text.clone()],
            several => serde_json::from_value(several.clone()).expect("a list of texts"),
        };
        if let Some(trouble) = self.trouble.lock().as_ref().and_then(|trouble| trouble(&texts)) {
            return trouble;
        }
        let data: Vec<Value> = texts
            .iter()
            .enumerate()
            .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": vector(text)}))
            .collect();
        self.texts.lock().extend(texts);
        let answer = json!({"object": "list", "model": body["model"], "data": data});
        (StatusCode::OK, axum::Json(answer)).into_response()
    }
}

/// A vector that is near those of texts with the same meanings.
fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; MEANINGS.len() + 1];
    vector[MEANINGS.len()] = 0.1;
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
        if let Some(at) = MEANINGS.iter().position(|words| words.contains(&word)) {
            vector[at] += 1.0;
        }
    }
    vector
}
