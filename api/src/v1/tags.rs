//! Tags.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{TagId, UserId},
    model::tag::Tag,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::users::NullBody;
use crate::{
    auth::Caller,
    extract::{PathId, ValidJson},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::tags::{NewTag, TagChange, TagService},
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(index, create)).routes(routes!(find, change, remove))
}

/// A tag.
#[derive(Serialize, ToSchema)]
#[schema(as = Tag)]
#[serde(rename_all = "camelCase")]
pub(super) struct TagView {
    /// Its id.
    #[schema(value_type = String)]
    id: TagId,
    /// What it is called.
    name: String,
    /// Its color, as it was given.
    #[schema(pattern = "^#[0-9A-Fa-f]{6}$")]
    color: String,
    /// Its owner's id.
    #[schema(value_type = String)]
    user_id: UserId,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<Tag> for TagView {
    fn from(tag: Tag) -> Self {
        let Tag { id, owner, name, color, created_at, updated_at } = tag;
        Self { id, name, color, user_id: owner.creator(), created_at, updated_at }
    }
}

pub(super) fn example() -> Value {
    json!({
        "id": "019a8f40-0a2c-7c19-8d3b-1f2e3d4c5b6a",
        "name": "support",
        "color": "#0e8a16",
        "userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "createdAt": "2026-01-31T08:03:00.000000+00:00",
        "updatedAt": "2026-01-31T08:03:00.000000+00:00",
    })
}

/// Create a tag
///
/// Makes a label. Agents take it by its id, in `tags`.
#[utoipa::path(
    post,
    path = "/tags",
    tag = "Tags",
    operation_id = "createTag",
    request_body(content = NewTag, example = json!({"name": "support", "color": "#0e8a16"})),
    responses((
        status = 200,
        description = "The new tag",
        body = inline(SuccessResponse<TagView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn create(
    State(tags): State<TagService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewTag>,
) -> ApiResult {
    let show = json_encoder(|tag: &Tag| Ok(TagView::from(tag.clone())));
    tags.create(&caller.actor(), body, once, show).await.map(creation_response)
}

/// List your tags
///
/// Shows every tag, newest first.
#[utoipa::path(
    get,
    path = "/tags",
    tag = "Tags",
    operation_id = "listTags",
    responses((
        status = 200,
        description = "Your tags",
        body = inline(SuccessResponse<Vec<TagView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
#[handler]
async fn index(State(tags): State<TagService>, caller: Caller, paging: Paging) -> ApiResult {
    list(paging, move |before, limit| {
        let (tags, actor) = (tags.clone(), caller.actor());
        async move {
            let tags = tags.list(&actor, before, limit).await?;
            Ok(tags.into_iter().map(|tag| (*tag.id.as_uuid(), TagView::from(tag))).collect())
        }
    })
    .await
}

/// Get a tag
///
/// Shows one tag.
#[utoipa::path(
    get,
    path = "/tags/{id}",
    tag = "Tags",
    operation_id = "getTag",
    params(("id" = String, Path, description = "The tag's id")),
    responses((
        status = 200,
        description = "The tag",
        body = inline(SuccessResponse<TagView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn find(State(tags): State<TagService>, caller: Caller, PathId(id): PathId<TagId>) -> ApiResult {
    Ok(data(TagView::from(tags.find(&caller.actor(), id).await?)))
}

/// Change a tag
///
/// Changes what is given and leaves the rest as it is. The agents that have the tag show it as it is afterwards.
#[utoipa::path(
    patch,
    path = "/tags/{id}",
    tag = "Tags",
    operation_id = "updateTag",
    params(("id" = String, Path, description = "The tag's id")),
    request_body(content = TagChange, example = json!({"color": "#D73A4A"})),
    responses((
        status = 200,
        description = "The tag as it is now",
        body = inline(SuccessResponse<TagView>),
        example = json!({"success": true, "data": changed_example()}),
    )),
)]
#[handler]
async fn change(
    State(tags): State<TagService>,
    caller: Caller,
    PathId(id): PathId<TagId>,
    ValidJson(change): ValidJson<TagChange>,
) -> ApiResult {
    Ok(data(TagView::from(tags.change(&caller.actor(), id, change).await?)))
}

fn changed_example() -> Value {
    let mut tag = example();
    tag["color"] = json!("#D73A4A");
    tag["updatedAt"] = json!("2026-01-31T08:06:30.500000+00:00");
    tag
}

/// Delete a tag
///
/// The agents that have it lose it.
#[utoipa::path(
    delete,
    path = "/tags/{id}",
    tag = "Tags",
    operation_id = "deleteTag",
    params(("id" = String, Path, description = "The tag's id")),
    responses((
        status = 200,
        description = "It is gone",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn remove(State(tags): State<TagService>, caller: Caller, PathId(id): PathId<TagId>) -> ApiResult {
    tags.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}
