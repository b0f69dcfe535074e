//! Adding documents: files, an address, or a text.

use askama::Template;
use axum::extract::FromRequestParts;
use axum::{
    extract::{Request, State},
    http::{StatusCode, Uri},
};
use lectern_derive::handler;
use tokio::time::timeout;

use super::collections;
use crate::{
    dashboard::{
        PagePolicy,
        frame::{Frame, SubmittedForm, Visitor},
        html,
    },
    error::ApiError,
    extract::parameter,
    multipart::MultipartForm,
    response::ApiResult,
    services::{
        actor::Permission,
        collections::CollectionService,
        creation::{CreationOutcome, IdempotentRequest},
        documents::{DocumentDetails, DocumentService, NewDocument},
        uploads::{LONGEST_UPLOAD, UploadService, late},
    },
    state::AppState,
    v1::documents::receive_upload,
};

#[derive(Template)]
#[template(path = "document_new.html")]
struct NewDocumentPage {
    frame: Frame,
    collections: Vec<(String, String)>,
    /// The one that is chosen.
    collection: String,
}

/// The page for adding documents.
#[handler]
pub(super) async fn show(State(service): State<CollectionService>, visitor: Visitor, uri: Uri) -> ApiResult {
    visitor.actor().may(Permission::EditDocuments)?;
    let collections = collections(&service, &visitor).await?;
    let collection = parameter(&uri, "collection").unwrap_or_default();
    html(&PagePolicy::Own, StatusCode::OK, &NewDocumentPage { frame: visitor.frame, collections, collection })
}

/// Adds what is at an address, or a text.
#[handler]
pub(super) async fn create(
    State(documents): State<DocumentService>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewDocument>,
) -> ApiResult {
    let made = documents.create(&visitor.actor(), body, once, id_of).await?;
    Ok(visitor.go(&page_of(made)))
}

/// Adds a file, in a browser without scripts; one with them sends files to the interface for programs, and shows how far each is.
#[handler]
pub(super) async fn upload(
    State(state): State<AppState>,
    State(uploads): State<UploadService>,
    request: Request,
) -> axum::response::Response {
    let (mut parts, body) = request.into_parts();
    let visitor = match Visitor::from_request_parts(&mut parts, &state).await {
        Ok(visitor) => visitor,
        Err(response) => return response,
    };
    let made = async {
        let form = MultipartForm::of(Request::from_parts(parts, body)).await?;
        let actor = visitor.actor();
        let _turn = uploads.turn(&actor).await?;
        let reading = Box::pin(receive_upload(&uploads, &actor, form));
        let (file, new) = timeout(LONGEST_UPLOAD, reading).await.map_err(|_| late())??;
        let once = IdempotentRequest::new(&actor, None, "", &[]);
        let made = uploads.complete(&actor, file, new, once, id_of).await?;
        ApiResult::Ok(visitor.go(&page_of(made)))
    };
    axum::response::IntoResponse::into_response(made.await)
}

/// What is noted of a new document: where its page is.
#[expect(clippy::unnecessary_wraps, reason = "it stands for what can fail")]
fn id_of(made: &DocumentDetails) -> Result<Vec<u8>, ApiError> {
    Ok(made.document.id.to_string().into_bytes())
}

fn page_of(made: CreationOutcome) -> String {
    let (CreationOutcome::Now(id) | CreationOutcome::Before(id)) = made;
    format!("documents/{}?said=added", String::from_utf8_lossy(&id))
}
