//! Tags.

use axum::extract::State;
use lectern_shared::{
    clock::Timestamp,
    db,
    ids::{TagId, UserId},
    model::tag::Tag,
    runtime::Runtime,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{NAME, users::Nothing};
use crate::{
    auth::Caller,
    error::ApiError,
    extract::{Fields, FromFields, PathId, Valid},
    idempotency::Create,
    openapi::Data,
    response::{Answer, Paging, data, list},
    state::AppState,
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(index, create)).routes(routes!(find, change, remove))
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
        let Tag { id, user_id, name, color, created_at, updated_at } = tag;
        Self { id, name, color, user_id, created_at, updated_at }
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

fn unknown() -> ApiError {
    ApiError::not_found("tag")
}

/// A new tag.
#[derive(ToSchema)]
struct NewTag {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    name: String,
    /// Its color: `#` and six hexadecimal digits, in either case.
    #[schema(pattern = "^#[0-9A-Fa-f]{6}$")]
    color: String,
}

impl FromFields for NewTag {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        Self { name: fields.text("name", NAME), color: color(fields) }
    }
}

fn color(fields: &mut Fields<'_>) -> String {
    let color = fields.text("color", NAME);
    let digits = color.strip_prefix('#').filter(|digits| digits.len() == 6);
    let right = digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    if !right && fields.get("color").is_some_and(Value::is_string) && !color.trim().is_empty() {
        fields.refuse("color", "must have the form #RRGGBB, such as #0e8a16");
    }
    color
}

/// What is to be different about a tag. What is left out stays as it is.
#[derive(ToSchema)]
#[schema(as = TagChange)]
struct Change {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", nullable = false)]
    name: Option<String>,
    /// Its color: `#` and six hexadecimal digits, in either case.
    #[schema(pattern = "^#[0-9A-Fa-f]{6}$", nullable = false)]
    color: Option<String>,
}

impl FromFields for Change {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        fields.only(&["name", "color"]);
        fields.refuse_nulls(&["name", "color"]);
        Self {
            name: fields.get("name").is_some().then(|| fields.text("name", NAME)),
            color: fields.get("color").is_some().then(|| color(fields)),
        }
    }
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
        body = inline(Data<TagView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn create(
    State(runtime): State<Runtime>,
    caller: Caller,
    Create { body, once }: Create<NewTag>,
) -> Answer {
    let now = runtime.clock.now();
    let tag = Tag {
        id: TagId::generate(),
        user_id: caller.id(),
        name: body.name,
        color: body.color,
        created_at: now,
        updated_at: now,
    };
    let mut tx = runtime.db.begin().await?;
    db::tags::insert(&mut tx, &tag).await?;
    once.commit(&runtime, tx, &TagView::from(tag)).await
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
        body = inline(Data<Vec<TagView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
async fn index(State(runtime): State<Runtime>, caller: Caller, paging: Paging) -> Answer {
    list(paging, move |before, limit| {
        let (db, user) = (runtime.db.clone(), caller.id());
        async move {
            let tags = db::tags::list(&db, user, before.into(), limit).await?;
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
        body = inline(Data<TagView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
async fn find(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<TagId>) -> Answer {
    let tag = db::tags::find(&runtime.db, caller.id(), id).await?.ok_or_else(unknown)?;
    Ok(data(TagView::from(tag)))
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
    request_body(content = Change, example = json!({"color": "#D73A4A"})),
    responses((
        status = 200,
        description = "The tag as it is now",
        body = inline(Data<TagView>),
        example = json!({"success": true, "data": changed_example()}),
    )),
)]
async fn change(
    State(runtime): State<Runtime>,
    caller: Caller,
    PathId(id): PathId<TagId>,
    Valid(body): Valid<Change>,
) -> Answer {
    let mut tx = runtime.db.begin().await?;
    let before = db::tags::lock(&mut tx, caller.id(), id).await?.ok_or_else(unknown)?;
    let mut tag = before.clone();
    tag.name = body.name.unwrap_or(tag.name);
    tag.color = body.color.unwrap_or(tag.color);
    if tag != before {
        tag.updated_at = runtime.clock.now();
        db::tags::update(&mut tx, &tag).await?;
        tx.commit().await?;
    }
    Ok(data(TagView::from(tag)))
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
        body = inline(Data<Nothing>),
        example = json!({"success": true, "data": null}),
    )),
)]
async fn remove(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<TagId>) -> Answer {
    let mut tx = runtime.db.begin_essential().await?;
    if !db::tags::delete(&mut tx, caller.id(), id).await? {
        return Err(unknown());
    }
    tx.commit().await?;
    Ok(data(Nothing))
}
