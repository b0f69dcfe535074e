//! Uploads. The file goes to the blob store while it is sent; the document is made, or has its file replaced, when everything is there.
//! What is left of an upload that comes to no good end is purged like a deleted document.

mod file_kind;
mod replacement;
mod slots;

use std::{fmt, io, mem, pin::pin, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use lectern_db::{
    Db,
    documents::{NewDocumentRow as Row, uploads},
    storage::{self, RemainingQuota, StorageDemand},
};
use lectern_derive::RequestBody;
use lectern_jobs::JobQueue;
use lectern_shared::{
    blobs::{BlobError, BlobStore, StoredBlob},
    config::Settings,
    format::SNIFFED,
    ids::{CollectionId, DocumentId},
    model::document::{DocumentType, PageRange, SplitterConfig},
    secrets::hex,
};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use utoipa::ToSchema;

use self::slots::UploadSlots;
pub(crate) use self::{file_kind::FileKind, replacement::NewFile, slots::UploadSlot};
use super::{
    actor::{Actor, Permission},
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
    documents::{
        DocumentDetails, TargetCollections, allowed_bytes, blob_failed, check_quota, queue_new, readers,
        schema::PageSchema,
        splitter::{self, NewSplitter},
    },
};
use crate::{
    error::{ApiError, ApiErrorKind},
    fields::{FieldRule, FromFields, GivenIds, JsonFields, validate},
};

/// The longest that an upload may take.
pub(crate) const LONGEST_UPLOAD: Duration = Duration::from_hours(1);
/// A file as it is sent.
pub(crate) struct SentFile<'a> {
    /// How its sender calls it; empty when it has no name.
    pub(crate) name: String,
    /// What its sender calls the content: the header `Content-Type`.
    pub(crate) content_type: Option<String>,
    pub(crate) bytes: BoxStream<'a, Result<Bytes, ApiError>>,
}

/// What a file is uploaded for.
#[derive(Clone, Copy)]
pub(crate) enum UploadTarget {
    /// A document that is made of it.
    NewDocument,
    /// To take the place of the file that a document was made of.
    FileOf { id: DocumentId, former_bytes: u64 },
}

/// What is said of an uploaded file in the other parts of its form.
pub(crate) trait FileDescription: FromFields + Send {
    /// Adds what is not said where the file tells it.
    fn fill_in(fields: &mut Map<String, Value>, kind: &FileKind);

    /// What makes an upload the same one when it is sent again.
    fn identity(&self, file: &UploadedFile) -> String;
}

/// A file that is in the blob store. When it is dropped, it is purged, unless it has become a document's.
pub(crate) struct UploadedFile {
    stored: StoredBlob,
    reservation: UploadReservation,
    pub(crate) kind: FileKind,
}

