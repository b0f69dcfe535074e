//! The page of one's own account.

use std::net::SocketAddr;

use askama::Template;
use axum::{
    extract::{ConnectInfo, State},
    http::{HeaderMap, StatusCode},
};
use lectern_derive::handler;
use lectern_runtime::Runtime;
use lectern_shared::{
    config::PasswordPolicy,
    ids::{UserId, WorkspaceId},
};

use super::{
    PagePolicy,
    confirm::ConfirmedForm,
    frame::{Frame, SubmittedForm, Visitor},
    html,
    sign_in::CookieJar,
};
use crate::{
    auth::headers::presented_credentials,
    response::ApiResult,
    services::{
        accounts::{AccountChange, AccountRemoval, AccountService, RemovalProof},
        sign_in::SignInService,
    },
};

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    frame: Frame,
    user: UserId,
    /// The workspace is the account's own.
    is_personal: bool,
    /// The account may use one.
    passwords: bool,
    has_password: bool,
    email: EmailKeeper,
}

/// Who may change the e-mail of an account.
enum EmailKeeper {
    /// Whoever has the account, by its password.
    Owner,
    /// The operator alone: people sign in with a provider of OpenID Connect too, which finds accounts by their e-mails.
    Operator,
    /// Nobody on this page: there is no password that may be used.
    Nobody,
}

impl EmailKeeper {
    fn is_owner(&self) -> bool {
        matches!(self, Self::Owner)
    }

    fn is_operator(&self) -> bool {
        matches!(self, Self::Operator)
    }
}

/// Shows it.
#[handler]
pub(super) async fn show(
    State(runtime): State<Runtime>,
    State(accounts): State<AccountService>,
    visitor: Visitor,
) -> ApiResult {
    let passwords = match runtime.settings.passwords {
        PasswordPolicy::On => true,
        PasswordPolicy::Admins => visitor.frame.is_admin,
        PasswordPolicy::Off => false,
    };
    let user = visitor.caller.user.id;
    let has_password = accounts.has_password(&visitor.actor()).await?;
    let email = match runtime.settings.oidc {
        Some(_) => EmailKeeper::Operator,
        None if has_password && passwords => EmailKeeper::Owner,
        None => EmailKeeper::Nobody,
    };
    let page = AccountPage {
        user,
        is_personal: visitor.frame.workspace_id == WorkspaceId::from(user),
        passwords,
        has_password,
        email,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Changes its name, its e-mail or its password.
#[handler]
pub(super) async fn change(
    State(accounts): State<AccountService>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<AccountChange>,
) -> ApiResult {
    let is_new_password = body.password.is_some();
    accounts.change(&visitor.actor(), body, peer.ip()).await?;
    // With a new password this sign-in has ended, too, so that it is said where somebody signs in again.
    Ok(visitor.go(if is_new_password {
        "sign-in?next=account&said=password-changed"
    } else {
        "account?said=saved"
    }))
}

/// Ends every sign-in of the account.
#[handler]
pub(super) async fn sign_out_everywhere(
    State(sign_ins): State<SignInService>,
    jar: CookieJar,
    visitor: Visitor,
) -> ApiResult {
    sign_ins.sign_out(&visitor.actor()).await?;
    Ok(visitor.go_with("sign-in?said=signed-out", [jar.sign_out()?]))
}

/// Deletes it.
#[handler]
pub(super) async fn delete(
    State(accounts): State<AccountService>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    jar: CookieJar,
    headers: HeaderMap,
    ConfirmedForm(SubmittedForm { visitor, body, .. }): ConfirmedForm<AccountRemoval>,
) -> ApiResult {
    let credential = presented_credentials(&headers).next();
    let proof = RemovalProof { password: body.password, credential };
    accounts.delete(&visitor.actor(), proof, peer.ip()).await?;
    Ok(visitor.go_with("sign-in?said=account-deleted", [jar.sign_out()?, jar.choose_own()?]))
}
