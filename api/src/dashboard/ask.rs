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
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    PagePolicy,
    answer::{AnswerCard, AnswerContext},
    conversation::{Conversation, ConversationTurn},
    failure::with_wait,
    frame::{Frame, SubmittedForm, Visitor},
    html,
    text::{counted, filters},
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
    /// What was asked and answered before.
    pub(super) turns: Vec<ConversationTurn>,
    /// There was more before that.
    pub(super) has_earlier: bool,
    /// The agent remembers what was said before.
    pub(super) remembers: bool,
    /// The service tells the conversation again by its name in the page's address.
    pub(super) is_told: bool,
    /// Whose page it is, for what the tab keeps of it: nobody else is shown that.
    pub(super) reader: String,
    /// Where another conversation begins, from the page.
    pub(super) anew: String,
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
        with_wait(if self.is_stranger { for_strangers(error) } else { for_members(error) })
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
    if matches!(error.kind, ApiErrorKind::NotFound | ApiErrorKind::RateLimited) {
        return error;
    }
    tracing::info!(code = error.code, "a page could not answer");
    ApiError { retry_after: error.retry_after, ..ApiError::new(error.kind, "cannot_answer", NEUTRAL) }
}

/// A failure of an answer without words of programs for what let its reader in, which may end meanwhile.
fn for_members(error: ApiError) -> ApiError {
    const ENDED: &str = "Your sign-in has ended, or you are no member of the workspace any more.";
    if error.kind == ApiErrorKind::Unauthenticated {
        return ApiError { message: ENDED.to_owned(), ..error };
    }
    error
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
                let shown = card.and_then(|card| Ok((rendered(&card)?, card.announced)));
                match shown {
                    Ok((html, said)) => sse::named(EventKind::End, &json!({"html": html, "said": said})),
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
        let card = AnswerCard::of_trace(trace, &reader.context()).await?;
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

/// The page for asking an agent whose prompt needs these values, with what was said before.
fn page_of(
    visitor: Visitor,
    agent: &AskableAgent,
    conversation: Conversation,
    needed: Vec<String>,
) -> AskPage {
    let stamp = visitor.frame.stamp();
    // It says when it began, so that what it was made of is found soon.
    let session = conversation.session.unwrap_or_else(|| Uuid::now_v7().to_string());
    let remembers = agent.agent().has_memory;
    let named = if remembers {
        format!("&session={}", form_urlencoded::byte_serialize(session.as_bytes()).collect::<String>())
    } else {
        String::new()
    };
    AskPage {
        id: agent.agent().id,
        name: agent.agent().name.clone(),
        description: agent.agent().description.clone(),
        panel: AskPanel {
            // What comes of a form stays at its address, where it is found again.
            action: format!("ask?{stamp}{named}"),
            stream: format!("ask/stream?{stamp}"),
            session,
            values: PromptValue::all(needed, &conversation.values),
            greeting: String::new(),
            hints: Vec::new(),
            longest: LONGEST_QUESTION,
            turns: conversation.turns,
            has_earlier: conversation.has_earlier,
            remembers,
            is_told: remembers,
            reader: visitor.caller.user.id.to_string(),
            anew: "ask".to_owned(),
        },
        frame: visitor.frame,
    }
}

/// Shows the page: before anything is asked, or with a conversation or an answer to come back to.
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
    let reader = AnswerReader::of(&visitor, links);
    let told = told_before(&traces, &actor, id, &uri).await?;
    let session = told.as_ref().and_then(|told| told.trace.session.clone());
    let session = session.or_else(|| parameter(&uri, "session"));
    let mut conversation = Conversation::read(&traces, &actor, id, session, &reader).await?;
    // It is of no conversation, or of somebody else's.
    if conversation.turns.is_empty()
        && let Some(told) = told
    {
        conversation.add(ToldAnswer::of(&told, &reader).await?);
    }
    let needed = asking.needed_values(&agent).await?;
    html(&PagePolicy::Own, StatusCode::OK, &page_of(visitor, &agent, conversation, needed))
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
    State(traces): State<TraceService>,
    State(links): State<CitationLinks>,
    shutdown: Option<Extension<Shutdown>>,
    PathId(id): PathId<AgentId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<QuestionForm>,
) -> ApiResult {
    let actor = visitor.actor();
    let reader = AnswerReader::of(&visitor, links);
    // What was said before: read later, it might have the answer to this, too.
    let before = Conversation::read(&traces, &actor, id, body.session.clone(), &reader).await?;
    let running = ask(&asking, &actor, id, &body).await?;
    let shutdown = shutdown.map(|Extension(shutdown)| shutdown);
    let html_of_answer = whole(running, &reader, shutdown.as_ref()).await?;
    let mut conversation = Conversation { session: body.session, ..before };
    conversation.turns.push(ConversationTurn { question: body.question, html: html_of_answer });
    conversation.values = body.values;
    let agent = asking.find(&actor, id).await?;
    let needed = asking.needed_values(&agent).await?;
    html(&PagePolicy::Own, StatusCode::OK, &page_of(visitor, &agent, conversation, needed))
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
    let asked = asking.ask(actor, agent, question).await;
    asked.map_err(|error| with_wait(error.with_values_in(VALUES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_told_that_a_page_cannot_answer_and_not_why() {
        let secret = "This workspace has used what it may: 72 of 40 tokens.";
        for kind in [
            ApiErrorKind::Unauthenticated,
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
        assert_eq!(for_members(slow.clone()), slow);
    }

    #[test]
    fn whoever_is_removed_while_an_answer_comes_is_told_so_without_words_of_programs() {
        let told = for_members(ApiError::credential_ended());
        assert_eq!(told.kind, ApiErrorKind::Unauthenticated);
        assert!(told.message.contains("no member") && !told.message.contains("credentials"), "{told:?}");
    }
}
