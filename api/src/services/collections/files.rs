//! Collections as stores of files, for clients that know no documents: what is put there with attributes, alone or in batches.

use std::collections::BTreeMap;

use lectern_db::{
    self as db, Tx,
    collections::files::{self, FileSelection},
    documents::files::IdWindow,
};
use lectern_shared::{
    ids::{CollectionId, DocumentId, FileBatchId, WorkspaceId},
    model::{
        Json,
        collection::{Collection, CollectionFile, CollectionFileCounts},
        document::Chunk,
    },
};
use serde_json::{Map, Value};

use super::{CollectionService, unknown, unknown_document};
use crate::{
    error::ApiError,
    fields::GivenId,
    services::{
        actor::{Actor, Permission},
        creation::{CreationOutcome, IdempotentRequest, ResponseEncoder},
        documents::FileAttributes,
        edits::EditBase,
    },
};

/// A new collection, and what is to be in it at once.
pub(crate) struct CollectionDraft {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) metadata: Option<Map<String, Value>>,
    pub(crate) files: Vec<FileAddition>,
}

/// A document that is to be in a collection.
pub(crate) struct FileAddition {
    pub(crate) document: GivenId<DocumentId>,
    pub(crate) attributes: FileAttributes,
}

/// A collection, and where its files stand.
#[derive(Clone, Debug)]
pub(crate) struct CollectionWithFiles {
    pub(crate) collection: Collection,
    pub(crate) counts: CollectionFileCounts,
}

/// Files that were put into a collection at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileBatch {
    pub(crate) id: FileBatchId,
    pub(crate) collection: CollectionId,
    pub(crate) counts: CollectionFileCounts,
}

fn unknown_file() -> ApiError {
    ApiError::not_found("file in this vector store")
}

fn unknown_batch() -> ApiError {
    ApiError::not_found("file batch")
}

impl CollectionService {
    /// Makes a collection with files.
    ///
    /// # Errors
    /// Not found, for a file that is not the workspace's.
    pub(crate) async fn create_with_files(
        &self,
        actor: &Actor,
        draft: CollectionDraft,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<CollectionWithFiles>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let now = self.clock.now();
        let CollectionDraft { name, description, metadata, files } = draft;
        let collection = Collection {
            id: CollectionId::generate(),
            owner,
            name: name.trim().to_owned(),
            description,
            defaults: None,
            metadata: metadata.map(Json),
            created_at: now,
            updated_at: now,
            documents: 0,
        };
        let mut tx = self.db.begin().await?;
        db::locks::lock_workspace(&mut tx, owner.workspace_id).await?;
        db::collections::insert(&mut tx, &collection).await?;
        let is_queued = self.put_files(&mut tx, owner.workspace_id, collection.id, files, None).await?;
        let counts = files::counts_in(&mut tx, owner.workspace_id, collection.id).await?;
        let made = CollectionWithFiles { collection, counts };
        let created = self.creations.commit(tx, once, &made, tell).await?;
        self.wake_workers(is_queued);
        Ok(created)
    }

