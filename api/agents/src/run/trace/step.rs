//! The steps of a run.

use lectern_shared::model::run::StepKind;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{PlaceView, UsageView};
use crate::run::setup::StepTiming;

/// One step of a run.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TraceStep)]
#[serde(rename_all = "camelCase")]
pub(in crate::run) struct StepView {
    /// `retrieval` (a search of the linked documents), `chat` (a question to the model) or `tool` (the call of a tool).
    #[schema(value_type = String)]
    pub(in crate::run) kind: StepKind,
    /// What was done: the search, the model or the tool by its name.
    pub(in crate::run) action: String,
    /// What it was given; null in a trace that was cut to be kept.
    #[schema(value_type = Value)]
    pub(in crate::run) input: Value,
    /// What the model said around the step; null when it said nothing.
    #[schema(required = true)]
    pub(in crate::run) log: Option<String>,
    /// What came of it; null for a retrieval, whose result is in `documents`.
    #[schema(value_type = Value)]
    pub(in crate::run) observation: Value,
    /// When it began, in milliseconds from the beginning of the run.
    pub(in crate::run) started_ms: u64,
    /// How long it took, in milliseconds.
    pub(in crate::run) duration_ms: u64,
    /// How often it was tried.
    pub(in crate::run) attempts: u32,
    /// The model's tokens; null for steps without a model.
    #[schema(value_type = Option<UsageView>, required = true)]
    pub(in crate::run) usage: Option<UsageView>,
    /// Why it failed; null when it did not.
    #[schema(required = true)]
    pub(in crate::run) error: Option<String>,
    /// The passages that a retrieval found, best first.
    #[schema(value_type = Vec<RetrievedPassage>)]
    pub(in crate::run) documents: Vec<Value>,
}

/// A passage that a retrieval found.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes what the retrieval notes in its step")]
pub(super) struct RetrievedPassage {
    /// The number by which the answer cites it. Passages that stand side by side are read, and cited, as one.
    n: usize,
    /// Its document.
    document_id: String,
    /// The document's name.
    document_name: String,
    /// The passage.
    chunk_id: String,
    /// Where it stands in its document.
    place: PlaceView,
    /// How well it matches; comparable within one step only. Null for a passage that was added because it stands beside one that
    /// was found.
    score: Option<f32>,
    /// Its text; left out of a trace that was cut to be kept.
    #[schema(required = false)]
    text: String,
}

impl StepView {
    /// A step that has been made, and of which nothing else is known yet.
    pub(in crate::run) fn new(kind: StepKind, action: &str, input: Value, span: StepTiming) -> Self {
        Self {
            kind,
            action: action.to_owned(),
            input,
            log: None,
            observation: Value::Null,
            started_ms: span.started_ms,
            duration_ms: span.duration_ms,
            attempts: 1,
            usage: None,
            error: None,
            documents: Vec::new(),
        }
    }
}
