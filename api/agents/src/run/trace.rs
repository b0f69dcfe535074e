//! What a run did, step by step, as its caller sees it and as it is kept.

mod citation;
mod example;
mod finished;
mod step;
mod usage;

use lectern_shared::{ids::TraceId, model::run::TerminationReason};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

pub use self::{
    citation::{AnswerSpan, CitationView, PlaceView},
    example::example,
};
pub(super) use self::{
    finished::{FinishedRun, RunAnswer},
    step::StepView,
    usage::UsageView,
};
use super::setup::RunSetup;

/// How an answer came about.
#[derive(Serialize, ToSchema)]
#[schema(as = Trace)]
#[serde(rename_all = "camelCase")]
pub struct TraceView {
    /// Its id: `GET /traces/{id}` shows it again while it is kept.
    #[schema(value_type = String)]
    id: TraceId,
    /// The number of the version that the agent was which was asked. Traces of before this was noted do not have it.
    #[schema(value_type = i64, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_version: Option<i64>,
    /// The answer, with `[n]` where it cites.
    output: String,
    /// Why the answer ended: `stop` (the model was done), `length` (it was cut at the model's limit), `max_iterations`,
    /// `max_time`, `max_tokens`, `max_cost` (a limit of the run was reached; the answer is what there was), `unformatted` (a
    /// REACT model did not keep to its format, and what it wrote is the answer), `return_direct` (a tool's result is the
    /// answer), `extractive` (quoted from the documents without a model), `declined` (nothing in the documents answers), or
    /// `error` (there is no answer; only in stored traces).
    #[schema(value_type = String)]
    finish_reason: TerminationReason,
    /// How long the run took, in milliseconds.
    duration_ms: u64,
    /// What answered.
    llm: TraceLlm,
    /// Tokens of the whole run.
    usage: UsageView,
    /// What was done, in order.
    steps: Vec<StepView>,
    /// The sources of the answer, in the order of their first use.
    citations: Vec<CitationView>,
}

/// What answered.
#[derive(Serialize, ToSchema)]
struct TraceLlm {
    /// The name of the model.
    model: String,
    /// The label of its provider.
    provider: String,
}

/// The trace of a run that has ended, with the answer or without.
pub(super) fn trace(setup: &RunSetup, done: &FinishedRun, duration_ms: u64) -> Value {
    let (output, finish_reason, citations) = match &done.outcome {
        Ok(ended) => (ended.answer.clone(), ended.finish_reason, ended.citations.clone()),
        Err(_) => (String::new(), TerminationReason::Error, Vec::new()),
    };
    json!(TraceView {
        id: setup.trace,
        agent_version: setup.agent_version,
        output,
        finish_reason,
        duration_ms,
        llm: TraceLlm { model: setup.model.clone(), provider: setup.provider.clone() },
        usage: UsageView::of(&done.spent),
        steps: done.steps.clone(),
        citations,
    })
}

/// Longest name of a step in a trace that was cut, in bytes.
const LONGEST_ACTION: usize = 200;

/// A trace of at most `largest` bytes: first without the texts of the passages, then without what the model said and was
/// asked, which the answer itself still holds.
pub(super) fn shortened(mut trace: Value, largest: usize) -> Value {
    let steps = |trace: &mut Value, cut: fn(&mut serde_json::Map<String, Value>)| {
        for step in trace.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
            step.as_object_mut().map(cut);
        }
    };
    steps(&mut trace, |step| {
        for document in step.get_mut("documents").and_then(Value::as_array_mut).into_iter().flatten() {
            document.as_object_mut().and_then(|document| document.remove("text"));
        }
    });
    if trace.to_string().len() > largest {
        steps(&mut trace, |step| {
            for name in ["observation", "input", "log", "error"] {
                step.insert(name.to_owned(), Value::Null);
            }
            if let Some(Value::String(action)) = step.get_mut("action") {
                action.truncate(action.floor_char_boundary(LONGEST_ACTION));
            }
        });
        if let Some(Value::String(output)) = trace.get_mut("output") {
            output.truncate(output.floor_char_boundary(largest / 2));
        }
    }
    if trace.to_string().len() > largest
        && let Some(Value::Array(citations)) = trace.get_mut("citations")
    {
        citations.clear();
    }
    trace
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lectern_shared::{ids::DocumentId, model::place::SourceSpan};
    use utoipa::{
        PartialSchema,
        openapi::{RefOr, Schema},
    };

    use super::{step::RetrievedPassage, *};
    use crate::run::sources::{RetrievedExcerpt, SourceRegistry};

    fn properties<T: PartialSchema>() -> BTreeSet<String> {
        let RefOr::T(Schema::Object(schema)) = T::schema() else { panic!("no object") };
        schema.properties.keys().cloned().collect()
    }

    fn keys(value: &Value) -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    }

    fn place() -> SourceSpan {
        SourceSpan {
            page: Some(1),
            page_end: Some(2),
            page_starts: Some(vec![2]),
            address: Some(1),
            row: Some(1),
            row_end: Some(2),
            start: Some(0.5),
            end: Some(1.5),
            heading: Some(vec!["Title".to_owned()]),
            char_start: 0,
            char_end: 4,
        }
    }

    #[test]
    fn what_writes_itself_is_described_with_the_fields_that_it_has() {
        assert_eq!(keys(&json!(place())), properties::<PlaceView>());
        let mut sources = SourceRegistry::default();
        let document = DocumentId::generate();
        let numbers = sources.add(vec![RetrievedExcerpt::whole(document, "name", place(), "text")]);
        let described = sources.describe(&numbers);
        assert_eq!(keys(&described[0]), properties::<RetrievedPassage>());
    }

    #[test]
    fn the_example_has_the_fields_that_are_described() {
        let example = example();
        assert_eq!(keys(&example), properties::<TraceView>());
        let fields_at = |pointer: &str| keys(example.pointer(pointer).unwrap());
        assert_eq!(fields_at("/llm"), properties::<TraceLlm>());
        assert_eq!(fields_at("/usage"), properties::<UsageView>());
        assert_eq!(fields_at("/steps/0"), properties::<StepView>());
        assert_eq!(fields_at("/steps/0/documents/0"), properties::<RetrievedPassage>());
        assert_eq!(fields_at("/citations/0"), properties::<CitationView>());
    }
}
