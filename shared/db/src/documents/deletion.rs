//! Deleting a document as people see it: with a receipt, and told to webhooks.

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, UserId, WorkspaceId},
    model::webhook::WebhookEvent,
};
use serde_json::json;

use super::{
    bump_search_epoch, clearing,
    holdings::{DocumentHoldings, holdings, select_holdings},
};
use crate::{
    Result, Tx,
    receipts::{self, insert_receipt},
    silence, webhooks,
};

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
