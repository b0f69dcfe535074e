//! Collections: named sets of documents.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{AgentCollectionId, AgentId, CollectionId},
    model::{
        Json,
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

/// What a document says, and of the rest what the first collection says that says something of it.
pub fn apply_defaults(
    collections: &[Collection],
    splitter: Option<SplitterConfig>,
    mut metadata: Option<Map<String, Value>>,
) -> (Option<SplitterConfig>, Option<Map<String, Value>>) {
    let defaults = || collections.iter().filter_map(|collection| collection.defaults.as_ref());
    let splitter = splitter.or_else(|| defaults().find_map(|Json(defaults)| defaults.splitter.clone()));
    for Json(CollectionDefaults { metadata: values, language, .. }) in defaults() {
        for (key, value) in values.iter().flatten() {
            metadata.get_or_insert_default().entry(key.as_str()).or_insert_with(|| value.clone());
        }
        if let Some(language) = language {
            let language = || Value::from(language.as_str());
            metadata.get_or_insert_default().entry("language").or_insert_with(language);
        }
    }
    (splitter, metadata)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ids::UserId, model::document::SplitterType};

    fn splitter(chunk_size: u32) -> SplitterConfig {
        SplitterConfig { r#type: SplitterType::Token, chunk_size, chunk_overlap: 0, given: None }
    }

    fn object(value: &Value) -> Option<Map<String, Value>> {
        value.as_object().cloned()
    }

    fn collection(splitter: Option<SplitterConfig>, metadata: &Value, language: Option<&str>) -> Collection {
        let user = UserId::generate();
        let language = language.map(str::to_owned);
        Collection {
            id: CollectionId::generate(),
            owner: RowOwner::new(user.into(), user),
            name: "set".to_owned(),
            description: String::new(),
            defaults: Some(Json(CollectionDefaults { splitter, metadata: object(metadata), language })),
            metadata: None,
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
            documents: 0,
        }
    }

    #[test]
    fn what_a_document_says_itself_stays() {
        let set = [collection(Some(splitter(100)), &json!({"team": "law", "year": 2026}), Some("de"))];
        let own = json!({"team": null, "language": "fr"});
        let (cut, metadata) = apply_defaults(&set, Some(splitter(50)), object(&own));
        assert_eq!(cut, Some(splitter(50)));
        assert_eq!(metadata, object(&json!({"team": null, "language": "fr", "year": 2026})));
    }

    #[test]
    fn what_it_does_not_say_is_what_the_first_collection_says_that_does() {
        let sets = [
            Collection { defaults: None, ..collection(None, &Value::Null, None) },
            collection(None, &json!({"team": "law"}), None),
            collection(Some(splitter(100)), &json!({"team": "sales", "year": 2026}), Some("de")),
            collection(Some(splitter(200)), &json!({"language": "en"}), Some("fr")),
        ];
        let (cut, metadata) = apply_defaults(&sets, None, None);
        assert_eq!(cut, Some(splitter(100)));
        assert_eq!(metadata, object(&json!({"team": "law", "year": 2026, "language": "de"})));
        let (cut, metadata) = apply_defaults(&sets[3..], None, None);
        assert_eq!(cut, Some(splitter(200)));
        assert_eq!(metadata, object(&json!({"language": "en"})), "what the metadata says comes first");
    }

    #[test]
    fn collections_that_say_nothing_give_nothing() {
        let nothing = collection(None, &Value::Null, None);
        assert_eq!(apply_defaults(&[], None, None), (None, None));
        assert_eq!(apply_defaults(&[nothing], None, object(&json!({}))), (None, object(&json!({}))));
    }
}
