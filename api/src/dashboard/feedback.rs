//! What people say of the answers that they were given.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::ids::TraceId;

use super::frame::SubmittedForm;
use crate::{
    extract::{PathId, PathIds},
    response::ApiResult,
    services::traces::{TraceFeedback, TraceService},
};

/// Keeps what a person says of an answer where they have asked, and leads back to it there.
#[handler]
pub(super) async fn of_answer(
    State(traces): State<TraceService>,
    PathId(id): PathId<TraceId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<TraceFeedback>,
) -> ApiResult {
    let rated = traces.rate(&visitor.actor(), id, body).await?;
    Ok(visitor.go(&format!("agents/{}/ask?answer={id}&said=thanks", rated.agent_id)))
}

/// Keeps what is said of it on the page of its trace, and leads back to that.
#[handler]
pub(super) async fn of_trace(
    State(traces): State<TraceService>,
    PathId(id): PathId<TraceId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<TraceFeedback>,
) -> ApiResult {
    traces.rate(&visitor.actor(), id, body).await?;
    Ok(visitor.go(&format!("traces/{id}?said=thanks")))
}

/// Keeps what is said of the earlier of two answers, and leads back to both.
#[handler]
pub(super) async fn of_then(
    State(traces): State<TraceService>,
    PathIds(now, id): PathIds<TraceId, TraceId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<TraceFeedback>,
) -> ApiResult {
    traces.rate(&visitor.actor(), id, body).await?;
    Ok(visitor.go(&format!("traces/{id}?now={now}&said=thanks")))
}

/// Keeps what is said of the later one, and leads back to both.
#[handler]
pub(super) async fn of_now(
    State(traces): State<TraceService>,
    PathIds(then, id): PathIds<TraceId, TraceId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<TraceFeedback>,
) -> ApiResult {
    traces.rate(&visitor.actor(), id, body).await?;
    Ok(visitor.go(&format!("traces/{then}?now={id}&said=thanks")))
}
