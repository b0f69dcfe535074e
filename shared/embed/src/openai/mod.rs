//! Vectors from a server that speaks OpenAI's embeddings protocol: OpenAI itself, or one of the many programs that serve
//! models so.

mod answer;
mod batch;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use lectern_shared::{
    compute::{ComputePool, ComputeStopped},
    model::{language::Language, space::EmbeddingSpace},
};
use secrecy::SecretString;
use serde::Serialize;
use tokio::sync::Semaphore;
use url::Url;

use self::answer::AnswerError;
use super::{
    EmbedError, Embedder, approximate_tokens,
    server::{ModelServer, ModelServerError, RequestRejection, ServerEndpoint, ServerRetryPolicy},
};

/// Where vectors are asked for.
const ENDPOINT: ServerEndpoint = ServerEndpoint { path: "embeddings", settings: "LECTERN_EMBEDDING" };
/// Requests with passages that are under way at once, of all callers together.
const PASSAGES_AT_ONCE: usize = 4;
/// Questions that are under way at once. They never wait for passages.
const QUESTIONS_AT_ONCE: usize = 16;
/// Room for an answer: what one number takes at most, and everything around the numbers.
const BYTES_A_NUMBER: usize = 32;
const BYTES_AROUND: usize = 256 * 1024;
/// Numbers of a vector whose dimension is not known yet, at most.
const MAX_DIMENSIONS: usize = 65_536;
/// Anything will do.
const FIRST_WORD: &str = "dimension";

/// A server and the model on it.
#[derive(Clone, Debug)]
pub struct OpenAiConfig {
    /// Its address up to `/embeddings`, such as `https://api.openai.com/v1`.
    pub url: Url,
    /// Its key.
    pub api_key: Option<SecretString>,
    /// What it calls the model.
    pub model: String,
    /// Numbers in a vector, asked for in each request and required of each answer.
    pub dimensions: Option<usize>,
    /// The most tokens of a text, as [`approximate_tokens`] counts them; longer texts are cut.
    pub max_tokens: usize,
    /// Languages that the model knows; all when none.
    pub languages: Option<Vec<Language>>,
}

/// Vectors from a server. A dropped call stops its requests.
pub struct OpenAiEmbedder {
    config: OpenAiConfig,
    server: ModelServer,
    space: EmbeddingSpace,
    compute: ComputePool,
    passages: Semaphore,
    questions: Semaphore,
    /// Texts of a request that the server takes, as far as is known.
    most_texts: AtomicUsize,
}

impl fmt::Debug for OpenAiEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiEmbedder")
            .field("place", &self.server.place())
            .field("model", &self.config.model)
            .field("dimensions", &self.space.dimensions)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct EmbeddingsRequest<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

/// Texts of one request.
struct TextBatch {
    texts: Vec<String>,
    /// It is one text, which was cut because the server did not take it.
    cut: bool,
}

impl OpenAiEmbedder {
    /// An embedder whose dimension is the one that the settings ask for, or is learned by embedding one word.
    ///
    /// # Errors
    /// [`EmbedError::Refused`] for settings that cannot be used; anything when the word is embedded.
    pub async fn connect(config: OpenAiConfig) -> Result<Self, EmbedError> {
        Self::connect_with(config, ServerRetryPolicy::default()).await
    }

    /// An embedder whose dimension is known already; nothing is sent. A dimension that the settings ask for must be this
    /// one.
    ///
    /// # Errors
    /// [`EmbedError::Refused`] for settings that cannot be used.
    pub fn with_dimensions(config: OpenAiConfig, dimensions: usize) -> Result<Self, EmbedError> {
        Self::build(config, dimensions, ServerRetryPolicy::default())
    }

    async fn connect_with(config: OpenAiConfig, patience: ServerRetryPolicy) -> Result<Self, EmbedError> {
        if let Some(dimensions) = config.dimensions {
            return Self::build(config, dimensions, patience);
        }
        let mut embedder = Self::build(config, MAX_DIMENSIONS, patience)?;
        let word = vec![FIRST_WORD.to_owned()];
        let vectors = embedder.embed(word, None, patience.opening).await?;
        let dimensions = vectors.first().map_or(0, Vec::len);
        embedder.space = space(&embedder.server, &embedder.config, dimensions);
        Ok(embedder)
    }

    fn build(
        config: OpenAiConfig,
        dimensions: usize,
        patience: ServerRetryPolicy,
    ) -> Result<Self, EmbedError> {
        let server = ModelServer::new(ENDPOINT, &config.url, config.api_key.as_ref(), patience)?;
        if dimensions == 0 || dimensions > MAX_DIMENSIONS {
            return Err(server.refused(format!("a vector has 1 to {MAX_DIMENSIONS} numbers")).into());
        }
        if let Some(asked) = config.dimensions.filter(|asked| *asked != dimensions) {
            return Err(server
                .refused(format!("{asked} numbers are asked for, and {dimensions} are known"))
                .into());
        }
        if config.max_tokens == 0 {
            return Err(server.refused("a text has to have a token").into());
        }
        Ok(Self {
            space: space(&server, &config, dimensions),
            server,
            config,
            compute: ComputePool::per_core(),
            passages: Semaphore::new(PASSAGES_AT_ONCE),
            questions: Semaphore::new(QUESTIONS_AT_ONCE),
            most_texts: AtomicUsize::new(batch::MAX_TEXTS),
        })
    }

