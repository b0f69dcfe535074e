//! The models of a process: the one that is set, which may have to be downloaded first, and those of earlier settings whose
//! vectors are still searched.

use std::{sync::Arc, time::Duration};

use futures::FutureExt as _;
use lectern_db::{self as db, Db};
use lectern_shared::{
    clock::{Clock, Timestamp},
    config::{EmbedderKind, EmbeddingSettings},
    model::space::EmbeddingSpace,
    shutdown::Shutdown,
};
use parking_lot::Mutex;
use tokio::{sync::Mutex as AsyncMutex, time::Instant};
use uuid::Uuid;

use super::{
    EmbedError, Embedder, HubError, LocalEmbedder, ModelError, ModelId, ModelState, OpenAiConfig,
    OpenAiEmbedder, RerankError,
    earlier::EarlierModels,
    limited::LimitedEmbedder,
    slot::{LocalModelName, ModelSlot, hub},
};

/// How long a question waits for a model of earlier settings.
const REOPENED_WITHIN: Duration = Duration::from_secs(2);
/// What a model of earlier settings is asked first. Anything will do.
const FIRST_QUESTION: &str = "dimension";

/// Why a model cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be downloaded.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// Its files cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The embedding server does not serve.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The reranking server does not serve.
    #[error(transparent)]
    Rerank(#[from] RerankError),
    /// The setting names no model.
    #[error("{0}: {1}")]
    Name(&'static str, String),
}

/// The models of a process. Cheap to clone.
#[derive(Clone)]
pub struct EmbeddingModels {
    inner: Arc<EmbeddingModelsState>,
}

struct EmbeddingModelsState {
    /// None when there are no models, whatever is stored.
    settings: Option<EmbeddingSettings>,
    slot: ModelSlot<dyn Embedder>,
    /// Models of other spaces than the current one's.
    earlier: Mutex<EarlierModels>,
    /// One is opened at a time.
    opening: AsyncMutex<()>,
}

impl EmbeddingModels {
    /// The models that the settings name. None is there before [`EmbeddingModels::start`] or [`EmbeddingModels::open`].
    pub fn new(settings: &EmbeddingSettings) -> Self {
        let off = settings.kind == EmbedderKind::None;
        let state = if off { ModelState::Off } else { ModelState::Opening };
        Self::with(if off { None } else { Some(settings.clone()) }, state)
    }

    /// One model that is there already.
    pub fn of(embedder: Arc<dyn Embedder>) -> Self {
        Self::with(None, ModelState::Ready(embedder, Timestamp::from_micros(0)))
    }

    /// With a model of earlier settings that is there as well.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn with_earlier(self, embedder: Arc<dyn Embedder>) -> Self {
        let space = embedder.space().id;
        self.inner.earlier.lock().opened(space, embedder, Instant::now());
        self
    }

    /// No model.
    pub fn none() -> Self {
        Self::with(None, ModelState::Off)
    }

    fn with(settings: Option<EmbeddingSettings>, state: ModelState) -> Self {
        Self {
            inner: Arc::new(EmbeddingModelsState {
                settings,
                slot: ModelSlot::new(state),
                earlier: Mutex::default(),
                opening: AsyncMutex::default(),
            }),
        }
    }

    /// How the model that is set is doing.
    pub fn state(&self) -> ModelState {
        self.inner.slot.state()
    }

    /// The model that is set, when it is there.
    pub fn current(&self) -> Option<Arc<dyn Embedder>> {
        self.inner.slot.current()
    }

    /// The model that is set, once it is known whether it is at hand: neither a download is waited for nor a server that does
    /// not answer. Without it, documents are embedded later.
    pub async fn wait_until_opened(&self) -> Option<Arc<dyn Embedder>> {
        self.inner.slot.wait_until_opened().await
    }

    /// Gets the model that is set in the background, until it is there or the service stops.
    pub fn start(&self, clock: &Clock, shutdown: &Shutdown) {
        let Some(settings) = self.inner.settings.clone() else { return };
        let models = self.clone();
        let without =
            "there is no embedding model yet: documents are found by words, and embedded when it is there";
        self.inner.slot.start(clock, shutdown, without, move || {
            let (models, settings) = (models.clone(), settings.clone());
            async move {
                let embedder = models.get(&settings).await?;
                let EmbeddingSpace { model, dimensions, .. } = embedder.space();
                tracing::info!(model, dimensions, "the embedding model is there");
                Ok(embedder)
            }
            .boxed()
        });
    }

    /// Gets the model that is set, and waits for it. None when none is wanted.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub async fn open(&self, clock: &Clock) -> Result<Option<Arc<dyn Embedder>>, OpenError> {
        let Some(settings) = &self.inner.settings else { return Ok(self.current()) };
        let embedder = self.get(settings).await?;
        self.inner.slot.fill(Arc::clone(&embedder), clock);
        Ok(Some(embedder))
    }

    async fn get(&self, settings: &EmbeddingSettings) -> Result<Arc<dyn Embedder>, OpenError> {
        match settings.kind {
            EmbedderKind::OpenAiCompatible => {
                let config = server(settings, settings.model.clone(), settings.dimensions)?;
                Ok(Arc::new(OpenAiEmbedder::connect(config).await?))
            }
            EmbedderKind::Auto | EmbedderKind::Local | EmbedderKind::None => {
                let folder = self.inner.slot.folder(&named(settings)).await?;
                local(settings, folder, settings.model.clone()).await
            }
        }
    }

    /// The model whose vectors are in an embedding space; none when it cannot be had here and now. A model of earlier settings
    /// is opened when it is in the cache, or served by the same server.
    pub async fn of_space(&self, db: &Db, space: Uuid) -> Option<Arc<dyn Embedder>> {
        if let Some(current) = self.current().filter(|embedder| embedder.space().id == space) {
            return Some(current);
        }
        if let Some(known) = self.earlier(space) {
            return known;
        }
        let settings = self.inner.settings.as_ref()?;
        // While the one that is set is on its way, this may well be its space.
        if matches!(self.state(), ModelState::Opening) {
            return None;
        }
        let (models, settings, db) = (self.clone(), settings.clone(), db.clone());
        let opening = tokio::spawn(async move { models.reopened(&settings, &db, space).await });
        // A server that does not answer must not keep the question; it is opened for the next one.
        tokio::time::timeout(REOPENED_WITHIN, opening).await.ok()?.ok()?
    }

    /// Opens a model of earlier settings, unless that was just done.
    async fn reopened(
        &self,
        settings: &EmbeddingSettings,
        db: &Db,
        space: Uuid,
    ) -> Option<Arc<dyn Embedder>> {
        let _one_at_a_time = self.inner.opening.lock().await;
        if let Some(known) = self.earlier(space) {
            return known;
        }
        let has_room = self.inner.earlier.lock().make_room(Instant::now());
        let opened = if has_room {
            reopen(settings, db, space).await
        } else {
            Err("no more models of earlier settings are kept at a time".to_owned())
        };
        match opened {
            Ok(embedder) => {
                self.inner.earlier.lock().opened(space, Arc::clone(&embedder), Instant::now());
                Some(embedder)
            }
            Err(problem) => {
                tracing::warn!(
                    problem,
                    %space,
                    "documents embedded by another model are found by words only: run `lectern reembed`"
                );
                self.inner.earlier.lock().failed(space, Instant::now());
                None
            }
        }
    }

    #[expect(clippy::option_option, reason = "whether it is known, and what")]
    fn earlier(&self, space: Uuid) -> Option<Option<Arc<dyn Embedder>>> {
        self.inner.earlier.lock().get(space, Instant::now())
    }
}

