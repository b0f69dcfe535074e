//! Keys and encryption at rest. One secret, `LECTERN_SECRET_KEY`, is stretched by HKDF into separate keys for each
//! purpose, so that none can stand in for another.

use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use hkdf::Hkdf;
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::ids::UserId;

/// The shortest `LECTERN_SECRET_KEY` accepted, in bytes.
pub const MIN_SECRET_BYTES: usize = 32;

const FORMAT: u8 = 1;
const KEY_ID_BYTES: usize = 4;
const NONCE_BYTES: usize = 24;

/// Bytes of the head of a ciphertext, which says under which key it is: the format and the key's id.
pub const HEAD_BYTES: usize = 1 + KEY_ID_BYTES;

/// The name, and the text, of a singleton that is kept encrypted so that a wrong key is noticed at the start.
pub const CANARY: &str = "canary";

/// Why a secret could not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The configured secret is shorter than [`MIN_SECRET_BYTES`].
    #[error("the secret key must have at least {MIN_SECRET_BYTES} bytes")]
    TooShort,
    /// The ciphertext was made with a key that is not configured any more.
    #[error("encrypted with a key that is not configured")]
    UnknownKey,
    /// The ciphertext was changed, or belongs to another row or column.
    #[error("the ciphertext is damaged or belongs elsewhere")]
    Damaged,
}

/// For what is in no row of its own.
const NO_ROW: &Uuid = &Uuid::nil();

/// Where a ciphertext lives. It is bound to this place: copied to another row or column it does not decrypt.
#[derive(Clone, Copy, Debug)]
pub struct CiphertextLocation<'a> {
    /// The table.
    pub table: &'static str,
    /// The row's primary key.
    pub row: &'a Uuid,
    /// The column.
    pub column: &'static str,
}

impl<'a> CiphertextLocation<'a> {
    /// The value of an API token.
    pub const fn api_token(row: &'a Uuid) -> Self {
        Self { table: "api_tokens", row, column: "token" }
    }

    /// What opens a document's source.
    pub const fn document_authorization(row: &'a Uuid) -> Self {
        Self { table: "documents", row, column: "authorization" }
    }

    /// An agent's own key of its provider.
    pub const fn agent_key(row: &'a Uuid) -> Self {
        Self { table: "agents", row, column: "llm_key" }
    }

    /// The secrets of a tool's configuration.
    pub const fn tool_metadata(row: &'a Uuid) -> Self {
        Self { table: "tools", row, column: "metadata" }
    }

    /// The provider's key that an agent had before it was changed.
    pub const fn agent_version_key(row: &'a Uuid) -> Self {
        Self { table: "agent_versions", row, column: "llm_key" }
    }

    /// What opens a source that documents are kept in step with.
    pub const fn source_secret(row: &'a Uuid) -> Self {
        Self { table: "sources", row, column: "secret" }
    }

    /// What the events of a webhook are signed with.
    pub const fn webhook_secret(row: &'a Uuid) -> Self {
        Self { table: "webhooks", row, column: "secret" }
    }

    /// Where the events of a webhook are told to.
    pub const fn webhook_url(row: &'a Uuid) -> Self {
        Self { table: "webhooks", row, column: "url" }
    }

    /// An answer that is kept under an `Idempotency-Key`, by its [`idempotency_row`].
    pub const fn idempotent_answer(row: &'a Uuid) -> Self {
        Self { table: "idempotency", row, column: "answer" }
    }

    /// What a browser keeps while its user is at the provider of OpenID Connect.
    pub const fn oidc_cookie() -> Self {
        Self { table: "oidc", row: NO_ROW, column: "cookie" }
    }

    /// What a browser that comes back from there is signed in with.
    pub const fn oidc_code() -> Self {
        Self { table: "oidc", row: NO_ROW, column: "code" }
    }

    /// The passage that the link of a citation opens.
    pub const fn citation_link() -> Self {
        Self { table: "citations", row: NO_ROW, column: "link" }
    }

    /// The [canary](CANARY).
    pub const fn canary() -> Self {
        Self { table: "singletons", row: NO_ROW, column: "value" }
    }

    fn associated_data(&self) -> Vec<u8> {
        let mut data = Vec::with_capacity(self.table.len() + self.column.len() + 18);
        data.extend_from_slice(self.table.as_bytes());
        data.push(0);
        data.extend_from_slice(self.row.as_bytes());
        data.extend_from_slice(self.column.as_bytes());
        data
    }
}

