//! What is kept between the steps of a sign-in: nothing here, so that any process can take the next step. The browser has it, sealed.

use std::time::Duration;

use lectern_shared::{
    clock::Timestamp,
    ids::UserId,
    secrets::{CiphertextLocation, Keyring, hex, sha256, unhex},
};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{error::ApiError, services::tokens::random_token};

/// How long somebody may be at the provider.
pub(super) const AWAY_FOR: Duration = Duration::from_mins(10);
/// How long a code is good.
pub(super) const CODE_TTL: Duration = Duration::from_mins(1);

/// A sign-in that was begun in a browser, which keeps this as a cookie.
#[derive(Serialize, Deserialize)]
pub(super) struct PendingSignIn {
    /// Comes back with the provider's answer, and so ties that to the browser.
    pub(super) state: String,
    /// Comes back in the ID token, and so ties that to this sign-in.
    pub(super) nonce: String,
    /// Proves to the provider that whoever has the code is who began.
    pub(super) verifier: String,
    /// The page to go back to.
    pub(super) return_to: Option<String>,
    /// In seconds since 1970.
    pub(super) ends_at: i64,
}

/// What a browser that has come back signs in with, once.
#[derive(Serialize, Deserialize)]
pub(super) struct SignInTicket {
    /// Tells one ticket from another.
    pub(super) id: String,
    pub(super) user: UserId,
    /// The hash of the state that the browser's cookie has.
    browser: String,
    /// In seconds since 1970.
    ends_at: i64,
}

impl PendingSignIn {
    /// A sign-in that begins now.
    pub(super) fn begin(return_to: Option<String>, now: Timestamp) -> Self {
        let random = || random_token("").expose_secret().to_owned();
        let (state, nonce, verifier) = (random(), random(), random());
        Self { state, nonce, verifier, return_to, ends_at: now.plus(AWAY_FOR).as_secs() }
    }

    /// What tells its cookie from those of other sign-ins that were begun in the browser.
    pub(super) fn cookie_name(&self) -> String {
        self.browser().chars().take(16).collect()
    }

    pub(super) fn seal(&self, keyring: &Keyring) -> Result<String, ApiError> {
        seal(keyring, CiphertextLocation::oidc_cookie(), self)
    }

    /// What a cookie holds, unless it is too old.
    pub(super) fn open(keyring: &Keyring, cookie: &str, now: Timestamp) -> Option<Self> {
        open(keyring, CiphertextLocation::oidc_cookie(), cookie)
            .filter(|pending: &Self| pending.ends_at > now.as_secs())
    }

    /// Whether an answer is one to this sign-in. The hashes are compared, so that the time it takes tells nothing.
    pub(super) fn is_answered_by(&self, state: &str) -> bool {
        sha256(state.as_bytes()) == sha256(self.state.as_bytes())
    }

    fn browser(&self) -> String {
        hex(&sha256(self.state.as_bytes()))
    }
}

impl SignInTicket {
    /// A ticket for an account, in the browser that began this sign-in.
    pub(super) fn of(user: UserId, pending: &PendingSignIn, now: Timestamp) -> Self {
        let id = random_token("").expose_secret().to_owned();
        Self { id, user, browser: pending.browser(), ends_at: now.plus(CODE_TTL).as_secs() }
    }

    pub(super) fn seal(&self, keyring: &Keyring) -> Result<String, ApiError> {
        seal(keyring, CiphertextLocation::oidc_code(), self)
    }

    /// What a code holds, unless it is too old, or was given to another browser: somebody could be sent the code of another's account.
    pub(super) fn open(
        keyring: &Keyring,
        code: &str,
        pending: &PendingSignIn,
        now: Timestamp,
    ) -> Option<Self> {
        open(keyring, CiphertextLocation::oidc_code(), code)
            .filter(|ticket: &Self| ticket.ends_at > now.as_secs() && ticket.browser == pending.browser())
    }
}

fn seal(
    keyring: &Keyring,
    place: CiphertextLocation<'_>,
    value: &impl Serialize,
) -> Result<String, ApiError> {
    let text = serde_json::to_vec(value).map_err(|error| {
        tracing::error!(%error, "a sign-in could not be sealed");
        ApiError::internal()
    })?;
    Ok(hex(&keyring.encrypt(place, &text)?))
}

fn open<T: DeserializeOwned>(keyring: &Keyring, place: CiphertextLocation<'_>, sealed: &str) -> Option<T> {
    let text = keyring.decrypt(place, &unhex(sealed)?).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    fn keyring(secret: &str) -> Keyring {
        Keyring::new(&SecretString::from(secret.repeat(8)), None).unwrap()
    }

    #[test]
    fn a_cookie_tells_its_browser_nothing_and_is_good_for_ten_minutes_under_its_own_key() {
        let keys = keyring("first");
        let begun = PendingSignIn::begin(Some("/agents".to_owned()), NOW);
        let cookie = begun.seal(&keys).unwrap();
        assert!(cookie.bytes().all(|byte| byte.is_ascii_hexdigit()) && cookie.len() < 2_000, "{cookie}");
        for secret in [&begun.state, &begun.nonce, &begun.verifier] {
            assert!(!cookie.contains(&hex(secret.as_bytes())));
            // What RFC 7636 asks of a verifier.
            assert!(secret.len() == 43 && secret.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
        let open = |keys: &Keyring, cookie: &str, at| PendingSignIn::open(keys, cookie, at);
        let kept = open(&keys, &cookie, NOW.plus(Duration::from_secs(599))).unwrap();
        assert_eq!((&kept.state, &kept.nonce, &kept.verifier), (&begun.state, &begun.nonce, &begun.verifier));
        assert_eq!(kept.return_to.as_deref(), Some("/agents"));
        assert!(kept.is_answered_by(&begun.state) && !kept.is_answered_by(&begun.nonce));
        assert!(!kept.is_answered_by(""));
        assert!(open(&keys, &cookie, NOW.plus(AWAY_FOR)).is_none());
        assert!(open(&keyring("other"), &cookie, NOW).is_none());
        for wrong in ["", "00", &cookie[2..], &cookie[..cookie.len() - 2], &cookie.replace('0', "1")] {
            assert!(open(&keys, wrong, NOW).is_none(), "{wrong}");
        }
    }

    #[test]
    fn no_two_sign_ins_are_alike() {
        let (one, other) = (PendingSignIn::begin(None, NOW), PendingSignIn::begin(None, NOW));
        let all = [&one.state, &one.nonce, &one.verifier, &other.state, &other.nonce, &other.verifier];
        assert_eq!(all.into_iter().collect::<std::collections::HashSet<_>>().len(), 6);
    }

    #[test]
    fn a_code_is_good_for_a_minute_in_its_own_browser_and_is_no_cookie() {
        let keys = keyring("first");
        let (here, elsewhere) = (PendingSignIn::begin(None, NOW), PendingSignIn::begin(None, NOW));
        let user = UserId::generate();
        let code = SignInTicket::of(user, &here, NOW).seal(&keys).unwrap();
        let open = |browser: &PendingSignIn, at| SignInTicket::open(&keys, &code, browser, at);
        assert_eq!(open(&here, NOW.plus(Duration::from_secs(59))).unwrap().user, user);
        assert!(open(&here, NOW.plus(CODE_TTL)).is_none());
        assert!(open(&elsewhere, NOW).is_none(), "a code that another browser was given");
        assert!(PendingSignIn::open(&keys, &code, NOW).is_none());
        let cookie = here.seal(&keys).unwrap();
        assert!(SignInTicket::open(&keys, &cookie, &here, NOW).is_none());
    }
}
