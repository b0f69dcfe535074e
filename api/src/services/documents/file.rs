//! The file that a document was uploaded with.

use std::io;

use lectern_db::{
    self as db, Db,
    documents::{
        files::{self, IdWindow},
        uploads,
    },
    sync::items,
};
use lectern_shared::{
    blobs::{BlobError, BlobReader},
    failure::ServiceFailure,
    ids::{DocumentId, WorkspaceId},
    model::document::{DocumentFile, StoredFile},
};

use super::{DocumentService, unknown};
use crate::{
    error::{ApiError, ApiErrorKind},
    services::actor::{Actor, Permission},
};

/// What a document is made of, as far as it is stored.
pub(crate) enum SourceContent {
    /// The file that was uploaded.
    File(StoredFile),
    /// The text that it was made with.
    Text(String),
}

impl DocumentService {
    /// The documents within a window, as files.
    pub(crate) async fn files(
        &self,
        actor: &Actor,
        window: &IdWindow,
    ) -> Result<Vec<DocumentFile>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(files::list(&self.db, owner.workspace_id, window).await?)
    }

    /// One document as a file.
    pub(crate) async fn as_file(&self, actor: &Actor, id: DocumentId) -> Result<DocumentFile, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        files::find(&self.db, owner.workspace_id, id).await?.ok_or_else(unknown)
    }

    /// What a document is made of.
    ///
    /// # Errors
    /// Not found, too, when it is at an address.
    pub(crate) async fn source_content(
        &self,
        actor: &Actor,
        id: DocumentId,
    ) -> Result<SourceContent, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        match db::documents::content::find(&self.db, owner.workspace_id, id).await? {
            Some(text) => Ok(SourceContent::Text(text)),
            None => self.file(actor, id).await.map(SourceContent::File),
        }
    }

    /// What is known of a document's file.
    pub(crate) async fn file(&self, actor: &Actor, id: DocumentId) -> Result<StoredFile, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        self.load(actor, id).await?;
        uploads::find(&self.db, owner.workspace_id, id).await?.ok_or_else(missing)
    }

    /// Whether a document's file can be replaced by another one.
    pub(crate) async fn takes_file(&self, actor: &Actor, id: DocumentId) -> Result<bool, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        match replaceable_file(&self.db, owner.workspace_id, id).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind == ApiErrorKind::Invalid => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The bytes of a document's file.
    pub(crate) async fn open_file(&self, id: DocumentId, file: &StoredFile) -> Result<BlobReader, ApiError> {
        self.blobs.get(&file.blob_key).await.map_err(|error| match error {
            BlobError::NotFound => {
                tracing::error!(document = %id, "a document's file is missing");
                missing()
            }
            error => blob_failed(&error),
        })
    }
}

/// The file of one of a workspace's documents that another file may take the place of.
///
/// # Errors
/// When there is no such document, or its file is not one that somebody has uploaded: what to do instead.
pub(in crate::services) async fn replaceable_file(
    db: &Db,
    workspace: WorkspaceId,
    id: DocumentId,
) -> Result<StoredFile, ApiError> {
    // Before the document: one that is deleted between the two is unknown, and not one without a file.
    let file = uploads::find(db, workspace, id).await?;
    let document = db::documents::find(db, workspace, id).await?.ok_or_else(unknown)?;
    let file = file.ok_or_else(|| not_uploaded(&document.url))?;
    if items::is_kept(db, workspace, id).await? {
        let message =
            "cannot be replaced: a source keeps the document in step with what is there; change it there";
        return Err(ApiError::invalid_field("file", message));
    }
    Ok(file)
}

/// What is told where a document that is at this address, if it is at one, is to get a file.
fn not_uploaded(url: &str) -> ApiError {
    let message = if url.is_empty() {
        "cannot be replaced: the document was made of a text; change its content"
    } else {
        "cannot be replaced: the document is at an address; change its url"
    };
    ApiError::invalid_field("file", message)
}

fn missing() -> ApiError {
    let message = "The document has no stored source: it was not uploaded.";
    ApiError::new(ApiErrorKind::NotFound, "not_found", message)
}

/// What is told when the blob store fails.
pub(in crate::services) fn blob_failed(error: &BlobError) -> ApiError {
    if let BlobError::Io(error) = error
        && matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    {
        tracing::warn!(%error, "refused: the blob store has no room");
        return ServiceFailure::StorageFull.into();
    }
    tracing::error!(%error, "the blob store failed");
    ServiceFailure::Unavailable.into()
}
