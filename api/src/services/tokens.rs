//! API tokens. The value is stored sealed, because the interface shows it in every answer, and found by its hash.

mod page_origins;

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use lectern_db::{self as db, Db, api_tokens::TokenGrant};
use lectern_derive::RequestBody;
use lectern_shared::{
    clock::{Clock, Timestamp},
    ids::{AgentId, ApiTokenId},
    model::{
        Json,
        audit::{AuditAction, AuditDetails},
        user::{ApiToken, User},
        workspace::Role,
    },
    secrets::{CiphertextLocation, Keyring, sha256},
};
use lru::LruCache;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};
use utoipa::ToSchema;
use uuid::Uuid;

pub(crate) use self::page_origins::PageOrigins;
use super::{
    actor::{Actor, Permission},
    audit::AuditService,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
    workspaces::members::lock_asking,
};
use crate::{
    coalesced::CoalescedReads,
    error::{ApiError, ApiErrorKind},
    fields::{FieldRule, GivenId, JsonFields},
};

/// What every API token begins with.
pub(super) const PREFIX: &str = "lec_";

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Base-62 digits that hold 32 bytes.
const DIGITS: usize = 43;
/// API tokens of one workspace, besides those of published pages.
const MOST: u64 = 1_000;
/// Bytes of the longest origin: `https://`, the longest name of a host that there can be, and a port.
const LONGEST_ORIGIN: usize = 270;
/// The last use is noted at most this often.
const TOUCH_EVERY: Duration = Duration::from_mins(1);
/// API tokens whose last use is remembered.
const TOUCHED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

/// A new API token.
#[derive(Debug, RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewApiToken {
    /// What to remember it by.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    pub(crate) description: String,
    /// What it may do in the workspace, at most what you may: `asker`, `editor`, `builder` or `owner`. `builder` when left out, or
    /// your own role if that is lower.
    #[schema(value_type = Option<String>, pattern = "^(asker|editor|builder|owner)$")]
    pub(crate) role: Option<Role>,
    /// The one agent of yours that it may ask. It may do nothing else, but read what that agent cites.
    #[schema(value_type = Option<String>)]
    pub(crate) agent_id: Option<GivenId<AgentId>>,
    /// The origins of the pages that may use it, such as `https://www.example.com`, of at most 270 bytes each: a key that may be
    /// published in a page.
    #[schema(value_type = Option<Vec<String>>, max_items = 50)]
    #[body(with = read_origins)]
    pub(crate) origins: Option<Vec<String>>,
    /// When it ends.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) expires_at: Option<Timestamp>,
    /// How many requests a minute it opens: all of them at once if none was sent for a minute, and then as many a minute as come back.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 4_294_967_295_i64)]
    pub(crate) rate_per_minute: Option<u32>,
}

/// Reads origins, each once and as a browser writes it.
pub(super) fn read_origins(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Vec<String>> {
    let texts = fields.texts(rule.name, rule.max_items, "origins")?;
    let mut origins = Vec::with_capacity(texts.len());
    for (at, text) in texts.into_iter().enumerate() {
        match origin_of(text) {
            // Those of all tokens are remembered, so what one of them takes must have an end.
            Some(origin) if origin.len() > LONGEST_ORIGIN => {
                let problem = format!("may have at most {LONGEST_ORIGIN} bytes");
                fields.refuse(&format!("{}.{at}", rule.name), problem);
            }
            Some(origin) => origins.push(origin),
            None => fields.refuse(
                &format!("{}.{at}", rule.name),
                "must be an origin: http or https, a host, and perhaps a port",
            ),
        }
    }
    if origins.is_empty() && !fields.is_refused(rule.name) {
        fields.refuse(rule.name, "must name at least one origin; leave it out for a token of no page");
    }
    origins.sort_unstable();
    origins.dedup();
    Some(origins)
}

/// An origin as a browser writes it, if a text is one.
fn origin_of(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let is_origin = matches!(url.scheme(), "http" | "https")
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && url.host().as_ref().is_some_and(is_plain);
    is_origin.then(|| url.origin().ascii_serialization())
}

/// Whether a host has nothing in it that means something in a header which lists origins: names of hosts may have almost anything.
fn is_plain(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
        Host::Ipv4(_) | Host::Ipv6(_) => true,
    }
}

/// An API token, its value and its maker.
pub(crate) struct RevealedToken {
    pub(crate) token: ApiToken,
    /// None for anybody but its maker.
    pub(crate) value: Option<SecretString>,
    pub(crate) maker: User,
}

