//! Sign-in by OpenID Connect, in three steps: to the provider, back with its answer, and a code for a bearer token. Nothing is kept here
//! between them, so that each may be taken at another process.

mod claims;
mod failure;
mod membership;
mod provider;
mod sealed;

use std::{net::IpAddr, sync::Arc};

use lectern_db as db;
use lectern_derive::RequestBody;
use lectern_shared::{
    config::OidcSettings,
    egress::Egress,
    ids::UserId,
    model::{
        audit::AuditAction,
        user::{User, email_key},
        workspace::{Role, WorkspaceQuotas},
    },
    secrets::{CiphertextLocation, idempotency_row},
};
use secrecy::{ExposeSecret, SecretString};
use url::form_urlencoded;
use utoipa::ToSchema;

use self::{
    claims::ProviderIdentity,
    failure::OidcFailure,
    provider::OidcProvider,
    sealed::{CODE_TTL, PendingSignIn, SignInTicket},
};
use super::{SignInService, SignedInUser};
use crate::{
    error::{ApiError, ApiErrorKind},
    services::{
        NAME,
        accounts::{AccountService, email_problem},
        actor::{Actor, RequestOrigin},
        audit::AuditService,
    },
};

/// Longest page to go back to, in bytes.
const LONGEST_RETURN: usize = 500;

/// The code of a sign-in by OpenID Connect.
#[derive(RequestBody, ToSchema)]
#[body(stranger)]
pub(crate) struct SignInCode {
    /// What the address has behind `#/sign-in/`.
    #[schema(value_type = String, min_length = 1, max_length = 2_000)]
    pub(crate) code: SecretString,
}

/// What a browser comes back with.
#[derive(Default)]
pub(crate) struct ProviderAnswer {
    pub(crate) code: Option<String>,
    pub(crate) state: Option<String>,
    /// Who answers.
    pub(crate) issuer: Option<String>,
    /// Why there is no code.
    pub(crate) error: Option<String>,
}

/// Where a browser is sent.
pub(crate) struct OidcRedirect {
    pub(crate) location: String,
    /// What it is to keep until the last step; it keeps what it has when there is none.
    pub(crate) cookie: Option<String>,
}

/// Where a browser shows its cookie.
pub(crate) struct CookieScope {
    pub(crate) path: String,
    /// Whether only over TLS.
    pub(crate) is_secure: bool,
}

/// Sign-in by OpenID Connect, if the settings have a provider. Cheap to clone.
#[derive(Clone)]
pub(crate) struct OidcService(Option<Arc<OidcSignIn>>);

struct OidcSignIn {
    settings: OidcSettings,
    provider: OidcProvider,
    accounts: AccountService,
    sign_ins: SignInService,
    audit: AuditService,
}

/// Whose account it is that somebody at the provider signs in to.
enum ProviderAccount<'a> {
    /// Theirs, as it was before.
    Linked(User),
    /// The one with their e-mail.
    Found(User),
    /// One that is still to be made, with this e-mail.
    Missing(&'a str),
}

impl OidcService {
    pub(crate) fn new(
        settings: Option<OidcSettings>,
        egress: Egress,
        accounts: AccountService,
        sign_ins: SignInService,
        audit: AuditService,
    ) -> Self {
        let configured = |settings: OidcSettings| {
            let provider = OidcProvider::new(settings.clone(), egress);
            Arc::new(OidcSignIn { settings, provider, accounts, sign_ins, audit })
        };
        Self(settings.map(configured))
    }

    /// Sends a browser to the provider, and from there back, in the end to this page of the service's own.
    ///
    /// # Errors
    /// When there is no provider. When it is away the browser is sent to the page for signing in, which is told so.
    pub(crate) async fn begin(&self, return_to: Option<String>) -> Result<OidcRedirect, ApiError> {
        let this = self.configured()?;
        let now = this.sign_ins.clock.now();
        let pending = PendingSignIn::begin(return_to.filter(|page| is_own_page(page)), now);
        match this.provider.authorization_url(&pending, now).await {
            Ok(url) => {
                let cookie = Some(pending.seal(&this.sign_ins.keyring)?);
                Ok(OidcRedirect { location: url.into(), cookie })
            }
            Err(failure) => Ok(this.failed(failure)),
        }
    }

