//! API tokens: made, found and shown. The value is stored sealed, because the interface shows it in every answer, and
//! found by its hash.

use std::time::Duration;

use lectern_shared::{
    clock::Timestamp,
    db::{self, DbError, Tx},
    ids::{ApiTokenId, UserId},
    model::user::{ApiToken, User},
    runtime::Runtime,
    secrets::{Keyring, Place, SecretError, sha256},
};
use secrecy::SecretString;

use crate::{error::ApiError, state::AppState};

/// What every API token begins with.
pub(crate) const PREFIX: &str = "lec_";

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Base-62 digits that hold 32 bytes.
const DIGITS: usize = 43;
/// The last use is noted at most this often.
const TOUCH_EVERY: Duration = Duration::from_mins(1);

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

fn place(id: &ApiTokenId) -> Place<'_> {
    Place::api_token(id.as_uuid())
}

/// Makes a token for `user`.
pub(crate) async fn create(
    runtime: &Runtime,
    tx: &mut Tx,
    user: UserId,
    description: String,
) -> Result<ApiToken, ApiError> {
    let (id, value) = (ApiTokenId::generate(), generate());
    let token_sealed = runtime.keyring.encrypt(place(&id), value.as_bytes())?;
    let token = ApiToken {
        id,
        user_id: user,
        description,
        token_sealed,
        created_at: runtime.clock.now(),
        last_used_at: None,
    };
    db::accounts::insert_token(tx, &token, &sha256(value.as_bytes())).await?;
    Ok(token)
}

/// The token's value.
pub(crate) fn reveal(keyring: &Keyring, token: &ApiToken) -> Result<SecretString, SecretError> {
    keyring.decrypt_text(place(&token.id), &token.token_sealed)
}

/// Which token this is and who holds it; none when it was never given out or is deleted.
pub(crate) async fn authenticate(
    state: &AppState,
    value: &str,
) -> Result<Option<(ApiTokenId, User)>, DbError> {
    let runtime = &state.runtime;
    let Some(owner) = db::accounts::find_token_owner(&runtime.db, &sha256(value.as_bytes())).await? else {
        return Ok(None);
    };
    let now = runtime.clock.now();
    let stale = |last: Option<Timestamp>| last.is_none_or(|last| now.since(last) > TOUCH_EVERY);
    // Remembered before it is written: of many requests at once one writes.
    if stale(owner.last_used_at) && stale(state.touched.lock().put(owner.token_id, now)) {
        let (db, id) = (runtime.db.clone(), owner.token_id);
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
