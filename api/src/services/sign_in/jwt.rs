//! JSON web tokens: HS256 only, and ended early by raising the user's token version.

use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use lectern_shared::{clock::Timestamp, ids::UserId, secrets::Keyring};
use serde::{Deserialize, Serialize};

/// What a token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JwtClaims {
    /// Whose it is.
    pub(crate) sub: UserId,
    /// When it was given out, in seconds since 1970.
    pub(crate) iat: i64,
    /// When it ends, in seconds since 1970.
    pub(crate) exp: i64,
    /// The user's token version at that time.
    pub(crate) ver: i64,
}

/// Signs and verifies.
pub(crate) struct JwtCodec {
    signing: EncodingKey,
    verifying: Vec<DecodingKey>,
    validation: Validation,
    ttl: Duration,
}

impl JwtCodec {
    pub(crate) fn new(keyring: &Keyring, ttl: Duration) -> Self {
        let mut validation = Validation::new(Algorithm::HS256);
        // Checked by the service's own clock instead.
        validation.validate_exp = false;
        validation.required_spec_claims.clear();
        Self {
            signing: EncodingKey::from_secret(keyring.jwt_signing_key()),
            verifying: keyring.jwt_keys().map(DecodingKey::from_secret).collect(),
            validation,
            ttl,
        }
    }

    /// A token for `user`; none when it cannot be signed, which has no cause but a broken build.
    pub(crate) fn sign(&self, user: UserId, version: i64, now: Timestamp) -> Option<String> {
        let claims =
            JwtClaims { sub: user, iat: now.as_secs(), exp: now.plus(self.ttl).as_secs(), ver: version };
        encode(&Header::new(Algorithm::HS256), &claims, &self.signing).ok()
    }

    /// What a token says, if it is ours and has not ended.
    pub(crate) fn verify(&self, token: &str, now: Timestamp) -> Option<JwtClaims> {
        let claims = self
            .verifying
            .iter()
            .find_map(|key| decode::<JwtClaims>(token, key, &self.validation).ok())?
            .claims;
        (claims.exp > now.as_secs()).then_some(claims)
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    fn keyring(current: &str, previous: Option<&str>) -> Keyring {
        let secret = |text: &str| SecretString::from(text.repeat(8));
        Keyring::new(&secret(current), previous.map(secret).as_ref()).unwrap()
    }

    fn jwt(current: &str, previous: Option<&str>) -> JwtCodec {
        JwtCodec::new(&keyring(current, previous), Duration::from_mins(10))
    }

    #[test]
    fn a_token_is_good_until_it_ends_and_under_its_own_key_only() {
        let user = UserId::generate();
        let token = jwt("first", None).sign(user, 3, NOW).unwrap();
        let claims = jwt("first", None).verify(&token, NOW).unwrap();
        assert_eq!((claims.sub, claims.ver), (user, 3));
        assert!(jwt("first", None).verify(&token, NOW.plus(Duration::from_mins(10))).is_none());
        assert!(jwt("other", None).verify(&token, NOW).is_none());
        assert!(jwt("other", Some("first")).verify(&token, NOW).is_some());
    }

    #[test]
    fn another_algorithm_and_none_at_all_are_refused() {
        let claims = JwtClaims { sub: UserId::generate(), iat: 0, exp: i64::MAX / 2, ver: 0 };
        let keyring = keyring("first", None);
        let key = EncodingKey::from_secret(keyring.jwt_signing_key());
        let other = encode(&Header::new(Algorithm::HS512), &claims, &key).unwrap();
        assert!(jwt("first", None).verify(&other, NOW).is_none());
        // {"alg":"none","typ":"JWT"}
        let (_, payload) = other.split_once('.').unwrap();
        let (payload, signature) = payload.split_once('.').unwrap();
        for unsigned in [
            format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{payload}."),
            format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{payload}.{signature}"),
            format!("{payload}."),
            String::new(),
        ] {
            assert!(jwt("first", None).verify(&unsigned, NOW).is_none(), "{unsigned}");
        }
    }
}
