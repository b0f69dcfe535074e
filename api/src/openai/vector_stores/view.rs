//! Collections and their documents as OpenAI's clients see vector stores and their files.

use lectern_shared::{
    ids::{CollectionId, DocumentId, FileBatchId},
    model::{
        Json,
        collection::{CollectionFile, CollectionFileCounts},
        document::{Document, SplitterConfig, SplitterType},
        job::{IngestionError, JobState},
    },
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::super::{entries::shown_attributes, files::paging::ListedObject};
use crate::services::{
    collections::{CollectionWithFiles, FileBatch},
    documents::splitter::USUAL,
};

/// A vector store.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiVectorStore)]
pub(super) struct VectorStoreObject {
    /// Its id, which is that of its collection.
    #[schema(value_type = String)]
    pub(super) id: CollectionId,
    /// Always `vector_store`.
    object: &'static str,
    /// When it was made, in seconds since 1970.
    created_at: i64,
    /// What it is called.
    name: String,
    /// Bytes of its files' passages and their vectors.
    usage_bytes: i64,
    /// Where its files stand.
    file_counts: FileCountsView,
    /// `in_progress` while any file is, else `completed`.
    #[schema(pattern = "^(in_progress|completed)$")]
    status: &'static str,
    /// Always null: it is kept until it is deleted.
    #[schema(value_type = Option<Object>, required = true)]
    expires_after: Option<Value>,
    /// Always null.
    #[schema(required = true)]
    expires_at: Option<i64>,
    /// When it was last changed, in seconds since 1970.
    last_active_at: i64,
    /// Texts of the client's own.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
}

/// Where files stand.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = OpenAiFileCounts)]
struct FileCountsView {
    /// They wait to be ingested, or are.
    in_progress: i64,
    /// They can be searched.
    completed: i64,
    /// They could not be ingested.
    failed: i64,
    /// Their ingestion was stopped.
    cancelled: i64,
    /// All of them.
    total: i64,
}

impl From<CollectionFileCounts> for FileCountsView {
    fn from(counts: CollectionFileCounts) -> Self {
        let CollectionFileCounts { in_progress, completed, failed, cancelled, .. } = counts;
        Self { in_progress, completed, failed, cancelled, total: counts.total() }
    }
}

impl From<CollectionWithFiles> for VectorStoreObject {
    fn from(CollectionWithFiles { collection, counts }: CollectionWithFiles) -> Self {
        Self {
            id: collection.id,
            object: "vector_store",
            created_at: collection.created_at.as_secs(),
            name: collection.name,
            usage_bytes: counts.indexed_bytes,
            file_counts: counts.into(),
            status: if counts.in_progress > 0 { IN_PROGRESS } else { "completed" },
            expires_after: None,
            expires_at: None,
            last_active_at: collection.updated_at.as_secs(),
            metadata: collection.metadata.map(|Json(metadata)| metadata).unwrap_or_default(),
        }
    }
}

impl ListedObject for VectorStoreObject {
    fn object_id(&self) -> String {
        self.id.to_string()
    }
}

/// The status of what goes on. Clients wait as long as they see it.
pub(super) const IN_PROGRESS: &str = "in_progress";

/// A file of a vector store.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiVectorStoreFile)]
pub(super) struct StoreFileObject {
    /// The file's id.
    #[schema(value_type = String)]
    id: DocumentId,
    /// Always `vector_store.file`.
    object: &'static str,
    /// Bytes of its passages and their vectors; 0 until it can be searched.
    usage_bytes: i64,
    /// When the file came, in seconds since 1970.
    created_at: i64,
    /// The vector store.
    #[schema(value_type = String)]
    vector_store_id: CollectionId,
    /// Where its ingestion stands.
    #[schema(pattern = "^(in_progress|completed|cancelled|failed)$")]
    status: &'static str,
    /// Why it failed.
    #[schema(required = true)]
    last_error: Option<FileErrorView>,
    /// Those values of its document's metadata that are strings, numbers or booleans.
    #[schema(value_type = Object)]
    attributes: Map<String, Value>,
    /// How it is cut into passages: `static` by tokens, or `other`.
    #[schema(value_type = Object)]
    chunking_strategy: Value,
}

/// Why a file failed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiFileError)]
struct FileErrorView {
    /// A fixed word.
    #[schema(pattern = "^(server_error|unsupported_file|invalid_file)$")]
    code: &'static str,
    /// One sentence.
    message: String,
}

impl StoreFileObject {
    pub(super) fn new(vector_store_id: CollectionId, file: CollectionFile) -> Self {
        let CollectionFile { document, indexed_bytes } = file;
        let Document { id, created_at, metadata, splitter, ingestion, .. } = document;
        let has_failed = ingestion.state == JobState::Dead;
        Self {
            id,
            object: "vector_store.file",
            usage_bytes: indexed_bytes,
            created_at: created_at.as_secs(),
            vector_store_id,
            status: status(ingestion.state),
            last_error: ingestion.last_error.filter(|_| has_failed).map(|Json(error)| error.into()),
            attributes: metadata.map(|Json(metadata)| shown_attributes(metadata)).unwrap_or_default(),
            chunking_strategy: strategy(splitter.as_ref().map_or(&USUAL, |Json(splitter)| splitter)),
        }
    }

    /// Whether its ingestion goes on.
    pub(super) fn is_in_progress(&self) -> bool {
        self.status == IN_PROGRESS
    }
}

impl ListedObject for StoreFileObject {
    fn object_id(&self) -> String {
        self.id.to_string()
    }
}

/// The four words that clients know.
fn status(state: JobState) -> &'static str {
    match state {
        JobState::Queued | JobState::Running => IN_PROGRESS,
        JobState::Done => "completed",
        JobState::Dead => "failed",
        JobState::Cancelled => "cancelled",
    }
}

