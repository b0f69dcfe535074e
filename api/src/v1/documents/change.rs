//! Changing a document.

use axum::extract::State;
use lectern_shared::{ids::DocumentId, model::document::DocumentType};

use super::{
    body, splitter,
    view::{self, DocumentView},
};
use crate::{
    auth::Caller,
    extract::{FromFields, JsonFields, PathId, ValidJson},
    openapi::SuccessResponse,
    response::{ApiResult, data},
    services::documents::{DocumentChange, DocumentService, rules::address_problems},
    v1::NAME,
};

const NAMES: [&str; 9] = [
    "name",
    "description",
    "url",
    "content",
    "metadata",
    "splitter",
    "from_page",
    "to_page",
    "authorization",
];

impl FromFields for DocumentChange {
    fn from_fields(fields: &mut JsonFields<'_>) -> Self {
        fields.only(&NAMES);
        fields.refuse_nulls(&["name"]);
        let change = Self {
            name: fields.get("name").is_some().then(|| fields.text("name", NAME)),
            description: fields.given("description").then(|| body::description(fields)),
            url: fields.given("url").then(|| url(fields)),
            content: fields.given("content").then(|| fields.optional_text("content", usize::MAX)),
            metadata: fields.given("metadata").then(|| body::metadata(fields)),
            splitter: fields.given("splitter").then(|| splitter::read(fields)),
            from_page: fields.given("from_page").then(|| fields.count("from_page")),
            to_page: fields.given("to_page").then(|| fields.count("to_page")),
            authorization: fields.given("authorization").then(|| body::authorization(fields)),
        };
        if change.new_url().is_some() && change.new_content().is_some() {
            fields.refuse("content", "cannot be given together with url");
        }
        change
    }
}

/// The new addresses. Which they may be depends on the document's type; what they can be of no type is said at once.
fn url(fields: &mut JsonFields<'_>) -> String {
    let url = body::url(fields);
    let several = address_problems(DocumentType::Url, &url);
    if !address_problems(DocumentType::Txt, &url).is_empty() && !several.is_empty() {
        for problem in several {
            fields.refuse("url", problem);
        }
    }
    url
}

/// Change a document
///
/// Changes what is given and leaves the rest as it is. `type` cannot be changed, and neither can the source of an uploaded
/// document. A new `url` takes the place of the content, and new `content` the place of the url. A `url` at another host than
/// the one that `authorization` was given for needs that anew, or null.
///
/// A change of `name`, `url`, `content`, `from_page`, `to_page`, `splitter` or `authorization` queues the document to be
/// ingested again, if it really is one; until that has succeeded, searches find it as it was. `metadata` and `description`
/// apply at once.
#[utoipa::path(
    patch,
    path = "/documents/{id}",
    tag = "Documents",
    operation_id = "updateDocument",
    params(("id" = String, Path, description = "The document's id")),
    request_body(content = DocumentChange, example = json!({"name": "Handbook", "metadata": {"department": "people", "year": 2026}})),
    responses((
        status = 200,
        description = "The document as it is now",
        body = inline(SuccessResponse<DocumentView>),
        example = json!({"success": true, "data": view::example()}),
    )),
)]
pub(super) async fn change(
    State(documents): State<DocumentService>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
    ValidJson(change): ValidJson<DocumentChange>,
) -> ApiResult {
    Ok(data(DocumentView::from(documents.change(caller.actor(), id, change).await?)))
}
