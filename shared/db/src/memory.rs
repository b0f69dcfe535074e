//! What agents remember of their sessions: whole turns. A session is that of whoever began it: another member's of the same name is
//! another one.

use std::time::Duration;

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, TraceId},
    model::workspace::RunOwner,
    secrets::{hex, sha256},
};
use uuid::Uuid;

use crate::{
    Db, Result, Tx, execute, on,
    traces::{DELETED_TOGETHER, delete_some},
};

/// For how long it is noted that a session was erased: no run goes on for longer than a day.
const ERASURE_NOTED: Duration = Duration::from_hours(25);

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct ConversationTurn {
    /// What the member said.
    pub question: String,
    /// What the agent answered.
    pub answer: String,
    /// Tokens of both, roughly.
    pub tokens: i64,
    /// The run that it is of, when it is remembered; nothing that is told needs it.
    #[sqlx(default)]
    pub trace: Option<TraceId>,
}

/// A turn, and where it was said.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct KeptTurn {
    /// Its id.
    pub id: Uuid,
    /// The agent that answered.
    pub agent_id: AgentId,
    /// The session.
    pub session: String,
    /// What the member said.
    pub question: String,
    /// What the agent answered.
    pub answer: String,
    /// When.
    pub created_at: Timestamp,
}

/// At most `limit` of somebody's turns in a workspace that are older than `before`, newest first, of whatever sessions.
pub async fn list(db: &Db, owner: RunOwner, before: Uuid, limit: u32) -> Result<Vec<KeptTurn>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT id, agent_id, session, question, answer, created_at FROM agent_memory
         WHERE workspace_id = $1 AND id < $2 AND COALESCE(token_id, created_by, workspace_id) = $3
         ORDER BY id DESC LIMIT $4"
    )
    .bind(owner.workspace_id)
    .bind(before)
    .bind(owner.asker())
    .bind(i64::from(limit))
    .fetch_all(c))?)
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

/// Under which name it is noted that a session was erased. Sessions share 256 names, so that whoever erases any number of them leaves few
/// notes: a run loses its turn to the erasure of another session of the same person, seldom, and only when both happen at once.
fn erasure_note(owner: RunOwner, agent: AgentId, session: &str) -> String {
    let token = owner.token.map(|token| token.to_string()).unwrap_or_default();
    let whose = format!("{} {} {token} {agent}", owner.workspace_id, owner.user);
    let [of_session, ..] = sha256(session.as_bytes());
    format!("erased-session:{}-{of_session:02x}", hex(&sha256(whose.as_bytes())))
}

/// The last time that a session was erased, as an id, if that was of late. A run notes it when it begins.
pub async fn last_erasure(db: &Db, owner: RunOwner, agent: AgentId, session: &str) -> Result<Option<Uuid>> {
    Ok(on!(db, |c| sqlx::query_scalar("SELECT owner FROM leases WHERE name = $1")
        .bind(erasure_note(owner, agent, session))
        .fetch_optional(c))?)
}

/// Whether a session was erased since `last` was its [last erasure](last_erasure). If it was not, it will not be before this transaction
/// ends.
pub async fn was_erased_since(
    tx: &mut Tx,
    owner: RunOwner,
    agent: AgentId,
    session: &str,
    last: Option<Uuid>,
) -> Result<bool> {
    // Turns of other sessions may be stored at the same time; whoever erases or deletes waits.
    let statement = match tx {
        Tx::Postgres(_) => "SELECT id FROM agents WHERE id = $1 AND workspace_id = $2 FOR SHARE",
        Tx::Sqlite(_) => "SELECT id FROM agents WHERE id = $1 AND workspace_id = $2",
    };
    let found: Option<AgentId> =
        on!(tx, |c| sqlx::query_scalar(statement).bind(agent).bind(owner.workspace_id).fetch_optional(c))?;
    if found.is_none() {
        return Ok(true);
    }
    let noted: Option<Uuid> = on!(tx, |c| sqlx::query_scalar("SELECT owner FROM leases WHERE name = $1")
        .bind(erasure_note(owner, agent, session))
        .fetch_optional(c))?;
    // A note that has gone was too old to matter.
    Ok(noted.is_some() && noted != last)
}

