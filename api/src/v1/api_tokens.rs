//! API tokens.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, ApiTokenId, UserId, WorkspaceId},
    model::{Json, workspace::Role},
};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::users::{self, UserView};
use crate::{
    auth::Caller,
    extract::{NamePart, PathId},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::tokens::{NewApiToken, RevealedToken, TokenService},
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(index, create)).routes(routes!(find, remove))
}

/// An API token.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiToken)]
#[serde(rename_all = "camelCase")]
struct ApiTokenView {
    /// Its id.
    #[schema(value_type = String)]
    id: ApiTokenId,
    /// The workspace that it opens.
    #[schema(value_type = String)]
    workspace_id: WorkspaceId,
    /// Its owner's id.
    #[schema(value_type = String)]
    user_id: UserId,
    /// Its owner.
    user: UserView,
    /// What its owner wrote to remember it by.
    description: String,
    /// The value, for its maker; empty for everybody else. Send it as `X_SERVICE_API_KEY: <token>` to predict, or as `Authorization: Bearer <token>` to anything.
    token: String,
    /// What it may do in the workspace, as far as its maker may: `asker`, `editor`, `builder` or `owner`.
    #[schema(value_type = String)]
    role: Role,
    /// The one agent that it may ask; null for all that its role may.
    #[schema(value_type = Option<String>, required = true)]
    agent_id: Option<AgentId>,
    /// The origins of the pages that may use it; null when it is not for pages.
    #[schema(required = true)]
    origins: Option<Vec<String>>,
    /// When it ends; null when it does not.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    expires_at: Option<Timestamp>,
    /// How many requests a minute it opens: all of them at once if none was sent for a minute, and then as many a minute as come back;
    /// null for as many as the service admits.
    #[schema(required = true)]
    rate_per_minute: Option<i64>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// The same: a token does not change.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// When it last opened a request, to the minute; null when it never did.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    last_used_at: Option<Timestamp>,
}

impl From<&RevealedToken> for ApiTokenView {
    fn from(RevealedToken { token, value, maker }: &RevealedToken) -> Self {
        Self {
            id: token.id,
            workspace_id: token.owner.workspace_id,
            user_id: maker.id,
            user: maker.into(),
            description: token.description.clone(),
            token: value.as_ref().map(|value| value.expose_secret().to_owned()).unwrap_or_default(),
            role: token.role.unwrap_or(Role::Owner),
            agent_id: token.agent_id,
            origins: token.origins.as_ref().map(|Json(origins)| origins.clone()),
            expires_at: token.expires_at,
            rate_per_minute: token.rate_per_minute,
            created_at: token.created_at,
            updated_at: token.created_at,
            last_used_at: token.last_used_at,
        }
    }
}

fn example() -> Value {
    json!({
        "id": "019a8f40-12c7-7f03-8a61-0b9d5e7744c2",
        "workspaceId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "user": users::example(),
        "description": "nightly reports",
        "token": "lec_0Kq7fYxPz3WvN8sR1tLmC5hJ2bD9gXaE6uQiTnOyVwe",
        "role": "builder",
        "agentId": null,
        "origins": null,
        "expiresAt": null,
        "ratePerMinute": null,
        "createdAt": "2026-01-31T08:05:00.000000+00:00",
        "updatedAt": "2026-01-31T08:05:00.000000+00:00",
        "lastUsedAt": null,
    })
}

/// Create an API token
///
/// Makes a token for the workspace, which calls agents, and works as a bearer token on the other endpoints as far as its role and
/// yours go. One with `origins` may be published in a page: bind it to an agent with `agentId`. Without `expiresAt` it does not
/// end until you delete it. You alone see its value.
#[utoipa::path(
    post,
    path = "/api-tokens",
    tag = "API tokens",
    operation_id = "createApiToken",
    request_body(content = NewApiToken, example = json!({"description": "nightly reports"})),
    responses(
        (
            status = 200,
            description = "The new token with its value",
            body = inline(SuccessResponse<ApiTokenView>),
            example = json!({"success": true, "data": example()}),
        ),
        (status = 409, description = "The workspace has as many API tokens as it may (`too_many_tokens`)"),
    ),
)]
#[handler]
async fn create(
    State(tokens): State<TokenService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewApiToken>,
) -> ApiResult {
    let show = json_encoder(|token: &RevealedToken| Ok(ApiTokenView::from(token)));
    tokens.create(&caller.actor(), &caller.user, body, once, show).await.map(creation_response)
}

/// List your API tokens
///
/// Shows every token of the workspace, newest first, and the values of those that you made.
#[utoipa::path(
    get,
    path = "/api-tokens",
    tag = "API tokens",
    operation_id = "listApiTokens",
    params(("name" = Option<String>, Query, description = "Only those whose descriptions have this somewhere, in whichever case", max_length = 1_000)),
    responses((
        status = 200,
        description = "Your tokens",
        body = inline(SuccessResponse<Vec<ApiTokenView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
#[handler]
async fn index(
    State(tokens): State<TokenService>,
    caller: Caller,
    paging: Paging,
    NamePart(name): NamePart,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (tokens, caller, name) = (tokens.clone(), caller.clone(), name.clone());
        async move {
            let tokens = tokens.list(&caller.actor(), &caller.user, &name, before, limit).await?;
            let row = |one: &RevealedToken| (*one.token.id.as_uuid(), ApiTokenView::from(one));
            Ok(tokens.iter().map(row).collect())
        }
    })
    .await
}

/// Get an API token
///
/// Shows one token, and its value if you made it.
#[utoipa::path(
    get,
    path = "/api-tokens/{id}",
    tag = "API tokens",
    operation_id = "getApiToken",
    params(("id" = String, Path, description = "The token's id (not its value)")),
    responses((
        status = 200,
        description = "The token",
        body = inline(SuccessResponse<ApiTokenView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn find(
    State(tokens): State<TokenService>,
    caller: Caller,
    PathId(id): PathId<ApiTokenId>,
) -> ApiResult {
    let token = tokens.find(&caller.actor(), &caller.user, id).await?;
    Ok(data(ApiTokenView::from(&token)))
}

/// Delete an API token
///
/// Ends a token: the next request that carries it is refused. The answer shows it for the last time.
#[utoipa::path(
    delete,
    path = "/api-tokens/{id}",
    tag = "API tokens",
    operation_id = "deleteApiToken",
    params(("id" = String, Path, description = "The token's id (not its value)")),
    responses((
        status = 200,
        description = "The token, which opens nothing any more",
        body = inline(SuccessResponse<ApiTokenView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn remove(
    State(tokens): State<TokenService>,
    caller: Caller,
    PathId(id): PathId<ApiTokenId>,
) -> ApiResult {
    let token = tokens.delete(&caller.actor(), &caller.user, id).await?;
    Ok(data(ApiTokenView::from(&token)))
}
