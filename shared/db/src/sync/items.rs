//! What is known of the things that the documents of a source were made of.

use lectern_shared::{
    ids::{DocumentId, SourceId, SourceRunId, SourceRunItemId, WorkspaceId},
    model::{
        Json,
        sync::{SyncItem, SyncOutcome, SyncRun},
    },
};

use crate::{Db, Result, Tx, execute, on};

/// What is known of one item of a source.
pub async fn find(db: &Db, source: SourceId, key: &str) -> Result<Option<SyncItem>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT i.item_key, i.document_id, i.name, i.etag, i.last_modified, i.sha256, i.links, i.entry_id, i.seen_run,
                d.id IS NOT NULL AS is_alive, d.source_bytes AS bytes
         FROM source_items i LEFT JOIN documents d ON d.id = i.document_id AND d.deleted_at IS NULL
         WHERE i.source_id = $1 AND i.item_key = $2"
    )
    .bind(source)
    .bind(key)
    .fetch_optional(c)
    })?)
}

/// The sources that keep one of a workspace's documents in step, by id and name.
pub async fn sources_of(
    db: &Db,
    workspace: WorkspaceId,
    document: DocumentId,
) -> Result<Vec<(SourceId, String)>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT DISTINCT s.id, s.name FROM source_items i JOIN sources s ON s.id = i.source_id
         WHERE i.document_id = $1 AND i.workspace_id = $2 AND s.workspace_id = $2 ORDER BY s.name, s.id"
    )
    .bind(document)
    .bind(workspace)
    .fetch_all(c))?)
}

/// Whether a source keeps one of a workspace's documents in step with what is there.
pub async fn is_kept(db: &Db, workspace: WorkspaceId, document: DocumentId) -> Result<bool> {
    let found: Option<DocumentId> = on!(db, |c| sqlx::query_scalar(
        "SELECT document_id FROM source_items WHERE document_id = $1 AND workspace_id = $2 LIMIT 1"
    )
    .bind(document)
    .bind(workspace)
    .fetch_optional(c))?;
    Ok(found.is_some())
}

/// What became of something in a run; none when nothing is noted.
pub async fn outcome(db: &Db, run: SourceRunId, key: &str) -> Result<Option<SyncOutcome>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT outcome FROM source_run_items WHERE run_id = $1 AND item_key = $2"
    )
    .bind(run)
    .bind(key)
    .fetch_optional(c))?)
}

/// What is to be known of an item that a run has seen.
#[derive(Clone, Copy, Debug)]
pub struct SeenItem<'a> {
    /// Its address, or its path.
    pub key: &'a str,
    /// Its document.
    pub document: DocumentId,
    /// What the source calls the document.
    pub name: Option<&'a str>,
    /// Its entity tag.
    pub etag: Option<&'a str>,
    /// When it was last changed, as its server wrote it.
    pub last_modified: Option<&'a str>,
    /// SHA-256 of it, in hexadecimal, or the version that is told of it instead.
    pub sha256: Option<&'a str>,
    /// Where it links to.
    pub links: Option<&'a [String]>,
    /// What its feed calls it, whatever page it links to.
    pub entry_id: Option<&'a str>,
}

/// Writes down what is known of an item from now on.
pub async fn put(tx: &mut Tx, run: &SyncRun, item: &SeenItem<'_>) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO source_items (source_id, item_key, workspace_id, document_id, etag, last_modified, sha256, links, seen_run, name,
                                       entry_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
             ON CONFLICT (source_id, item_key) DO UPDATE SET
                 document_id = $4, etag = $5, last_modified = $6, sha256 = $7, links = $8, seen_run = $9, name = $10,
                 entry_id = $11"
        )
        .bind(run.source_id)
        .bind(item.key)
        .bind(run.workspace_id)
        .bind(item.document)
        .bind(item.etag)
        .bind(item.last_modified)
        .bind(item.sha256)
        .bind(item.links.map(Json))
        .bind(run.id)
        .bind(item.name)
        .bind(item.entry_id)
    )?;
    Ok(())
}

/// Notes that a run has seen an item, of which what is known stays.
pub async fn see(tx: &mut Tx, run: &SyncRun, key: &str) -> Result<()> {
    execute!(
        tx,
        sqlx::query("UPDATE source_items SET seen_run = $3 WHERE source_id = $1 AND item_key = $2")
            .bind(run.source_id)
            .bind(key)
            .bind(run.id)
    )?;
    Ok(())
}

/// Notes that a run has seen all items of its source; how many it had not seen before, and how many documents of these somebody deleted.
pub async fn see_all(tx: &mut Tx, run: &SyncRun) -> Result<(i64, i64)> {
    let deleted: i64 = on!(tx, |c| sqlx::query_scalar(
        "SELECT COUNT(*) FROM source_items i
         WHERE i.source_id = $1 AND (i.seen_run IS NULL OR i.seen_run <> $2)
           AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.id = i.document_id AND d.deleted_at IS NULL)"
    )
    .bind(run.source_id)
    .bind(run.id)
    .fetch_one(c))?;
    let seen = execute!(
        tx,
        sqlx::query("UPDATE source_items SET seen_run = $2 WHERE source_id = $1 AND (seen_run IS NULL OR seen_run <> $2)")
            .bind(run.source_id)
            .bind(run.id)
    )?;
    Ok((seen.cast_signed(), deleted))
}

/// The keys of all items of a source.
pub async fn keys(db: &Db, source: SourceId) -> Result<Vec<String>> {
    Ok(on!(db, |c| sqlx::query_scalar("SELECT item_key FROM source_items WHERE source_id = $1")
        .bind(source)
        .fetch_all(c))?)
}

