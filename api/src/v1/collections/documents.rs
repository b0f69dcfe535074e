//! The documents of a collection.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::ids::{CollectionId, DocumentId};

use super::{
    super::{
        documents::{DocumentView, document_example, document_row},
        users::NullBody,
    },
    CollectionView, example,
};
use crate::{
    auth::Caller,
    extract::{PathId, PathIds, ValidJson},
    openapi::SuccessResponse,
    response::{ApiResult, Paging, data, list},
    services::collections::{AddedDocuments, CollectionService},
};

/// List the documents of a collection
///
/// Shows every document that is in it, newest first, without its content.
#[utoipa::path(
    get,
    path = "/collections/{id}/documents",
    tag = "Collections",
    operation_id = "listCollectionDocuments",
    params(("id" = String, Path, description = "The collection's id")),
    responses((
        status = 200,
        description = "The documents that are in it",
        body = inline(SuccessResponse<Vec<DocumentView>>),
        example = json!({"success": true, "data": [document_example()]}),
    )),
)]
#[handler]
pub(super) async fn index(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathId(id): PathId<CollectionId>,
    paging: Paging,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (collections, actor) = (collections.clone(), caller.actor());
        async move {
            let documents = collections.documents(&actor, id, before, limit).await?;
            Ok(documents.into_iter().map(document_row).collect())
        }
    })
    .await
}

/// Put documents into a collection
///
/// Puts up to 1,000 documents into it, all of them or, when one is not yours, none. Those that are in it already stay. The agents that
/// are linked to the collection answer from them at once.
#[utoipa::path(
    post,
    path = "/collections/{id}/documents",
    tag = "Collections",
    operation_id = "addCollectionDocuments",
    params(("id" = String, Path, description = "The collection's id")),
    request_body(content = AddedDocuments, example = json!({
        "documentIds": ["019a8f3e-2b7a-7f11-93c4-8d6e5f4a3b2c", "019a8f44-7d20-7b61-a0c5-2f8e6d914b37"],
    })),
    responses((
        status = 200,
        description = "The collection as it is now",
        body = inline(SuccessResponse<CollectionView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
pub(super) async fn add(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathId(id): PathId<CollectionId>,
    ValidJson(added): ValidJson<AddedDocuments>,
) -> ApiResult {
    Ok(data(CollectionView::from(collections.add(&caller.actor(), id, added).await?)))
}

/// Put a document into a collection
///
/// Puts one document into it; does nothing when it is in it already.
#[utoipa::path(
    put,
    path = "/collections/{id}/documents/{documentId}",
    tag = "Collections",
    operation_id = "putCollectionDocument",
    params(
        ("id" = String, Path, description = "The collection's id"),
        ("documentId" = String, Path, description = "The document's id"),
    ),
    responses((
        status = 200,
        description = "The collection as it is now",
        body = inline(SuccessResponse<CollectionView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
pub(super) async fn put(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathIds(id, document): PathIds<CollectionId, DocumentId>,
) -> ApiResult {
    Ok(data(CollectionView::from(collections.put(&caller.actor(), id, document).await?)))
}

/// Take a document out of a collection
///
/// The document itself stays, and so do its other collections. A document that is not in the collection is not found.
#[utoipa::path(
    delete,
    path = "/collections/{id}/documents/{documentId}",
    tag = "Collections",
    operation_id = "removeCollectionDocument",
    params(
        ("id" = String, Path, description = "The collection's id"),
        ("documentId" = String, Path, description = "The document's id"),
    ),
    responses((
        status = 200,
        description = "It is not in it any more",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
pub(super) async fn take_out(
    State(collections): State<CollectionService>,
    caller: Caller,
    PathIds(id, document): PathIds<CollectionId, DocumentId>,
) -> ApiResult {
    collections.take_out(&caller.actor(), id, document).await?;
    Ok(data(NullBody))
}
