//! API tokens.

use axum::{Router, extract::State, routing::get};
use lectern_shared::{
    db,
    ids::ApiTokenId,
    model::user::{ApiToken, User},
    runtime::Runtime,
    secrets::Keyring,
};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{DESCRIPTION, users};
use crate::{
    auth::{Caller, token},
    error::ApiError,
    extract::{Fields, FromFields, PathId, Valid},
    response::{Answer, Paging, data, list},
    state::AppState,
};

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/api-tokens", get(index).post(create))
        .route("/api-tokens/{id}", get(find).delete(remove))
}

fn show(keyring: &Keyring, token: &ApiToken, owner: &User) -> Result<Value, ApiError> {
    let value = token::reveal(keyring, token)?;
    Ok(json!({
        "id": token.id,
        "userId": token.user_id,
        "user": users::show(owner),
        "description": token.description,
        "token": value.expose_secret(),
        "createdAt": token.created_at,
        "lastUsedAt": token.last_used_at,
    }))
}

struct NewToken {
    description: String,
}

impl FromFields for NewToken {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        Self { description: fields.text("description", DESCRIPTION) }
    }
}

async fn create(State(runtime): State<Runtime>, caller: Caller, Valid(body): Valid<NewToken>) -> Answer {
    let mut tx = runtime.db.begin().await?;
    let token = token::create(&runtime, &mut tx, caller.id(), body.description).await?;
    tx.commit().await?;
    Ok(data(show(&runtime.keyring, &token, &caller.0)?))
}

async fn index(State(runtime): State<Runtime>, caller: Caller, paging: Paging) -> Answer {
    list(paging, move |before, limit| {
        let (runtime, owner) = (runtime.clone(), caller.0.clone());
        async move {
            let tokens = db::accounts::list_tokens(&runtime.db, owner.id, before.into(), limit).await?;
            let row = |token: &ApiToken| Ok((*token.id.as_uuid(), show(&runtime.keyring, token, &owner)?));
            tokens.iter().map(row).collect()
        }
    })
    .await
}

async fn find(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<ApiTokenId>) -> Answer {
    let token = db::accounts::find_token(&runtime.db, caller.id(), id).await?;
    let token = token.ok_or_else(|| ApiError::not_found("API token"))?;
    Ok(data(show(&runtime.keyring, &token, &caller.0)?))
}

async fn remove(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<ApiTokenId>) -> Answer {
    let mut tx = runtime.db.begin().await?;
    let token = db::accounts::delete_token(&mut tx, caller.id(), id).await?;
    let token = token.ok_or_else(|| ApiError::not_found("API token"))?;
    let shown = show(&runtime.keyring, &token, &caller.0)?;
    tx.commit().await?;
    Ok(data(shown))
}
