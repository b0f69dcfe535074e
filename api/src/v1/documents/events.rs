//! The ingestion of a document as it goes on, as a stream of events.

use std::{convert::Infallible, future::pending, time::Duration};

use axum::{
    Extension,
    extract::State,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::{StreamExt, stream};
use lectern_derive::handler;
use lectern_shared::{ids::DocumentId, shutdown::Shutdown};
use serde::Serialize;
use serde_json::json;

use super::view::IngestionView;
use crate::{
    auth::{Caller, in_force::TerminationNotice},
    error::ApiError,
    extract::PathId,
    response::ApiResult,
    services::documents::{DocumentService, FollowedIngestion},
    sse::{self, EventKind},
};

/// How often something is sent when nothing happens, so that nothing on the way takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Follow an ingestion
///
/// Streams how the ingestion of a document goes, as server-sent events: an event `ingestion` with the document's `ingestion` as
/// JSON, at once and whenever it changes. The stream ends after the one whose status is `SUCCEEDED`, `FAILED` or `CANCELLED`.
/// When the document is deleted, it ends with an event `deleted`, and when the service cannot go on or your credential has ended,
/// with an event `error` (`code`, `message`) or, when the service is stopped, without one: connect again.
#[utoipa::path(
    get,
    path = "/documents/{id}/events",
    tag = "Documents",
    operation_id = "followIngestion",
    params(("id" = String, Path, description = "The document's id")),
    responses((
        status = 200,
        description = "Events, until the ingestion has ended",
        content_type = "text/event-stream",
        body = String,
        example = "event: ingestion\ndata: {\"status\":\"RUNNING\",\"stage\":\"PARSE\"}\n\nevent: ingestion\ndata: {\"status\":\"SUCCEEDED\",\"stage\":\"INDEX\"}\n\n",
    )),
)]
#[handler]
pub(super) async fn follow(
    State(documents): State<DocumentService>,
    caller: Caller,
    shutdown: Option<Extension<Shutdown>>,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    let actor = caller.actor();
    let first = IngestionView::from(documents.ingestion(&actor, id).await?);
    if first.status.is_final() {
        return Ok(ended(&first));
    }
    let ingestion = documents.follow(&actor, id)?;
    let follower = IngestionFollower { id, ingestion, unread: Some(first), shown: None };
    let events = stream::unfold(Some(follower), |follower| async { follower?.next().await });
    let stopped = async move {
        match shutdown {
            Some(Extension(shutdown)) => shutdown.soft().cancelled().await,
            None => pending().await,
        }
    };
    let events = events.map(Ok::<_, Infallible>).take_until(Box::pin(stopped));
    let over = ApiError::credential_ended();
    let last = sse::named(EventKind::Error, &json!({"code": over.code, "message": over.message}));
    let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    Ok((sse::headers(), Extension(TerminationNotice(last)), stream).into_response())
}

/// All that there is to be told of an ingestion that has ended: there is nothing to wait for.
fn ended(ingestion: &IngestionView) -> Response {
    (sse::headers(), sse::named(EventKind::Ingestion, &json!(ingestion))).into_response()
}

struct IngestionFollower {
    id: DocumentId,
    ingestion: FollowedIngestion,
    /// What was read before it was followed, and is to be shown first.
    unread: Option<IngestionView>,
    shown: Option<IngestionView>,
}

impl IngestionFollower {
    /// The next event, and who makes the one after it, if there is to be one.
    async fn next(mut self) -> Option<(Event, Option<Self>)> {
        loop {
            let ingestion = match self.unread.take() {
                Some(first) => first,
                None => match self.ingestion.next().await {
                    Ok(Some(ingestion)) => IngestionView::from(ingestion),
                    Ok(None) => return Some((event(EventKind::Deleted, &json!({"id": self.id}))?, None)),
                    Err(error) => {
                        let error = json!({"code": error.code, "message": error.message});
                        return Some((event(EventKind::Error, &error)?, None));
                    }
                },
            };
            if self.shown.as_ref() == Some(&ingestion) {
                continue;
            }
            let event = event(EventKind::Ingestion, &ingestion)?;
            if ingestion.status.is_final() {
                return Some((event, None));
            }
            self.shown = Some(ingestion);
            return Some((event, Some(self)));
        }
    }
}

fn event(kind: EventKind, data: &impl Serialize) -> Option<Event> {
    let event = Event::default().event(kind.as_str()).json_data(data);
    event.inspect_err(|error| tracing::error!(%error, "an event cannot be written as JSON")).ok()
}