struct DerivedKeys {
    id: [u8; KEY_ID_BYTES],
    cipher: XChaCha20Poly1305,
    jwt: SecretSlice<u8>,
    fingerprint: SecretSlice<u8>,
}

impl DerivedKeys {
    fn derive(secret: &SecretString) -> Result<Self, SecretError> {
        let secret = secret.expose_secret().as_bytes();
        if secret.len() < MIN_SECRET_BYTES {
            return Err(SecretError::TooShort);
        }
        // RFC 5869: the salt names the program, and each label (its `info`) a purpose and the version of what is made with the key.
        let hkdf = Hkdf::<Sha256>::new(Some(b"lectern"), secret);
        let (mut id, mut cipher, mut jwt, mut fingerprint) = ([0; KEY_ID_BYTES], [0; 32], [0; 32], [0; 32]);
        for (label, out) in [
            (&b"key id v1"[..], &mut id[..]),
            (&b"encryption at rest v1"[..], &mut cipher[..]),
            (&b"json web token v1"[..], &mut jwt[..]),
            (&b"fingerprint v1"[..], &mut fingerprint[..]),
        ] {
            // HKDF refuses only outputs of more than 8 KiB.
            hkdf.expand(label, out).map_err(|_| SecretError::TooShort)?;
        }
        Ok(Self {
            id,
            cipher: XChaCha20Poly1305::new(&cipher.into()),
            jwt: SecretSlice::from(jwt.to_vec()),
            fingerprint: SecretSlice::from(fingerprint.to_vec()),
        })
    }
}

/// The keys in force: the current one encrypts and signs, the previous one still reads.
pub struct Keyring {
    current: DerivedKeys,
    previous: Option<DerivedKeys>,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyring").field("rotating", &self.previous.is_some()).finish_non_exhaustive()
    }
}

impl Keyring {
    /// Derives the keys from the configured secrets.
    ///
    /// # Errors
    /// [`SecretError::TooShort`] for a secret of fewer than [`MIN_SECRET_BYTES`] bytes.
    pub fn new(current: &SecretString, previous: Option<&SecretString>) -> Result<Self, SecretError> {
        Ok(Self {
            current: DerivedKeys::derive(current)?,
            previous: previous.map(DerivedKeys::derive).transpose()?,
        })
    }

    /// Whether ciphertexts of another key than the current one can be read too.
    pub fn has_previous(&self) -> bool {
        self.previous.is_some()
    }

    /// What every ciphertext under the current key begins with.
    pub fn head(&self) -> [u8; HEAD_BYTES] {
        let mut head = [FORMAT; HEAD_BYTES];
        head[1..].copy_from_slice(&self.current.id);
        head
    }

    /// What was encrypted for `place` under any configured key, encrypted under the current one.
    pub fn encrypt_anew(&self, place: CiphertextLocation<'_>, sealed: &[u8]) -> Result<Vec<u8>, SecretError> {
        let plain = SecretSlice::from(self.decrypt(place, sealed)?);
        self.encrypt(place, plain.expose_secret())
    }

    /// Encrypts `plain` for `place`: format, key id, nonce, then the sealed text (XChaCha20-Poly1305).
    pub fn encrypt(&self, place: CiphertextLocation<'_>, plain: &[u8]) -> Result<Vec<u8>, SecretError> {
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let sealed = self
            .current
            .cipher
            .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: &place.associated_data() })
            .map_err(|_| SecretError::Damaged)?;
        let mut out = Vec::with_capacity(HEAD_BYTES + NONCE_BYTES + sealed.len());
        out.extend_from_slice(&self.head());
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&sealed);
        Ok(out)
    }

    /// Decrypts what [`Keyring::encrypt`] made for the same place, with whichever configured key made it.
    pub fn decrypt(&self, place: CiphertextLocation<'_>, sealed: &[u8]) -> Result<Vec<u8>, SecretError> {
        let (&format, rest) = sealed.split_first().ok_or(SecretError::Damaged)?;
        if format != FORMAT {
            return Err(SecretError::Damaged);
        }
        let (id, rest) = rest.split_first_chunk::<KEY_ID_BYTES>().ok_or(SecretError::Damaged)?;
        let (nonce, body) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(SecretError::Damaged)?;
        let key = std::iter::once(&self.current)
            .chain(&self.previous)
            .find(|key| key.id == *id)
            .ok_or(SecretError::UnknownKey)?;
        key.cipher
            .decrypt(&XNonce::from(*nonce), Payload { msg: body, aad: &place.associated_data() })
            .map_err(|_| SecretError::Damaged)
    }

    /// [`Keyring::decrypt`] for text.
    pub fn decrypt_text(
        &self,
        place: CiphertextLocation<'_>,
        sealed: &[u8],
    ) -> Result<SecretString, SecretError> {
        let plain = self.decrypt(place, sealed)?;
        String::from_utf8(plain).map(SecretString::from).map_err(|_| SecretError::Damaged)
    }

    /// The id that everything encrypted under the current key carries in its second to fifth byte.
    pub fn current_id(&self) -> [u8; KEY_ID_BYTES] {
        self.current.id
    }

    /// The id of the previous key, when one is set.
    pub fn previous_id(&self) -> Option<[u8; KEY_ID_BYTES]> {
        self.previous.as_ref().map(|key| key.id)
    }

    /// The key that signs JSON web tokens.
    pub fn jwt_signing_key(&self) -> &[u8] {
        self.current.jwt.expose_secret()
    }

    /// The keys under which JSON web tokens are accepted: the one that signs first.
    pub fn jwt_keys(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.current).chain(&self.previous).map(|key| key.jwt.expose_secret())
    }

    /// A hash that only this key makes (HMAC-SHA-256): for what could be guessed from a hash without a key, such as an address. Under
    /// another key it is another one.
    pub fn fingerprint(&self, bytes: &[u8]) -> [u8; 32] {
        // HKDF's first step is the HMAC of its input under its salt.
        Hkdf::<Sha256>::extract(Some(self.current.fingerprint.expose_secret()), bytes).0.into()
    }
}

