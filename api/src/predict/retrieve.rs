//! The passages for a question: the best of the agent's documents, within a budget of tokens, numbered.

use lectern_shared::{
    db,
    model::agent::Agent,
    runtime::Runtime,
    search::{Passage, SearchRequest},
};
use serde_json::{Value, json};

use super::trace::{Step, Trace};
use crate::error::ApiError;

/// Passages that are looked at.
const PASSAGES: usize = 12;
/// Tokens of all passages together.
const BUDGET: i64 = 3_500;

/// A passage and the number by which it is cited.
#[derive(Clone, Debug)]
pub(super) struct NumberedPassage {
    pub(super) n: usize,
    pub(super) passage: Passage,
}

impl NumberedPassage {
    /// Where it comes from, as citations and traces show it.
    pub(super) fn describe(&self) -> serde_json::Map<String, Value> {
        let chunk = &self.passage.chunk;
        let mut shown = serde_json::Map::new();
        shown.insert("n".to_owned(), json!(self.n));
        shown.insert("documentId".to_owned(), json!(chunk.document_id));
        shown.insert("documentName".to_owned(), json!(self.passage.document_name));
        shown.insert("chunkId".to_owned(), json!(chunk.chunk_id));
        shown.insert("place".to_owned(), json!(chunk.place.0));
        shown
    }
}

/// Searches what is linked to the agent.
pub(super) async fn retrieve(
    runtime: &Runtime,
    agent: &Agent,
    question: &str,
    trace: &mut Trace,
) -> Result<Vec<NumberedPassage>, ApiError> {
    let mut step = Step::begin("retrieval", "search_documents", json!(question));
    let documents = db::agents::linked_documents(&runtime.db, agent.user_id, agent.id).await?;
    let request = SearchRequest {
        user: agent.user_id,
        query: question.to_owned(),
        documents: Some(documents),
        limit: PASSAGES,
    };
    let found = runtime.search.search(&request).await?;
    let mut tokens = 0;
    let within_budget = found.into_iter().take_while(|passage| {
        tokens += passage.chunk.tokens;
        // The best one counts even when it is larger than the budget.
        tokens == passage.chunk.tokens || tokens <= BUDGET
    });
    let sources: Vec<_> =
        within_budget.enumerate().map(|(at, passage)| NumberedPassage { n: at + 1, passage }).collect();
    step.documents = sources
        .iter()
        .map(|source| {
            let mut shown = source.describe();
            shown.insert("score".to_owned(), json!(source.passage.score));
            shown.insert("text".to_owned(), json!(source.passage.chunk.text));
            Value::Object(shown)
        })
        .collect();
    step.end(trace);
    Ok(sources)
}
