//! The file that a document was uploaded with.

use axum::{extract::State, http::HeaderMap};
use lectern_derive::handler;
use lectern_shared::ids::DocumentId;
use utoipa::ToSchema;

use crate::{
    auth::Caller, extract::PathId, response::ApiResult, services::documents::DocumentService, source_file,
};

/// Bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it is written down for the documentation only")]
struct SourceFileSchema(Vec<u8>);

/// Get a document's file
///
/// Gives back the bytes that the document was uploaded with, under the media type that was told when they came. `ETag` is their
/// SHA-256; with `If-None-Match`, the answer is 304 when they are the same. A document that was not uploaded has no file.
#[utoipa::path(
    get,
    path = "/documents/{id}/source",
    tag = "Documents",
    operation_id = "getDocumentSource",
    params(("id" = String, Path, description = "The document's id")),
    responses(
        (
            status = 200,
            description = "The file, as it was uploaded",
            content((inline(SourceFileSchema) = "*/*")),
            headers(
                ("Content-Disposition" = String, description = "A name to save the file under"),
                ("ETag" = String, description = "SHA-256 of the file, in hexadecimal"),
            ),
        ),
        (status = 304, description = "The file is the one that `If-None-Match` names"),
    ),
)]
#[handler]
pub(super) async fn download(
    State(documents): State<DocumentService>,
    caller: Caller,
    headers: HeaderMap,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    let file = documents.file(&caller.actor(), id).await?;
    source_file::answer(&documents, id, &file, &headers).await
}