/// The SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The SHA-256 of what comes piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Sha256Hasher(Sha256);

impl Sha256Hasher {
    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of everything taken.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    hex::encode(bytes)
}

/// Bytes from their hexadecimal digits, if it is that.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    hex::decode(text).ok()
}

/// What names the row of a kept answer in its ciphertext, so that it cannot be moved to another user or key.
pub fn idempotency_row(user: UserId, key: &str) -> Uuid {
    Uuid::new_v5(user.as_uuid(), key.as_bytes())
}

/// Characters at the beginning and at the end of a secret that are shown at most.
const SHOWN: (usize, usize) = (3, 4);
/// A shorter secret is not shown at all.
const MIN_SHOWN: usize = 12;

/// A secret as it may be shown: a few of its first and last characters, together a quarter of it at most, or dots alone when it is
/// short.
pub fn mask(secret: &str) -> String {
    let (head, tail) = SHOWN;
    let shown = (secret.chars().count() / 4).min(head + tail);
    let first = shown * head / (head + tail);
    masked_by(secret, (first, shown - first))
}

/// A secret with so many of its first and last characters.
fn masked_by(secret: &str, (head, tail): (usize, usize)) -> String {
    let count = secret.chars().count();
    if count < MIN_SHOWN {
        return "…".to_owned();
    }
    let first: String = secret.chars().take(head).collect();
    let last: String = secret.chars().skip(count - tail).collect();
    format!("{first}…{last}")
}

/// Whether a text is the mask of a secret: what [`mask`] makes of it, or what earlier versions did, which showed as much of every one.
pub fn is_mask_of(text: &str, secret: &str) -> bool {
    text == mask(secret) || text == masked_by(secret, SHOWN)
}