/// A file, and what is to be said of the document that is made of it.
#[derive(RequestBody, ToSchema)]
#[schema(as = Upload)]
#[body(before = refuse_source, first(r#type))]
pub(crate) struct NewUpload {
    /// The file: PDF; text, Markdown, HTML, XML or JSON; a table (CSV, TSV) or a spreadsheet (XLSX, XLSM, XLSB, XLS, ODS); DOCX,
    /// PPTX, ODT, ODP or EPUB; an e-mail (EML, MSG) or a web archive (MHT); captions (VTT, SRT, SBV, TTML). At most 100 MiB unless the service
    /// is set otherwise.
    #[schema(value_type = String, format = Binary)]
    #[body(skip)]
    #[expect(dead_code, reason = "it is stored while it is sent, and a part of the same form")]
    file: (),
    /// How to call the document. Without it, it is called like the file.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", value_type = String, required = false)]
    name: String,
    /// `PDF`, `TXT`, `CSV` or `VIDEO`, where it is not what the file shows: `PDF` for a PDF, `CSV` for tables and spreadsheets,
    /// `VIDEO` for captions, else `TXT`. It must fit the file: a text can be a table or the transcript of a video too. A web page
    /// is `TXT`; `URL` is for pages that are to be fetched.
    #[schema(value_type = UploadTypeSchema, required = false)]
    #[body(with = file_type, default = DocumentType::Txt)]
    r#type: DocumentType,
    /// Anything worth saying of it.
    #[schema(max_length = 10_000, value_type = String, required = false)]
    #[body(default)]
    description: String,
    /// Your own values, as the text of a JSON object; at most 16 KiB.
    #[schema(value_type = Object, required = false)]
    #[body(with = readers::metadata)]
    metadata: Option<Map<String, Value>>,
    /// How to cut the text into passages, as the text of a JSON object.
    #[schema(value_type = NewSplitter, required = false)]
    #[body(with = splitter::read)]
    splitter: Option<SplitterConfig>,
    /// PDF: the first page to ingest, counted from 1. Ignored for other types.
    #[schema(value_type = PageSchema, required = false)]
    #[body(with = readers::from_page)]
    from_page: Option<u32>,
    /// PDF: the last page to ingest. Ignored for other types.
    #[schema(value_type = PageSchema, required = false)]
    #[body(with = readers::to_page)]
    to_page: Option<u32>,
    /// Collections of yours that the document is to be in: one part for each of their ids, or the text of a JSON array of all. What is
    /// not said of the document is as the first of them has it that has a default for it.
    #[schema(rename = "collectionIds", value_type = Vec<String>, max_items = 100, required = false)]
    collection_ids: Option<GivenIds<CollectionId>>,
}

/// What an uploaded file can be.
#[derive(ToSchema)]
#[schema(as = UploadType, rename_all = "UPPERCASE")]
#[expect(dead_code, reason = "it is written down for the documentation only")]
enum UploadTypeSchema {
    Pdf,
    Txt,
    Csv,
    Video,
}

fn refuse_source(fields: &mut JsonFields<'_>) {
    for name in ["url", "content"] {
        if fields.get(name).is_some_and(|value| value != "") {
            fields.refuse(name, "cannot be given together with a file");
        }
    }
}

fn file_type(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<DocumentType> {
    fields.choice(rule.name, "TXT, PDF, CSV, VIDEO")
}

impl UploadedFile {
    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.stored.bytes
    }

    fn as_blob_file(&self) -> uploads::BlobFile<'_> {
        uploads::BlobFile {
            key: &self.stored.key,
            bytes: self.stored.bytes,
            sha256: &self.stored.sha256,
            name: self.kind.file_name.as_deref(),
            mime: &self.kind.media_type,
        }
    }
}

