//! What a page reads of the trace of a run.

use std::collections::BTreeSet;

use lectern_agents::answer::AnswerQuotations;
use lectern_shared::{
    ids::{ChunkId, DocumentId},
    model::place::SourceSpan,
};
use serde::Deserialize;
use serde_json::Value;

use super::QuoteStanding;

/// What is read of a trace: it is stored as the interface shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::dashboard) struct TraceBody {
    pub(in crate::dashboard) id: String,
    pub(in crate::dashboard) agent_version: Option<i64>,
    pub(in crate::dashboard) output: String,
    pub(in crate::dashboard) finish_reason: String,
    pub(in crate::dashboard) duration_ms: u64,
    pub(in crate::dashboard) llm: TraceModel,
    pub(in crate::dashboard) usage: TraceUsage,
    pub(in crate::dashboard) steps: Vec<TraceStep>,
    pub(in crate::dashboard) citations: Vec<TraceCitation>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::dashboard) struct TraceModel {
    pub(in crate::dashboard) model: String,
    pub(in crate::dashboard) provider: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::dashboard) struct TraceUsage {
    pub(in crate::dashboard) input_tokens: u64,
    pub(in crate::dashboard) output_tokens: u64,
    pub(in crate::dashboard) cost: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::dashboard) struct TraceStep {
    pub(in crate::dashboard) kind: String,
    pub(in crate::dashboard) action: String,
    pub(in crate::dashboard) input: Value,
    pub(in crate::dashboard) observation: Value,
    pub(in crate::dashboard) started_ms: u64,
    pub(in crate::dashboard) duration_ms: u64,
    pub(in crate::dashboard) error: Option<String>,
    pub(in crate::dashboard) documents: Vec<TracePassage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::dashboard) struct TracePassage {
    pub(in crate::dashboard) n: usize,
    pub(in crate::dashboard) document_id: Option<DocumentId>,
    pub(in crate::dashboard) document_name: String,
    pub(in crate::dashboard) place: SourceSpan,
    pub(in crate::dashboard) score: Option<f32>,
    pub(in crate::dashboard) text: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::dashboard) struct TraceCitation {
    pub(in crate::dashboard) n: usize,
    pub(in crate::dashboard) document_id: DocumentId,
    pub(in crate::dashboard) document_name: String,
    pub(in crate::dashboard) chunk_id: ChunkId,
    pub(in crate::dashboard) place: SourceSpan,
    pub(in crate::dashboard) page: Option<u32>,
    pub(in crate::dashboard) quote: String,
    pub(in crate::dashboard) verified: bool,
}

impl TraceBody {
    /// A trace that another version has written in another way tells what can be read of it.
    pub(in crate::dashboard) fn of(trace: &Value) -> Self {
        Self::deserialize(trace).unwrap_or_else(|error| {
            tracing::warn!(%error, "a trace cannot be read");
            let text = |name: &str| trace.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            Self { id: text("id"), output: text("output"), ..Self::default() }
        })
    }

    /// The documents that it cites, and those whose passages it shows, each once.
    pub(in crate::dashboard) fn documents(&self) -> Vec<DocumentId> {
        let found = self.steps.iter().flat_map(|step| &step.documents);
        let found = found.filter_map(|passage| passage.document_id);
        let all: BTreeSet<_> = self.citations.iter().map(|cited| cited.document_id).chain(found).collect();
        all.into_iter().collect()
    }

    /// The texts that are cited by this number.
    pub(in crate::dashboard) fn texts(&self, n: usize) -> impl Iterator<Item = &str> {
        let found = self.steps.iter().flat_map(|step| &step.documents);
        found.filter(move |passage| passage.n == n).map(|passage| passage.text.as_str())
    }

    /// Whether a model has ended it as its own answer, which cites nothing.
    pub(in crate::dashboard) fn names_no_source(&self) -> bool {
        let is_models = matches!(self.finish_reason.as_str(), "stop" | "length" | "unformatted");
        is_models && self.citations.is_empty() && !self.output.trim().is_empty()
    }

