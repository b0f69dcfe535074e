//! Documents as resources, for clients that let people pick what a model is to read.

use lectern_shared::ids::DocumentId;
use rmcp::{
    ErrorData,
    model::{
        ListResourcesResult, MetaObject, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    },
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{message::told, text::DocumentText};
use crate::{
    error::{ApiError, ApiErrorKind},
    services::{
        actor::{Actor, Permission},
        documents::DocumentService,
    },
};

/// What the address of a document begins with.
const SCHEME: &str = "lectern://documents/";
/// Documents in one answer.
const PAGE: u32 = 50;
/// Characters of a document's text.
const LONGEST: usize = 200_000;
const TEXT: &str = "text/plain";

/// The documents of the workspace, newest first; none for whoever may not read them.
pub(super) async fn list(
    documents: &DocumentService,
    actor: &Actor,
    cursor: Option<String>,
) -> Result<ListResourcesResult, ErrorData> {
    if actor.may(Permission::EditDocuments).is_err() {
        return Ok(ListResourcesResult::default());
    }
    let before = cursor.map_or(Ok(Uuid::max()), |cursor| Uuid::try_parse(&cursor));
    let before = before.map_err(|_| ErrorData::invalid_params("The cursor is no earlier answer's.", None))?;
    let page = documents.list(actor, before, PAGE).await.map_err(|error| failure(&error, SCHEME))?;
    let is_full = page.len() == usize::try_from(PAGE).unwrap_or(usize::MAX);
    let next_cursor = page.last().filter(|_| is_full).map(|last| last.document.id.to_string());
    let resources = page.into_iter().map(|details| {
        let document = details.document;
        let resource = Resource::new(format!("{SCHEME}{}", document.id), document.name).with_mime_type(TEXT);
        match document.description {
            description if description.is_empty() => resource,
            description => resource.with_description(description),
        }
    });
    Ok(ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(resources.collect()) })
}

/// How documents are named.
pub(super) fn templates(actor: &Actor) -> Vec<ResourceTemplate> {
    if actor.may(Permission::EditDocuments).is_err() {
        return Vec::new();
    }
    let template = ResourceTemplate::new(format!("{SCHEME}{{id}}"), "document").with_title("Document");
    vec![template.with_description("The text of a document of the workspace.").with_mime_type(TEXT)]
}

/// The text of a document, from its beginning.
pub(super) async fn read(
    documents: &DocumentService,
    actor: &Actor,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let named = uri.strip_prefix(SCHEME).and_then(|id| id.parse::<DocumentId>().ok());
    let id = named.ok_or_else(|| failure(&ApiError::not_found("resource"), uri))?;
    actor.may(Permission::EditDocuments).map_err(|error| failure(&error, uri))?;
    let read = DocumentText::read(documents, actor, id, 0, LONGEST).await;
    let read = read.map_err(|error| failure(&error, uri))?;
    let contents = ResourceContents::text(read.text, uri).with_mime_type(TEXT);
    let contents = match read.next {
        Some(next) => contents.with_meta(continued(id, next)),
        None => contents,
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Says where the rest of a text is.
fn continued(id: DocumentId, next: i64) -> MetaObject {
    let next = Value::from(format!("{id}:{next}+"));
    MetaObject(Map::from_iter([("lectern/nextFetchId".to_owned(), next)]))
}

fn failure(error: &ApiError, uri: &str) -> ErrorData {
    let (message, uri) = (told(error), Some(json!({"uri": format!("{uri:.100}")})));
    match error.kind {
        ApiErrorKind::NotFound => ErrorData::resource_not_found(message, uri),
        ApiErrorKind::Internal => ErrorData::internal_error(message, None),
        _ => ErrorData::invalid_request(message, uri),
    }
}