    /// Embeds texts that belong into one request. When the server does not take them, it gets them by halves; when it does
    /// not take one alone, it gets the half of that, once.
    async fn embed(
        &self,
        texts: Vec<String>,
        dimensions: Option<usize>,
        within: Duration,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(texts.len());
        let (mut halved, mut cut, mut most) = (false, false, 0);
        // The last one is next.
        let mut parts = vec![TextBatch { texts, cut: false }];
        while let Some(mut part) = parts.pop() {
            let limit = self.most_texts.load(Ordering::Relaxed);
            if part.texts.len() > limit {
                parts.push(TextBatch { texts: part.texts.split_off(limit), cut: false });
            }
            match self.request(&part.texts, dimensions, within).await {
                Ok(some) => {
                    most = most.max(some.len());
                    vectors.extend(some);
                }
                Err(RequestRejection::Failed(error)) => return Err(error.into()),
                Err(RequestRejection::Content(_)) if part.texts.len() > 1 => {
                    halved = true;
                    let second = part.texts.split_off(part.texts.len().div_ceil(2));
                    parts.push(TextBatch { texts: second, cut: false });
                    parts.push(part);
                }
                Err(RequestRejection::Content(_)) if !part.cut => {
                    cut = true;
                    parts.push(self.halve(part.texts).await?);
                }
                Err(RequestRejection::Content(status)) => {
                    let problem = format!(
                        "it does not take what it is sent ({}): is the model one for embeddings, and LECTERN_EMBEDDING_DIMENSIONS one that it has?",
                        status.as_u16()
                    );
                    return Err(self.server.refused(problem).into());
                }
            }
        }
        // Fewer texts at once helped, so it was their number and not the length of one.
        if halved && !cut {
            self.most_texts.fetch_min(most.max(1), Ordering::Relaxed);
        }
        Ok(vectors)
    }

    /// A text that was not taken, at half of its length or of the limit, whatever is less.
    async fn halve(&self, mut texts: Vec<String>) -> Result<TextBatch, ComputeStopped> {
        let limit = self.config.max_tokens;
        self.compute
            .run(move || {
                for text in &mut texts {
                    let tokens = approximate_tokens(text).min(limit);
                    batch::cut(text, tokens.div_ceil(2));
                }
                TextBatch { texts, cut: true }
            })
            .await
    }

    async fn request(
        &self,
        texts: &[String],
        dimensions: Option<usize>,
        within: Duration,
    ) -> Result<Vec<Vec<f32>>, RequestRejection> {
        let request = EmbeddingsRequest {
            model: &self.config.model,
            input: texts,
            encoding_format: "float",
            dimensions: self.config.dimensions,
        };
        let failed = |error: ModelServerError| RequestRejection::Failed(error);
        let body =
            serde_json::to_vec(&request).map_err(|_| failed(self.server.refused("nothing can be sent")))?;
        let numbers = texts.len().saturating_mul(dimensions.unwrap_or(MAX_DIMENSIONS));
        let max_answer = numbers.saturating_mul(BYTES_A_NUMBER).saturating_add(BYTES_AROUND);
        let answer = self.server.ask(body.into(), max_answer, within).await?;
        let count = texts.len();
        let read = self.compute.run(move || answer::vectors(&answer, count, dimensions)).await;
        let read = read.map_err(|stopped| failed(stopped.into()))?;
        read.map_err(|error| {
            failed(match error {
                // It will have them the next time as well.
                AnswerError::Dimensions { .. } => self.server.refused(error),
                AnswerError::Foreign | AnswerError::Count { .. } | AnswerError::Numbers => {
                    self.server.away(error)
                }
            })
        })
    }

    async fn embed_batch(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError> {
        let _slot = self.passages.acquire().await.map_err(|_| ComputeStopped)?;
        self.embed(texts, Some(self.space.dimensions), self.server.patience().passages).await
    }
}

#[async_trait]
impl Embedder for OpenAiEmbedder {
    fn space(&self) -> &EmbeddingSpace {
        &self.space
    }

    fn max_tokens(&self) -> usize {
        self.config.max_tokens
    }

    fn count_tokens(&self, text: &str) -> usize {
        approximate_tokens(text)
    }

    fn knows(&self, language: Language) -> bool {
        self.config.languages.as_ref().is_none_or(|known| known.contains(&language))
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError> {
        let limit = self.config.max_tokens;
        let batches = self.compute.run(move || batch::batches(texts, limit)).await?;
        let vectors: Vec<_> = stream::iter(batches)
            .map(|texts| self.embed_batch(texts))
            .buffered(PASSAGES_AT_ONCE)
            .try_collect()
            .await?;
        Ok(vectors.into_iter().flatten().collect())
    }

    async fn embed_question(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let limit = self.config.max_tokens;
        let mut text = text.to_owned();
        if text.len() > limit {
            text = self
                .compute
                .run(move || {
                    batch::cut(&mut text, limit);
                    text
                })
                .await?;
        }
        let within = self.server.patience().question;
        let embedded = tokio::time::timeout(within, async {
            let _slot = self.questions.acquire().await.map_err(|_| ComputeStopped)?;
            self.embed(vec![text], Some(self.space.dimensions), within).await
        });
        let vectors =
            embedded.await.unwrap_or_else(|_| Err(self.server.away("it does not answer in time").into()))?;
        vectors.into_iter().next().ok_or_else(|| self.server.away("it answers without a vector").into())
    }
}

/// What the vectors of a model on a server mean. Whether its dimension was asked for makes no difference: vectors of as many
/// numbers are the same.
fn space(server: &ModelServer, config: &OpenAiConfig, dimensions: usize) -> EmbeddingSpace {
    let facts: &[(&str, &dyn fmt::Display)] =
        &[("kind", &"openai-compatible"), ("server", &server.place()), ("model", &config.model)];
    EmbeddingSpace::new(&*config.model, dimensions, facts)
}
