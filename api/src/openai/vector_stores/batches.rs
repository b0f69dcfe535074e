//! Files that are put into a vector store at once.

use axum::{Json, extract::State, response::IntoResponse};
use lectern_db::collections::files::FileSelection;
use lectern_derive::handler;
use lectern_shared::ids::{CollectionId, FileBatchId};

use super::{
    super::files::{
        object_encoder,
        paging::{ObjectPage, StoreCursor},
    },
    bodies::NewFileBatch,
    files::QueriedStatus,
    polled, polled_creation,
    view::{FILE_ID, FileBatchObject, StoreFileObject, batch_example, file_example},
};
use crate::{
    auth::Caller,
    extract::{PathId, PathIds},
    idempotency::CreateRequest,
    openapi::{ApiRouter, routes},
    response::ApiResult,
    services::collections::{CollectionService, FileBatch},
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(find))
        .routes(routes!(cancel))
        .routes(routes!(index))
}

/// Put files into a vector store
///
/// Puts up to 500 files into it, all of them or, when one is not yours, none. While any of their ingestions goes on,
/// `openai-poll-after-ms` says when to ask again.
#[utoipa::path(
    post,
    path = "/vector_stores/{id}/file_batches",
    tag = "OpenAI-compatible",
    operation_id = "openaiCreateFileBatch",
    params(("id" = String, Path, description = "The vector store's id")),
    request_body(content = NewFileBatch, example = json!({
        "file_ids": ["019a8f44-7d20-7b61-a0c5-2f8e6d914b37"],
        "attributes": {"year": 2026},
    })),
    responses((status = 200, description = "The batch", body = inline(FileBatchObject), example = json!(batch_example()))),
)]
#[handler]
async fn create(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathId(id): PathId<CollectionId>,
    CreateRequest { body, once }: CreateRequest<NewFileBatch>,
) -> ApiResult {
    let show = object_encoder(|made: &FileBatch| FileBatchObject::from(*made));
    collections.add_batch(&caller.actor(), id, body.into(), once, show).await.map(polled_creation)
}

/// Get a batch of files
///
/// Shows where its files stand: those that no later batch has put into the vector store again.
#[utoipa::path(
    get,
    path = "/vector_stores/{id}/file_batches/{batchId}",
    tag = "OpenAI-compatible",
    operation_id = "openaiGetFileBatch",
    params(
        ("id" = String, Path, description = "The vector store's id"),
        ("batchId" = String, Path, description = "The batch's id"),
    ),
    responses((status = 200, description = "The batch", body = inline(FileBatchObject), example = json!(batch_example()))),
)]
#[handler]
async fn find(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathIds(id, batch): PathIds<CollectionId, FileBatchId>,
) -> ApiResult {
    let batch = FileBatchObject::from(collections.batch(&caller.actor(), id, batch).await?);
    let is_in_progress = batch.is_in_progress();
    Ok(polled(batch, is_in_progress))
}

/// Cancel a batch of files
///
/// Stops those ingestions of its files that still go on, but for files that another vector store has too, or that are linked to an agent. The
/// files stay in the vector store.
#[utoipa::path(
    post,
    path = "/vector_stores/{id}/file_batches/{batchId}/cancel",
    tag = "OpenAI-compatible",
    operation_id = "openaiCancelFileBatch",
    params(
        ("id" = String, Path, description = "The vector store's id"),
        ("batchId" = String, Path, description = "The batch's id"),
    ),
    responses((status = 200, description = "The batch as it is now", body = inline(FileBatchObject), example = json!(batch_example()))),
)]
#[handler]
async fn cancel(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathIds(id, batch): PathIds<CollectionId, FileBatchId>,
) -> ApiResult {
    let cancelled = collections.cancel_batch(&caller.actor(), id, batch).await?;
    Ok(Json(FileBatchObject::from(cancelled)).into_response())
}

/// List the files of a batch
///
/// Shows those of its files that no later batch has put into the vector store again, newest first.
#[utoipa::path(
    get,
    path = "/vector_stores/{id}/file_batches/{batchId}/files",
    tag = "OpenAI-compatible",
    operation_id = "openaiListFileBatchFiles",
    params(
        ("id" = String, Path, description = "The vector store's id"),
        ("batchId" = String, Path, description = "The batch's id"),
        ("limit" = Option<u32>, Query, description = "How many to give; 20 when left out", minimum = 1, maximum = 100),
        ("after" = Option<String>, Query, description = "The `last_id` of the page before"),
        ("before" = Option<String>, Query, description = "The `first_id` of the page behind"),
        ("order" = Option<String>, Query, description = "`desc`: newest first, as without it; `asc`: oldest first", pattern = "^(asc|desc)$"),
        ("filter" = Option<String>, Query, description = "Only files with this status", pattern = "^(in_progress|completed|failed|cancelled)$"),
    ),
    responses((
        status = 200,
        description = "The files",
        body = inline(ObjectPage<StoreFileObject>),
        example = json!({
            "object": "list",
            "data": [file_example()],
            "first_id": FILE_ID,
            "last_id": FILE_ID,
            "has_more": false,
        }),
    )),
)]
#[handler]
async fn index(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathIds(id, batch): PathIds<CollectionId, FileBatchId>,
    cursor: StoreCursor,
    QueriedStatus(states): QueriedStatus,
) -> ApiResult {
    let selection = FileSelection { batch: Some(batch), states };
    let files = collections.list_files(&caller.actor(), id, selection, &cursor.window()).await?;
    let files = files.into_iter().map(|file| StoreFileObject::new(id, file)).collect();
    Ok(Json(cursor.page(files)).into_response())
}
