//! An answer while it arrives: what every wire format's events are put together into, within limits of size.

use serde_json::Value;

use super::{
    ChatErrorKind, ChatOutcome, ChatRequest, FinishReason, TokenUsage, ToolCall, UsageSource, characters,
    retry::AttemptFailure, thoughts::ThoughtFilter,
};

/// The most text taken from one answer. A longer one is cut there, at a character, and finishes with
/// [`FinishReason::Length`].
pub(crate) const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// Calls in one answer; more is a runaway.
const MAX_TOOL_CALLS: usize = 128;

/// Bytes of ids, names, arguments and signatures of all calls of one answer.
const MAX_TOOL_CALL_BYTES: usize = 1024 * 1024;

/// How ids begin that were made here, because the provider gave none.
const OWN_ID: &str = "call_";

/// Whether an id may be one that was made here: nothing that its provider knows.
pub(super) fn is_own_id(id: &str) -> bool {
    id.starts_with(OWN_ID)
}

/// An answer, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct PartialAnswer {
    /// The text so far.
    pub(super) text: String,
    /// How far it has come.
    pub(super) progress: AnswerProgress,
    /// Why nothing more is to be read.
    pub(super) halt: Option<HaltReason>,
    /// Why the answer ended, once an event has said so.
    pub(super) finish_reason: Option<FinishReason>,
    /// Tokens read, if reported.
    pub(super) input_tokens: Option<u64>,
    /// Tokens written, if reported.
    pub(super) output_tokens: Option<u64>,
    /// Takes thoughts out of the text, where they may be in it.
    thoughts: Option<ThoughtFilter>,
    /// Characters of thoughts that came apart from the text.
    thought: u64,
    calls: Vec<PartialToolCall>,
    call_bytes: usize,
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AnswerProgress {
    /// No event with data has come.
    #[default]
    Nothing,
    /// Data has come.
    Data,
    /// Something that belongs to an answer has come.
    Choice,
    /// Something of the answer itself has come, thoughts included: tokens have been spent.
    Begun,
}

/// Why nothing more is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HaltReason {
    /// The provider has said that nothing follows.
    Ended,
    /// There was more text than is taken.
    TextCut,
    /// The calls are more or larger than accepted, and incomplete here.
    CallsTooLarge,
}

#[derive(Debug)]
struct PartialToolCall {
    index: Option<u64>,
    call: ToolCall,
}

/// A piece of a call. What a piece does not say is empty.
#[derive(Debug, Default)]
pub(super) struct ToolCallDelta<'a> {
    /// Which of the answer's calls this belongs to.
    pub(super) index: Option<u64>,
    /// [`ToolCall::id`].
    pub(super) id: &'a str,
    /// [`ToolCall::name`].
    pub(super) name: &'a str,
    /// The next of [`ToolCall::arguments`].
    pub(super) arguments: &'a str,
    /// [`ToolCall::signature`].
    pub(super) signature: Option<&'a str>,
}

impl PartialAnswer {
    /// Notes that the answer has come so far at least.
    pub(super) fn reach(&mut self, progress: AnswerProgress) {
        self.progress = self.progress.max(progress);
    }

    /// Notes that nothing more is to be read. The first reason counts.
    pub(super) fn halt(&mut self, halt: HaltReason) {
        self.halt.get_or_insert(halt);
    }

    /// Notes that the model may think in its text before it answers.
    pub(super) fn expect_thoughts(&mut self) {
        self.thoughts.get_or_insert_default();
    }

    /// Notes that the text has come to its end: what could have been the beginning of thoughts is none.
    pub(super) fn end_text(&mut self) {
        let held = self.thoughts.as_mut().map(ThoughtFilter::end);
        self.append(&held.unwrap_or_default());
    }

