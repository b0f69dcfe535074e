//! The file that a document was uploaded with.

use std::io;

use lectern_shared::{
    blobs::{BlobError, BlobReader},
    db::documents::uploads,
    failure::ServiceFailure,
    ids::DocumentId,
    model::document::StoredFile,
};

use super::DocumentService;
use crate::{
    error::{ApiError, ApiErrorKind},
    services::actor::{Actor, Permission},
};

impl DocumentService {
    /// What is known of a document's file.
    pub(crate) async fn file(&self, actor: &Actor, id: DocumentId) -> Result<StoredFile, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        self.load(actor, id).await?;
        uploads::find(&self.db, owner.workspace_id, id).await?.ok_or_else(missing)
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