/// The keys of the entries of a feed that it has names for, and these.
pub async fn entries(db: &Db, source: SourceId) -> Result<Vec<(String, String)>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT item_key, entry_id FROM source_items WHERE source_id = $1 AND entry_id IS NOT NULL ORDER BY item_key"
    )
    .bind(source)
    .fetch_all(c)
    })?)
}

/// Notes what its feed calls an entry of which everything else that is known stays.
pub async fn name_entry(tx: &mut Tx, source: SourceId, key: &str, entry_id: &str) -> Result<()> {
    execute!(
        tx,
        sqlx::query("UPDATE source_items SET entry_id = $3 WHERE source_id = $1 AND item_key = $2")
            .bind(source)
            .bind(key)
            .bind(entry_id)
    )?;
    Ok(())
}

/// Notes what became of something in a run; false when that was noted before.
pub async fn note(
    tx: &mut Tx,
    run: &SyncRun,
    key: &str,
    outcome: SyncOutcome,
    reason: Option<&str>,
    document: Option<DocumentId>,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "INSERT INTO source_run_items (run_id, item_key, workspace_id, outcome, reason, document_id, id)
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (run_id, item_key) DO NOTHING"
        )
        .bind(run.id)
        .bind(key)
        .bind(run.workspace_id)
        .bind(outcome)
        .bind(reason)
        .bind(document)
        .bind(SourceRunItemId::generate())
    )?;
    Ok(rows == 1)
}

/// At most `limit` items behind `after` that a run has not seen, also those whose documents somebody deleted.
pub async fn unseen(db: &Db, run: &SyncRun, after: &str, limit: u32) -> Result<Vec<String>> {
    Ok(on!(db, |c| {
        sqlx::query_scalar(
            "SELECT item_key FROM source_items
             WHERE source_id = $1 AND (seen_run IS NULL OR seen_run <> $2) AND item_key > $3
             ORDER BY item_key LIMIT $4",
        )
        .bind(run.source_id)
        .bind(run.id)
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(c)
    })?)
}

/// Notes all items as gone that a run has not seen, and forgets those whose documents somebody deleted.
pub async fn note_unseen(tx: &mut Tx, run: &SyncRun, reason: &str) -> Result<()> {
    let unseen: Vec<(String, DocumentId)> = on!(tx, |c| sqlx::query_as(
        "SELECT i.item_key, i.document_id
         FROM source_items i JOIN documents d ON d.id = i.document_id AND d.deleted_at IS NULL
         WHERE i.source_id = $1 AND (i.seen_run IS NULL OR i.seen_run <> $2) ORDER BY i.item_key"
    )
    .bind(run.source_id)
    .bind(run.id)
    .fetch_all(c))?;
    for (key, document) in unseen {
        note(tx, run, &key, SyncOutcome::Gone, Some(reason), Some(document)).await?;
    }
    if !run.dry_run {
        execute!(
            tx,
            sqlx::query(
                "DELETE FROM source_items WHERE source_id = $1 AND (seen_run IS NULL OR seen_run <> $2)
                   AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.id = document_id AND d.deleted_at IS NULL)"
            )
            .bind(run.source_id)
            .bind(run.id)
        )?;
    }
    Ok(())
}

/// What a run has noted as gone, by its keys.
pub async fn gone(tx: &mut Tx, run: SourceRunId) -> Result<Vec<String>> {
    Ok(on!(tx, |c| sqlx::query_scalar(
        "SELECT item_key FROM source_run_items WHERE run_id = $1 AND outcome = 'gone'"
    )
    .bind(run)
    .fetch_all(c))?)
}

/// Takes back that something is gone: it is there again, or may be.
pub async fn take_back(tx: &mut Tx, run: SourceRunId, key: &str) -> Result<()> {
    execute!(
        tx,
        sqlx::query("DELETE FROM source_run_items WHERE run_id = $1 AND item_key = $2 AND outcome = 'gone'")
            .bind(run)
            .bind(key)
    )?;
    Ok(())
}

/// How many documents a source has, with those that a run has deleted so far, and how many of these the run has found gone.
pub async fn share_gone(tx: &mut Tx, run: &SyncRun) -> Result<(i64, i64)> {
    Ok(on!(tx, |c| {
        sqlx::query_as(
        "SELECT (SELECT COUNT(*) FROM source_items i JOIN documents d ON d.id = i.document_id AND d.deleted_at IS NULL
                 WHERE i.source_id = $1)
                + (SELECT COUNT(*) FROM source_run_items r
                   WHERE r.run_id = $2 AND r.outcome = 'gone'
                     AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.id = r.document_id AND d.deleted_at IS NULL)),
                (SELECT COUNT(*) FROM source_run_items WHERE run_id = $2 AND outcome = 'gone')"
    )
    .bind(run.source_id)
    .bind(run.id)
    .fetch_one(c)
    })?)
}

/// At most `limit` documents that a run has found gone, and that are still there.
pub async fn to_delete(db: &Db, run: SourceRunId, limit: u32) -> Result<Vec<(String, DocumentId)>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT i.item_key, i.document_id FROM source_run_items i
         JOIN documents d ON d.id = i.document_id AND d.deleted_at IS NULL
         WHERE i.run_id = $1 AND i.outcome = 'gone' ORDER BY i.item_key LIMIT $2"
    )
    .bind(run)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Forgets an item.
pub async fn forget(tx: &mut Tx, source: SourceId, key: &str) -> Result<()> {
    execute!(
        tx,
        sqlx::query("DELETE FROM source_items WHERE source_id = $1 AND item_key = $2").bind(source).bind(key)
    )?;
    Ok(())
}
