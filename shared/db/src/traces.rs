//! Records of predict runs.

mod questions;

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, ApiTokenId, AskerId, DocumentId, TraceId, UserId, WorkspaceId},
    model::{Json, workspace::RunOwner},
};
use serde_json::Value;

pub use self::questions::search_end;
use self::questions::{kept_question, search};
use crate::{Db, Result, Tx, execute, on, silence};

/// Traces, and turns that sessions remember, that are deleted in one transaction.
pub(crate) const DELETED_TOGETHER: u32 = 200;

/// A statement that deletes some rows of a table: those that a condition selects, which ends with its limit. Rows that somebody else deletes or
/// changes at the same moment are left out: two who wait for each other's would be a deadlock.
macro_rules! delete_some {
    ($tx:expr, $table:literal, $selected:literal) => {
        match $tx {
            $crate::Tx::Postgres(_) => {
                $crate::traces::delete_picked!($table, $selected, " FOR UPDATE SKIP LOCKED")
            }
            $crate::Tx::Sqlite(_) => $crate::traces::delete_picked!($table, $selected, ""),
        }
    };
}
pub(crate) use delete_some;

macro_rules! delete_picked {
    ($table:literal, $selected:literal, $lock:literal) => {
        concat!(
            // Picked once: PostgreSQL may go through a subquery again, and would find other rows.
            "WITH picked AS MATERIALIZED (SELECT id FROM ",
            $table,
            " WHERE ",
            $selected,
            $lock,
            ") DELETE FROM ",
            $table,
            " WHERE id IN (SELECT id FROM picked)"
        )
    };
}
pub(crate) use delete_picked;

/// A stored trace.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct StoredTrace {
    /// Its id.
    pub id: TraceId,
    /// The agent that ran.
    pub agent_id: AgentId,
    /// The session, when one was named.
    pub session: Option<String>,
    /// What was asked, of which the beginning is kept; none where it is not read.
    #[sqlx(default)]
    pub question: Option<String>,
    /// When it ran.
    pub created_at: Timestamp,
    /// Nothing was cut off to keep it small.
    pub complete: bool,
    /// The trace as the caller saw it.
    pub body: Json<Value>,
    /// What somebody said of the answer: 1 or -1.
    #[sqlx(default)]
    pub rating: Option<i64>,
    /// And in which words.
    #[sqlx(default)]
    pub feedback: Option<String>,
    /// And when.
    #[sqlx(default)]
    pub feedback_at: Option<Timestamp>,
    /// The account that asked, or that made the token; none before it is stored.
    #[sqlx(default)]
    pub user_id: Option<UserId>,
    /// The token that was asked with, if many may hold it.
    #[sqlx(default)]
    pub token_id: Option<ApiTokenId>,
}

impl StoredTrace {
    /// Who asked, as far as it is known.
    pub fn asker(&self) -> Option<AskerId> {
        let token = self.token_id.map(|token| *token.as_uuid());
        token.or_else(|| self.user_id.map(|user| *user.as_uuid())).map(AskerId::from)
    }
}

/// Which traces are listed. What is left out lets all of them through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFilter {
    /// The agent that ran.
    pub agent: Option<AgentId>,
    /// What was said of the answer: 1 or -1.
    pub rating: Option<i64>,
    /// Who asked.
    pub asker: Option<AskerId>,
    /// What the kept beginning of the question has somewhere, in whichever case; empty for any question.
    pub question: String,
    /// The oldest trace that is looked at for a question.
    pub since: Option<TraceId>,
}

/// The columns of a trace, without its record.
macro_rules! columns {
    () => {
        "id, agent_id, session, created_at, complete, body, rating, feedback, feedback_at, COALESCE(created_by, workspace_id) AS user_id,
         token_id"
    };
}
pub(crate) use columns;

/// A SELECT of some of a workspace's traces, with a condition of who asked.
macro_rules! select_listed {
    ($asked:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM traces
             WHERE workspace_id = $1 AND id < $2 AND ($3 IS NULL OR agent_id = $3) AND expires_at > $4
               AND ($6 IS NULL OR rating = $6) AND ",
            $asked,
            " ORDER BY id DESC LIMIT $5"
        )
    };
}

