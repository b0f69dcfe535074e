//! Evaluations: whether what answers a question is found and cited, told without a model. What answers is a quotation of a document,
//! which is found again however the document is cut.

mod gold;
mod ranking;
mod statistics;

use lectern_shared::model::{
    evaluation::{CaseRanking, ExpectedOutcome, GoldState},
    search::SearchMode,
};

pub use self::{
    gold::{GoldError, GoldFinder, GoldPlace},
    ranking::{cites_gold, retrieval_values},
    statistics::{
        ANSWER_METRICS, CaseDifference, Comparison, RETRIEVAL_METRICS, answer_values, compare, summarise,
    },
};
use crate::search::{SearchAnswer, SearchEngine, SearchError, SearchRequest};

/// How far down a ranking is looked for what answers.
pub const DEPTH: usize = 50;

/// Searches for a case, and tells where in what is found stands what answers.
///
/// # Errors
/// When it cannot be searched.
pub async fn rank(
    search: &SearchEngine,
    mut request: SearchRequest,
    mode: SearchMode,
    expect: &ExpectedOutcome,
    places: &[GoldPlace],
) -> Result<CaseRanking, SearchError> {
    (request.mode, request.limit) = (mode, DEPTH);
    let SearchAnswer { passages, rerank } = search.search(&request).await?;
    let mut ranking = ranking::ranking(&passages, expect.gold(), places);
    ranking.rerank_problem = rerank.and_then(|report| report.problem);
    Ok(ranking)
}

/// Where each thing stands that answers, as it is stored.
pub fn states(places: Vec<GoldPlace>) -> Vec<GoldState> {
    places.into_iter().map(|place| place.state).collect()
}
