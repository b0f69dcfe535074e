//! A run as a stream of server-sent events, in whichever form a face tells it.

use std::{future::ready, time::Duration};

use axum::{
    Extension,
    body::{Body, Bytes},
    response::{IntoResponse, Response},
};
use futures::stream;
use lectern_agents::run::{RunEvent, RunHandle};
use lectern_shared::shutdown::Shutdown;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::{
    auth::in_force::TerminationNotice,
    error::{ApiError, ApiErrorKind},
    response::ApiResult,
    sse,
};

/// The form in which a face tells a run.
pub(crate) trait RunEventEncoder: Send + 'static {
    /// Reads what has to be known to tell of something, before [`encode`](Self::encode) does.
    ///
    /// # Errors
    /// When it cannot be read: the stream ends with that.
    fn prepare(&mut self, _: &RunEvent) -> impl Future<Output = ApiResult<()>> + Send {
        ready(Ok(()))
    }

    /// What is told of something that happened; nothing of what the form leaves out.
    fn encode(&mut self, event: &RunEvent) -> Option<Bytes>;

    /// What a stream ends with that has failed.
    fn failure(&mut self, error: &ApiError) -> Bytes;
}

/// How long an error can still be answered as one.
const UNDECIDED: Duration = Duration::from_secs(10);
/// How often something is sent when nothing happens, so that nothing on the way takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long an answer may go on when the service is asked to stop.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(10);
/// Seconds after which a service that was stopped may be back.
const BACK_AFTER: u64 = 5;

/// Answers with a run's events. What fails before the first of them is told, and soon, is an ordinary error.
pub(crate) async fn streamed(
    mut running: RunHandle,
    mut encoder: impl RunEventEncoder,
    shutdown: Option<Shutdown>,
) -> ApiResult<Response> {
    let until = Instant::now() + UNDECIDED;
    let mut first = None;
    while first.is_none() {
        match timeout_at(until, running.next()).await {
            Ok(Some(RunEvent::Failed(error))) => return Err(error.into()),
            Ok(Some(event)) => {
                encoder.prepare(&event).await?;
                first = encoder.encode(&event).map(|bytes| (bytes, event.is_last()));
            }
            Ok(None) | Err(_) => break,
        }
    }
    let last_words = Extension(TerminationNotice(encoder.failure(&ApiError::credential_ended())));
    let reader = RunStream { running, encoder, shutdown, last_words: None, ended: false };
    let body = stream::unfold((first, reader), |(first, mut reader)| async move {
        let bytes = match first {
            Some((bytes, is_last)) => {
                reader.ended = is_last;
                Some(bytes)
            }
            None => reader.next().await,
        };
        Some((Ok::<_, std::convert::Infallible>(bytes?), (None, reader)))
    });
    Ok((sse::headers(), last_words, Body::from_stream(body)).into_response())
}

struct RunStream<E> {
    running: RunHandle,
    encoder: E,
    shutdown: Option<Shutdown>,
    /// When it ends at the latest, once the service is asked to stop.
    last_words: Option<Instant>,
    ended: bool,
}

impl<E: RunEventEncoder> RunStream<E> {
    async fn next(&mut self) -> Option<Bytes> {
        let quiet_since = Instant::now();
        while !self.ended {
            let event = tokio::select! {
                biased;
                event = self.running.next() => event?,
                () = stopped(self.shutdown.as_ref(), self.last_words) => {
                    match self.last_words {
                        None => {
                            self.last_words = Some(Instant::now() + LAST_WORDS);
                            continue;
                        }
                        Some(_) => {
                            self.ended = true;
                            return Some(self.encoder.failure(&stopping()));
                        }
                    }
                }
                () = sleep_until(quiet_since + KEEP_ALIVE) => return Some(Bytes::from_static(sse::KEEP_ALIVE)),
            };
            if let Err(error) = self.encoder.prepare(&event).await {
                self.ended = true;
                return Some(self.encoder.failure(&error));
            }
            self.ended = event.is_last();
            let told = match &event {
                RunEvent::Failed(error) => Some(self.encoder.failure(&error.clone().into())),
                event => self.encoder.encode(event),
            };
            if let Some(bytes) = told {
                return Some(bytes);
            }
        }
        None
    }
}

/// Waits until the service is asked to stop, and then until the last words have been said.
async fn stopped(shutdown: Option<&Shutdown>, last_words: Option<Instant>) {
    match (shutdown, last_words) {
        (_, Some(until)) => sleep_until(until).await,
        (Some(shutdown), None) => shutdown.soft().cancelled().await,
        (None, None) => std::future::pending().await,
    }
}

/// Goes on with what is answered whole for as long as a stream may go on when the service is asked to stop.
///
/// # Errors
/// 503 when it takes longer.
pub(crate) async fn until_stopped<T>(
    shutdown: Option<&Shutdown>,
    work: impl Future<Output = ApiResult<T>>,
) -> ApiResult<T> {
    let over = async {
        stopped(shutdown, None).await;
        sleep(LAST_WORDS).await;
    };
    tokio::select! {
        biased;
        answer = work => answer,
        () = over => Err(stopping()),
    }
}

/// What is said last.
pub(crate) fn stopping() -> ApiError {
    let message = "The service is being stopped; ask again shortly.";
    let error = ApiError::new(ApiErrorKind::Unavailable, "shutting_down", message);
    ApiError { retry_after: Some(BACK_AFTER), ..error }
}
