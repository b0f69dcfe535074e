//! Links between agents and documents.

use axum::{Router, extract::State, http::Uri, routing::get};
use lectern_shared::{
    db,
    ids::{AgentDocumentId, AgentId, DocumentId},
    model::agent::AgentDocument,
    runtime::Runtime,
};
use serde_json::{Value, json};

use crate::{
    auth::Caller,
    error::ApiError,
    extract::{Fields, FromFields, PathId, Valid, parameter},
    response::{Answer, Paging, data, list},
    state::AppState,
};

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/agent-documents", get(index).post(create))
        .route("/agent-documents/{id}", get(find).delete(remove))
}

fn show(link: &AgentDocument) -> Value {
    json!({
        "id": link.id,
        "agentId": link.agent_id,
        "agent": {},
        "documentId": link.document_id,
        "document": {},
        "userId": link.user_id,
        "createdAt": link.created_at,
    })
}

struct Body {
    agent: Option<AgentId>,
    document: Option<DocumentId>,
}

impl FromFields for Body {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        Self { agent: fields.id("agentId"), document: fields.id("documentId") }
    }
}

async fn create(State(runtime): State<Runtime>, caller: Caller, Valid(body): Valid<Body>) -> Answer {
    let agent = body.agent.ok_or_else(|| ApiError::not_found("agent"))?;
    let document = body.document.ok_or_else(|| ApiError::not_found("document"))?;
    let mut tx = runtime.db.begin().await?;
    let link = db::agents::link(&mut tx, caller.id(), agent, document, runtime.clock.now()).await?;
    let link = link.ok_or_else(|| ApiError::not_found("agent or document"))?;
    // Whoever links a document means to ask it: one of which nothing is searchable, and nothing under way, is tried again.
    let queued = db::jobs::gave_up(&mut tx, document).await?;
    if queued {
        runtime.jobs.enqueue_ingest(&mut tx, caller.id(), document).await?;
    }
    tx.commit().await?;
    if queued {
        runtime.jobs.doorbell().ring(1);
    }
    let mut shown = show(&link);
    if let Some(shown) = shown.as_object_mut() {
        shown.insert("user".to_owned(), json!({}));
    }
    Ok(data(shown))
}

async fn index(State(runtime): State<Runtime>, caller: Caller, uri: Uri, paging: Paging) -> Answer {
    let unknown = || ApiError::not_found("agent");
    let agent: Option<AgentId> =
        parameter(&uri, "agentId").map(|text| text.parse()).transpose().map_err(|_| unknown())?;
    if let Some(agent) = agent {
        db::agents::find(&runtime.db, caller.id(), agent).await?.ok_or_else(unknown)?;
    }
    list(paging, move |before, limit| {
        let (db, user) = (runtime.db.clone(), caller.id());
        async move {
            let links = db::agents::list_links(&db, user, agent, before.into(), limit).await?;
            Ok(links.iter().map(|link| (*link.id.as_uuid(), show(link))).collect())
        }
    })
    .await
}

async fn find(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<AgentDocumentId>) -> Answer {
    let link = db::agents::find_link(&runtime.db, caller.id(), id).await?;
    Ok(data(show(&link.ok_or_else(unknown)?)))
}

async fn remove(
    State(runtime): State<Runtime>,
    caller: Caller,
    PathId(id): PathId<AgentDocumentId>,
) -> Answer {
    let mut tx = runtime.db.begin().await?;
    if !db::agents::unlink(&mut tx, caller.id(), id).await? {
        return Err(unknown());
    }
    tx.commit().await?;
    Ok(data(Value::Null))
}

fn unknown() -> ApiError {
    ApiError::not_found("link")
}
