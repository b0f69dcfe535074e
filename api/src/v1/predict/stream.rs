//! The two forms in which predict streams a run.

use axum::body::Bytes;
use lectern_agents::run::RunEvent;
use serde_json::json;

use crate::{
    error::ApiError,
    run_stream::RunEventEncoder,
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
}

impl RunEventEncoder for StreamFormat {
    fn encode(&mut self, event: &RunEvent) -> Option<Bytes> {
        match (self, event) {
            (Self::Events, event) => Some(named(event)),
            (Self::Text, RunEvent::Token { delta }) => Some(sse::token(delta)),
            (Self::Text, RunEvent::End { .. }) => Some(Bytes::from_static(sse::END)),
            (Self::Text, RunEvent::Failed(error)) => Some(Self::Text.failure(&error.clone().into())),
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

    fn failure(&mut self, error: &ApiError) -> Bytes {
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
        RunEvent::ToolCall { id, name, input, .. } => {
            (EventKind::ToolCall, json!({"id": id, "name": name, "input": input}))
        }
        RunEvent::ToolResult { id, name, observation, failed, .. } => {
            let data = json!({"id": id, "name": name, "observation": observation, "failed": failed});
            (EventKind::ToolResult, data)
        }
        RunEvent::Citation(citation) => (EventKind::Citation, json!(citation)),
        RunEvent::Failed(error) => return failure(&error.clone().into()),
        RunEvent::End { answer, trace, .. } => (EventKind::End, json!({"answer": answer, "trace": trace})),
    };
    sse::named(kind, &data)
}
