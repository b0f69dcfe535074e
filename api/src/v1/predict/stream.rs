//! A run as a stream of server-sent events.

use std::time::Duration;

use axum::{
    Extension,
    body::{Body, Bytes},
    http::header,
    response::{IntoResponse, Response},
};
use futures::stream;
use lectern_shared::shutdown::Shutdown;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{
    auth::in_force::TerminationNotice,
    error::{ApiError, ApiErrorKind},
    predict::{RunEvent, RunHandle, sse},
    response::ApiResult,
};

/// What a stream tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamFormat {
    /// The answer, piece by piece, and its end.
    Text,
    /// Everything that happens, by named events.
    Events,
}

impl StreamFormat {
    /// What a caller has asked for; none without a stream.
    pub(crate) fn of(has_streaming: bool, stream_events: bool) -> Option<Self> {
        has_streaming.then_some(if stream_events { Self::Events } else { Self::Text })
    }

    fn write(self, event: &RunEvent) -> Option<Bytes> {
        match (self, event) {
            (Self::Events, event) => Some(sse::named(event.kind(), &event.data())),
            (Self::Text, RunEvent::Token { delta }) => Some(sse::token(delta)),
            (Self::Text, RunEvent::Failed(_)) => {
                let mut bytes = sse::named(event.kind(), &event.data()).to_vec();
                bytes.extend_from_slice(sse::END);
                Some(bytes.into())
            }
            (Self::Text, RunEvent::End { .. }) => Some(Bytes::from_static(sse::END)),
            (
                Self::Text,
                RunEvent::Start { .. }
                | RunEvent::Retrieval { .. }
                | RunEvent::ToolCall { .. }
                | RunEvent::ToolResult { .. }
                | RunEvent::Citation(_),
            ) => None,
        }
    }
}

/// How long an error can still be answered as one.
const UNDECIDED: Duration = Duration::from_secs(10);
/// How often something is sent when nothing happens, so that nothing on the way takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long an answer may go on when the service is asked to stop.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Answers with a run's events.
pub(crate) async fn streamed(
    mut running: RunHandle,
    format: StreamFormat,
    shutdown: Option<Shutdown>,
) -> ApiResult<Response> {
    let until = Instant::now() + UNDECIDED;
    let mut first = None;
    while first.is_none() {
        match timeout_at(until, running.next()).await {
            Ok(Some(RunEvent::Failed(error))) => return Err(error),
            Ok(Some(event)) => first = format.write(&event).map(|bytes| (bytes, event.is_last())),
            Ok(None) | Err(_) => break,
        }
    }
    let reader = PredictStream { running, format, shutdown, last_words: None, ended: false };
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
    let over = RunEvent::Failed(ApiError::credential_ended());
    let last_words = format.write(&over).map(|bytes| Extension(TerminationNotice(bytes)));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        // Proxies that gather answers before they pass them on are asked not to.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, last_words, Body::from_stream(body)).into_response())
}

struct PredictStream {
    running: RunHandle,
    format: StreamFormat,
    shutdown: Option<Shutdown>,
    /// When it ends at the latest, once the service is asked to stop.
    last_words: Option<Instant>,
    ended: bool,
}

impl PredictStream {
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
                        Some(_) => RunEvent::Failed(stopping()),
                    }
                }
                () = sleep_until(quiet_since + KEEP_ALIVE) => return Some(Bytes::from_static(sse::KEEP_ALIVE)),
            };
            self.ended = event.is_last();
            if let Some(bytes) = self.format.write(&event) {
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

fn stopping() -> ApiError {
    let message = "The service is being stopped; ask again shortly.";
    ApiError::new(ApiErrorKind::Unavailable, "shutting_down", message)
}
