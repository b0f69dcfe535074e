//! Links between agents and documents.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{AgentDocumentId, AgentId, DocumentId, UserId},
    model::agent::AgentDocument,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::users::NullBody;
use crate::{
    auth::Caller,
    extract::{PathId, QueriedAgent},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::links::{AgentDocumentService, NewAgentDocument},
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(index, create)).routes(routes!(find, remove))
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
            user_id: link.owner.creator(),
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

/// Link an agent and a document
///
/// From now on the agent answers from the document too. Linking the same pair again gives the first link. A document of which
/// nothing can be searched, and whose ingestion has ended, is ingested again.
#[utoipa::path(
    post,
    path = "/agent-documents",
    tag = "Agent documents",
    operation_id = "createAgentDocument",
    request_body(content = NewAgentDocument, example = json!({
        "agentId": "019a8f41-9c33-7d21-b0aa-7e54d1c2b3f0",
        "documentId": "019a8f3e-2b7a-7f11-93c4-8d6e5f4a3b2c",
    })),
    responses((
        status = 200,
        description = "The link",
        body = inline(SuccessResponse<AgentDocumentView>),
        example = json!({"success": true, "data": created_example()}),
    )),
)]
#[handler]
async fn create(
    State(links): State<AgentDocumentService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewAgentDocument>,
) -> ApiResult {
    let show = json_encoder(|link: &AgentDocument| {
        Ok(AgentDocumentView { user: Some(Map::new()), ..AgentDocumentView::from(link) })
    });
    links.create(&caller.actor(), body, once, show).await.map(creation_response)
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
        body = inline(SuccessResponse<Vec<AgentDocumentView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
#[handler]
async fn index(
    State(links): State<AgentDocumentService>,
    caller: Caller,
    paging: Paging,
    QueriedAgent(agent): QueriedAgent,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (links, actor) = (links.clone(), caller.actor());
        async move {
            let links = links.list(&actor, agent, before, limit).await?;
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
        body = inline(SuccessResponse<AgentDocumentView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn find(
    State(links): State<AgentDocumentService>,
    caller: Caller,
    PathId(id): PathId<AgentDocumentId>,
) -> ApiResult {
    Ok(data(AgentDocumentView::from(&links.find(&caller.actor(), id).await?)))
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
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn remove(
    State(links): State<AgentDocumentService>,
    caller: Caller,
    PathId(id): PathId<AgentDocumentId>,
) -> ApiResult {
    links.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}
