//! Signing in and out: whether a password is somebody's, who comes from the provider of OpenID Connect, and the JSON web tokens that are
//! given out for it.

mod jwt;
pub(crate) mod oidc;
mod passwords;

use std::{net::IpAddr, sync::Arc, time::Duration};

use lectern_db::{
    self as db, Db, DbError, Tx,
    known_addresses::{self, KNOWN_FOR},
};
use lectern_derive::RequestBody;
use lectern_shared::{
    clock::{Clock, Timestamp},
    config::{PasswordPolicy, Settings},
    ids::UserId,
    model::{
        audit::AuditAction,
        user::{User, email_key},
        workspace::Role,
    },
    secrets::Keyring,
};
use secrecy::SecretString;
use tokio::time::timeout;
use utoipa::ToSchema;

use self::jwt::{JwtClaims, JwtCodec};
use super::{
    actor::{Actor, RequestOrigin},
    audit::AuditService,
};
use crate::{
    error::{ApiError, ApiErrorKind},
    limits::{AttemptKeys, LimitKey, PasswordAttempt, RateLimiter, RetryAfter},
    turns::PermitLane,
};

pub(crate) use self::passwords::PasswordHashPool;

/// Addresses that are known of one account: homes, offices, and what a phone has had of late.
const KNOWN: u32 = 20;
/// How often it is noted that a known address was met again.
const NOTE_EVERY: Duration = Duration::from_hours(24);
/// How long a sign-in waits for the note. It is right without.
const NOTING: Duration = Duration::from_secs(1);

/// Who one says one is.
#[derive(RequestBody, ToSchema)]
#[schema(as = SignIn)]
#[body(stranger)]
pub(crate) struct PasswordSignIn {
    /// The e-mail address of the account.
    #[schema(min_length = 1, max_length = 1_000)]
    pub(crate) email: String,
    /// The account's password.
    #[schema(value_type = String, format = Password, min_length = 1, max_length = 10_000)]
    pub(crate) password: SecretString,
}

/// A user who is signed in.
pub(crate) struct SignedInUser {
    pub(crate) user: User,
    /// The JSON web token that stands for it.
    pub(crate) token: String,
}

/// Where somebody is who signs in to an account.
struct SignInOrigin {
    account: LimitKey,
    address: LimitKey,
}

impl SignInOrigin {
    fn new(email_key: &str, address: IpAddr) -> Self {
        Self { account: LimitKey::account(email_key), address: LimitKey::address(address) }
    }

    /// What a guess from here counts for, and where it waits for its turn. Where the account was signed in to of late, neither is up to
    /// strangers.
    fn standing(&self, seen_at: Option<Timestamp>, now: Timestamp) -> (AttemptKeys, PermitLane) {
        if seen_at.is_some_and(|seen| now.since(seen) < KNOWN_FOR) {
            (AttemptKeys::for_known_address(self.account, self.address), PermitLane::Reserved)
        } else {
            (AttemptKeys::for_unknown_address(self.account, self.address), PermitLane::Common)
        }
    }

    /// What of it is stored. Addresses are few enough to try them all, so the hash has a key.
    fn hash(&self, keyring: &Keyring) -> [u8; 32] {
        keyring.fingerprint(LimitKey::pair(self.account, self.address).as_bytes())
    }
}

fn too_many_failures(wait: RetryAfter) -> ApiError {
    ApiError::too_many("too_many_attempts", "Too many failed sign-ins. Wait before you try again.", wait)
}

/// Signing in and out. Cheap to clone; clones count attempts together.
#[derive(Clone)]
pub(crate) struct SignInService {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
    limits: RateLimiter,
    passwords: PasswordHashPool,
    /// Who may use passwords.
    policy: PasswordPolicy,
    /// What the provider of OpenID Connect is called, if there is one.
    provider: Option<Arc<str>>,
    jwt: Arc<JwtCodec>,
    audit: AuditService,
}