/// The states of jobs that a word of [`status`] stands for, two of them or the same twice.
pub(super) fn states(status: &str) -> Option<(JobState, JobState)> {
    match status {
        IN_PROGRESS => Some((JobState::Queued, JobState::Running)),
        "completed" => Some((JobState::Done, JobState::Done)),
        "failed" => Some((JobState::Dead, JobState::Dead)),
        "cancelled" => Some((JobState::Cancelled, JobState::Cancelled)),
        _ => None,
    }
}

impl From<IngestionError> for FileErrorView {
    fn from(error: IngestionError) -> Self {
        let code = match error.code.as_str() {
            code if code.starts_with("unsupported") => "unsupported_file",
            "internal" => "server_error",
            _ if error.retryable => "server_error",
            _ => "invalid_file",
        };
        Self { code, message: error.message }
    }
}

fn strategy(splitter: &SplitterConfig) -> Value {
    match splitter.r#type {
        SplitterType::Token => json!({"type": "static", "static": {
            "max_chunk_size_tokens": splitter.chunk_size,
            "chunk_overlap_tokens": splitter.chunk_overlap,
        }}),
        SplitterType::Recursive | SplitterType::Character | SplitterType::Markdown => {
            json!({"type": "other"})
        }
    }
}

/// Files that were put into a vector store at once.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiFileBatch)]
pub(super) struct FileBatchObject {
    /// Its id.
    #[schema(value_type = String)]
    id: FileBatchId,
    /// Always `vector_store.files_batch`.
    object: &'static str,
    /// When they were put there, in seconds since 1970.
    created_at: u64,
    /// The vector store.
    #[schema(value_type = String)]
    vector_store_id: CollectionId,
    /// `in_progress` while any of them is; then `cancelled` when one was stopped, `failed` when all failed, else `completed`.
    #[schema(pattern = "^(in_progress|completed|cancelled|failed)$")]
    status: &'static str,
    /// Where they stand. One that another batch put there again is that one's.
    file_counts: FileCountsView,
}

impl From<FileBatch> for FileBatchObject {
    fn from(FileBatch { id, collection, counts }: FileBatch) -> Self {
        let created_at = id.as_uuid().get_timestamp().map_or(0, |time| time.to_unix().0);
        Self {
            id,
            object: "vector_store.files_batch",
            created_at,
            vector_store_id: collection,
            status: batch_status(&counts),
            file_counts: counts.into(),
        }
    }
}

impl FileBatchObject {
    /// Whether any ingestion goes on.
    pub(super) fn is_in_progress(&self) -> bool {
        self.status == IN_PROGRESS
    }
}

fn batch_status(counts: &CollectionFileCounts) -> &'static str {
    if counts.in_progress > 0 {
        IN_PROGRESS
    } else if counts.cancelled > 0 {
        "cancelled"
    } else if counts.failed > 0 && counts.completed == 0 {
        "failed"
    } else {
        "completed"
    }
}

