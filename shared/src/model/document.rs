//! Documents, and what the index knows of them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::FromRow;
use uuid::Uuid;

use crate::{
    clock::Timestamp,
    ids::{ChunkId, DocumentId, GenerationId, WorkspaceId},
    model::{
        Json,
        job::{IngestionError, IngestionSummary, IngestionWarning, JobState, SourceInfo},
        language::Language,
        page::PdfEngineName,
        place::SourceSpan,
        text_enum,
        workspace::{RowOwner, WorkspaceQuotas},
    },
};

pub use super::document_type::DocumentType;

text_enum! {
    /// How text is cut into passages.
    SplitterType {
        /// At the largest semantic unit that fits, sizes in characters.
        Recursive => "recursive",
        /// The same, under the name that other services use.
        Character => "character",
        /// At the largest semantic unit that fits, sizes in tokens.
        Token => "token",
        /// Along the structure of a Markdown text, sizes in characters.
        Markdown => "markdown",
    }
}

/// How a document is to be cut into passages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitterConfig {
    /// The way of cutting, and with it the unit of both sizes.
    pub r#type: SplitterType,
    /// The most that a passage holds.
    pub chunk_size: u32,
    /// How much of one passage's end the next one repeats; less than the size.
    pub chunk_overlap: u32,
    /// The name that the way of cutting was given by, where it is an old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<String>,
}

/// The addresses that a document's `url` holds: several of a `URL` document, parted by commas, blanks or line breaks; one of
/// any other. These part only where another address begins after them, so that an address may hold commas itself.
pub fn addresses(r#type: DocumentType, url: &str) -> Vec<&str> {
    const SEPARATORS: [char; 5] = [',', ' ', '\t', '\r', '\n'];
    let url = url.trim();
    if r#type != DocumentType::Url {
        return vec![url];
    }
    let begins = |rest: &str| {
        ["http://", "https://"]
            .iter()
            .any(|scheme| rest.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
    };
    let mut addresses = Vec::new();
    let mut rest = url;
    let mut from = 0;
    while let Some(at) = rest.get(from..).and_then(|tail| tail.find(SEPARATORS)).map(|at| from + at) {
        let (before, after) = rest.split_at(at);
        let after = after.trim_start_matches(SEPARATORS);
        if begins(after) {
            addresses.push(before);
            rest = after;
            from = 0;
        } else {
            from = rest.len() - after.len();
        }
    }
    // What ends a list is no part of its last address; alone, an address may end as it likes.
    addresses.push(if addresses.is_empty() { rest } else { rest.trim_end_matches(SEPARATORS) });
    addresses
}

/// Pages to ingest, counted from 1, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRange {
    /// The first page; the source's first when absent.
    pub from: Option<u32>,
    /// The last page; the source's last when absent.
    pub to: Option<u32>,
}

/// What is sent to the source's own origin to be let in.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SourceAuthorization {
    /// `Authorization: Bearer …`.
    Bearer {
        /// The token.
        token: String,
    },
    /// `Authorization: Basic …`.
    Basic {
        /// The workspace's name.
        username: String,
        /// The password.
        password: String,
    },
    /// Any headers.
    Headers {
        /// Name to value.
        headers: std::collections::BTreeMap<String, String>,
    },
}

/// Without what it holds.
impl fmt::Debug for SourceAuthorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bearer { .. } => "Bearer",
            Self::Basic { .. } => "Basic",
            Self::Headers { .. } => "Headers",
        })
    }
}

/// What is searchable of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchIndexInfo {
    /// Always `READY`: what is not searchable has no such object.
    pub status: String,
    /// Passages.
    pub chunks: u64,
    /// Pages read, for sources that have pages.
    pub pages: Option<u32>,
    /// What read it; none for what is no PDF, and for what was read before this was noted.
    #[serde(default)]
    pub engine: Option<PdfEngineName>,
    /// Tokens over all passages.
    pub tokens: u64,
    /// The model of the vectors; none when it is found by words only.
    pub embedding_model: Option<String>,
    /// The vectors' length.
    pub dimensions: Option<u32>,
    /// SHA-256 of the extracted text, in hexadecimal.
    pub content_hash: String,
    /// The generation that answers.
    pub generation: GenerationId,
    /// When it became searchable, as the interface writes times.
    pub indexed_at: String,
}

