//! The documents of collections as files: where they stand, and the batches that put them there.

use std::collections::HashMap;

use lectern_shared::{
    clock::Timestamp,
    ids::{CollectionId, DocumentId, FileBatchId, WorkspaceId},
    model::{
        collection::{CollectionFile, CollectionFileCounts},
        job::JobState,
    },
};
use sqlx::QueryBuilder;

use crate::{
    Db, Result, Tx,
    documents::{files::IdWindow, select::select_document},
    execute, on,
};

/// Which files of a collection are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSelection {
    /// Only those that this batch was the last to put there.
    pub batch: Option<FileBatchId>,
    /// Only those whose jobs are in one of these two states, which may be the same.
    pub states: Option<(JobState, JobState)>,
}

macro_rules! select_files {
    ($where:literal) => {
        select_document!(
            ", COALESCE(g.stored_bytes, 0) AS indexed_bytes",
            "JOIN collection_documents cd ON cd.document_id = d.id LEFT JOIN generations g ON g.id = d.active_generation",
            $where
        )
    };
}

/// The files of one of a workspace's collections within a window.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    collection: CollectionId,
    selection: FileSelection,
    window: &IdWindow,
) -> Result<Vec<CollectionFile>> {
    let select = if window.is_ascending { OLDEST } else { NEWEST };
    let (state, or_state) = selection.states.unzip();
    Ok(on!(db, |c| sqlx::query_as(select)
        .bind(workspace)
        .bind(collection)
        .bind(window.above)
        .bind(window.below)
        .bind(selection.batch)
        .bind(state)
        .bind(or_state)
        .bind(i64::from(window.limit))
        .fetch_all(c))?)
}

/// By ranges of what is in the collection, as [`super::list_documents`].
pub(crate) const OLDEST: &str = select_files!(
    "cd.workspace_id = $1 AND (cd.collection_id, cd.document_id) > ($2, $3) AND (cd.collection_id, cd.document_id) < ($2, $4)
     AND ($5 IS NULL OR cd.batch_id = $5) AND ($6 IS NULL OR j.state = $6 OR j.state = $7)
     ORDER BY cd.collection_id, cd.document_id LIMIT $8"
);

/// [`OLDEST`] the other way round.
pub(crate) const NEWEST: &str = select_files!(
    "cd.workspace_id = $1 AND (cd.collection_id, cd.document_id) > ($2, $3) AND (cd.collection_id, cd.document_id) < ($2, $4)
     AND ($5 IS NULL OR cd.batch_id = $5) AND ($6 IS NULL OR j.state = $6 OR j.state = $7)
     ORDER BY cd.collection_id DESC, cd.document_id DESC LIMIT $8"
);

/// The statement of [`find`].
const FIND: &str = select_files!("d.workspace_id = $1 AND cd.collection_id = $2 AND d.id = $3");

/// One of the files of one of a workspace's collections.
pub async fn find(
    db: &Db,
    workspace: WorkspaceId,
    collection: CollectionId,
    document: DocumentId,
) -> Result<Option<CollectionFile>> {
    Ok(on!(db, |c| sqlx::query_as(FIND).bind(workspace).bind(collection).bind(document).fetch_optional(c))?)
}

/// [`find`] within a transaction.
pub async fn find_in(
    tx: &mut Tx,
    workspace: WorkspaceId,
    collection: CollectionId,
    document: DocumentId,
) -> Result<Option<CollectionFile>> {
    Ok(on!(tx, |c| sqlx::query_as(FIND).bind(workspace).bind(collection).bind(document).fetch_optional(c))?)
}

/// Whether a document is one of the files of one of a workspace's collections, within a transaction.
pub async fn holds(
    tx: &mut Tx,
    workspace: WorkspaceId,
    collection: CollectionId,
    document: DocumentId,
) -> Result<bool> {
    let found: Option<DocumentId> = on!(tx, |c| {
        sqlx::query_scalar(
            "SELECT d.id FROM collection_documents cd JOIN documents d ON d.id = cd.document_id
             WHERE cd.collection_id = $1 AND cd.document_id = $2 AND cd.workspace_id = $3 AND d.deleted_at IS NULL",
        )
        .bind(collection)
        .bind(document)
        .bind(workspace)
        .fetch_optional(c)
    })?;
    Ok(found.is_some())
}

/// Where the files of these collections of a workspace stand; nothing for one that has none.
pub async fn counts(
    db: &Db,
    workspace: WorkspaceId,
    collections: &[CollectionId],
) -> Result<HashMap<CollectionId, CollectionFileCounts>> {
    let mut counts: HashMap<CollectionId, CollectionFileCounts> = HashMap::new();
    if collections.is_empty() {
        return Ok(counts);
    }
    let rows: Vec<(CollectionId, JobState, i64, i64)> = on!(db, |c| async {
        let mut query = QueryBuilder::new(
            "SELECT cd.collection_id, j.state, COUNT(*), CAST(COALESCE(SUM(g.stored_bytes), 0) AS BIGINT)
             FROM collection_documents cd
             JOIN documents d ON d.id = cd.document_id
             JOIN jobs j ON j.document_id = d.id AND j.kind = 'ingest'
             LEFT JOIN generations g ON g.id = d.active_generation
             WHERE d.deleted_at IS NULL AND cd.workspace_id = ",
        );
        query.push_bind(workspace).push(" AND cd.collection_id IN (");
        let mut listed = query.separated(", ");
        for id in collections {
            listed.push_bind(*id);
        }
        query.push(") GROUP BY cd.collection_id, j.state").build_query_as().fetch_all(c).await
    })?;
    for (collection, state, files, bytes) in rows {
        counts.entry(collection).or_default().add(state, files, bytes);
    }
    Ok(counts)
}

