//! Documents and their ingestion.

mod change;
mod file;
pub(crate) mod readers;
mod rules;
pub(crate) mod schema;
pub(crate) mod splitter;

use std::sync::Arc;

use lectern_derive::RequestBody;
use lectern_shared::{
    blobs::BlobStore,
    clock::Clock,
    config::Settings,
    db::{self, Db, Tx, documents::NewDocumentRow as Row},
    ids::{DocumentId, UserId},
    jobs::JobQueue,
    model::{
        document::{Chunk, Document, DocumentType, PageRange, SourceAuthorization, SplitterConfig},
        job::IngestionSummary,
    },
    secrets::{CiphertextLocation, Keyring},
};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

pub(crate) use self::change::DocumentChange;
pub(super) use self::file::blob_failed;
use self::{
    schema::{AuthorizationSchema, PageSchema, TypeSchema},
    splitter::NewSplitter,
};
use super::{
    Actor,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
};
use crate::error::{ApiError, ApiErrorKind};

/// A new document: its type, its name, and either a url or content.
#[derive(RequestBody, ToSchema)]
#[body(first(r#type, url, content, from_page, to_page))]
pub(crate) struct NewDocument {
    /// The kind of source.
    #[schema(value_type = TypeSchema)]
    pub(crate) r#type: DocumentType,
    /// How to call it. It is searched together with each passage.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    pub(crate) name: String,
    /// Anything worth saying of it.
    #[schema(value_type = Option<String>, max_length = 10_000)]
    #[body(default)]
    pub(crate) description: String,
    /// Where the source is: a public http or https address of at most 8,000 characters. For `URL`, up to 50 of them, separated by
    /// commas, which become one document; a comma separates only where the next address begins after it.
    #[schema(value_type = Option<String>, max_length = 20_000)]
    #[body(with = readers::new_url)]
    pub(crate) url: String,
    /// The text itself, for TXT, CSV and VIDEO (captions, or a plain transcript), instead of a url.
    #[body(with = readers::new_content)]
    pub(crate) content: Option<String>,
    /// Your own values, which searches filter on; at most 16 KiB.
    #[schema(value_type = Option<Object>)]
    #[body(with = readers::metadata)]
    pub(crate) metadata: Option<Map<String, Value>>,
    /// How to cut the text into passages. Without it: 400 tokens, 60 of them repeated.
    #[schema(value_type = Option<NewSplitter>)]
    #[body(with = splitter::read)]
    pub(crate) splitter: Option<SplitterConfig>,
    /// PDF: the first page to ingest, counted from 1. Ignored for other types.
    #[schema(value_type = Option<PageSchema>)]
    #[body(with = readers::from_page)]
    pub(crate) from_page: Option<u32>,
    /// PDF: the last page to ingest. Ignored for other types.
    #[schema(value_type = Option<PageSchema>)]
    #[body(with = readers::to_page)]
    pub(crate) to_page: Option<u32>,
    /// What opens the source. It is sent to the source's own origin only, kept encrypted, and never shown again.
    #[schema(value_type = Option<AuthorizationSchema>)]
    #[body(with = readers::authorization)]
    pub(crate) authorization: Option<SourceAuthorization>,
}

/// A document with the text that came with it.
pub(crate) struct FullDocument {
    pub(crate) document: Document,
    /// None when it has a url or was uploaded.
    pub(crate) content: Option<String>,
}

/// Documents. Cheap to clone.
#[derive(Clone)]
pub(crate) struct DocumentService {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
    jobs: JobQueue,
    blobs: BlobStore,
    settings: Arc<Settings>,
    creations: IdempotencyStore,
}

fn unknown() -> ApiError {
    ApiError::not_found("document")
}

/// Refuses what a user may not store besides what is stored already.
pub(super) async fn check_quota(
    settings: &Settings,
    tx: &mut Tx,
    user: UserId,
    more: u64,
) -> Result<(), ApiError> {
    Ok(db::storage::admit(tx, user, more, None, settings.limits.storage_bytes).await??)
}

/// Queues a document that was made in this transaction, and reads it.
pub(super) async fn queue_new(
    jobs: &JobQueue,
    tx: &mut Tx,
    user: UserId,
    id: DocumentId,
) -> Result<Document, ApiError> {
    let account_gone = || ApiError::unauthorized("The account was deleted.");
    if !jobs.enqueue_new(tx, user, id).await? {
        return Err(account_gone());
    }
    db::documents::find_in(tx, user, id).await?.ok_or_else(account_gone)
}

