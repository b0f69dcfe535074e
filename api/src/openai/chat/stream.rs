//! A chat completion as it comes: chunks, of which each adds to the answer.

use axum::body::Bytes;
use lectern_agents::run::{CitationView, RunEvent, RunOutcome};
use lectern_shared::ids::TraceId;
use serde_json::{Map, Value, json};

use super::answer::{ChatAnnotation, CompletionHead, CompletionUsage, PREFIX, finish_reason};
use crate::{
    error::ApiError,
    openai::{
        annotations::CitationLinker,
        asking::{RunReference, answer_id},
        error::ErrorDetail,
        events::EventBuffer,
    },
    run_stream::RunEventEncoder,
};

/// Tells a run in chunks.
pub(super) struct CompletionStream {
    head: CompletionHead,
    linker: CitationLinker,
    include_usage: bool,
    id: String,
    citations: Vec<CitationView>,
    /// Whose answer it is has been said.
    has_begun: bool,
}

impl CompletionStream {
    pub(super) fn new(head: CompletionHead, linker: CitationLinker, include_usage: bool) -> Self {
        Self { head, linker, include_usage, id: String::new(), citations: Vec::new(), has_begun: false }
    }

    fn start(&mut self, trace: TraceId) {
        self.id = answer_id(PREFIX, trace);
    }

    /// A chunk with these choices.
    fn chunk(&self, choices: Value) -> Map<String, Value> {
        let mut chunk = Map::new();
        chunk.insert("id".to_owned(), json!(self.id));
        chunk.insert("object".to_owned(), json!("chat.completion.chunk"));
        chunk.insert("created".to_owned(), json!(self.head.created));
        chunk.insert("model".to_owned(), json!(self.head.model));
        chunk.insert("system_fingerprint".to_owned(), Value::Null);
        chunk.insert("choices".to_owned(), choices);
        if self.include_usage {
            chunk.insert("usage".to_owned(), Value::Null);
        }
        chunk
    }

    /// A chunk that adds this to the answer.
    fn addition(&self, delta: &Value) -> Map<String, Value> {
        self.chunk(choices(delta, None))
    }

    /// What is said before the first text.
    fn begin(&mut self, events: &mut EventBuffer) {
        if !std::mem::replace(&mut self.has_begun, true) {
            events.push(&self.addition(&json!({"role": "assistant", "content": "", "refusal": null})));
        }
    }

    fn end(&mut self, events: &mut EventBuffer, outcome: RunOutcome) {
        self.begin(events);
        let markers = self.linker.markers(&self.citations);
        if !markers.is_empty() {
            let annotations: Vec<_> = markers.iter().map(ChatAnnotation::from).collect();
            events.push(&self.addition(&json!({"annotations": annotations})));
        }
        let mut last = self.chunk(choices(&json!({}), Some(finish_reason(outcome))));
        last.insert("lectern".to_owned(), json!(RunReference { trace_id: outcome.trace }));
        events.push(&last);
        if self.include_usage {
            let mut used = self.chunk(json!([]));
            used.insert("usage".to_owned(), json!(CompletionUsage::from(outcome)));
            events.push(&used);
        }
        events.push_done();
    }
}

fn choices(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}])
}

impl RunEventEncoder for CompletionStream {
    fn encode(&mut self, event: &RunEvent) -> Option<Bytes> {
        let mut events = EventBuffer::default();
        match event {
            RunEvent::Start { trace, .. } => self.start(*trace),
            RunEvent::Token { delta } => {
                self.begin(&mut events);
                events.push(&self.addition(&json!({"content": delta})));
            }
            RunEvent::Citation(citation) => self.citations.push((**citation).clone()),
            RunEvent::End { outcome, .. } => self.end(&mut events, *outcome),
            RunEvent::Failed(error) => return Some(self.failure(&error.clone().into())),
            RunEvent::Retrieval { .. } | RunEvent::ToolCall { .. } | RunEvent::ToolResult { .. } => {}
        }
        events.into_bytes()
    }

