//! What a run makes of a response, event by event: the same for one that is answered whole and one that is streamed.

use std::collections::{BTreeMap, BTreeSet};

use lectern_agents::run::{CitationView, RunEvent, RunOutcome};
use lectern_shared::ids::{DocumentId, TraceId};
use serde_json::{Map, Value};

use super::answer::{
    AgentResponse, DocumentSearch, FoundPassage, IncompleteDetail, OutputItem, OutputMessage, OutputText,
    ResponseStatus, ResponseUsage,
};
use crate::openai::{
    annotations::CitationLinker,
    asking::{RunReference, answer_id, is_cut},
    error::ErrorDetail,
};

/// What the ids of searches begin with.
pub(super) const SEARCH: &str = "fs_";
/// What the ids of answers begin with.
pub(super) const MESSAGE: &str = "msg_";

/// A response that is being made.
pub(super) struct ResponseRun {
    pub(super) response: AgentResponse,
    linker: CitationLinker,
    shows_results: bool,
    /// Attributes of files in which something was found.
    attributes: BTreeMap<DocumentId, Map<String, Value>>,
    /// The run's trace, as the ids of its items have it.
    key: String,
    citations: Vec<CitationView>,
    message: Option<OpenMessage>,
    /// Searches that go on, by the ids of their calls.
    searches: Vec<(String, usize)>,
}

/// The answer, as far as it is there.
struct OpenMessage {
    /// Where it stands among the items.
    index: usize,
    text: String,
}

/// Something that has become of a response.
#[derive(Debug)]
pub(super) enum ResponseStep {
    /// It has begun.
    Created,
    /// An item has begun, and stands at this place.
    ItemAdded(usize, OutputItem),
    /// The message at this place goes on.
    TextAdded(usize, String),
    /// The item at this place is complete.
    ItemDone(usize, OutputItem),
    /// Nothing follows.
    Ended,
}

impl ResponseRun {
    /// A response that begins as `response`.
    pub(super) fn new(response: AgentResponse, linker: CitationLinker, shows_results: bool) -> Self {
        Self {
            response,
            linker,
            shows_results,
            attributes: BTreeMap::new(),
            key: String::new(),
            citations: Vec::new(),
            message: None,
            searches: Vec::new(),
        }
    }

    /// The files that an event tells passages of, whose attributes are not known; none when they are not shown.
    pub(super) fn unknown_files(&self, event: &RunEvent) -> Vec<DocumentId> {
        let found = match event {
            RunEvent::Retrieval { documents, .. } | RunEvent::ToolResult { documents, .. }
                if self.shows_results =>
            {
                documents
            }
            RunEvent::Start { .. }
            | RunEvent::Retrieval { .. }
            | RunEvent::Token { .. }
            | RunEvent::ToolCall { .. }
            | RunEvent::ToolResult { .. }
            | RunEvent::Citation(_)
            | RunEvent::Failed(_)
            | RunEvent::End { .. } => return Vec::new(),
        };
        let files: BTreeSet<DocumentId> = found.iter().filter_map(FoundPassage::file_of).collect();
        files.into_iter().filter(|file| !self.attributes.contains_key(file)).collect()
    }

    /// Takes the attributes of files, for what is told of them from now on.
    pub(super) fn learn(&mut self, read: impl IntoIterator<Item = (DocumentId, Map<String, Value>)>) {
        self.attributes.extend(read);
    }

    /// Takes what has happened; what has become of the response by it, in order. A failure changes nothing.
    pub(super) fn apply(&mut self, event: &RunEvent) -> Vec<ResponseStep> {
        match event {
            RunEvent::Start { trace, .. } => self.start(*trace),
            RunEvent::Retrieval { query, documents } => {
                let (index, added) = self.begin_search(vec![query.clone()]);
                let done = self.end_search(index, documents, false);
                [added].into_iter().chain(done).collect()
            }
            RunEvent::ToolCall { id, input, searches_documents: true, .. } => {
                let query = input.get("query").and_then(Value::as_str).map(str::to_owned);
                let (index, added) = self.begin_search(query.into_iter().collect());
                self.searches.push((id.clone(), index));
                vec![added]
            }
            RunEvent::ToolResult { id, documents, failed, .. } => {
                let at = self.searches.iter().position(|(call, _)| call == id);
                let ended = at.map(|at| self.searches.remove(at).1);
                ended.and_then(|index| self.end_search(index, documents, *failed)).into_iter().collect()
            }
            RunEvent::Token { delta } => self.add_text(delta),
            RunEvent::Citation(citation) => {
                self.citations.push((**citation).clone());
                Vec::new()
            }
            RunEvent::End { outcome, .. } => self.end(*outcome),
            RunEvent::ToolCall { .. } | RunEvent::Failed(_) => Vec::new(),
        }
    }