/// Opens the model of a recorded space, if these settings lead to it.
async fn reopen(settings: &EmbeddingSettings, db: &Db, space: Uuid) -> Result<Arc<dyn Embedder>, String> {
    let recorded = db::vectors::space(db, space).await.map_err(|error| error.to_string())?;
    let Some(recorded) = recorded else { return Err("its space is not recorded".to_owned()) };
    let elsewhere = || format!("the model {} is not at hand", recorded.model);
    let embedder: Arc<dyn Embedder> = match recorded.fact("kind") {
        Some("local") => {
            let model: ModelId = recorded.model.parse().map_err(|_| elsewhere())?;
            let hub = hub(&settings.hub).map_err(|error| error.to_string())?;
            let folder = hub.cached(&model).map_err(|error| error.to_string())?.ok_or_else(elsewhere)?;
            local(settings, folder, recorded.model.clone()).await.map_err(|error| error.to_string())?
        }
        _ if settings.url.is_some() => {
            let connect = async |dimensions| {
                let config = server(settings, recorded.model.clone(), dimensions);
                let config = config.map_err(|error| error.to_string())?;
                OpenAiEmbedder::connect(config).await.map_err(|error| error.to_string())
            };
            // Many servers do not know that vectors of another length can be asked for.
            let usual = connect(None).await?;
            if usual.space().id == space {
                Arc::new(usual)
            } else {
                // Whether it gives vectors of this length, it has not said yet.
                let asked = connect(Some(recorded.dimensions)).await?;
                asked.embed_question(FIRST_QUESTION).await.map_err(|error| error.to_string())?;
                Arc::new(asked)
            }
        }
        _ => return Err(elsewhere()),
    };
    // The same name may stand for other weights by now.
    if embedder.space().id == space { Ok(embedder) } else { Err(elsewhere()) }
}

