//! Webhooks: where events are told to.

use std::{fmt, iter};

use secrecy::ExposeSecret;
use serde::{Deserialize, Deserializer, Serialize};
use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{UserId, WebhookDeliveryId, WebhookId, WorkspaceId},
    model::{Json, text_enum, workspace::RowOwner},
    secrets::{CiphertextLocation, Keyring, SecretError},
};

text_enum! {
    /// Something that is told.
    WebhookEvent {
        /// A document can be searched as it is now.
        DocumentSucceeded => "document.succeeded",
        /// The ingestion of a document failed, and is not tried again by itself.
        DocumentFailed => "document.failed",
        /// A document was deleted.
        DocumentDeleted => "document.deleted",
        /// A question to an agent was not answered, because its run failed.
        AgentFailed => "agent.failed",
        /// A run of a source came to its end, or asks whether so much is to be deleted.
        SourceFinished => "source.finished",
        /// A run of an evaluation came to its end, well or not, or was stopped.
        EvaluationFinished => "evaluation.finished",
        /// Somebody tries whether a webhook works.
        Test => "webhook.test",
    }
}

impl WebhookEvent {
    /// Those that one can ask for: a test is told whenever somebody makes one.
    pub const CHOICES: [Self; 6] = [
        Self::DocumentSucceeded,
        Self::DocumentFailed,
        Self::DocumentDeleted,
        Self::AgentFailed,
        Self::SourceFinished,
        Self::EvaluationFinished,
    ];
}

text_enum! {
    /// Where a delivery stands.
    DeliveryState {
        /// It is tried, again if need be.
        Pending => "pending",
        /// The receiver has taken it.
        Delivered => "delivered",
        /// It was given up.
        Failed => "failed",
    }
}

/// What events are signed with: secrets in the form of Standard Webhooks, `whsec_` and base64.
#[derive(Clone, Serialize, Deserialize)]
pub struct WebhookSecrets {
    /// The secret.
    current: String,
    /// Those before it, the newest first, each with until when events are signed with it too, in seconds since 1970: receivers change theirs
    /// meanwhile.
    #[serde(default, alias = "previous", deserialize_with = "stored_earlier")]
    earlier: Vec<(String, i64)>,
}

/// Earlier secrets, as they are stored.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredEarlier {
    All(Vec<(String, i64)>),
    /// As `previous`, of which there was one at most before several could count.
    One(String, i64),
}

fn stored_earlier<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, i64)>, D::Error> {
    Ok(match Option::deserialize(deserializer)? {
        Some(StoredEarlier::All(all)) => all,
        Some(StoredEarlier::One(secret, until)) => vec![(secret, until)],
        None => Vec::new(),
    })
}

/// Secrets before the current one that events are signed with, at most.
const MOST_EARLIER: usize = 10;

impl WebhookSecrets {
    /// A first secret.
    pub fn new(secret: String) -> Self {
        Self { current: secret, earlier: Vec::new() }
    }

    /// The same with another secret. The one so far counts until then, and those before it for as long as they did.
    #[must_use]
    pub fn renewed(self, secret: String, now: Timestamp, until: Timestamp) -> Self {
        let before = self.earlier.into_iter().filter(|(_, until)| *until > now.as_secs());
        let earlier = iter::once((self.current, until.as_secs())).chain(before);
        Self { current: secret, earlier: earlier.take(MOST_EARLIER).collect() }
    }

    /// The secrets that events are signed with, the newest first.
    pub fn in_force(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        let before = self.earlier.iter().filter(move |(_, until)| *until > now.as_secs());
        iter::once(self.current.as_str()).chain(before.map(|(secret, _)| secret.as_str()))
    }
}

/// Without what it holds.
impl fmt::Debug for WebhookSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSecrets").finish_non_exhaustive()
    }
}

/// Where a webhook is, as it is stored: sealed, since the path or the query of an address may be a key. In a row that was last changed
/// before addresses were sealed it is plain; what is plain counts, since a process of an earlier build may have written it beside what is sealed.
#[derive(Clone, PartialEq, Eq, FromRow)]
pub struct WebhookAddress {
    /// The address; empty when it is sealed.
    pub url: String,
    /// The address, sealed, unless it is plain.
    pub url_sealed: Option<Vec<u8>>,
}

impl WebhookAddress {
    /// The address of a webhook, sealed.
    pub fn seal(keyring: &Keyring, webhook: WebhookId, url: &str) -> Result<Self, SecretError> {
        let place = CiphertextLocation::webhook_url(webhook.as_uuid());
        let sealed = keyring.encrypt(place, url.as_bytes())?;
        Ok(Self { url: String::new(), url_sealed: Some(sealed) })
    }

    /// The same, sealed if it was not.
    pub fn sealed(self, keyring: &Keyring, webhook: WebhookId) -> Result<Self, SecretError> {
        if self.url.is_empty() { Ok(self) } else { Self::seal(keyring, webhook, &self.url) }
    }

    /// The address itself.
    pub fn open(&self, keyring: &Keyring, webhook: WebhookId) -> Result<String, SecretError> {
        let sealed = self.url_sealed.as_ref().filter(|_| self.url.is_empty());
        let Some(sealed) = sealed else { return Ok(self.url.clone()) };
        let place = CiphertextLocation::webhook_url(webhook.as_uuid());
        Ok(keyring.decrypt_text(place, sealed)?.expose_secret().to_owned())
    }
}

