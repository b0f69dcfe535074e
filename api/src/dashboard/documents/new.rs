//! Adding documents: files, an address, or a text.

use askama::Template;
use axum::extract::FromRequestParts;
use axum::{
    extract::{Request, State},
    http::{StatusCode, Uri},
};
use lectern_derive::{RequestBody, handler};
use lectern_shared::{ids::CollectionId, model::document::DocumentType};
use utoipa::ToSchema;

use crate::{
    auth::in_force::RequestCredential,
    dashboard::{
        PagePolicy,
        choices::{NameChoice, collection_choice},
        frame::{Frame, NONCE, SubmittedForm, Visitor},
        html,
    },
    error::ApiError,
    extract::parameter,
    fields::GivenIds,
    idempotency::IdempotencyKey,
    multipart::MultipartForm,
    response::ApiResult,
    services::{
        actor::Permission,
        collections::CollectionService,
        creation::{CreationOutcome, IdempotentRequest},
        documents::{DocumentDetails, DocumentService, NewDocument},
        uploads::{FileDescription, UploadService, UploadTarget},
    },
    state::AppState,
    v1::documents::{ReceivedForm, receive_upload},
};

#[derive(Template)]
#[template(path = "document_new.html")]
struct NewDocumentPage {
    frame: Frame,
    collections: NameChoice,
    /// The one that is chosen.
    collection: String,
}

/// The page for adding documents.
#[handler]
pub(super) async fn show(State(service): State<CollectionService>, visitor: Visitor, uri: Uri) -> ApiResult {
    let actor = visitor.actor();
    actor.may(Permission::EditDocuments)?;
    let collection = parameter(&uri, "collection").unwrap_or_default();
    let collections = collection_choice(&service, &actor, collection.parse().ok(), &uri, "").await?;
    html(&PagePolicy::Own, StatusCode::OK, &NewDocumentPage { frame: visitor.frame, collections, collection })
}

/// Adds what is at an address.
#[handler]
pub(super) async fn create(
    State(documents): State<DocumentService>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewDocument>,
) -> ApiResult {
    let made = documents.create(&visitor.actor(), body, once, id_of).await?;
    Ok(visitor.go(&page_of(made)))
}

/// A text that somebody has written or pasted.
#[derive(RequestBody, ToSchema)]
pub(super) struct NewText {
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    name: String,
    #[schema(min_length = 1, pattern = r"\S")]
    content: String,
    #[schema(rename = "collectionIds", value_type = Option<Vec<String>>, max_items = 100)]
    collection_ids: Option<GivenIds<CollectionId>>,
}

impl From<NewText> for NewDocument {
    fn from(NewText { name, content, collection_ids }: NewText) -> Self {
        Self {
            r#type: DocumentType::Txt,
            name,
            description: String::new(),
            url: String::new(),
            content: Some(content),
            metadata: None,
            splitter: None,
            from_page: None,
            to_page: None,
            authorization: None,
            collection_ids,
        }
    }
}

/// Adds a text. It is a form of its own, so that what is said of an empty one is said of the text, and not of an address.
#[handler]
pub(super) async fn create_text(
    State(documents): State<DocumentService>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewText>,
) -> ApiResult {
    let made = documents.create(&visitor.actor(), body.into(), once, id_of).await?;
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
        let request = Request::from_parts(parts, body);
        let (received, once) = receive_file(&uploads, &visitor, UploadTarget::NewDocument, request).await?;
        let ReceivedForm { turn: _turn, file, new, .. } = received;
        let made = uploads.complete(&visitor.actor(), file, new, once, id_of).await?;
        ApiResult::Ok(visitor.go(&page_of(made)))
    };
    axum::response::IntoResponse::into_response(made.await)
}

/// Reads a form with a file to its end, and tells it from others by what the page put into it.
pub(super) async fn receive_file<T: FileDescription>(
    uploads: &UploadService,
    visitor: &Visitor,
    target: UploadTarget,
    request: Request,
) -> ApiResult<(ReceivedForm<T>, IdempotentRequest)> {
    let path = request.uri().path().to_owned();
    let opened = request.extensions().get::<RequestCredential>().cloned();
    let form = MultipartForm::of(request).await?;
    let actor = visitor.actor();
    let received: ReceivedForm<T> =
        receive_upload(uploads, &actor, opened.as_ref(), target, form, Some(NONCE)).await?;
    let content = received.new.identity(&received.file);
    let key = IdempotencyKey::of_form(received.nonce.as_deref(), &content);
    let once = key.once(&actor, &path, content.as_bytes());
    Ok((received, once))
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
