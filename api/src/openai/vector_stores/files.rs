//! The files of a vector store.

use axum::{
    Json,
    extract::{FromRequestParts, State},
    http::request::Parts,
    response::IntoResponse,
};
use lectern_db::collections::files::FileSelection;
use lectern_derive::handler;
use lectern_shared::{
    ids::{CollectionId, DocumentId},
    model::{collection::CollectionFile, job::JobState},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    super::files::{
        object_encoder,
        paging::{ObjectPage, StoreCursor},
    },
    bodies::{NewStoreFile, StoreFileChange},
    polled, polled_creation,
    view::{DeletedObject, FILE_ID, StoreFileObject, file_example, states},
};
use crate::{
    auth::Caller,
    error::ApiError,
    extract::{PathId, PathIds, ValidJson, parameter},
    idempotency::CreateRequest,
    openapi::{ApiRouter, routes},
    response::ApiResult,
    services::collections::CollectionService,
};

/// Passages of a file at a time, at most and when nothing is said: clients ask for one page alone.
const PASSAGES: u32 = 500;

pub(super) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index, add))
        .routes(routes!(find, describe, take_out))
        .routes(routes!(content))
}

/// Where the files stand that are asked for.
pub(super) struct QueriedStatus(pub(super) Option<(JobState, JobState)>);

impl<S: Sync> FromRequestParts<S> for QueriedStatus {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let Some(status) = parameter(&parts.uri, "filter") else { return Ok(Self(None)) };
        let wrong =
            || ApiError::invalid_field("filter", "must be one of in_progress, completed, failed, cancelled");
        states(&status).map(|states| Self(Some(states))).ok_or_else(wrong)
    }
}

/// Put a file into a vector store
///
/// One that is in it already gets the attributes. One of which nothing can be searched since its ingestion failed or was cancelled is ingested
/// again. The agents that are linked to the collection answer from it at once. While the file's ingestion goes on, `openai-poll-after-ms` says
/// when to ask again.
#[utoipa::path(
    post,
    path = "/vector_stores/{id}/files",
    tag = "OpenAI-compatible",
    operation_id = "openaiAddVectorStoreFile",
    params(("id" = String, Path, description = "The vector store's id")),
    request_body(content = NewStoreFile, example = json!({
        "file_id": "019a8f44-7d20-7b61-a0c5-2f8e6d914b37",
        "attributes": {"year": 2026},
    })),
    responses((status = 200, description = "The file", body = inline(StoreFileObject), example = json!(file_example()))),
)]
#[handler]
async fn add(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathId(id): PathId<CollectionId>,
    CreateRequest { body, once }: CreateRequest<NewStoreFile>,
) -> ApiResult {
    let show = object_encoder(move |added: &CollectionFile| StoreFileObject::new(id, added.clone()));
    collections.add_file(&caller.actor(), id, body.into(), once, show).await.map(polled_creation)
}

/// List the files of a vector store
///
/// Shows every file that is in it, newest first.
#[utoipa::path(
    get,
    path = "/vector_stores/{id}/files",
    tag = "OpenAI-compatible",
    operation_id = "openaiListVectorStoreFiles",
    params(
        ("id" = String, Path, description = "The vector store's id"),
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
    PathId(id): PathId<CollectionId>,
    cursor: StoreCursor,
    QueriedStatus(states): QueriedStatus,
) -> ApiResult {
    let selection = FileSelection { batch: None, states };
    let files = collections.list_files(&caller.actor(), id, selection, &cursor.window()).await?;
    let files = files.into_iter().map(|file| StoreFileObject::new(id, file)).collect();
    Ok(Json(cursor.page(files)).into_response())
}

/// Get a file of a vector store
///
/// Shows one file. While its ingestion goes on, `openai-poll-after-ms` says when to ask again.
#[utoipa::path(
    get,
    path = "/vector_stores/{id}/files/{fileId}",
    tag = "OpenAI-compatible",
    operation_id = "openaiGetVectorStoreFile",
    params(
        ("id" = String, Path, description = "The vector store's id"),
        ("fileId" = String, Path, description = "The file's id"),
    ),
    responses((status = 200, description = "The file", body = inline(StoreFileObject), example = json!(file_example()))),
)]
#[handler]
async fn find(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathIds(id, file): PathIds<CollectionId, DocumentId>,
) -> ApiResult {
    let file = StoreFileObject::new(id, collections.file(&caller.actor(), id, file).await?);
    let is_in_progress = file.is_in_progress();
    Ok(polled(file, is_in_progress))
}