    /// Takes the provider's answer, and sends the browser to the page for signing in, with a code or with the reason why there is none.
    ///
    /// # Errors
    /// When there is no provider.
    pub(crate) async fn finish(
        &self,
        answer: ProviderAnswer,
        cookie: Option<&str>,
        origin: RequestOrigin,
    ) -> Result<OidcRedirect, ApiError> {
        let this = self.configured()?;
        Ok(match Box::pin(this.admit(answer, cookie, origin)).await {
            Ok(location) => OidcRedirect { location, cookie: None },
            Err(failure) => this.failed(failure),
        })
    }

    /// Signs in with a code, once, in the browser that was given it.
    ///
    /// # Errors
    /// When there is no provider, or the code is not good, or not any more.
    pub(crate) async fn redeem(
        &self,
        code: SignInCode,
        cookie: Option<&str>,
        address: IpAddr,
        origin: RequestOrigin,
    ) -> Result<SignedInUser, ApiError> {
        let SignInService { db, clock, keyring, .. } = &self.configured()?.sign_ins;
        let now = clock.now();
        let bad = || ApiError::unauthorized("The code is not valid, or not valid any more. Sign in again.");
        let pending = cookie.and_then(|cookie| PendingSignIn::open(keyring, cookie, now)).ok_or_else(bad)?;
        let ticket = SignInTicket::open(keyring, code.code.expose_secret(), &pending, now).ok_or_else(bad)?;
        let key = format!("oidc {}", ticket.id);
        let row = idempotency_row(ticket.user, &key);
        let used = keyring.encrypt(CiphertextLocation::idempotent_answer(&row), b"")?;
        let user = db::accounts::find(db, ticket.user).await?.ok_or_else(bad)?;
        // Who can free room on a full disk has to come in for it.
        let mut tx = db.begin_essential().await?;
        if !db::idempotency::insert(&mut tx, user.id, &key, &used, now, now.plus(CODE_TTL)).await? {
            return Err(bad());
        }
        tx.commit().await?;
        self.configured()?.sign_ins.sign_in_new(user, address, origin).await
    }

    /// Where browsers show the cookie.
    pub(crate) fn cookie_scope(&self) -> Result<CookieScope, ApiError> {
        let url = &self.configured()?.settings.public_url;
        // The page for signing in, where the last step is, is of the dashboard.
        let path = format!("{}/", url.path().trim_end_matches('/'));
        Ok(CookieScope { path, is_secure: url.scheme() == "https" })
    }

    fn configured(&self) -> Result<&OidcSignIn, ApiError> {
        let message = "This service has no sign-in by OpenID Connect.";
        self.0.as_deref().ok_or_else(|| ApiError::new(ApiErrorKind::NotFound, "not_found", message))
    }
}

impl OidcSignIn {
    /// The page for signing in with a code.
    async fn admit(
        &self,
        answer: ProviderAnswer,
        cookie: Option<&str>,
        origin: RequestOrigin,
    ) -> Result<String, OidcFailure> {
        let SignInService { clock, keyring, .. } = &self.sign_ins;
        let now = clock.now();
        let pending = cookie.and_then(|cookie| PendingSignIn::open(keyring, cookie, now));
        let pending = pending.ok_or(OidcFailure::State)?;
        // An answer of another provider is not meant for us, though it may have been led here.
        let is_its_own = answer.issuer.is_none_or(|issuer| issuer == self.settings.issuer);
        if !is_its_own || !pending.is_answered_by(&answer.state.unwrap_or_default()) {
            return Err(OidcFailure::State);
        }
        let Some(code) = answer.code.filter(|_| answer.error.is_none()) else {
            let error: String = answer.error.unwrap_or_default().chars().take(100).collect();
            tracing::info!(error, "the provider of OpenID Connect signs nobody in");
            return Err(OidcFailure::Refused);
        };
        let identity = self.provider.identity(code, &pending, now).await?;
        let user = self.account_of(&identity, origin).await?;
        let code = SignInTicket::of(user, &pending, now).seal(keyring)?;
        let back = pending.return_to.map_or_else(String::new, |page| {
            let page: String = form_urlencoded::byte_serialize(page.as_bytes()).collect();
            format!("?return={page}")
        });
        Ok(self.page(&format!("/{code}{back}")))
    }

