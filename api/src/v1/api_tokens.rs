//! API tokens.

use axum::extract::State;
use lectern_shared::{
    clock::Timestamp,
    ids::{ApiTokenId, UserId},
    model::user::User,
};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::users::{self, UserView};
use crate::{
    auth::Caller,
    extract::PathId,
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::SuccessResponse,
    response::{ApiResult, Paging, data, list},
    services::tokens::{NewApiToken, RevealedToken, TokenService},
    state::AppState,
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(index, create)).routes(routes!(find, remove))
}

/// An API token.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiToken)]
#[serde(rename_all = "camelCase")]
struct ApiTokenView {
    /// Its id.
    #[schema(value_type = String)]
    id: ApiTokenId,
    /// Its owner's id.
    #[schema(value_type = String)]
    user_id: UserId,
    /// Its owner.
    user: UserView,
    /// What its owner wrote to remember it by.
    description: String,
    /// The value: send it as `X_SERVICE_API_KEY: <token>` to predict, or as `Authorization: Bearer <token>` to anything.
    token: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it last opened a request, to the minute; null when it never did.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    last_used_at: Option<Timestamp>,
}

impl ApiTokenView {
    fn new(RevealedToken { token, value }: &RevealedToken, owner: &User) -> Self {
        Self {
            id: token.id,
            user_id: token.user_id,
            user: owner.into(),
            description: token.description.clone(),
            token: value.expose_secret().to_owned(),
            created_at: token.created_at,
            last_used_at: token.last_used_at,
        }
    }
}

fn example() -> Value {
    json!({
        "id": "019a8f40-12c7-7f03-8a61-0b9d5e7744c2",
        "userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "user": users::example(),
        "description": "nightly reports",
        "token": "lec_0Kq7fYxPz3WvN8sR1tLmC5hJ2bD9gXaE6uQiTnOyVwe",
        "createdAt": "2026-01-31T08:05:00.000000+00:00",
        "lastUsedAt": null,
    })
}

/// Create an API token
///
/// Makes a token that does not expire. It calls agents, and works as a bearer token on every other endpoint. Delete it to end
/// it.
#[utoipa::path(
    post,
    path = "/api-tokens",
    tag = "API tokens",
    operation_id = "createApiToken",
    request_body(content = NewApiToken, example = json!({"description": "nightly reports"})),
    responses((
        status = 200,
        description = "The new token with its value",
        body = inline(SuccessResponse<ApiTokenView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn create(
    State(tokens): State<TokenService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewApiToken>,
) -> ApiResult {
    let actor = caller.actor();
    let show = json_encoder(move |token: &RevealedToken| Ok(ApiTokenView::new(token, &caller.0)));
    tokens.create(actor, body, once, show).await.map(creation_response)
}

/// List your API tokens
///
/// Shows every token with its value, newest first.
#[utoipa::path(
    get,
    path = "/api-tokens",
    tag = "API tokens",
    operation_id = "listApiTokens",
    responses((
        status = 200,
        description = "Your tokens",
        body = inline(SuccessResponse<Vec<ApiTokenView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
async fn index(State(tokens): State<TokenService>, caller: Caller, paging: Paging) -> ApiResult {
    list(paging, move |before, limit| {
        let (tokens, caller) = (tokens.clone(), caller.clone());
        async move {
            let tokens = tokens.list(caller.actor(), before, limit).await?;
            let row = |one: &RevealedToken| (*one.token.id.as_uuid(), ApiTokenView::new(one, &caller.0));
            Ok(tokens.iter().map(row).collect())
        }
    })
    .await
}

/// Get an API token
///
/// Shows one token with its value.
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
async fn find(
    State(tokens): State<TokenService>,
    caller: Caller,
    PathId(id): PathId<ApiTokenId>,
) -> ApiResult {
    let token = tokens.find(caller.actor(), id).await?;
    Ok(data(ApiTokenView::new(&token, &caller.0)))
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
async fn remove(
    State(tokens): State<TokenService>,
    caller: Caller,
    PathId(id): PathId<ApiTokenId>,
) -> ApiResult {
    let token = tokens.delete(caller.actor(), id).await?;
    Ok(data(ApiTokenView::new(&token, &caller.0)))
}
