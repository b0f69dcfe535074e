//! Deleting a document as people see it: with a receipt, and told to webhooks.

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, UserId, WorkspaceId},
    model::webhook::WebhookEvent,
};
use serde_json::json;

use super::{bump_search_epoch, clearing};
use crate::{
    Result, Tx,
    receipts::{self, insert_receipt},
    silence, webhooks,
};

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

/// What there is of a document whose receipt is open.
#[derive(sqlx::FromRow)]
struct OpenedReceipt {
    #[sqlx(flatten)]
    held: DocumentHoldings,
    /// Whether anybody may want to be told of the deletion.
    has_webhooks: bool,
}

const HOLD_AND_OPEN: &str = concat!(
    "WITH held AS (",
    select_holdings!(" FOR NO KEY UPDATE OF d"),
    "), opened AS (",
    insert_receipt!("SELECT $1, $2, name, $3, $4, chunks, 0, vectors, bytes, links, 0 FROM held"),
    ") SELECT held.*, EXISTS (SELECT 1 FROM webhooks WHERE workspace_id = $2 AND active) AS has_webhooks FROM held"
);

/// Opens the receipt of one of a workspace's documents by its [`holdings`]; none when there is no such document.
async fn open_receipt(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
    by: UserId,
    now: Timestamp,
) -> Result<Option<OpenedReceipt>> {
    if let Tx::Postgres(tx) = tx {
        // In one round trip, since others wait for the workspace's row meanwhile.
        let opened = sqlx::query_as(HOLD_AND_OPEN).bind(id).bind(workspace).bind(now).bind(by);
        return Ok(silence::answered(opened.fetch_optional(&mut **tx)).await?);
    }
    let Some(held) = holdings(tx, workspace, id).await? else { return Ok(None) };
    receipts::open(tx, workspace, id, &held, by, now).await?;
    Ok(Some(OpenedReceipt { held, has_webhooks: true }))
}

/// [Deletes](super::delete) one of a workspace's documents in somebody's name, opens the receipt, and has it told. Returns what is to be
/// purged; none when there is no such document.
pub async fn delete_with_receipt(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
    by: UserId,
    now: Timestamp,
) -> Result<Option<DocumentHoldings>> {
    // Locks the workspace, which comes first in the order of locks.
    bump_search_epoch(tx, workspace).await?;
    let opened = open_receipt(tx, workspace, id, by, now).await?;
    let Some(OpenedReceipt { held, has_webhooks }) = opened else { return Ok(None) };
    if has_webhooks {
        let told = json!({"documentId": id, "name": held.name, "deletedBy": by});
        webhooks::emit(tx, workspace, WebhookEvent::DocumentDeleted, &told, now).await?;
    }
    Ok(clearing::delete_one(tx, workspace, id, now, now).await?.then_some(held))
}