/// Whether a text looks like a mask. Whoever sends one has copied an answer: it is not stored as if it were a secret.
pub fn looks_masked(text: &str) -> bool {
    let (head, tail) = SHOWN;
    text.split_once('…').is_some_and(|(first, last)| {
        let (first, last) = (first.chars().count(), last.chars().count());
        let shown = first + last;
        let is_whole = first == shown * head / (head + tail) && shown <= head + tail;
        is_whole && (shown == 0 || shown >= MIN_SHOWN / 4)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> SecretString {
        SecretString::from(text.repeat(8))
    }

    fn place<'a>(row: &'a Uuid, column: &'static str) -> CiphertextLocation<'a> {
        CiphertextLocation { table: "things", row, column }
    }

    #[test]
    fn a_secret_is_read_back_only_at_its_own_place() {
        let ring = Keyring::new(&secret("first"), None).unwrap();
        let (row, other) = (Uuid::now_v7(), Uuid::now_v7());
        let sealed = ring.encrypt(place(&row, "token"), b"hello").unwrap();
        assert_eq!(ring.decrypt(place(&row, "token"), &sealed).unwrap(), b"hello");
        assert_eq!(ring.decrypt(place(&other, "token"), &sealed), Err(SecretError::Damaged));
        assert_eq!(ring.decrypt(place(&row, "other"), &sealed), Err(SecretError::Damaged));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(ring.decrypt(place(&row, "token"), &changed).is_err());
            assert!(ring.decrypt(place(&row, "token"), &sealed[..at]).is_err());
        }
    }

    #[test]
    fn after_a_rotation_old_ciphertexts_still_read_and_without_the_old_key_they_do_not() {
        let row = Uuid::now_v7();
        let old =
            Keyring::new(&secret("first"), None).unwrap().encrypt(place(&row, "token"), b"hello").unwrap();
        let rotated = Keyring::new(&secret("other"), Some(&secret("first"))).unwrap();
        assert_eq!(rotated.decrypt(place(&row, "token"), &old).unwrap(), b"hello");
        let later = Keyring::new(&secret("other"), None).unwrap();
        assert_eq!(later.decrypt(place(&row, "token"), &old), Err(SecretError::UnknownKey));
        assert_eq!(rotated.jwt_keys().count(), 2);
    }

    #[test]
    fn what_is_encrypted_anew_needs_the_old_key_no_more() {
        let row = Uuid::now_v7();
        let old = Keyring::new(&secret("first"), None).unwrap();
        let both = Keyring::new(&secret("other"), Some(&secret("first"))).unwrap();
        let later = Keyring::new(&secret("other"), None).unwrap();
        let sealed = old.encrypt(place(&row, "token"), b"hello").unwrap();
        assert!(sealed.starts_with(&old.head()) && !sealed.starts_with(&both.head()));
        let anew = both.encrypt_anew(place(&row, "token"), &sealed).unwrap();
        assert!(anew.starts_with(&both.head()));
        assert_eq!(later.decrypt(place(&row, "token"), &anew).unwrap(), b"hello");
        assert_eq!(both.encrypt_anew(place(&row, "other"), &sealed), Err(SecretError::Damaged));
        assert_eq!(later.encrypt_anew(place(&row, "token"), &sealed), Err(SecretError::UnknownKey));
        assert!(both.has_previous() && !later.has_previous());
    }

    #[test]
    fn a_fingerprint_is_of_its_bytes_and_its_key() {
        let ring = |text| Keyring::new(&secret(text), None).unwrap();
        let print = ring("first").fingerprint(b"192.0.2.1");
        assert_eq!(ring("first").fingerprint(b"192.0.2.1"), print);
        assert_ne!(ring("first").fingerprint(b"192.0.2.2"), print);
        assert_ne!(ring("other").fingerprint(b"192.0.2.1"), print);
        assert_ne!(sha256(b"192.0.2.1"), print);
    }

    #[test]
    fn digits_are_read_back_as_bytes() {
        assert_eq!(unhex(&hex(b"\x00\x7f\xff")).unwrap(), b"\x00\x7f\xff");
        for text in ["0", "0g", "é", "+1"] {
            assert_eq!(unhex(text), None, "{text}");
        }
    }

    #[test]
    fn a_short_secret_is_refused() {
        assert!(matches!(Keyring::new(&SecretString::from("short"), None), Err(SecretError::TooShort)));
    }

    #[test]
    fn a_mask_shows_a_quarter_of_a_secret_at_most_and_nothing_of_a_short_one() {
        assert_eq!(mask("sk-12345678901234567890f3a9"), "sk…f3a9");
        assert_eq!(mask("sk-123456789012345678901f3a9"), "sk-…f3a9");
        assert_eq!(mask("sk-12345f3a9"), "s…a9");
        assert_eq!(mask("hunter2"), "…");
        for length in 0..200 {
            let secret = "é".repeat(length);
            let mask = mask(&secret);
            let shown = mask.chars().count() - 1;
            assert!(shown <= 7 && shown * 4 <= length, "{length}: {mask}");
            assert!(looks_masked(&mask) && is_mask_of(&mask, &secret), "{length}: {mask}");
        }
    }

    #[test]
    fn a_mask_of_an_earlier_version_stands_for_its_secret_too() {
        let secret = "sk-12345f3a9";
        assert!(is_mask_of("sk-…f3a9", secret) && looks_masked("sk-…f3a9"));
        for other in ["sk-…f3a8", "…", secret, "", "s…f3a9"] {
            assert!(!is_mask_of(other, secret), "{other}");
        }
        assert!(is_mask_of("…", "hunter2") && !is_mask_of("hun…ter2", "hunter2"));
        for text in ["", "sk-12345f3a9", "abcd…efgh", "a…b", "abc…", "…defg"] {
            assert!(!looks_masked(text), "{text}");
        }
    }
}
