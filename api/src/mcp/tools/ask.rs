//! Asking an agent: the answer with its sources, and how it is getting on.

use std::pin::pin;

use lectern_agents::{
    answer::AnswerQuotations,
    run::{AgentQuestion, CitationView, RunEvent, RunHandle, RunOutcome},
};
use lectern_derive::RequestBody;
use lectern_shared::ids::AgentId;
use rmcp::{
    Peer, RoleServer,
    model::{CallToolResult, ContentBlock, ProgressNotificationParam, ProgressToken, Tool},
    service::RequestContext,
};
use serde_json::{Map, Value, json};
use tokio::time::{Duration, Instant, timeout_at};
use utoipa::ToSchema;

use super::{CallResult, schema, search::title};
use crate::{
    error::{ApiError, ApiErrorKind},
    fields::{FieldRule, JsonFields, validate},
    mcp::{context::CallContext, served::ServedServices},
    run_stream::stopping,
    services::{actor::Permission, citations::PassageReference},
};

/// Pieces of the answer between two reports.
const PIECES: usize = 25;
/// How long nothing is reported, at most: many clients give up after a minute without a report.
const SILENCE: Duration = Duration::from_secs(15);

/// What to ask.
#[derive(RequestBody, ToSchema)]
struct AskArguments {
    /// The agent: its id or its name, as `list_agents` tells them.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    agent: String,
    /// The question, complete in itself.
    #[schema(min_length = 1, max_length = 100_000, pattern = r"\S")]
    question: String,
    /// What was asked and answered before in this conversation, the oldest first. Nothing is remembered from call to call.
    #[schema(value_type = Option<Vec<EarlierTurn>>, max_items = 100)]
    #[body(with = history)]
    history: Vec<(String, String)>,
    /// Values for the variables of the agent's prompt, each by its name. Only agents whose prompt has some need them.
    #[schema(value_type = Option<Object>)]
    values: Option<Map<String, Value>>,
}

/// A question that was asked before, and its answer.
#[derive(RequestBody, ToSchema)]
struct EarlierTurn {
    /// What was asked.
    #[schema(max_length = 100_000)]
    question: String,
    /// What was answered.
    #[schema(max_length = 100_000)]
    answer: String,
}

fn history(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Vec<(String, String)>> {
    let given = fields.array(rule.name, rule.max_items, "objects with a question and an answer")?;
    let mut turns = Vec::with_capacity(given.len());
    for (at, turn) in given.iter().enumerate() {
        let path = format!("{}.{at}", rule.name);
        match validate::<EarlierTurn>(turn) {
            Ok(turn) => turns.push((turn.question, turn.answer)),
            Err(_) if !turn.is_object() => fields.refuse(&path, "must be an object"),
            Err(error) => {
                for wrong in error.fields {
                    fields.refuse(&format!("{path}.{}", wrong.path), wrong.message);
                }
            }
        }
    }
    Some(turns)
}

pub(super) fn described(name: &'static str) -> Tool {
    let description = "Asks an agent, which searches its documents, may use its tools, and answers with sources. `[n]` in the \
        answer refers to source n; `verified` says that the quoted words were found in the document, and the link opens the \
        passage. It can take a minute.";
    Tool::new(name, description, schema::shared(input()))
        .with_title("Ask an agent")
        .with_raw_output_schema(schema::shared(output()))
}

fn input() -> Value {
    let mut schema = schema::of::<AskArguments>();
    if let Some(items) = schema.pointer_mut("/properties/history/items") {
        *items = schema::of::<EarlierTurn>();
    }
    schema
}

fn output() -> Value {
    let text = || json!({"type": "string"});
    let source = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "description": "The number in the answer's [n]."},
            "title": text(),
            "documentId": text(),
            "page": {"type": "integer"},
            "quote": {
                "type": "string",
                "description": "The words that the answer quotes, which are the document's only when they are verified. When it \
                    quotes none: the document's sentence that supports it best.",
            },
            "verified": {"type": "boolean", "description": "The answer quotes these words, and the document has them."},
            "url": {"type": "string", "description": "Opens the passage."},
        },
        "required": ["n", "title", "documentId", "quote", "verified", "url"],
    });
    json!({
        "type": "object",
        "properties": {
            "answer": text(),
            "citations": {"type": "array", "items": source},
            "agentId": text(),
            "finishReason": text(),
            "traceId": text(),
        },
        "required": ["answer", "citations", "agentId", "finishReason", "traceId"],
    })
}

