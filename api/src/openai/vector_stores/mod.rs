//! `/v1/vector_stores`: every collection of the workspace is a vector store, and the documents in it are its files.

mod batches;
mod bodies;
mod files;
mod schema;
mod search;
mod view;

use axum::{
    Json,
    extract::State,
    http::{HeaderName, HeaderValue},
    response::{IntoResponse, Response},
};
use lectern_derive::handler;
use lectern_shared::ids::CollectionId;
use serde::Serialize;
use serde_json::Value;

use self::{
    bodies::{NewVectorStore, VectorStoreChange},
    view::{DeletedObject, IN_PROGRESS, STORE_ID, VectorStoreObject, store_example},
};
use super::files::{
    object_encoder,
    paging::{ObjectPage, StoreCursor},
};
use crate::{
    auth::Caller,
    extract::{PathId, ValidJson},
    idempotency::{CreateRequest, creation_response},
    openapi::{ApiRouter, routes},
    response::ApiResult,
    services::{
        collections::{CollectionService, CollectionWithFiles},
        creation::CreationOutcome,
    },
};

/// Tells a client that polls when to ask again.
const POLL_AFTER: HeaderName = HeaderName::from_static("openai-poll-after-ms");

pub(super) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(find, change, remove))
        .merge(files::router())
        .merge(batches::router())
        .merge(search::router())
}

/// An answer to somebody who waits for the end of something.
fn polled(object: impl Serialize, is_in_progress: bool) -> Response {
    poll_after(Json(object).into_response(), is_in_progress)
}

/// The answer to somebody who made something, and may wait for its end.
fn polled_creation(created: CreationOutcome) -> Response {
    let (CreationOutcome::Now(told) | CreationOutcome::Before(told)) = &created;
    let is_in_progress =
        serde_json::from_slice::<Value>(told).is_ok_and(|object| object["status"] == IN_PROGRESS);
    poll_after(creation_response(created), is_in_progress)
}

fn poll_after(mut response: Response, is_in_progress: bool) -> Response {
    if is_in_progress {
        response.headers_mut().insert(POLL_AFTER, HeaderValue::from_static("500"));
    }
    response
}

/// Create a vector store
///
/// Makes a collection. The files that are named are in it at once; when one of them is not yours, nothing is made.
#[utoipa::path(
    post,
    path = "/vector_stores",
    tag = "OpenAI-compatible",
    operation_id = "openaiCreateVectorStore",
    request_body(content = NewVectorStore, example = json!({
        "name": "Handbooks",
        "file_ids": ["019a8f44-7d20-7b61-a0c5-2f8e6d914b37"],
        "metadata": {"team": "people"},
    })),
    responses(
        (status = 200, description = "The new vector store", body = inline(VectorStoreObject), example = json!(store_example())),
        (status = 404, description = "A file is not there"),
    ),
)]
#[handler]
async fn create(
    State(collections): State<CollectionService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewVectorStore>,
) -> ApiResult {
    let show = object_encoder(|made: &CollectionWithFiles| VectorStoreObject::from(made.clone()));
    let created = collections.create_with_files(&caller.actor(), body.into(), once, show).await;
    created.map(creation_response)
}

/// List vector stores
///
/// Shows every collection of the workspace as a vector store, newest first.
#[utoipa::path(
    get,
    path = "/vector_stores",
    tag = "OpenAI-compatible",
    operation_id = "openaiListVectorStores",
    params(
        ("limit" = Option<u32>, Query, description = "How many to give; 20 when left out", minimum = 1, maximum = 100),
        ("after" = Option<String>, Query, description = "The `last_id` of the page before"),
        ("before" = Option<String>, Query, description = "The `first_id` of the page behind"),
        ("order" = Option<String>, Query, description = "`desc`: newest first, as without it; `asc`: oldest first", pattern = "^(asc|desc)$"),
    ),
    responses((
        status = 200,
        description = "The vector stores",
        body = inline(ObjectPage<VectorStoreObject>),
        example = json!({
            "object": "list",
            "data": [store_example()],
            "first_id": STORE_ID,
            "last_id": STORE_ID,
            "has_more": false,
        }),
    )),
)]
#[handler]
async fn index(
    State(collections): State<CollectionService>,
    caller: Caller,
    cursor: StoreCursor,
) -> ApiResult {
    let found = collections.list_with_files(&caller.actor(), &cursor.window()).await?;
    Ok(Json(cursor.page(found.into_iter().map(VectorStoreObject::from).collect())).into_response())
}

/// Get a vector store
///
/// Shows one vector store, with where its files stand.
#[utoipa::path(
    get,
    path = "/vector_stores/{id}",
    tag = "OpenAI-compatible",
    operation_id = "openaiGetVectorStore",
    params(("id" = String, Path, description = "The vector store's id")),
    responses((status = 200, description = "The vector store", body = inline(VectorStoreObject), example = json!(store_example()))),
)]
#[handler]
async fn find(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathId(id): PathId<CollectionId>,
) -> ApiResult {
    let found = collections.find_with_files(&caller.actor(), id).await?;
    Ok(Json(VectorStoreObject::from(found)).into_response())
}

/// Change a vector store
///
/// Changes the name and the metadata, as far as they are given.
#[utoipa::path(
    post,
    path = "/vector_stores/{id}",
    tag = "OpenAI-compatible",
    operation_id = "openaiChangeVectorStore",
    params(("id" = String, Path, description = "The vector store's id")),
    request_body(content = VectorStoreChange, example = json!({"name": "Handbooks"})),
    responses((
        status = 200,
        description = "The vector store as it is now",
        body = inline(VectorStoreObject),
        example = json!(store_example()),
    )),
)]
#[handler]
async fn change(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathId(id): PathId<CollectionId>,
    ValidJson(change): ValidJson<VectorStoreChange>,
) -> ApiResult {
    let (name, metadata) = change.into_parts();
    let changed = collections.relabel(&caller.actor(), id, name, metadata).await?;
    Ok(Json(VectorStoreObject::from(changed)).into_response())
}

/// Delete a vector store
///
/// Its files stay.
#[utoipa::path(
    delete,
    path = "/vector_stores/{id}",
    tag = "OpenAI-compatible",
    operation_id = "openaiDeleteVectorStore",
    params(("id" = String, Path, description = "The vector store's id")),
    responses((
        status = 200,
        description = "It is gone",
        body = inline(DeletedObject),
        example = json!({"id": STORE_ID, "object": "vector_store.deleted", "deleted": true}),
    )),
)]
#[handler]
async fn remove(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathId(id): PathId<CollectionId>,
) -> ApiResult {
    collections.delete(&caller.actor(), id).await?;
    let gone = DeletedObject { id: id.to_string(), object: "vector_store.deleted", deleted: true };
    Ok(Json(gone).into_response())
}