/// Where the files of one of a workspace's collections stand, within a transaction.
pub async fn counts_in(
    tx: &mut Tx,
    workspace: WorkspaceId,
    collection: CollectionId,
) -> Result<CollectionFileCounts> {
    let rows: Vec<(JobState, i64, i64)> = on!(tx, |c| {
        sqlx::query_as(
            "SELECT j.state, COUNT(*), CAST(COALESCE(SUM(g.stored_bytes), 0) AS BIGINT)
             FROM collection_documents cd
             JOIN documents d ON d.id = cd.document_id
             JOIN jobs j ON j.document_id = d.id AND j.kind = 'ingest'
             LEFT JOIN generations g ON g.id = d.active_generation
             WHERE d.deleted_at IS NULL AND cd.workspace_id = $1 AND cd.collection_id = $2 GROUP BY j.state",
        )
        .bind(workspace)
        .bind(collection)
        .fetch_all(c)
    })?;
    let mut counts = CollectionFileCounts::default();
    for (state, files, bytes) in rows {
        counts.add(state, files, bytes);
    }
    Ok(counts)
}

/// The statement of [`batch_counts`].
const COUNT_BATCH: &str = "SELECT j.state, COUNT(*) FROM collection_documents cd
     JOIN documents d ON d.id = cd.document_id
     JOIN jobs j ON j.document_id = d.id AND j.kind = 'ingest'
     WHERE d.deleted_at IS NULL AND cd.workspace_id = $1 AND cd.collection_id = $2 AND cd.batch_id = $3
     GROUP BY j.state";

/// Where the files stand that a batch was the last to put into one of a workspace's collections; none when there are none.
pub async fn batch_counts(
    db: &Db,
    workspace: WorkspaceId,
    collection: CollectionId,
    batch: FileBatchId,
) -> Result<Option<CollectionFileCounts>> {
    let rows: Vec<(JobState, i64)> =
        on!(db, |c| sqlx::query_as(COUNT_BATCH).bind(workspace).bind(collection).bind(batch).fetch_all(c))?;
    Ok((!rows.is_empty()).then(|| sum(&rows)))
}

/// [`batch_counts`] within a transaction; nothing is counted when there are none.
pub async fn batch_counts_in(
    tx: &mut Tx,
    workspace: WorkspaceId,
    collection: CollectionId,
    batch: FileBatchId,
) -> Result<CollectionFileCounts> {
    let rows: Vec<(JobState, i64)> =
        on!(tx, |c| sqlx::query_as(COUNT_BATCH).bind(workspace).bind(collection).bind(batch).fetch_all(c))?;
    Ok(sum(&rows))
}

/// Files by the state of their jobs, as one count.
fn sum(rows: &[(JobState, i64)]) -> CollectionFileCounts {
    let mut counts = CollectionFileCounts::default();
    for (state, files) in rows {
        counts.add(*state, *files, 0);
    }
    counts
}

/// Notes that a batch put these documents, which are in it, into one of a workspace's collections.
pub async fn set_batch(
    tx: &mut Tx,
    workspace: WorkspaceId,
    collection: CollectionId,
    documents: &[DocumentId],
    batch: FileBatchId,
) -> Result<()> {
    if documents.is_empty() {
        return Ok(());
    }
    on!(tx, |c| async {
        let mut query = QueryBuilder::new("UPDATE collection_documents SET batch_id = ");
        query.push_bind(batch).push(" WHERE workspace_id = ").push_bind(workspace);
        query.push(" AND collection_id = ").push_bind(collection).push(" AND document_id IN (");
        let mut listed = query.separated(", ");
        for id in documents {
            listed.push_bind(*id);
        }
        query.push(")").build().execute(c).await.map(|_| ())
    })?;
    Ok(())
}

/// Stops the ingestions that still go on of the files that a batch was the last to put into one of a workspace's collections. Those that
/// another collection has too, or that are linked to an agent, are waited for there, and go on.
pub async fn cancel_batch(
    tx: &mut Tx,
    workspace: WorkspaceId,
    collection: CollectionId,
    batch: FileBatchId,
    now: Timestamp,
) -> Result<u64> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE jobs SET state = 'cancelled', claim_id = NULL, lease_until = NULL, finished_at = $4
             WHERE workspace_id = $1 AND state IN ('queued', 'running')
               AND document_id IN (SELECT document_id FROM collection_documents
                                   WHERE workspace_id = $1 AND collection_id = $2 AND batch_id = $3)
               AND NOT EXISTS (SELECT 1 FROM collection_documents cd
                               WHERE cd.workspace_id = $1 AND cd.document_id = jobs.document_id AND cd.collection_id <> $2)
               AND NOT EXISTS (SELECT 1 FROM agent_documents ad
                               WHERE ad.workspace_id = $1 AND ad.document_id = jobs.document_id)"
        )
        .bind(workspace)
        .bind(collection)
        .bind(batch)
        .bind(now)
    )
}
