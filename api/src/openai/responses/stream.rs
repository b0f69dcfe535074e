//! A response as it comes: named events with increasing numbers, in the order in which OpenAI sends them.

use axum::body::Bytes;
use lectern_agents::run::RunEvent;
use serde_json::{Map, Value, json};

use super::{
    answer::{DocumentSearch, OutputItem, OutputMessage, OutputText, ResponseStatus},
    attributes::AttributeReader,
    run::{ResponseRun, ResponseStep},
};
use crate::{
    error::ApiError,
    openai::{error::ErrorDetail, events::EventBuffer},
    response::ApiResult,
    run_stream::RunEventEncoder,
};

/// Tells a run as events of a response.
pub(super) struct ResponseStream {
    run: ResponseRun,
    /// None where no file is told of.
    attributes: Option<AttributeReader>,
    /// The number of the next event.
    sequence: u64,
}

impl ResponseStream {
    pub(super) fn new(run: ResponseRun, attributes: Option<AttributeReader>) -> Self {
        Self { run, attributes, sequence: 0 }
    }

    /// Adds an event of this kind, with these fields besides the two that all have.
    fn push(&mut self, events: &mut EventBuffer, kind: &str, fields: Value) {
        events.push_named(kind, &event(kind, self.sequence, fields));
        self.sequence += 1;
    }

    fn push_step(&mut self, events: &mut EventBuffer, step: ResponseStep) {
        match step {
            ResponseStep::Created => {
                for kind in ["response.created", "response.in_progress"] {
                    let fields = json!({"response": self.run.response});
                    self.push(events, kind, fields);
                }
            }
            ResponseStep::ItemAdded(index, item) => {
                self.push(events, "response.output_item.added", json!({"output_index": index, "item": item}));
                match item {
                    OutputItem::FileSearchCall(search) => {
                        self.push_search(events, index, &search, &["in_progress", "searching"]);
                    }
                    OutputItem::Message(message) => {
                        let part = json!({"part": OutputText::new(String::new(), &[])});
                        self.push_part(events, "response.content_part.added", (index, &message), part);
                    }
                }
            }
            ResponseStep::TextAdded(index, delta) => {
                if let Some(OutputItem::Message(message)) = self.run.response.output.get(index).cloned() {
                    let fields = json!({"delta": delta, "logprobs": []});
                    self.push_part(events, "response.output_text.delta", (index, &message), fields);
                }
            }
            ResponseStep::ItemDone(index, item) => {
                match &item {
                    OutputItem::FileSearchCall(search) => {
                        if search.status == ResponseStatus::Completed {
                            self.push_search(events, index, search, &["completed"]);
                        }
                    }
                    OutputItem::Message(message) => self.push_text_end(events, index, message),
                }
                self.push(events, "response.output_item.done", json!({"output_index": index, "item": item}));
            }
            ResponseStep::Ended => {
                let kind = match self.run.response.status {
                    ResponseStatus::Incomplete => "response.incomplete",
                    ResponseStatus::InProgress | ResponseStatus::Completed | ResponseStatus::Failed => {
                        "response.completed"
                    }
                };
                let fields = json!({"response": self.run.response});
                self.push(events, kind, fields);
            }
        }
    }

    /// Adds how far a search is.
    fn push_search(
        &mut self,
        events: &mut EventBuffer,
        index: usize,
        search: &DocumentSearch,
        states: &[&str],
    ) {
        for state in states {
            let kind = format!("response.file_search_call.{state}");
            self.push(events, &kind, json!({"item_id": search.id, "output_index": index}));
        }
    }

    /// Adds an event about the one part of the message at a place.
    fn push_part(
        &mut self,
        events: &mut EventBuffer,
        kind: &str,
        (index, message): (usize, &OutputMessage),
        fields: Value,
    ) {
        let mut place = json!({"item_id": message.id, "output_index": index, "content_index": 0});
        if let (Some(place), Value::Object(fields)) = (place.as_object_mut(), fields) {
            place.extend(fields);
        }
        self.push(events, kind, place);
    }

    /// Adds what is told of a message's text when all of it is there.
    fn push_text_end(&mut self, events: &mut EventBuffer, index: usize, message: &OutputMessage) {
        for text in &message.content {
            for (at, annotation) in text.annotations.iter().enumerate() {
                let fields = json!({"annotation_index": at, "annotation": annotation});
                let kind = "response.output_text.annotation.added";
                self.push_part(events, kind, (index, message), fields);
            }
            let fields = json!({"text": text.text, "logprobs": []});
            self.push_part(events, "response.output_text.done", (index, message), fields);
            let part = json!({"part": text});
            self.push_part(events, "response.content_part.done", (index, message), part);
        }
    }
}

/// The data of an event.
fn event(kind: &str, sequence: u64, fields: Value) -> Map<String, Value> {
    let mut event = Map::new();
    event.insert("type".to_owned(), json!(kind));
    event.insert("sequence_number".to_owned(), json!(sequence));
    if let Value::Object(fields) = fields {
        event.extend(fields);
    }
    event
}

impl RunEventEncoder for ResponseStream {
    async fn prepare(&mut self, event: &RunEvent) -> ApiResult<()> {
        match &self.attributes {
            Some(attributes) => attributes.prepare(&mut self.run, event).await,
            None => Ok(()),
        }
    }

    fn encode(&mut self, event: &RunEvent) -> Option<Bytes> {
        if let RunEvent::Failed(error) = event {
            return Some(self.failure(&error.clone().into()));
        }
        let mut events = EventBuffer::default();
        for step in self.run.apply(event) {
            self.push_step(&mut events, step);
        }
        events.into_bytes()
    }

    /// Changes nothing: what would be said is made before it is known whether it has to be.
    fn failure(&mut self, error: &ApiError) -> Bytes {
        let detail = ErrorDetail::from(error);
        let (kind, fields) = if self.sequence == 0 {
            let Value::Object(fields) = json!(detail) else { return Bytes::new() };
            let told = fields.into_iter().filter(|(name, _)| name != "type");
            ("error", Value::Object(told.collect()))
        } else {
            ("response.failed", json!({"response": self.run.failed(&detail)}))
        };
        let mut events = EventBuffer::default();
        events.push_named(kind, &event(kind, self.sequence, fields));
        events.into_bytes().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
