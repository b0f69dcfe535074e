//! Documents and their ingestion.

mod attributes;
mod browse;
mod change;
mod cited;
mod duplicates;
mod file;
mod followed;
pub(crate) mod readers;
mod rules;
pub(crate) mod schema;
pub(crate) mod splitter;
mod target_collections;

use std::sync::Arc;

use lectern_agents::run::RunRecorder;
use lectern_db::{
    self as db, Db, Tx,
    documents::{NewDocumentRow as Row, deletion::delete_with_receipt},
    storage::StorageDemand,
};
use lectern_derive::RequestBody;
use lectern_jobs::JobQueue;
use lectern_runtime::Runtime;
use lectern_shared::{
    blobs::BlobStore,
    clock::Clock,
    config::Settings,
    ids::{CollectionId, DocumentId, WorkspaceId},
    model::{
        audit::AuditAction,
        document::{Chunk, Document, DocumentType, PageRange, SourceAuthorization, SplitterConfig},
        job::IngestionSummary,
        receipt::DeletionReceipt,
    },
    secrets::{CiphertextLocation, Keyring},
};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

pub(crate) use lectern_db::documents::DocumentDetails;

pub(crate) use self::{
    attributes::{AttributeValues, FileAttributes},
    browse::{BulkAction, DocumentCount},
    change::DocumentChange,
    duplicates::DuplicateGroup,
    file::SourceContent,
    followed::FollowedIngestion,
};
pub(super) use self::{
    cited::CitedParts,
    file::{blob_failed, replaceable_file},
    target_collections::TargetCollections,
};
use self::{
    followed::IngestionMonitor,
    schema::{AuthorizationSchema, PageSchema, TypeSchema},
    splitter::NewSplitter,
};
use super::{
    actor::{Actor, Permission},
    audit::AuditService,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
    workspaces::over_quota,
};
use crate::{coalesced::CoalescedReads, error::ApiError, fields::GivenIds};

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
    /// Collections of yours that it is to be in. What it does not say itself is as the first of them has it that has a default for it.
    #[schema(rename = "collectionIds", value_type = Option<Vec<String>>, max_items = 100)]
    pub(crate) collection_ids: Option<GivenIds<CollectionId>>,
}

/// A document with the text that came with it.
pub(crate) struct FullDocument {
    pub(crate) details: DocumentDetails,
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
    audit: AuditService,
    recorder: RunRecorder,
    /// Of many who begin to follow the same document at once, not each asks for itself.
    begun: CoalescedReads<(WorkspaceId, DocumentId), Result<Option<IngestionSummary>, ApiError>>,
    followed: IngestionMonitor,
}

fn unknown() -> ApiError {
    ApiError::not_found("document")
}

/// Refuses a document that a workspace may not have besides what it has already. Whether it may store what is in it is told when the document
/// is [queued](queue_new).
pub(super) async fn check_quota(tx: &mut Tx, actor: &Actor, workspace: WorkspaceId) -> Result<(), ApiError> {
    let Some(allowed) = actor.quotas().documents else { return Ok(()) };
    let documents = db::storage::count_documents(tx, workspace, allowed).await?;
    if documents >= allowed {
        return Err(over_quota(&format!("{documents} of {allowed} documents")));
    }
    Ok(())
}

/// Refuses bytes that a workspace may not store besides what is stored already.
pub(super) async fn check_stored_bytes(
    settings: &Settings,
    tx: &mut Tx,
    actor: &Actor,
    workspace: WorkspaceId,
    more: u64,
) -> Result<(), ApiError> {
    Ok(db::storage::admit(tx, workspace, more, None, allowed_bytes(settings, actor)).await??)
}

/// Bytes that a workspace may store, by its quotas and by what every workspace may.
pub(super) fn allowed_bytes(settings: &Settings, actor: &Actor) -> Option<u64> {
    actor.quotas().bytes.into_iter().chain(settings.limits.storage_bytes).min()
}

