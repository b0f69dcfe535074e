//! Changing a document.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::ids::DocumentId;

use super::view::{self, DocumentView};
use crate::{
    auth::Caller,
    extract::{PathId, ValidJson},
    openapi::SuccessResponse,
    response::{ApiResult, data},
    services::{
        documents::{DocumentChange, DocumentService},
        edits::EditBase,
    },
};

/// Change a document
///
/// Changes what is given and leaves the rest as it is. `type` cannot be changed; an uploaded document gets another file by
/// `PUT /documents/{id}/file`. A new `url` takes the place of the content, and new `content` the place of the url. A `url` at another
/// host than the one that `authorization` was given for needs that anew, or null; without an address it is forgotten.
///
/// A change of `name`, `url`, `content`, `from_page`, `to_page`, `splitter` or `authorization` queues the document to be
/// ingested again, if it really is one; until that has succeeded, searches find it as it was. `metadata` and `description`
/// apply at once.
#[utoipa::path(
    patch,
    path = "/documents/{id}",
    tag = "Documents",
    operation_id = "updateDocument",
    params(("id" = String, Path, description = "The document's id")),
    request_body(content = DocumentChange, example = json!({"name": "Handbook", "metadata": {"department": "people", "year": 2026}})),
    responses((
        status = 200,
        description = "The document as it is now",
        body = inline(SuccessResponse<DocumentView>),
        example = json!({"success": true, "data": view::example()}),
    )),
)]
#[handler]
pub(super) async fn change(
    State(documents): State<DocumentService>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
    ValidJson(change): ValidJson<DocumentChange>,
) -> ApiResult {
    Ok(data(DocumentView::from(documents.change(&caller.actor(), id, change, EditBase::Present).await?)))
}