    /// The collections within a window.
    pub(crate) async fn list_with_files(
        &self,
        actor: &Actor,
        window: &IdWindow,
    ) -> Result<Vec<CollectionWithFiles>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let collections = db::collections::window(&self.db, owner.workspace_id, window).await?;
        let ids: Vec<CollectionId> = collections.iter().map(|collection| collection.id).collect();
        let mut counts = files::counts(&self.db, owner.workspace_id, &ids).await?;
        let with_files = |collection: Collection| {
            let counts = counts.remove(&collection.id).unwrap_or_default();
            CollectionWithFiles { collection, counts }
        };
        Ok(collections.into_iter().map(with_files).collect())
    }

    /// One collection.
    pub(crate) async fn find_with_files(
        &self,
        actor: &Actor,
        id: CollectionId,
    ) -> Result<CollectionWithFiles, ApiError> {
        let collection = self.find(actor, id).await?;
        self.count(actor, collection).await
    }

    /// Changes what is given of a collection's name and metadata.
    pub(crate) async fn relabel(
        &self,
        actor: &Actor,
        id: CollectionId,
        name: Option<String>,
        metadata: Option<Map<String, Value>>,
    ) -> Result<CollectionWithFiles, ApiError> {
        let edit = |collection: &mut Collection| {
            if let Some(name) = name {
                name.trim().clone_into(&mut collection.name);
            }
            if let Some(metadata) = metadata {
                collection.metadata = Some(Json(metadata));
            }
        };
        let collection = self.edit(actor, id, EditBase::Present, edit).await?;
        self.count(actor, collection).await
    }

    async fn count(&self, actor: &Actor, collection: Collection) -> Result<CollectionWithFiles, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let mut counts = files::counts(&self.db, owner.workspace_id, &[collection.id]).await?;
        let counts = counts.remove(&collection.id).unwrap_or_default();
        Ok(CollectionWithFiles { collection, counts })
    }

    /// Puts a file into a collection; one that is in it already gets the attributes.
    pub(crate) async fn add_file(
        &self,
        actor: &Actor,
        id: CollectionId,
        file: FileAddition,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<CollectionFile>,
    ) -> Result<CreationOutcome, ApiError> {
        let workspace = actor.may(Permission::EditDocuments)?.workspace_id;
        let document = file.document.map_err(|_| unknown_document())?;
        let (mut tx, is_queued) = self.add_files(workspace, id, vec![file], None).await?;
        let added = files::find_in(&mut tx, workspace, id, document).await?.ok_or_else(unknown_file)?;
        let created = self.creations.commit(tx, once, &added, tell).await?;
        self.wake_workers(is_queued);
        Ok(created)
    }

    /// Puts files into a collection, all of them or none.
    ///
    /// # Errors
    /// Not found, for a file that is not the workspace's.
    pub(crate) async fn add_batch(
        &self,
        actor: &Actor,
        id: CollectionId,
        added: Vec<FileAddition>,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<FileBatch>,
    ) -> Result<CreationOutcome, ApiError> {
        let workspace = actor.may(Permission::EditDocuments)?.workspace_id;
        let batch = FileBatchId::generate();
        let (mut tx, is_queued) = self.add_files(workspace, id, added, Some(batch)).await?;
        let counts = files::batch_counts_in(&mut tx, workspace, id, batch).await?;
        let made = FileBatch { id: batch, collection: id, counts };
        let created = self.creations.commit(tx, once, &made, tell).await?;
        self.wake_workers(is_queued);
        Ok(created)
    }

    /// Puts files into a collection, in a transaction that is to be committed. Tells whether any of them is to be ingested again.
    async fn add_files(
        &self,
        workspace: WorkspaceId,
        id: CollectionId,
        added: Vec<FileAddition>,
        batch: Option<FileBatchId>,
    ) -> Result<(Tx, bool), ApiError> {
        let mut tx = self.db.begin().await?;
        db::collections::lock(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        let is_queued = self.put_files(&mut tx, workspace, id, added, batch).await?;
        Ok((tx, is_queued))
    }

    /// Puts files into a collection of a workspace that is locked. Those of which nothing can be searched, and whose ingestion has ended, are
    /// ingested again. Tells whether any of them is.
    async fn put_files(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        id: CollectionId,
        added: Vec<FileAddition>,
        batch: Option<FileBatchId>,
    ) -> Result<bool, ApiError> {
        let mut given = BTreeMap::new();
        for FileAddition { document, attributes } in added {
            given.insert(document.map_err(|_| unknown_document())?, attributes);
        }
        let ids: Vec<DocumentId> = given.keys().copied().collect();
        if db::collections::add_documents(tx, workspace, id, &ids).await? != ids.len() {
            return Err(unknown_document());
        }
        if let Some(batch) = batch {
            files::set_batch(tx, workspace, id, &ids, batch).await?;
        }
        let mut is_queued = self.files.set_attributes(tx, workspace, given).await?;
        for document in db::jobs::all_ended_unpublished(tx, workspace, &ids).await? {
            // Whoever puts it there means to search it.
            is_queued |= self.jobs.enqueue_ingest(tx, workspace, document).await?;
        }
        Ok(is_queued)
    }

    fn wake_workers(&self, is_queued: bool) {
        if is_queued {
            self.jobs.doorbell().ring(1);
        }
    }

    /// One of a collection's files.
    pub(crate) async fn file(
        &self,
        actor: &Actor,
        id: CollectionId,
        document: DocumentId,
    ) -> Result<CollectionFile, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        files::find(&self.db, owner.workspace_id, id, document).await?.ok_or_else(unknown_file)
    }

    /// The files of a collection within a window.
    ///
    /// # Errors
    /// Not found, for a collection that is not the workspace's, and for a batch that put nothing there which is there still.
    pub(crate) async fn list_files(
        &self,
        actor: &Actor,
        id: CollectionId,
        selection: FileSelection,
        window: &IdWindow,
    ) -> Result<Vec<CollectionFile>, ApiError> {
        let workspace = actor.may(Permission::EditDocuments)?.workspace_id;
        match selection.batch {
            Some(batch) => drop(self.batch(actor, id, batch).await?),
            None if db::collections::has_all(&self.db, workspace, &[id]).await? => {}
            None => return Err(unknown()),
        }
        Ok(files::list(&self.db, workspace, id, selection, window).await?)
    }

    /// Gives one of a collection's files attributes.
    pub(crate) async fn describe_file(
        &self,
        actor: &Actor,
        id: CollectionId,
        document: DocumentId,
        attributes: FileAttributes,
    ) -> Result<CollectionFile, ApiError> {
        let workspace = actor.may(Permission::EditDocuments)?.workspace_id;
        let mut tx = self.db.begin().await?;
        // It cannot be taken out before this ends.
        db::locks::lock_workspace(&mut tx, workspace).await?;
        if !files::holds(&mut tx, workspace, id, document).await? {
            return Err(unknown_file());
        }
        let given = BTreeMap::from([(document, attributes)]);
        let is_queued = self.files.set_attributes(&mut tx, workspace, given).await?;
        tx.commit().await?;
        self.wake_workers(is_queued);
        self.file(actor, id, document).await
    }

    /// At most `limit` passages of one of a collection's files, from a number on.
    pub(crate) async fn file_passages(
        &self,
        actor: &Actor,
        id: CollectionId,
        document: DocumentId,
        from: i64,
        limit: u32,
    ) -> Result<Vec<Chunk>, ApiError> {
        let workspace = self.file(actor, id, document).await?.document.owner.workspace_id;
        Ok(db::chunks::list(&self.db, workspace, document, from, limit).await?)
    }

    /// Where the files of a batch stand.
    pub(crate) async fn batch(
        &self,
        actor: &Actor,
        collection: CollectionId,
        id: FileBatchId,
    ) -> Result<FileBatch, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let counts = files::batch_counts(&self.db, owner.workspace_id, collection, id).await?;
        Ok(FileBatch { id, collection, counts: counts.ok_or_else(unknown_batch)? })
    }

    /// Stops those ingestions of a batch that still go on.
    pub(crate) async fn cancel_batch(
        &self,
        actor: &Actor,
        collection: CollectionId,
        id: FileBatchId,
    ) -> Result<FileBatch, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let mut tx = self.db.begin_essential().await?;
        // Whoever links one of its files meanwhile would take it to go on.
        db::locks::lock_workspace(&mut tx, owner.workspace_id).await?;
        files::cancel_batch(&mut tx, owner.workspace_id, collection, id, self.jobs.now()).await?;
        tx.commit().await?;
        self.batch(actor, collection, id).await
    }
}
