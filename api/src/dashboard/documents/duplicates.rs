//! Documents that are alike.

use askama::Template;
use axum::{extract::State, http::StatusCode};
use lectern_derive::handler;
use uuid::Uuid;

use crate::{
    dashboard::{
        PagePolicy,
        frame::{Frame, Visitor},
        html,
        text::filters,
    },
    response::ApiResult,
    services::documents::{DocumentService, DuplicateGroup},
};

/// Groups that are shown: there are never more.
const GROUPS: u32 = 400;

/// Documents of a group that are shown.
const SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "duplicates.html")]
struct DuplicatesPage {
    frame: Frame,
    /// Each with how many more documents it has than are shown.
    groups: Vec<(DuplicateGroup, usize)>,
}

/// Shows them.
#[handler]
pub(super) async fn show(State(documents): State<DocumentService>, visitor: Visitor) -> ApiResult {
    let groups = documents.duplicates(&visitor.actor(), Uuid::max(), GROUPS).await?;
    let shown = |mut group: DuplicateGroup| {
        let more = group.documents.len().saturating_sub(SHOWN);
        group.documents.truncate(SHOWN);
        (group, more)
    };
    let groups = groups.into_iter().map(shown).collect();
    html(&PagePolicy::Own, StatusCode::OK, &DuplicatesPage { frame: visitor.frame, groups })
}
