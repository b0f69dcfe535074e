//! Uploads. The file is stored while it is sent; the document is made when all of the form is there.

mod about;

use axum::{
    Extension,
    extract::{DefaultBodyLimit, Request, State},
};
use lectern_derive::handler;
use serde_json::{Value, json};
use tokio::time::timeout;
use utoipa_axum::{router::OpenApiRouter, routes};

use self::about::UploadFields;
use super::view::{self, DocumentView};
use crate::{
    auth::{Caller, in_force::RequestCredential},
    error::ApiError,
    idempotency::{IdempotencyKey, creation_response, json_encoder},
    multipart::MultipartForm,
    openapi::SuccessResponse,
    response::ApiResult,
    services::{
        actor::Actor,
        documents::DocumentDetails,
        uploads::{LONGEST_UPLOAD, NewUpload, UploadService, UploadedFile, late},
    },
    state::AppState,
};

pub(super) fn router() -> OpenApiRouter<AppState> {
    // The file is measured by the blob store, and the other parts here.
    OpenApiRouter::new().routes(routes!(upload)).layer(DefaultBodyLimit::disable())
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
    let key = IdempotencyKey::of(request.headers())?;
    let path = request.uri().path().to_owned();
    let form = MultipartForm::of(request).await?;
    let actor = caller.actor();
    // Nothing of the form is read before its turn, so that its sender waits too. Held until the document is made.
    let _turn = opened.while_in_force(uploads.turn(&actor)).await?;
    let reading = Box::pin(receive(&uploads, &actor, form, None));
    // It may go on for so long that its sender may not do it any more.
    let in_time = async { timeout(LONGEST_UPLOAD, reading).await.map_err(|_| late())? };
    let (file, new, _) = opened.while_in_force(in_time).await?;
    let once = key.once(&actor, &path, new.identity(&file).as_bytes());
    let show = json_encoder(|made: &DocumentDetails| Ok(DocumentView::from(made.clone())));
    uploads.complete(&actor, file, new, once, show).await.map(creation_response)
}

/// Reads a form to its end, and stores its file. The last of what it gives is what stood in the part `nonce`, by which a page tells one
/// form from another.
pub(crate) async fn receive(
    uploads: &UploadService,
    actor: &Actor,
    mut form: MultipartForm,
    nonce: Option<&str>,
) -> Result<(UploadedFile, NewUpload, Option<String>), ApiError> {
    let mut texts = UploadFields::within(uploads.text_bytes());
    let (mut file, mut word) = (None, None);
    while let Some(part) = form.next().await? {
        if nonce.is_some() && part.name() == nonce {
            word = texts.read_word(part).await?;
        } else if part.name() != Some("file") {
            texts.add(part).await?;
        } else if file.is_none() {
            file = Some(uploads.store(actor, part.into_file()).await?);
        } else {
            texts.refuse("file", "must be given once");
            break;
        }
    }
    let Some(file) = file else {
        return Err(texts.without_file());
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
