//! The page of one's own account.

use std::net::SocketAddr;

use askama::Template;
use axum::{
    extract::{ConnectInfo, State},
    http::StatusCode,
};
use lectern_derive::handler;
use lectern_runtime::Runtime;
use lectern_shared::config::PasswordPolicy;

use super::{
    PagePolicy,
    frame::{Frame, SubmittedForm, Visitor},
    html,
    sign_in::CookieJar,
};
use crate::{
    response::ApiResult,
    services::{
        accounts::{AccountChange, AccountService},
        sign_in::SignInService,
    },
};

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    frame: Frame,
    /// The account may have one.
    passwords: bool,
}

/// Shows it.
pub(super) async fn show(State(runtime): State<Runtime>, visitor: Visitor) -> ApiResult {
    let passwords = match runtime.settings.passwords {
        PasswordPolicy::On => true,
        PasswordPolicy::Admins => visitor.frame.is_admin,
        PasswordPolicy::Off => false,
    };
    html(&PagePolicy::Own, StatusCode::OK, &AccountPage { frame: visitor.frame, passwords })
}

/// Changes its name or its password.
#[handler]
pub(super) async fn change(
    State(accounts): State<AccountService>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<AccountChange>,
) -> ApiResult {
    accounts.change(&visitor.actor(), body, peer.ip()).await?;
    Ok(visitor.go("account?said=saved"))
}

/// Ends every sign-in of the account.
#[handler]
pub(super) async fn sign_out_everywhere(
    State(sign_ins): State<SignInService>,
    jar: CookieJar,
    visitor: Visitor,
) -> ApiResult {
    sign_ins.sign_out(&visitor.actor()).await?;
    Ok(visitor.go_with("sign-in?said=signed-out", jar.sign_out()?))
}
