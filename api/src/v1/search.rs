//! Searching passages.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use lectern_agents::{
    answer::passage_url,
    run::trace::PlaceView,
    search::{PassageHit, RerankReport, SearchAnswer},
};
use lectern_derive::handler;
use lectern_shared::{
    ids::{ChunkId, DocumentId},
    model::place::SourceSpan,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    extract::ValidJson,
    openapi::{ApiRouter, routes},
    response::ApiResult,
    services::search::{PassageQuery, SearchService},
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(search))
}

/// A passage that was found.
#[derive(Serialize, ToSchema)]
#[schema(as = FoundPassage)]
#[serde(rename_all = "camelCase")]
struct PassageView {
    /// Its document.
    #[schema(value_type = String)]
    document_id: DocumentId,
    /// The document's name.
    document_name: String,
    /// The passage: the same however often the document is ingested, as long as the passage stays the same.
    #[schema(value_type = String)]
    chunk_id: ChunkId,
    /// What it says: exactly the slice of the extracted text that its place names.
    text: String,
    /// How well it matches, by which the passages are ordered unless they were reranked; comparable within one answer only.
    score: f32,
    /// Where it stands in its document.
    #[schema(value_type = PlaceView)]
    place: SourceSpan,
    /// What each side of the search says of it.
    scores: ScoresView,
    /// Where the passage can be opened: the document's address, at the page of a PDF (`#page=7`) or the moment of a video. Null for
    /// documents that were uploaded or came as text, and for an address with a key in its query.
    #[schema(required = true)]
    url: Option<String>,
    /// Passages that say the same and would have been found too, such as those of a copy; they take no place of their own.
    also_in: Vec<CopyView>,
}

/// A passage that says what another says.
#[derive(Serialize, ToSchema)]
#[schema(as = FoundPassageCopy)]
#[serde(rename_all = "camelCase")]
struct CopyView {
    /// Its document.
    #[schema(value_type = String)]
    document_id: DocumentId,
    /// The passage.
    #[schema(value_type = String)]
    chunk_id: ChunkId,
}

/// What each side of the search says of a passage; comparable within one answer only.
#[derive(Serialize, ToSchema)]
#[schema(as = FoundPassageScores)]
struct ScoresView {
    /// How near it is in meaning, as a cosine; null when it was not found by meaning.
    #[schema(required = true)]
    dense: Option<f32>,
    /// How well it matches by words (BM25); null when it was not found by words.
    #[schema(required = true)]
    lexical: Option<f32>,
    /// How well it answers, by the reranker that put it into its place; null when it kept the place at which it was found.
    #[schema(required = true)]
    rerank: Option<f32>,
}

/// What became of the better order that was asked for.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchRerank)]
#[serde(rename_all = "camelCase")]
struct RerankView {
    /// The reranker; null when there is none.
    #[schema(required = true)]
    model: Option<String>,
    /// The passages that it was to judge.
    candidates: usize,
    /// Those that it judged in time. The others kept their places.
    scored: usize,
    /// Milliseconds that it took.
    took_ms: u64,
    /// Why passages kept their places; null when none did.
    #[schema(required = true)]
    problem: Option<String>,
}

impl From<RerankReport> for RerankView {
    fn from(report: RerankReport) -> Self {
        let RerankReport { model, candidates, scored, took_ms, problem } = report;
        Self { model, candidates, scored, took_ms, problem }
    }
}

/// The answer to a search.
#[derive(Serialize, ToSchema)]
#[schema(as = SearchAnswer)]
struct SearchAnswerView {
    /// Always true.
    success: bool,
    /// The passages, best first.
    data: Vec<PassageView>,
    /// What became of the better order; left out when none was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rerank: Option<RerankView>,
}

impl From<PassageHit> for PassageView {
    fn from(passage: PassageHit) -> Self {
        let url = passage_url(&passage);
        let PassageHit { document_name, chunk, score, lexical, dense, rerank, also_in, .. } = passage;
        let copy = |(document_id, chunk_id)| CopyView { document_id, chunk_id };
        Self {
            document_id: chunk.document_id,
            document_name,
            chunk_id: chunk.chunk_id,
            text: chunk.text,
            score,
            place: chunk.place.0,
            scores: ScoresView { dense, lexical, rerank },
            url,
            also_in: also_in.into_iter().map(copy).collect(),
        }
    }
}

fn example() -> Value {
    json!({
        "documentId": "019a8f44-7d20-7b61-a0c5-2f8e6d914b37",
        "documentName": "Handbook",
        "chunkId": "6f1c2a6e-0d8e-5b0f-9a55-0c1f7f1d2b90",
        "text": "Every new colleague has a mentor for the first three months.",
        "score": 1.25,
        "place": {"page": 3, "pageEnd": 3, "charStart": 1804, "charEnd": 1864},
        "scores": {"dense": 0.625, "lexical": 7.5, "rerank": null},
        "url": "https://example.com/handbook.pdf#page=3",
        "alsoIn": [],
    })
}

/// Search passages
///
/// Finds the passages of your documents that match a question best, best first: by words (BM25), by meaning when the service has
/// an embedding model, or by both. Only what is completely ingested is found, in its latest version; nothing is found any more
/// of a document that was deleted. With several of `documentIds`,
/// `collectionIds` and `agentId`, only documents that are in each of them are searched.
///
/// With `rerank`, the best are put into the order in which a model sees them that reads question and passage at once, where the service
/// has one, for at most the time that is set. What it does not reach keeps its place, and no search fails for it.
#[utoipa::path(
    post,
    path = "/search",
    tag = "Search",
    operation_id = "search",
    request_body(content = PassageQuery, example = json!({
        "query": "Who helps new colleagues?",
        "agentId": "019a8f41-9c33-7d21-b0aa-7e54d1c2b3f0",
        "filter": {"department": "people", "year": [2025, 2026]},
        "limit": 5,
    })),
    responses(
        (
            status = 200,
            description = "The passages, best first",
            body = inline(SearchAnswerView),
            example = json!({"success": true, "data": [example()]}),
        ),
        (
            status = 503,
            description = "A part of the service is away. With `mode` `dense` also: it has no embedding model \
                           (`no_embedding_model`, which does not pass by itself), or the model is away or has not \
                           arrived yet (`embedding_model_unavailable`); search by words meanwhile",
        ),
    ),
)]
#[handler]
async fn search(
    State(search): State<SearchService>,
    caller: Caller,
    ValidJson(body): ValidJson<PassageQuery>,
) -> ApiResult<Response> {
    let SearchAnswer { passages, rerank } = search.search(&caller.actor(), body).await?;
    let data = passages.into_iter().map(PassageView::from).collect::<Vec<_>>();
    let rerank = rerank.map(RerankView::from);
    // Written as it is: by way of a JSON value, a score would get digits that it does not have.
    Ok(Json(SearchAnswerView { success: true, data, rerank }).into_response())
}