/// A document as its owner sees it, without its inline content.
#[derive(Clone, Debug, FromRow)]
pub struct Document {
    /// Its id.
    pub id: DocumentId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// The kind of source.
    pub r#type: DocumentType,
    /// How its owner calls it.
    pub name: String,
    /// Anything its owner wants to say of it.
    pub description: String,
    /// Where the source is; empty for inline content and uploads.
    pub url: String,
    /// Whether something secret opens the source.
    pub has_authorization: bool,
    /// The owner's own values, which searches filter on.
    pub metadata: Option<Json<Map<String, Value>>>,
    /// How to cut it.
    pub splitter: Option<Json<SplitterConfig>>,
    /// First page to ingest.
    pub from_page: Option<i64>,
    /// Last page to ingest.
    pub to_page: Option<i64>,
    /// Raised whenever the document must be ingested again.
    pub revision: i64,
    /// What the index holds.
    pub search_index: Option<Json<SearchIndexInfo>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its owner last changed it.
    pub updated_at: Timestamp,
    /// How its ingestion goes.
    #[sqlx(flatten)]
    pub ingestion: IngestionSummary,
}

/// What an ingestion needs to know of a document.
#[derive(Clone, Debug, FromRow)]
pub struct DocumentSource {
    /// The document.
    pub id: DocumentId,
    /// Its owner.
    pub workspace_id: WorkspaceId,
    /// The kind of source.
    pub r#type: DocumentType,
    /// The document's name, which is searched too.
    pub name: String,
    /// Where the source is; empty when the content is inline.
    pub url: String,
    /// Inline content.
    pub content: Option<String>,
    /// Where an upload is in the blob store.
    pub blob_key: Option<String>,
    /// How an upload's file was called, without folders; none when it had no usable name.
    pub source_name: Option<String>,
    /// The media type of an upload, as it was told when it came.
    pub source_mime: Option<String>,
    /// How to cut it.
    pub splitter: Option<Json<SplitterConfig>>,
    /// First page to ingest.
    pub from_page: Option<i64>,
    /// Last page to ingest.
    pub to_page: Option<i64>,
    /// [`SourceAuthorization`] as JSON, sealed.
    pub authorization_sealed: Option<Vec<u8>>,
    /// The owner's own values; the language that is wanted of a video may be among them.
    pub metadata: Option<Json<Map<String, Value>>>,
    /// What was read the last time.
    pub source_state: Option<Json<SourceState>>,
    /// What is searchable of it; none when nothing is.
    pub active_index: Option<Json<SearchIndexInfo>>,
    /// What its workspace may hold.
    #[sqlx(default)]
    pub quotas: Option<Json<WorkspaceQuotas>>,
}

/// What was read of a source, and by what it is told whether it has changed since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceState {
    /// A hash of everything besides the source's bytes that the passages depend on.
    pub settings: String,
    /// The entity tag that the server gave it.
    pub etag: Option<String>,
    /// When the server says that it was last changed, as the server wrote it.
    pub last_modified: Option<String>,
    /// SHA-256 of its bytes, in hexadecimal; none when it cannot be compared.
    pub sha256: Option<String>,
    /// What was learnt of it.
    pub source: SourceInfo,
    /// What was gone past.
    pub warnings: Vec<IngestionWarning>,
}

impl DocumentSource {
    /// Bytes that its workspace may store, by its quotas and by what every workspace may.
    pub fn allowed_bytes(&self, everybody: Option<u64>) -> Option<u64> {
        let own = self.quotas.as_ref().and_then(|Json(quotas)| quotas.bytes);
        own.into_iter().chain(everybody).min()
    }
}

/// The file that a document was made of by an upload.
#[derive(Clone, Debug, FromRow)]
pub struct StoredFile {
    /// The kind of source.
    pub r#type: DocumentType,
    /// The document's name.
    pub name: String,
    /// Where it is in the blob store.
    pub blob_key: String,
    /// SHA-256 of it.
    pub source_sha256: Vec<u8>,
    /// Its size in bytes.
    pub source_bytes: i64,
    /// How it was called, without folders; none when it had no usable name.
    pub source_name: Option<String>,
    /// Its media type, as it was told when it came.
    pub source_mime: Option<String>,
}

