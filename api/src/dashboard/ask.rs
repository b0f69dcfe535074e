//! Asking an agent in a browser: in one piece for those without scripts, and as it comes for the others.

use askama::Template;
use axum::{
    Extension,
    body::Bytes,
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_agents::run::{AgentQuestion, CitationView, RunEvent, RunHandle};
use lectern_derive::RequestBody;
use lectern_shared::{
    ids::{AgentId, WorkspaceId},
    model::workspace::Role,
    shutdown::Shutdown,
};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{
    PagePolicy,
    answer::{AnswerCard, AnswerContext},
    frame::{Frame, SubmittedForm, Visitor},
    html,
    text::counted,
    traces::NO_QUESTION,
    values::{PromptValue, VALUES},
};
use crate::{
    auth::in_force::RequestCredential,
    error::{ApiError, ApiErrorKind},
    extract::{PathId, parameter},
    response::ApiResult,
    run_stream::{RunEventEncoder, streamed, until_stopped},
    services::{
        actor::{Actor, Permission},
        asking::{AskService, AskableAgent},
        citations::CitationLinks,
        traces::{RecordedTrace, TraceService},
    },
    sse::{self, EventKind},
};

/// Where the answers of signed-in people are told to be good or bad, from the root.
const FEEDBACK: &str = "feedback";

/// What stands on a page for asking, whoever asks.
pub(super) struct AskPanel {
    /// Where the form is sent, from the page.
    pub(super) action: String,
    /// Where scripts send it.
    pub(super) stream: String,
    /// The name of the conversation, which nobody else knows.
    pub(super) session: String,
    /// What goes with each question.
    pub(super) values: Vec<PromptValue>,
    pub(super) greeting: String,
    /// Questions that can be chosen.
    pub(super) hints: Vec<String>,
    /// The most characters of a question.
    pub(super) longest: usize,
    /// What was asked without scripts; empty before.
    pub(super) question: String,
    /// The answer to it, as HTML.
    pub(super) answer: Option<String>,
}

#[derive(Template)]
#[template(path = "ask.html")]
struct AskPage {
    frame: Frame,
    id: AgentId,
    name: String,
    description: String,
    panel: AskPanel,
}

/// The most characters of a question by those who are signed in, as [`QuestionForm`] has it.
const LONGEST_QUESTION: usize = 100_000;

/// A question.
#[derive(RequestBody, ToSchema)]
pub(super) struct QuestionForm {
    #[schema(min_length = 1, max_length = 100_000, pattern = r"\S")]
    pub(super) question: String,
    #[schema(max_length = 200)]
    pub(super) session: Option<String>,
    /// What the agent's prompt takes besides it, each by its name.
    #[schema(value_type = Option<Object>)]
    #[body(default)]
    pub(super) values: Map<String, Value>,
}

impl QuestionForm {
    pub(super) fn question(&self) -> AgentQuestion {
        AgentQuestion {
            text: self.question.clone(),
            variables: self.values.clone(),
            session: self.session.clone(),
            ..AgentQuestion::default()
        }
    }
}

/// What somebody is shown with an answer.
#[derive(Clone)]
pub(super) struct AnswerReader {
    pub(super) links: CitationLinks,
    pub(super) workspace: WorkspaceId,
    /// The way from the page to the root.
    pub(super) root: String,
    pub(super) feedback: String,
    /// The stamp of the page's frame, which goes with feedback; empty on a page without one.
    pub(super) stamp: String,
    pub(super) sees_steps: bool,
    pub(super) sees_receipts: bool,
    /// Has no account, and need not know what the service has to do with others.
    pub(super) is_stranger: bool,
}

impl AnswerReader {
    fn context(&self) -> AnswerContext<'_> {
        AnswerContext {
            links: &self.links,
            workspace: self.workspace,
            root: &self.root,
            feedback: &self.feedback,
            stamp: &self.stamp,
            sees_steps: self.sees_steps,
            sees_receipts: self.sees_receipts,
        }
    }

    /// A failure as this reader is told it.
    pub(super) fn told(&self, error: ApiError) -> ApiError {
        if self.is_stranger { for_strangers(error) } else { error }
    }

    /// A signed-in person's.
    pub(super) fn of(visitor: &Visitor, links: CitationLinks) -> Self {
        Self {
            links,
            workspace: visitor.frame.workspace_id,
            root: visitor.frame.root.clone(),
            feedback: FEEDBACK.to_owned(),
            stamp: visitor.frame.stamp(),
            sees_steps: visitor.frame.role.includes(Role::Builder),
            sees_receipts: visitor.actor().may(Permission::EditDocuments).is_ok(),
            is_stranger: false,
        }
    }
}

