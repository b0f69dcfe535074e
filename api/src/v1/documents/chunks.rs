//! The passages of a document.

use axum::{Json, extract::State, response::IntoResponse};
use lectern_derive::handler;
use lectern_shared::ids::DocumentId;
use serde::Serialize;
use utoipa::ToSchema;

use super::{number_paging::NumberPaging, view::ChunkView};
use crate::{auth::Caller, extract::PathId, response::ApiResult, services::documents::DocumentService};

/// Some of a document's passages.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChunkPage {
    /// True when the call succeeded.
    success: bool,
    /// The passages, in the order of the source.
    data: Vec<ChunkView>,
    /// Where the next page begins; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// List a document's passages
///
/// Shows what is searched of a document, in the order of the source, at most 200 passages at a time; none before its first
/// ingestion has succeeded. Askers, and API tokens that are bound to an agent, see the passages that were cited to them.
#[utoipa::path(
    get,
    path = "/documents/{id}/chunks",
    tag = "Documents",
    operation_id = "listDocumentChunks",
    params(
        ("id" = String, Path, description = "The document's id"),
        ("limit" = Option<u32>, Query, description = "Passages at a time", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before"),
    ),
    responses((
        status = 200,
        description = "Passages",
        body = inline(ChunkPage),
        example = json!({
            "success": true,
            "data": [{
                "chunkId": "6f1c2a6e-0d8e-5b0f-9a55-0c1f7f1d2b90",
                "ordinal": 0,
                "text": "Every new colleague has a mentor for the first three months.",
                "place": {"page": 3, "pageEnd": 3, "charStart": 1804, "charEnd": 1864},
                "tokens": 13,
            }],
            "nextCursor": "1",
        }),
    )),
)]
#[handler]
pub(super) async fn list(
    State(documents): State<DocumentService>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
    paging: NumberPaging,
) -> ApiResult {
    // One passage more than is shown tells that there are more.
    let mut chunks = documents.chunks(&caller.actor(), id, paging.from, paging.limit + 1).await?;
    let more = chunks.len() > paging.limit as usize;
    chunks.truncate(paging.limit as usize);
    let next_cursor = chunks.last().filter(|_| more).map(|chunk| (chunk.ordinal + 1).to_string());
    let data = chunks.into_iter().map(ChunkView::from).collect();
    Ok(Json(ChunkPage { success: true, data, next_cursor }).into_response())
}
