//! Webhooks: where events are told to.

use std::fmt;

use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{WebhookDeliveryId, WebhookId, WorkspaceId},
    model::{Json, text_enum, workspace::RowOwner},
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
    pub current: String,
    /// The one before it, and until when events are signed with that too, in seconds since 1970: receivers change theirs meanwhile.
    pub previous: Option<(String, i64)>,
}

/// Without what it holds.
impl fmt::Debug for WebhookSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSecrets").finish_non_exhaustive()
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
    pub url: String,
    /// What is told to it.
    pub events: Json<Vec<WebhookEvent>>,
    /// Whether anything is told at all.
    pub active: bool,
    /// [`WebhookSecrets`] as JSON, sealed.
    pub secret_sealed: Vec<u8>,
    /// Why it was switched off by itself.
    pub disabled: Option<String>,
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
