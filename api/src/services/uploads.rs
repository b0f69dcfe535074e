//! Uploads. The file goes to the blob store while it is sent; the document is made when everything is there. What is left of an
//! upload that comes to no good end is purged like a deleted document.

mod file_kind;
pub(crate) mod file_name;
mod slots;

use std::{fmt, io, pin::pin, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use lectern_shared::{
    blobs::{BlobError, BlobStore, StoredBlob},
    config::Settings,
    db::{
        Db,
        documents::{NewDocumentRow as Row, uploads},
        storage::{self, RemainingQuota},
    },
    format::SNIFFED,
    ids::DocumentId,
    jobs::JobQueue,
    model::document::{Document, DocumentType, PageRange, SplitterConfig},
    secrets::hex,
};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

pub(crate) use self::file_kind::FileKind;
use self::slots::{UploadSlot, UploadSlots};
use super::{
    Actor,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
    documents::{blob_failed, check_quota, queue_new},
};
use crate::error::{ApiError, ApiErrorKind, FieldError};

/// The longest that an upload may take.
pub(crate) const LONGEST_UPLOAD: Duration = Duration::from_hours(1);
/// What is stored of an upload is purged after so long, unless it has become a document. Well after the longest upload, so that
/// none is purged that is just being completed.
const RESERVED: Duration = Duration::from_hours(2);

/// A file as it is sent.
pub(crate) struct SentFile<'a> {
    /// How its sender calls it; empty when it has no name.
    pub(crate) name: String,
    /// What its sender calls the content, lower-case and without parameters.
    pub(crate) content_type: Option<String>,
    pub(crate) bytes: BoxStream<'a, Result<Bytes, ApiError>>,
}

/// A file that is in the blob store. When it is dropped, it is purged, unless it has become a document.
pub(crate) struct UploadedFile {
    stored: StoredBlob,
    reservation: UploadReservation,
    pub(crate) kind: FileKind,
}

/// What a document says of itself that is made of a file.
pub(crate) struct NewUpload {
    pub(crate) r#type: DocumentType,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) metadata: Option<Map<String, Value>>,
    pub(crate) splitter: Option<SplitterConfig>,
    pub(crate) pages: PageRange,
}

impl NewUpload {
    /// What makes an upload the same one when it is sent again.
    pub(crate) fn identity(&self, file: &UploadedFile) -> String {
        let mut identity = json!({
            "type": self.r#type,
            "name": self.name,
            "description": self.description,
            "metadata": self.metadata,
            "splitter": self.splitter,
            "pages": [self.pages.from, self.pages.to],
            "sha256": hex(&file.stored.sha256),
            "file": [file.kind.file_name.as_deref(), Some(file.kind.media_type)],
        });
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

    /// Waits for a turn, which is to be held until the document is made.
    pub(crate) async fn turn(&self, actor: Actor) -> Result<UploadSlot, ApiError> {
        self.slots.take(actor.user).await
    }

    /// How many bytes what is said of a file may have.
    pub(crate) fn text_bytes(&self) -> u64 {
        self.settings.limits.body_bytes
    }

    /// Stores a file, under the id of a document that is to be.
    pub(crate) async fn store(&self, actor: Actor, file: SentFile<'_>) -> Result<UploadedFile, ApiError> {
        let SentFile { name, content_type, mut bytes } = file;
        let mut head = BytesMut::new();
        while head.len() < SNIFFED
            && let Some(piece) = bytes.try_next().await?
        {
            head.extend_from_slice(&piece);
        }
        if head.is_empty() {
            let field = FieldError { path: "file".to_owned(), message: "must not be empty".to_owned() };
            return Err(ApiError::invalid(vec![field]));
        }
        let kind = FileKind::of(&head, &name, content_type.as_deref())?;
        let (reservation, left) = self.reserve(actor).await?;
        let rest = bytes.map_err(|error| io::Error::other(SenderError(error)));
        let whole = stream::iter([Ok::<Bytes, io::Error>(head.freeze())]).chain(rest);
        let limit = self.settings.limits.source_bytes;
        let allowed = left.map_or(limit, |left| left.bytes.min(limit));
        let stored =
            self.blobs.put(reservation.id, pin!(whole), allowed).await.map_err(|error| match left {
                Some(left) if allowed < limit && matches!(error, BlobError::TooLarge { .. }) => {
                    left.over.into()
                }
                Some(_) | None => explain(error),
            })?;
        Ok(UploadedFile { stored, reservation, kind })
    }

    /// Begins an upload, and tells how much the user may still store.
    async fn reserve(&self, actor: Actor) -> Result<(UploadReservation, Option<RemainingQuota>), ApiError> {
        let id = DocumentId::generate();
        let now = self.jobs.now();
        let mut tx = self.db.begin().await?;
        let left = storage::left(&mut tx, actor.user, self.settings.limits.storage_bytes).await??;
        uploads::reserve(&mut tx, actor.user, id, now, now.plus(RESERVED)).await?;
        tx.commit().await?;
        Ok((UploadReservation { db: self.db.clone(), jobs: self.jobs.clone(), id }, left))
    }

    /// Makes a document of a file, and queues it to be ingested.
    pub(crate) async fn complete(
        &self,
        actor: Actor,
        file: UploadedFile,
        new: NewUpload,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<Document>,
    ) -> Result<CreationOutcome, ApiError> {
        if let Some(told) = self.creations.stored_response(&once).await? {
            return Ok(CreationOutcome::Before(told));
        }
        let id = file.reservation.id;
        let row = Row {
            id,
            user_id: actor.user,
            r#type: new.r#type,
            name: &new.name,
            description: &new.description,
            url: "",
            content: None,
            metadata: new.metadata.as_ref(),
            splitter: new.splitter.as_ref(),
            pages: new.pages,
            authorization_sealed: None,
        };
        let stored = uploads::BlobFile {
            key: &file.stored.key,
            bytes: file.stored.bytes,
            sha256: &file.stored.sha256,
            name: file.kind.file_name.as_deref(),
            mime: file.kind.media_type,
        };
        let mut tx = self.db.begin().await?;
        // Others of the user's may have come meanwhile.
        check_quota(&self.settings, &mut tx, actor.user, file.stored.bytes).await?;
        if !uploads::complete(&mut tx, &row, &stored, self.jobs.now()).await? {
            return Err(late());
        }
        let document = queue_new(&self.jobs, &mut tx, actor.user, id).await?;
        let created = self.creations.commit(tx, once, &document, tell).await?;
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
/// document.
struct UploadReservation {
    db: Db,
    jobs: JobQueue,
    id: DocumentId,
}

impl Drop for UploadReservation {
    fn drop(&mut self) {
        let (db, jobs, id) = (self.db.clone(), self.jobs.clone(), self.id);
        let give_up = async move {
            let mut tx = db.begin_essential().await?;
            uploads::give_up(&mut tx, id, jobs.now()).await?;
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
