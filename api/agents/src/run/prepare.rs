//! Gets a run ready: what the agent is, what it remembers, what it may call, which model it asks.

use std::{collections::HashSet, time::Duration};

use futures::{FutureExt, StreamExt, stream};
use lectern_db::{self as db, agents::AgentLinks};
use lectern_shared::{
    config::PredictSettings,
    ids::{AgentId, WorkspaceId},
    model::{
        agent::{Agent, AgentType, LlmConfig},
        tool::{TOOLS_OF_ONE, Tool, ToolType},
        workspace::RunOwner,
    },
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    AgentParts, AgentQuestion, AgentToAsk, agent_model,
    ledger::UsageLedger,
    live::{CallTarget, LiveEnvironment},
    meter::RunMeter,
    setup::{AnswerStyle, OfferedFunction, RunLimits, RunSetup, SEARCH},
    subject::RunSubject,
    told,
};
use crate::{
    AgentError,
    answer::redact::SecretRedactor,
    models::{ChatModel, ModelProvider},
    prompt::PromptTemplate,
    tools::{OpenedTool, Toolbox, naming},
};

/// What is known before anything is asked: all that can be wrong with the request or with the agent.
pub(super) struct CheckedAgent {
    agent: Agent,
    /// The number of the version that it is asked as.
    version: i64,
    provider: ModelProvider,
    style: AnswerStyle,
    /// Its model, if it has one that can be asked.
    model: Option<Box<dyn ChatModel>>,
    /// Why its model cannot be asked.
    pub(super) unusable: Option<AgentError>,
    template: Option<PromptTemplate>,
    redactor: SecretRedactor,
    /// What is linked to it, if that was read with it.
    links: Option<AgentLinks>,
}

/// Within what a run has to stay, and on whose behalf it runs.
pub(super) struct RunBounds {
    /// The limits that the caller leaves it.
    pub(super) limits: Option<RunLimits>,
    /// When it began.
    pub(super) started: Instant,
    /// When it ends at the latest.
    pub(super) deadline: Option<Instant>,
    /// The agents that asked each other, down to this one.
    pub(super) chain: Vec<AgentId>,
    /// Whose the agents are, and who asks.
    pub(super) owner: RunOwner,
    /// Where what they use is noted.
    pub(super) ledger: UsageLedger,
}

/// Checks what can be checked at once. A model that cannot be asked is no mistake of the question, which is not answered for it.
///
/// # Errors
/// A variable of the prompt that has no value.
pub(super) async fn check(
    parts: &AgentParts,
    AgentToAsk { agent, version, prompt, links }: AgentToAsk,
    question: &AgentQuestion,
) -> Result<CheckedAgent, AgentError> {
    let provider: ModelProvider = agent.llm.0.provider.parse().map_err(|_| AgentError::UnknownProvider)?;
    if provider == ModelProvider::Extractive {
        let (style, redactor) = (AnswerStyle::Extractive, SecretRedactor::default());
        let (model, unusable, template) = (None, None, None);
        return Ok(CheckedAgent {
            agent,
            version,
            provider,
            style,
            model,
            unusable,
            template,
            redactor,
            links,
        });
    }
    let style = match agent.r#type {
        AgentType::ChatVendor => AnswerStyle::ChatVendor,
        AgentType::React => AnswerStyle::React,
    };
    let mut redactor = SecretRedactor::default();
    let (model, unusable): (Option<Box<dyn ChatModel>>, _) =
        match agent_model::of(parts, &agent, provider, &mut redactor) {
            Ok(model) => (Some(Box::new(model)), None),
            Err(error @ AgentError::ModelSetup(_)) => (None, Some(error)),
            Err(error) => return Err(error),
        };
    let template = told::template(&parts.db, &agent, prompt).await?;
    let mut missing = template.as_ref().map(told::values_of).unwrap_or_default();
    missing.retain(|name| !question.variables.contains_key(name));
    if !missing.is_empty() {
        return Err(AgentError::MissingValues(missing));
    }
    Ok(CheckedAgent { agent, version, provider, style, model, unusable, template, redactor, links })
}

