//! What a provider answers, as the targets in `fuzz/` call what reads it.

use bytes::Bytes;

use super::{
    ChatErrorKind, ChatMessage, ChatRequest, ModelProvider,
    answer::{AnswerProgress, HaltReason, MAX_TEXT_BYTES, PartialAnswer, StreamOutcome},
    retry::AttemptFailure,
    settings::RefusedSettings,
    sse::{ServerSentEvent, SseReader},
    wire::ModelEndpoint,
};

/// Server-sent events: they do not depend on how the bytes were cut.
pub fn sse(bytes: &[u8]) {
    let whole = events([Bytes::copy_from_slice(bytes)]);
    assert_eq!(whole, events(bytes.chunks(1).map(Bytes::copy_from_slice)), "one byte at a time");
    let (first, second) = bytes.split_at(bytes.len() / 2);
    assert_eq!(whole, events([first, second].map(Bytes::copy_from_slice)), "in two halves");
}

/// The events of these pieces, and whether they ended because one was too large.
fn events(pieces: impl IntoIterator<Item = Bytes>) -> (Vec<ServerSentEvent>, bool) {
    let mut reader = SseReader::default();
    let mut all = Vec::new();
    for piece in pieces {
        reader.feed(piece);
        loop {
            match reader.next_event() {
                Ok(Some(event)) => all.push(event),
                Ok(None) => break,
                Err(_) => return (all, true),
            }
        }
    }
    (all, false)
}

/// An answer of `OpenAI` and those who speak its format.
pub fn openai(bytes: &[u8]) {
    answer(ModelProvider::OpenAi, bytes);
}

/// An answer of Anthropic's.
pub fn anthropic(bytes: &[u8]) {
    answer(ModelProvider::Anthropic, bytes);
}

/// An answer of Gemini's.
pub fn gemini(bytes: &[u8]) {
    answer(ModelProvider::Gemini, bytes);
}

/// An answer of Cohere's.
pub fn cohere(bytes: &[u8]) {
    answer(ModelProvider::Cohere, bytes);
}

/// Reads a stream as a request does, to its end or to where it is given up, and makes of it what a run is given.
fn answer(provider: ModelProvider, bytes: &[u8]) {
    let Ok(endpoint) = ModelEndpoint::new(provider, "a-model", None, None) else { return };
    let (events, is_too_large) = events([Bytes::copy_from_slice(bytes)]);
    let mut answer = PartialAnswer::default();
    let too_large = || StreamOutcome::Failed(AttemptFailure::new(ChatErrorKind::TooLarge));
    let mut end = if is_too_large { too_large() } else { StreamOutcome::Closed };
    for event in events.iter().filter(|event| !event.data.is_empty()) {
        answer.reach(AnswerProgress::Data);
        let told = answer.text.len();
        if let Err(failure) = endpoint.format.read(event, &mut answer) {
            end = StreamOutcome::Failed(failure);
            break;
        }
        assert!((told..=MAX_TEXT_BYTES).contains(&answer.text.len()) && answer.text.is_char_boundary(told));
        end = match answer.halt {
            None => continue,
            Some(HaltReason::Ended) => StreamOutcome::Closed,
            Some(HaltReason::TextCut) => StreamOutcome::Cut,
            Some(HaltReason::CallsTooLarge) => too_large(),
        };
        break;
    }
    let Ok(answer) = answer.conclude(end) else { return };
    let outcome = answer.into_outcome(&ChatRequest::default(), 1);
    let mut ids: Vec<_> = outcome.tool_calls.iter().map(|call| &call.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), outcome.tool_calls.len(), "each call has an id of its own");
    assert!(ids.iter().all(|id| !id.is_empty()));
    // What the model wanted is sent back to it in the next request.
    let message = ChatMessage::Assistant { text: outcome.text, tool_calls: outcome.tool_calls };
    let request = ChatRequest { messages: vec![message], ..ChatRequest::default() };
    let body = endpoint.format.body("a-model", &request, RefusedSettings::default());
    assert!(body.is_object());
}
