//! Passwords: argon2id, off the async threads, a bounded number at once.

use std::sync::LazyLock;

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use lectern_shared::compute::Compute;
use secrecy::{ExposeSecret, SecretString};

use crate::error::ApiError;

/// Hashes and verifies. The parameters are those of the crate: argon2id, 19 MiB, two passes, one lane, which is the
/// current OWASP minimum.
#[derive(Clone)]
pub(crate) struct Passwords {
    compute: Compute,
}

/// What a password of nobody is compared with, so that an unknown account takes as long as a known one.
static NOBODY: LazyLock<String> = LazyLock::new(|| hash(b"nobody's password").unwrap_or_default());

fn hash(password: &[u8]) -> Result<String, argon2::password_hash::Error> {
    Ok(Argon2::default().hash_password(password)?.to_string())
}

fn matches(password: &[u8], hash: &str) -> bool {
    PasswordHash::new(hash).is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok())
}

impl Passwords {
    pub(crate) fn new() -> Self {
        // Ready before the first unknown account asks, or that one would take longer.
        std::thread::spawn(|| LazyLock::force(&NOBODY));
        Self { compute: Compute::per_core() }
    }

    /// The password's hash, in PHC form.
    pub(crate) async fn hash(&self, password: SecretString) -> Result<String, ApiError> {
        self.compute.run(move || hash(password.expose_secret().as_bytes())).await?.map_err(|error| {
            tracing::error!(%error, "a password could not be hashed");
            ApiError::internal()
        })
    }

    /// Whether the password fits; false without a hash, after as much work.
    pub(crate) async fn verify(
        &self,
        password: SecretString,
        hash: Option<String>,
    ) -> Result<bool, ApiError> {
        Ok(self
            .compute
            .run(move || {
                let known = hash.is_some();
                let fits = matches(password.expose_secret().as_bytes(), hash.as_deref().unwrap_or(&NOBODY));
                known && fits
            })
            .await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_fits_its_own_hash_only() {
        let passwords = Passwords::new();
        let hash = passwords.hash(SecretString::from("correct horse")).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(passwords.verify(SecretString::from("correct horse"), Some(hash.clone())).await.unwrap());
        assert!(!passwords.verify(SecretString::from("wrong horse"), Some(hash)).await.unwrap());
        assert!(!passwords.verify(SecretString::from("nobody's password"), None).await.unwrap());
    }
}
