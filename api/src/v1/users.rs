//! The caller's own account.

use std::net::SocketAddr;

use axum::{
    body::Body,
    extract::{ConnectInfo, State},
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use lectern_derive::handler;
use lectern_shared::{clock::Timestamp, ids::UserId, model::user::User};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type},
};

use crate::{
    auth::{Caller, headers::presented_credentials},
    extract::{OptionalJson, ValidJson},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, data},
    services::{
        accounts::{AccountChange, AccountRemoval, AccountService, RemovalProof},
        exports::{ExportPart, ExportService},
    },
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(me, change, remove)).routes(routes!(export))
}

/// An account.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = User)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UserView {
    /// Its id.
    #[schema(value_type = String)]
    id: UserId,
    /// The e-mail address, as its owner wrote it.
    email: String,
    /// How its owner is called.
    name: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When its owner last changed it.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// Null: an account that is deleted is not shown any more.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    deleted_at: Option<Timestamp>,
    /// Whether it may use the operator's endpoints, `/admin/*`.
    is_admin: bool,
    /// Always null.
    #[schema(value_type = Option<Object>, required = true)]
    profile: (),
    /// Always null: list the agents instead.
    #[serde(rename = "Agent")]
    #[schema(value_type = Option<Object>, required = true)]
    agent: (),
    /// Always null: list the API tokens instead.
    #[serde(rename = "ApiToken")]
    #[schema(value_type = Option<Object>, required = true)]
    api_token: (),
    /// Always null: list the documents instead.
    #[serde(rename = "Document")]
    #[schema(value_type = Option<Object>, required = true)]
    document: (),
}

impl From<&User> for UserView {
    fn from(user: &User) -> Self {
        Self {
            id: user.id,
            email: user.email.clone(),
            name: user.name.clone(),
            created_at: user.created_at,
            updated_at: user.updated_at,
            deleted_at: user.deleted_at,
            is_admin: user.is_admin,
            profile: (),
            agent: (),
            api_token: (),
            document: (),
        }
    }
}

/// An account, for the documentation.
pub(super) fn example() -> Value {
    json!({
        "id": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "email": "ada@example.com",
        "name": "Ada Lovelace",
        "createdAt": "2026-01-31T08:00:00.000000+00:00",
        "updatedAt": "2026-01-31T08:00:00.000000+00:00",
        "deletedAt": null,
        "isAdmin": false,
        "profile": null,
        "Agent": null,
        "ApiToken": null,
        "Document": null,
    })
}

/// Null: there is nothing to say but that it is done.
#[derive(Serialize)]
pub(super) struct NullBody;

impl PartialSchema for NullBody {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Null).into()
    }
}

impl ToSchema for NullBody {}

/// Get your account
///
/// Shows the account that the bearer token belongs to.
#[utoipa::path(
    get,
    path = "/users/me",
    tag = "Accounts",
    operation_id = "getMe",
    responses((
        status = 200,
        description = "Your account",
        body = inline(SuccessResponse<UserView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn me(caller: Caller) -> ApiResult {
    caller.actor().account()?;
    Ok(data(UserView::from(&caller.user)))
}

/// Change your account
///
/// Changes the name, or the e-mail address or the password with the help of the current one. A new password ends every earlier sign-in,
/// this one included: sign in again with the new one. With another e-mail address sign-ins and API tokens go on; nobody else may have it.
/// Wrong current passwords are counted as failed sign-ins are. Where the operator has set a provider of OpenID Connect, people are found
/// by their e-mail addresses, which only the operator changes then (403 `email_fixed`).
#[utoipa::path(
    patch,
    path = "/users/me",
    tag = "Accounts",
    operation_id = "updateMe",
    request_body(content = AccountChange, example = json!({"name": "Ada King"})),
    responses(
        (
            status = 200,
            description = "Your account as it is now",
            body = inline(SuccessResponse<UserView>),
            example = json!({"success": true, "data": example()}),
        ),
        (status = 403, description = "The e-mail address is the operator's to change (`email_fixed`), or passwords are switched off (`passwords_off`)"),
        (status = 409, description = "Another account has this e-mail address"),
    ),
)]
#[handler]
async fn change(
    State(accounts): State<AccountService>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    caller: Caller,
    ValidJson(change): ValidJson<AccountChange>,
) -> ApiResult {
    let user = accounts.change(&caller.actor(), change, peer.ip()).await?;
    Ok(data(UserView::from(&user)))
}

/// Export your data
///
/// What is kept of you, as lines of JSON that each say their `type`: your `account`; each `workspace` that you are a member of; and of each the
/// `apiToken`s that you made, without their values, every `turn` that your sessions remember, and the `trace` of every question of yours with
/// what was said of the answer, newest first. What others made or asked is not in it, nor are documents. Needs a sign-in; ten may begin in a
/// minute. An export that breaks off has no end of its own: the connection is closed before the last chunk.
#[utoipa::path(
    get,
    path = "/users/me/export",
    tag = "Accounts",
    operation_id = "exportMe",
    responses((
        status = 200,
        description = "A JSON object in each line",
        body = String,
        content_type = "application/x-ndjson",
        example = json!("{\"type\":\"account\",\"email\":\"ada@example.com\"}\n"),
    )),
)]
#[handler]
async fn export(State(exports): State<ExportService>, caller: Caller) -> ApiResult<Response> {
    // The first line is read before the answer begins, so that what is wrong is an ordinary error.
    let ExportPart { lines, next } = exports.begin(&caller.actor()).await?;
    let rest = stream::try_unfold(next, move |place| {
        let exports = exports.clone();
        async move {
            let part = exports.go_on(place).await;
            let part = part.map_err(|error| std::io::Error::other(error.message))?;
            Ok::<_, std::io::Error>(part.map(|ExportPart { lines, next }| (lines, next)))
        }
    });
    let lines = stream::iter([Ok(lines)]).chain(rest);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"account.jsonl\"")),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}

/// Delete your account
///
/// Ends the account and deletes everything that belongs to it: API tokens, documents, agents, tools, tags, prompts, memory and
/// traces. Its e-mail address may sign up again. There is no way back. The password is asked for again, because whoever found
/// a token must not be able to do this. An account that was made by OpenID Connect has none, and where passwords are switched off it is
/// of no use: a sign-in of the last ten minutes stands for it (403 `sign_in_again` without), whether or not anything is sent.
#[utoipa::path(
    delete,
    path = "/users/me",
    tag = "Accounts",
    operation_id = "deleteMe",
    request_body(content = Option<AccountRemoval>, example = json!({"password": "correct horse battery staple"})),
    responses(
        (
            status = 200,
            description = "The account is gone",
            body = inline(SuccessResponse<NullBody>),
            example = json!({"success": true, "data": null}),
        ),
        (status = 409, description = "A workspace that has other members would have no owner (`last_owner`)"),
    ),
)]
#[handler]
async fn remove(
    State(accounts): State<AccountService>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    caller: Caller,
    OptionalJson(removal): OptionalJson<AccountRemoval>,
) -> ApiResult {
    let credential = presented_credentials(&headers).next();
    let proof = RemovalProof { password: removal.password, credential };
    accounts.delete(&caller.actor(), proof, peer.ip()).await?;
    Ok(data(NullBody))
}