/// Gets everything else: what is remembered, and what can be called.
pub(super) async fn prepare(
    parts: &AgentParts,
    toolbox: &Toolbox,
    checked: CheckedAgent,
    question: &AgentQuestion,
    bounds: RunBounds,
) -> Result<(RunSetup, LiveEnvironment), AgentError> {
    let CheckedAgent { agent, version, provider, style, model, template, mut redactor, links, .. } = checked;
    let settings = &parts.settings.predict;
    let deadline = deadline(settings, &agent.llm.0, &bounds);
    let links = match links {
        Some(links) => links,
        None => db::agents::links(&parts.db, agent.owner.workspace_id, agent.id).await?,
    };
    let (functions, callables) = if model.is_some() {
        functions(parts, toolbox, &agent, &links, deadline, &mut redactor).await?
    } else {
        (Vec::new(), Vec::new())
    };
    let AgentLinks { documents, search_epoch, .. } = links;
    let has_documents = !documents.is_empty();
    let is_nested = bounds.chain.len() > 1;
    let subject =
        RunSubject { agent: &agent, version, style, template: template.as_ref(), question, is_nested };
    let prompt = subject.prompt(parts, bounds.owner, &functions, has_documents).await?;
    let setup = subject.setup(settings, prompt, functions, has_documents, bounds.limits);
    let live = LiveEnvironment {
        parts: parts.clone(),
        toolbox: toolbox.clone(),
        owner: bounds.owner,
        documents,
        search_epoch: Mutex::new(Some(search_epoch)),
        rerank: agent.rerank,
        meter: RunMeter::new(std::sync::Arc::clone(&parts.metrics), bounds.ledger.clone(), provider, &setup),
        model,
        callables,
        deadline,
        started: bounds.started,
        redactor,
        chain: bounds.chain,
    };
    Ok((setup, live))
}

/// When a run ends at the latest: the earliest of what the service, the agent and the caller allow.
fn deadline(settings: &PredictSettings, llm: &LlmConfig, bounds: &RunBounds) -> Instant {
    let own = |seconds: f64| bounds.started + Duration::from_secs_f64(seconds);
    [bounds.deadline, llm.max_seconds.map(own)]
        .into_iter()
        .flatten()
        .fold(bounds.started + settings.duration, Instant::min)
}

