//! Of what a run is made, once it is known what may be called: the agent's prompt, what was said before, and the limits.

use lectern_shared::{
    config::PredictSettings,
    ids::TraceId,
    model::{
        agent::{Agent, LlmConfig},
        workspace::RunOwner,
    },
    secrets::hex,
};
use serde_json::Value;
use uuid::Uuid;

use super::{
    AgentParts, AgentQuestion, instructions,
    memory::{self, RecalledSession},
    setup::{AnswerStyle, OfferedFunction, RenderedPrompt, RunLimits, RunSetup},
    told,
};
use crate::{
    AgentError,
    prompt::{PromptTemplate, TemplateFormatError},
};

/// Tokens of the passages that a model is given with the question.
const PASSAGES: i64 = 3_500;
/// Largest prompt of an agent, filled in, in bytes.
const PROMPT: usize = 1 << 20;

/// Who is asked what.
pub(super) struct RunSubject<'a> {
    pub(super) agent: &'a Agent,
    /// The number of the version that it is asked as.
    pub(super) version: i64,
    pub(super) style: AnswerStyle,
    pub(super) template: Option<&'a PromptTemplate>,
    pub(super) question: &'a AgentQuestion,
    /// Another agent asks, and not a user.
    pub(super) is_nested: bool,
}

/// An agent's own prompt, filled in, and what goes on from before.
pub(super) struct RecalledPrompt {
    prompt: Option<RenderedPrompt>,
    /// Turns that are remembered, oldest first.
    history: Vec<(String, String)>,
    /// When the session was erased last, if the turn is to be remembered in it.
    last_erasure: Option<Uuid>,
}

impl RunSubject<'_> {
    /// Tokens of the passages that its model is given with the question.
    fn passages(&self) -> i64 {
        let window = self.agent.llm.0.context_window.map(i64::from);
        window.map_or(PASSAGES, |window| PASSAGES.min(window * 2 / 5))
    }

    /// The most tokens that the model may write in one step.
    fn max_tokens(&self) -> Option<u32> {
        self.agent.llm.0.max_tokens.into_iter().chain(self.question.max_tokens).min()
    }

    fn render(
        &self,
        functions: &[OfferedFunction],
        history: &[(String, String)],
    ) -> Result<Option<RenderedPrompt>, AgentError> {
        let render = |template| render_prompt(template, self.question, self.is_nested, functions, history);
        self.template.map(render).transpose()
    }

    /// The prompt, with as much of what was said before as there is room for.
    pub(super) async fn prompt(
        &self,
        parts: &AgentParts,
        owner: RunOwner,
        functions: &[OfferedFunction],
        has_documents: bool,
    ) -> Result<RecalledPrompt, AgentError> {
        let bare = self.render(functions, &[])?;
        let RecalledSession { turns, last_erasure } = match &self.question.session {
            Some(session) if self.agent.has_memory => {
                memory::recall(parts, owner, self.agent, session).await?
            }
            Some(_) => RecalledSession::default(),
            None if self.question.history.is_empty() => RecalledSession::default(),
            None => {
                let turns = self.told_turns(functions, bare.as_ref(), has_documents);
                RecalledSession { turns, last_erasure: None }
            }
        };
        let history = memory::held(PROMPT, self.template, bare.as_ref(), turns);
        let prompt = if history.is_empty() { bare } else { self.render(functions, &history)? };
        Ok(RecalledPrompt { prompt, history, last_erasure })
    }

    /// The latest turns that the caller tells, within the room that the model has for them.
    fn told_turns(
        &self,
        functions: &[OfferedFunction],
        bare: Option<&RenderedPrompt>,
        has_documents: bool,
    ) -> Vec<(String, String)> {
        let searched = if has_documents { usize::try_from(self.passages()).unwrap_or(0) } else { 0 };
        let others = searched + memory::tokens_besides(self.question, bare, functions);
        let room = memory::told_room(&self.agent.llm.0, self.max_tokens(), others);
        memory::latest(room, &self.question.history)
    }

    /// What the run is made of.
    pub(super) fn setup(
        &self,
        settings: &PredictSettings,
        prompt: RecalledPrompt,
        functions: Vec<OfferedFunction>,
        has_documents: bool,
        left: Option<RunLimits>,
    ) -> RunSetup {
        let RecalledPrompt { prompt, history, last_erasure } = prompt;
        let llm = &self.agent.llm.0;
        RunSetup {
            trace: TraceId::generate(),
            agent: self.agent.id,
            agent_version: Some(self.version),
            session: self.question.session.clone(),
            style: self.style,
            question: self.question.text.clone(),
            values: told::values_given(self.template, &self.question.variables),
            is_nested: self.is_nested,
            prompt,
            history,
            last_erasure,
            instructions: self.question.instructions.clone(),
            functions,
            has_documents,
            passages: self.passages(),
            temperature: llm.temperature,
            max_tokens: self.max_tokens(),
            limits: limits(settings, llm, left),
            price: settings.prices.get(&format!("{}/{}", llm.provider, llm.model)).copied(),
            image_hosts: settings.image_hosts.clone(),
            boundary: format!("-----{}-----", hex(&rand::random::<[u8; 8]>())),
            provider: llm.provider.clone(),
            model: llm.model.clone(),
        }
    }
}

/// The lowest of what the service, the agent and the caller allow.
fn limits(settings: &PredictSettings, llm: &LlmConfig, left: Option<RunLimits>) -> RunLimits {
    fn lowest<T: PartialOrd>(limits: impl IntoIterator<Item = Option<T>>) -> Option<T> {
        limits.into_iter().flatten().reduce(|one, other| if other < one { other } else { one })
    }
    let left = left.as_ref();
    RunLimits {
        steps: lowest([Some(settings.steps), llm.max_steps, left.map(|left| left.steps)])
            .unwrap_or(settings.steps),
        tokens: lowest([
            settings.tokens,
            llm.max_total_tokens.map(u64::from),
            left.and_then(|left| left.tokens),
        ]),
        cost: lowest([settings.cost, llm.max_cost, left.and_then(|left| left.cost)]),
    }
}

/// Puts the values into an agent's prompt.
fn render_prompt(
    template: &PromptTemplate,
    question: &AgentQuestion,
    is_nested: bool,
    functions: &[OfferedFunction],
    history: &[(String, String)],
) -> Result<RenderedPrompt, AgentError> {
    let uses = |name: &str| template.variables().contains(&name);
    let value = |name: &str| -> Option<String> {
        match name {
            "input" => Some(question.text.clone()),
            "chat_history" => Some(instructions::chat_history(history)),
            "tools" => Some(instructions::tools(functions)),
            "tool_names" => Some(instructions::names(functions)),
            // What was thought and done so far is said in the conversation.
            "agent_scratchpad" => Some(String::new()),
            _ => question.variables.get(name).map(|value| match value {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
            }),
        }
    };
    let refused = |error: TemplateFormatError| match error {
        TemplateFormatError::Missing(name) => AgentError::MissingValues(vec![name]),
        TemplateFormatError::TooLong(limit) => AgentError::PromptTooLong(limit),
    };
    // Another agent's model, earlier answers and descriptions of tools are nobody's word.
    let own = |name: &str| match name {
        "input" if is_nested => Some(String::new()),
        "chat_history" | "tools" | "tool_names" => Some(String::new()),
        _ => value(name),
    };
    Ok(RenderedPrompt {
        text: template.format(value, PROMPT).map_err(refused)?,
        own: template.format(own, PROMPT).map_err(refused)?,
        tells_format: uses("tool_names") || uses("agent_scratchpad"),
        holds_history: uses("chat_history"),
    })
}
