//! Looking for documents, and doing the same to many of them.

use std::time::Duration;

use lectern_db::{
    documents::browse::{DocumentFilter, DocumentOrder, browse, count, job_due_at, jobs_before},
    sync::items::sources_of,
};
use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, SourceId},
    model::document::Document,
};

use super::{
    super::actor::{Actor, Permission},
    DocumentService,
};
use crate::error::{ApiError, ApiErrorKind};

/// Documents that one step of a bulk action is for: one step is a request, and each of them a transaction.
const STEP: u32 = 200;
/// Documents that are counted, at most: a list is shown often, and how many more there are changes nothing for its reader.
const COUNTED: u32 = 10_000;
/// Documents that are counted by their metadata, which has to be read for that.
const COUNTED_BY_METADATA: u32 = 1_000;

/// What is done to many documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BulkAction {
    /// They are ingested again.
    Ingest,
    /// They are deleted.
    Delete,
}

/// The documents that one step of a bulk action is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BulkStep {
    /// The newest first.
    pub(crate) ids: Vec<DocumentId>,
    /// Where the next step goes on, when there may be more.
    pub(crate) next: Option<DocumentId>,
}

/// How many documents pass a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentCount {
    pub(crate) count: u64,
    /// There are more than were counted.
    pub(crate) has_more: bool,
}

impl DocumentService {
    /// How many documents pass a filter, as far as that is counted.
    pub(crate) async fn count(
        &self,
        actor: &Actor,
        filter: &DocumentFilter,
    ) -> Result<DocumentCount, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let most = if filter.metadata.is_some() { COUNTED_BY_METADATA } else { COUNTED };
        let found = count(&self.db, owner.workspace_id, filter, most + 1).await?;
        Ok(DocumentCount { count: found.min(u64::from(most)), has_more: found > u64::from(most) })
    }

    /// The sources that keep a document in step with what is there, by id and name.
    pub(crate) async fn sources(
        &self,
        actor: &Actor,
        id: DocumentId,
    ) -> Result<Vec<(SourceId, String)>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(sources_of(&self.db, owner.workspace_id, id).await?)
    }

    /// The documents that pass a filter, behind `after` in this order.
    pub(crate) async fn browse(
        &self,
        actor: &Actor,
        filter: &DocumentFilter,
        order: DocumentOrder,
        after: Option<DocumentId>,
        limit: u32,
    ) -> Result<Vec<Document>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(browse(&self.db, owner.workspace_id, filter, order, after, limit).await?)
    }

    /// How many documents are before one in the line, up to `most`; none when it does not wait for its turn.
    pub(crate) async fn waits_behind(
        &self,
        actor: &Actor,
        id: DocumentId,
        most: u32,
    ) -> Result<Option<u64>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(jobs_before(&self.db, owner.workspace_id, id, most).await?)
    }

    /// When a document is tried next whose time has not come yet, and how long that is from now; none for any other.
    pub(crate) async fn tried_next(
        &self,
        actor: &Actor,
        id: DocumentId,
    ) -> Result<Option<(Timestamp, Duration)>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let due = job_due_at(&self.db, owner.workspace_id, id).await?;
        let now = self.jobs.now();
        Ok(due.filter(|due| *due > now).map(|due| (due, due.since(now))))
    }

    /// The next documents that pass a filter, those older than `before` when that is named, for a bulk action.
    pub(crate) async fn bulk_step(
        &self,
        actor: &Actor,
        filter: &DocumentFilter,
        before: Option<DocumentId>,
    ) -> Result<BulkStep, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let found = browse(&self.db, owner.workspace_id, filter, DocumentOrder::Newest, before, STEP).await?;
        let ids: Vec<DocumentId> = found.into_iter().map(|document| document.id).collect();
        let next = ids.last().copied().filter(|_| ids.len() == STEP as usize);
        Ok(BulkStep { ids, next })
    }

    /// Does something to each of these documents that is still there, and says how many those were.
    pub(crate) async fn each(
        &self,
        actor: &Actor,
        ids: &[DocumentId],
        action: BulkAction,
    ) -> Result<u64, ApiError> {
        let mut count = 0;
        for id in ids {
            let done = match action {
                BulkAction::Ingest => self.ingest(actor, *id).await.map(drop),
                BulkAction::Delete => self.delete(actor, *id).await,
            };
            match done {
                Ok(()) => count += 1,
                // Somebody else was quicker.
                Err(error) if error.kind == ApiErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}