impl DocumentService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        keyring: Arc<Keyring>,
        jobs: JobQueue,
        blobs: BlobStore,
        settings: Arc<Settings>,
        creations: IdempotencyStore,
    ) -> Self {
        Self { db, clock, keyring, jobs, blobs, settings, creations }
    }

    /// Makes a document of what is at an address, or of a text, and queues it to be ingested.
    pub(crate) async fn create(
        &self,
        actor: Actor,
        new: NewDocument,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<Document>,
    ) -> Result<CreationOutcome, ApiError> {
        let id = DocumentId::generate();
        let authorization = new.authorization.as_ref();
        let authorization_sealed = authorization.map(|given| self.seal(id, given)).transpose()?;
        let row = Row {
            id,
            user_id: actor.user,
            r#type: new.r#type,
            name: &new.name,
            description: &new.description,
            url: &new.url,
            content: new.content.as_deref(),
            metadata: new.metadata.as_ref(),
            splitter: new.splitter.as_ref(),
            pages: PageRange { from: new.from_page, to: new.to_page },
            authorization_sealed: authorization_sealed.as_deref(),
        };
        let bytes = new.content.as_ref().map_or(0, String::len) as u64;
        let mut tx = self.db.begin().await?;
        check_quota(&self.settings, &mut tx, actor.user, bytes).await?;
        db::documents::insert(&mut tx, &row, self.clock.now()).await?;
        let document = queue_new(&self.jobs, &mut tx, actor.user, id).await?;
        let created = self.creations.commit(tx, once, &document, tell).await?;
        self.jobs.doorbell().ring(1);
        Ok(created)
    }

    /// The documents before an id, newest first.
    pub(crate) async fn list(
        &self,
        actor: Actor,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<Document>, ApiError> {
        Ok(db::documents::list(&self.db, actor.user, before.into(), limit).await?)
    }

    /// One document.
    pub(crate) async fn find(&self, actor: Actor, id: DocumentId) -> Result<FullDocument, ApiError> {
        let document = self.load(actor, id).await?;
        let content = db::documents::content(&self.db, actor.user, id).await?;
        Ok(FullDocument { document, content })
    }

    /// At most `limit` of a document's passages from a number on, in the order of the source.
    pub(crate) async fn chunks(
        &self,
        actor: Actor,
        id: DocumentId,
        from: i64,
        limit: u32,
    ) -> Result<Vec<Chunk>, ApiError> {
        self.load(actor, id).await?;
        Ok(db::chunks::list(&self.db, actor.user, id, from, limit).await?)
    }

    /// Deletes a document with everything that is stored of it, and stops its ingestion.
    pub(crate) async fn delete(&self, actor: Actor, id: DocumentId) -> Result<(), ApiError> {
        let (user, now) = (actor.user, self.jobs.now());
        let mut tx = self.db.begin_essential().await?;
        if !db::documents::lock(&mut tx, user, id).await? {
            return Err(unknown());
        }
        let held = db::documents::holdings(&mut tx, user, id).await?.ok_or_else(unknown)?;
        if !db::documents::delete(&mut tx, user, id, now, now).await? {
            return Err(unknown());
        }
        tx.commit().await?;
        let (chunks, generations, blobs) = (held.chunks, held.generations, held.blobs);
        tracing::info!(document = %id, %user, chunks, generations, blobs, "document deleted; to be purged");
        Ok(())
    }

    /// Queues a document to be ingested from its source once more.
    pub(crate) async fn ingest(&self, actor: Actor, id: DocumentId) -> Result<Document, ApiError> {
        let mut tx = self.db.begin().await?;
        if !self.jobs.enqueue_ingest(&mut tx, actor.user, id).await? {
            return Err(unknown());
        }
        let document = db::documents::find_in(&mut tx, actor.user, id).await?.ok_or_else(unknown)?;
        tx.commit().await?;
        self.jobs.doorbell().ring(1);
        Ok(document)
    }

    /// Stops the ingestion of a document; does nothing when it has ended.
    pub(crate) async fn cancel(&self, actor: Actor, id: DocumentId) -> Result<Document, ApiError> {
        let mut tx = self.db.begin_essential().await?;
        db::jobs::cancel(&mut tx, actor.user, id, self.jobs.now()).await?;
        // What is another user's cannot be told apart from what does not exist: nothing was stopped, and nothing is found.
        let document = db::documents::find_in(&mut tx, actor.user, id).await?.ok_or_else(unknown)?;
        tx.commit().await?;
        Ok(document)
    }

    /// How the ingestion of a document goes.
    pub(crate) async fn ingestion(&self, actor: Actor, id: DocumentId) -> Result<IngestionSummary, ApiError> {
        db::documents::ingestion(&self.db, actor.user, id).await?.ok_or_else(unknown)
    }

    /// How an ingestion goes on that somebody follows; none when its document was deleted.
    ///
    /// # Errors
    /// When it cannot be followed any more.
    pub(crate) async fn follow(
        &self,
        actor: Actor,
        id: DocumentId,
    ) -> Result<Option<IngestionSummary>, ApiError> {
        db::documents::ingestion(&self.db, actor.user, id).await.map_err(|error| {
            tracing::warn!(%error, "an ingestion cannot be followed any more");
            let message = "A part of the service is away; connect again shortly.";
            ApiError::new(ApiErrorKind::Unavailable, "unavailable", message)
        })
    }

    async fn load(&self, actor: Actor, id: DocumentId) -> Result<Document, ApiError> {
        db::documents::find(&self.db, actor.user, id).await?.ok_or_else(unknown)
    }

    /// What opens a document's source, as it is stored.
    fn seal(&self, id: DocumentId, authorization: &SourceAuthorization) -> Result<Vec<u8>, ApiError> {
        let json = serde_json::to_vec(authorization).map_err(|_| ApiError::internal())?;
        Ok(self.keyring.encrypt(CiphertextLocation::document_authorization(id.as_uuid()), &json)?)
    }
}