    /// What the words of each citation are, as [`CitationView::is_misquoted`](lectern_agents::run::CitationView::is_misquoted) tells it
    /// of a run: a trace keeps only whether they were verified.
    pub(in crate::dashboard) fn standings(&self) -> Vec<QuoteStanding> {
        let mut quoted: Option<AnswerQuotations> = None;
        let of_passage = |cited: &TraceCitation| {
            let mut found = self.steps.iter().flat_map(|step| &step.documents);
            found.any(|passage| passage.n == cited.n && passage.text.contains(&cited.quote))
        };
        let standing = |cited: &TraceCitation| {
            if cited.verified {
                QuoteStanding::Verified
            } else if cited.quote.is_empty()
                || of_passage(cited)
                || !quoted.get_or_insert_with(|| AnswerQuotations::of(&self.output)).holds(&cited.quote)
            {
                QuoteStanding::Paraphrased
            } else {
                QuoteStanding::Misquoted
            }
        };
        self.citations.iter().map(standing).collect()
    }

    /// Why there is no answer, for a run that failed.
    pub(in crate::dashboard) fn failure(&self) -> Option<String> {
        let told = self.steps.iter().rev().find_map(|step| step.error.clone()).unwrap_or_default();
        (self.finish_reason == "error").then_some(told)
    }
}

#[cfg(test)]
mod tests {
    use lectern_agents::run::trace;

    use super::*;

    #[test]
    fn a_trace_is_read_as_the_interface_shows_it() {
        let body = TraceBody::of(&trace::example());
        assert_eq!((body.steps.len(), body.citations.len()), (2, 1));
        assert_eq!(body.citations[0].place.page, Some(2));
        assert_eq!(body.documents(), [body.citations[0].document_id], "which is found and cited");
        let strange = TraceBody::of(&serde_json::json!({"id": "x", "output": "y", "steps": 7}));
        assert_eq!((strange.id.as_str(), strange.output.as_str()), ("x", "y"));
        assert_eq!(body.failure(), None);
    }

    /// The example with this answer, and this as the words of its citation, which were not verified.
    fn standing(output: &str, quote: &str) -> QuoteStanding {
        let mut trace = trace::example();
        trace["output"] = output.into();
        trace["citations"][0]["quote"] = quote.into();
        trace["citations"][0]["verified"] = false.into();
        TraceBody::of(&trace).standings()[0]
    }

    #[test]
    fn words_that_a_model_made_up_are_not_the_documents() {
        let own = "Its captain, Solveig Aas, had sailed the route twice before.";
        assert_eq!(TraceBody::of(&trace::example()).standings(), [QuoteStanding::Verified]);
        let invented = "Bicycles belong on the roof top";
        let answer = format!("It says \"{invented}\" [1].");
        assert_eq!(standing(&answer, invented), QuoteStanding::Misquoted);
        assert_eq!(standing("She had sailed it twice [1].", own), QuoteStanding::Paraphrased);
        assert_eq!(standing("She had sailed it twice [1].", ""), QuoteStanding::Paraphrased);
        // Quoted elsewhere in the answer, it is the passage's own sentence nevertheless.
        assert_eq!(standing(&format!("“{own}” [2]. So it was [1]."), own), QuoteStanding::Paraphrased);
    }

    #[test]
    fn an_answer_of_a_model_that_cites_nothing_names_no_source() {
        let of = |reason: &str, cites: bool, output: &str| {
            let mut trace = trace::example();
            trace["finishReason"] = reason.into();
            trace["output"] = output.into();
            if !cites {
                trace["citations"] = serde_json::json!([]);
            }
            TraceBody::of(&trace).names_no_source()
        };
        for reason in ["stop", "length", "unformatted"] {
            assert!(of(reason, false, "Solveig Aas."), "{reason}");
        }
        assert!(!of("stop", true, "Solveig Aas [1]."));
        assert!(!of("stop", false, " "), "there is no answer");
        // What says itself that nothing was found, or is no model's.
        for reason in ["declined", "extractive", "return_direct", "error", "max_time"] {
            assert!(!of(reason, false, "Nothing in the linked documents answers this question."), "{reason}");
        }
    }

    #[test]
    fn a_failed_run_tells_what_failed() {
        let mut trace = trace::example();
        trace["finishReason"] = "error".into();
        trace["steps"][1]["error"] = "The model did not answer.".into();
        assert_eq!(TraceBody::of(&trace).failure().as_deref(), Some("The model did not answer."));
    }
}
