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
    compute::ComputePool,
    model::{language::Language, space::EmbeddingSpace},
};
use reqwest::StatusCode;
use secrecy::SecretString;
use serde::Serialize;
use tokio::sync::Semaphore;
use url::Url;

use self::{answer::AnswerError, batch::TextBatch};
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
    /// Tokens of a text that the server takes, as far as is known.
    most_tokens: AtomicUsize,
    /// Tokens of the longest text that it took.
    longest_taken: AtomicUsize,
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

/// How texts are sent.
#[derive(Clone, Copy)]
struct RequestTerms<'a> {
    /// Numbers of each vector; any when not known.
    dimensions: Option<usize>,
    /// One request, all its tries together.
    within: Duration,
    /// Of which each try takes one.
    slots: &'a Semaphore,
}

/// What is learned of a server while some texts are embedded.
#[derive(Default)]
struct LearnedLimits {
    /// Some were sent in parts.
    is_split: bool,
    /// It failed at some of them, each time that it was asked.
    is_by_faults: bool,
    /// The most of them that it took at once.
    most_texts: usize,
    /// The tokens of the longest that was cut, as it was taken.
    cut_to: Option<usize>,
}

impl LearnedLimits {
    fn took(&mut self, part: &TextBatch) {
        self.most_texts = self.most_texts.max(part.texts.len());
        if part.is_cut {
            self.cut_to = self.cut_to.max(Some(part.longest));
        }
    }
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
    #[cfg(test)]
    pub(crate) fn with_dimensions(config: OpenAiConfig, dimensions: usize) -> Result<Self, EmbedError> {
        Self::build(config, dimensions, ServerRetryPolicy::default())
    }

