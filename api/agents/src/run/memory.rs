//! What an agent remembers of a session: whole turns, the last ones, as many as there is room for.

use lectern_db::{self as db, Tx, memory::ConversationTurn};
use lectern_embed::approximate_tokens;
use lectern_shared::model::{agent::Agent, workspace::RunOwner};

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
    let turns = db::memory::latest(&parts.db, owner, agent.id, session, room(agent)).await?;
    // Numbers of sources mean others in another turn.
    let told = |turn: ConversationTurn| (turn.question, markers::strip_markers(&turn.answer));
    Ok(turns.into_iter().rev().map(told).collect())
}

/// The last of the turns that a caller tells, oldest first, within so many tokens.
pub(super) fn latest(room: i64, turns: &[(String, String)]) -> Vec<(String, String)> {
    let mut room = usize::try_from(room).unwrap_or(0);
    let fits = |(question, answer): &&(String, String)| {
        let tokens = approximate_tokens(question) + approximate_tokens(answer);
        let left = room.checked_sub(tokens);
        room = left.unwrap_or(0);
        left.is_some()
    };
    let mut told: Vec<_> = turns
        .iter()
        .rev()
        .take_while(fits)
        .map(|(question, answer)| (question.clone(), markers::strip_markers(answer)))
        .collect();
    told.reverse();
    told
}

/// Tokens of earlier turns that an agent's model is told, at most.
pub(super) fn room(agent: &Agent) -> i64 {
    let window = agent.llm.0.context_window.map(i64::from);
    window.map_or(TOKENS, |window| TOKENS.min(window / 4))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_s_last_turns_are_told_as_far_as_there_is_room() {
        let turn = |n: usize| (format!("question {n}"), format!("answer {n} [1]"));
        let turns: Vec<_> = (1..=50).map(turn).collect();
        let told = latest(40, &turns);
        assert!((2..50).contains(&told.len()), "{}", told.len());
        assert_eq!(
            told.last(),
            Some(&("question 50".to_owned(), "answer 50".to_owned())),
            "without its marker"
        );
        assert_eq!(told[0].0, format!("question {}", 51 - told.len()), "none is left out in between");
        assert_eq!(latest(TOKENS, &turns).len(), 50);
        assert!(latest(40, &[("long ".repeat(1_000), String::new())]).is_empty());
    }
}
