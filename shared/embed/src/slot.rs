//! A model of a process that is opened in the background, and may have to be downloaded first.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use lectern_shared::{
    clock::{Clock, Timestamp},
    config::ModelHubSettings,
    retry::RetryBackoff,
    shutdown::Shutdown,
};
use tokio::sync::watch;

use crate::{Embedder, HubError, ModelHub, ModelId, OpenError, PullProgress};

/// The pauses before a model that could not be had is tried again.
const PAUSES: RetryBackoff = RetryBackoff { first: Duration::from_secs(5), longest: Duration::from_mins(10) };
/// How long somebody waits for a model that is being opened.
const OPENED_WITHIN: Duration = Duration::from_secs(10);

/// How the model that is set is doing.
pub enum ModelState<M: ?Sized = dyn Embedder> {
    /// None is wanted.
    Off,
    /// It is being opened; a moment.
    Opening,
    /// It is being downloaded.
    Downloading(PullProgress),
    /// It is there since a moment of the clock.
    Ready(Arc<M>, Timestamp),
    /// It could not be had, in words for the operator; it is tried again.
    Missing(String),
}

impl<M: ?Sized> Clone for ModelState<M> {
    fn clone(&self) -> Self {
        match self {
            Self::Off => Self::Off,
            Self::Opening => Self::Opening,
            Self::Downloading(progress) => Self::Downloading(*progress),
            Self::Ready(model, since) => Self::Ready(Arc::clone(model), *since),
            Self::Missing(problem) => Self::Missing(problem.clone()),
        }
    }
}

impl<M: ?Sized> fmt::Debug for ModelState<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "Off",
            Self::Opening => "Opening",
            Self::Downloading(_) => "Downloading",
            Self::Ready(..) => "Ready",
            Self::Missing(_) => "Missing",
        })
    }
}

/// Where a model is, or will be. Clones are the same place.
pub(crate) struct ModelSlot<M: ?Sized> {
    state: Arc<watch::Sender<ModelState<M>>>,
}

impl<M: ?Sized> Clone for ModelSlot<M> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<M: ?Sized + Send + Sync + 'static> ModelSlot<M> {
    pub(crate) fn new(state: ModelState<M>) -> Self {
        Self { state: Arc::new(watch::channel(state).0) }
    }

    pub(crate) fn state(&self) -> ModelState<M> {
        self.state.borrow().clone()
    }

    /// The model, when it is there.
    pub(crate) fn current(&self) -> Option<Arc<M>> {
        match &*self.state.borrow() {
            ModelState::Ready(model, _) => Some(Arc::clone(model)),
            ModelState::Off | ModelState::Opening | ModelState::Downloading(_) | ModelState::Missing(_) => {
                None
            }
        }
    }

    /// Tells that the model is on its way.
    pub(crate) fn opens(&self) {
        self.state.send_replace(ModelState::Opening);
    }

    pub(crate) fn fill(&self, model: Arc<M>, clock: &Clock) {
        self.state.send_replace(ModelState::Ready(model, clock.now()));
    }

    /// The folder of a local model's files: the one that is set, or the cache's, into which it is downloaded when it is not
    /// there.
    pub(crate) async fn folder(&self, model: &LocalModelName<'_>) -> Result<PathBuf, OpenError> {
        if let Some(folder) = model.folder {
            return Ok(folder.clone());
        }
        let (id, hub) = (model.id()?, hub(model.hub)?);
        if let Some(folder) = hub.cached(&id)? {
            return Ok(folder);
        }
        let show = |progress: PullProgress| {
            self.state.send_replace(ModelState::Downloading(progress));
        };
        // Another process may be fetching it, which takes as long.
        if !hub.is_offline() {
            show(PullProgress { file: "model.safetensors", bytes: 0, total: 0 });
        }
        let pulled = hub.pull(&id, &show).await;
        self.state.send_if_modified(|state| {
            let downloaded = matches!(state, ModelState::Downloading(_));
            if downloaded {
                *state = ModelState::Opening;
            }
            downloaded
        });
        Ok(pulled?)
    }

    /// The model, once it is known whether it is at hand: neither a download is waited for nor a server that does not answer.
    pub(crate) async fn wait_until_opened(&self) -> Option<Arc<M>> {
        let mut state = self.state.subscribe();
        // The sender lives as long as this value.
        let opened = state.wait_for(|state| !matches!(state, ModelState::Opening));
        let _ = tokio::time::timeout(OPENED_WITHIN, opened).await;
        self.current()
    }

    /// Gets a model in the background with `get`, until it is there or the service stops. `without` says what becomes of
    /// the work meanwhile.
    pub(crate) fn start(
        &self,
        clock: &Clock,
        shutdown: &Shutdown,
        without: &'static str,
        get: impl Fn() -> BoxFuture<'static, Result<Arc<M>, OpenError>> + Send + 'static,
    ) {
        let (slot, clock, soft) = (self.clone(), clock.clone(), shutdown.soft().clone());
        shutdown.spawn(async move {
            let mut failures = 0_u32;
            let mut said = None;
            loop {
                let opened = tokio::select! {
                    opened = get() => opened,
                    () = soft.cancelled() => return,
                };
                let problem = match opened {
                    Ok(model) => return slot.fill(model, &clock),
                    Err(error) => error.to_string(),
                };
                // One line for an outage, not one for every try.
                if said.as_ref() != Some(&problem) {
                    tracing::warn!(problem, "{without}");
                }
                said = Some(problem.clone());
                slot.state.send_replace(ModelState::Missing(problem));
                failures = failures.saturating_add(1);
                tokio::select! {
                    () = tokio::time::sleep(PAUSES.delay(failures)) => {}
                    () = soft.cancelled() => return,
                }
            }
        });
    }
}

/// Which local model is meant, as its settings say.
pub(crate) struct LocalModelName<'a> {
    /// Its name on the hub.
    pub(crate) name: &'a str,
    /// The setting that has the name.
    pub(crate) setting: &'static str,
    /// The folder of its files, when that is set.
    pub(crate) folder: Option<&'a PathBuf>,
    /// Where it comes from otherwise.
    pub(crate) hub: &'a ModelHubSettings,
}

impl LocalModelName<'_> {
    pub(crate) fn id(&self) -> Result<ModelId, OpenError> {
        self.name.parse().map_err(|error: HubError| OpenError::Name(self.setting, error.to_string()))
    }

    /// The folder of its files when they are on this machine.
    pub(crate) fn folder_at_hand(&self) -> Result<Option<PathBuf>, OpenError> {
        match self.folder {
            Some(folder) => Ok(Some(folder.clone())),
            None => Ok(hub(self.hub)?.cached(&self.id()?)?),
        }
    }
}

pub(crate) fn hub(settings: &ModelHubSettings) -> Result<ModelHub, HubError> {
    let hub = ModelHub::new(settings.address.clone(), settings.token.clone(), settings.cache.clone())?;
    Ok(hub.offline(settings.offline))
}
