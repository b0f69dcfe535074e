//! Collections in a browser.

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_derive::{RequestBody, handler};
use lectern_shared::{ids::CollectionId, model::collection::Collection};
use utoipa::ToSchema;

use super::{
    PagePolicy,
    choices::ListPlace,
    confirm::Confirmed,
    edits::{EditForm, ShownFields, was_made},
    frame::{Frame, SubmittedForm, Visitor},
    html,
};
use crate::{
    error::ApiError,
    extract::PathId,
    response::ApiResult,
    services::{
        collections::{CollectionChange, CollectionService, NewCollection},
        creation::CreationOutcome,
    },
};

/// Rows of a page.
const ROWS: u32 = 50;

#[derive(Template)]
#[template(path = "collections.html")]
struct CollectionsPage {
    frame: Frame,
    rows: Vec<Collection>,
    place: ListPlace,
    /// The query of the next page, if there is one.
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "collection.html")]
struct CollectionPage {
    frame: Frame,
    id: CollectionId,
    /// What its form is made from.
    seen: String,
    name: String,
    description: String,
    documents: i64,
}

/// What the form of a collection shows.
fn shown(collection: &Collection) -> ShownFields {
    ShownFields::of(collection.updated_at).text("name", "Name", &collection.name).text(
        "description",
        "Description",
        &collection.description,
    )
}

/// Shows all collections.
#[handler]
pub(super) async fn list(
    State(collections): State<CollectionService>,
    visitor: Visitor,
    uri: Uri,
) -> ApiResult {
    let place = ListPlace::of(&uri);
    let mut rows = collections.list(&visitor.actor(), &place.name, place.before(), ROWS + 1).await?;
    let has_more = rows.len() > ROWS as usize;
    rows.truncate(ROWS as usize);
    let next = place.next(rows.last().map(|last| *last.id.as_uuid()).filter(|_| has_more));
    html(&PagePolicy::Own, StatusCode::OK, &CollectionsPage { frame: visitor.frame, rows, place, next })
}

/// Makes one.
#[handler]
pub(super) async fn create(
    State(collections): State<CollectionService>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewCollection>,
) -> ApiResult {
    let id_of = |made: &Collection| Ok(made.id.to_string().into_bytes());
    let made = collections.create(&visitor.actor(), body, once, id_of).await?;
    let (CreationOutcome::Now(id) | CreationOutcome::Before(id)) = made;
    Ok(visitor.go(&format!("collections/{}?said=added", String::from_utf8_lossy(&id))))
}

/// Shows one.
#[handler]
pub(super) async fn show(
    State(collections): State<CollectionService>,
    visitor: Visitor,
    PathId(id): PathId<CollectionId>,
) -> ApiResult {
    let found = collections.find(&visitor.actor(), id).await?;
    let seen = shown(&found).seen();
    let Collection { name, description, documents, .. } = found;
    let page = CollectionPage { frame: visitor.frame, id, seen, name, description, documents };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Changes one.
#[handler]
pub(super) async fn change(
    State(collections): State<CollectionService>,
    PathId(id): PathId<CollectionId>,
    EditForm { visitor, body, edit }: EditForm<CollectionChange>,
) -> ApiResult {
    let actor = visitor.actor();
    if was_made(collections.change(&actor, id, body, edit.base()).await)? {
        return Ok(visitor.go(&format!("collections/{id}?said=saved")));
    }
    let shows = shown(&collections.find(&actor, id).await?);
    edit.outdated(visitor, &shows, None, &format!("collections/{id}"))
}

/// Deletes one. Its documents stay.
#[handler]
pub(super) async fn delete(
    State(collections): State<CollectionService>,
    PathId(id): PathId<CollectionId>,
    Confirmed(visitor): Confirmed,
) -> ApiResult {
    collections.delete(&visitor.actor(), id).await?;
    Ok(visitor.go("collections?said=removed"))
}

/// A document that is in the collection.
#[derive(RequestBody, ToSchema)]
pub(super) struct TakenDocument {
    #[schema(max_length = 100)]
    document: String,
}

/// Takes a document out of one.
#[handler]
pub(super) async fn take_out(
    State(collections): State<CollectionService>,
    PathId(id): PathId<CollectionId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<TakenDocument>,
) -> ApiResult {
    let document = body.document.parse().map_err(|_| ApiError::not_found("document"))?;
    collections.take_out(&visitor.actor(), id, document).await?;
    Ok(visitor.go(&format!("documents/{document}?said=removed")))
}
