//! Answers that callers let be given again.

use lectern_shared::{
    clock::Timestamp,
    ids::{TraceId, WorkspaceId},
};

use crate::{Db, Result, Tx, execute, on};

/// The trace of the run that answered what this key stands for, if that was at `since` or later and the trace is still kept.
pub async fn find(
    db: &Db,
    workspace: WorkspaceId,
    key: &[u8],
    since: Timestamp,
    now: Timestamp,
) -> Result<Option<TraceId>> {
    Ok(on!(db, |c| {
        sqlx::query_scalar(
        "SELECT trace_id FROM cached_answers JOIN traces ON traces.id = cached_answers.trace_id
         WHERE cached_answers.workspace_id = $1 AND answer_key = $2 AND cached_answers.created_at >= $3 AND expires_at > $4"
    )
    .bind(workspace)
    .bind(key)
    .bind(since)
    .bind(now)
    .fetch_optional(c)
    })?)
}

/// Notes that the run of this trace answered what the key stands for; a later run replaces an earlier one.
pub async fn put(
    tx: &mut Tx,
    workspace: WorkspaceId,
    key: &[u8],
    trace: TraceId,
    now: Timestamp,
) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO cached_answers (workspace_id, answer_key, trace_id, created_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (workspace_id, answer_key) DO UPDATE SET trace_id = excluded.trace_id, created_at = excluded.created_at"
        )
        .bind(workspace)
        .bind(key)
        .bind(trace)
        .bind(now)
    )?;
    Ok(())
}
