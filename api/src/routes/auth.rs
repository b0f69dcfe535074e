//! Signing up, in and out.

use std::net::SocketAddr;

use axum::{
    Router,
    extract::{ConnectInfo, State},
    routing::post,
};
use lectern_shared::{
    db,
    model::user::{User, email_key},
    runtime::Runtime,
};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::NAME;
use crate::{
    auth::{
        Caller,
        accounts::{self, NewAccount, Origin, email_problem, password_problem},
    },
    error::ApiError,
    extract::{Fields, FromFields, Valid},
    response::{Answer, data},
    routes::users,
    state::AppState,
};

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/auth/sign-up", post(sign_up))
        .route("/auth/sign-in", post(sign_in))
        .route("/auth/sign-out", post(sign_out))
}

struct SignUp(NewAccount);

impl FromFields for SignUp {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        let email = fields.text("email", 254);
        if let Some(problem) = email_problem(&email).filter(|_| fields.get("email").is_some()) {
            fields.refuse("email", problem);
        }
        let password = SecretString::from(fields.text("password", 10_000));
        if let Some(problem) = password_problem(&password).filter(|_| fields.get("password").is_some()) {
            fields.refuse("password", problem);
        }
        Self(NewAccount { email, name: fields.optional_text("name", NAME), password })
    }
}

async fn sign_up(State(state): State<AppState>, Valid(SignUp(account)): Valid<SignUp>) -> Answer {
    let user = accounts::create(&state.runtime, &state.passwords, account, Origin::SignUp).await?;
    session(&state, &user)
}

struct SignIn {
    email: String,
    password: SecretString,
}

impl FromFields for SignIn {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        Self {
            email: fields.text("email", 1_000),
            password: SecretString::from(fields.text("password", 10_000)),
        }
    }
}

async fn sign_in(
    State(state): State<AppState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Valid(body): Valid<SignIn>,
) -> Answer {
    let key = email_key(&body.email);
    let attempt = state.throttle.begin(&key, Some(peer.ip()), state.runtime.clock.now()).await?;
    let found = db::accounts::find_by_email(&state.runtime.db, &key).await?;
    let hash = found.as_ref().map(|credentials| credentials.password_hash.clone());
    let fits = state.passwords.verify(body.password, hash).await?;
    match found.filter(|_| fits) {
        Some(credentials) => {
            attempt.succeeded().wait().await;
            session(&state, &credentials.user)
        }
        None => {
            attempt.failed().wait().await;
            Err(ApiError::unauthorized("The e-mail or the password is wrong."))
        }
    }
}

async fn sign_out(State(runtime): State<Runtime>, caller: Caller) -> Answer {
    let mut tx = runtime.db.begin().await?;
    db::accounts::end_sessions(&mut tx, caller.id()).await?;
    tx.commit().await?;
    Ok(data(Value::Null))
}

fn session(state: &AppState, user: &User) -> Answer {
    let token = state.jwt.sign(user.id, user.token_version, state.runtime.clock.now());
    let token = token.ok_or_else(ApiError::internal)?;
    Ok(data(json!({"token": token, "user": users::show(user)})))
}
