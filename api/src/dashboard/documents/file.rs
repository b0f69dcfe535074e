//! The file of a document.

use axum::{
    extract::{FromRequestParts, Request, State},
    response::{IntoResponse, Response},
};
use lectern_derive::handler;
use lectern_shared::ids::DocumentId;

use super::new::receive_file;
use crate::{
    dashboard::frame::Visitor,
    error::ApiError,
    extract::PathId,
    response::ApiResult,
    services::{documents::DocumentDetails, uploads::UploadService},
    state::AppState,
    v1::documents::ReceivedForm,
};

/// Gives a document a new version of its file.
#[handler]
pub(super) async fn replace(
    State(state): State<AppState>,
    State(uploads): State<UploadService>,
    request: Request,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let visitor = match Visitor::from_request_parts(&mut parts, &state).await {
        Ok(visitor) => visitor,
        Err(response) => return response,
    };
    let replaced = async {
        let PathId(id): PathId<DocumentId> = PathId::from_request_parts(&mut parts, &state).await?;
        let target = uploads.target(&visitor.actor(), id).await?;
        let request = Request::from_parts(parts, body);
        let (received, once) = receive_file(&uploads, &visitor, target, request).await?;
        let ReceivedForm { turn: _turn, file, new, .. } = received;
        uploads.replace(&visitor.actor(), file, new, once, nothing).await?;
        ApiResult::Ok(visitor.go(&format!("documents/{id}?said=saved")))
    };
    replaced.await.into_response()
}

/// What is noted of it: its page is known.
#[expect(clippy::unnecessary_wraps, reason = "it stands for what can fail")]
fn nothing(_: &DocumentDetails) -> Result<Vec<u8>, ApiError> {
    Ok(Vec::new())
}