/// Change the attributes of a file
///
/// What is given takes the place of all earlier attributes, and null takes them away. It counts at once, wherever the file is searched.
#[utoipa::path(
    post,
    path = "/vector_stores/{id}/files/{fileId}",
    tag = "OpenAI-compatible",
    operation_id = "openaiChangeVectorStoreFile",
    params(
        ("id" = String, Path, description = "The vector store's id"),
        ("fileId" = String, Path, description = "The file's id"),
    ),
    request_body(content = StoreFileChange, example = json!({"attributes": {"year": 2026}})),
    responses((status = 200, description = "The file as it is now", body = inline(StoreFileObject), example = json!(file_example()))),
)]
#[handler]
async fn describe(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathIds(id, file): PathIds<CollectionId, DocumentId>,
    ValidJson(change): ValidJson<StoreFileChange>,
) -> ApiResult {
    let changed = collections.describe_file(&caller.actor(), id, file, change.into()).await?;
    Ok(Json(StoreFileObject::new(id, changed)).into_response())
}

/// Take a file out of a vector store
///
/// The file itself stays, and so do its other vector stores.
#[utoipa::path(
    delete,
    path = "/vector_stores/{id}/files/{fileId}",
    tag = "OpenAI-compatible",
    operation_id = "openaiRemoveVectorStoreFile",
    params(
        ("id" = String, Path, description = "The vector store's id"),
        ("fileId" = String, Path, description = "The file's id"),
    ),
    responses((
        status = 200,
        description = "It is not in it any more",
        body = inline(DeletedObject),
        example = json!({"id": FILE_ID, "object": "vector_store.file.deleted", "deleted": true}),
    )),
)]
#[handler]
async fn take_out(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathIds(id, file): PathIds<CollectionId, DocumentId>,
) -> ApiResult {
    collections.take_out(&caller.actor(), id, file).await?;
    let gone = DeletedObject { id: file.to_string(), object: "vector_store.file.deleted", deleted: true };
    Ok(Json(gone).into_response())
}

/// What is searched of a file.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiFileContent)]
struct FileContentPage {
    /// Always `vector_store.file_content.page`.
    object: &'static str,
    /// Its passages, in the order of the source. Each repeats some of the one before.
    data: Vec<TextContent>,
    /// Whether there are more.
    has_more: bool,
    /// What `page` takes to get them.
    #[schema(required = true)]
    next_page: Option<String>,
}

/// A text.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiTextContent)]
pub(super) struct TextContent {
    /// Always `text`.
    r#type: &'static str,
    /// What it says.
    text: String,
}

impl TextContent {
    pub(super) fn new(text: String) -> Self {
        Self { r#type: "text", text }
    }
}

/// Where a page of passages begins.
struct PassagePage(i64);

impl<S: Sync> FromRequestParts<S> for PassagePage {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match parameter(&parts.uri, "page").map(|text| text.parse()) {
            None => Ok(Self(0)),
            Some(Ok(from @ 0..)) => Ok(Self(from)),
            Some(Ok(_) | Err(_)) => {
                Err(ApiError::invalid_field("page", "must be the next_page of an earlier answer"))
            }
        }
    }
}

/// Get what is searched of a file
///
/// Shows the texts of its passages, at most 500 at a time; none before it is `completed`.
#[utoipa::path(
    get,
    path = "/vector_stores/{id}/files/{fileId}/content",
    tag = "OpenAI-compatible",
    operation_id = "openaiGetVectorStoreFileContent",
    params(
        ("id" = String, Path, description = "The vector store's id"),
        ("fileId" = String, Path, description = "The file's id"),
        ("page" = Option<String>, Query, description = "The `next_page` of the page before"),
    ),
    responses((
        status = 200,
        description = "Texts of passages",
        body = inline(FileContentPage),
        example = json!({
            "object": "vector_store.file_content.page",
            "data": [{"type": "text", "text": "Every new colleague has a mentor for the first three months."}],
            "has_more": false,
            "next_page": null,
        }),
    )),
)]
#[handler]
async fn content(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathIds(id, file): PathIds<CollectionId, DocumentId>,
    PassagePage(from): PassagePage,
) -> ApiResult {
    // One passage more than is shown tells where the next page begins.
    let mut passages = collections.file_passages(&caller.actor(), id, file, from, PASSAGES + 1).await?;
    let next = passages.get(PASSAGES as usize).map(|passage| passage.ordinal.to_string());
    passages.truncate(PASSAGES as usize);
    let page = FileContentPage {
        object: "vector_store.file_content.page",
        data: passages.into_iter().map(|passage| TextContent::new(passage.text)).collect(),
        has_more: next.is_some(),
        next_page: next,
    };
    Ok(Json(page).into_response())
}
