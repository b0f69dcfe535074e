//! Models that read a question and a passage at once, and say how well the passage answers.

mod server;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

use futures::{FutureExt as _, stream::BoxStream};
use lectern_shared::{
    clock::Clock,
    compute::ComputeStopped,
    config::{RerankSettings, RerankerKind},
    model::language::Language,
    shutdown::Shutdown,
};

pub use self::server::{ServerReranker, ServerRerankerConfig};
use crate::{
    LocalReranker, ModelState, OpenError,
    slot::{LocalModelName, ModelSlot},
};

/// Why passages could not be scored.
#[derive(Debug, thiserror::Error)]
pub enum RerankError {
    /// The model is away, too slow, or asked too often. In words for the operator, without secrets and without what was sent.
    #[error("the reranker failed: {0}")]
    Away(String),
    /// It will fail again until the operator changes something. In words for the operator.
    #[error("the reranker cannot be used: {0}")]
    Refused(String),
    /// A computation panicked, or the process is ending.
    #[error(transparent)]
    Stopped(#[from] ComputeStopped),
}

/// How well a passage answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassageScore {
    /// Its place in the list that was asked about.
    pub place: usize,
    /// Comparable within one question and one model only: the larger the better.
    pub score: f32,
}

/// A model that scores passages.
pub trait Reranker: fmt::Debug + Send + Sync {
    /// What people call it.
    fn name(&self) -> &str;
    /// Whether its scores of texts in this language mean something.
    fn knows(&self, language: Language) -> bool;
    /// A score for each passage, as soon as it is known; dropped, it goes no further. Ends with the first error. After `within` no
    /// server is asked again.
    fn score(
        &self,
        question: String,
        passages: Vec<String>,
        within: Duration,
    ) -> BoxStream<'static, Result<PassageScore, RerankError>>;
}

/// The reranker of a process, if one is set, which may have to be downloaded first. Cheap to clone.
#[derive(Clone)]
pub struct RerankModel {
    /// None when there is none, or one that is there already.
    settings: Option<Arc<RerankSettings>>,
    slot: ModelSlot<dyn Reranker>,
    candidates: usize,
    budget: Duration,
}

impl RerankModel {
    /// The one that the settings name. It is off before [`RerankModel::start`]: not every process searches.
    pub fn new(settings: &RerankSettings) -> Self {
        let off = settings.kind == RerankerKind::None;
        Self {
            settings: if off { None } else { Some(Arc::new(settings.clone())) },
            slot: ModelSlot::new(ModelState::Off),
            candidates: settings.candidates,
            budget: settings.budget,
        }
    }

    /// None.
    pub fn none() -> Self {
        let slot = ModelSlot::new(ModelState::Off);
        Self { settings: None, slot, candidates: 0, budget: Duration::ZERO }
    }

    /// One that is there already, over the best `candidates` passages, for at most `budget`.
    pub fn of(reranker: Arc<dyn Reranker>, candidates: usize, budget: Duration, clock: &Clock) -> Self {
        let slot = ModelSlot::new(ModelState::Opening);
        slot.fill(reranker, clock);
        Self { settings: None, slot, candidates, budget }
    }

    /// How it is doing.
    pub fn state(&self) -> ModelState<dyn Reranker> {
        self.slot.state()
    }

    /// The model, when it is there.
    pub fn current(&self) -> Option<Arc<dyn Reranker>> {
        self.slot.current()
    }

    /// The best passages of a search that it is asked about.
    pub const fn candidates(&self) -> usize {
        self.candidates
    }

    /// The longest that a search is held up by it.
    pub const fn budget(&self) -> Duration {
        self.budget
    }

    /// Gets the model that is set in the background, until it is there or the service stops.
    pub fn start(&self, clock: &Clock, shutdown: &Shutdown) {
        let Some(settings) = self.settings.clone() else { return };
        let slot = self.slot.clone();
        slot.opens();
        let without = "there is no reranker yet: passages keep the order in which they were found";
        self.slot.start(clock, shutdown, without, move || {
            let (slot, settings) = (slot.clone(), Arc::clone(&settings));
            async move {
                let reranker = match settings.kind {
                    RerankerKind::Server => served(&settings)?,
                    RerankerKind::Local | RerankerKind::None => {
                        local(&settings, slot.folder(&named(&settings)).await?).await?
                    }
                };
                tracing::info!(model = reranker.name(), "the reranker is there");
                Ok(reranker)
            }
            .boxed()
        });
    }
}

/// The reranker that is set, if it can be had here and now: nothing is downloaded. None when it would have to be, or when none
/// is wanted.
///
/// # Errors
/// Why it cannot be used.
pub async fn reranker_at_hand(settings: &RerankSettings) -> Result<Option<Arc<dyn Reranker>>, OpenError> {
    match settings.kind {
        RerankerKind::None => Ok(None),
        RerankerKind::Server => served(settings).map(Some),
        RerankerKind::Local => match named(settings).folder_at_hand()? {
            Some(folder) => local(settings, folder).await.map(Some),
            None => Ok(None),
        },
    }
}

fn named(settings: &RerankSettings) -> LocalModelName<'_> {
    LocalModelName {
        name: &settings.model,
        setting: "LECTERN_RERANK_MODEL",
        folder: settings.model_dir.as_ref(),
        hub: &settings.hub,
    }
}

/// Opens a model's folder off the async threads.
async fn local(
    settings: &RerankSettings,
    folder: std::path::PathBuf,
) -> Result<Arc<dyn Reranker>, OpenError> {
    let (name, threads, languages) = (settings.model.clone(), settings.threads, settings.languages.clone());
    let scratch_dir = settings.hub.scratch_dir.clone();
    let open = move || LocalReranker::open(&folder, &name, threads, Some(&scratch_dir));
    let opened =
        tokio::task::spawn_blocking(open).await.map_err(|_| RerankError::Stopped(ComputeStopped))??;
    Ok(Arc::new(match languages {
        Some(languages) => opened.knowing(languages),
        None => opened,
    }))
}

fn served(settings: &RerankSettings) -> Result<Arc<dyn Reranker>, OpenError> {
    let url = settings.url.clone();
    Ok(Arc::new(ServerReranker::new(ServerRerankerConfig {
        url: url.ok_or_else(|| RerankError::Refused("LECTERN_RERANK_URL is not set".to_owned()))?,
        api_key: settings.api_key.clone(),
        model: settings.model.clone(),
        languages: settings.languages.clone(),
    })?))
}