    /// Adds text. Thoughts in it count for progress and are not kept.
    pub(super) fn push_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.reach(AnswerProgress::Begun);
        match &mut self.thoughts {
            None => self.append(text),
            Some(thoughts) => {
                let answer = thoughts.answer(text);
                self.append(&answer);
            }
        }
    }

    /// Appends text of the answer, as much as there is room for.
    fn append(&mut self, text: &str) {
        let piece = &text[..text.floor_char_boundary(MAX_TEXT_BYTES - self.text.len())];
        self.text.push_str(piece);
        if piece.len() < text.len() {
            self.halt(HaltReason::TextCut);
        }
    }

    /// Appends what stands at a place where providers put text: a text, or blocks of which some hold text and others
    /// thoughts.
    pub(super) fn push_content(&mut self, content: &Value) {
        match content {
            Value::String(text) => self.push_text(text),
            Value::Array(blocks) => {
                for block in blocks {
                    match block["text"].as_str() {
                        Some(text) => self.push_text(text),
                        None => {
                            self.reach(AnswerProgress::Begun);
                            self.think(&block["thinking"]);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Notes that the model thinks, and how much; what it thinks is not kept.
    pub(super) fn think(&mut self, thought: &Value) {
        if !thought.is_null() && thought.as_str() != Some("") {
            self.reach(AnswerProgress::Begun);
            self.thought += thought_characters(thought);
        }
    }

    /// Notes tokens; what is not reported stays as it was.
    pub(super) fn count(&mut self, input: Option<u64>, output: Option<u64>) {
        self.input_tokens = input.or(self.input_tokens);
        self.output_tokens = output.or(self.output_tokens);
    }

    /// Adds a piece of a call to the call that it continues, or begins a new one.
    pub(super) fn push_call(&mut self, part: &ToolCallDelta<'_>) {
        self.reach(AnswerProgress::Begun);
        let size =
            part.id.len() + part.name.len() + part.arguments.len() + part.signature.map_or(0, str::len);
        self.call_bytes = self.call_bytes.saturating_add(size);
        if self.call_bytes > MAX_TOOL_CALL_BYTES {
            self.halt(HaltReason::CallsTooLarge);
            return;
        }
        match self.position_of(part.index, part.id) {
            Some(position) => {
                let call = &mut self.calls[position].call;
                if call.id.is_empty() {
                    call.id.push_str(part.id);
                }
                if call.name.is_empty() {
                    call.name.push_str(part.name);
                }
                call.arguments.push_str(part.arguments);
            }
            None if self.calls.len() == MAX_TOOL_CALLS => self.halt(HaltReason::CallsTooLarge),
            None => {
                let call = ToolCall {
                    id: part.id.to_owned(),
                    name: part.name.to_owned(),
                    arguments: part.arguments.to_owned(),
                    signature: part.signature.map(ToOwned::to_owned),
                };
                self.calls.push(PartialToolCall { index: part.index, call });
            }
        }
    }

    /// Adds a call that came in one piece.
    pub(super) fn push_whole_call(&mut self, part: &ToolCallDelta<'_>) {
        let index = Some(self.calls.len() as u64);
        self.push_call(&ToolCallDelta { index, ..*part });
    }

    /// The call that a part continues. The index decides, unless the part brings another id than the call has:
    /// some servers give every call the index 0. Without an index a known id decides, and a part without either
    /// belongs to the last call.
    fn position_of(&self, index: Option<u64>, id: &str) -> Option<usize> {
        let same_id = |own: &str| id.is_empty() || own.is_empty() || own == id;
        match index {
            Some(_) => self
                .calls
                .iter()
                .rposition(|partial| partial.index == index)
                .filter(|&at| same_id(&self.calls[at].call.id)),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|partial| partial.call.id == id),
        }
    }

    /// Decides what a stream amounts to. A finish reason makes it whole, however it ended; nothing else does.
    pub(super) fn conclude(mut self, end: StreamOutcome) -> Result<CompleteAnswer, AttemptFailure> {
        let finish_reason = match (end, self.finish_reason) {
            (StreamOutcome::Failed(failure), _) if failure.kind == ChatErrorKind::TooLarge => {
                return Err(AttemptFailure { retryable: false, ..failure });
            }
            (StreamOutcome::Cut, _) => FinishReason::Length,
            (_, Some(reason)) => reason,
            (StreamOutcome::Failed(failure), None) => {
                return Err(AttemptFailure {
                    retryable: failure.retryable && self.progress < AnswerProgress::Begun,
                    ..failure
                });
            }
            (StreamOutcome::Closed, None) => {
                return Err(AttemptFailure::new(match self.progress {
                    AnswerProgress::Nothing => ChatErrorKind::Garbage,
                    AnswerProgress::Data => ChatErrorKind::NoChoices,
                    AnswerProgress::Choice | AnswerProgress::Begun => ChatErrorKind::Truncated,
                }));
            }
        };
        let tool_calls = self.take_calls();
        // Several servers end a turn of tool calls with `stop`.
        let waits = finish_reason == FinishReason::Stop && !tool_calls.is_empty();
        Ok(CompleteAnswer {
            text: self.text,
            thought: self.thought + self.thoughts.map_or(0, |thoughts| thoughts.thought()),
            tool_calls,
            finish_reason: if waits { FinishReason::ToolCalls } else { finish_reason },
            reported: self.input_tokens.zip(self.output_tokens),
        })
    }

    /// Takes the calls, each with an id of its own.
    fn take_calls(&mut self) -> Vec<ToolCall> {
        let mut calls: Vec<ToolCall> = Vec::with_capacity(self.calls.len());
        for PartialToolCall { mut call, .. } in std::mem::take(&mut self.calls) {
            if call.id.is_empty() || calls.iter().any(|other| other.id == call.id) {
                // Random, so that it is no other turn's either.
                call.id = format!("{OWN_ID}{:016x}", rand::random::<u64>());
            }
            calls.push(call);
        }
        calls
    }
}

/// Characters of a thought: a text, or blocks that hold texts.
fn thought_characters(thought: &Value) -> u64 {
    match thought {
        Value::String(text) => characters(text),
        Value::Array(blocks) => blocks.iter().map(|block| thought_characters(&block["text"])).sum(),
        _ => 0,
    }
}

/// How a stream ended.
#[derive(Debug)]
pub(super) enum StreamOutcome {
    /// The provider ended it, with or without an end event.
    Closed,
    /// We did: there is more text than we take.
    Cut,
    /// Neither wanted to.
    Failed(AttemptFailure),
}

/// A stream that came to a good end.
#[derive(Debug)]
pub(super) struct CompleteAnswer {
    text: String,
    /// Characters of thoughts, which were written as well.
    thought: u64,
    tool_calls: Vec<ToolCall>,
    finish_reason: FinishReason,
    reported: Option<(u64, u64)>,
}

impl CompleteAnswer {
    /// An answer that its provider withheld before its first word.
    pub(super) const fn withheld() -> Self {
        Self {
            text: String::new(),
            thought: 0,
            tool_calls: Vec::new(),
            finish_reason: FinishReason::ContentFilter,
            reported: None,
        }
    }

    /// The outcome of a call whose `attempts`th request was answered so.
    pub(super) fn into_outcome(self, request: &ChatRequest, attempts: u32) -> ChatOutcome {
        let usage = match self.reported {
            Some((input_tokens, output_tokens)) => {
                TokenUsage { input_tokens, output_tokens, source: UsageSource::Provider }
            }
            None => {
                let told = TokenUsage::estimate(request, &self.text, &self.tool_calls);
                TokenUsage { output_tokens: told.output_tokens + self.thought.div_ceil(4), ..told }
            }
        };
        let Self { text, tool_calls, finish_reason, .. } = self;
        ChatOutcome { text, tool_calls, finish_reason, usage, attempts }
    }
}
