//! Scores from a server with a `/rerank`: Jina's, Cohere's, Voyage's, vLLM's, llama.cpp's and others answer alike.

use std::{fmt, sync::Arc, time::Duration};

use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use lectern_shared::model::language::Language;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{PassageScore, RerankError, Reranker};
use crate::server::{ModelServer, RequestRejection, ServerEndpoint, ServerRetryPolicy};

const ENDPOINT: ServerEndpoint = ServerEndpoint { path: "rerank", settings: "LECTERN_RERANK" };
/// Room for an answer: what a score takes at most, with its document, which some servers send back unasked.
const BYTES_A_SCORE: usize = 256;
const BYTES_AROUND: usize = 64 * 1024;

/// A server and the model on it.
#[derive(Clone, Debug)]
pub struct ServerRerankerConfig {
    /// Its address up to `/rerank`, such as `https://api.jina.ai/v1`.
    pub url: Url,
    /// Its key.
    pub api_key: Option<SecretString>,
    /// What it calls the model.
    pub model: String,
    /// Languages that the model knows; all when none.
    pub languages: Option<Vec<Language>>,
}

/// Scores from a server.
#[derive(Clone)]
pub struct ServerReranker {
    state: Arc<ServerRerankerState>,
}

struct ServerRerankerState {
    config: ServerRerankerConfig,
    server: ModelServer,
}

impl fmt::Debug for ServerReranker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerReranker")
            .field("place", &self.state.server.place())
            .field("model", &self.state.config.model)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct RerankRequest<'a> {
    model: &'a str,
    query: &'a str,
    documents: &'a [String],
    top_n: usize,
    return_documents: bool,
}

#[derive(Deserialize)]
struct RerankResponse {
    #[serde(alias = "data")]
    results: Vec<RerankResult>,
}

#[derive(Deserialize)]
struct RerankResult {
    index: usize,
    #[serde(alias = "score")]
    relevance_score: f64,
}

impl ServerReranker {
    /// A reranker on a server. Nothing is sent.
    ///
    /// # Errors
    /// [`RerankError::Refused`] for settings that cannot be used.
    pub fn new(config: ServerRerankerConfig) -> Result<Self, RerankError> {
        let server =
            ModelServer::new(ENDPOINT, &config.url, config.api_key.as_ref(), ServerRetryPolicy::default())?;
        Ok(Self { state: Arc::new(ServerRerankerState { config, server }) })
    }
}

impl ServerRerankerState {
    async fn scores(
        &self,
        question: &str,
        passages: &[String],
        within: Duration,
    ) -> Result<Vec<PassageScore>, RerankError> {
        let request = RerankRequest {
            model: &self.config.model,
            query: question,
            documents: passages,
            top_n: passages.len(),
            return_documents: false,
        };
        let body = serde_json::to_vec(&request).map_err(|_| self.server.refused("nothing can be sent"))?;
        let texts: usize = passages.iter().map(String::len).sum();
        let room = BYTES_AROUND + 2 * texts + BYTES_A_SCORE * passages.len();
        let answer = self.server.ask(body.into(), room, within, None).await;
        let answer = answer.map_err(|rejected| match rejected {
            RequestRejection::Failed(error) => error,
            RequestRejection::Content(status) if status.is_server_error() => {
                self.server.away(format!("it answers {}", status.as_u16()))
            }
            RequestRejection::Content(status) => {
                let problem = format!(
                    "it does not take what it is sent ({}): is the model one for reranking?",
                    status.as_u16()
                );
                self.server.refused(problem)
            }
        })?;
        let foreign = || self.server.away("it does not answer as a reranking server does");
        let RerankResponse { results } = serde_json::from_slice(&answer).map_err(|_| foreign())?;
        let mut scores: Vec<PassageScore> = Vec::with_capacity(passages.len());
        for RerankResult { index, relevance_score } in results {
            #[expect(clippy::cast_possible_truncation, reason = "scores are compared, not computed with")]
            let score = relevance_score as f32;
            let known = scores.iter().any(|known| known.place == index);
            if index >= passages.len() || known || !score.is_finite() {
                return Err(foreign().into());
            }
            scores.push(PassageScore { place: index, score });
        }
        Ok(scores)
    }
}

impl Reranker for ServerReranker {
    fn name(&self) -> &str {
        &self.state.config.model
    }

    fn knows(&self, language: Language) -> bool {
        self.state.config.languages.as_ref().is_none_or(|known| known.contains(&language))
    }

    fn score(
        &self,
        question: String,
        passages: Vec<String>,
        within: Duration,
    ) -> BoxStream<'static, Result<PassageScore, RerankError>> {
        let state = Arc::clone(&self.state);
        stream::once(async move { state.scores(&question, &passages, within).await })
            .flat_map(|scored| {
                let each: Vec<_> = match scored {
                    Ok(scores) => scores.into_iter().map(Ok).collect(),
                    Err(error) => vec![Err(error)],
                };
                stream::iter(each)
            })
            .boxed()
    }
}
