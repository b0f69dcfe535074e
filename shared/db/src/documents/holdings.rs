//! What there is of a document: what its deletion has to remove, and its receipt tells.

use lectern_shared::ids::{DocumentId, WorkspaceId};

use crate::{Result, Tx, silence};

/// What there is of a document that is about to be deleted.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct DocumentHoldings {
    /// How it is called.
    pub name: String,
    /// Generations, those included that no search reads any more.
    pub generations: i64,
    /// Passages in all of them.
    pub chunks: i64,
    /// Passages that have a vector.
    pub vectors: i64,
    /// Bytes that are stored of it.
    pub bytes: i64,
    /// Blobs: 1 for an uploaded document.
    pub blobs: i64,
    /// Links to agents and collections.
    pub links: i64,
}

/// Passages are gone through once, since others wait for the workspace's row meanwhile.
macro_rules! select_holdings {
    ($lock:literal) => {
        concat!(
            "SELECT d.name, made.generations, kept.chunks, kept.vectors, d.stored_bytes + made.bytes AS bytes,
                    CAST(CASE WHEN d.blob_key IS NULL THEN 0 ELSE 1 END AS BIGINT) AS blobs,
                    (SELECT COUNT(*) FROM agent_documents a WHERE a.document_id = d.id)
                        + (SELECT COUNT(*) FROM collection_documents m WHERE m.document_id = d.id) AS links
             FROM documents d
             CROSS JOIN (SELECT COUNT(*) AS generations, CAST(COALESCE(SUM(stored_bytes), 0) AS BIGINT) AS bytes
                         FROM generations WHERE document_id = $1) AS made
             CROSS JOIN (SELECT COUNT(*) AS chunks, COUNT(g.embedding_space) AS vectors
                         FROM generations g JOIN chunks c ON c.generation_id = g.id WHERE g.document_id = $1) AS kept
             WHERE d.id = $1 AND d.workspace_id = $2 AND d.deleted_at IS NULL",
            $lock
        )
    };
}
pub(super) use select_holdings;

/// What there is of one of a workspace's documents, which stays as it is until the transaction ends; none when there is no such document.
/// The workspace must be [locked](crate::locks::lock_workspace).
pub async fn holdings(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
) -> Result<Option<DocumentHoldings>> {
    Ok(match tx {
        // Locked as an update would.
        Tx::Postgres(tx) => {
            let held = sqlx::query_as(select_holdings!(" FOR NO KEY UPDATE OF d")).bind(id).bind(workspace);
            silence::answered(held.fetch_optional(&mut **tx)).await?
        }
        Tx::Sqlite(tx) => {
            let held = sqlx::query_as(select_holdings!("")).bind(id).bind(workspace);
            held.fetch_optional(&mut **tx).await?
        }
    })
}
