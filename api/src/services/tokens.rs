//! API tokens. The value is stored sealed, because the interface shows it in every answer, and found by its hash.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use lectern_derive::RequestBody;
use lectern_shared::{
    clock::{Clock, Timestamp},
    db::{self, Db},
    ids::ApiTokenId,
    model::user::{ApiToken, User},
    secrets::{CiphertextLocation, Keyring, sha256},
};
use lru::LruCache;
use parking_lot::Mutex;
use secrecy::SecretString;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    Actor,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
};
use crate::error::ApiError;

/// What every API token begins with.
pub(super) const PREFIX: &str = "lec_";

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Base-62 digits that hold 32 bytes.
const DIGITS: usize = 43;
/// The last use is noted at most this often.
const TOUCH_EVERY: Duration = Duration::from_mins(1);
/// API tokens whose last use is remembered.
const TOUCHED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

/// A new API token.
#[derive(Debug, RequestBody, ToSchema)]
pub(crate) struct NewApiToken {
    /// What to remember it by.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    pub(crate) description: String,
}

/// An API token and its value.
pub(crate) struct RevealedToken {
    pub(crate) token: ApiToken,
    pub(crate) value: SecretString,
}

/// API tokens. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TokenService {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
    creations: IdempotencyStore,
    /// When this process last noted the use of an API token.
    touched: Arc<Mutex<LruCache<ApiTokenId, Timestamp>>>,
}

fn unknown() -> ApiError {
    ApiError::not_found("API token")
}

/// 32 random bytes in base 62.
fn generate() -> String {
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
    digits.iter().fold(PREFIX.to_owned(), |mut token, digit| {
        token.push(char::from(*digit));
        token
    })
}

fn place(id: &ApiTokenId) -> CiphertextLocation<'_> {
    CiphertextLocation::api_token(id.as_uuid())
}

impl TokenService {
    pub(crate) fn new(db: Db, clock: Clock, keyring: Arc<Keyring>, creations: IdempotencyStore) -> Self {
        let touched = Arc::new(Mutex::new(LruCache::new(TOUCHED)));
        Self { db, clock, keyring, creations, touched }
    }

    /// Makes an API token.
    pub(crate) async fn create(
        &self,
        actor: Actor,
        new: NewApiToken,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<RevealedToken>,
    ) -> Result<CreationOutcome, ApiError> {
        let NewApiToken { description } = new;
        let mut tx = self.db.begin().await?;
        let (id, value) = (ApiTokenId::generate(), generate());
        let token_sealed = self.keyring.encrypt(place(&id), value.as_bytes())?;
        let token = ApiToken {
            id,
            user_id: actor.user,
            description,
            token_sealed,
            created_at: self.clock.now(),
            last_used_at: None,
        };
        db::accounts::insert_token(&mut tx, &token, &sha256(value.as_bytes())).await?;
        let made = RevealedToken { token, value: SecretString::from(value) };
        self.creations.commit(tx, once, &made, tell).await
    }

    /// The API tokens before an id, newest first.
    pub(crate) async fn list(
        &self,
        actor: Actor,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<RevealedToken>, ApiError> {
        let tokens = db::accounts::list_tokens(&self.db, actor.user, before.into(), limit).await?;
        tokens.into_iter().map(|token| self.reveal(token)).collect()
    }

    /// One API token.
    pub(crate) async fn find(&self, actor: Actor, id: ApiTokenId) -> Result<RevealedToken, ApiError> {
        let token = db::accounts::find_token(&self.db, actor.user, id).await?;
        self.reveal(token.ok_or_else(unknown)?)
    }

    /// Deletes an API token, which opens nothing any more.
    pub(crate) async fn delete(&self, actor: Actor, id: ApiTokenId) -> Result<RevealedToken, ApiError> {
        let mut tx = self.db.begin_essential().await?;
        let token = db::accounts::delete_token(&mut tx, actor.user, id).await?;
        let token = self.reveal(token.ok_or_else(unknown)?)?;
        tx.commit().await?;
        Ok(token)
    }

    fn reveal(&self, token: ApiToken) -> Result<RevealedToken, ApiError> {
        let value = self.keyring.decrypt_text(place(&token.id), &token.token_sealed)?;
        Ok(RevealedToken { token, value })
    }

    /// Which token this is and who holds it; none when it was never given out or is deleted.
    pub(super) async fn authenticate(&self, value: &str) -> Result<Option<(ApiTokenId, User)>, ApiError> {
        let Some(owner) = db::accounts::find_token_owner(&self.db, &sha256(value.as_bytes())).await? else {
            return Ok(None);
        };
        let now = self.clock.now();
        let stale = |last: Option<Timestamp>| last.is_none_or(|last| now.since(last) > TOUCH_EVERY);
        // Remembered before it is written: of many requests at once one writes.
        if stale(owner.last_used_at) && stale(self.touched.lock().put(owner.token_id, now)) {
            let (db, id) = (self.db.clone(), owner.token_id);
            // A note for people; no request waits for it or fails by it.
            tokio::spawn(async move {
                let noted = async {
                    let mut tx = db.begin().await?;
                    db::accounts::touch_token(&mut tx, id, now).await?;
                    tx.commit().await
                };
                if let Err(error) = noted.await {
                    tracing::debug!(%error, "the use of an API token could not be noted");
                }
            });
        }
        Ok(Some((owner.token_id, owner.user)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_their_form_and_never_repeat() {
        let tokens: std::collections::HashSet<_> = (0..1_000).map(|_| generate()).collect();
        assert_eq!(tokens.len(), 1_000);
        for token in tokens {
            let digits = token.strip_prefix(PREFIX).unwrap();
            assert!(digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_alphanumeric()), "{token}");
        }
    }
}