/// A failure of an answer without what only those of the workspace are to know: its quotas, its provider, its agent's prompt. What
/// became of the request stays as it is.
fn for_strangers(error: ApiError) -> ApiError {
    const NEUTRAL: &str = "This page cannot answer at the moment. Try again later.";
    let says_nothing_else = matches!(
        error.kind,
        ApiErrorKind::NotFound | ApiErrorKind::RateLimited | ApiErrorKind::Unauthenticated
    );
    if says_nothing_else {
        return error;
    }
    tracing::info!(code = error.code, "a page could not answer");
    ApiError { retry_after: error.retry_after, ..ApiError::new(error.kind, "cannot_answer", NEUTRAL) }
}

/// Tells a run to a page: what is being done, the answer as it comes, and at last all of it as HTML.
pub(super) struct PageEncoder {
    reader: AnswerReader,
    citations: Vec<CitationView>,
}

impl PageEncoder {
    pub(super) fn new(reader: AnswerReader) -> Self {
        Self { reader, citations: Vec::new() }
    }

    fn note(kind: EventKind, text: &str) -> Bytes {
        sse::named(kind, &json!({"text": text}))
    }
}

impl RunEventEncoder for PageEncoder {
    fn encode(&mut self, event: &RunEvent) -> Option<Bytes> {
        Some(match event {
            RunEvent::Start { .. } => Self::note(EventKind::Start, "Searching the documents…"),
            RunEvent::Retrieval { documents, .. } => {
                let found = counted(documents.len() as u64, "passage", "passages");
                Self::note(EventKind::Retrieval, &format!("{found} found. Writing the answer…"))
            }
            // What its builder gave an agent is nothing to strangers.
            RunEvent::ToolCall { .. } if self.reader.is_stranger => {
                Self::note(EventKind::ToolCall, "Looking further…")
            }
            RunEvent::ToolResult { .. } if self.reader.is_stranger => {
                Self::note(EventKind::ToolResult, "Writing the answer…")
            }
            RunEvent::ToolCall { name, .. } => {
                Self::note(EventKind::ToolCall, &format!("Asking the tool {name}…"))
            }
            RunEvent::ToolResult { failed: true, name, .. } => {
                Self::note(EventKind::ToolResult, &format!("The tool {name} failed; going on…"))
            }
            RunEvent::ToolResult { .. } => Self::note(EventKind::ToolResult, "Writing the answer…"),
            RunEvent::Token { delta } => sse::named(EventKind::Token, &json!({"delta": delta})),
            RunEvent::Citation(citation) => {
                self.citations.push(CitationView::clone(citation));
                return None;
            }
            RunEvent::Failed(error) => self.failure(&error.clone().into()),
            RunEvent::End { trace, .. } => {
                let card = AnswerCard::of_run(trace, &self.citations, &self.reader.context());
                match card.and_then(|card| rendered(&card)) {
                    Ok(html) => sse::named(EventKind::End, &json!({"html": html})),
                    Err(error) => self.failure(&error),
                }
            }
        })
    }

    fn failure(&mut self, error: &ApiError) -> Bytes {
        let error = self.reader.told(error.clone());
        sse::named(EventKind::Error, &json!({"code": error.code, "message": error.message}))
    }
}

fn rendered(card: &AnswerCard) -> Result<String, ApiError> {
    card.render().map_err(|error| {
        tracing::error!(%error, "an answer could not be rendered");
        ApiError::internal()
    })
}

/// A question that was asked before, and its answer as HTML.
pub(super) struct ToldAnswer {
    pub(super) question: String,
    pub(super) session: Option<String>,
    /// The values that went with it.
    pub(super) values: Map<String, Value>,
    pub(super) html: String,
}

impl ToldAnswer {
    pub(super) async fn of(told: &RecordedTrace, reader: &AnswerReader) -> ApiResult<Self> {
        let trace = &told.trace;
        let mut card = AnswerCard::of_trace(trace, &reader.context()).await?;
        card.said = trace.feedback.clone().unwrap_or_default();
        Ok(Self {
            question: told.question().unwrap_or_else(|| NO_QUESTION.to_owned()),
            session: trace.session.clone(),
            values: told.values(),
            html: rendered(&card)?,
        })
    }
}

/// Waits for a run's answer, as HTML.
pub(super) async fn whole(
    mut running: RunHandle,
    reader: &AnswerReader,
    shutdown: Option<&Shutdown>,
) -> ApiResult<String> {
    let mut citations = Vec::new();
    let answered = async {
        loop {
            match running.next().await {
                Some(RunEvent::Citation(citation)) => citations.push(*citation),
                Some(RunEvent::End { trace, .. }) => {
                    return rendered(&AnswerCard::of_run(&trace, &citations, &reader.context())?);
                }
                Some(RunEvent::Failed(error)) => return Err(reader.told(error.into())),
                Some(_) => {}
                None => return Err(ApiError::internal()),
            }
        }
    };
    until_stopped(shutdown, answered).await
}

