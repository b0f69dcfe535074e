//! A run as a stream of server-sent events.

use std::time::Duration;

use axum::{
    Extension,
    body::{Body, Bytes},
    http::header,
    response::{IntoResponse, Response},
};
use futures::stream;
use lectern_agents::run::{RunEvent, RunHandle};
use lectern_shared::shutdown::Shutdown;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{
    auth::in_force::TerminationNotice,
    error::{ApiError, ApiErrorKind},
    response::ApiResult,
    sse::{self, EventKind},
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
            (_, RunEvent::Failed(error)) => Some(self.write_failure(&error.clone().into())),
            (Self::Events, event) => Some(named(event)),
            (Self::Text, RunEvent::Token { delta }) => Some(sse::token(delta)),
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

    /// What a stream ends with that has failed.
    fn write_failure(self, error: &ApiError) -> Bytes {
        let event = failure(error);
        match self {
            Self::Events => event,
            Self::Text => [&event, sse::END].concat().into(),
        }
    }
}

fn failure(error: &ApiError) -> Bytes {
    sse::named(EventKind::Error, &json!({"code": error.code, "message": error.message}))
}

/// An event of a stream that tells everything.
fn named(event: &RunEvent) -> Bytes {
    let (kind, data) = match event {
        RunEvent::Start { trace, agent, session } => {
            (EventKind::Start, json!({"traceId": trace, "agentId": agent, "session": session}))
        }
        RunEvent::Retrieval { query, documents } => {
            (EventKind::Retrieval, json!({"query": query, "documents": documents}))
        }
        RunEvent::Token { delta } => (EventKind::Token, json!({"delta": delta})),
        RunEvent::ToolCall { id, name, input } => {
            (EventKind::ToolCall, json!({"id": id, "name": name, "input": input}))
        }
        RunEvent::ToolResult { id, name, observation, failed } => {
            let data = json!({"id": id, "name": name, "observation": observation, "failed": failed});
            (EventKind::ToolResult, data)
        }
        RunEvent::Citation(citation) => (EventKind::Citation, citation.clone()),
        RunEvent::Failed(error) => return failure(&error.clone().into()),
        RunEvent::End { answer, trace } => (EventKind::End, json!({"answer": answer, "trace": trace})),
    };
    sse::named(kind, &data)
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
            Ok(Some(RunEvent::Failed(error))) => return Err(error.into()),
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
    let last_words = Extension(TerminationNotice(format.write_failure(&ApiError::credential_ended())));
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
                        Some(_) => {
                            self.ended = true;
                            return Some(self.format.write_failure(&stopping()));
                        }
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
