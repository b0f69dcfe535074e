//! Adding documents: files, an address, or a text.

use askama::Template;
use axum::extract::FromRequestParts;
use axum::{
    extract::{Request, State},
    http::{StatusCode, Uri},
};
use lectern_derive::{RequestBody, handler};
use lectern_shared::{ids::CollectionId, model::document::DocumentType};
use tokio::time::timeout;
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
        creation::CreationOutcome,
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
        let path = parts.uri.path().to_owned();
        let opened = parts.extensions.get::<RequestCredential>().cloned();
        let form = MultipartForm::of(Request::from_parts(parts, body)).await?;
        let actor = visitor.actor();
        let reading = async {
            // Held until the document is made.
            let turn = uploads.turn(&actor).await?;
            let reading = Box::pin(receive_upload(&uploads, &actor, form, Some(NONCE)));
            let read = timeout(LONGEST_UPLOAD, reading).await.map_err(|_| late())??;
            ApiResult::Ok((turn, read))
        };
        // It may go on for so long that its sender may not do it any more.
        let (_turn, (file, new, nonce)) = match opened {
            Some(opened) => opened.while_in_force(reading).await?,
            None => reading.await?,
        };
        let content = new.identity(&file);
        let key = IdempotencyKey::of_form(nonce.as_deref(), &content);
        let once = key.once(&actor, &path, content.as_bytes());
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
