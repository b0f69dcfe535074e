//! Receipts of deletions. One is opened in the transaction that deletes, gets the numbers of index entries as these are removed, and is
//! closed when nothing of the document is left.

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, UserId, WorkspaceId},
    model::receipt::DeletionReceipt,
};

use crate::{Db, Result, Tx, audit, documents::holdings::DocumentHoldings, execute, on};

/// A receipt of what was just counted, as an INSERT of these values, or of a selection of them.
macro_rules! insert_receipt {
    ($values:literal) => {
        concat!(
            "INSERT INTO deletion_receipts (document_id, workspace_id, name, deleted_at, deleted_by, passages, index_entries, vectors,
                                            bytes, links, remaining) ",
            $values
        )
    };
}
pub(super) use insert_receipt;

/// Writes down what there is of a document that is about to be deleted in this transaction.
pub async fn open(
    tx: &mut Tx,
    workspace: WorkspaceId,
    document: DocumentId,
    held: &DocumentHoldings,
    by: UserId,
    now: Timestamp,
) -> Result<()> {
    execute!(
        tx,
        sqlx::query(insert_receipt!("VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, $9, 0)"))
            .bind(document)
            .bind(workspace)
            .bind(held.name.as_str())
            .bind(now)
            .bind(by)
            .bind(held.chunks)
            .bind(held.vectors)
            .bind(held.bytes)
            .bind(held.links)
    )?;
    Ok(())
}

/// Adds the entries of a generation that is forgotten in this transaction to its document's receipt.
pub(super) async fn add_entries(tx: &mut Tx, document: DocumentId, entries: i64) -> Result<()> {
    execute!(
        tx,
        sqlx::query("UPDATE deletion_receipts SET index_entries = index_entries + $2 WHERE document_id = $1")
            .bind(document)
            .bind(entries)
    )?;
    Ok(())
}

/// Passages are found by their generation, which is forgotten only when it has none: by their document all passages that there are would be
/// looked through, while nobody else can write.
pub(crate) const CLOSE: &str = "UPDATE deletion_receipts SET purged_at = $2,
         remaining = (SELECT COUNT(*) FROM generations WHERE document_id = $1)
             + (SELECT COUNT(*) FROM generations JOIN chunks ON chunks.generation_id = generations.id
                WHERE generations.document_id = $1)
             + (SELECT COUNT(*) FROM vectors WHERE document_id = $1)
             + (SELECT COUNT(*) FROM agent_documents WHERE document_id = $1)
             + (SELECT COUNT(*) FROM collection_documents WHERE document_id = $1)
     WHERE document_id = $1 AND purged_at IS NULL";

/// Says that nothing of a document is left, and looks whether that is so: in the transaction that forgets it.
pub(super) async fn close(tx: &mut Tx, document: DocumentId, now: Timestamp) -> Result<()> {
    execute!(tx, sqlx::query(CLOSE).bind(document).bind(now))?;
    Ok(())
}

/// The receipt of one of a workspace's deleted documents.
pub async fn find(db: &Db, workspace: WorkspaceId, document: DocumentId) -> Result<Option<DeletionReceipt>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT document_id, name, deleted_at, deleted_by, purged_at, passages, index_entries, vectors, bytes, links, remaining
         FROM deletion_receipts WHERE document_id = $1 AND workspace_id = $2"
    )
    .bind(document)
    .bind(workspace)
    .fetch_optional(c)
    })?)
}

/// Forgets receipts as lines of the audit log are forgotten; at most `limit`. None of a document of which something is left.
pub async fn expire(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<u64> {
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM deletion_receipts WHERE document_id IN (
                 SELECT document_id FROM deletion_receipts WHERE deleted_at < $1 AND purged_at IS NOT NULL
                 ORDER BY deleted_at LIMIT $2)"
        )
        .bind(now.minus(audit::KEPT_FOR))
        .bind(i64::from(limit))
    )
}
