//! Documents with what is shown of them besides their own rows.

use lectern_db::{self as db, Db, documents::CollectedDocument};
use lectern_shared::{
    ids::{CollectionId, WorkspaceId},
    model::document::Document,
};

use crate::error::ApiError;

/// A document, and the collections that it is in.
#[derive(Clone, Debug)]
pub(crate) struct DocumentDetails {
    pub(crate) document: Document,
    /// The oldest first.
    pub(crate) collections: Vec<CollectionId>,
}

impl DocumentDetails {
    /// Some of a workspace's documents, with one question for all of them.
    pub(in crate::services) async fn of_all(
        db: &Db,
        workspace: WorkspaceId,
        documents: Vec<Document>,
    ) -> Result<Vec<Self>, ApiError> {
        let ids: Vec<_> = documents.iter().map(|document| document.id).collect();
        let mut collections = db::collections::of_documents(db, workspace, &ids).await?;
        let details = |document: Document| {
            let collections = collections.remove(&document.id).unwrap_or_default();
            Self { document, collections }
        };
        Ok(documents.into_iter().map(details).collect())
    }
}

impl From<CollectedDocument> for DocumentDetails {
    fn from((document, collections): CollectedDocument) -> Self {
        Self { document, collections }
    }
}
