//! Uploads. The file is stored while it is sent; the document is made, or gets it in place of another, when all of the form is there.

mod about;

use std::future::ready;

use axum::{
    Extension,
    extract::{Request, State},
};
use lectern_derive::handler;
use lectern_shared::ids::DocumentId;
use serde_json::{Value, json};
use tokio::time::timeout;

use self::about::UploadFields;
use super::view::{self, DocumentView};
use crate::{
    auth::{Caller, in_force::RequestCredential},
    error::ApiError,
    extract::PathId,
    idempotency::{IdempotencyKey, creation_response, json_encoder},
    multipart::MultipartForm,
    openapi::{ApiRouter, SuccessResponse, routes},
    response::ApiResult,
    services::{
        actor::Actor,
        creation::IdempotentRequest,
        documents::DocumentDetails,
        uploads::{
            FileDescription, LONGEST_UPLOAD, NewFile, NewUpload, UploadService, UploadSlot, UploadTarget,
            UploadedFile, late,
        },
    },
};

pub(super) fn router() -> ApiRouter {
    // The file is measured by the blob store, and the other parts here.
    ApiRouter::new().routes(routes!(upload)).routes(routes!(replace)).without_body_limit()
}

/// Upload a document
///
/// Makes a document of a file, and queues it to be ingested, as creating one does. The file is sent as the part `file` of a
/// form; the other parts may come before or after it, and those that are not known are ignored. What the file is, is told by its
/// bytes first, then by its name, then by the content type of its part; one that cannot be read is a 415. With an
/// `Idempotency-Key`, the same request is one with the same file, name and other parts.
#[utoipa::path(
    post,
    path = "/documents/upload",
    tag = "Documents",
    operation_id = "uploadDocument",
    request_body(
        content = NewUpload,
        content_type = "multipart/form-data",
        example = json!({"file": "(the file)", "name": "Handbook", "metadata": "{\"department\": \"people\"}"}),
    ),
    responses(
        (
            status = 200,
            description = "The new document",
            body = inline(SuccessResponse<DocumentView>),
            example = json!({"success": true, "data": uploaded_example()}),
        ),
        (
            status = 503,
            description = "A part of the service is away, or too many uploads are going on (`too_many_uploads`). `Retry-After` \
                           says when to try again.",
        ),
    ),
)]
#[handler]
async fn upload(
    State(uploads): State<UploadService>,
    Extension(opened): Extension<RequestCredential>,
    caller: Caller,
    request: Request,
) -> ApiResult {
    let (actor, target) = (caller.actor(), ready(Ok(UploadTarget::NewDocument)));
    let (once, received) = receive_once(&uploads, &actor, &opened, target, request).await?;
    let ReceivedForm::<NewUpload> { turn: _turn, file, new, .. } = received;
    let show = json_encoder(|made: &DocumentDetails| Ok(DocumentView::from(made.clone())));
    uploads.complete(&actor, file, new, once, show).await.map(creation_response)
}

/// Replace a document's file
///
/// Gives a document that was uploaded a new version of its file, and queues it to be ingested; until that has succeeded, searches find it
/// as it was. Its id, links, collections, metadata and pages to ingest stay, and so does its name unless another one is given; `PATCH`
/// changes them. The file is told and refused as that of an upload. The file that the document has already, under the same name, changes
/// nothing and queues nothing. A document of a source has its file from there, and one that has an address or a content gets another by
/// `PATCH`: these are a 422. With an `Idempotency-Key`, the same request is one with the same file, name and other parts.
#[utoipa::path(
    put,
    path = "/documents/{id}/file",
    tag = "Documents",
    operation_id = "replaceDocumentFile",
    params(("id" = String, Path, description = "The document's id")),
    request_body(
        content = NewFile,
        content_type = "multipart/form-data",
        example = json!({"file": "(the file)", "name": "Handbook 2027"}),
    ),
    responses(
        (
            status = 200,
            description = "The document as it is now",
            body = inline(SuccessResponse<DocumentView>),
            example = json!({"success": true, "data": uploaded_example()}),
        ),
        (
            status = 503,
            description = "A part of the service is away, or too many uploads are going on (`too_many_uploads`). `Retry-After` \
                           says when to try again.",
        ),
    ),
)]
#[handler]
async fn replace(
    State(uploads): State<UploadService>,
    Extension(opened): Extension<RequestCredential>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
    request: Request,
) -> ApiResult {
    let actor = caller.actor();
    let target = uploads.target(&actor, id);
    let (once, received) = receive_once(&uploads, &actor, &opened, target, request).await?;
    let ReceivedForm::<NewFile> { turn: _turn, file, new, .. } = received;
    let show = json_encoder(|made: &DocumentDetails| Ok(DocumentView::from(made.clone())));
    uploads.replace(&actor, file, new, once, show).await.map(creation_response)
}

