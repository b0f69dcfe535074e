//! Signing up, in and out.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, State};
use lectern_derive::handler;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::users::{self, NullBody, UserView};
use crate::{
    auth::Caller,
    extract::ValidJson,
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, data},
    services::{
        accounts::{AccountService, NewAccount},
        actor::RequestOrigin,
        sign_in::{PasswordSignIn, SignInService, SignedInUser},
    },
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(sign_up)).routes(routes!(sign_in)).routes(routes!(sign_out))
}

/// A user who is signed in.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
pub(super) struct SessionView {
    /// The bearer token: send it as `Authorization: Bearer <token>` (`Autorization` is read as well). It ends after the
    /// lifetime that the operator has set (30 days, if not said otherwise), when the user signs out and when the password
    /// is changed.
    token: String,
    /// The account.
    user: UserView,
}

impl From<SignedInUser> for SessionView {
    fn from(SignedInUser { user, token }: SignedInUser) -> Self {
        Self { token, user: UserView::from(&user) }
    }
}

pub(super) fn example() -> Value {
    json!({
        "token": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIwMTk4YzBkZSJ9.p4vCq1y0mJr2",
        "user": users::example(),
    })
}

/// Sign up
///
/// Makes an account and signs in to it. The first account of a service is an administrator's. Whether others may sign up is
/// the operator's choice; by default only the first may, and the operator adds further ones from the shell.
#[utoipa::path(
    post,
    path = "/auth/sign-up",
    tag = "Accounts",
    operation_id = "signUp",
    security(()),
    request_body(
        content = NewAccount,
        example = json!({"email": "ada@example.com", "password": "correct horse battery staple", "name": "Ada Lovelace"}),
    ),
    responses(
        (
            status = 200,
            description = "The new account, signed in",
            body = inline(SuccessResponse<SessionView>),
            example = json!({"success": true, "data": example()}),
        ),
        (status = 403, description = "The service takes no sign-ups, or none with a password (`passwords_off`)"),
        (status = 409, description = "There is an account with this e-mail already"),
    ),
)]
#[handler]
async fn sign_up(
    State(accounts): State<AccountService>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    origin: RequestOrigin,
    ValidJson(account): ValidJson<NewAccount>,
) -> ApiResult {
    Ok(data(SessionView::from(accounts.sign_up(account, peer.ip(), origin).await?)))
}

/// Sign in
///
/// Exchanges an e-mail address and a password for a bearer token. A wrong password and an unknown e-mail get the same answer.
/// After 10 failures within 10 minutes, for one account or from one network address, further attempts are refused until
/// `Retry-After` has passed. What others fail at does not count where the account was signed in to within the last 30 days: there
/// it has 10 failures of its own.
#[utoipa::path(
    post,
    path = "/auth/sign-in",
    tag = "Accounts",
    operation_id = "signIn",
    security(()),
    request_body(
        content = PasswordSignIn,
        example = json!({"email": "ada@example.com", "password": "correct horse battery staple"}),
    ),
    responses(
        (
            status = 200,
            description = "A bearer token and the account that it opens",
            body = inline(SuccessResponse<SessionView>),
            example = json!({"success": true, "data": example()}),
        ),
        (status = 401, description = "The e-mail or the password is wrong"),
        (status = 403, description = "The operator has switched passwords off (`passwords_off`), for everybody or for all but admins"),
    ),
)]
#[handler]
async fn sign_in(
    State(sign_ins): State<SignInService>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    origin: RequestOrigin,
    ValidJson(who): ValidJson<PasswordSignIn>,
) -> ApiResult {
    Ok(data(SessionView::from(sign_ins.sign_in(who, peer.ip(), origin).await?)))
}

/// Sign out
///
/// Ends every sign-in of the account, on every device: the bearer tokens given out before are refused from now on. API
/// tokens stay as they are.
#[utoipa::path(
    post,
    path = "/auth/sign-out",
    tag = "Accounts",
    operation_id = "signOut",
    responses((
        status = 200,
        description = "Every earlier sign-in has ended",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn sign_out(State(sign_ins): State<SignInService>, caller: Caller) -> ApiResult {
    sign_ins.sign_out(&caller.actor()).await?;
    Ok(data(NullBody))
}