    fn failure(&mut self, error: &ApiError) -> Bytes {
        let mut events = EventBuffer::default();
        events.push(&ErrorDetail::from(error).body());
        events.into_bytes().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::{ids::AgentId, model::run::TerminationReason};

    use super::*;
    use crate::openai::annotations::testing::{citation, linker};

    const ANSWER: &str = "Grüße 🚢 [1].";

    fn start() -> RunEvent {
        RunEvent::Start { trace: TraceId::generate(), agent: AgentId::generate(), session: None }
    }

    fn token(delta: &str) -> RunEvent {
        RunEvent::Token { delta: delta.to_owned() }
    }

    fn end(finish_reason: TerminationReason) -> RunEvent {
        let outcome = RunOutcome {
            trace: TraceId::generate(),
            finish_reason,
            is_withheld: false,
            input_tokens: 7,
            output_tokens: 5,
        };
        RunEvent::End { answer: ANSWER.to_owned(), outcome, trace: Value::Null }
    }

    /// The chunks of a run, and what the stream ends with.
    fn chunks(include_usage: bool, events: &[RunEvent]) -> (Vec<Value>, String) {
        let head = CompletionHead { created: 1, model: "support".to_owned() };
        let mut stream = CompletionStream::new(head, linker(), include_usage);
        let sent: Vec<u8> = events.iter().filter_map(|event| stream.encode(event)).flatten().collect();
        let sent = String::from_utf8(sent).unwrap();
        let mut data: Vec<_> = sent
            .split_terminator("\n\n")
            .map(|event| event.strip_prefix("data: ").unwrap().to_owned())
            .collect();
        let last = data.pop().unwrap();
        (data.iter().map(|data| serde_json::from_str(data).unwrap()).collect(), last)
    }

    #[test]
    fn the_text_comes_once_and_then_what_it_cites_and_why_it_ends() {
        let run = [
            start(),
            token("Grüße "),
            token("🚢 [1]."),
            RunEvent::Citation(Box::new(citation(1, ANSWER))),
            end(TerminationReason::Stop),
        ];
        let (chunks, last) = chunks(true, &run);
        assert_eq!(last, "[DONE]");
        let deltas: Vec<_> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
        assert_eq!(*deltas[0], json!({"role": "assistant", "content": "", "refusal": null}));
        let text: String = deltas.iter().filter_map(|delta| delta["content"].as_str()).collect();
        assert_eq!(text, ANSWER);
        let mark = &deltas[3]["annotations"][0]["url_citation"];
        assert_eq!((&mark["start_index"], &mark["end_index"]), (&json!(8), &json!(11)));
        assert_eq!(chunks[4]["choices"][0]["finish_reason"], "stop");
        assert_eq!((&chunks[5]["choices"], &chunks[5]["usage"]["total_tokens"]), (&json!([]), &json!(12)));
        assert!(chunks[..5].iter().all(|chunk| chunk["usage"].is_null() && chunk["id"] == chunks[5]["id"]));
    }

    #[test]
    fn an_answer_without_text_is_one_too_and_a_limit_is_told() {
        let (chunks, last) = chunks(false, &[start(), end(TerminationReason::MaxTokens)]);
        assert_eq!((chunks.len(), last.as_str()), (2, "[DONE]"));
        assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(chunks[1]["choices"][0]["finish_reason"], "length");
        assert!(chunks[1].get("usage").is_none());
    }

    #[test]
    fn nothing_is_sent_before_the_answer_begins_so_that_failing_is_a_status() {
        let head = CompletionHead { created: 1, model: "support".to_owned() };
        let mut stream = CompletionStream::new(head, linker(), false);
        assert!(stream.encode(&start()).is_none());
        let found = RunEvent::Retrieval { query: "Who?".to_owned(), documents: Vec::new() };
        assert!(stream.encode(&found).is_none());
    }

    #[test]
    fn a_failure_later_is_the_last_that_is_sent() {
        let failed = RunEvent::Failed(lectern_agents::AgentError::StreamNotRead);
        let (chunks, last) = chunks(false, &[start(), token("Gr"), failed]);
        assert_eq!(chunks.len(), 2);
        let last: Value = serde_json::from_str(&last).unwrap();
        assert_eq!(last["error"]["code"], "stream_not_read");
    }
}