/// API tokens. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TokenService {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
    creations: IdempotencyStore,
    audit: AuditService,
    pages: PageOrigins,
    /// When this process last noted the use of an API token.
    touched: Arc<Mutex<LruCache<ApiTokenId, Timestamp>>>,
    /// Of many requests at once with the same token, by its hash, not each asks for itself.
    grants: CoalescedReads<[u8; 32], Result<Option<TokenGrant>, ApiError>>,
}

fn unknown() -> ApiError {
    ApiError::not_found("API token")
}

/// Whether somebody may delete an API token: each of their own, when they are signed in; others that may do no more than they.
///
/// # Errors
/// 403, which names the role that is needed.
pub(crate) fn may_delete(actor: &Actor, token: &ApiToken) -> Result<(), ApiError> {
    if token.owner.creator() == actor.user && actor.token().is_none() {
        return Ok(());
    }
    actor.may_revoke(token.role.unwrap_or(Role::Owner))
}

/// 32 random bytes in base 62, after a prefix that tells what they are for.
pub(super) fn random_token(prefix: &str) -> SecretString {
    let mut number: [u8; 32] = rand::random();
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        // Long division of the number by 62; the remainder is the digit.
        let mut remainder = 0_u32;
        for byte in &mut number {
            let dividend = (remainder << 8) | u32::from(*byte);
            *byte = u8::try_from(dividend / 62).unwrap_or(0);
            remainder = dividend % 62;
        }
        *digit = ALPHABET.get(remainder as usize).copied().unwrap_or(b'0');
    }
    let token = digits.iter().fold(prefix.to_owned(), |mut token, digit| {
        token.push(char::from(*digit));
        token
    });
    SecretString::from(token)
}

pub(super) fn place(id: &ApiTokenId) -> CiphertextLocation<'_> {
    CiphertextLocation::api_token(id.as_uuid())
}

