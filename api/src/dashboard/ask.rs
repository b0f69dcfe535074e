//! Asking an agent in a browser: in one piece for those without scripts, and as it comes for the others.

use askama::Template;
use axum::{
    Extension,
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_agents::run::{AgentQuestion, RunHandle};
use lectern_derive::RequestBody;
use lectern_shared::{ids::AgentId, shutdown::Shutdown};
use serde_json::{Map, Value};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    PagePolicy,
    conversation::{Conversation, ConversationTurn},
    failure::with_wait,
    frame::{Frame, SubmittedForm, Visitor},
    html,
    text::filters,
    told::{AnswerReader, PageEncoder, ToldAnswer, whole},
    values::{PromptValue, VALUES},
};
use crate::{
    auth::in_force::RequestCredential,
    error::ApiErrorKind,
    extract::{PathId, parameter},
    response::ApiResult,
    run_stream::streamed,
    services::{
        actor::Actor,
        asking::{AskService, AskableAgent},
        citations::CitationLinks,
        traces::{RecordedTrace, TraceService},
    },
};

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
