//! What an agent has: documents, collections and tools.

use axum::extract::State;
use lectern_derive::{RequestBody, handler};
use lectern_shared::ids::AgentId;
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    dashboard::frame::SubmittedForm,
    error::ApiError,
    extract::PathId,
    fields::validate,
    response::ApiResult,
    services::{
        actor::Actor,
        creation::IdempotentRequest,
        links::{AgentCollectionService, AgentDocumentService, AgentToolService},
    },
};

/// One thing that is linked.
#[derive(RequestBody, ToSchema)]
pub(super) struct LinkForm {
    #[schema(max_length = 100)]
    document: Option<String>,
    #[schema(max_length = 100)]
    collection: Option<String>,
    #[schema(max_length = 100)]
    tool: Option<String>,
}

/// One link that is taken away, and the page of links that it was taken away on.
#[derive(RequestBody, ToSchema)]
pub(super) struct UnlinkForm {
    #[schema(max_length = 100)]
    document: Option<String>,
    #[schema(max_length = 100)]
    collection: Option<String>,
    #[schema(max_length = 100)]
    tool: Option<String>,
    /// The link to a document behind which the page begins.
    #[schema(max_length = 100)]
    documents: Option<String>,
    /// The link to a collection behind which it begins.
    #[schema(max_length = 100)]
    collections: Option<String>,
}

/// Where a page of links is, from the root.
fn page_with(agent: AgentId, documents: Option<&str>, collections: Option<&str>) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (list, page) in [("documents", documents), ("collections", collections)] {
        if let Some(page) = page {
            query.append_pair(list, page);
        }
    }
    format!("agents/{agent}?{}", query.append_pair("said", "removed").finish())
}

/// A link that is there already is given again: it needs no key.
fn once(actor: &Actor) -> IdempotentRequest {
    IdempotentRequest::new(actor, None, "", &[])
}

fn nothing_named() -> ApiError {
    ApiError::invalid_field("document", "choose one")
}

/// Links it.
#[handler]
pub(super) async fn link(
    State(documents): State<AgentDocumentService>,
    State(collections): State<AgentCollectionService>,
    State(tools): State<AgentToolService>,
    PathId(agent): PathId<AgentId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<LinkForm>,
) -> ApiResult {
    let actor = visitor.actor();
    let once = once(&actor);
    match body {
        LinkForm { document: Some(id), .. } => {
            let link = validate(&json!({"agentId": agent, "documentId": id}))?;
            documents.create(&actor, link, once, |_| Ok(Vec::new())).await?;
        }
        LinkForm { collection: Some(id), .. } => {
            let link = validate(&json!({"agentId": agent, "collectionId": id}))?;
            collections.create(&actor, link, once, |_| Ok(Vec::new())).await?;
        }
        LinkForm { tool: Some(id), .. } => {
            let link = validate(&json!({"agentId": agent, "toolId": id}))?;
            tools.create(&actor, link, once, |_| Ok(Vec::new())).await?;
        }
        LinkForm { document: None, collection: None, tool: None } => return Err(nothing_named()),
    }
    Ok(visitor.go(&format!("agents/{agent}?said=added")))
}

/// Takes a link away.
#[handler]
pub(super) async fn unlink(
    State(documents): State<AgentDocumentService>,
    State(collections): State<AgentCollectionService>,
    State(tools): State<AgentToolService>,
    PathId(agent): PathId<AgentId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<UnlinkForm>,
) -> ApiResult {
    let actor = visitor.actor();
    let unknown = || ApiError::not_found("link");
    let page = page_with(agent, body.documents.as_deref(), body.collections.as_deref());
    match body {
        UnlinkForm { document: Some(id), .. } => {
            documents.delete(&actor, id.parse().map_err(|_| unknown())?).await?;
        }
        UnlinkForm { collection: Some(id), .. } => {
            collections.delete(&actor, id.parse().map_err(|_| unknown())?).await?;
        }
        UnlinkForm { tool: Some(id), .. } => tools.delete(&actor, id.parse().map_err(|_| unknown())?).await?,
        UnlinkForm { document: None, collection: None, tool: None, .. } => return Err(nothing_named()),
    }
    Ok(visitor.go(&page))
}