/// A form that was read to its end.
pub(crate) struct ReceivedForm<T> {
    /// The turn in which it was read. To be held until the file is a document's.
    pub(crate) turn: UploadSlot,
    pub(crate) file: UploadedFile,
    pub(crate) new: T,
    /// What stood in the part by which a page tells one form from another.
    pub(crate) nonce: Option<String>,
}

/// Reads the form of a request to its end, and stores its file for what `target` finds; with what tells whether the request is the same one
/// again.
async fn receive_once<T: FileDescription>(
    uploads: &UploadService,
    actor: &Actor,
    opened: &RequestCredential,
    target: impl Future<Output = ApiResult<UploadTarget>> + Send,
    request: Request,
) -> ApiResult<(IdempotentRequest, ReceivedForm<T>)> {
    let key = IdempotencyKey::of(request.headers())?;
    let path = request.uri().path().to_owned();
    let form = MultipartForm::of(request).await?;
    let received: ReceivedForm<T> = receive(uploads, actor, Some(opened), target.await?, form, None).await?;
    let once = key.once(actor, &path, received.new.identity(&received.file).as_bytes());
    Ok((once, received))
}

/// Reads a form to its end, and stores its file: in its sender's turn, and for as long as they may do it. `nonce` names the part by which a
/// page tells one form from another.
pub(crate) async fn receive<T: FileDescription>(
    uploads: &UploadService,
    actor: &Actor,
    opened: Option<&RequestCredential>,
    target: UploadTarget,
    form: MultipartForm,
    nonce: Option<&str>,
) -> Result<ReceivedForm<T>, ApiError> {
    // Nothing of the form is read before its turn, so that its sender waits too.
    let reading = async {
        let turn = uploads.turn(actor).await?;
        let reading = Box::pin(read(uploads, actor, target, form, nonce));
        let (file, new, nonce) = timeout(LONGEST_UPLOAD, reading).await.map_err(|_| late())??;
        ApiResult::Ok(ReceivedForm { turn, file, new, nonce })
    };
    // It may go on for so long that its sender may not do it any more.
    match opened {
        Some(opened) => opened.while_in_force(reading).await,
        None => reading.await,
    }
}

async fn read<T: FileDescription>(
    uploads: &UploadService,
    actor: &Actor,
    target: UploadTarget,
    mut form: MultipartForm,
    nonce: Option<&str>,
) -> Result<(UploadedFile, T, Option<String>), ApiError> {
    let mut texts = UploadFields::within(uploads.text_bytes());
    let (mut file, mut word) = (None, None);
    while let Some(part) = form.next().await? {
        if nonce.is_some() && part.name() == nonce {
            word = texts.read_word(part).await?;
        } else if part.name() != Some("file") {
            texts.add(part).await?;
        } else if file.is_none() {
            file = Some(uploads.store(actor, target, part.into_file()).await?);
        } else {
            texts.refuse("file", "must be given once");
            break;
        }
    }
    let Some(file) = file else {
        return Err(texts.without_file::<T>());
    };
    let new = texts.read(&file.kind)?;
    Ok((file, new, word))
}

/// A document that was just uploaded, for the documentation.
fn uploaded_example() -> Value {
    let mut document = view::queued_example();
    document["url"] = json!("");
    document["from_page"] = Value::Null;
    document["to_page"] = Value::Null;
    document["collectionIds"] = json!([]);
    document
}