/// That something is gone.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiDeleted)]
pub(super) struct DeletedObject {
    /// The id that it had.
    pub(super) id: String,
    /// What it was.
    pub(super) object: &'static str,
    /// Always true.
    pub(super) deleted: bool,
}

pub(super) const STORE_ID: &str = "019a8f3e-6c41-7a90-b2d7-3e5f7a9b1c2d";
pub(super) const FILE_ID: &str = "019a8f44-7d20-7b61-a0c5-2f8e6d914b37";

pub(super) fn store_example() -> Value {
    json!({
        "id": STORE_ID,
        "object": "vector_store",
        "created_at": 1_769_846_520,
        "name": "Handbooks",
        "usage_bytes": 48_120,
        "file_counts": {"in_progress": 0, "completed": 1, "failed": 0, "cancelled": 0, "total": 1},
        "status": "completed",
        "expires_after": null,
        "expires_at": null,
        "last_active_at": 1_769_846_520,
        "metadata": {"team": "people"},
    })
}

pub(super) fn file_example() -> Value {
    json!({
        "id": FILE_ID,
        "object": "vector_store.file",
        "usage_bytes": 48_120,
        "created_at": 1_769_846_700,
        "vector_store_id": STORE_ID,
        "status": "completed",
        "last_error": null,
        "attributes": {"year": 2026},
        "chunking_strategy": {
            "type": "static",
            "static": {"max_chunk_size_tokens": 400, "chunk_overlap_tokens": 60},
        },
    })
}

pub(super) fn batch_example() -> Value {
    json!({
        "id": "019a8f45-03b1-7d9c-8a47-5c6d7e8f9a0b",
        "object": "vector_store.files_batch",
        "created_at": 1_769_846_760,
        "vector_store_id": STORE_ID,
        "status": "in_progress",
        "file_counts": {"in_progress": 1, "completed": 1, "failed": 0, "cancelled": 0, "total": 2},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::entries::shown_attributes;

    #[test]
    fn every_state_has_one_of_the_words_that_clients_know_and_is_found_by_it() {
        for state in JobState::ALL {
            let (one, other) = states(status(*state)).unwrap();
            assert!([one, other].contains(state), "{state}");
        }
        assert_eq!(states("expired"), None);
    }

    #[test]
    fn a_batch_is_in_progress_until_every_file_has_ended() {
        for ([in_progress, completed, failed, cancelled], status) in [
            ([1, 1, 1, 1], "in_progress"),
            ([0, 2, 1, 0], "completed"),
            ([0, 0, 2, 0], "failed"),
            ([0, 1, 0, 1], "cancelled"),
            ([0, 0, 0, 0], "completed"),
        ] {
            let counts = CollectionFileCounts { in_progress, completed, failed, cancelled, indexed_bytes: 0 };
            let batch =
                FileBatch { id: FileBatchId::generate(), collection: CollectionId::generate(), counts };
            let shown = json!(FileBatchObject::from(batch));
            assert_eq!(shown["status"], status);
            assert_eq!(shown["file_counts"]["total"], in_progress + completed + failed + cancelled);
            assert!(shown["created_at"].as_u64() > Some(1_700_000_000), "{shown}");
        }
    }

    #[test]
    fn a_failure_has_one_of_the_codes_that_clients_know() {
        for (code, retryable, shown) in [
            ("unsupported_content_type", false, "unsupported_file"),
            ("damaged", false, "invalid_file"),
            ("interrupted", true, "server_error"),
            ("internal", false, "server_error"),
        ] {
            let error = IngestionError { code: code.to_owned(), message: "m".to_owned(), retryable };
            assert_eq!(FileErrorView::from(error).code, shown);
        }
    }

    #[test]
    fn attributes_are_what_clients_can_read_of_the_metadata() {
        let metadata = json!({"a": "x", "b": 1.5, "c": true, "d": null, "e": ["x"], "f": {"g": 1}});
        let shown = metadata.as_object().cloned().map(shown_attributes);
        assert_eq!(shown.map(Value::from), Some(json!({"a": "x", "b": 1.5, "c": true})));
    }

    #[test]
    fn only_cutting_by_tokens_has_sizes_that_clients_know() {
        let shown = strategy(&USUAL);
        assert_eq!(shown["static"], json!({"max_chunk_size_tokens": 400, "chunk_overlap_tokens": 60}));
        let markdown = SplitterConfig { r#type: SplitterType::Markdown, ..USUAL.clone() };
        assert_eq!(strategy(&markdown), json!({"type": "other"}));
    }
}