impl TokenService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        keyring: Arc<Keyring>,
        creations: IdempotencyStore,
        audit: AuditService,
        pages: PageOrigins,
    ) -> Self {
        let touched = Arc::new(Mutex::new(LruCache::new(TOUCHED)));
        let grants = CoalescedReads::default();
        Self { db, clock, keyring, creations, audit, pages, touched, grants }
    }

    /// Makes an API token.
    ///
    /// # Errors
    /// When it could do more than its maker, its agent is not the workspace's, its end is not to come, or the workspace has as many as
    /// it may.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        maker: &User,
        new: NewApiToken,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<RevealedToken>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        actor.may_handle_tokens()?;
        let role = new.role.unwrap_or_else(|| Role::Builder.at_most(actor.role()));
        actor.may_grant(role)?;
        let now = self.clock.now();
        if new.expires_at.is_some_and(|end| end <= now) {
            return Err(ApiError::invalid_field("expiresAt", "must be a time that is to come"));
        }
        let unknown_agent = || ApiError::not_found("agent");
        let agent_id = new.agent_id.transpose().map_err(|_| unknown_agent())?;
        let mut tx = self.db.begin().await?;
        // A member who is removed at this moment leaves no token behind.
        lock_asking(&mut tx, actor, owner.workspace_id).await?;
        if db::api_tokens::count(&mut tx, owner.workspace_id).await? >= MOST {
            let message = format!("A workspace may have at most {MOST} API tokens.");
            return Err(ApiError::new(ApiErrorKind::Conflict, "too_many_tokens", message));
        }
        if let Some(agent) = agent_id
            && !db::tools::owns_agent(&mut tx, owner.workspace_id, agent).await?
        {
            return Err(unknown_agent());
        }
        let (id, value) = (ApiTokenId::generate(), random_token(PREFIX));
        let token_sealed = self.keyring.encrypt(place(&id), value.expose_secret().as_bytes())?;
        let token = ApiToken {
            id,
            owner,
            description: new.description,
            role: Some(role),
            agent_id,
            origins: new.origins.map(Json),
            expires_at: new.expires_at,
            rate_per_minute: new.rate_per_minute.map(i64::from),
            token_sealed,
            created_at: now,
            last_used_at: None,
        };
        db::api_tokens::insert(&mut tx, &token, &sha256(value.expose_secret().as_bytes())).await?;
        let details = AuditDetails::default().with("role", Some(role)).with("agent", agent_id);
        self.audit.note_with(&mut tx, actor, AuditAction::TokenCreated, "api_token", id, details).await?;
        let made = RevealedToken { token, value: Some(value), maker: maker.clone() };
        // Whoever may not give this role is not shown the token again either.
        let created = self.creations.commit(tx, once.for_role(role), &made, tell).await?;
        if let Some(Json(origins)) = &made.token.origins {
            self.pages.add(origins);
        }
        Ok(created)
    }

    /// The API tokens before an id whose descriptions have something somewhere, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        asking: &User,
        name: &str,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<RevealedToken>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let tokens = db::api_tokens::list(&self.db, owner.workspace_id, name, before.into(), limit).await?;
        let mut revealed = Vec::with_capacity(tokens.len());
        for token in tokens {
            // The account of its maker may be gone at this moment, and the token then is too.
            revealed.extend(self.reveal(actor, asking, token).await?);
        }
        Ok(revealed)
    }

    /// One API token.
    pub(crate) async fn find(
        &self,
        actor: &Actor,
        asking: &User,
        id: ApiTokenId,
    ) -> Result<RevealedToken, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let token = db::api_tokens::find(&self.db, owner.workspace_id, id).await?;
        self.reveal(actor, asking, token.ok_or_else(unknown)?).await?.ok_or_else(unknown)
    }

    /// Deletes an API token, which opens nothing any more.
    ///
    /// # Errors
    /// When it may do more than whoever asks.
    pub(crate) async fn delete(
        &self,
        actor: &Actor,
        asking: &User,
        id: ApiTokenId,
    ) -> Result<RevealedToken, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let mut tx = self.db.begin_essential().await?;
        let token = db::api_tokens::delete(&mut tx, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        may_delete(actor, &token)?;
        let token = self.reveal(actor, asking, token).await?.ok_or_else(unknown)?;
        self.audit.note(&mut tx, actor, AuditAction::TokenDeleted, "api_token", id).await?;
        tx.commit().await?;
        Ok(token)
    }

    /// An API token as somebody sees it: its value is its maker's alone, since another could do with it what that one may, and only
    /// where it gives nothing that the credential in hand does not.
    async fn reveal(
        &self,
        actor: &Actor,
        asking: &User,
        token: ApiToken,
    ) -> Result<Option<RevealedToken>, ApiError> {
        let creator = token.owner.creator();
        let role = token.role.unwrap_or(Role::Owner);
        if creator == asking.id && actor.may_handle_tokens().is_ok() && actor.may_grant(role).is_ok() {
            let value = self.keyring.decrypt_text(place(&token.id), &token.token_sealed)?;
            return Ok(Some(RevealedToken { token, value: Some(value), maker: asking.clone() }));
        }
        let maker = db::accounts::find(&self.db, creator).await?;
        Ok(maker.map(|maker| RevealedToken { token, value: None, maker }))
    }

    /// What this token opens; nothing when it was never given out, is deleted or has ended.
    pub(super) async fn authenticate(&self, value: &str) -> Result<Option<TokenGrant>, ApiError> {
        let hash = sha256(value.as_bytes());
        let read = async { Ok(db::api_tokens::find_grant(&self.db, &hash, self.clock.now()).await?) };
        let grant = self.grants.share(hash, read).await?;
        if let Some(grant) = &grant {
            self.note_use(grant);
        }
        Ok(grant)
    }

    /// Notes that a token was used, if that was not noted just now.
    pub(super) fn note_use(&self, grant: &TokenGrant) {
        let now = self.clock.now();
        let stale = |last: Option<Timestamp>| last.is_none_or(|last| now.since(last) > TOUCH_EVERY);
        // Remembered before it is written: of many requests at once one writes.
        if stale(grant.last_used_at) && stale(self.touched.lock().put(grant.token_id, now)) {
            let (db, id) = (self.db.clone(), grant.token_id);
            // A note for people; no request waits for it or fails by it.
            tokio::spawn(async move {
                let noted = async {
                    let mut tx = db.begin().await?;
                    db::api_tokens::touch(&mut tx, id, now).await?;
                    tx.commit().await
                };
                if let Err(error) = noted.await {
                    tracing::debug!(%error, "the use of an API token could not be noted");
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_their_form_and_never_repeat() {
        let tokens: std::collections::HashSet<_> =
            (0..1_000).map(|_| random_token(PREFIX).expose_secret().to_owned()).collect();
        assert_eq!(tokens.len(), 1_000);
        for token in tokens {
            let digits = token.strip_prefix(PREFIX).unwrap();
            assert!(digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_alphanumeric()), "{token}");
        }
    }
}
