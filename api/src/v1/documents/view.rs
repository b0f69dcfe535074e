//! How documents look from outside.

use lectern_shared::{
    clock::Timestamp,
    ids::{ChunkId, CollectionId, DocumentId, GenerationId, UserId},
    model::{
        document::{Chunk, DocumentType, SearchIndexInfo, SplitterConfig, SplitterType},
        job::{
            IngestionError, IngestionStage, IngestionSummary, IngestionWarning, JobState, SourceInfo,
            StageProgress,
        },
        page::PdfEngineName,
        place::SourceSpan,
    },
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::services::documents::DocumentDetails;

/// A document: a source that is ingested, so that it can be searched and answered from.
#[derive(Serialize, ToSchema)]
#[schema(as = Document)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentView {
    /// Its id.
    #[schema(value_type = String)]
    id: DocumentId,
    /// Its owner's id.
    #[schema(value_type = String)]
    user_id: UserId,
    /// Always empty.
    user: EmptyObject,
    /// The kind of source: `TXT`, `PDF`, `VIDEO`, `CSV` or `URL`.
    #[schema(value_type = String)]
    r#type: DocumentType,
    /// Where the source is; empty for a document with content of its own, and for an uploaded one.
    url: String,
    /// How its owner calls it.
    name: String,
    /// What its owner says of it.
    description: String,
    /// Whether something secret opens the source: what was given as `authorization`, which is not shown.
    has_authorization: bool,
    /// The owner's own values, which searches filter on.
    #[schema(value_type = Option<Object>, required = true)]
    metadata: Option<Map<String, Value>>,
    /// How it is cut into passages; null for the default.
    #[schema(required = true)]
    splitter: Option<SplitterView>,
    /// PDF: the first page that is ingested, counted from 1.
    #[serde(rename = "from_page")]
    #[schema(required = true)]
    from_page: Option<i64>,
    /// PDF: the last page that is ingested.
    #[serde(rename = "to_page")]
    #[schema(required = true)]
    to_page: Option<i64>,
    /// The collections that it is in, the oldest first.
    #[schema(value_type = Vec<String>)]
    collection_ids: Vec<CollectionId>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When its owner last changed it.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// What can be searched of it; null until its first ingestion has succeeded. It goes on answering while the document is
    /// ingested again, and when that fails.
    #[schema(required = true)]
    index: Option<IndexView>,
    /// How its ingestion goes.
    ingestion: IngestionView,
    /// Always null: list the links instead.
    #[serde(rename = "Agent")]
    #[schema(value_type = Option<Object>, required = true)]
    agent: (),
}

/// An object without fields.
#[derive(Serialize, ToSchema)]
#[schema(as = Empty)]
pub(super) struct EmptyObject {}

/// A document with its content.
#[derive(Serialize, ToSchema)]
#[schema(as = DocumentWithContent)]
pub(super) struct DocumentWithContent {
    #[serde(flatten)]
    pub(super) document: DocumentView,
    /// The text that came with it; null when it has a url or was uploaded.
    #[schema(required = true)]
    pub(super) content: Option<String>,
}

/// How a text is cut into passages.
#[derive(Serialize, ToSchema)]
#[schema(as = Splitter)]
pub(crate) struct SplitterView {
    /// `recursive`, `character`, `token` or `markdown`.
    #[schema(value_type = String)]
    r#type: SplitterType,
    /// The most that a passage holds: in tokens for `token`, else in characters.
    chunk_size: u32,
    /// How much of one passage's end the next one repeats.
    chunk_overlap: u32,
}

/// What can be searched of a document.
#[derive(Serialize, ToSchema)]
#[schema(as = DocumentIndex)]
#[serde(rename_all = "camelCase")]
pub(super) struct IndexView {
    /// Always `READY`.
    status: String,
    /// Passages.
    chunks: u64,
    /// Pages that were read, when the source has pages.
    #[schema(required = true)]
    pages: Option<u32>,
    /// What read a PDF: `hayro`, `pdf_oxide` or `pdfium`; null for other sources, and for what was read before version 0.2.
    #[schema(value_type = Option<String>, required = true)]
    engine: Option<PdfEngineName>,
    /// Tokens over all passages.
    tokens: u64,
    /// The model of the vectors; null when the document is found by words only.
    #[schema(required = true)]
    embedding_model: Option<String>,
    /// The vectors' length.
    #[schema(required = true)]
    dimensions: Option<u32>,
    /// SHA-256 of the extracted text, in hexadecimal.
    content_hash: String,
    /// Changes each time that the document is indexed.
    #[schema(value_type = String)]
    generation: GenerationId,
    /// When it became searchable.
    #[schema(value_type = String, format = DateTime)]
    indexed_at: String,
}