pub(super) async fn ask(
    services: &ServedServices,
    call: &CallContext,
    context: &RequestContext<RoleServer>,
) -> CallResult {
    let AskArguments { agent, question, history, values } = call.arguments.read()?;
    let askable = services.asking.find_named(&call.actor, agent.trim()).await?;
    let agent = askable.agent().id;
    let variables = values.unwrap_or_default();
    let question = AgentQuestion { text: question, variables, history, ..AgentQuestion::default() };
    let running = services.asking.ask(&call.actor, askable, question).await;
    let running = running.map_err(|error| error.with_values_in("values"))?;
    let mut progress = ProgressReport::of(context);
    let answered = tokio::select! {
        biased;
        () = context.ct.cancelled() => return Err(cancelled()),
        () = call.cancelled() => return Err(cancelled()),
        answered = finish(running, &mut progress) => answered?,
        () = call.stopped() => return Err(stopping()),
    };
    answered.told(services, call, agent)
}

/// Nobody waits for the answer any more.
fn cancelled() -> ApiError {
    ApiError::new(ApiErrorKind::Conflict, "cancelled", "The call was cancelled.")
}

/// An answer and what it cites.
struct CitedAnswer {
    answer: String,
    outcome: RunOutcome,
    citations: Vec<CitationView>,
}

/// Waits for the end of a run, and reports what happens before.
async fn finish(mut running: RunHandle, progress: &mut ProgressReport) -> Result<CitedAnswer, ApiError> {
    let mut citations = Vec::new();
    // An agent without documents has nothing to report before its model has.
    progress.tell("Asks the agent".to_owned()).await;
    loop {
        let event = progress.while_waiting(running.next()).await;
        match event {
            Some(RunEvent::Citation(citation)) => citations.push(*citation),
            Some(RunEvent::End { answer, outcome, trace: _ }) => {
                return Ok(CitedAnswer { answer, outcome, citations });
            }
            Some(RunEvent::Failed(error)) => return Err(error.into()),
            Some(event) => progress.note(&event).await,
            None => return Err(ApiError::internal()),
        }
    }
}

impl CitedAnswer {
    fn told(self, services: &ServedServices, call: &CallContext, agent: AgentId) -> CallResult {
        let workspace = call.workspace(Permission::AskAgents)?;
        let (mut text, mut cited) = (self.answer.clone(), Vec::new());
        let quotations = AnswerQuotations::of(&self.answer);
        for (at, citation) in self.citations.iter().enumerate() {
            let passage = PassageReference {
                document: citation.document_id,
                chunk: citation.chunk_id,
                quote: citation.quote_range.clone(),
            };
            let url = call.link(&services.links, workspace, &passage)?;
            text.push_str(if at == 0 { "\n\nSources:\n" } else { "\n" });
            text.push_str(&line(citation, &quotations, &url));
            cited.push(shown(citation, &url));
        }
        let structured = json!({
            "answer": self.answer,
            "citations": cited,
            "agentId": agent,
            "finishReason": self.outcome.finish_reason,
            "traceId": self.outcome.trace,
        });
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = Some(structured);
        Ok(result)
    }
}

/// A source, for people.
fn line(citation: &CitationView, quotations: &AnswerQuotations, url: &str) -> String {
    let CitationView { n, quote, verified, .. } = citation;
    let title = title(&citation.document_name, &citation.place.cited_on(citation.page));
    let quote = match (quote.is_empty(), verified) {
        (true, _) => String::new(),
        (false, true) => format!(": \"{quote}\" (verified)"),
        (false, false) if citation.is_misquoted(quotations) => {
            ": what the answer quotes was not found in it".to_owned()
        }
        (false, false) => format!(": \"{quote}\""),
    };
    format!("[{n}] {title}{quote} {url}")
}

/// A source, for programs.
fn shown(citation: &CitationView, url: &str) -> Value {
    let mut source = json!({
        "n": citation.n,
        "title": title(&citation.document_name, &citation.place.cited_on(citation.page)),
        "documentId": citation.document_id,
        "quote": citation.quote,
        "verified": citation.verified,
        "url": url,
    });
    let page = citation.page.or(citation.place.page);
    if let (Some(page), Some(fields)) = (page, source.as_object_mut()) {
        fields.insert("page".to_owned(), json!(page));
    }
    source
}

/// Tells a client that wants to know how far a run is.
struct ProgressReport {
    /// None when nobody asked.
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    reports: u32,
    /// How long nothing is reported, at most.
    silence: Duration,
    /// When the next report has to come.
    due: Instant,
    pieces: usize,
    characters: usize,
}

