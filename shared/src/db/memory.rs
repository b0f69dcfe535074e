//! What agents remember of their sessions: whole turns.

use uuid::Uuid;

use crate::{
    clock::Timestamp,
    db::{Db, Result, Tx, execute, on},
    ids::{AgentId, UserId},
};

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct ConversationTurn {
    /// What the user said.
    pub question: String,
    /// What the agent answered.
    pub answer: String,
    /// Tokens of both, roughly.
    pub tokens: i64,
}

/// The last turns of a session that have at most so many tokens together, newest first.
pub async fn latest(
    db: &Db,
    user: UserId,
    agent: AgentId,
    session: &str,
    tokens: i64,
) -> Result<Vec<ConversationTurn>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT question, answer, tokens FROM
             (SELECT id, question, answer, tokens, SUM(tokens) OVER (ORDER BY id DESC) AS total FROM agent_memory
              WHERE agent_id = $1 AND session = $2 AND user_id = $3) AS turns
         WHERE total <= $4 ORDER BY id DESC"
    )
    .bind(agent)
    .bind(session)
    .bind(user)
    .bind(tokens)
    .fetch_all(c)
    })?)
}

/// Adds a turn to a session, and forgets all of it but the last `keep` turns.
pub async fn add(
    tx: &mut Tx,
    user: UserId,
    agent: AgentId,
    session: &str,
    turn: &ConversationTurn,
    now: Timestamp,
    keep: u32,
) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO agent_memory (id, user_id, agent_id, session, question, answer, tokens, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
        )
        .bind(Uuid::now_v7())
        .bind(user)
        .bind(agent)
        .bind(session)
        .bind(turn.question.as_str())
        .bind(turn.answer.as_str())
        .bind(turn.tokens)
        .bind(now)
    )?;
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM agent_memory WHERE agent_id = $1 AND session = $2 AND user_id = $3 AND id <=
                 (SELECT id FROM agent_memory WHERE agent_id = $1 AND session = $2 AND user_id = $3
                  ORDER BY id DESC LIMIT 1 OFFSET $4)"
        )
        .bind(agent)
        .bind(session)
        .bind(user)
        .bind(i64::from(keep))
    )?;
    Ok(())
}
