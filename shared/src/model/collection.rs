//! Collections: named sets of documents.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    db::Json,
    ids::{AgentCollectionId, AgentId, CollectionId},
    model::{
        document::{Document, SplitterConfig},
        job::JobState,
        workspace::RowOwner,
    },
};

/// What a document gets that is made in a collection and says nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectionDefaults {
    /// How it is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub splitter: Option<SplitterConfig>,
    /// Values of its metadata, each unless the document has one of that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The ISO 639-1 code of its passages' language, which is found out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// A collection.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Collection {
    /// Its id.
    pub id: CollectionId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// What it is called.
    pub name: String,
    /// Anything that is said of it.
    pub description: String,
    /// What its new documents get.
    pub defaults: Option<Json<CollectionDefaults>>,
    /// What a client keeps with it.
    pub metadata: Option<Json<Map<String, Value>>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// How many documents are in it.
    #[sqlx(default)]
    pub documents: i64,
}

/// A document as a file of a collection.
#[derive(Clone, Debug, FromRow)]
pub struct CollectionFile {
    /// The document.
    #[sqlx(flatten)]
    pub document: Document,
    /// Bytes of its passages and their vectors; 0 until they are searchable.
    pub indexed_bytes: i64,
}

/// Where the documents of a collection, or of a batch, stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionFileCounts {
    /// Their ingestion waits or goes on.
    pub in_progress: i64,
    /// Their ingestion ended well.
    pub completed: i64,
    /// Their ingestion ended badly.
    pub failed: i64,
    /// Their ingestion was stopped.
    pub cancelled: i64,
    /// Bytes of their passages and the vectors of these.
    pub indexed_bytes: i64,
}

impl CollectionFileCounts {
    /// Counts documents whose jobs are in one state.
    pub fn add(&mut self, state: JobState, documents: i64, indexed_bytes: i64) {
        let count = match state {
            JobState::Queued | JobState::Running => &mut self.in_progress,
            JobState::Done => &mut self.completed,
            JobState::Dead => &mut self.failed,
            JobState::Cancelled => &mut self.cancelled,
        };
        *count += documents;
        self.indexed_bytes += indexed_bytes;
    }

    /// All of them.
    pub fn total(&self) -> i64 {
        self.in_progress + self.completed + self.failed + self.cancelled
    }
}

/// A link between an agent and a collection, of which the agent answers from every document, later ones included.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct AgentCollection {
    /// Its id.
    pub id: AgentCollectionId,
    /// The agent.
    pub agent_id: AgentId,
    /// The collection.
    pub collection_id: CollectionId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// When they were linked.
    pub created_at: Timestamp,
}
