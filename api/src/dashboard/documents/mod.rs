//! Documents in a browser.

mod bulk;
mod duplicates;
mod fields;
mod file;
mod list;
mod new;
mod one;
mod receipt;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    routing::{get, post},
};
use lectern_shared::{clock::Timestamp, ids::DocumentId, model::document::Document};

use super::text::{IngestionState, counted, document_kind};
use crate::state::AppState;

#[expect(clippy::disallowed_methods, reason = "the document describes what programs use")]
pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/documents", get(list::show))
        .route("/documents/bulk", post(bulk::apply))
        .route("/documents/duplicates", get(duplicates::show))
        .route("/documents/new", get(new::show).post(new::create))
        .route("/documents/new/text", post(new::create_text))
        // The file is measured by the blob store, and the other parts by the reader of forms.
        .route("/documents/upload", post(new::upload).layer(DefaultBodyLimit::disable()))
        .route("/documents/{id}", get(one::show).post(one::change))
        .route("/documents/{id}/file", post(file::replace).layer(DefaultBodyLimit::disable()))
        .route("/documents/{id}/ingest", post(one::ingest))
        .route("/documents/{id}/cancel", post(one::cancel))
        .route("/documents/{id}/delete", post(one::delete))
        .route("/documents/{id}/receipt", get(receipt::show))
}

/// A document in a list, and at the head of its own page.
struct DocumentRow {
    id: DocumentId,
    name: String,
    kind: &'static str,
    state: IngestionState,
    /// What is searchable of it, or why it failed.
    detail: String,
    created_at: Timestamp,
}

impl DocumentRow {
    fn of(document: &Document) -> Self {
        let failure =
            document.ingestion.last_error.as_ref().filter(|_| document.ingestion.state.is_failure());
        let index = document.search_index.as_ref().map(|index| {
            let pages = index.0.pages.map(|pages| counted(pages.into(), "page", "pages"));
            let passages = counted(index.0.chunks, "passage", "passages");
            pages.into_iter().chain([passages]).collect::<Vec<_>>().join(", ")
        });
        Self {
            id: document.id,
            name: document.name.clone(),
            kind: document_kind(document.r#type),
            state: IngestionState::of(&document.ingestion),
            detail: failure.map(|error| error.0.message.clone()).or(index).unwrap_or_default(),
            created_at: document.created_at,
        }
    }
}
