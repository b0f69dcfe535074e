//! Documents that are alike.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{clock::Timestamp, ids::DocumentId, model::document::DuplicateDocument};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    openapi::SuccessResponse,
    response::{ApiResult, Paging, list as listed},
    services::documents::{DocumentService, DuplicateGroup},
};

/// Documents that are alike.
#[derive(Serialize, ToSchema)]
#[schema(as = DuplicateGroup)]
#[serde(rename_all = "camelCase")]
pub(super) struct DuplicateGroupView {
    /// In what: `bytes` (they are made of the same file) or `text` (their searchable text is the same).
    same: &'static str,
    /// The documents, the oldest first.
    documents: Vec<DuplicateView>,
}

/// One of them.
#[derive(Serialize, ToSchema)]
#[schema(as = DuplicateDocument)]
#[serde(rename_all = "camelCase")]
struct DuplicateView {
    /// Its id.
    #[schema(value_type = String)]
    id: DocumentId,
    /// Its name.
    name: String,
    /// Where its source is; empty for inline content and uploads.
    url: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<DuplicateGroup> for DuplicateGroupView {
    fn from(group: DuplicateGroup) -> Self {
        let view = |document: DuplicateDocument| DuplicateView {
            id: document.id,
            name: document.name,
            url: document.url,
            created_at: document.created_at,
        };
        Self {
            same: if group.has_same_bytes { "bytes" } else { "text" },
            documents: group.documents.into_iter().map(view).collect(),
        }
    }
}

fn example() -> Value {
    let document = |id: &str, name: &str| json!({"id": id, "name": name, "url": "", "createdAt": "2026-01-31T08:20:00.000000+00:00"});
    json!({
        "same": "text",
        "documents": [
            document("019a8f4a-3c55-7d90-b1f2-6e8a0c9d4b37", "Handbook"),
            document("019a8f4b-4d66-7ea1-82a3-7f9b1d0e5c48", "Handbook (copy)"),
        ],
    })
}

/// List duplicates
///
/// Names documents of the workspace that are made of the same bytes, or have the same text: up to 200 groups of each.
#[utoipa::path(
    get,
    path = "/documents/duplicates",
    tag = "Documents",
    operation_id = "listDuplicates",
    responses((
        status = 200,
        description = "Groups of documents that are alike",
        body = inline(SuccessResponse<Vec<DuplicateGroupView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
#[handler]
pub(super) async fn list(
    State(documents): State<DocumentService>,
    caller: Caller,
    paging: Paging,
) -> ApiResult {
    listed(paging, move |before, limit| {
        let (documents, actor) = (documents.clone(), caller.actor());
        async move {
            let groups = documents.duplicates(&actor, before, limit).await?;
            Ok(groups.into_iter().map(|group| (group.key, DuplicateGroupView::from(group))).collect())
        }
    })
    .await
}
