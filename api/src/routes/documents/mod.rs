//! Documents and their ingestion.

mod address;
mod body;
mod change;
mod chunks;
mod events;
mod file_name;
mod source;
mod splitter;
mod upload;
mod view;

use axum::extract::State;
use lectern_shared::{
    db::{self, Tx, documents::NewDocument as Row},
    ids::{DocumentId, UserId},
    model::document::{Document, SourceAuthorization},
    runtime::Runtime,
    secrets::Place,
};
use utoipa_axum::{router::OpenApiRouter, routes};

pub(super) use self::view::{ErrorView, ProgressView, WarningView};
use self::{
    body::NewDocument,
    view::{DocumentView, WithContent},
};
use crate::{
    auth::Caller,
    error::ApiError,
    extract::PathId,
    idempotency::Create,
    openapi::Data,
    response::{Answer, Paging, data, list},
    routes::users::Nothing,
    state::AppState,
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(find, change::change, remove))
        .routes(routes!(chunks::list))
        .routes(routes!(ingest))
        .routes(routes!(cancel))
        .routes(routes!(events::follow))
        .routes(routes!(source::download))
        .merge(upload::router())
}

fn unknown() -> ApiError {
    ApiError::not_found("document")
}

async fn load(runtime: &Runtime, caller: &Caller, id: DocumentId) -> Result<Document, ApiError> {
    db::documents::find(&runtime.db, caller.id(), id).await?.ok_or_else(unknown)
}

/// Refuses what a user may not store besides what is stored already.
async fn admit(runtime: &Runtime, tx: &mut Tx, user: UserId, more: u64) -> Result<(), ApiError> {
    let allowed = runtime.settings.limits.storage_bytes;
    Ok(db::storage::admit(tx, user, more, None, allowed).await??)
}

/// Queues a document that was made in this transaction, and reads it.
async fn queue_new(
    runtime: &Runtime,
    tx: &mut Tx,
    caller: &Caller,
    id: DocumentId,
) -> Result<DocumentView, ApiError> {
    let account_gone = || ApiError::unauthorized("The account was deleted.");
    if !runtime.jobs.enqueue_ingest(tx, caller.id(), id).await? {
        return Err(account_gone());
    }
    let document = db::documents::find_in(tx, caller.id(), id).await?;
    document.map(DocumentView::from).ok_or_else(account_gone)
}

/// What opens a document's source, as it is stored.
fn seal(runtime: &Runtime, id: DocumentId, authorization: &SourceAuthorization) -> Result<Vec<u8>, ApiError> {
    let json = serde_json::to_vec(authorization).map_err(|_| ApiError::internal())?;
    Ok(runtime.keyring.encrypt(Place::document_authorization(id.as_uuid()), &json)?)
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
        }),
    ),
    responses((
        status = 200,
        description = "The new document",
        body = inline(Data<DocumentView>),
        example = json!({"success": true, "data": view::queued_example()}),
    )),
)]
async fn create(
    State(runtime): State<Runtime>,
    caller: Caller,
    Create { body, once }: Create<NewDocument>,
) -> Answer {
    let id = DocumentId::generate();
    let authorization = body.authorization.as_ref();
    let authorization_sealed = authorization.map(|given| seal(&runtime, id, given)).transpose()?;
    let document = Row {
        id,
        user_id: caller.id(),
        r#type: body.r#type,
        name: &body.name,
        description: &body.description,
        url: &body.url,
        content: body.content.as_deref(),
        metadata: body.metadata.as_ref(),
        splitter: body.splitter.as_ref(),
        pages: body.pages(),
        authorization_sealed: authorization_sealed.as_deref(),
    };
    let mut tx = runtime.db.begin().await?;
    admit(&runtime, &mut tx, caller.id(), body.content.as_ref().map_or(0, String::len) as u64).await?;
    db::documents::insert(&mut tx, &document, runtime.clock.now()).await?;
    let view = queue_new(&runtime, &mut tx, &caller, id).await?;
    let answer = once.commit(&runtime, tx, &view).await?;
    runtime.jobs.doorbell().ring(1);
    Ok(answer)
}

/// List your documents
///
/// Shows every document, newest first, without its content.
#[utoipa::path(
    get,
    path = "/documents",
    tag = "Documents",
    operation_id = "listDocuments",
    responses((
        status = 200,
        description = "Your documents",
        body = inline(Data<Vec<DocumentView>>),
        example = json!({"success": true, "data": [view::example()]}),
    )),
)]
async fn index(State(runtime): State<Runtime>, caller: Caller, paging: Paging) -> Answer {
    list(paging, move |before, limit| {
        let (db, user) = (runtime.db.clone(), caller.id());
        async move {
            let documents = db::documents::list(&db, user, before.into(), limit).await?;
            let row = |document: Document| (*document.id.as_uuid(), DocumentView::from(document));
            Ok(documents.into_iter().map(row).collect())
        }
    })
    .await
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
        body = inline(Data<WithContent>),
        example = json!({"success": true, "data": view::example_with_content()}),
    )),
)]
async fn find(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<DocumentId>) -> Answer {
    let document = load(&runtime, &caller, id).await?;
    let content = db::documents::content(&runtime.db, caller.id(), id).await?;
    Ok(data(WithContent { document: document.into(), content }))
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
        body = inline(Data<Nothing>),
        example = json!({"success": true, "data": null}),
    )),
)]
async fn remove(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<DocumentId>) -> Answer {
    let now = runtime.jobs.now();
    let mut tx = runtime.db.begin_essential().await?;
    if !db::documents::lock(&mut tx, caller.id(), id).await? {
        return Err(unknown());
    }
    let held = db::documents::holdings(&mut tx, caller.id(), id).await?.ok_or_else(unknown)?;
    if !db::documents::delete(&mut tx, caller.id(), id, now, now).await? {
        return Err(unknown());
    }
    tx.commit().await?;
    let (chunks, generations, blobs) = (held.chunks, held.generations, held.blobs);
    tracing::info!(document = %id, user = %caller.id(), chunks, generations, blobs, "document deleted; to be purged");
    Ok(data(Nothing))
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
        body = inline(Data<DocumentView>),
        example = json!({"success": true, "data": view::queued_example()}),
    )),
)]
async fn ingest(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<DocumentId>) -> Answer {
    let mut tx = runtime.db.begin().await?;
    if !runtime.jobs.enqueue_ingest(&mut tx, caller.id(), id).await? {
        return Err(unknown());
    }
    let document = db::documents::find_in(&mut tx, caller.id(), id).await?.ok_or_else(unknown)?;
    tx.commit().await?;
    runtime.jobs.doorbell().ring(1);
    Ok(data(DocumentView::from(document)))
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
        body = inline(Data<DocumentView>),
        example = json!({"success": true, "data": view::example()}),
    )),
)]
async fn cancel(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<DocumentId>) -> Answer {
    let mut tx = runtime.db.begin_essential().await?;
    db::jobs::cancel(&mut tx, caller.id(), id, runtime.jobs.now()).await?;
    // What is another user's cannot be told apart from what does not exist: nothing was stopped, and nothing is found.
    let document = db::documents::find_in(&mut tx, caller.id(), id).await?.ok_or_else(unknown)?;
    tx.commit().await?;
    Ok(data(DocumentView::from(document)))
}
