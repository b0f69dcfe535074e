//! What an agent remembers of a session: whole turns, the last ones, as many as there is room for.

use lectern_embed::approximate_tokens;
use lectern_shared::{
    db::{self, Tx, memory::ConversationTurn},
    model::{agent::Agent, workspace::RunOwner},
};

use super::AgentParts;
use crate::{AgentError, answer::markers};

/// Tokens of the turns that a model is told, at most.
const TOKENS: i64 = 4_000;
/// Turns of a session that are kept.
const KEPT: u32 = 200;

/// The turns of somebody's session, oldest first, within the room that the model has for them.
pub(super) async fn recall(
    parts: &AgentParts,
    owner: RunOwner,
    agent: &Agent,
    session: &str,
) -> Result<Vec<(String, String)>, AgentError> {
    let window = agent.llm.0.context_window.map(i64::from);
    let room = window.map_or(TOKENS, |window| TOKENS.min(window / 4));
    let turns = db::memory::latest(&parts.db, owner, agent.id, session, room).await?;
    // Numbers of sources mean others in another turn.
    let told = |turn: ConversationTurn| (turn.question, markers::strip_markers(&turn.answer));
    Ok(turns.into_iter().rev().map(told).collect())
}

/// Adds a turn to somebody's session.
pub(super) async fn remember(
    parts: &AgentParts,
    tx: &mut Tx,
    owner: RunOwner,
    agent: &Agent,
    session: &str,
    question: &str,
    answer: &str,
) -> Result<(), db::DbError> {
    let tokens = approximate_tokens(question) + approximate_tokens(answer);
    let turn = ConversationTurn {
        question: question.to_owned(),
        answer: answer.to_owned(),
        tokens: i64::try_from(tokens).unwrap_or(i64::MAX),
    };
    db::memory::add(tx, owner, agent.id, session, &turn, parts.clock.now(), KEPT).await
}