/// Forgets the turn of a run in a session of an agent that is locked. Of turns that do not know their run it forgets those in which somebody
/// said just this, when that is known.
pub async fn forget_turn(
    tx: &mut Tx,
    owner: RunOwner,
    agent: AgentId,
    session: &str,
    trace: TraceId,
    question: Option<&str>,
) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM agent_memory WHERE agent_id = $1 AND session = $2 AND workspace_id = $3
               AND COALESCE(created_by, workspace_id) = $4 AND token_id IS NOT DISTINCT FROM $5
               AND (trace_id = $6 OR trace_id IS NULL AND question = $7)"
        )
        .bind(agent)
        .bind(session)
        .bind(owner.workspace_id)
        .bind(owner.user)
        .bind(owner.token)
        .bind(trace)
        .bind(question)
    )?;
    Ok(())
}

/// Forgets a session of an agent that is locked, and notes that for the runs of it that go on.
pub(crate) async fn erase(
    tx: &mut Tx,
    owner: RunOwner,
    agent: AgentId,
    session: &str,
    now: Timestamp,
) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM agent_memory WHERE agent_id = $1 AND session = $2 AND workspace_id = $3
               AND COALESCE(created_by, workspace_id) = $4 AND token_id IS NOT DISTINCT FROM $5"
        )
        .bind(agent)
        .bind(session)
        .bind(owner.workspace_id)
        .bind(owner.user)
        .bind(owner.token)
    )?;
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO leases (name, owner, held_until) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, held_until = excluded.held_until"
        )
        .bind(erasure_note(owner, agent, session))
        .bind(Uuid::now_v7())
        .bind(now.plus(ERASURE_NOTED))
    )?;
    Ok(())
}

/// Forgets which sessions were erased so long ago that no run began before; at most `limit`, so that it never holds the store for long.
pub async fn expire_erasures(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<u64> {
    // Said twice: a session that is erased again at this moment stays noted.
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM leases WHERE held_until < $1 AND name IN (
                 SELECT name FROM leases WHERE name LIKE 'erased-session:%' AND held_until < $1 LIMIT $2)"
        )
        .bind(now)
        .bind(i64::from(limit))
    )
}

/// The last of the next `limit` turns behind `after`, of whatever sessions; none when there are no more than these.
pub async fn end_of_next(db: &Db, after: Uuid, limit: u32) -> Result<Option<Uuid>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT id FROM agent_memory WHERE id > $1 ORDER BY id LIMIT 1 OFFSET $2"
    )
    .bind(after)
    .bind(i64::from(limit.saturating_sub(1)))
    .fetch_optional(c))?)
}

/// Forgets some of the turns behind `after`, up to `last`, that nobody can ask for or erase any more: those of members who have left, of API
/// tokens that are gone, and of guests of a published page from before `guests_before`. A guest's session is known to one tab, and to nobody
/// when that is closed. False when there is no more of it, but for what somebody else is deleting at this moment.
pub async fn forget_unreachable(
    tx: &mut Tx,
    after: Uuid,
    last: Uuid,
    guests_before: Timestamp,
) -> Result<bool> {
    let statement = delete_some!(
        tx,
        "agent_memory",
        "id > $1 AND id <= $2
           AND (NOT EXISTS (SELECT 1 FROM members WHERE members.workspace_id = agent_memory.workspace_id
                              AND members.user_id = COALESCE(agent_memory.created_by, agent_memory.workspace_id))
             OR (token_id IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM api_tokens WHERE api_tokens.id = agent_memory.token_id))
             OR (created_at < $3
                 AND EXISTS (SELECT 1 FROM publications WHERE publications.agent_id = agent_memory.agent_id
                               AND publications.token_id = agent_memory.token_id)))
         ORDER BY id LIMIT $4"
    );
    let gone = execute!(
        tx,
        sqlx::query(statement).bind(after).bind(last).bind(guests_before).bind(i64::from(DELETED_TOGETHER))
    )?;
    Ok(gone == u64::from(DELETED_TOGETHER))
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
                                       created_at, trace_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
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
        .bind(turn.trace)
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
