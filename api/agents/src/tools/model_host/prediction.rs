//! One run at a model host: it is created, asked after with growing pauses, and canceled when nobody waits for it.

use std::{sync::Arc, time::Duration};

use reqwest::header::HeaderValue;
use serde_json::{Value, json};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Instant, sleep},
};
use url::Url;

use super::super::{
    ToolError,
    http::{ServiceClient, ServiceRequest, ServiceResponse, join},
};

/// The first pause before a run is asked after, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// With less time than this left, a run is given up.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
/// Looks that may fail one after the other.
const MISSES: u32 = 3;
/// The longest time for canceling a run.
const CANCEL: Duration = Duration::from_secs(5);
/// Most runs that are being canceled at once. What is beyond that is ended by the host, which was told how long it may
/// take.
const CANCELS: usize = 64;
/// The shortest time that the host can be given, in seconds.
const SHORTEST_RUN: u64 = 5;

/// How many runs are being canceled. Cheap to clone; clones share the bound.
#[derive(Clone)]
pub(in super::super) struct CancellationLimit(Arc<Semaphore>);

impl Default for CancellationLimit {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CANCELS)))
    }
}

/// What is to be run.
#[derive(Clone)]
pub(super) enum ModelReference {
    /// The newest version of this model, `owner/name` as an address has it.
    Model(String),
    /// This version of a model.
    Version(String),
}

/// What has become of a run.
#[derive(Debug, PartialEq)]
pub(super) enum PredictionState {
    Running,
    Succeeded(Value),
    Failed,
    Canceled,
}

/// A host and whom it knows us as.
#[derive(Clone)]
pub(super) struct ModelHostClient {
    service: ServiceClient,
    base: Url,
    key: HeaderValue,
    cancels: CancellationLimit,
}

impl ModelHostClient {
    pub(super) fn new(
        service: ServiceClient,
        base: Url,
        key: HeaderValue,
        cancels: CancellationLimit,
    ) -> Self {
        Self { service, base, key, cancels }
    }

    /// Runs a model and waits for it, at the latest until `deadline`.
    pub(super) async fn run(
        &self,
        start: &ModelReference,
        input: &Value,
        deadline: Instant,
    ) -> Result<PredictionState, ToolError> {
        let until = self.service.until(deadline);
        let (run, mut state) = self.create(start, input, until).await?;
        let (mut pause, mut misses) = (FIRST_PAUSE, 0);
        while state == PredictionState::Running {
            let left = until.saturating_duration_since(Instant::now());
            if left < SHORTEST_PAUSE {
                return Err(ToolError::Timeout);
            }
            // There is always time for another look.
            sleep(pause.min(left / 2)).await;
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
            let ask = ServiceRequest::get(self.at(run.id(), "")).header("authorization", self.key.clone());
            let answer = self.service.send(ask, until).await?;
            // The run goes on while its host stumbles.
            if matches!(answer.status, 429 | 500..=599) && misses < MISSES {
                misses += 1;
                continue;
            }
            misses = 0;
            state = self.read(self.accept(answer)?).await?.1;
        }
        run.ended();
        Ok(state)
    }

    /// Creates a run. It goes on by itself when nobody waits any more: only its answer tells which run has to be canceled.
    async fn create(
        &self,
        start: &ModelReference,
        input: &Value,
        until: Instant,
    ) -> Result<(PredictionGuard, PredictionState), ToolError> {
        let (path, body) = match start {
            ModelReference::Model(name) => {
                (format!("/v1/models/{name}/predictions"), json!({"input": input}))
            }
            ModelReference::Version(version) => {
                ("/v1/predictions".to_owned(), json!({"version": version, "input": input}))
            }
        };
        let seconds = until.saturating_duration_since(Instant::now()).as_secs().max(SHORTEST_RUN);
        let mut ask = ServiceRequest::post(join(&self.base, &path), &body);
        if let Ok(seconds) = HeaderValue::from_str(&format!("{seconds}s")) {
            ask = ask.header("cancel-after", seconds);
        }
        let (host, (created, answer)) = (self.clone(), oneshot::channel());
        tokio::spawn(async move {
            let run = async {
                let answer = host.send(ask, until).await?;
                let (id, state) = host.read(answer).await?;
                let run = PredictionGuard { host: host.clone(), id: Some(id) };
                Ok((run, state))
            };
            // When nobody takes the run, it is dropped here, which cancels it.
            drop(created.send(run.await));
        });
        answer.await.unwrap_or_else(|_| Err(self.service.malformed_answer()))
    }

    async fn send(&self, ask: ServiceRequest, until: Instant) -> Result<ServiceResponse, ToolError> {
        self.accept(self.service.send(ask.header("authorization", self.key.clone()), until).await?)
    }

    fn accept(&self, answer: ServiceResponse) -> Result<ServiceResponse, ToolError> {
        match answer.status {
            404 => Err(self.service.failed("does not know this model or this run")),
            422 => Err(self
                .service
                .failed("does not take this input for the model; see which inputs the model has")),
            _ => self.service.accept(answer),
        }
    }

    /// The id of a run and what has become of it.
    async fn read(&self, answer: ServiceResponse) -> Result<(String, PredictionState), ToolError> {
        let mut answer = self.service.json(answer).await?;
        // It becomes a part of addresses.
        let is_id = |id: &&str| {
            (1..=64).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let id = answer["id"].as_str().filter(is_id).map(str::to_owned);
        let state = match answer["status"].as_str() {
            Some("starting" | "processing" | "queued") => Some(PredictionState::Running),
            Some("succeeded" | "successful") => Some(PredictionState::Succeeded(answer["output"].take())),
            Some("failed") => Some(PredictionState::Failed),
            Some("canceled" | "aborted") => Some(PredictionState::Canceled),
            _ => None,
        };
        id.zip(state).ok_or_else(|| self.service.malformed_answer())
    }

    /// Where a run is. What the host says about that is not asked: it could be anywhere.
    fn at(&self, id: &str, action: &str) -> Url {
        join(&self.base, &format!("/v1/predictions/{id}{action}"))
    }
}

/// A run that has to be canceled unless it has ended.
struct PredictionGuard {
    host: ModelHostClient,
    id: Option<String>,
}

impl PredictionGuard {
    fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    fn ended(mut self) {
        self.id = None;
    }
}

impl Drop for PredictionGuard {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let (Ok(handle), Ok(slot)) =
            (Handle::try_current(), Arc::clone(&self.host.cancels.0).try_acquire_owned())
        else {
            tracing::warn!("a run at a model host was left to its own time limit");
            return;
        };
        handle.spawn(cancel(self.host.clone(), id, slot));
    }
}

async fn cancel(host: ModelHostClient, id: String, _slot: OwnedSemaphorePermit) {
    let ask = ServiceRequest::post(host.at(&id, "/cancel"), &json!({}));
    if let Err(error) = host.send(ask, Instant::now() + CANCEL).await {
        tracing::debug!(%error, "a run at a model host could not be canceled");
    }
}