/// A document as a file in a list of many: nothing of it is long.
#[derive(Clone, Debug, FromRow)]
pub struct DocumentFile {
    /// The document.
    pub id: DocumentId,
    /// The document's name.
    pub name: String,
    /// How its file was called when it was uploaded, if it was.
    pub source_name: Option<String>,
    /// Bytes that are stored of it.
    pub stored_bytes: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// Where its ingestion stands.
    pub state: JobState,
    /// Why that failed.
    pub last_error: Option<Json<IngestionError>>,
}

impl DocumentFile {
    /// How it is called as a file.
    pub fn file_name(&self) -> &str {
        self.source_name.as_deref().unwrap_or(&self.name)
    }
}

/// What a found passage's document is called as a file, and its metadata.
#[derive(Clone, Debug, FromRow)]
pub struct FileLabel {
    /// The document.
    pub id: DocumentId,
    /// The document's name.
    pub name: String,
    /// How its file was called when it was uploaded, if it was.
    pub source_name: Option<String>,
    /// The owner's own values.
    pub metadata: Option<Json<Map<String, Value>>>,
}

/// A document that is like another one.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct DuplicateDocument {
    /// The document.
    pub id: DocumentId,
    /// How its owner calls it.
    pub name: String,
    /// Where its source is; empty for inline content and uploads.
    pub url: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// SHA-256 of its searchable text, in hexadecimal.
    pub content_hash: Option<String>,
    /// SHA-256 of the file that it was made of; none for inline content and what is fetched.
    pub source_sha256: Option<Vec<u8>>,
}

/// A passage of a document.
#[derive(Clone, Debug, FromRow)]
pub struct Chunk {
    /// Its number in its generation, from 0.
    pub ordinal: i64,
    /// Its lasting id.
    pub chunk_id: ChunkId,
    /// The document.
    pub document_id: DocumentId,
    /// Tokens in it.
    pub tokens: i64,
    /// Where it stands.
    pub place: Json<SourceSpan>,
    /// What it says: exactly the slice of the extracted text that its place names.
    pub text: String,
}

/// A document that can be searched now. A process remembers all of a workspace's, so nothing of it is as long as the workspace likes.
#[derive(Clone, Debug, FromRow)]
pub struct ActiveDocument {
    /// The document.
    pub id: DocumentId,
    /// The generation that answers for it.
    pub active_generation: GenerationId,
    /// How many of its passages are in each language, by the language's number.
    pub languages: Json<Box<[(u8, u64)]>>,
    /// What the vectors of its passages mean; none when it has no vectors.
    pub embedding_space: Option<Uuid>,
}

impl ActiveDocument {
    /// The language that most of its passages are in, if that is known.
    pub fn language(&self) -> Option<Language> {
        let most = self.languages.0.iter().max_by_key(|(_, passages)| *passages)?;
        Language::from_code(u32::from(most.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_addresses_are_parted_where_another_one_begins() {
        for (url, parted) in [
            ("https://a.example/1", &["https://a.example/1"][..]),
            ("https://a.example/1,https://b.example", &["https://a.example/1", "https://b.example"]),
            (" https://a.example ,\r\n HTTP://b.example ", &["https://a.example", "HTTP://b.example"]),
            ("https://a.example\nhttps://b.example", &["https://a.example", "https://b.example"]),
            ("https://a.example,,https://b.example,", &["https://a.example", "https://b.example"]),
            ("https://a.example/1,2,3", &["https://a.example/1,2,3"]),
            ("https://a.example/1,", &["https://a.example/1,"]),
            (
                "https://a.example/1,2, https://b.example/é,é",
                &["https://a.example/1,2", "https://b.example/é,é"],
            ),
            ("https://a.example/x?to=https://b.example", &["https://a.example/x?to=https://b.example"]),
            ("https://a.example,ftp://b.example", &["https://a.example,ftp://b.example"]),
            ("", &[""]),
        ] {
            assert_eq!(addresses(DocumentType::Url, url), parted, "{url:?}");
        }
    }

    #[test]
    fn documents_of_other_types_have_one_address() {
        let url = "https://a.example/1,https://b.example";
        assert_eq!(addresses(DocumentType::Pdf, url), [url]);
    }
}
