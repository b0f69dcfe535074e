//! What an agent is told by its prompt, and the values that this takes.

use lectern_db::{self as db, Db};
use lectern_shared::model::agent::Agent;
use serde_json::{Map, Value};

use super::{AgentPrompt, AgentToAsk};
use crate::{AgentError, models::ModelProvider, prompt::PromptTemplate};

/// Values that every prompt can use.
const OWN_VARIABLES: [&str; 5] = ["input", "chat_history", "tools", "tool_names", "agent_scratchpad"];

/// The template of what an agent is told, if it is told anything.
pub(super) async fn template(
    db: &Db,
    agent: &Agent,
    prompt: AgentPrompt,
) -> Result<Option<PromptTemplate>, AgentError> {
    let template = match (prompt, agent.prompt_id) {
        (AgentPrompt::Template(template), _) => template,
        (AgentPrompt::Own, None) => None,
        (AgentPrompt::Own, Some(id)) => {
            let prompt = db::prompts::find(db, agent.owner.workspace_id, id).await?;
            prompt.map(|prompt| prompt.template)
        }
    };
    let parse = |template: String| {
        PromptTemplate::parse(&template).map_err(|error| {
            tracing::error!(%error, agent = %agent.id, "a stored prompt cannot be read");
            AgentError::internal()
        })
    };
    template.map(parse).transpose()
}

/// The variables of a template for which whoever asks has to bring values.
pub(super) fn values_of(template: &PromptTemplate) -> Vec<String> {
    let variables = template.variables().into_iter().filter(|name| !OWN_VARIABLES.contains(name));
    variables.map(str::to_owned).collect()
}

/// Those of the values that came with a question which a template puts in.
pub(super) fn values_given(
    template: Option<&PromptTemplate>,
    variables: &Map<String, Value>,
) -> Map<String, Value> {
    let needed = template.map(values_of).unwrap_or_default();
    let given = |name: String| variables.get(&name).cloned().map(|value| (name, value));
    needed.into_iter().filter_map(given).collect()
}

/// The names of the values without which an agent cannot be asked, besides the question.
///
/// # Errors
/// When the store fails, or holds a prompt that cannot be read.
pub async fn needed_values(db: &Db, asked: AgentToAsk) -> Result<Vec<String>, AgentError> {
    let AgentToAsk { agent, prompt, .. } = asked;
    if matches!(agent.llm.0.provider.parse::<ModelProvider>(), Ok(ModelProvider::Extractive)) {
        return Ok(Vec::new());
    }
    let template = template(db, &agent, prompt).await?;
    Ok(template.as_ref().map(values_of).unwrap_or_default())
}
