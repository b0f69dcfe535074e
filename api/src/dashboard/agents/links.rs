//! What an agent has: documents, collections and tools.

use axum::extract::State;
use lectern_derive::{RequestBody, handler};
use lectern_shared::ids::AgentId;
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    dashboard::frame::SubmittedForm,
    error::{ApiError, FieldError},
    extract::PathId,
    fields::validate,
    response::ApiResult,
    services::{
        actor::Actor,
        creation::IdempotentRequest,
        links::{AgentCollectionService, AgentDocumentService, AgentToolService},
    },
};

/// One thing: a document, a collection or a tool when it is linked, and its link when that is taken away.
#[derive(RequestBody, ToSchema)]
pub(super) struct LinkForm {
    #[schema(max_length = 100)]
    document: Option<String>,
    #[schema(max_length = 100)]
    collection: Option<String>,
    #[schema(max_length = 100)]
    tool: Option<String>,
}

/// A link that is there already is given again: it needs no key.
fn once(actor: &Actor) -> IdempotentRequest {
    IdempotentRequest::new(actor, None, "", &[])
}

fn nothing_named() -> ApiError {
    let message = "choose one".to_owned();
    ApiError::invalid(vec![FieldError { path: "document".to_owned(), message }])
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
    SubmittedForm { visitor, body, .. }: SubmittedForm<LinkForm>,
) -> ApiResult {
    let actor = visitor.actor();
    let unknown = || ApiError::not_found("link");
    match body {
        LinkForm { document: Some(id), .. } => {
            documents.delete(&actor, id.parse().map_err(|_| unknown())?).await?;
        }
        LinkForm { collection: Some(id), .. } => {
            collections.delete(&actor, id.parse().map_err(|_| unknown())?).await?;
        }
        LinkForm { tool: Some(id), .. } => tools.delete(&actor, id.parse().map_err(|_| unknown())?).await?,
        LinkForm { document: None, collection: None, tool: None } => return Err(nothing_named()),
    }
    Ok(visitor.go(&format!("agents/{agent}?said=removed")))
}