/// How an ingestion goes.
#[derive(PartialEq, Serialize, ToSchema)]
#[schema(as = Ingestion)]
#[serde(rename_all = "camelCase")]
pub(super) struct IngestionView {
    /// Where it stands.
    pub(super) status: IngestionStatus,
    /// What it does, or did last: `FETCH`, `PARSE`, `SPLIT`, `EMBED`, `INDEX`; null before it began.
    #[schema(value_type = Option<String>, required = true)]
    stage: Option<IngestionStage>,
    /// How far that is, when it can be told.
    #[schema(required = true)]
    progress: Option<ProgressView>,
    /// How often it was begun since it was queued.
    attempts: i64,
    /// Why the last attempt failed.
    #[schema(required = true)]
    error: Option<ErrorView>,
    /// What it went past without failing.
    warnings: Vec<WarningView>,
    /// What was learnt of the source.
    #[schema(required = true)]
    source: Option<SourceView>,
    /// When it was queued.
    #[schema(value_type = String, format = DateTime)]
    queued_at: Timestamp,
    /// When the last attempt began.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    started_at: Option<Timestamp>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    finished_at: Option<Timestamp>,
}

/// Where an ingestion stands. It has ended when it is `SUCCEEDED`, `FAILED` or `CANCELLED`.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = IngestionStatus)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum IngestionStatus {
    Queued,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

impl IngestionStatus {
    pub(super) fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// How far a stage is.
#[derive(PartialEq, Serialize, ToSchema)]
#[schema(as = IngestionProgress)]
pub(crate) struct ProgressView {
    /// Units done.
    done: u64,
    /// Units in all, once that is known.
    #[schema(required = true)]
    total: Option<u64>,
    /// What is counted: `bytes`, `pages`, `chunks`; for a document of several addresses, the `addresses` that were read.
    unit: String,
}

/// Why an ingestion failed.
#[derive(PartialEq, Serialize, ToSchema)]
#[schema(as = IngestionError)]
pub(crate) struct ErrorView {
    /// A fixed word, such as `not_found` or `no_extractable_text`.
    code: String,
    /// A sentence for people.
    message: String,
    /// Whether trying again can help.
    retryable: bool,
}

/// Something that an ingestion went past.
#[derive(PartialEq, Serialize, ToSchema)]
#[schema(as = IngestionWarning)]
pub(crate) struct WarningView {
    /// A fixed word.
    code: String,
    /// A sentence for people.
    message: String,
    /// How often it happened.
    count: u64,
}

/// What an ingestion learnt of its source.
#[derive(PartialEq, Serialize, ToSchema)]
#[schema(as = IngestionSource)]
#[serde(rename_all = "camelCase")]
struct SourceView {
    /// The title that the source gives itself.
    #[schema(required = true)]
    title: Option<String>,
    /// The address that the source gives itself, or the one that redirects led to.
    #[schema(required = true)]
    canonical_url: Option<String>,
    /// What its server called it.
    #[schema(required = true)]
    mime_type: Option<String>,
    /// Its size.
    #[schema(required = true)]
    bytes: Option<u64>,
}

/// A passage of a document.
#[derive(Serialize, ToSchema)]
#[schema(as = Chunk)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChunkView {
    /// The same however often the document is ingested, as long as the passage stays the same.
    #[schema(value_type = String)]
    chunk_id: ChunkId,
    /// Its number in the document, from 0.
    ordinal: i64,
    /// What it says: exactly the slice of the extracted text that its place names.
    text: String,
    /// Where it stands in the source: always `charStart` and `charEnd` (in the extracted text, in Unicode code points), and
    /// what the kind of source has: `page` and `pageEnd` (PDF), `row` and `rowEnd` (CSV), `start` and `end` in seconds
    /// (VIDEO), `heading` (web pages).
    #[schema(value_type = Object)]
    place: SourceSpan,
    /// Tokens in it.
    tokens: i64,
}

impl From<DocumentDetails> for DocumentView {
    fn from(DocumentDetails { document, collections }: DocumentDetails) -> Self {
        Self {
            id: document.id,
            user_id: document.owner.creator(),
            user: EmptyObject {},
            r#type: document.r#type,
            url: document.url,
            name: document.name,
            description: document.description,
            has_authorization: document.has_authorization,
            metadata: document.metadata.map(|metadata| metadata.0),
            splitter: document.splitter.map(|splitter| splitter.0.into()),
            from_page: document.from_page,
            to_page: document.to_page,
            collection_ids: collections,
            created_at: document.created_at,
            updated_at: document.updated_at,
            index: document.search_index.map(|index| index.0.into()),
            ingestion: document.ingestion.into(),
            agent: (),
        }
    }
}

