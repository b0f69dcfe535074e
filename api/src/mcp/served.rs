//! What the tools of the server call.

use axum::extract::FromRef;

use crate::{
    services::{
        asking::AskService, citations::CitationLinks, documents::DocumentService, pages::PageService,
        search::SearchService,
    },
    state::AppState,
};

/// The services behind the tools and the resources. Cheap to clone.
#[derive(Clone)]
pub(super) struct ServedServices {
    pub(super) asking: AskService,
    pub(super) documents: DocumentService,
    pub(super) links: CitationLinks,
    pub(super) pages: PageService,
    pub(super) search: SearchService,
}

impl ServedServices {
    pub(super) fn new(state: &AppState) -> Self {
        Self {
            asking: AskService::from_ref(state),
            documents: DocumentService::from_ref(state),
            links: CitationLinks::from_ref(state),
            pages: PageService::from_ref(state),
            search: SearchService::from_ref(state),
        }
    }
}
