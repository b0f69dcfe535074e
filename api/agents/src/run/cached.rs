//! Answers that are given again. A caller says how old an answer may be; it is then the same run, repeated from its record,
//! as long as the agent, its tools and prompt, its documents and the question are what they were.

use std::time::Duration;

use lectern_db as db;
use lectern_shared::{
    model::{agent::Agent, run::TerminationReason, tool::ToolType, workspace::RunOwner},
    secrets::sha256,
};
use serde_json::json;

use super::{
    AgentParts, AgentQuestion, read,
    setup::RunRecord,
    trace::{RunAnswer, StepView},
};
use crate::AgentError;

/// What an answer of an agent that is asked as this version depends on, as a hash; none for one that must not be given again: of a session,
/// or of an agent that asks others, whose documents are not its own.
pub(super) async fn key(
    parts: &AgentParts,
    agent: &Agent,
    version: i64,
    owner: RunOwner,
    question: &AgentQuestion,
) -> Result<Option<[u8; 32]>, AgentError> {
    let is_alone =
        question.session.is_none() && question.history.is_empty() && question.instructions.is_none();
    if question.cache_ttl.is_zero() || !is_alone {
        return Ok(None);
    }
    let tools = db::tools::of_agent(&parts.db, agent.owner.workspace_id, agent.id).await?;
    if tools.iter().any(|tool| tool.r#type == ToolType::Agent) {
        return Ok(None);
    }
    let documents = db::agents::linked_generations(&parts.db, agent.owner.workspace_id, agent.id).await?;
    let limits = &parts.settings.predict;
    let parts = json!([
        env!("CARGO_PKG_VERSION"),
        agent.id,
        // The trace of what is given again is theirs who asked first.
        owner.user,
        owner.token,
        // Raised by every change of the agent, its links, its prompt and its tools. An earlier version has those links and tools, too.
        agent.version,
        version,
        documents,
        question.text,
        question.variables,
        question.max_tokens,
        [json!(limits.duration), json!(limits.steps), json!(limits.tokens), json!(limits.cost)],
    ]);
    Ok(Some(sha256(parts.to_string().as_bytes())))
}

/// The record of a run that answered this, not longer than `age` ago.
pub(super) async fn find(
    parts: &AgentParts,
    agent: &Agent,
    key: &[u8; 32],
    age: Duration,
) -> Result<Option<RunRecord>, AgentError> {
    let now = parts.clock.now();
    let since = now.minus(age);
    let Some(trace) = db::cached_answers::find(&parts.db, agent.owner.workspace_id, key, since, now).await?
    else {
        return Ok(None);
    };
    let found = db::traces::find_with_record(&parts.db, agent.owner.workspace_id, None, trace, now).await?;
    Ok(found.and_then(|(_, record)| read(record?)))
}

/// Whether an answer is worth giving again: one that a limit cut short, or for which something failed, may be better next time.
pub(super) fn is_cacheable(ended: &RunAnswer, steps: &[StepView]) -> bool {
    matches!(
        ended.finish_reason,
        TerminationReason::Stop
            | TerminationReason::ReturnDirect
            | TerminationReason::Extractive
            | TerminationReason::Declined
    ) && steps.iter().all(|step| step.error.is_none())
}
