//! The search, three ways side by side.

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_agents::search::{PassageHit, RerankReport, SearchAnswer};
use lectern_derive::handler;
use lectern_shared::ids::DocumentId;
use serde_json::json;

use super::{
    PagePolicy,
    choices::{NameChoice, collection_choice, told_apart},
    frame::{Frame, Visitor},
    html,
    text::{filters, place_words},
};
use crate::{
    error::ApiError,
    extract::parameter,
    fields::validate,
    response::ApiResult,
    services::{
        actor::Permission, asking::AskService, collections::CollectionService, search::SearchService,
    },
};

/// Passages of each way.
const HITS: usize = 10;
/// The ways to search, and how they are called on the page.
const MODES: [(&str, &str); 3] =
    [("hybrid", "By words and meaning"), ("lexical", "By words"), ("dense", "By meaning")];

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    frame: Frame,
    query: String,
    /// Whose documents are searched alone; all are when empty.
    agent: String,
    agents: Vec<(String, String)>,
    collection: String,
    collections: NameChoice,
    /// Whether there is a reranker.
    can_rerank: bool,
    rerank: bool,
    modes: Vec<ModeColumn>,
}

struct ModeColumn {
    title: &'static str,
    /// Why there is nothing.
    problem: String,
    /// What became of the better order.
    reranked: String,
    hits: Vec<HitRow>,
}

struct HitRow {
    document: DocumentId,
    passage: String,
    /// Its number in the document, from 0.
    from: i64,
    page: Option<u32>,
    name: String,
    place: String,
    score: String,
    text: String,
}

impl From<PassageHit> for HitRow {
    fn from(hit: PassageHit) -> Self {
        let sides = [("words", hit.lexical), ("meaning", hit.dense), ("reranker", hit.rerank)];
        let sides =
            sides.into_iter().filter_map(|(side, score)| score.map(|score| format!("{side} {score:.3}")));
        let score: Vec<String> = [format!("{:.3}", hit.score)].into_iter().chain(sides).collect();
        let place = &hit.chunk.place.0;
        Self {
            document: hit.chunk.document_id,
            passage: hit.chunk.chunk_id.to_string(),
            from: hit.chunk.ordinal,
            page: place.page,
            name: hit.document_name,
            place: place_words(place),
            score: score.join(" · "),
            text: hit.chunk.text,
        }
    }
}

/// What became of the better order.
fn reranked_words(report: &RerankReport) -> String {
    let scored = format!("{} of {} reranked in {} ms", report.scored, report.candidates, report.took_ms);
    match &report.problem {
        Some(problem) => format!("{scored}: {problem}"),
        None => scored,
    }
}

/// Why nothing could be searched by meaning. The page shows the other ways beside it, so there is nothing to set.
fn problem_of(error: ApiError) -> String {
    match error.code {
        "no_embedding_model" => {
            "Searching by meaning needs an embedding model, which the operator of this service sets up. Until then search by words."
                .to_owned()
        }
        "embedding_model_unavailable" => {
            "The embedding model cannot be used at the moment. Try again shortly, or tell the operator; searching by words works."
                .to_owned()
        }
        _ => error.message,
    }
}

/// Shows what is found.
#[handler]
pub(super) async fn show(
    State(search): State<SearchService>,
    State(collections): State<CollectionService>,
    State(asking): State<AskService>,
    visitor: Visitor,
    uri: Uri,
) -> ApiResult {
    let actor = visitor.actor();
    actor.may(Permission::EditDocuments)?;
    let query = parameter(&uri, "query").unwrap_or_default().trim().to_owned();
    let agent = parameter(&uri, "agent").unwrap_or_default();
    let collection = parameter(&uri, "collection").unwrap_or_default();
    let can_rerank = search.has_reranker();
    let rerank = can_rerank && parameter(&uri, "rerank").is_some();
    let mut modes = Vec::new();
    for (mode, title) in MODES.into_iter().filter(|_| !query.is_empty()) {
        let mut asked = json!({"query": query, "mode": mode, "limit": HITS, "rerank": rerank});
        if !agent.is_empty() {
            asked["agentId"] = json!(agent);
        }
        if !collection.is_empty() {
            asked["collectionIds"] = json!([collection]);
        }
        let (found, problem) = match search.search(&actor, validate(&asked)?).await {
            Ok(found) => (found, String::new()),
            // There may be no model for it, and the other ways are shown all the same.
            Err(error) if mode == "dense" => (SearchAnswer::default(), problem_of(error)),
            Err(error) => return Err(error),
        };
        let reranked = found.rerank.as_ref().map(reranked_words).unwrap_or_default();
        let hits = found.passages.into_iter().map(HitRow::from).collect();
        modes.push(ModeColumn { title, problem, reranked, hits });
    }
    let collections = collection_choice(&collections, &actor, collection.parse().ok(), &uri, "").await?;
    let agents = asking
        .all_askable(&actor, |askable| (askable.agent().id.to_string(), askable.agent().name.clone()))
        .await?;
    let agents = told_apart(agents);
    let page = SearchPage {
        frame: visitor.frame,
        query,
        agent,
        agents,
        collection,
        collections,
        can_rerank,
        rerank,
        modes,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}