impl NewUpload {
    /// A document that is called like its file, and of which nothing else is said.
    pub(crate) fn of_file(kind: &FileKind) -> Result<Self, ApiError> {
        validate(&json!({"type": kind.r#type, "name": kind.document_name()}))
    }
}

impl FileDescription for NewUpload {
    fn fill_in(fields: &mut Map<String, Value>, kind: &FileKind) {
        fields.entry("type").or_insert_with(|| json!(kind.r#type));
        fields.entry("name").or_insert_with(|| json!(kind.document_name()));
    }

    fn identity(&self, file: &UploadedFile) -> String {
        let mut identity = json!({
            "type": self.r#type,
            "name": self.name,
            "description": self.description,
            "metadata": self.metadata,
            "splitter": self.splitter,
            "pages": [self.from_page, self.to_page],
            "sha256": hex(&file.stored.sha256),
            "file": [file.kind.file_name.as_deref(), Some(file.kind.media_type.as_str())],
        });
        if let Some(Ok(collections)) = &self.collection_ids {
            identity["collectionIds"] = json!(collections);
        }
        identity.sort_all_objects();
        identity.to_string()
    }
}

/// Uploads. Cheap to clone.
#[derive(Clone)]
pub(crate) struct UploadService {
    db: Db,
    jobs: JobQueue,
    blobs: BlobStore,
    settings: Arc<Settings>,
    creations: IdempotencyStore,
    slots: UploadSlots,
}

/// What is told when an upload takes too long.
pub(crate) fn late() -> ApiError {
    ApiError::new(ApiErrorKind::TooSlow, "timeout", "The body came too slowly.")
}

impl UploadService {
    pub(crate) fn new(
        db: Db,
        jobs: JobQueue,
        blobs: BlobStore,
        settings: Arc<Settings>,
        creations: IdempotencyStore,
    ) -> Self {
        let slots = UploadSlots::new(settings.limits.uploads);
        Self { db, jobs, blobs, settings, creations, slots }
    }

    /// Waits for a turn, which is to be held until the file is a document's.
    pub(crate) async fn turn(&self, actor: &Actor) -> Result<UploadSlot, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        self.slots.take(owner.workspace_id).await
    }

    /// How many bytes what is said of a file may have.
    pub(crate) fn text_bytes(&self) -> u64 {
        self.settings.limits.body_bytes
    }

    /// Stores a file, under the id of its document or of one that is to be.
    pub(crate) async fn store(
        &self,
        actor: &Actor,
        target: UploadTarget,
        file: SentFile<'_>,
    ) -> Result<UploadedFile, ApiError> {
        let SentFile { name, content_type, mut bytes } = file;
        let mut head = BytesMut::new();
        while head.len() < SNIFFED
            && let Some(piece) = bytes.try_next().await?
        {
            head.extend_from_slice(&piece);
        }
        if head.is_empty() {
            return Err(ApiError::invalid_field("file", "must not be empty"));
        }
        let kind = FileKind::of(&head, &name, content_type.as_deref())?;
        let (reservation, left) = self.reserve(actor, target).await?;
        let rest = bytes.map_err(|error| io::Error::other(SenderError(error)));
        let whole = stream::iter([Ok::<Bytes, io::Error>(head.freeze())]).chain(rest);
        let limit = self.settings.limits.source_bytes;
        let allowed = left.map_or(limit, |left| left.bytes.min(limit));
        let stored =
            self.blobs.put_as(&reservation.key, pin!(whole), allowed).await.map_err(|error| match left {
                Some(left) if allowed < limit && matches!(error, BlobError::TooLarge { .. }) => {
                    left.over.into()
                }
                Some(_) | None => explain(error),
            })?;
        Ok(UploadedFile { stored, reservation, kind })
    }

    /// Begins an upload, and tells how much the user may still store.
    async fn reserve(
        &self,
        actor: &Actor,
        target: UploadTarget,
    ) -> Result<(UploadReservation, Option<RemainingQuota>), ApiError> {
        let workspace = actor.may(Permission::EditDocuments)?.workspace_id;
        let wanted = StorageDemand {
            more: self.settings.limits.source_bytes,
            allowed: allowed_bytes(&self.settings, actor),
        };
        let left = storage::left(&self.db, workspace, wanted, actor.stored_at_most()).await?;
        let (id, left) = match target {
            UploadTarget::NewDocument => (DocumentId::generate(), left?),
            UploadTarget::FileOf { id, former_bytes } => {
                // Whoever has too much may store as much as there was.
                let left = left.unwrap_or_else(|over| Some(RemainingQuota { bytes: 0, over }));
                let bytes = |left: u64| left.saturating_add(former_bytes);
                (id, left.map(|left| RemainingQuota { bytes: bytes(left.bytes), ..left }))
            }
        };
        let (db, jobs, key) = (self.db.clone(), self.jobs.clone(), BlobStore::new_key(id));
        let reservation = UploadReservation { db, jobs, target, id, key, is_completed: false };
        match target {
            UploadTarget::NewDocument => {
                let now = self.jobs.now();
                let until = now.plus(uploads::RESERVED_FOR);
                uploads::reserve_alone(&self.db, workspace, id, now, until).await?;
            }
            UploadTarget::FileOf { .. } => self.reserve_key(&reservation).await?,
        }
        Ok((reservation, left))
    }

    /// Makes a document of a file, and queues it to be ingested.
    pub(crate) async fn complete(
        &self,
        actor: &Actor,
        mut file: UploadedFile,
        new: NewUpload,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<DocumentDetails>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        if let Some(told) = self.creations.stored_response(&once).await? {
            return Ok(CreationOutcome::Before(told));
        }
        let (id, workspace) = (file.reservation.id, owner.workspace_id);
        let mut tx = self.db.begin().await?;
        let collections = TargetCollections::lock(&mut tx, workspace, new.collection_ids).await?;
        let (splitter, metadata) = collections.fill_in(new.splitter, new.metadata)?;
        let row = Row {
            id,
            owner,
            r#type: new.r#type,
            name: &new.name,
            description: &new.description,
            url: "",
            content: None,
            metadata: metadata.as_ref(),
            splitter: splitter.as_ref(),
            pages: PageRange { from: new.from_page, to: new.to_page },
            authorization_sealed: None,
        };
        check_quota(&mut tx, actor, workspace).await?;
        if !uploads::complete(&mut tx, &row, &file.as_blob_file(), self.jobs.now()).await? {
            return Err(late());
        }
        // Others of the workspace may have come meanwhile.
        let demand = StorageDemand { more: file.stored.bytes, allowed: allowed_bytes(&self.settings, actor) };
        let document = queue_new(&self.jobs, &mut tx, workspace, id, demand).await?;
        let collections = collections.put(&mut tx, workspace, id).await?;
        let made = DocumentDetails { document, collections };
        let created = self.creations.commit(tx, once, &made, tell).await?;
        file.reservation.is_completed = matches!(created, CreationOutcome::Now(_));
        self.jobs.doorbell().ring(1);
        Ok(created)
    }
}

/// What the sender did, on its way through the blob store.
#[derive(Debug)]
struct SenderError(ApiError);

impl fmt::Display for SenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for SenderError {}

fn explain(error: BlobError) -> ApiError {
    match error {
        BlobError::TooLarge { limit } => {
            let message = format!("The file may have at most {limit} bytes.");
            ApiError::new(ApiErrorKind::TooLarge, "too_large", message)
        }
        BlobError::Io(error) => match error.downcast::<SenderError>() {
            Ok(SenderError(error)) => error,
            Err(error) => blob_failed(&error.into()),
        },
        error => blob_failed(&error),
    }
}

/// An upload that has begun. When it is dropped, it is given up: what is stored of it is purged, unless it has become a
/// document's.
struct UploadReservation {
    db: Db,
    jobs: JobQueue,
    target: UploadTarget,
    /// The document, which may not be one yet.
    id: DocumentId,
    /// Where the file is stored.
    key: String,
    /// It is known to have become the document's, so there is nothing to give up.
    is_completed: bool,
}

impl Drop for UploadReservation {
    fn drop(&mut self) {
        if self.is_completed {
            return;
        }
        let (db, jobs, target, id) = (self.db.clone(), self.jobs.clone(), self.target, self.id);
        let key = mem::take(&mut self.key);
        let give_up = async move {
            let mut tx = db.begin_essential().await?;
            match target {
                UploadTarget::NewDocument => uploads::give_up(&mut tx, id, jobs.now()).await?,
                UploadTarget::FileOf { .. } => uploads::give_up_key(&mut tx, &key, jobs.now()).await?,
            }
            tx.commit().await
        };
        if let Ok(handle) = Handle::try_current() {
            handle.spawn(async move {
                // Its time will be over by itself.
                if let Err(error) = give_up.await {
                    tracing::warn!(%error, document = %id, "an upload could not be given up yet");
                }
            });
        }
    }
}
