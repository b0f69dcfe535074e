//! Models for tests: one that knows a few synonyms, and one that counts stars.

#![allow(missing_docs, clippy::indexing_slicing, clippy::new_without_default, reason = "for tests")]

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use lectern_shared::model::{language::Language, space::EmbeddingSpace};
use parking_lot::Mutex;

use super::{EmbedError, Embedder, PassageScore, RerankError, Reranker, approximate_tokens};

/// Words that mean the same, a direction each; any other word means nothing.
const MEANINGS: [&[&str]; 6] = [
    &["car", "automobile", "vehicle"],
    &["doctor", "physician"],
    &["money", "salary", "wage"],
    &["dog", "puppy"],
    &["house", "home"],
    &["rain", "storm"],
];

/// A model that knows English and the meanings of a few words.
#[derive(Debug)]
pub struct Synonyms {
    space: EmbeddingSpace,
    /// What it answers next instead of a vector.
    pub fails: Mutex<Option<fn() -> EmbedError>>,
    /// How many questions it has been asked of those that it does not answer; it answers all while this is none.
    pub stalled: Mutex<Option<usize>>,
}

impl Synonyms {
    /// The model, and the space of its vectors, told apart from others by `name`.
    pub fn new(name: &str) -> Self {
        Self {
            space: EmbeddingSpace::new(name, MEANINGS.len() + 1, &[("kind", &"test"), ("name", &name)]),
            fails: Mutex::default(),
            stalled: Mutex::default(),
        }
    }

    /// The vector of a text.
    pub fn vector(text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; MEANINGS.len() + 1];
        vector[MEANINGS.len()] = 0.1;
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            if let Some(at) = MEANINGS.iter().position(|words| words.contains(&word)) {
                vector[at] += 1.0;
            }
        }
        let length = vector.iter().map(|number: &f32| number * number).sum::<f32>().sqrt();
        vector.iter().map(|number| number / length).collect()
    }
}

#[async_trait]
impl Embedder for Synonyms {
    fn space(&self) -> &EmbeddingSpace {
        &self.space
    }

    fn max_tokens(&self) -> usize {
        254
    }

    fn count_tokens(&self, text: &str) -> usize {
        approximate_tokens(text)
    }

    fn knows(&self, language: Language) -> bool {
        language == Language::English
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError> {
        match &*self.fails.lock() {
            Some(error) => Err(error()),
            None => Ok(texts.iter().map(|text| Self::vector(text)).collect()),
        }
    }

    async fn embed_question(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let stalls = self.stalled.lock().as_mut().map(|asked| *asked += 1).is_some();
        if stalls {
            return std::future::pending().await;
        }
        match &*self.fails.lock() {
            Some(error) => Err(error()),
            None => Ok(Self::vector(text)),
        }
    }
}

/// A reranker that knows English, and takes the stars of a passage for how well it answers.
#[derive(Debug, Default)]
pub struct StarCounter {
    /// The scores that it gives before it ends as `end` says; it gives all while this is none.
    pub most: Option<usize>,
    /// What comes after them: silence when none.
    pub end: Option<fn() -> RerankError>,
    /// How often it was asked.
    pub asked: AtomicUsize,
}

impl Reranker for StarCounter {
    fn name(&self) -> &'static str {
        "stars"
    }

    fn knows(&self, language: Language) -> bool {
        language == Language::English
    }

    fn score(
        &self,
        _: String,
        passages: Vec<String>,
        _: Duration,
    ) -> BoxStream<'static, Result<PassageScore, RerankError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "a few stars")]
        let score = |(place, text): (usize, String)| {
            Ok(PassageScore { place, score: text.matches('*').count() as f32 })
        };
        let scores = stream::iter(passages.into_iter().enumerate()).map(score);
        match (self.most, self.end) {
            (None, _) => scores.boxed(),
            (Some(most), Some(end)) => {
                scores.take(most).chain(stream::once(async move { Err(end()) })).boxed()
            }
            (Some(most), None) => scores.take(most).chain(stream::pending()).boxed(),
        }
    }
}
