//! Listing documents, and adding one.

use lectern_derive::RequestBody;
use lectern_shared::model::{document::DocumentType, job::JobState};
use rmcp::model::{CallToolResult, Tool};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    CallResult,
    paging::{self, PageArguments},
    schema,
};
use crate::{
    error::{ApiError, FieldError},
    fields::validate,
    mcp::{PATH, context::CallContext, served::ServedServices},
    services::{
        creation::{CreationOutcome, IdempotentRequest},
        documents::{DocumentDetails, NewDocument},
    },
};

/// A document to add.
#[derive(RequestBody, ToSchema)]
struct AddArguments {
    /// How to call it. The name is searched together with each passage.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    name: String,
    /// The text itself. Give either this or `url`.
    text: Option<String>,
    /// The public http or https address of a web page, a PDF or another file. Give either this or `text`.
    #[schema(max_length = 8_000)]
    url: Option<String>,
    /// Ids of collections that it is to be in.
    #[schema(rename = "collectionIds", max_items = 100)]
    collection_ids: Option<Vec<String>>,
}

pub(super) fn list_described(name: &'static str) -> Tool {
    let description = "Lists the documents of the workspace, newest first: the id, name and type of each, and whether it can be \
        searched yet (status SUCCEEDED). Give an id to `fetch` to read a document; use `search` to find something in them.";
    Tool::new(name, description, schema::shared(schema::of::<PageArguments>()))
        .with_title("List documents")
        .with_raw_output_schema(schema::shared(paging::output("documents", &described())))
}

pub(super) fn add_described(name: &'static str) -> Tool {
    let description = "Adds a document to the workspace, from a text or from a public address. It can be searched soon after: \
        `list_documents` tells when its status is SUCCEEDED.";
    Tool::new(name, description, schema::shared(schema::of::<AddArguments>()))
        .with_title("Add a document")
        .with_raw_output_schema(schema::shared(described()))
}

/// The schema of a document in a result.
fn described() -> Value {
    let text = || json!({"type": "string"});
    let status = json!({"type": "string", "enum": ["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]});
    json!({
        "type": "object",
        "properties": {"id": text(), "name": text(), "type": text(), "status": status, "createdAt": text()},
        "required": ["id", "name", "type", "status", "createdAt"],
    })
}

/// Where an ingestion stands, in the words of the JSON interface.
pub(super) const fn state_word(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "QUEUED",
        JobState::Running => "RUNNING",
        JobState::Done => "SUCCEEDED",
        JobState::Dead => "FAILED",
        JobState::Cancelled => "CANCELLED",
    }
}

fn shown(details: &DocumentDetails) -> Value {
    let document = &details.document;
    json!({
        "id": document.id,
        "name": document.name,
        "type": document.r#type,
        "status": state_word(document.ingestion.state),
        "createdAt": document.created_at.to_string(),
    })
}

/// Names the text as the arguments do.
fn renamed(mut error: ApiError) -> ApiError {
    for field in error.fields.iter_mut().filter(|field| field.path == "content") {
        "text".clone_into(&mut field.path);
    }
    error
}

pub(super) async fn list(services: &ServedServices, call: &CallContext) -> CallResult {
    let page: PageArguments = call.arguments.read()?;
    let documents = services.documents.list(&call.actor, page.before()?, page.sought()).await?;
    Ok(page.answer("documents", &documents, shown))
}

pub(super) async fn add(services: &ServedServices, call: &CallContext) -> CallResult {
    let AddArguments { name, text, url, collection_ids } = call.arguments.read()?;
    let r#type = match (&text, &url) {
        (Some(_), None) => DocumentType::Txt,
        (None, Some(url)) => type_at(url),
        (Some(_), Some(_)) | (None, None) => {
            let wrong = FieldError::new("text", "or `url` has to be given, and not both");
            return Err(ApiError::invalid(vec![wrong]));
        }
    };
    let new = validate::<NewDocument>(&json!({
        "type": r#type, "name": name, "content": text, "url": url, "collectionIds": collection_ids,
    }))
    .map_err(renamed)?;
    let once = IdempotentRequest::new(&call.actor, None, PATH, &[]);
    let tell = |made: &DocumentDetails| Ok(shown(made).to_string().into_bytes());
    let created = services.documents.create(&call.actor, new, once, tell).await.map_err(renamed)?;
    let (CreationOutcome::Now(told) | CreationOutcome::Before(told)) = created;
    let told = serde_json::from_slice(&told).map_err(|_| ApiError::internal())?;
    Ok(CallToolResult::structured(told))
}

/// The type of what is at an address, as far as that tells.
fn type_at(url: &str) -> DocumentType {
    let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    match path.rsplit_once('.') {
        Some((_, "pdf")) => DocumentType::Pdf,
        Some((_, "csv")) => DocumentType::Csv,
        Some((_, "txt" | "md")) => DocumentType::Txt,
        Some(_) | None => DocumentType::Url,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_text_is_said_of_the_argument_that_it_was_given_in() {
        let fields = ["content", "url", "contents"].map(|path| FieldError::new(path, "is wrong"));
        let told = renamed(ApiError::invalid(fields.into())).fields;
        let paths: Vec<&str> = told.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths, ["text", "url", "contents"]);
    }

    #[test]
    fn the_type_of_an_address_is_told_by_its_end() {
        assert_eq!(type_at("https://example.com/a/Handbook.PDF?v=2#page=3"), DocumentType::Pdf);
        assert_eq!(type_at("https://example.com/readme.md"), DocumentType::Txt);
        assert_eq!(type_at("https://example.com/table.csv"), DocumentType::Csv);
        assert_eq!(type_at("https://example.com/?file=x.pdf"), DocumentType::Url);
    }
}
