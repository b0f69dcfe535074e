//! Pages on which agents are asked.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, PublicationId, WorkspaceId},
    model::publication::{Publication, PublicationAccess},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    error::ApiError,
    extract::{PathId, ValidJson},
    openapi::{ApiRouter, SuccessResponse, routes},
    public_address::PublicAddress,
    response::{ApiResult, data},
    services::{
        edits::EditBase,
        publications::{NewPublication, PublicationService},
    },
    v1::users::NullBody,
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(find, put, remove))
}

/// An agent's page.
#[derive(Serialize, ToSchema)]
#[schema(as = Publication)]
#[serde(rename_all = "camelCase")]
struct PublicationView {
    /// Its id.
    #[schema(value_type = String)]
    id: PublicationId,
    /// The workspace that it belongs to.
    #[schema(value_type = String)]
    workspace_id: WorkspaceId,
    /// The agent.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// The last part of its address.
    slug: String,
    /// Its address.
    url: String,
    /// Who may open it: `members`, `link` or `public`.
    #[schema(value_type = String)]
    access: PublicationAccess,
    /// What stands above it; empty for the agent's name.
    title: String,
    /// What is said before the first question.
    greeting: String,
    /// Questions that can be chosen.
    questions: Vec<String>,
    /// The colour of its buttons; empty for the service's own.
    accent: String,
    /// The origins of pages that may show it in a frame.
    origins: Vec<String>,
    /// Questions a minute, at most, by all who have no account; null where members alone may open it.
    rate_per_minute: Option<i64>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl PublicationView {
    async fn of(
        publications: &PublicationService,
        page: Publication,
        address: &PublicAddress,
    ) -> Result<Self, ApiError> {
        let rate_per_minute = publications.rate_per_minute(&page).await?;
        Ok(Self {
            id: page.id,
            workspace_id: page.owner.workspace_id,
            agent_id: page.agent_id,
            url: address.link(&format!("/ask/{}", page.slug)),
            slug: page.slug,
            access: page.access,
            title: page.title,
            greeting: page.greeting,
            questions: page.questions.0,
            accent: page.accent,
            origins: page.origins.0,
            rate_per_minute,
            created_at: page.created_at,
            updated_at: page.updated_at,
        })
    }
}

fn example() -> Value {
    json!({
        "id": "019a8f60-1b2c-7d3e-8f4a-5b6c7d8e9f01",
        "workspaceId": "019a8f3e-0a1b-7c2d-8e3f-4a5b6c7d8e9f",
        "agentId": "019a8f4e-90aa-7e26-a4d7-58c1f3b20d6e",
        "slug": "help",
        "url": "https://lectern.example.com/ask/help",
        "access": "public",
        "title": "Ask the handbook",
        "greeting": "Ask anything about how we work.",
        "questions": ["How many days of leave do I have?"],
        "accent": "#0a58ca",
        "origins": ["https://www.example.com"],
        "ratePerMinute": 60,
        "createdAt": "2026-01-31T08:20:00.000000+00:00",
        "updatedAt": "2026-01-31T08:20:00.000000+00:00",
    })
}

/// Get an agent's page
///
/// Shows how an agent is published; 404 when it is not.
#[utoipa::path(
    get,
    path = "/agents/{id}/publication",
    tag = "Agents",
    operation_id = "getPublication",
    params(("id" = String, Path, description = "The agent's id")),
    responses((
        status = 200,
        description = "The page",
        body = inline(SuccessResponse<PublicationView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn find(
    State(publications): State<PublicationService>,
    caller: Caller,
    address: PublicAddress,
    PathId(id): PathId<AgentId>,
) -> ApiResult {
    let page = publications.find(&caller.actor(), id).await?;
    let page = page.ok_or_else(|| ApiError::not_found("publication"))?;
    Ok(data(PublicationView::of(&publications, page, &address).await?))
}

/// Publish an agent
///
/// Gives an agent a page of its own, `/ask/{slug}`, on which it is asked, in the place of the one that it has. With `public` or `link`
/// people need no account; they ask within `ratePerMinute` of all of them together, and see nothing but the answers, and the passages that
/// these cite. Pages of `origins` can show it as a widget: `<script src="…/embed.js" data-page="{slug}" async></script>`.
#[utoipa::path(
    put,
    path = "/agents/{id}/publication",
    tag = "Agents",
    operation_id = "putPublication",
    params(("id" = String, Path, description = "The agent's id")),
    request_body(
        content = NewPublication,
        example = json!({"slug": "help", "access": "public", "title": "Ask the handbook", "origins": ["https://www.example.com"]}),
    ),
    responses(
        (
            status = 200,
            description = "The page",
            body = inline(SuccessResponse<PublicationView>),
            example = json!({"success": true, "data": example()}),
        ),
        (status = 409, description = "Another page has this address (`slug_taken`), or the agent's prompt takes values that a published page does not ask for (`needs_values`)"),
    ),
)]
#[handler]
async fn put(
    State(publications): State<PublicationService>,
    caller: Caller,
    address: PublicAddress,
    PathId(id): PathId<AgentId>,
    ValidJson(body): ValidJson<NewPublication>,
) -> ApiResult {
    let page = publications.put(&caller.actor(), id, body, EditBase::Present).await?;
    Ok(data(PublicationView::of(&publications, page, &address).await?))
}

/// Take an agent's page away
///
/// Its address leads nowhere from then on. The agent stays.
#[utoipa::path(
    delete,
    path = "/agents/{id}/publication",
    tag = "Agents",
    operation_id = "deletePublication",
    params(("id" = String, Path, description = "The agent's id")),
    responses((
        status = 200,
        description = "It is gone",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn remove(
    State(publications): State<PublicationService>,
    caller: Caller,
    PathId(id): PathId<AgentId>,
) -> ApiResult {
    publications.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}
