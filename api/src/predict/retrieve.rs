//! The passages for a question: the best of the agent's documents, within a budget of tokens, numbered.

use lectern_shared::{
    db,
    model::agent::Agent,
    runtime::Runtime,
    search::{Excerpt, Filter, Mode, Part, Passage, SearchRequest},
};
use serde_json::{Value, json};

use super::trace::{Step, Trace};
use crate::error::ApiError;

/// Passages that are looked at.
const PASSAGES: usize = 12;
/// Tokens of all passages together.
const BUDGET: i64 = 3_500;

/// An excerpt of a document and the number by which it is cited.
#[derive(Clone, Debug)]
pub(super) struct NumberedSource {
    pub(super) n: usize,
    pub(super) excerpt: Excerpt,
}

impl NumberedSource {
    /// Its passages, as traces show them.
    pub(super) fn describe(&self) -> Vec<Value> {
        let shown = |part: &Part| {
            let Passage { chunk, document_name, score, .. } = &part.passage;
            json!({
                "n": self.n,
                "documentId": chunk.document_id,
                "documentName": document_name,
                "chunkId": chunk.chunk_id,
                "place": chunk.place.0,
                "score": part.found.then_some(score),
                "text": chunk.text,
            })
        };
        self.excerpt.parts.iter().map(shown).collect()
    }
}

/// Searches what is linked to the agent.
pub(super) async fn retrieve(
    runtime: &Runtime,
    agent: &Agent,
    question: &str,
    trace: &mut Trace,
) -> Result<Vec<NumberedSource>, ApiError> {
    let mut step = Step::begin("retrieval", "search_documents", json!(question));
    let documents = db::agents::linked_documents(&runtime.db, agent.user_id, agent.id).await?;
    let request = SearchRequest {
        user: agent.user_id,
        query: question.to_owned(),
        documents: Some(documents),
        filter: Filter::default(),
        mode: Mode::Hybrid,
        limit: PASSAGES,
    };
    let found = runtime.search.search(&request).await?;
    let excerpts = runtime.search.excerpts(agent.user_id, found, BUDGET).await?;
    let sources: Vec<_> = (1..).zip(excerpts).map(|(n, excerpt)| NumberedSource { n, excerpt }).collect();
    step.documents = sources.iter().flat_map(NumberedSource::describe).collect();
    step.end(trace);
    Ok(sources)
}
