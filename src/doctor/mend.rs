//! Mending documents. Nothing here does the work: it is queued for the service.

use std::collections::BTreeSet;

use lectern_db::{
    self as db,
    checkup::{self, SearchableDocument},
};
use lectern_shared::ids::{DocumentId, WorkspaceId};

use super::{DoctorContext, DoctorError, blobs::CheckedBlobStore};

/// What is to be done for the documents of a page.
#[derive(Default)]
pub(super) struct RepairPlan {
    /// Index them again from their stored passages.
    pub(super) index: Vec<SearchableDocument>,
    /// Make the rows of their generations again, with so many passages; then index them again.
    pub(super) rows: Vec<(SearchableDocument, i64)>,
    /// Ingest them from their sources. Of those of which no passages are left nothing is to be found meanwhile.
    pub(super) ingest: Vec<(SearchableDocument, i64)>,
}

impl RepairPlan {
    /// Does it, all or nothing; how many documents were queued.
    pub(super) async fn run(self, look: &DoctorContext<'_>) -> Result<u64, DoctorError> {
        if self.index.is_empty() && self.rows.is_empty() && self.ingest.is_empty() {
            return Ok(0);
        }
        let mut tx = look.db.begin().await?;
        let all = self.index.iter().chain(self.rows.iter().chain(&self.ingest).map(|(document, _)| document));
        // Locks are taken in the order of all: workspaces, and in their own order, then documents, then jobs.
        let workspaces: BTreeSet<WorkspaceId> = all.map(|document| document.workspace_id).collect();
        for workspace in workspaces {
            db::documents::bump_search_epoch(&mut tx, workspace).await?;
        }
        let mut again: Vec<DocumentId> = self.index.iter().map(|document| document.id).collect();
        for (document, chunks) in &self.rows {
            if checkup::renew_generation(&mut tx, document, *chunks, look.now).await? {
                again.push(document.id);
            }
        }
        let mut anew = Vec::new();
        for (document, left) in &self.ingest {
            let as_it_was = if *left == 0 {
                checkup::unpublish(&mut tx, document, look.now).await?
            } else if document.state.as_deref() == Some("active") {
                true
            } else {
                // What is left answers until the document is ingested again.
                checkup::renew_generation(&mut tx, document, *left, look.now).await?
            };
            if as_it_was {
                anew.push(document.id);
            }
        }
        let queued = checkup::index_again(&mut tx, &again, look.now).await?
            + checkup::ingest_again(&mut tx, &anew, look.now).await?;
        tx.commit().await?;
        Ok(queued)
    }
}

/// Whether there is something to ingest a document from; none when that cannot be told. What is at an address is not asked for.
pub(super) async fn has_source(
    document: &SearchableDocument,
    store: Option<&CheckedBlobStore>,
) -> Option<bool> {
    if document.has_content {
        return Some(true);
    }
    let Some(key) = &document.blob_key else { return Some(document.has_url) };
    let store = store.filter(|store| store.is_ours)?;
    store.blobs.size(key).await.ok().map(|size| size.is_some())
}
