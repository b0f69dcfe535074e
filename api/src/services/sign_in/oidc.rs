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
    clock::Timestamp,
    config::OidcSettings,
    egress::Egress,
    ids::UserId,
    model::{
        audit::AuditAction,
        user::{User, email_key},
    },
    secrets::{CiphertextLocation, Keyring, idempotency_row},
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
/// Sign-ins that a browser is in the middle of, each in a tab of its own. All their cookies are sent with every request.
const MOST_PENDING: usize = 4;

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

/// A cookie that a browser shows, of a sign-in that was begun in it.
#[derive(Clone, Copy)]
pub(crate) struct PendingCookie<'a> {
    /// What tells it from the others.
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
}

/// Where a browser is sent.
pub(crate) struct OidcRedirect {
    pub(crate) location: String,
    /// The name and the value of the cookie that it is to keep until the last step, if one was begun.
    pub(crate) keeps: Option<(String, String)>,
    /// The names of cookies that it is to forget.
    pub(crate) forgets: Vec<String>,
}

/// Somebody who has signed in with a code.
pub(crate) struct RedeemedCode {
    pub(crate) signed_in: SignedInUser,
    /// The name of the cookie that is of no use any more.
    pub(crate) cookie: String,
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
    pub(crate) async fn begin(
        &self,
        return_to: Option<String>,
        shown: &[PendingCookie<'_>],
    ) -> Result<OidcRedirect, ApiError> {
        let this = self.configured()?;
        let SignInService { clock, keyring, .. } = &this.sign_ins;
        let now = clock.now();
        let pending = PendingSignIn::begin(return_to.filter(|page| is_own_page(page)), now);
        match this.provider.authorization_url(&pending, now).await {
            Ok(url) => {
                let keeps = Some((pending.cookie_name(), pending.seal(keyring)?));
                Ok(OidcRedirect { location: url.into(), keeps, forgets: giving_way(keyring, shown, now) })
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
        shown: &[PendingCookie<'_>],
        origin: RequestOrigin,
    ) -> Result<OidcRedirect, ApiError> {
        let this = self.configured()?;
        Ok(match Box::pin(this.admit(answer, shown, origin)).await {
            Ok(location) => OidcRedirect { location, keeps: None, forgets: Vec::new() },
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
        shown: &[PendingCookie<'_>],
        address: IpAddr,
        origin: RequestOrigin,
    ) -> Result<RedeemedCode, ApiError> {
        let SignInService { db, clock, keyring, .. } = &self.configured()?.sign_ins;
        let now = clock.now();
        let bad = || ApiError::unauthorized("The code is not valid, or not valid any more. Sign in again.");
        let opened = shown.iter().find_map(|cookie| {
            let pending = PendingSignIn::open(keyring, cookie.value, now)?;
            let ticket = SignInTicket::open(keyring, code.code.expose_secret(), &pending, now)?;
            Some((cookie.name, ticket))
        });
        let (cookie, ticket) = opened.ok_or_else(bad)?;
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
        let signed_in = self.configured()?.sign_ins.sign_in_new(user, address, origin).await?;
        Ok(RedeemedCode { signed_in, cookie: cookie.to_owned() })
    }

    /// Says in the log when there is no such workspace as the settings give groups roles in. It may still be made.
    pub(crate) async fn check_workspace(&self) {
        let Some(this) = self.0.as_deref() else { return };
        let Some(map) = &this.settings.roles else { return };
        match db::workspaces::find(&this.sign_ins.db, map.workspace).await {
            Ok(Some(_)) => {}
            Ok(None) => membership::warn_of_no_workspace(map.workspace),
            Err(error) => tracing::debug!(%error, "LECTERN_OIDC_WORKSPACE could not be looked up"),
        }
    }

    /// Where browsers show the cookie.
    pub(crate) fn cookie_scope(&self) -> Result<CookieScope, ApiError> {
        let url = &self.configured()?.settings.public_url;
        let is_secure = url.scheme() == "https";
        // Behind TLS the name says that it is of this host alone, which browsers believe of the whole path only. The page for signing in,
        // where the last step is, is of the dashboard.
        let path = if is_secure { "/".to_owned() } else { format!("{}/", url.path().trim_end_matches('/')) };
        Ok(CookieScope { path, is_secure })
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
        shown: &[PendingCookie<'_>],
        origin: RequestOrigin,
    ) -> Result<String, OidcFailure> {
        let SignInService { clock, keyring, .. } = &self.sign_ins;
        let now = clock.now();
        let state = answer.state.unwrap_or_default();
        let mut begun = shown.iter().filter_map(|cookie| PendingSignIn::open(keyring, cookie.value, now));
        let pending = begun.find(|pending| pending.is_answered_by(&state)).ok_or(OidcFailure::State)?;
        // An answer of another provider is not meant for us, though it may have been led here.
        if answer.issuer.is_some_and(|issuer| issuer != self.settings.issuer) {
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
                let actor = Actor::at_home(user.id, origin.clone());
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
                let actor = Actor::at_home(user.id, origin.clone());
                self.audit.note(&mut tx, &actor, AuditAction::AccountCreated, "user", user.id).await?;
                db::identities::link(&mut tx, issuer, subject, user.id, now).await?;
                tracing::info!(user = %user.id, admin = user.is_admin, "account created for OpenID Connect");
                user
            }
        };
        if let Some(map) = &self.settings.roles {
            let actor = Actor::at_home(user.id, origin);
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
        let location = self.page(&format!("?error={code}"));
        OidcRedirect { location, keeps: None, forgets: Vec::new() }
    }

    /// The page for signing in, and what stands behind it.
    fn page(&self, rest: &str) -> String {
        format!("{}/#/sign-in{rest}", self.settings.public_url.as_str().trim_end_matches('/'))
    }
}

/// The names of those of a browser's cookies that give way to one more: what is too old, and of the others those that end first.
fn giving_way(keyring: &Keyring, shown: &[PendingCookie<'_>], now: Timestamp) -> Vec<String> {
    let end = |value| PendingSignIn::open(keyring, value, now).map(|pending| pending.ends_at);
    let mut all: Vec<_> = shown.iter().map(|cookie| (end(cookie.value), cookie.name)).collect();
    // What is too old has no end and comes first.
    all.sort_unstable();
    let ended = all.iter().filter(|(end, _)| end.is_none()).count();
    let gone = ended.max((all.len() + 1).saturating_sub(MOST_PENDING));
    all.into_iter().take(gone).map(|(_, name)| name.to_owned()).collect()
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn of_many_sign_ins_that_were_begun_in_a_browser_the_first_give_way() {
        let keys = Keyring::new(&SecretString::from("a secret".repeat(8)), None).unwrap();
        let at = |minute| Timestamp::from_micros(1_800_000_000_000_000).plus(Duration::from_mins(minute));
        let begun: Vec<(String, String)> = (0..5)
            .map(|minute| {
                let pending = PendingSignIn::begin(None, at(minute));
                (pending.cookie_name(), pending.seal(&keys).unwrap())
            })
            .collect();
        let forgotten = |count: usize, now| {
            let shown = begun.iter().take(count).rev();
            let shown: Vec<_> = shown.map(|(name, value)| PendingCookie { name, value }).collect();
            let mut names = giving_way(&keys, &shown, now);
            names.sort_by_key(|gone| begun.iter().position(|(name, _)| name == gone));
            names
        };
        let first = |count: usize| -> Vec<String> {
            begun.iter().take(count).map(|(name, _)| name.clone()).collect()
        };
        for (shown, now, gone) in [(0, 4, 0), (3, 4, 0), (4, 4, 1), (5, 4, 2), (3, 10, 1), (5, 12, 3)] {
            assert_eq!(forgotten(shown, at(now)), first(gone), "of {shown} at {now}");
        }
    }

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