/// Queues a document that was made in this transaction, and reads it. Others who change the workspace wait from here on.
///
/// # Errors
/// When the workspace may not store what is in it.
pub(super) async fn queue_new(
    jobs: &JobQueue,
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
    demand: StorageDemand,
) -> Result<Document, ApiError> {
    let queued = jobs.enqueue_new(tx, workspace, id, demand).await??;
    queued.ok_or_else(|| ApiError::unauthorized("The account was deleted."))
}

impl DocumentService {
    pub(crate) fn new(
        runtime: &Runtime,
        creations: IdempotencyStore,
        audit: AuditService,
        recorder: RunRecorder,
    ) -> Self {
        let Runtime { db, clock, keyring, jobs, blobs, settings, .. } = runtime.clone();
        let (begun, followed) = (CoalescedReads::default(), IngestionMonitor::new(db.clone()));
        Self { db, clock, keyring, jobs, blobs, settings, creations, audit, recorder, begun, followed }
    }

    /// Makes a document of what is at an address, or of a text, and queues it to be ingested.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewDocument,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<DocumentDetails>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let workspace = owner.workspace_id;
        let id = DocumentId::generate();
        // Without an address there is nothing that it could open.
        let authorization = new.authorization.as_ref().filter(|_| !new.url.is_empty());
        let authorization_sealed = authorization.map(|given| self.seal(id, given)).transpose()?;
        let more = new.content.as_ref().map_or(0, String::len) as u64;
        let demand = StorageDemand { more, allowed: allowed_bytes(&self.settings, actor) };
        // Before anything is stored, and SQLite's only writer is taken from others: what does not fit may come over and over.
        db::storage::expect_room(&self.db, workspace, demand, actor.stored_at_most()).await??;
        let mut tx = self.db.begin().await?;
        let collections = TargetCollections::lock(&mut tx, workspace, new.collection_ids).await?;
        let (splitter, metadata) = collections.fill_in(new.splitter, new.metadata)?;
        let row = Row {
            id,
            owner,
            r#type: new.r#type,
            name: &new.name,
            description: &new.description,
            url: &new.url,
            content: new.content.as_deref(),
            metadata: metadata.as_ref(),
            splitter: splitter.as_ref(),
            pages: PageRange { from: new.from_page, to: new.to_page },
            authorization_sealed: authorization_sealed.as_deref(),
        };
        check_quota(&mut tx, actor, workspace).await?;
        if row.authorization_sealed.is_some() {
            self.audit.note(&mut tx, actor, AuditAction::SecretChanged, "document", id).await?;
        }
        db::jobs::store_new(&mut tx, &row, demand, self.clock.now()).await?;
        let document = queue_new(&self.jobs, &mut tx, workspace, id, demand).await?;
        let collections = collections.put(&mut tx, workspace, id).await?;
        let made = DocumentDetails { document, collections };
        let created = self.creations.commit(tx, once, &made, tell).await?;
        self.jobs.doorbell().ring(1);
        Ok(created)
    }

    /// The documents before an id, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<DocumentDetails>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(db::documents::list(&self.db, owner.workspace_id, before.into(), limit).await?)
    }

    /// [`Self::list`], of documents whose names have something somewhere; of all of them when that is empty.
    pub(crate) async fn list_named(
        &self,
        actor: &Actor,
        name: &str,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<DocumentDetails>, ApiError> {
        if name.is_empty() {
            return self.list(actor, before, limit).await;
        }
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(db::documents::list_named(&self.db, owner.workspace_id, name, before.into(), limit).await?)
    }

    /// One document.
    pub(crate) async fn find(&self, actor: &Actor, id: DocumentId) -> Result<FullDocument, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let found = db::documents::find_with_content(&self.db, owner.workspace_id, id).await?;
        let (details, content) = found.ok_or_else(unknown)?;
        Ok(FullDocument { details, content })
    }

    /// At most `limit` of a document's passages from a number on, in the order of the source; for roles that do not edit documents
    /// those alone that were cited to them.
    pub(crate) async fn chunks(
        &self,
        actor: &Actor,
        id: DocumentId,
        from: i64,
        limit: u32,
    ) -> Result<Vec<Chunk>, ApiError> {
        let Ok(owner) = actor.may(Permission::EditDocuments) else {
            return self.cited_chunks(actor.may_read_cited()?, id, from, limit).await;
        };
        self.load(actor, id).await?;
        Ok(db::chunks::list(&self.db, owner.workspace_id, id, from, limit).await?)
    }

    /// Deletes a document with everything that is stored of it, and stops its ingestion.
    pub(crate) async fn delete(&self, actor: &Actor, id: DocumentId) -> Result<(), ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let (workspace, now) = (owner.workspace_id, self.jobs.now());
        let mut tx = self.db.begin_essential().await?;
        let held = delete_with_receipt(&mut tx, workspace, id, actor.user, now).await?.ok_or_else(unknown)?;
        self.audit.note(&mut tx, actor, AuditAction::Deleted, "document", id).await?;
        tx.commit().await?;
        let (chunks, generations, blobs) = (held.chunks, held.generations, held.blobs);
        tracing::info!(document = %id, user = %actor.user, %workspace, chunks, generations, blobs, "document deleted; to be purged");
        Ok(())
    }

    /// What was removed of a deleted document.
    pub(crate) async fn receipt(&self, actor: &Actor, id: DocumentId) -> Result<DeletionReceipt, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let receipt = db::receipts::find(&self.db, owner.workspace_id, id).await?;
        receipt.ok_or_else(|| ApiError::not_found("receipt"))
    }

    /// Queues a document to be ingested from its source once more.
    pub(crate) async fn ingest(&self, actor: &Actor, id: DocumentId) -> Result<DocumentDetails, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let mut tx = self.db.begin().await?;
        if !self.jobs.enqueue_ingest(&mut tx, owner.workspace_id, id).await? {
            return Err(unknown());
        }
        let queued = db::documents::find_collected(&mut tx, owner.workspace_id, id).await?;
        let queued = queued.ok_or_else(unknown)?;
        tx.commit().await?;
        self.jobs.doorbell().ring(1);
        Ok(queued)
    }

    /// Stops the ingestion of a document, and tells whether it did: it does nothing when that has ended.
    pub(crate) async fn cancel(
        &self,
        actor: &Actor,
        id: DocumentId,
    ) -> Result<(DocumentDetails, bool), ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let mut tx = self.db.begin_essential().await?;
        let is_stopped = db::jobs::cancel(&mut tx, owner.workspace_id, id, self.jobs.now()).await?;
        // What is another user's cannot be told apart from what does not exist: nothing was stopped, and nothing is found.
        let found = db::documents::find_collected(&mut tx, owner.workspace_id, id).await?;
        let found = found.ok_or_else(unknown)?;
        tx.commit().await?;
        Ok((found, is_stopped))
    }

    /// How the ingestion of a document goes.
    pub(crate) async fn ingestion(
        &self,
        actor: &Actor,
        id: DocumentId,
    ) -> Result<IngestionSummary, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let workspace = owner.workspace_id;
        let read = async { Ok(db::documents::ingestion(&self.db, workspace, id).await?) };
        self.begun.share((workspace, id), read).await?.ok_or_else(unknown)
    }

    /// Follows how the ingestion of a document goes on from now, which must have been found to be the workspace's.
    pub(crate) fn follow(&self, actor: &Actor, id: DocumentId) -> Result<FollowedIngestion, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(self.followed.follow(owner.workspace_id, id))
    }

    pub(super) async fn load(&self, actor: &Actor, id: DocumentId) -> Result<Document, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        db::documents::find(&self.db, owner.workspace_id, id).await?.ok_or_else(unknown)
    }

    /// What opens a document's source, as it is stored.
    fn seal(&self, id: DocumentId, authorization: &SourceAuthorization) -> Result<Vec<u8>, ApiError> {
        let json = serde_json::to_vec(authorization).map_err(|_| ApiError::internal())?;
        Ok(self.keyring.encrypt(CiphertextLocation::document_authorization(id.as_uuid()), &json)?)
    }
}