/// The page for asking an agent whose prompt needs these values, before anything is asked, or with an answer.
fn page_of(
    visitor: Visitor,
    agent: &AskableAgent,
    question: &QuestionForm,
    answer: Option<String>,
    needed: Vec<String>,
) -> AskPage {
    let (nonce, stamp) = (visitor.frame.nonce.clone(), visitor.frame.stamp());
    AskPage {
        id: agent.agent().id,
        name: agent.agent().name.clone(),
        description: agent.agent().description.clone(),
        panel: AskPanel {
            action: format!("ask?{stamp}"),
            stream: format!("ask/stream?{stamp}"),
            session: question.session.clone().unwrap_or(nonce),
            values: PromptValue::all(needed, &question.values),
            greeting: String::new(),
            hints: Vec::new(),
            longest: LONGEST_QUESTION,
            question: question.question.clone(),
            answer,
        },
        frame: visitor.frame,
    }
}

/// Shows the page: before anything is asked, or with an answer to come back to.
pub(super) async fn show(
    State(asking): State<AskService>,
    State(traces): State<TraceService>,
    State(links): State<CitationLinks>,
    visitor: Visitor,
    PathId(id): PathId<AgentId>,
    uri: Uri,
) -> ApiResult {
    let actor = visitor.actor();
    let agent = asking.find(&actor, id).await?;
    let (question, answer) = match told_before(&traces, &actor, id, &uri).await? {
        Some(told) => {
            let told = ToldAnswer::of(&told, &AnswerReader::of(&visitor, links)).await?;
            let ToldAnswer { question, session, values, html } = told;
            (QuestionForm { question, session, values }, Some(html))
        }
        None => (QuestionForm { question: String::new(), session: None, values: Map::new() }, None),
    };
    let needed = asking.needed_values(&agent).await?;
    html(&PagePolicy::Own, StatusCode::OK, &page_of(visitor, &agent, &question, answer, needed))
}

/// The agent's answer that an address names; none where there is no such one for this person, or not any more.
async fn told_before(
    traces: &TraceService,
    actor: &Actor,
    agent: AgentId,
    uri: &Uri,
) -> ApiResult<Option<RecordedTrace>> {
    let Some(id) = parameter(uri, "answer").and_then(|id| id.parse().ok()) else { return Ok(None) };
    match traces.find_told(actor, id).await {
        Ok(told) => Ok(Some(told).filter(|told| told.trace.agent_id == agent)),
        Err(error) if error.kind == ApiErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Answers in one piece.
pub(super) async fn answer(
    State(asking): State<AskService>,
    State(links): State<CitationLinks>,
    shutdown: Option<Extension<Shutdown>>,
    PathId(id): PathId<AgentId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<QuestionForm>,
) -> ApiResult {
    let actor = visitor.actor();
    let reader = AnswerReader::of(&visitor, links);
    let running = ask(&asking, &actor, id, &body).await?;
    let shutdown = shutdown.map(|Extension(shutdown)| shutdown);
    let answer = whole(running, &reader, shutdown.as_ref()).await?;
    let agent = asking.find(&actor, id).await?;
    let needed = asking.needed_values(&agent).await?;
    html(&PagePolicy::Own, StatusCode::OK, &page_of(visitor, &agent, &body, Some(answer), needed))
}

/// Answers as the answer comes.
pub(super) async fn stream(
    State(asking): State<AskService>,
    State(links): State<CitationLinks>,
    shutdown: Option<Extension<Shutdown>>,
    Extension(opened): Extension<RequestCredential>,
    PathId(id): PathId<AgentId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<QuestionForm>,
) -> ApiResult {
    let mut reader = AnswerReader::of(&visitor, links);
    // The page that shows it is one folder above this path.
    reader.root = reader.root.replacen("../", "", 1);
    let running = ask(&asking, &visitor.actor(), id, &body).await?;
    let shutdown = shutdown.map(|Extension(shutdown)| shutdown);
    opened.while_in_force(streamed(running, PageEncoder::new(reader), shutdown)).await
}

async fn ask(asking: &AskService, actor: &Actor, id: AgentId, form: &QuestionForm) -> ApiResult<RunHandle> {
    let agent = asking.find(actor, id).await?;
    let remembers = agent.agent().has_memory;
    let question = AgentQuestion { session: form.session.clone().filter(|_| remembers), ..form.question() };
    asking.ask(actor, agent, question).await.map_err(|error| error.with_values_in(VALUES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_told_that_a_page_cannot_answer_and_not_why() {
        let secret = "This workspace has used what it may: 72 of 40 tokens.";
        for kind in [
            ApiErrorKind::Forbidden,
            ApiErrorKind::Invalid,
            ApiErrorKind::Upstream,
            ApiErrorKind::UpstreamTimeout,
            ApiErrorKind::Unavailable,
        ] {
            let error = ApiError { retry_after: Some(3), ..ApiError::new(kind, "quota_exceeded", secret) };
            let told = for_strangers(error);
            assert_eq!((told.kind, told.retry_after), (kind, Some(3)));
            assert!(!told.message.contains("tokens") && told.code != "quota_exceeded", "{told:?}");
        }
        let slow = ApiError::new(ApiErrorKind::RateLimited, "rate_limited", "Try again in some seconds.");
        assert_eq!(for_strangers(slow.clone()), slow);
    }
}
