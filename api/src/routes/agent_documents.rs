//! Links between agents and documents.

use axum::{extract::State, http::Uri};
use lectern_shared::{
    clock::Timestamp,
    db,
    ids::{AgentDocumentId, AgentId, DocumentId, UserId},
    model::agent::AgentDocument,
    runtime::Runtime,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::users::Nothing;
use crate::{
    auth::Caller,
    error::ApiError,
    extract::{Fields, FromFields, PathId, queried_agent},
    idempotency::Create,
    openapi::Data,
    response::{Answer, Paging, data, list},
    state::AppState,
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(index, create)).routes(routes!(find, remove))
}

/// A link between an agent and a document.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentDocument)]
#[serde(rename_all = "camelCase")]
struct AgentDocumentView {
    /// Its id.
    #[schema(value_type = String)]
    id: AgentDocumentId,
    /// The agent's id.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// Always empty.
    #[schema(value_type = Object)]
    agent: Map<String, Value>,
    /// The document's id.
    #[schema(value_type = String)]
    document_id: DocumentId,
    /// Always empty.
    #[schema(value_type = Object)]
    document: Map<String, Value>,
    /// The owner of both.
    #[schema(value_type = String)]
    user_id: UserId,
    /// When they were linked.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// Always empty; in the answer to a create only.
    #[schema(value_type = Option<Object>, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Map<String, Value>>,
}

impl From<&AgentDocument> for AgentDocumentView {
    fn from(link: &AgentDocument) -> Self {
        Self {
            id: link.id,
            agent_id: link.agent_id,
            agent: Map::new(),
            document_id: link.document_id,
            document: Map::new(),
            user_id: link.user_id,
            created_at: link.created_at,
            user: None,
        }
    }
}

fn example() -> Value {
    json!({
        "id": "019a8f43-5e60-7c08-a4d9-0f1e2d3c4b5a",
        "agentId": "019a8f41-9c33-7d21-b0aa-7e54d1c2b3f0",
        "agent": {},
        "documentId": "019a8f3e-2b7a-7f11-93c4-8d6e5f4a3b2c",
        "document": {},
        "userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "createdAt": "2026-01-31T08:08:00.000000+00:00",
    })
}

fn created_example() -> Value {
    let mut link = example();
    if let Some(link) = link.as_object_mut() {
        link.insert("user".to_owned(), json!({}));
    }
    link
}

fn unknown() -> ApiError {
    ApiError::not_found("link")
}

/// A new link.
#[derive(ToSchema)]
#[schema(as = NewAgentDocument, rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the JSON; the values are read one by one")]
struct NewLink {
    /// One of your agents.
    agent_id: String,
    /// One of your documents.
    document_id: String,
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

/// Link an agent and a document
///
/// From now on the agent answers from the document too. Linking the same pair again gives the first link. A document of which
/// nothing can be searched, and whose ingestion has ended, is ingested again.
#[utoipa::path(
    post,
    path = "/agent-documents",
    tag = "Agent documents",
    operation_id = "createAgentDocument",
    request_body(content = NewLink, example = json!({
        "agentId": "019a8f41-9c33-7d21-b0aa-7e54d1c2b3f0",
        "documentId": "019a8f3e-2b7a-7f11-93c4-8d6e5f4a3b2c",
    })),
    responses((
        status = 200,
        description = "The link",
        body = inline(Data<AgentDocumentView>),
        example = json!({"success": true, "data": created_example()}),
    )),
)]
async fn create(
    State(runtime): State<Runtime>,
    caller: Caller,
    Create { body, once }: Create<Body>,
) -> Answer {
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
    let view = AgentDocumentView { user: Some(Map::new()), ..AgentDocumentView::from(&link) };
    let answer = once.commit(&runtime, tx, &view).await?;
    if queued {
        runtime.jobs.doorbell().ring(1);
    }
    Ok(answer)
}

/// List links between agents and documents
///
/// Newest first; those of one agent with `agentId`.
#[utoipa::path(
    get,
    path = "/agent-documents",
    tag = "Agent documents",
    operation_id = "listAgentDocuments",
    params(("agentId" = Option<String>, Query, description = "Only the links of this agent")),
    responses((
        status = 200,
        description = "The links",
        body = inline(Data<Vec<AgentDocumentView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
async fn index(State(runtime): State<Runtime>, caller: Caller, uri: Uri, paging: Paging) -> Answer {
    let agent = queried_agent(&runtime.db, &caller, &uri).await?;
    list(paging, move |before, limit| {
        let (db, user) = (runtime.db.clone(), caller.id());
        async move {
            let links = db::agents::list_links(&db, user, agent, before.into(), limit).await?;
            Ok(links.iter().map(|link| (*link.id.as_uuid(), AgentDocumentView::from(link))).collect())
        }
    })
    .await
}

/// Get a link between an agent and a document
///
/// Shows which agent and which document it joins.
#[utoipa::path(
    get,
    path = "/agent-documents/{id}",
    tag = "Agent documents",
    operation_id = "getAgentDocument",
    params(("id" = String, Path, description = "The link's id")),
    responses((
        status = 200,
        description = "The link",
        body = inline(Data<AgentDocumentView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn find(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<AgentDocumentId>) -> Answer {
    let link = db::agents::find_link(&runtime.db, caller.id(), id).await?.ok_or_else(unknown)?;
    Ok(data(AgentDocumentView::from(&link)))
}

/// Delete a link between an agent and a document
///
/// The agent does not answer from the document any more. Both stay.
#[utoipa::path(
    delete,
    path = "/agent-documents/{id}",
    tag = "Agent documents",
    operation_id = "deleteAgentDocument",
    params(("id" = String, Path, description = "The link's id")),
    responses((
        status = 200,
        description = "It is gone",
        body = inline(Data<Nothing>),
        example = json!({"success": true, "data": null}),
    )),
)]
async fn remove(
    State(runtime): State<Runtime>,
    caller: Caller,
    PathId(id): PathId<AgentDocumentId>,
) -> Answer {
    let mut tx = runtime.db.begin_essential().await?;
    if !db::agents::unlink(&mut tx, caller.id(), id).await? {
        return Err(unknown());
    }
    tx.commit().await?;
    Ok(data(Nothing))
}