/// Without what it holds.
impl fmt::Debug for WebhookAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookAddress").finish_non_exhaustive()
    }
}

/// Where a workspace's events are told to.
#[derive(Clone, Debug, FromRow)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// The receiver.
    #[sqlx(flatten)]
    pub address: WebhookAddress,
    /// What is told to it.
    pub events: Json<Vec<WebhookEvent>>,
    /// Whether anything is told at all.
    pub active: bool,
    /// [`WebhookSecrets`] as JSON, sealed.
    pub secret_sealed: Vec<u8>,
    /// Why it was switched off by itself.
    pub disabled: Option<String>,
    /// Who last answered for it, by pointing it to another address or by switching it on; none as long as that is who made it.
    pub vouched_by: Option<UserId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// An event on its way to a receiver.
#[derive(Clone, Debug, FromRow)]
pub struct WebhookDelivery {
    /// Its id, by which receivers know it again.
    pub id: WebhookDeliveryId,
    /// The workspace that it is of.
    pub workspace_id: WorkspaceId,
    /// Where it goes.
    pub webhook_id: WebhookId,
    /// What it tells.
    pub event: WebhookEvent,
    /// What is sent, byte for byte.
    pub body: String,
    /// Where it stands.
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: i64,
    /// When it is tried next.
    pub next_at: Timestamp,
    /// The status of the last answer.
    pub last_status: Option<i64>,
    /// What went wrong the last time.
    pub last_error: Option<String>,
    /// When the event happened.
    pub created_at: Timestamp,
    /// When it was taken, or given up.
    pub ended_at: Option<Timestamp>,
}

impl WebhookDelivery {
    /// When it last came further: was to be told, or had ended.
    pub fn updated_at(&self) -> Timestamp {
        self.ended_at.unwrap_or(self.created_at)
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    #[test]
    fn an_address_is_sealed_for_its_webhook_and_one_from_before_is_read_too() {
        const URL: &str = "https://a.example/told?key=secret";
        const MOVED: &str = "https://b.example";
        let keyring = Keyring::new(&SecretString::from("k".repeat(32)), None).unwrap();
        let (id, other) = (WebhookId::generate(), WebhookId::generate());
        let plain = WebhookAddress { url: URL.to_owned(), url_sealed: None };
        assert_eq!(plain.open(&keyring, id).unwrap(), URL);
        assert!(!format!("{plain:?}").contains("secret"));
        let sealed = plain.sealed(&keyring, id).unwrap();
        assert_eq!((sealed.url.as_str(), sealed.open(&keyring, id).unwrap().as_str()), ("", URL));
        assert!(sealed.open(&keyring, other).is_err(), "it was moved to another row");
        assert_eq!(sealed.clone().sealed(&keyring, id).unwrap(), sealed, "once is enough");
        // An earlier build knows of no column but the plain one, and leaves the other as it was.
        let moved = WebhookAddress { url: MOVED.to_owned(), ..sealed };
        assert_eq!(moved.open(&keyring, id).unwrap(), MOVED);
        let moved = moved.sealed(&keyring, id).unwrap();
        assert_eq!((moved.url.as_str(), moved.open(&keyring, id).unwrap().as_str()), ("", MOVED));
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn in_force(secrets: &WebhookSecrets, seconds: i64) -> Vec<&str> {
        secrets.in_force(at(seconds)).collect()
    }

    #[test]
    fn every_earlier_secret_counts_for_as_long_as_it_was_promised() {
        let renewed = |secrets: WebhookSecrets, secret: &str, seconds: i64| {
            secrets.renewed(secret.to_owned(), at(seconds), at(seconds + 100))
        };
        let secrets = renewed(WebhookSecrets::new("a".to_owned()), "b", 0);
        let secrets = renewed(secrets, "c", 50);
        assert_eq!(in_force(&secrets, 99), ["c", "b", "a"]);
        assert_eq!(in_force(&secrets, 100), ["c", "b"]);
        assert_eq!(in_force(&secrets, 150), ["c"]);
        let secrets = renewed(secrets, "d", 120);
        assert_eq!(in_force(&secrets, 0), ["d", "c", "b"], "what is over is not kept");
    }

    #[test]
    fn what_was_stored_while_one_earlier_secret_counted_is_read() {
        for (stored, counting) in [
            (r#"{"current":"b","previous":["a",100]}"#, &["b", "a"][..]),
            (r#"{"current":"b","previous":null}"#, &["b"]),
            (r#"{"current":"b"}"#, &["b"]),
            (r#"{"current":"c","earlier":[["b",100],["a",100]]}"#, &["c", "b", "a"]),
            (r#"{"current":"a","earlier":[]}"#, &["a"]),
        ] {
            let read: WebhookSecrets = serde_json::from_str(stored).unwrap();
            assert_eq!(in_force(&read, 99), counting, "{stored}");
            let again: WebhookSecrets = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
            assert_eq!(in_force(&again, 99), counting, "{stored}");
        }
    }

    #[test]
    fn no_number_of_new_secrets_makes_an_event_long() {
        let many = (0..100).fold(WebhookSecrets::new("first".to_owned()), |secrets, n| {
            secrets.renewed(n.to_string(), at(0), at(100))
        });
        assert_eq!(in_force(&many, 0).len(), MOST_EARLIER + 1);
        assert_eq!(in_force(&many, 0)[..2], ["99", "98"]);
    }
}
