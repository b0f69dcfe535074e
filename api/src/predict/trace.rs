//! What a run did, step by step, as its caller sees it and as it is kept.

use std::time::Instant;

use lectern_shared::{ids::TraceId, model::agent::Agent};
use serde_json::{Value, json};

use super::{Composed, retrieve::NumberedPassage, source_of};
use crate::llm::{Usage, UsageSource};

/// The trace of a run that goes on.
pub(super) struct Trace {
    id: TraceId,
    started: Instant,
    steps: Vec<Value>,
}

/// A step that goes on.
pub(super) struct Step {
    kind: &'static str,
    action: String,
    input: Value,
    started: Instant,
    pub(super) observation: Value,
    pub(super) attempts: u32,
    pub(super) usage: Option<Usage>,
    pub(super) documents: Vec<Value>,
}

impl Step {
    pub(super) fn begin(kind: &'static str, action: &str, input: Value) -> Self {
        Self {
            kind,
            action: action.to_owned(),
            input,
            started: Instant::now(),
            observation: Value::Null,
            attempts: 1,
            usage: None,
            documents: Vec::new(),
        }
    }

    pub(super) fn end(self, trace: &mut Trace) {
        let started = self.started.duration_since(trace.started);
        trace.steps.push(json!({
            "kind": self.kind,
            "action": self.action,
            "input": self.input,
            "log": null,
            "observation": self.observation,
            "startedMs": milliseconds(started),
            "durationMs": milliseconds(self.started.elapsed()),
            "attempts": self.attempts,
            "usage": self.usage.map(show_usage),
            "error": null,
            "documents": self.documents,
        }));
    }
}

impl Trace {
    pub(super) fn begin(id: TraceId) -> Self {
        Self { id, started: Instant::now(), steps: Vec::new() }
    }

    pub(super) fn finish(self, agent: &Agent, composed: &Composed, sources: &[NumberedPassage]) -> Value {
        let citations: Vec<Value> = composed
            .citations
            .iter()
            .filter_map(|cited| {
                let mut shown = source_of(sources, cited)?.describe();
                shown.insert("quote".to_owned(), json!(cited.quote));
                shown.insert("verified".to_owned(), json!(cited.verified));
                Some(Value::Object(shown))
            })
            .collect();
        json!({
            "id": self.id,
            "output": composed.text,
            "finishReason": composed.finish_reason,
            "durationMs": milliseconds(self.started.elapsed()),
            "llm": {"model": agent.llm.0.model, "provider": agent.llm.0.provider},
            "usage": composed.usage.map_or_else(
                || json!({"inputTokens": 0, "outputTokens": 0, "cost": null, "source": "none"}),
                show_usage,
            ),
            "steps": self.steps,
            "citations": citations,
        })
    }
}

fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn show_usage(usage: Usage) -> Value {
    let source = match usage.source {
        UsageSource::Provider => "provider",
        UsageSource::Estimated => "estimated",
    };
    json!({"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens, "cost": null, "source": source})
}

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
            step.insert("observation".to_owned(), Value::Null);
            step.insert("input".to_owned(), Value::Null);
        });
    }
    trace
}