impl ProgressReport {
    fn of(context: &RequestContext<RoleServer>) -> Self {
        let to = context.meta.get_progress_token().map(|token| (context.peer.clone(), token));
        Self::after(to, SILENCE)
    }

    fn after(to: Option<(Peer<RoleServer>, ProgressToken)>, silence: Duration) -> Self {
        Self { to, reports: 0, silence, due: Instant::now() + silence, pieces: 0, characters: 0 }
    }

    /// Waits for something, and reports again and again that it is waited for.
    async fn while_waiting<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        let mut awaited = pin!(awaited);
        loop {
            match timeout_at(self.due, &mut awaited).await {
                Ok(done) => return done,
                Err(_) => self.tell("Waits for the agent".to_owned()).await,
            }
        }
    }

    async fn note(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Retrieval { documents, .. } => {
                let found = documents.len();
                self.tell(format!("Searched the documents: {found} passages found")).await;
            }
            RunEvent::ToolCall { name, .. } => self.tell(format!("Uses {name}")).await,
            RunEvent::ToolResult { name, failed: true, .. } => self.tell(format!("{name} failed")).await,
            RunEvent::Token { delta } => {
                self.characters += delta.chars().count();
                self.pieces += 1;
                if self.pieces % PIECES == 1 {
                    self.tell(format!("Writes the answer: {} characters", self.characters)).await;
                }
            }
            RunEvent::Start { .. }
            | RunEvent::ToolResult { .. }
            | RunEvent::Citation(_)
            | RunEvent::Failed(_)
            | RunEvent::End { .. } => {}
        }
    }

    async fn tell(&mut self, message: String) {
        self.due = Instant::now() + self.silence;
        self.reports += 1;
        let Some((peer, token)) = &self.to else { return };
        let report = ProgressNotificationParam::new(token.clone(), f64::from(self.reports));
        // Whoever is gone cancels the call.
        let _ = peer.notify_progress(report.with_message(message)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, task::Poll};

    use lectern_shared::{ids::DocumentId, model::place::SourceSpan};

    use super::*;

    #[tokio::test]
    async fn while_nothing_happens_that_is_reported_until_something_does() {
        let mut progress = ProgressReport::after(None, Duration::from_millis(1));
        // Nothing looks at this one again but when it is time for a report.
        let mut looked_at = 0;
        let event = poll_fn(|_| {
            looked_at += 1;
            if looked_at > 7 { Poll::Ready("an event") } else { Poll::Pending }
        });
        assert_eq!(progress.while_waiting(event).await, "an event");
        assert!(progress.reports > 1, "{} reports", progress.reports);
    }

    #[test]
    fn a_quotation_that_was_not_found_is_not_told_as_the_sources_words() {
        let line = |answer: &str, quote: &str, verified: bool| {
            let citation = CitationView {
                n: 1,
                document_id: DocumentId::generate(),
                document_name: "House rules".to_owned(),
                chunk_id: uuid::Uuid::from_u128(7).into(),
                place: SourceSpan::default(),
                page: None,
                url: None,
                quote: quote.to_owned(),
                verified,
                markers: Vec::new(),
                quote_range: None,
            };
            super::line(&citation, &AnswerQuotations::of(answer), "u")
        };
        let words = "Bicycles belong on the roof top";
        let answer = format!("It says \"{words}\" [1].");
        assert_eq!(
            line(&answer, words, false),
            "[1] House rules: what the answer quotes was not found in it u"
        );
        assert_eq!(line(&answer, words, true), format!("[1] House rules: \"{words}\" (verified) u"));
        assert_eq!(line("So it is [1].", words, false), format!("[1] House rules: \"{words}\" u"));
        assert_eq!(line("So it is [1].", "", false), "[1] House rules u");
    }

    #[test]
    fn a_wrong_turn_of_the_history_is_named_by_its_place() {
        let turns = json!([{"question": "a", "answer": "b"}, {"question": 1}, "x"]);
        let arguments = json!({"agent": "Clerk", "question": "Well?", "history": turns});
        let error = validate::<AskArguments>(&arguments).err().unwrap();
        let paths: Vec<&str> = error.fields.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths, ["history.1.question", "history.1.answer", "history.2"]);
        let turns = json!([{"question": "a", "answer": "b"}]);
        let arguments = json!({"agent": "Clerk", "question": "Well?", "history": turns});
        assert_eq!(validate::<AskArguments>(&arguments).unwrap().history, [("a".to_owned(), "b".to_owned())]);
        let arguments = json!({"agent": "Clerk", "question": "Well?"});
        assert!(validate::<AskArguments>(&arguments).unwrap().history.is_empty());
    }
}