/// What the model may call, and what stands behind each function.
async fn functions(
    parts: &AgentParts,
    toolbox: &Toolbox,
    agent: &Agent,
    links: &AgentLinks,
    deadline: Instant,
    redactor: &mut SecretRedactor,
) -> Result<(Vec<OfferedFunction>, Vec<CallTarget>), AgentError> {
    let tools = if links.has_tools {
        db::tools::of_agent(&parts.db, agent.owner.workspace_id, agent.id).await?
    } else {
        Vec::new()
    };
    let mut opening = Vec::with_capacity(tools.len());
    // Agents of before may have more than that.
    let tools = &tools[..tools.len().min(TOOLS_OF_ONE as usize)];
    for tool in tools {
        opening.push(open(toolbox, tool, deadline).boxed());
    }
    // One that offers nothing that fits is forgotten before the last ones are opened.
    let mut opening = stream::iter(opening).buffered(OPENED_AT_ONCE);
    let mut all = FunctionList::default();
    if !links.documents.is_empty() {
        all.push(documents(), CallTarget::Documents);
    }
    for tool in tools {
        let Some(opened) = opening.next().await else { break };
        match opened {
            None => {
                let (offered, callable) = agent_function(parts, agent.owner.workspace_id, tool).await?;
                all.push(offered, callable);
            }
            Some(opened) => {
                opened.secrets.into_iter().for_each(|secret| redactor.add(secret));
                for (at, function) in opened.tool.functions().iter().enumerate() {
                    let offered = OfferedFunction {
                        name: function.spec.name.clone(),
                        description: function.spec.description.clone(),
                        parameters: function.spec.parameters.clone(),
                        plain: function.plain.map(str::to_owned),
                        return_direct: tool.return_direct,
                        searches_documents: false,
                    };
                    let (tool, r#type) = (std::sync::Arc::clone(&opened.tool), tool.r#type);
                    all.push(offered, CallTarget::Tool { tool, function: at, r#type });
                }
            }
        }
    }
    // A server may write into its own description what it was asked with.
    for offered in &mut all.offered {
        offered.description = redactor.text(std::mem::take(&mut offered.description));
        let parameters = offered.parameters.to_string();
        if let Ok(redacted) = serde_json::from_str(&redactor.text(parameters)) {
            offered.parameters = redacted;
        }
    }
    Ok((all.offered, all.callables))
}

/// Makes a tool ready. One that asks an agent needs nothing.
async fn open(toolbox: &Toolbox, tool: &Tool, deadline: Instant) -> Option<OpenedTool> {
    if tool.r#type == ToolType::Agent { None } else { Some(toolbox.open(tool, deadline).await) }
}

/// Functions whose names are all different.
#[derive(Default)]
struct FunctionList {
    offered: Vec<OfferedFunction>,
    callables: Vec<CallTarget>,
    names: HashSet<String>,
    /// Bytes that describe them.
    size: usize,
}

/// Tools of an agent that are made ready at once.
const OPENED_AT_ONCE: usize = 8;
/// Functions that one request offers; providers take no more.
const FUNCTIONS: usize = 128;
/// Most bytes of all their descriptions and parameters.
const DESCRIBED: usize = 512 * 1024;
/// Longest name of a function.
const LONGEST_NAME: usize = 64;

impl FunctionList {
    fn push(&mut self, mut offered: OfferedFunction, callable: CallTarget) {
        let size = offered.description.len() + offered.parameters.to_string().len();
        if self.offered.len() == FUNCTIONS || self.size + size > DESCRIBED {
            tracing::warn!("an agent has more functions than a model takes; some are left out");
            return;
        }
        self.size += size;
        let mut number = 2;
        while !self.names.insert(offered.name.to_ascii_lowercase()) {
            let suffix = format!("_{number}");
            let stem = offered.name.trim_end_matches(&format!("_{}", number - 1));
            offered.name = format!("{}{suffix}", &stem[..stem.len().min(LONGEST_NAME - suffix.len())]);
            number += 1;
        }
        self.offered.push(offered);
        self.callables.push(callable);
    }
}

/// The search of the linked documents.
fn documents() -> OfferedFunction {
    OfferedFunction {
        name: SEARCH.to_owned(),
        description: "Searches the user's documents for passages, by words and by meaning. Use it when the sources that \
                      you were given do not hold what the question needs. The passages that it finds are numbered, and \
                      cited by their numbers."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"query": {"type": "string", "description": "What to look for, as a question or as words."}},
            "required": ["query"],
        }),
        plain: Some("query".to_owned()),
        return_direct: false,
        searches_documents: true,
    }
}

/// A tool that asks another agent.
async fn agent_function(
    parts: &AgentParts,
    workspace: WorkspaceId,
    tool: &Tool,
) -> Result<(OfferedFunction, CallTarget), AgentError> {
    let asked = match tool.calls_agent {
        Some(id) => db::agents::find(&parts.db, workspace, id).await?,
        None => None,
    };
    let about = match (tool.description.trim(), &asked) {
        ("", Some(agent)) => format!("Asks the agent {}. {}", agent.name, agent.description),
        ("", None) => "Asks another agent.".to_owned(),
        (description, _) => description.to_owned(),
    };
    let offered = OfferedFunction {
        name: naming::function(tool),
        description: about.trim().to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"input": {"type": "string", "description": "The question, with all that is needed to understand it."}},
            "required": ["input"],
        }),
        plain: Some("input".to_owned()),
        return_direct: tool.return_direct,
        searches_documents: false,
    };
    let seconds = tool.metadata.0.get("timeout").and_then(Value::as_f64).filter(|seconds| *seconds > 0.0);
    // An id that no agent has answers, when it is asked, that there is none.
    let agent = tool.calls_agent.unwrap_or_else(AgentId::generate);
    Ok((offered, CallTarget::Agent { agent, timeout: seconds.map(Duration::from_secs_f64) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_describes_the_functions_of_a_run_is_bounded_in_sum() {
        let mut all = FunctionList::default();
        for _ in 0..FUNCTIONS {
            let large = OfferedFunction { description: "x".repeat(60_000), ..documents() };
            all.push(large, CallTarget::Documents);
        }
        assert_eq!((all.offered.len(), all.callables.len()), (8, 8));
        all.push(documents(), CallTarget::Documents);
        assert_eq!(all.offered.len(), 9, "a small one still fits");
    }
}