    /// The response as it is when the run has failed.
    pub(super) fn failed(&self, error: &ErrorDetail) -> AgentResponse {
        let mut response = self.response.clone();
        response.status = ResponseStatus::Failed;
        response.error = Some(error.into());
        for (_, index) in &self.searches {
            set_status(&mut response.output, *index, ResponseStatus::Incomplete);
        }
        if let Some(message) = &self.message
            && let Some(OutputItem::Message(item)) = response.output.get_mut(message.index)
        {
            item.status = ResponseStatus::Incomplete;
            item.content = vec![OutputText::new(message.text.clone(), &[])];
        }
        response
    }

    fn start(&mut self, trace: TraceId) -> Vec<ResponseStep> {
        self.response.id = answer_id("resp_", trace);
        self.response.lectern = Some(RunReference { trace_id: trace });
        self.key = answer_id("", trace);
        vec![ResponseStep::Created]
    }

    /// Adds an item, which is in progress.
    fn add(&mut self, item: OutputItem) -> (usize, ResponseStep) {
        let index = self.response.output.len();
        self.response.output.push(item.clone());
        (index, ResponseStep::ItemAdded(index, item))
    }

    fn begin_search(&mut self, queries: Vec<String>) -> (usize, ResponseStep) {
        let id = format!("{SEARCH}{}_{}", self.key, self.response.output.len());
        let status = ResponseStatus::InProgress;
        self.add(OutputItem::FileSearchCall(DocumentSearch { id, status, queries, results: None }))
    }

    fn end_search(&mut self, index: usize, found: &[Value], failed: bool) -> Option<ResponseStep> {
        let show = |passage: &Value| FoundPassage::new(passage, &self.attributes);
        let shown = (self.shows_results && !failed).then(|| found.iter().map(show).collect());
        if let Some(OutputItem::FileSearchCall(search)) = self.response.output.get_mut(index) {
            search.results = shown;
        }
        self.complete(index, if failed { ResponseStatus::Failed } else { ResponseStatus::Completed })
    }

    fn complete(&mut self, index: usize, status: ResponseStatus) -> Option<ResponseStep> {
        let item = set_status(&mut self.response.output, index, status)?;
        Some(ResponseStep::ItemDone(index, item.clone()))
    }

    /// The message, and what has become of the response when it is a new one.
    fn open_message(&mut self) -> (OpenMessage, Option<ResponseStep>) {
        if let Some(open) = self.message.take() {
            return (open, None);
        }
        let message = OutputMessage {
            id: format!("{MESSAGE}{}", self.key),
            status: ResponseStatus::InProgress,
            role: "assistant",
            content: Vec::new(),
        };
        let (index, added) = self.add(OutputItem::Message(message));
        (OpenMessage { index, text: String::new() }, Some(added))
    }

    fn add_text(&mut self, delta: &str) -> Vec<ResponseStep> {
        let (mut open, added) = self.open_message();
        open.text.push_str(delta);
        let more = ResponseStep::TextAdded(open.index, delta.to_owned());
        self.message = Some(open);
        added.into_iter().chain([more]).collect()
    }

    fn end(&mut self, outcome: RunOutcome) -> Vec<ResponseStep> {
        let mut steps = Vec::new();
        for (_, index) in std::mem::take(&mut self.searches) {
            steps.extend(self.complete(index, ResponseStatus::Incomplete));
        }
        self.response.incomplete_details = if outcome.is_withheld {
            Some(IncompleteDetail::WITHHELD)
        } else {
            is_cut(outcome.finish_reason).then_some(IncompleteDetail::LIMIT)
        };
        let status = match self.response.incomplete_details {
            Some(_) => ResponseStatus::Incomplete,
            None => ResponseStatus::Completed,
        };
        let (open, added) = self.open_message();
        steps.extend(added);
        let markers = self.linker.markers(&self.citations);
        if let Some(OutputItem::Message(message)) = self.response.output.get_mut(open.index) {
            message.content = vec![OutputText::new(open.text, &markers)];
        }
        steps.extend(self.complete(open.index, status));
        self.response.status = status;
        self.response.usage = Some(ResponseUsage::from(outcome));
        steps.push(ResponseStep::Ended);
        steps
    }
}

/// Says how far the item at this place is; the item.
fn set_status(items: &mut [OutputItem], index: usize, status: ResponseStatus) -> Option<&OutputItem> {
    let item = items.get_mut(index)?;
    item.set_status(status);
    Some(item)
}
