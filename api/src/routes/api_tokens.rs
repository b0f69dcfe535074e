//! API tokens.

use axum::extract::State;
use lectern_shared::{
    clock::Timestamp,
    db,
    ids::{ApiTokenId, UserId},
    model::user::{ApiToken, User},
    runtime::Runtime,
    secrets::Keyring,
};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    DESCRIPTION,
    users::{self, UserView},
};
use crate::{
    auth::{Caller, token},
    error::ApiError,
    extract::{Fields, FromFields, PathId},
    idempotency::Create,
    openapi::Data,
    response::{Answer, Paging, data, list},
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
    fn new(keyring: &Keyring, token: &ApiToken, owner: &User) -> Result<Self, ApiError> {
        Ok(Self {
            id: token.id,
            user_id: token.user_id,
            user: owner.into(),
            description: token.description.clone(),
            token: token::reveal(keyring, token)?.expose_secret().to_owned(),
            created_at: token.created_at,
            last_used_at: token.last_used_at,
        })
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

/// A new API token.
#[derive(ToSchema)]
struct NewApiToken {
    /// What to remember it by.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    description: String,
}

impl FromFields for NewApiToken {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        Self { description: fields.text("description", DESCRIPTION) }
    }
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
        body = inline(Data<ApiTokenView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn create(
    State(runtime): State<Runtime>,
    caller: Caller,
    Create { body, once }: Create<NewApiToken>,
) -> Answer {
    let mut tx = runtime.db.begin().await?;
    let token = token::create(&runtime, &mut tx, caller.id(), body.description).await?;
    let view = ApiTokenView::new(&runtime.keyring, &token, &caller.0)?;
    once.commit(&runtime, tx, &view).await
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
        body = inline(Data<Vec<ApiTokenView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
async fn index(State(runtime): State<Runtime>, caller: Caller, paging: Paging) -> Answer {
    list(paging, move |before, limit| {
        let (runtime, owner) = (runtime.clone(), caller.0.clone());
        async move {
            let tokens = db::accounts::list_tokens(&runtime.db, owner.id, before.into(), limit).await?;
            let row = |token: &ApiToken| {
                let view = ApiTokenView::new(&runtime.keyring, token, &owner)?;
                Ok((*token.id.as_uuid(), view))
            };
            tokens.iter().map(row).collect()
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
        body = inline(Data<ApiTokenView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn find(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<ApiTokenId>) -> Answer {
    let token = db::accounts::find_token(&runtime.db, caller.id(), id).await?;
    let token = token.ok_or_else(|| ApiError::not_found("API token"))?;
    Ok(data(ApiTokenView::new(&runtime.keyring, &token, &caller.0)?))
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
        body = inline(Data<ApiTokenView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn remove(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<ApiTokenId>) -> Answer {
    let mut tx = runtime.db.begin_essential().await?;
    let token = db::accounts::delete_token(&mut tx, caller.id(), id).await?;
    let token = token.ok_or_else(|| ApiError::not_found("API token"))?;
    let view = ApiTokenView::new(&runtime.keyring, &token, &caller.0)?;
    tx.commit().await?;
    Ok(data(view))
}