    async fn connect_with(config: OpenAiConfig, patience: ServerRetryPolicy) -> Result<Self, EmbedError> {
        if let Some(dimensions) = config.dimensions {
            return Self::build(config, dimensions, patience);
        }
        let mut embedder = Self::build(config, MAX_DIMENSIONS, patience)?;
        let terms = RequestTerms { dimensions: None, within: patience.opening, slots: &embedder.questions };
        let vectors = embedder.embed(TextBatch::new(vec![FIRST_WORD.to_owned()]), terms).await?;
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
            most_tokens: AtomicUsize::new(config.max_tokens),
            longest_taken: AtomicUsize::new(0),
            config,
            compute: ComputePool::per_core(),
            passages: Semaphore::new(PASSAGES_AT_ONCE),
            questions: Semaphore::new(QUESTIONS_AT_ONCE),
            most_texts: AtomicUsize::new(batch::MAX_TEXTS),
        })
    }

    /// Embeds texts that belong into one request. When the server does not take them, it gets them by halves; when it does
    /// not take one alone, it gets less and less of that.
    async fn embed(&self, batch: TextBatch, terms: RequestTerms<'_>) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(batch.texts.len());
        let mut learned = LearnedLimits::default();
        // The last one is next.
        let mut parts = vec![batch];
        while let Some(mut part) = parts.pop() {
            parts.extend(part.split_off(self.most_texts.load(Ordering::Relaxed)));
            let mut answered = self.request(&part.texts, terms).await;
            if let Err(RequestRejection::Content(status)) = answered
                && status.is_server_error()
                && !learned.is_by_faults
            {
                // What it failed at may have passed: a model that is being loaded, or memory that others took.
                self.probe(terms).await?;
                answered = self.request(&part.texts, terms).await;
            }
            match answered {
                Ok(some) => {
                    learned.took(&part);
                    self.longest_taken.fetch_max(part.longest, Ordering::Relaxed);
                    vectors.extend(some);
                }
                Err(RequestRejection::Failed(error)) => return Err(error.into()),
                Err(RequestRejection::Content(status)) => {
                    learned.is_by_faults |= status.is_server_error();
                    if part.texts.len() > 1 {
                        learned.is_split = true;
                        parts.extend(too_many(part));
                    } else {
                        parts.push(self.too_long(part, status, terms).await?);
                    }
                }
            }
        }
        self.remember(&learned);
        Ok(vectors)
    }

    /// Asks for the vector of a word, so that a server that fails at everything is known to be away: no text is to blame then.
    async fn probe(&self, terms: RequestTerms<'_>) -> Result<(), EmbedError> {
        match self.request(&[FIRST_WORD.to_owned()], terms).await {
            Ok(_) => Ok(()),
            Err(RequestRejection::Failed(error)) => Err(error.into()),
            Err(RequestRejection::Content(status)) => {
                Err(self.server.away(format!("it answers {}", status.as_u16())).into())
            }
        }
    }

    /// Less of a text that the server did not take.
    async fn too_long(
        &self,
        text: TextBatch,
        status: StatusCode,
        terms: RequestTerms<'_>,
    ) -> Result<TextBatch, EmbedError> {
        let known = self.most_tokens.load(Ordering::Relaxed);
        if let Some(shorter) = self.compute.run(move || text.shortened(known)).await? {
            return Ok(shorter);
        }
        // It may have begun to fail at everything meanwhile.
        if status.is_server_error() {
            self.probe(terms).await?;
        }
        let problem = format!(
            "it does not take what it is sent ({}): is the model one for embeddings, and LECTERN_EMBEDDING_DIMENSIONS one that it has?",
            status.as_u16()
        );
        Err(self.server.refused(problem).into())
    }

    /// Keeps what was learned for all that is embedded later. One text that is made of many tokens must not shorten all others, so
    /// the length of any that was taken counts.
    fn remember(&self, learned: &LearnedLimits) {
        // What a server fails at today it may take tomorrow.
        if learned.is_by_faults {
            return;
        }
        if let Some(cut_to) = learned.cut_to {
            let most = cut_to.max(self.longest_taken.load(Ordering::Relaxed));
            self.most_tokens.fetch_min(most, Ordering::Relaxed);
        } else if learned.is_split {
            // Fewer texts at once helped, so it was their number and not the length of one.
            self.most_texts.fetch_min(learned.most_texts.max(1), Ordering::Relaxed);
        }
    }

    async fn request(
        &self,
        texts: &[String],
        RequestTerms { dimensions, within, slots }: RequestTerms<'_>,
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
        let answer = self.server.ask(body.into(), max_answer, within, Some(slots)).await?;
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

    async fn embed_batch(&self, batch: TextBatch) -> Result<Vec<Vec<f32>>, EmbedError> {
        let within = self.server.patience().passages;
        let dimensions = Some(self.space.dimensions);
        self.embed(batch, RequestTerms { dimensions, within, slots: &self.passages }).await
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
        let limit = self.most_tokens.load(Ordering::Relaxed);
        let batches = self.compute.run(move || batch::batches(texts, limit)).await?;
        let vectors: Vec<_> = stream::iter(batches)
            .map(|batch| self.embed_batch(batch))
            .buffered(PASSAGES_AT_ONCE)
            .try_collect()
            .await?;
        Ok(vectors.into_iter().flatten().collect())
    }

    async fn embed_question(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let limit = self.most_tokens.load(Ordering::Relaxed);
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
        let dimensions = Some(self.space.dimensions);
        let terms = RequestTerms { dimensions, within, slots: &self.questions };
        // With the time that it waits for a slot.
        let embedded = tokio::time::timeout(within, self.embed(TextBatch::new(vec![text]), terms));
        let vectors =
            embedded.await.unwrap_or_else(|_| Err(self.server.away("it does not answer in time").into()))?;
        vectors.into_iter().next().ok_or_else(|| self.server.away("it answers without a vector").into())
    }
}

/// Texts that the server did not take at once, by halves, of which the last one is next.
fn too_many(mut part: TextBatch) -> impl Iterator<Item = TextBatch> {
    let second = part.split_off(part.texts.len().div_ceil(2));
    second.into_iter().chain([part])
}

/// What the vectors of a model on a server mean. Whether its dimension was asked for makes no difference: vectors of as many
/// numbers are the same.
fn space(server: &ModelServer, config: &OpenAiConfig, dimensions: usize) -> EmbeddingSpace {
    let facts: &[(&str, &dyn fmt::Display)] =
        &[("kind", &"openai-compatible"), ("server", &server.place()), ("model", &config.model)];
    EmbeddingSpace::new(&*config.model, dimensions, facts)
}