/// Those that one asked: in one statement with that of all, SQLite could not use the index of who asked.
pub(crate) const SELECT_OF_ASKER: &str = select_listed!("COALESCE(token_id, created_by, workspace_id) = $7");

/// An INSERT of a trace: what stands before it, and where its values come from.
macro_rules! insert_trace {
    ($with:literal, $values:literal) => {
        concat!(
            $with,
            "INSERT INTO traces (id, workspace_id, created_by, token_id, agent_id, session, created_at, expires_at, complete, body,
                                 record, question) ",
            $values
        )
    };
}

/// A query with the values of an `insert_trace!`.
macro_rules! query_of_trace {
    ($statement:expr, $owner:ident, $trace:ident, $record:ident, $expires_at:ident) => {
        sqlx::query($statement)
            .bind($trace.id)
            .bind($owner.workspace_id)
            .bind($owner.user)
            .bind($owner.token)
            .bind($trace.agent_id)
            .bind($trace.session.as_deref())
            .bind($trace.created_at)
            .bind($expires_at)
            .bind($trace.complete)
            .bind(&$trace.body)
            .bind($record)
            .bind($trace.question.as_deref().map(kept_question))
    };
}

/// Keeps a trace until `expires_at`, and `record`, from which its run can be repeated.
pub async fn insert(
    tx: &mut Tx,
    owner: RunOwner,
    trace: &StoredTrace,
    record: Option<&Json<Value>>,
    expires_at: Timestamp,
) -> Result<()> {
    let statement = insert_trace!("", "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)");
    execute!(tx, query_of_trace!(statement, owner, trace, record, expires_at))?;
    Ok(())
}

/// [`insert`] in a [relaxed](Db::begin_relaxed) transaction of its own: most runs leave nothing else behind. On PostgreSQL it is one round
/// trip, since the statement says itself that its commit does not wait for the disk.
pub async fn insert_relaxed(
    db: &Db,
    owner: RunOwner,
    trace: &StoredTrace,
    record: Option<&Json<Value>>,
    expires_at: Timestamp,
) -> Result<()> {
    match db {
        Db::Postgres { pool, .. } => {
            let statement = insert_trace!(
                "WITH relaxed AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', TRUE)) ",
                "SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 FROM relaxed"
            );
            let kept = query_of_trace!(statement, owner, trace, record, expires_at).execute(pool);
            silence::answered(kept).await?;
            Ok(())
        }
        Db::Sqlite { .. } => {
            let mut tx = db.begin_relaxed().await?;
            insert(&mut tx, owner, trace, record, expires_at).await?;
            tx.commit().await
        }
    }
}

/// One of a workspace's traces that has not expired, and its record when it has one; of one member's runs alone when that is
/// named.
pub async fn find_with_record(
    db: &Db,
    workspace: WorkspaceId,
    of: Option<RunOwner>,
    id: TraceId,
    now: Timestamp,
) -> Result<Option<(StoredTrace, Option<Json<Value>>)>> {
    #[derive(sqlx::FromRow)]
    struct TraceRow {
        #[sqlx(flatten)]
        trace: StoredTrace,
        record: Option<Json<Value>>,
    }
    let found: Option<TraceRow> = on!(db, |c| sqlx::query_as(
        "SELECT *, COALESCE(created_by, workspace_id) AS user_id FROM traces
         WHERE id = $1 AND workspace_id = $2 AND expires_at > $3
           AND ($4 IS NULL OR COALESCE(created_by, workspace_id) = $4 AND token_id IS NOT DISTINCT FROM $5)"
    )
    .bind(id)
    .bind(workspace)
    .bind(now)
    .bind(of.map(|of| of.user))
    .bind(of.and_then(|of| of.token))
    .fetch_optional(c))?;
    Ok(found.map(|row| (row.trace, row.record)))
}

