//! Receipts of deletions.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, UserId},
    model::receipt::DeletionReceipt,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    extract::PathId,
    openapi::SuccessResponse,
    response::{ApiResult, data},
    services::documents::DocumentService,
};

/// What was removed of a deleted document.
#[derive(Serialize, ToSchema)]
#[schema(as = DeletionReceipt)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReceiptView {
    /// The document that was.
    #[schema(value_type = String)]
    document_id: DocumentId,
    /// How it was called.
    name: String,
    /// When it was deleted: nothing finds it from then on.
    #[schema(value_type = String, format = DateTime)]
    deleted_at: Timestamp,
    /// The account that deleted it.
    #[schema(value_type = String)]
    deleted_by: UserId,
    /// When nothing of it was left; null until then.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    purged_at: Option<Timestamp>,
    /// What was removed.
    removed: RemovedView,
    /// What of it was found when it was looked for at the end, which is at `purgedAt`: 0. Nothing was looked for before, and it says 0 then, too.
    remaining: i64,
}

/// What was removed of a document.
#[derive(Serialize, ToSchema)]
#[schema(as = RemovedContent)]
#[serde(rename_all = "camelCase")]
struct RemovedView {
    /// Passages, those of replaced versions that were still stored included.
    passages: i64,
    /// Entries of the search index; they are counted as they are removed, so this grows until `purgedAt` is set.
    index_entries: i64,
    /// Vectors of passages.
    vectors: i64,
    /// Bytes that were stored of it, its file included.
    bytes: i64,
    /// Links to agents and collections.
    links: i64,
}

impl From<DeletionReceipt> for ReceiptView {
    fn from(receipt: DeletionReceipt) -> Self {
        Self {
            document_id: receipt.document_id,
            name: receipt.name,
            deleted_at: receipt.deleted_at,
            deleted_by: receipt.deleted_by,
            purged_at: receipt.purged_at,
            removed: RemovedView {
                passages: receipt.passages,
                index_entries: receipt.index_entries,
                vectors: receipt.vectors,
                bytes: receipt.bytes,
                links: receipt.links,
            },
            remaining: receipt.remaining,
        }
    }
}

fn example() -> Value {
    json!({
        "documentId": "019a8f4a-3c55-7d90-b1f2-6e8a0c9d4b37",
        "name": "Handbook",
        "deletedAt": "2026-01-31T08:20:00.000000+00:00",
        "deletedBy": "019a8f3e-0a1b-7c2d-8e3f-4a5b6c7d8e9f",
        "purgedAt": "2026-01-31T08:20:12.000000+00:00",
        "removed": {"passages": 128, "indexEntries": 128, "vectors": 128, "bytes": 481_280, "links": 2},
        "remaining": 0,
    })
}

/// Get the receipt of a deletion
///
/// Tells what was removed of a deleted document, who deleted it, and when nothing of it was left. Kept as the audit log is.
#[utoipa::path(
    get,
    path = "/documents/{id}/receipt",
    tag = "Documents",
    operation_id = "getDeletionReceipt",
    params(("id" = String, Path, description = "The id of the document that was")),
    responses((
        status = 200,
        description = "The receipt",
        body = inline(SuccessResponse<ReceiptView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
pub(super) async fn find(
    State(documents): State<DocumentService>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    Ok(data(ReceiptView::from(documents.receipt(&caller.actor(), id).await?)))
}