impl From<SplitterConfig> for SplitterView {
    fn from(SplitterConfig { r#type, chunk_size, chunk_overlap, .. }: SplitterConfig) -> Self {
        Self { r#type, chunk_size, chunk_overlap }
    }
}

impl From<SearchIndexInfo> for IndexView {
    fn from(index: SearchIndexInfo) -> Self {
        Self {
            status: index.status,
            chunks: index.chunks,
            pages: index.pages,
            engine: index.engine,
            tokens: index.tokens,
            embedding_model: index.embedding_model,
            dimensions: index.dimensions,
            content_hash: index.content_hash,
            generation: index.generation,
            indexed_at: index.indexed_at,
        }
    }
}

impl From<IngestionSummary> for IngestionView {
    fn from(ingestion: IngestionSummary) -> Self {
        Self {
            status: ingestion.state.into(),
            stage: ingestion.stage,
            progress: ingestion.progress.map(|progress| progress.0.into()),
            attempts: ingestion.attempts,
            error: ingestion.last_error.map(|error| error.0.into()),
            warnings: ingestion.warnings.0.into_iter().map(Into::into).collect(),
            source: ingestion.source.map(|source| source.0.into()),
            queued_at: ingestion.queued_at,
            started_at: ingestion.started_at,
            finished_at: ingestion.finished_at,
        }
    }
}

impl From<JobState> for IngestionStatus {
    fn from(state: JobState) -> Self {
        match state {
            JobState::Queued => Self::Queued,
            JobState::Running => Self::Running,
            JobState::Done => Self::Succeeded,
            JobState::Dead => Self::Failed,
            JobState::Cancelled => Self::Cancelled,
        }
    }
}

impl From<StageProgress> for ProgressView {
    fn from(StageProgress { done, total, unit }: StageProgress) -> Self {
        Self { done, total, unit }
    }
}

impl From<IngestionError> for ErrorView {
    fn from(IngestionError { code, message, retryable }: IngestionError) -> Self {
        Self { code, message, retryable }
    }
}

impl From<IngestionWarning> for WarningView {
    fn from(IngestionWarning { code, message, count }: IngestionWarning) -> Self {
        Self { code, message, count }
    }
}

impl From<SourceInfo> for SourceView {
    fn from(SourceInfo { title, canonical_url, mime_type, bytes }: SourceInfo) -> Self {
        Self { title, canonical_url, mime_type, bytes }
    }
}

impl From<Chunk> for ChunkView {
    fn from(chunk: Chunk) -> Self {
        Self {
            chunk_id: chunk.chunk_id,
            ordinal: chunk.ordinal,
            text: chunk.text,
            place: chunk.place.0,
            tokens: chunk.tokens,
        }
    }
}

/// A document that was just made, for the documentation.
pub(super) fn queued_example() -> Value {
    json!({
        "id": "019a8f44-7d20-7b61-a0c5-2f8e6d914b37",
        "userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "user": {},
        "type": "PDF",
        "url": "https://example.com/handbook.pdf",
        "name": "Handbook",
        "description": "What every new colleague reads",
        "hasAuthorization": false,
        "metadata": {"department": "people", "year": 2026},
        "splitter": null,
        "from_page": 1,
        "to_page": 40,
        "collectionIds": ["019a8f3e-6c41-7a90-b2d7-3e5f7a9b1c2d"],
        "createdAt": "2026-01-31T08:10:00.000000+00:00",
        "updatedAt": "2026-01-31T08:10:00.000000+00:00",
        "index": null,
        "ingestion": {
            "status": "QUEUED",
            "stage": null,
            "progress": null,
            "attempts": 0,
            "error": null,
            "warnings": [],
            "source": null,
            "queuedAt": "2026-01-31T08:10:00.000000+00:00",
            "startedAt": null,
            "finishedAt": null,
        },
        "Agent": null,
    })
}

/// A document that can be searched, for the documentation.
pub(crate) fn example() -> Value {
    let mut document = queued_example();
    document["index"] = json!({
        "status": "READY",
        "chunks": 118,
        "pages": 40,
        "engine": "hayro",
        "tokens": 41_250,
        "embeddingModel": null,
        "dimensions": null,
        "contentHash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "generation": "019a8f44-91aa-7f3e-8b10-5c6d7e8f9a0b",
        "indexedAt": "2026-01-31T08:10:07.412009+00:00",
    });
    document["ingestion"] = ingestion_example();
    document
}

/// A document with its content, for the documentation.
pub(super) fn example_with_content() -> Value {
    let mut document = example();
    document["content"] = Value::Null;
    document
}

/// An ingestion that has ended well, for the documentation.
pub(super) fn ingestion_example() -> Value {
    json!({
        "status": "SUCCEEDED",
        "stage": "INDEX",
        "progress": null,
        "attempts": 1,
        "error": null,
        "warnings": [],
        "source": {
            "title": "Handbook 2026",
            "canonicalUrl": "https://example.com/handbook.pdf",
            "mimeType": "application/pdf",
            "bytes": 1_482_112,
        },
        "queuedAt": "2026-01-31T08:10:00.000000+00:00",
        "startedAt": "2026-01-31T08:10:00.021377+00:00",
        "finishedAt": "2026-01-31T08:10:07.412009+00:00",
    })
}
