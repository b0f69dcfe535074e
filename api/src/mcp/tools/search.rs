//! Finding passages. The result has the form that clients demand which know the tools `search` and `fetch` alone.

use lectern_agents::search::PassageHit;
use lectern_derive::RequestBody;
use lectern_shared::{ids::WorkspaceId, model::place::SourceSpan};
use rmcp::model::Tool;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{CallResult, json_text, schema};
use crate::{
    error::ApiError,
    fields::validate,
    mcp::{context::CallContext, served::ServedServices},
    services::{actor::Permission, citations::PassageReference, search::PassageQuery},
};

/// What to look for.
#[derive(RequestBody, ToSchema)]
struct SearchArguments {
    /// What to look for, in any words: a question, or a few keywords.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    query: String,
    /// The most passages that are wanted; 10 when left out.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 20)]
    #[body(default = 10)]
    limit: usize,
}

pub(super) fn described(name: &'static str) -> Tool {
    let description = "Searches all documents of the workspace by words and by meaning, and returns the passages that fit \
        best, best first: each with an id, the document it is from, and a link that opens it. Read a passage by giving its \
        id to `fetch`.";
    Tool::new(name, description, schema::shared(schema::of::<SearchArguments>()))
        .with_title("Search documents")
}

pub(super) async fn search(services: &ServedServices, call: &CallContext) -> CallResult {
    let workspace = call.workspace(Permission::EditDocuments)?;
    let SearchArguments { query, limit } = call.arguments.read()?;
    let query = validate::<PassageQuery>(&json!({"query": query, "limit": limit}))?;
    let hits = services.search.search(&call.actor, query).await?.passages;
    let results = hits.iter().map(|hit| result(services, call, workspace, hit));
    let results = results.collect::<Result<Vec<_>, _>>()?;
    Ok(json_text(&json!({"results": results})))
}

fn result(
    services: &ServedServices,
    call: &CallContext,
    workspace: WorkspaceId,
    hit: &PassageHit,
) -> Result<Value, ApiError> {
    let chunk = &hit.chunk;
    let passage = PassageReference { document: chunk.document_id, chunk: chunk.chunk_id, quote: None };
    Ok(json!({
        "id": format!("{}:{}", chunk.document_id, chunk.ordinal),
        "title": title(&hit.document_name, &chunk.place.0),
        "url": call.link(&services.links, workspace, &passage)?,
    }))
}

/// What a passage is called: its document, and where in it.
pub(super) fn title(document: &str, place: &SourceSpan) -> String {
    match (place.page, place.row, place.start) {
        (Some(page), _, _) => format!("{document}, page {page}"),
        (None, Some(row), _) => format!("{document}, row {row}"),
        (None, None, Some(start)) => format!("{document}, at {start:.0} s"),
        (None, None, None) => document.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_is_called_by_its_document_and_its_place() {
        let place = SourceSpan { page: Some(7), ..SourceSpan::default() };
        assert_eq!(title("Handbook", &place), "Handbook, page 7");
        let place = SourceSpan { start: Some(61.2), ..SourceSpan::default() };
        assert_eq!(title("Talk", &place), "Talk, at 61 s");
        assert_eq!(title("Note", &SourceSpan::default()), "Note");
    }
}
