//! Collections, and what is in them.

mod documents;

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{CollectionId, UserId, WorkspaceId},
    model::{
        Json,
        collection::{Collection, CollectionDefaults},
    },
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{documents::SplitterView, users::NullBody};
use crate::{
    auth::Caller,
    extract::{NamePart, PathId, ValidJson},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::{
        collections::{CollectionChange, CollectionService, NewCollection},
        edits::EditBase,
    },
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(find, change, remove))
        .routes(routes!(documents::index, documents::add))
        .routes(routes!(documents::put, documents::take_out))
}

/// A named set of documents.
#[derive(Serialize, ToSchema)]
#[schema(as = Collection)]
#[serde(rename_all = "camelCase")]
struct CollectionView {
    /// Its id.
    #[schema(value_type = String)]
    id: CollectionId,
    /// The workspace that it belongs to.
    #[schema(value_type = String)]
    workspace_id: WorkspaceId,
    /// The id of whoever made it.
    #[schema(value_type = String)]
    user_id: UserId,
    /// What it is called.
    name: String,
    /// What is said of it.
    description: String,
    /// What a document gets that is made in it and says nothing else.
    defaults: DefaultsView,
    /// How many documents are in it.
    documents: i64,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When its name, description or defaults were last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

/// What a document gets that is made in a collection and says nothing else.
#[derive(Serialize, ToSchema)]
#[schema(as = CollectionDefaults)]
struct DefaultsView {
    /// How its text is cut into passages.
    #[schema(required = true)]
    splitter: Option<SplitterView>,
    /// Values of its metadata.
    #[schema(value_type = Option<Object>, required = true)]
    metadata: Option<Map<String, Value>>,
    /// Its language, as an ISO 639-1 code.
    #[schema(required = true)]
    language: Option<String>,
}

impl From<Collection> for CollectionView {
    fn from(collection: Collection) -> Self {
        let Collection {
            id,
            owner,
            name,
            description,
            defaults,
            metadata: _,
            created_at,
            updated_at,
            documents,
        } = collection;
        let defaults = defaults.map(|Json(defaults)| defaults).unwrap_or_default();
        Self {
            id,
            workspace_id: owner.workspace_id,
            user_id: owner.creator(),
            name,
            description,
            defaults: defaults.into(),
            documents,
            created_at,
            updated_at,
        }
    }
}

impl From<CollectionDefaults> for DefaultsView {
    fn from(CollectionDefaults { splitter, metadata, language }: CollectionDefaults) -> Self {
        Self { splitter: splitter.map(Into::into), metadata, language }
    }
}

fn example() -> Value {
    json!({
        "id": "019a8f3e-6c41-7a90-b2d7-3e5f7a9b1c2d",
        "workspaceId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "name": "Handbooks",
        "description": "What every new colleague reads",
        "defaults": {
            "splitter": {"type": "token", "chunk_size": 400, "chunk_overlap": 60},
            "metadata": {"department": "people"},
            "language": "en",
        },
        "documents": 12,
        "createdAt": "2026-01-31T08:02:00.000000+00:00",
        "updatedAt": "2026-01-31T08:02:00.000000+00:00",
    })
}

fn created_example() -> Value {
    let mut collection = example();
    collection["documents"] = json!(0);
    collection
}

fn changed_example() -> Value {
    let mut collection = example();
    collection["name"] = json!("Guides");
    collection["defaults"] = json!({"splitter": null, "metadata": null, "language": null});
    collection["updatedAt"] = json!("2026-01-31T08:06:30.500000+00:00");
    collection
}

/// Create a collection
///
/// Makes an empty set of documents. Documents are put into it when they are made, by `collectionIds`, or later; one may be in several
/// collections. What is in `defaults` is for documents that are made in it: it does not change those that are put into it later.
#[utoipa::path(
    post,
    path = "/collections",
    tag = "Collections",
    operation_id = "createCollection",
    request_body(content = NewCollection, example = json!({
        "name": "Handbooks",
        "description": "What every new colleague reads",
        "defaults": {
            "splitter": {"type": "token", "chunk_size": 400, "chunk_overlap": 60},
            "metadata": {"department": "people"},
            "language": "en",
        },
    })),
    responses((
        status = 200,
        description = "The new collection",
        body = inline(SuccessResponse<CollectionView>),
        example = json!({"success": true, "data": created_example()}),
    )),
)]
#[handler]
async fn create(
    State(collections): State<CollectionService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewCollection>,
) -> ApiResult {
    let show = json_encoder(|collection: &Collection| Ok(CollectionView::from(collection.clone())));
    collections.create(&caller.actor(), body, once, show).await.map(creation_response)
}

/// List your collections
///
/// Shows every collection, newest first.
#[utoipa::path(
    get,
    path = "/collections",
    tag = "Collections",
    operation_id = "listCollections",
    params(("name" = Option<String>, Query, description = "Only those whose names have this somewhere, in whichever case", max_length = 1_000)),
    responses((
        status = 200,
        description = "Your collections",
        body = inline(SuccessResponse<Vec<CollectionView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
#[handler]
async fn index(
    State(collections): State<CollectionService>,
    caller: Caller,
    paging: Paging,
    NamePart(name): NamePart,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (collections, actor, name) = (collections.clone(), caller.actor(), name.clone());
        async move {
            let collections = collections.list(&actor, &name, before, limit).await?;
            let row = |collection: Collection| (*collection.id.as_uuid(), CollectionView::from(collection));
            Ok(collections.into_iter().map(row).collect())
        }
    })
    .await
}

/// Get a collection
///
/// Shows one collection, without its documents.
#[utoipa::path(
    get,
    path = "/collections/{id}",
    tag = "Collections",
    operation_id = "getCollection",
    params(("id" = String, Path, description = "The collection's id")),
    responses((
        status = 200,
        description = "The collection",
        body = inline(SuccessResponse<CollectionView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn find(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathId(id): PathId<CollectionId>,
) -> ApiResult {
    Ok(data(CollectionView::from(collections.find(&caller.actor(), id).await?)))
}

/// Change a collection
///
/// Changes what is given and leaves the rest as it is; `defaults` as a whole, and null empties them. The documents that are in it
/// stay as they are.
#[utoipa::path(
    patch,
    path = "/collections/{id}",
    tag = "Collections",
    operation_id = "updateCollection",
    params(("id" = String, Path, description = "The collection's id")),
    request_body(content = CollectionChange, example = json!({"name": "Guides", "defaults": null})),
    responses((
        status = 200,
        description = "The collection as it is now",
        body = inline(SuccessResponse<CollectionView>),
        example = json!({"success": true, "data": changed_example()}),
    )),
)]
#[handler]
async fn change(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathId(id): PathId<CollectionId>,
    ValidJson(change): ValidJson<CollectionChange>,
) -> ApiResult {
    Ok(data(CollectionView::from(collections.change(&caller.actor(), id, change, EditBase::Present).await?)))
}

/// Delete a collection
///
/// Deletes a collection and its links, and no document. The agents that were linked to it do not answer from it any more.
#[utoipa::path(
    delete,
    path = "/collections/{id}",
    tag = "Collections",
    operation_id = "deleteCollection",
    params(("id" = String, Path, description = "The collection's id")),
    responses((
        status = 200,
        description = "It is gone",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn remove(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathId(id): PathId<CollectionId>,
) -> ApiResult {
    collections.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}
