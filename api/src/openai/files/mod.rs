//! `/v1/files`: every document of the workspace is a file, however it was made.

pub(super) mod paging;
mod upload;
mod view;

use axum::{
    Json,
    extract::{FromRequestParts, State},
    http::{HeaderMap, HeaderValue, header, request::Parts},
    response::IntoResponse,
};
use lectern_derive::handler;
use lectern_shared::ids::DocumentId;
use serde::Serialize;
use utoipa::ToSchema;

pub(super) use self::upload::expiry;
use self::{
    paging::{FileCursor, ObjectPage},
    upload::PURPOSES,
    view::{DeletedFile, FileObject, example},
};
use crate::{
    auth::Caller,
    error::ApiError,
    extract::{PathId, parameter},
    openapi::{ApiRouter, routes},
    response::ApiResult,
    services::{
        creation::ResponseEncoder,
        documents::{DocumentService, SourceContent},
    },
    source_file,
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index))
        .routes(routes!(find, remove))
        .routes(routes!(content))
        .merge(upload::router())
}

/// Tells what was made by how it is shown.
pub(super) fn object_encoder<T, V: Serialize>(
    view: impl Fn(&T) -> V + Send + Sync,
) -> impl ResponseEncoder<T> {
    move |made: &T| {
        serde_json::to_vec(&view(made)).map_err(|error| {
            tracing::error!(%error, "an answer cannot be written as JSON");
            ApiError::internal()
        })
    }
}

/// What the files are for that are asked for.
struct QueriedPurpose(Option<String>);

impl<S: Sync> FromRequestParts<S> for QueriedPurpose {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(parameter(&parts.uri, "purpose")))
    }
}

impl QueriedPurpose {
    /// Whether no file is for it.
    fn is_of_none(&self) -> bool {
        self.0.as_deref().is_some_and(|purpose| !PURPOSES.contains(&purpose))
    }
}

/// List files
///
/// Shows every document of the workspace as a file, newest first.
#[utoipa::path(
    get,
    path = "/files",
    tag = "OpenAI-compatible",
    operation_id = "openaiListFiles",
    params(
        ("limit" = Option<u32>, Query, description = "How many to give; 10,000 when left out", minimum = 1, maximum = 10_000),
        ("after" = Option<String>, Query, description = "The `last_id` of the page before"),
        ("before" = Option<String>, Query, description = "The `first_id` of the page behind"),
        ("order" = Option<String>, Query, description = "`desc`: newest first, as without it; `asc`: oldest first", pattern = "^(asc|desc)$"),
        ("purpose" = Option<String>, Query, description = "Only files for this: all are for `assistants` and for `user_data`, which are the same here"),
    ),
    responses((
        status = 200,
        description = "The files",
        body = inline(ObjectPage<FileObject>),
        example = json!({
            "object": "list",
            "data": [example()],
            "first_id": "019a8f44-7d20-7b61-a0c5-2f8e6d914b37",
            "last_id": "019a8f44-7d20-7b61-a0c5-2f8e6d914b37",
            "has_more": false,
        }),
    )),
)]
#[handler]
async fn index(
    State(documents): State<DocumentService>,
    caller: Caller,
    cursor: FileCursor,
    purpose: QueriedPurpose,
) -> ApiResult {
    let mut files = documents.files(&caller.actor(), &cursor.window()).await?;
    if purpose.is_of_none() {
        files.clear();
    }
    Ok(Json(cursor.page(files.into_iter().map(FileObject::from).collect())).into_response())
}

/// Get a file
///
/// Shows one file, without its content.
#[utoipa::path(
    get,
    path = "/files/{id}",
    tag = "OpenAI-compatible",
    operation_id = "openaiGetFile",
    params(("id" = String, Path, description = "The file's id")),
    responses((status = 200, description = "The file", body = inline(FileObject), example = json!(example()))),
)]
#[handler]
async fn find(
    State(documents): State<DocumentService>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    Ok(Json(FileObject::from(documents.as_file(&caller.actor(), id).await?)).into_response())
}

/// Delete a file
///
/// Deletes its document with everything that is stored of it. Every vector store and agent loses it at once.
#[utoipa::path(
    delete,
    path = "/files/{id}",
    tag = "OpenAI-compatible",
    operation_id = "openaiDeleteFile",
    params(("id" = String, Path, description = "The file's id")),
    responses((
        status = 200,
        description = "It is gone",
        body = inline(DeletedFile),
        example = json!({"id": "019a8f44-7d20-7b61-a0c5-2f8e6d914b37", "object": "file", "deleted": true}),
    )),
)]
#[handler]
async fn remove(
    State(documents): State<DocumentService>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    documents.delete(&caller.actor(), id).await?;
    Ok(Json(DeletedFile { id, object: "file", deleted: true }).into_response())
}

/// Bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it is written down for the documentation only")]
struct FileBytesSchema(Vec<u8>);

/// Get a file's content
///
/// Gives back the bytes that were uploaded, or the text that the document was made with. A document that is at an address has none.
#[utoipa::path(
    get,
    path = "/files/{id}/content",
    tag = "OpenAI-compatible",
    operation_id = "openaiGetFileContent",
    params(("id" = String, Path, description = "The file's id")),
    responses(
        (
            status = 200,
            description = "The content, as it came",
            content((inline(FileBytesSchema) = "*/*")),
            headers(
                ("Content-Disposition" = String, description = "With an upload: a name to save it under"),
                ("ETag" = String, description = "With an upload: SHA-256 of it, in hexadecimal"),
            ),
        ),
        (status = 304, description = "The file is the one that `If-None-Match` names"),
    ),
)]
#[handler]
async fn content(
    State(documents): State<DocumentService>,
    caller: Caller,
    headers: HeaderMap,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    match documents.source_content(&caller.actor(), id).await? {
        SourceContent::File(file) => source_file::answer(&documents, id, &file, &headers).await,
        SourceContent::Text(text) => {
            let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))];
            Ok((headers, text).into_response())
        }
    }
}
