//! Searching a vector store.

use axum::{Json, extract::State, response::IntoResponse};
use lectern_derive::handler;
use lectern_shared::ids::{CollectionId, DocumentId};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{bodies::StoreSearch, files::TextContent, view::FILE_ID};
use crate::{
    auth::Caller,
    extract::{PathId, ValidJson},
    openai::{entries::shown_attributes, score::bounded_score},
    openapi::{ApiRouter, routes},
    response::ApiResult,
    services::search::{FilePassage, FileQuery, SearchService},
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(search))
}

/// What was found in a vector store.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiSearchResults)]
struct SearchResultPage {
    /// Always `vector_store.search_results.page`.
    object: &'static str,
    /// What was searched for.
    search_query: Vec<String>,
    /// The passages, best first.
    data: Vec<SearchResultView>,
    /// Always false.
    has_more: bool,
    /// Always null.
    #[schema(required = true)]
    next_page: Option<String>,
}

/// A passage that was found.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiSearchResult)]
struct SearchResultView {
    /// Its file.
    #[schema(value_type = String)]
    file_id: DocumentId,
    /// What the file is called.
    filename: String,
    /// How well it matches, by which the passages are ordered: from 0 to less than 1, comparable within one answer only.
    score: f64,
    /// The file's attributes.
    #[schema(value_type = Object)]
    attributes: Map<String, Value>,
    /// What it says.
    content: Vec<TextContent>,
}

impl From<FilePassage> for SearchResultView {
    fn from(FilePassage { passage, label }: FilePassage) -> Self {
        Self {
            file_id: label.id,
            filename: label.source_name.unwrap_or(label.name),
            score: bounded_score(f64::from(passage.score)),
            attributes: label.metadata.map(|stored| shown_attributes(stored.0)).unwrap_or_default(),
            content: vec![TextContent::new(passage.chunk.text)],
        }
    }
}

/// Search a vector store
///
/// Finds the passages of its files that match a question best, best first. Only files that are `completed` are found. Several texts in
/// `query` are searched for as one question; `rewrite_query` and the ranker are ignored.
#[utoipa::path(
    post,
    path = "/vector_stores/{id}/search",
    tag = "OpenAI-compatible",
    operation_id = "openaiSearchVectorStore",
    params(("id" = String, Path, description = "The vector store's id")),
    request_body(content = StoreSearch, example = json!({
        "query": "Who helps new colleagues?",
        "filters": {"type": "gte", "key": "year", "value": 2025},
        "max_num_results": 5,
    })),
    responses((
        status = 200,
        description = "The passages, best first",
        body = inline(SearchResultPage),
        example = json!({
            "object": "vector_store.search_results.page",
            "search_query": ["Who helps new colleagues?"],
            "data": [{
                "file_id": FILE_ID,
                "filename": "handbook.pdf",
                "score": 0.75,
                "attributes": {"year": 2026},
                "content": [{"type": "text", "text": "Every new colleague has a mentor for the first three months."}],
            }],
            "has_more": false,
            "next_page": null,
        }),
    )),
)]
#[handler]
async fn search(
    State(search): State<SearchService>,
    caller: Caller,
    PathId(id): PathId<CollectionId>,
    ValidJson(body): ValidJson<StoreSearch>,
) -> ApiResult {
    let StoreSearch { query: search_query, filters, max_num_results, .. } = body;
    // As one: scores of several searches could not be compared, and so not be merged.
    let query = search_query.join("\n");
    let asked = FileQuery { collection: id, query, filter: filters, limit: max_num_results };
    let found = search.search_files(&caller.actor(), asked).await?;
    let page = SearchResultPage {
        object: "vector_store.search_results.page",
        search_query,
        data: found.into_iter().map(SearchResultView::from).collect(),
        has_more: false,
        next_page: None,
    };
    Ok(Json(page).into_response())
}
