//! Deleting a document as people see it: with a receipt, and told to webhooks.

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, UserId, WorkspaceId},
    model::webhook::WebhookEvent,
};
use serde_json::json;

use super::{DocumentHoldings, delete, find_in, holdings, lock};
use crate::{Result, Tx, receipts, webhooks};

/// [Deletes](delete) one of a workspace's documents in somebody's name, opens the receipt, and has it told. Returns what is to be
/// purged; none when there is no such document.
pub async fn delete_with_receipt(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
    by: UserId,
    now: Timestamp,
) -> Result<Option<DocumentHoldings>> {
    if !lock(tx, workspace, id).await? {
        return Ok(None);
    }
    let (held, document) = (holdings(tx, workspace, id).await?, find_in(tx, workspace, id).await?);
    let (Some(held), Some(document)) = (held, document) else { return Ok(None) };
    receipts::open(tx, workspace, id, by, now).await?;
    let told = json!({"documentId": id, "name": document.name, "deletedBy": by});
    webhooks::emit(tx, workspace, WebhookEvent::DocumentDeleted, &told, now).await?;
    Ok(delete(tx, workspace, id, now, now).await?.then_some(held))
}