/// One of a workspace's traces that has not expired; of one member's runs alone when that is named.
pub async fn find(
    db: &Db,
    workspace: WorkspaceId,
    of: Option<RunOwner>,
    id: TraceId,
    now: Timestamp,
) -> Result<Option<StoredTrace>> {
    Ok(on!(db, |c| sqlx::query_as(concat!(
        "SELECT ",
        columns!(),
        " FROM traces WHERE id = $1 AND workspace_id = $2 AND expires_at > $3
           AND ($4 IS NULL OR COALESCE(created_by, workspace_id) = $4 AND token_id IS NOT DISTINCT FROM $5)"
    ))
    .bind(id)
    .bind(workspace)
    .bind(now)
    .bind(of.map(|of| of.user))
    .bind(of.and_then(|of| of.token))
    .fetch_optional(c))?)
}

/// At most `limit` of a workspace's traces older than `before` that pass a filter, newest first; those of one member's runs when
/// that is named.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    of: Option<RunOwner>,
    filter: &TraceFilter,
    now: Timestamp,
    before: TraceId,
    limit: u32,
) -> Result<Vec<StoredTrace>> {
    let asker = match (of.map(|of| of.asker()), filter.asker) {
        (Some(own), Some(asker)) if own != asker => return Ok(Vec::new()),
        (own, asker) => own.or(asker),
    };
    if !filter.question.is_empty() {
        return search(db, workspace, asker, filter, now, before, limit).await;
    }
    let statement = match asker {
        Some(_) => SELECT_OF_ASKER,
        None => select_listed!("$7 IS NULL"),
    };
    Ok(on!(db, |c| sqlx::query_as(statement)
        .bind(workspace)
        .bind(before)
        .bind(filter.agent)
        .bind(now)
        .bind(i64::from(limit))
        .bind(filter.rating)
        .bind(asker)
        .fetch_all(c))?)
}

/// The ids of at most `limit` of somebody's traces of a session with an agent that are newer than `after`, newest first.
pub async fn of_session(
    db: &Db,
    owner: RunOwner,
    agent: AgentId,
    session: &str,
    now: Timestamp,
    after: TraceId,
    limit: u32,
) -> Result<Vec<TraceId>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT id FROM traces
         WHERE agent_id = $1 AND id > $2 AND workspace_id = $3 AND session = $4 AND expires_at > $5
           AND COALESCE(created_by, workspace_id) = $6 AND token_id IS NOT DISTINCT FROM $7
         ORDER BY id DESC LIMIT $8"
    )
    .bind(agent)
    .bind(after)
    .bind(owner.workspace_id)
    .bind(session)
    .bind(now)
    .bind(owner.user)
    .bind(owner.token)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Keeps what somebody says of an answer, in the place of what was said before; none to take that away. False when there is no such
/// trace, or none of one member's runs when that is named.
pub async fn rate(
    tx: &mut Tx,
    workspace: WorkspaceId,
    of: Option<RunOwner>,
    id: TraceId,
    feedback: Option<(i64, Option<&str>)>,
    now: Timestamp,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE traces SET rating = $3, feedback = $4, feedback_at = $5
             WHERE id = $1 AND workspace_id = $2 AND expires_at > $6
               AND ($7 IS NULL OR COALESCE(created_by, workspace_id) = $7 AND token_id IS NOT DISTINCT FROM $8)"
        )
        .bind(id)
        .bind(workspace)
        .bind(feedback.map(|(rating, _)| rating))
        .bind(feedback.and_then(|(_, text)| text))
        .bind(feedback.map(|_| now))
        .bind(now)
        .bind(of.map(|of| of.user))
        .bind(of.and_then(|of| of.token))
    )?;
    Ok(rows == 1)
}

/// Deletes one of a workspace's traces that has not expired, with what was said of its answer, and the answer where that is kept to be given
/// again; of one member's runs alone when that is named. Whose run it was; none when there is no such trace.
pub async fn delete(
    tx: &mut Tx,
    workspace: WorkspaceId,
    of: Option<RunOwner>,
    id: TraceId,
    now: Timestamp,
) -> Result<Option<RunOwner>> {
    let deleted: Option<(UserId, Option<ApiTokenId>)> = on!(tx, |c| sqlx::query_as(
        "DELETE FROM traces WHERE id = $1 AND workspace_id = $2 AND expires_at > $3
           AND ($4 IS NULL OR COALESCE(created_by, workspace_id) = $4 AND token_id IS NOT DISTINCT FROM $5)
         RETURNING COALESCE(created_by, workspace_id), token_id"
    )
    .bind(id)
    .bind(workspace)
    .bind(now)
    .bind(of.map(|of| of.user))
    .bind(of.and_then(|of| of.token))
    .fetch_optional(c))?;
    Ok(deleted.map(|(user, token)| RunOwner { workspace_id: workspace, user, token }))
}