/// The model that is set, if it can be had here and now: nothing is downloaded. None when it would have to be, or when none is
/// wanted.
///
/// # Errors
/// Why it cannot be used.
pub async fn at_hand(settings: &EmbeddingSettings) -> Result<Option<Arc<dyn Embedder>>, OpenError> {
    match settings.kind {
        EmbedderKind::None => Ok(None),
        EmbedderKind::OpenAiCompatible => {
            let config = server(settings, settings.model.clone(), settings.dimensions)?;
            Ok(Some(Arc::new(OpenAiEmbedder::connect(config).await?)))
        }
        EmbedderKind::Auto | EmbedderKind::Local => match named(settings).folder_at_hand()? {
            Some(folder) => local(settings, folder, settings.model.clone()).await.map(Some),
            None => Ok(None),
        },
    }
}

/// The files of the downloaded model that are not what they were when they came. Reads all of them, off the async threads.
///
/// # Errors
/// When they cannot be read.
pub async fn altered(settings: &EmbeddingSettings) -> Result<Vec<String>, OpenError> {
    if settings.model_dir.is_some() || !matches!(settings.kind, EmbedderKind::Auto | EmbedderKind::Local) {
        return Ok(Vec::new());
    }
    let (hub, model) = (hub(&settings.hub)?, named(settings).id()?);
    let looked = tokio::task::spawn_blocking(move || hub.altered(&model)).await;
    Ok(looked.map_err(|_| EmbedError::Stopped(lectern_shared::compute::ComputeStopped))??)
}

fn named(settings: &EmbeddingSettings) -> LocalModelName<'_> {
    LocalModelName {
        name: &settings.model,
        setting: "LECTERN_EMBEDDING_MODEL",
        folder: settings.model_dir.as_ref(),
        hub: &settings.hub,
    }
}

/// Opens a model's folder off the async threads.
async fn local(
    settings: &EmbeddingSettings,
    folder: std::path::PathBuf,
    name: String,
) -> Result<Arc<dyn Embedder>, OpenError> {
    let (threads, precision, scratch_dir) =
        (settings.threads, settings.precision, settings.hub.scratch_dir.clone());
    let open = move || LocalEmbedder::open(&folder, &name, threads, precision, Some(&scratch_dir));
    let opened = tokio::task::spawn_blocking(open).await;
    let embedder = opened.map_err(|_| EmbedError::Stopped(lectern_shared::compute::ComputeStopped))??;
    Ok(match &settings.languages {
        Some(languages) => Arc::new(LimitedEmbedder::new(embedder, languages.clone())),
        None => Arc::new(embedder),
    })
}

fn server(
    settings: &EmbeddingSettings,
    model: String,
    dimensions: Option<usize>,
) -> Result<OpenAiConfig, OpenError> {
    let url = settings.url.clone();
    Ok(OpenAiConfig {
        url: url.ok_or_else(|| EmbedError::Refused("LECTERN_EMBEDDING_URL is not set".to_owned()))?,
        api_key: settings.api_key.clone(),
        model,
        dimensions,
        max_tokens: settings.max_tokens,
        languages: settings.languages.clone(),
    })
}

#[cfg(test)]
mod tests;
