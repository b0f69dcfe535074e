//! Links between agents and collections.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{AgentCollectionId, AgentId, CollectionId, UserId, WorkspaceId},
    model::collection::AgentCollection,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::users::NullBody;
use crate::{
    auth::Caller,
    extract::{PathId, QueriedAgent},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::links::{AgentCollectionService, NewAgentCollection},
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(index, create)).routes(routes!(find, remove))
}

/// A link between an agent and a collection.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentCollection)]
#[serde(rename_all = "camelCase")]
struct AgentCollectionView {
    /// Its id.
    #[schema(value_type = String)]
    id: AgentCollectionId,
    /// The workspace that it belongs to.
    #[schema(value_type = String)]
    workspace_id: WorkspaceId,
    /// The agent's id.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// The collection's id.
    #[schema(value_type = String)]
    collection_id: CollectionId,
    /// The id of whoever linked them.
    #[schema(value_type = String)]
    user_id: UserId,
    /// When they were linked.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// The same: links do not change.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<&AgentCollection> for AgentCollectionView {
    fn from(link: &AgentCollection) -> Self {
        Self {
            id: link.id,
            workspace_id: link.owner.workspace_id,
            agent_id: link.agent_id,
            collection_id: link.collection_id,
            user_id: link.owner.creator(),
            created_at: link.created_at,
            updated_at: link.created_at,
        }
    }
}

fn example() -> Value {
    json!({
        "id": "019a8f43-6f71-7d19-b5ea-1a2f3e4d5c6b",
        "workspaceId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "agentId": "019a8f41-9c33-7d21-b0aa-7e54d1c2b3f0",
        "collectionId": "019a8f3e-6c41-7a90-b2d7-3e5f7a9b1c2d",
        "userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "createdAt": "2026-01-31T08:08:00.000000+00:00",
        "updatedAt": "2026-01-31T08:08:00.000000+00:00",
    })
}

/// Link an agent and a collection
///
/// From now on the agent answers from the documents of the collection too, those included that are added to it later. Linking the
/// same pair again gives the first link.
#[utoipa::path(
    post,
    path = "/agent-collections",
    tag = "Agent collections",
    operation_id = "createAgentCollection",
    request_body(content = NewAgentCollection, example = json!({
        "agentId": "019a8f41-9c33-7d21-b0aa-7e54d1c2b3f0",
        "collectionId": "019a8f3e-6c41-7a90-b2d7-3e5f7a9b1c2d",
    })),
    responses((
        status = 200,
        description = "The link",
        body = inline(SuccessResponse<AgentCollectionView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn create(
    State(links): State<AgentCollectionService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewAgentCollection>,
) -> ApiResult {
    let show = json_encoder(|link: &AgentCollection| Ok(AgentCollectionView::from(link)));
    links.create(&caller.actor(), body, once, show).await.map(creation_response)
}

/// List links between agents and collections
///
/// Newest first; those of one agent with `agentId`.
#[utoipa::path(
    get,
    path = "/agent-collections",
    tag = "Agent collections",
    operation_id = "listAgentCollections",
    params(("agentId" = Option<String>, Query, description = "Only the links of this agent")),
    responses((
        status = 200,
        description = "The links",
        body = inline(SuccessResponse<Vec<AgentCollectionView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
#[handler]
async fn index(
    State(links): State<AgentCollectionService>,
    caller: Caller,
    paging: Paging,
    QueriedAgent(agent): QueriedAgent,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (links, actor) = (links.clone(), caller.actor());
        async move {
            let links = links.list(&actor, agent, before, limit).await?;
            Ok(links.iter().map(|link| (*link.id.as_uuid(), AgentCollectionView::from(link))).collect())
        }
    })
    .await
}

/// Get a link between an agent and a collection
///
/// Shows which agent and which collection it joins.
#[utoipa::path(
    get,
    path = "/agent-collections/{id}",
    tag = "Agent collections",
    operation_id = "getAgentCollection",
    params(("id" = String, Path, description = "The link's id")),
    responses((
        status = 200,
        description = "The link",
        body = inline(SuccessResponse<AgentCollectionView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn find(
    State(links): State<AgentCollectionService>,
    caller: Caller,
    PathId(id): PathId<AgentCollectionId>,
) -> ApiResult {
    Ok(data(AgentCollectionView::from(&links.find(&caller.actor(), id).await?)))
}

/// Delete a link between an agent and a collection
///
/// The agent does not answer from the collection any more. Both stay.
#[utoipa::path(
    delete,
    path = "/agent-collections/{id}",
    tag = "Agent collections",
    operation_id = "deleteAgentCollection",
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
    State(links): State<AgentCollectionService>,
    caller: Caller,
    PathId(id): PathId<AgentCollectionId>,
) -> ApiResult {
    links.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}
