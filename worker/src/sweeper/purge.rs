//! Removing what nobody reads any more: first from the index and the blobs, then the rows.

use lectern_db::{
    self as db, Db, chunks,
    documents::{self, uploads},
    generations::{self, PurgeableGeneration},
    pages, vectors,
};
use lectern_index::SearchIndex;
use lectern_jobs::JobQueue;
use lectern_shared::{blobs::BlobStore, clock::Timestamp, ids::DocumentId};

use super::SweepError;

/// Removes what no search reads any more: a replaced or abandoned generation, or one of a deleted document. An index that
/// cannot refuse the late entries of a writer that was given up is cleared once more when none can come any longer; only then
/// is the generation forgotten.
pub(super) async fn purge_generation(
    db: &Db,
    index: &dyn SearchIndex,
    jobs: &JobQueue,
    generation: &PurgeableGeneration,
) -> Result<(), SweepError> {
    let PurgeableGeneration { retired, document_id, removals } = *generation;
    // Written down before the first is removed, so that whoever goes on after a crash does not count what was left.
    if generations::wants_entries(db, retired).await? {
        let entries = index.count(retired.workspace_id(), retired.id()).await?;
        let mut tx = db.begin_essential().await?;
        generations::note_entries(&mut tx, retired, entries).await?;
        tx.commit().await?;
    }
    index.remove(retired).await?;
    if let Some(straggle) = index.late_write_window() {
        if removals == 0 {
            let again_at = jobs.now().plus(jobs.settings().lease + straggle);
            let mut tx = db.begin_essential().await?;
            generations::remove_again(&mut tx, retired, again_at).await?;
            tx.commit().await?;
            return Ok(());
        }
        let left = index.count(retired.workspace_id(), retired.id()).await?;
        if left > 0 {
            return Err(SweepError::Left(left));
        }
    }
    loop {
        let mut tx = db.begin_essential().await?;
        // Of a time when the index was in the database.
        db::index_segments::delete(&mut tx, retired).await?;
        let more = chunks::purge_some(&mut tx, retired).await? | pages::purge_some(&mut tx, retired).await?;
        let gone = !more && generations::delete(&mut tx, retired).await?;
        tx.commit().await?;
        if gone {
            tracing::debug!(generation = %retired.id(), document = %document_id, "generation purged");
        }
        if !more {
            return Ok(());
        }
    }
}

/// Forgets a deleted document of which nothing is left.
pub(super) async fn purge_document(
    db: &Db,
    blobs: &BlobStore,
    document: DocumentId,
    now: Timestamp,
) -> Result<(), SweepError> {
    blobs.remove_document(document).await?;
    vectors::remove(db, document, None).await?;
    let mut tx = db.begin_essential().await?;
    documents::drop_tombstone(&mut tx, document, now).await?;
    tx.commit().await?;
    tracing::info!(%document, "document purged");
    Ok(())
}

/// Removes a file that no document names.
pub(super) async fn purge_file(db: &Db, blobs: &BlobStore, key: &str) -> Result<(), SweepError> {
    blobs.remove(key).await?;
    let mut tx = db.begin_essential().await?;
    uploads::forget_loose(&mut tx, key).await?;
    tx.commit().await?;
    Ok(())
}
