//! Documents and their ingestion.

mod change;
mod chunks;
mod duplicates;
mod events;
mod number_paging;
mod pages;
mod receipt;
mod source;
mod upload;
mod view;

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::ids::DocumentId;

use self::view::DocumentWithContent;
pub(super) use self::view::{DocumentView, SplitterView, example as document_example};
pub(crate) use self::view::{ErrorView, ProgressView, WarningView};
pub(crate) use self::{
    pages::image_response,
    upload::{ReceivedForm, receive as receive_upload},
};
use crate::{
    auth::Caller,
    extract::{NamePart, PathId},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, ListRow, Paging, data, list},
    services::documents::{DocumentDetails, DocumentService, FullDocument, NewDocument},
    v1::users::NullBody,
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(duplicates::list))
        .routes(routes!(find, change::change, remove))
        .routes(routes!(chunks::list))
        .routes(routes!(ingest))
        .routes(routes!(cancel))
        .routes(routes!(events::follow))
        .routes(routes!(source::download))
        .routes(routes!(pages::list))
        .routes(routes!(pages::show))
        .routes(routes!(receipt::find))
        .merge(upload::router())
}

/// Create a document
///
/// Makes a document of what is at an address, or of a text, and queues it to be ingested. The answer does not wait for that:
/// read the document again until `ingestion.status` is `SUCCEEDED` or `FAILED`, or follow its events.
#[utoipa::path(
    post,
    path = "/documents",
    tag = "Documents",
    operation_id = "createDocument",
    request_body(
        content = NewDocument,
        example = json!({
            "name": "Handbook",
            "type": "PDF",
            "url": "https://example.com/handbook.pdf",
            "description": "What every new colleague reads",
            "from_page": 1,
            "to_page": "40",
            "metadata": {"department": "people", "year": 2026},
            "authorization": null,
            "splitter": null,
            "collectionIds": ["019a8f3e-6c41-7a90-b2d7-3e5f7a9b1c2d"],
        }),
    ),
    responses((
        status = 200,
        description = "The new document",
        body = inline(SuccessResponse<DocumentView>),
        example = json!({"success": true, "data": view::queued_example()}),
    )),
)]
#[handler]
async fn create(
    State(documents): State<DocumentService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewDocument>,
) -> ApiResult {
    let show = json_encoder(|made: &DocumentDetails| Ok(DocumentView::from(made.clone())));
    documents.create(&caller.actor(), body, once, show).await.map(creation_response)
}

/// List your documents
///
/// Shows every document, newest first, without its content.
#[utoipa::path(
    get,
    path = "/documents",
    tag = "Documents",
    operation_id = "listDocuments",
    params(("name" = Option<String>, Query, description = "Only those whose names have this somewhere, in whichever case", max_length = 1_000)),
    responses((
        status = 200,
        description = "Your documents",
        body = inline(SuccessResponse<Vec<DocumentView>>),
        example = json!({"success": true, "data": [view::example()]}),
    )),
)]
#[handler]
async fn index(
    State(documents): State<DocumentService>,
    caller: Caller,
    paging: Paging,
    NamePart(name): NamePart,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (documents, actor, name) = (documents.clone(), caller.actor(), name.clone());
        async move {
            let documents = documents.list_named(&actor, &name, before, limit).await?;
            Ok(documents.into_iter().map(document_row).collect())
        }
    })
    .await
}

/// A document in a list.
pub(super) fn document_row(details: DocumentDetails) -> ListRow<DocumentView> {
    (*details.document.id.as_uuid(), DocumentView::from(details))
}

/// Get a document
///
/// Shows one document, with its content if it has one.
#[utoipa::path(
    get,
    path = "/documents/{id}",
    tag = "Documents",
    operation_id = "getDocument",
    params(("id" = String, Path, description = "The document's id")),
    responses((
        status = 200,
        description = "The document",
        body = inline(SuccessResponse<DocumentWithContent>),
        example = json!({"success": true, "data": view::example_with_content()}),
    )),
)]
#[handler]
async fn find(
    State(documents): State<DocumentService>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    let FullDocument { details, content } = documents.find(&caller.actor(), id).await?;
    Ok(data(DocumentWithContent { document: details.into(), content }))
}

/// Delete a document
///
/// Deletes a document with its links, its passages and its stored file, and stops its ingestion. A search that begins after the
/// answer does not find it.
#[utoipa::path(
    delete,
    path = "/documents/{id}",
    tag = "Documents",
    operation_id = "deleteDocument",
    params(("id" = String, Path, description = "The document's id")),
    responses((
        status = 200,
        description = "It is deleted",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn remove(
    State(documents): State<DocumentService>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    documents.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}

/// Ingest a document again
///
/// Queues a document to be ingested from its source once more, whatever became of it the last time. Until that has succeeded,
/// searches find it as it was.
#[utoipa::path(
    post,
    path = "/documents/{id}/ingest",
    tag = "Documents",
    operation_id = "ingestDocument",
    params(("id" = String, Path, description = "The document's id")),
    responses((
        status = 200,
        description = "The document, queued",
        body = inline(SuccessResponse<DocumentView>),
        example = json!({"success": true, "data": view::queued_example()}),
    )),
)]
#[handler]
async fn ingest(
    State(documents): State<DocumentService>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    Ok(data(DocumentView::from(documents.ingest(&caller.actor(), id).await?)))
}

/// Stop an ingestion
///
/// Stops the ingestion of a document, be it queued or running; does nothing when it has ended. What was searchable of the
/// document before stays so.
#[utoipa::path(
    post,
    path = "/documents/{id}/cancel",
    tag = "Documents",
    operation_id = "cancelIngestion",
    params(("id" = String, Path, description = "The document's id")),
    responses((
        status = 200,
        description = "The document as it is now",
        body = inline(SuccessResponse<DocumentView>),
        example = json!({"success": true, "data": view::example()}),
    )),
)]
#[handler]
async fn cancel(
    State(documents): State<DocumentService>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    let (document, _) = documents.cancel(&caller.actor(), id).await?;
    Ok(data(DocumentView::from(document)))
}