impl SignInService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        keyring: Arc<Keyring>,
        limits: RateLimiter,
        passwords: PasswordHashPool,
        settings: &Settings,
        audit: AuditService,
    ) -> Self {
        let jwt = Arc::new(JwtCodec::new(&keyring, settings.jwt_ttl));
        let (policy, provider) = (settings.passwords, settings.oidc.as_ref());
        let provider = provider.map(|oidc| Arc::from(oidc.name.as_str()));
        Self { db, clock, keyring, limits, passwords, policy, provider, jwt, audit }
    }

    /// Signs in with a password.
    ///
    /// # Errors
    /// When e-mail and password open no account, after too many failures, and when too many wait at this address; and when the
    /// settings let the account use no password.
    pub(crate) async fn sign_in(
        &self,
        who: PasswordSignIn,
        address: IpAddr,
        origin: RequestOrigin,
    ) -> Result<SignedInUser, ApiError> {
        // Nobody at all, then.
        self.allow_password(true)?;
        let (user, place) = self.user_of(who, address).await?;
        self.allow_password(user.is_admin)?;
        self.note(user.id, origin, place).await;
        self.signed_in(user)
    }

    /// Whether an account may use a password.
    ///
    /// # Errors
    /// When the settings say that it may not.
    pub(super) fn allow_password(&self, is_admin: bool) -> Result<(), ApiError> {
        match self.policy {
            PasswordPolicy::On => Ok(()),
            PasswordPolicy::Admins if is_admin => Ok(()),
            PasswordPolicy::Admins | PasswordPolicy::Off => {
                let message = match &self.provider {
                    Some(provider) => format!(
                        "Passwords are switched off here. Sign in with {provider}, which begins at `/api/v1/auth/oidc`."
                    ),
                    None => "Passwords are switched off here.".to_owned(),
                };
                Err(ApiError::new(ApiErrorKind::Forbidden, "passwords_off", message))
            }
        }
    }

    /// Whether people change the e-mails of their accounts themselves.
    ///
    /// # Errors
    /// Where there is a provider of OpenID Connect: whoever took a colleague's e-mail would have the account that the colleague is
    /// signed in to when they first come from there.
    pub(super) fn allow_new_email(&self) -> Result<(), ApiError> {
        let Some(provider) = &self.provider else { return Ok(()) };
        let message = format!(
            "Who signs in with {provider} is found by the e-mail here, so nobody changes their own. Ask the operator of this service."
        );
        Err(ApiError::new(ApiErrorKind::Forbidden, "email_fixed", message))
    }

    /// Signs in somebody who is at this address and has proved otherwise who it is: by making the account at this moment, or by the
    /// provider of OpenID Connect.
    pub(super) async fn sign_in_new(
        &self,
        user: User,
        address: IpAddr,
        origin: RequestOrigin,
    ) -> Result<SignedInUser, ApiError> {
        let hash = SignInOrigin::new(&email_key(&user.email), address).hash(&self.keyring);
        self.note(user.id, origin, Some(hash)).await;
        self.signed_in(user)
    }

    /// Ends every sign-in.
    pub(crate) async fn sign_out(&self, actor: &Actor) -> Result<(), ApiError> {
        let user = actor.account()?;
        let mut tx = self.db.begin_essential().await?;
        db::accounts::end_sessions(&mut tx, user).await?;
        let at_home = actor.clone().within(user.into(), Role::Owner);
        self.audit.note(&mut tx, &at_home, AuditAction::SignedOut, "user", user).await?;
        Ok(tx.commit().await?)
    }

    /// Checks the own password of somebody who is signed in, and counts wrong ones as failed sign-ins are counted.
    ///
    /// # Errors
    /// That of `field` when it is not the account's; after too many failures, and when too many wait at this address.
    pub(super) async fn check_password(
        &self,
        actor: &Actor,
        password: SecretString,
        field: &str,
        address: IpAddr,
    ) -> Result<(), ApiError> {
        let turn = self.passwords.turn(address).await?;
        let guess = AttemptKeys::at(LimitKey::account(&format!("password of {}", actor.user)));
        let attempt = self.begin(guess, self.clock.now()).await?;
        let stored = db::accounts::find_credentials(&self.db, actor.user).await?;
        let hash = stored.map(|credentials| credentials.password_hash);
        if turn.verify(attempt, password, hash).await? {
            return Ok(());
        }
        Err(ApiError::invalid_field(field, "is not the account's password"))
    }

    /// Notes that an account whose e-mail was changed is known at this address. Where else it was known is so by the e-mail that it had.
    pub(super) async fn remember_address(
        &self,
        tx: &mut Tx,
        user: &User,
        address: IpAddr,
    ) -> Result<(), DbError> {
        let hash = SignInOrigin::new(&email_key(&user.email), address).hash(&self.keyring);
        known_addresses::remember(tx, user.id, &hash, self.clock.now(), KNOWN).await
    }

    /// What a JSON web token says; none when it is not ours or has ended. Whether its account has ended it is to be looked up.
    pub(super) fn claims(&self, token: &str) -> Option<JwtClaims> {
        self.jwt.verify(token, self.clock.now())
    }

    /// The account that an e-mail and a password open, and where it is signed in to if that is to be noted.
    async fn user_of(
        &self,
        who: PasswordSignIn,
        address: IpAddr,
    ) -> Result<(User, Option<[u8; 32]>), ApiError> {
        let PasswordSignIn { email, password } = who;
        let email_key = email_key(&email);
        let whereabouts = SignInOrigin::new(&email_key, address);
        let hash = whereabouts.hash(&self.keyring);
        // No account is looked up for an address that has to wait, whichever it is.
        self.limits.may_guess(&whereabouts.address, self.clock.now()).map_err(too_many_failures)?;
        // With a place first: no address looks up more accounts at once than it may have waiting.
        let place = self.passwords.place(address)?;
        let found = db::accounts::find_for_sign_in(&self.db, &email_key, &hash).await?;
        let seen_at = found.as_ref().and_then(|found| found.seen_there_at);
        let (guess, lane) = whereabouts.standing(seen_at, self.clock.now());
        // Before it is counted: what waits for its turn is no attempt yet, and does not make others of its address wait.
        let turn = place.turn(lane).await?;
        let now = self.clock.now();
        let attempt = self.begin(guess, now).await?;
        let (user, password_hash) =
            found.map(|found| (found.credentials.user, found.credentials.password_hash)).unzip();
        let fits = turn.verify(attempt, password, password_hash).await?;
        let Some(user) = user.filter(|_| fits) else {
            return Err(ApiError::unauthorized("The e-mail or the password is wrong."));
        };
        let is_due = seen_at.is_none_or(|seen| now.since(seen) > NOTE_EVERY);
        Ok((user, is_due.then_some(hash)))
    }

    /// Begins an attempt. It counts at once, so that many at a time do not slip through together.
    ///
    /// # Errors
    /// When there were too many failures.
    async fn begin(&self, guess: AttemptKeys, now: Timestamp) -> Result<PasswordAttempt, ApiError> {
        self.limits.begin(guess, now).await.map_err(too_many_failures)
    }

    /// Notes that an account was signed in to, for its owner, and where, for the next sign-in. A store that is away or full costs the
    /// note, not the sign-in.
    async fn note(&self, user: UserId, origin: RequestOrigin, place: Option<[u8; 32]>) {
        let (db, audit, now) = (self.db.clone(), self.audit.clone(), self.clock.now());
        let actor = Actor::at_home(user, origin);
        // In a task of its own: it need not begin anew when nobody waits for it any more.
        let noting = tokio::spawn(async move {
            let noted = async {
                let mut tx = db.begin_relaxed().await?;
                if let Some(hash) = place {
                    known_addresses::remember(&mut tx, user, &hash, now, KNOWN).await?;
                }
                audit.note(&mut tx, &actor, AuditAction::SignedIn, "user", user).await?;
                tx.commit().await
            };
            if let Err(error) = noted.await {
                tracing::debug!(%error, "a sign-in could not be noted");
            }
        });
        // The next sign-in from there is judged by it; nobody waits for the audit log.
        if place.is_some() && timeout(NOTING, noting).await.is_err() {
            tracing::debug!("it takes long to note a sign-in");
        }
    }

    fn signed_in(&self, user: User) -> Result<SignedInUser, ApiError> {
        let token = self.jwt.sign(user.id, user.token_version, self.clock.now());
        token.map(|token| SignedInUser { user, token }).ok_or_else(ApiError::internal)
    }
}