/// What was deleted of what somebody asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedRuns {
    /// Traces, with what was said of their answers, and the answers where they were kept to be given again.
    pub traces: u64,
    /// Turns that conversations remembered.
    pub turns: u64,
    /// There is more of it.
    pub has_more: bool,
}

/// Deletes some of all that is kept in a workspace of what one asked, the oldest first, also what has expired, and of what their
/// conversations remember. What somebody else is changing or deleting at this moment counts as more.
pub async fn delete_some_of_asker(tx: &mut Tx, workspace: WorkspaceId, asker: AskerId) -> Result<ErasedRuns> {
    let mut gone = [0; 2];
    for (count, statement) in gone.iter_mut().zip([
        delete_some!(
            tx,
            "traces",
            "workspace_id = $1 AND COALESCE(token_id, created_by, workspace_id) = $2 ORDER BY id LIMIT $3"
        ),
        delete_some!(
            tx,
            "agent_memory",
            "workspace_id = $1 AND COALESCE(token_id, created_by, workspace_id) = $2 ORDER BY id LIMIT $3"
        ),
    ]) {
        let limit = i64::from(DELETED_TOGETHER);
        *count = execute!(tx, sqlx::query(statement).bind(workspace).bind(asker).bind(limit))?;
    }
    let has_more: bool = on!(tx, |c| sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM traces
                        WHERE workspace_id = $1 AND COALESCE(token_id, created_by, workspace_id) = $2)
             OR EXISTS (SELECT 1 FROM agent_memory
                        WHERE workspace_id = $1 AND COALESCE(token_id, created_by, workspace_id) = $2)"
    )
    .bind(workspace)
    .bind(asker)
    .fetch_one(c))?;
    let [traces, turns] = gone;
    Ok(ErasedRuns { traces, turns, has_more })
}

/// How many of a workspace's traces there are of each day from a time on: the day's number since 1970, and the count.
pub async fn per_day(db: &Db, workspace: WorkspaceId, from: Timestamp) -> Result<Vec<(i64, i64)>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT created_at / 86400000000 AS day, COUNT(*) FROM traces WHERE workspace_id = $1 AND created_at >= $2
         GROUP BY created_at / 86400000000"
    )
    .bind(workspace)
    .bind(from)
    .fetch_all(c)
    })?)
}

/// At most `limit` of somebody's traces older than `before`, newest first, whatever they name; of each that names a document its body,
/// as JSON. A body can have a megabyte: so few are asked for at once as may be in memory together.
pub async fn naming(
    db: &Db,
    owner: RunOwner,
    document: DocumentId,
    now: Timestamp,
    before: TraceId,
    limit: u32,
) -> Result<Vec<(TraceId, Option<String>)>> {
    // As it stands between quotation marks in the JSON.
    let named = format!("\"{document}\"");
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT id, CASE WHEN REPLACE(body, $5, '') <> body THEN body END FROM traces
         WHERE workspace_id = $1 AND COALESCE(created_by, workspace_id) = $2 AND token_id IS NOT DISTINCT FROM $3
           AND expires_at > $4 AND id < $6
         ORDER BY id DESC LIMIT $7"
    )
    .bind(owner.workspace_id)
    .bind(owner.user)
    .bind(owner.token)
    .bind(now)
    .bind(named.as_str())
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c)
    })?)
}

/// Forgets what has expired; at most `limit` rows, so that it never holds the store for long.
pub async fn expire(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<u64> {
    let statement = delete_some!(tx, "traces", "expires_at <= $1 LIMIT $2");
    execute!(tx, sqlx::query(statement).bind(now).bind(i64::from(limit)))
}