    /// The account of somebody at the provider, with the role that their groups give it.
    async fn account_of(
        &self,
        identity: &ProviderIdentity,
        origin: RequestOrigin,
    ) -> Result<UserId, OidcFailure> {
        let SignInService { db: store, clock, .. } = &self.sign_ins;
        let (issuer, subject, now) = (&self.settings.issuer, &identity.subject, clock.now());
        let account = self.look_up(identity).await?;
        let mut tx = match account {
            ProviderAccount::Linked(_) => store.begin_essential().await?,
            ProviderAccount::Found(_) | ProviderAccount::Missing(_) => store.begin().await?,
        };
        let user = match account {
            ProviderAccount::Linked(user) => user,
            ProviderAccount::Found(user) => {
                // Addresses are given to others when people leave, and the provider's own name for somebody never is.
                if !db::identities::link_unless_taken(&mut tx, issuer, subject, user.id, now).await? {
                    tracing::warn!(user = %user.id, "the e-mail of an account is somebody else's at the provider of OpenID Connect");
                    return Err(OidcFailure::EmailTaken);
                }
                let actor = at_home(user.id, origin.clone());
                self.audit.note(&mut tx, &actor, AuditAction::IdentityLinked, "user", user.id).await?;
                tracing::info!(user = %user.id, "account linked to somebody at the provider of OpenID Connect");
                user
            }
            ProviderAccount::Missing(email) => {
                let name = identity.name.as_deref().map(readable_name);
                let made = self.accounts.add_verified(&mut tx, email, name.as_deref()).await;
                let user = made.map_err(|error| {
                    let is_closed = error.kind == ApiErrorKind::Forbidden;
                    if is_closed { OidcFailure::SignUpClosed } else { error.into() }
                })?;
                let actor = at_home(user.id, origin.clone());
                self.audit.note(&mut tx, &actor, AuditAction::AccountCreated, "user", user.id).await?;
                db::identities::link(&mut tx, issuer, subject, user.id, now).await?;
                tracing::info!(user = %user.id, admin = user.is_admin, "account created for OpenID Connect");
                user
            }
        };
        if let Some(map) = &self.settings.roles {
            let actor = at_home(user.id, origin);
            membership::apply(&mut tx, &self.audit, map, &identity.groups, &actor, now).await?;
        }
        tx.commit().await?;
        Ok(user.id)
    }

    /// The account that is linked, or has the e-mail that the provider has verified.
    async fn look_up<'a>(&self, identity: &'a ProviderIdentity) -> Result<ProviderAccount<'a>, OidcFailure> {
        let store = &self.sign_ins.db;
        let linked = db::identities::find_user(store, &self.settings.issuer, &identity.subject).await?;
        if let Some(user) = linked {
            return Ok(ProviderAccount::Linked(user));
        }
        let email = identity.verified_email.as_deref().filter(|email| email_problem(email).is_none());
        let email = email.ok_or(OidcFailure::UnverifiedEmail)?;
        let found = db::accounts::find_by_email(store, &email_key(email)).await?;
        Ok(found.map_or(ProviderAccount::Missing(email), |found| ProviderAccount::Found(found.user)))
    }

    fn failed(&self, failure: OidcFailure) -> OidcRedirect {
        let code = failure.code();
        tracing::info!(code, "nobody was signed in by OpenID Connect");
        OidcRedirect { location: self.page(&format!("?error={code}")), cookie: None }
    }

    /// The page for signing in, and what stands behind it.
    fn page(&self, rest: &str) -> String {
        format!("{}/#/sign-in{rest}", self.settings.public_url.as_str().trim_end_matches('/'))
    }
}

/// Somebody in the workspace of their own.
pub(in crate::services) fn at_home(user: UserId, origin: RequestOrigin) -> Actor {
    Actor::new(user, user.into(), Role::Owner, WorkspaceQuotas::default(), None).from(origin)
}

/// Whether it is a path of the service's own pages, and nothing that browsers take for another host.
fn is_own_page(page: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"');
    page.starts_with('/')
        && !page.starts_with("//")
        && page.len() <= LONGEST_RETURN
        && page.bytes().all(is_plain)
}

/// A name from elsewhere, as one of an account may be.
fn readable_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_back_to_pages_of_the_service_alone() {
        for page in ["/", "/agents", "/agents/1?tab=tools#last"] {
            assert!(is_own_page(page), "{page}");
        }
        let long = format!("/{}", "a".repeat(LONGEST_RETURN));
        for page in ["", "agents", "//evil.example", "/\\evil.example", "https://evil.example", "/a b", &long]
        {
            assert!(!is_own_page(page), "{page}");
        }
    }

    #[test]
    fn a_name_has_no_characters_that_nobody_sees_and_an_end() {
        assert_eq!(readable_name("Ada\u{0} \nLovelace"), "Ada Lovelace");
        assert_eq!(readable_name(&"ä".repeat(NAME + 5)).chars().count(), NAME);
    }
}
