//! What agents remember of their sessions: whole turns. A session is that of whoever began it: another member's of the same name is
//! another one.

use lectern_shared::{clock::Timestamp, ids::AgentId, model::workspace::RunOwner};
use uuid::Uuid;

use crate::{Db, Result, Tx, execute, on};

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct ConversationTurn {
    /// What the member said.
    pub question: String,
    /// What the agent answered.
    pub answer: String,
    /// Tokens of both, roughly.
    pub tokens: i64,
}

/// The last turns of a session that have at most so many tokens together, newest first.
pub async fn latest(
    db: &Db,
    owner: RunOwner,
    agent: AgentId,
    session: &str,
    tokens: i64,
) -> Result<Vec<ConversationTurn>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT question, answer, tokens FROM
             (SELECT id, question, answer, tokens, SUM(tokens) OVER (ORDER BY id DESC) AS total FROM agent_memory
              WHERE agent_id = $1 AND session = $2 AND workspace_id = $3
                AND COALESCE(created_by, workspace_id) = $4 AND token_id IS NOT DISTINCT FROM $5) AS turns
         WHERE total <= $6 ORDER BY id DESC"
    )
    .bind(agent)
    .bind(session)
    .bind(owner.workspace_id)
    .bind(owner.user)
    .bind(owner.token)
    .bind(tokens)
    .fetch_all(c)
    })?)
}

/// Adds a turn to a session, and forgets all of it but the last `keep` turns.
pub async fn add(
    tx: &mut Tx,
    owner: RunOwner,
    agent: AgentId,
    session: &str,
    turn: &ConversationTurn,
    now: Timestamp,
    keep: u32,
) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO agent_memory (id, workspace_id, created_by, token_id, agent_id, session, question, answer, tokens,
                                       created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
        )
        .bind(Uuid::now_v7())
        .bind(owner.workspace_id)
        .bind(owner.user)
        .bind(owner.token)
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
            "DELETE FROM agent_memory WHERE agent_id = $1 AND session = $2 AND workspace_id = $3
               AND COALESCE(created_by, workspace_id) = $4 AND token_id IS NOT DISTINCT FROM $5 AND id <=
                 (SELECT id FROM agent_memory WHERE agent_id = $1 AND session = $2 AND workspace_id = $3
                    AND COALESCE(created_by, workspace_id) = $4 AND token_id IS NOT DISTINCT FROM $5
                  ORDER BY id DESC LIMIT 1 OFFSET $6)"
        )
        .bind(agent)
        .bind(session)
        .bind(owner.workspace_id)
        .bind(owner.user)
        .bind(owner.token)
        .bind(i64::from(keep))
    )?;
    Ok(())
}
