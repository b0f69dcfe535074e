//! The caller's own account.

use axum::{Router, extract::State, routing::get};
use lectern_shared::{db, model::user::User};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::NAME;
use crate::{
    auth::{Caller, accounts::password_problem},
    error::{ApiError, FieldError},
    extract::{Fields, FromFields, Valid},
    response::{Answer, data},
    state::AppState,
};

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/users/me", get(me).patch(change).delete(remove))
}

/// An account as the interface shows it.
pub(crate) fn show(user: &User) -> Value {
    json!({
        "id": user.id,
        "email": user.email,
        "name": user.name,
        "createdAt": user.created_at,
        "updatedAt": user.updated_at,
        "deletedAt": user.deleted_at,
        "isAdmin": user.is_admin,
        "profile": null,
        "Agent": null,
        "ApiToken": null,
        "Document": null,
    })
}

async fn me(caller: Caller) -> Answer {
    Ok(data(show(&caller.0)))
}

struct Change {
    name: Option<String>,
    password: Option<SecretString>,
    current_password: Option<SecretString>,
}

impl FromFields for Change {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        fields.only(&["name", "password", "currentPassword"]);
        let name = fields.get("name").is_some().then(|| fields.text("name", NAME));
        let password = fields.optional_text("password", 10_000).map(SecretString::from);
        if let Some(problem) = password.as_ref().and_then(password_problem) {
            fields.refuse("password", problem);
        }
        let current_password = fields.optional_text("currentPassword", 10_000).map(SecretString::from);
        if password.is_some() && current_password.is_none() {
            fields.refuse("currentPassword", "is required to change the password");
        }
        Self { name, password, current_password }
    }
}

/// Checks the caller's own password, and counts wrong ones as failed sign-ins are counted.
async fn check_password(
    state: &AppState,
    caller: &Caller,
    password: SecretString,
    path: &str,
) -> Result<(), ApiError> {
    let key = format!("password of {}", caller.id());
    let attempt = state.throttle.begin(&key, None, state.runtime.clock.now()).await?;
    let stored = db::accounts::find_credentials(&state.runtime.db, caller.id()).await?;
    let hash = stored.map(|credentials| credentials.password_hash);
    if state.passwords.verify(password, hash).await? {
        attempt.succeeded().wait().await;
        return Ok(());
    }
    attempt.failed().wait().await;
    let message = "is not the account's password".to_owned();
    Err(ApiError::invalid(vec![FieldError { path: path.to_owned(), message }]))
}

async fn change(State(state): State<AppState>, caller: Caller, Valid(body): Valid<Change>) -> Answer {
    let mut hash = None;
    if let (Some(new), Some(current)) = (body.password, body.current_password) {
        check_password(&state, &caller, current, "currentPassword").await?;
        hash = Some(state.passwords.hash(new).await?);
    }
    let mut tx = state.runtime.db.begin().await?;
    let name = body.name.as_deref().map(str::trim);
    let user =
        db::accounts::update(&mut tx, caller.id(), name, hash.as_deref(), state.runtime.clock.now()).await?;
    tx.commit().await?;
    user.map(|user| data(show(&user))).ok_or_else(|| ApiError::not_found("account"))
}

struct Removal {
    password: SecretString,
}

impl FromFields for Removal {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        Self { password: SecretString::from(fields.text("password", 10_000)) }
    }
}

/// Ends the account. The password is asked for again: whoever found a token must not be able to do this.
async fn remove(State(state): State<AppState>, caller: Caller, Valid(body): Valid<Removal>) -> Answer {
    check_password(&state, &caller, body.password, "password").await?;
    let mut tx = state.runtime.db.begin().await?;
    db::accounts::delete(&mut tx, caller.id(), state.runtime.jobs.now()).await?;
    tx.commit().await?;
    tracing::info!(user = %caller.id(), "account deleted");
    Ok(data(Value::Null))
}
