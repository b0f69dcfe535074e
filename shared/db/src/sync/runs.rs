//! Runs of sources. Of each source one at most is under way, in whichever process; the schema sees to it too.

use std::time::Duration;

use lectern_shared::{
    clock::Timestamp,
    ids::{ClaimId, SourceId, SourceRunId, SourceRunItemId, UserId, WorkspaceId},
    model::{
        sync::{SyncCounts, SyncRun, SyncRunItem, SyncRunState},
        webhook::WebhookEvent,
    },
};
use serde_json::json;

use crate::{Db, Result, Tx, execute, on, webhooks};

/// How long runs that have ended are kept.
pub const KEPT_FOR: Duration = Duration::from_hours(90 * 24);
/// The runs of a source of which it is kept what they found, the latest.
const DETAILED: u32 = 20;

/// What a run is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunRequest {
    /// Who asks; none for the schedule.
    pub by: Option<UserId>,
    /// Whether nothing is to be changed.
    pub dry_run: bool,
    /// Whether everything is to be read anew, and documents made again that somebody deleted.
    pub is_full: bool,
}

/// Queues a run of a source that is [locked](super::lock), unless one is under way.
pub async fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    source: SourceId,
    request: RunRequest,
    now: Timestamp,
) -> Result<Option<SyncRun>> {
    Ok(on!(tx, |c| {
        sqlx::query_as(
        "INSERT INTO source_runs (id, workspace_id, source_id, state, requested_by, dry_run, is_full, attempts, added, changed,
                                  unchanged, gone, failed, bytes, created_at)
         SELECT $1, $2, $3, 'queued', $4, $5, $6, 0, 0, 0, 0, 0, 0, 0, $7
         WHERE NOT EXISTS (SELECT 1 FROM source_runs WHERE source_id = $3 AND state IN ('queued', 'running', 'waiting'))
         RETURNING *"
    )
    .bind(SourceRunId::generate())
    .bind(workspace)
    .bind(source)
    .bind(request.by)
    .bind(request.dry_run)
    .bind(request.is_full)
    .bind(now)
    .fetch_optional(c)
    })?)
}

/// A run of one of a workspace's sources.
pub async fn find(
    db: &Db,
    workspace: WorkspaceId,
    source: SourceId,
    id: SourceRunId,
) -> Result<Option<SyncRun>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT * FROM source_runs WHERE id = $1 AND source_id = $2 AND workspace_id = $3"
    )
    .bind(id)
    .bind(source)
    .bind(workspace)
    .fetch_optional(c))?)
}

/// At most `limit` runs of a source older than `before`, newest first.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    source: SourceId,
    before: SourceRunId,
    limit: u32,
) -> Result<Vec<SyncRun>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT * FROM source_runs WHERE source_id = $1 AND workspace_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
    )
    .bind(source)
    .bind(workspace)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c)
    })?)
}

/// The latest run of each of a workspace's sources.
pub async fn latest(db: &Db, workspace: WorkspaceId) -> Result<Vec<SyncRun>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT r.* FROM sources s JOIN source_runs r
           ON r.id = (SELECT id FROM source_runs WHERE source_id = s.id ORDER BY id DESC LIMIT 1)
         WHERE s.workspace_id = $1"
    )
    .bind(workspace)
    .fetch_all(c))?)
}

/// At most `limit` of a workspace's sources with a run that waits for an answer, by id and name, the oldest run first.
pub async fn waiting(db: &Db, workspace: WorkspaceId, limit: u32) -> Result<Vec<(SourceId, String)>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT s.id, s.name FROM sources s JOIN source_runs r ON r.source_id = s.id AND r.state = 'waiting'
         WHERE s.workspace_id = $1 ORDER BY r.id LIMIT $2"
    )
    .bind(workspace)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// At most `limit` of a workspace's sources that could not be read the last time that they ran to an end, by id, name and why, the oldest run
/// first. One that is under way, or was stopped, has shown nothing else.
pub async fn failing(
    db: &Db,
    workspace: WorkspaceId,
    limit: u32,
) -> Result<Vec<(SourceId, String, Option<String>)>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT s.id, s.name, r.error FROM sources s JOIN source_runs r
           ON r.id = (SELECT id FROM source_runs WHERE source_id = s.id AND state IN ('succeeded', 'failed', 'waiting')
                      ORDER BY id DESC LIMIT 1)
         WHERE s.workspace_id = $1 AND r.state = 'failed' ORDER BY r.id LIMIT $2"
    )
    .bind(workspace)
    .bind(i64::from(limit))
    .fetch_all(c)
    })?)
}

/// At most `limit` of what was found in a run before `before`, the last first.
pub async fn found(
    db: &Db,
    workspace: WorkspaceId,
    run: SourceRunId,
    before: SourceRunItemId,
    limit: u32,
) -> Result<Vec<SyncRunItem>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT id, item_key, outcome, reason, document_id FROM source_run_items
         WHERE run_id = $1 AND workspace_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
    )
    .bind(run)
    .bind(workspace)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Has a run go on that waits for an answer, and delete what is gone; none when it does not wait.
pub async fn confirm(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: SourceRunId,
    by: UserId,
) -> Result<Option<SyncRun>> {
    Ok(on!(tx, |c| sqlx::query_as(
        "UPDATE source_runs SET state = 'queued', confirmed_by = $2, error = NULL, attempts = 0
         WHERE id = $1 AND workspace_id = $3 AND state = 'waiting' RETURNING *"
    )
    .bind(id)
    .bind(by)
    .bind(workspace)
    .fetch_optional(c))?)
}

/// Stops a run, wherever it stands; none when it has ended. Of one that asks, `kept` says what was decided, in place of the question.
pub async fn cancel(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: SourceRunId,
    kept: &str,
    now: Timestamp,
) -> Result<Option<SyncRun>> {
    Ok(on!(tx, |c| {
        sqlx::query_as(
        "UPDATE source_runs SET state = 'cancelled', claim_id = NULL, lease_until = NULL, finished_at = $2,
                error = CASE WHEN state = 'waiting' THEN $4 ELSE error END
         WHERE id = $1 AND workspace_id = $3 AND state IN ('queued', 'running', 'waiting') RETURNING *"
    )
    .bind(id)
    .bind(now)
    .bind(workspace)
    .bind(kept)
    .fetch_optional(c)
    })?)
}

/// Stops the run of a source that is [locked](super::lock), if it asks whether so much is to be deleted, or was told to: what it has found
/// gone, the source may have as it is from now on. Whoever is at it holds the claim no more. Any other run of it has found nothing else
/// gone than what it has deleted, also if it was cut off before it had deleted everything.
pub async fn cancel_deletion(
    tx: &mut Tx,
    workspace: WorkspaceId,
    source: SourceId,
    why: &str,
    now: Timestamp,
) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE source_runs SET state = 'cancelled', error = $3, claim_id = NULL, lease_until = NULL, finished_at = $4
             WHERE source_id = $1 AND workspace_id = $2
               AND (state = 'waiting' OR (state IN ('queued', 'running') AND confirmed_by IS NOT NULL))"
        )
        .bind(source)
        .bind(workspace)
        .bind(why)
        .bind(now)
    )?;
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM source_run_items WHERE outcome = 'gone' AND run_id IN (
                 SELECT id FROM source_runs WHERE source_id = $1 AND workspace_id = $2 AND state IN ('queued', 'running'))
             AND (document_id IS NULL
                  OR EXISTS (SELECT 1 FROM documents d WHERE d.id = source_run_items.document_id AND d.deleted_at IS NULL))"
        )
        .bind(source)
        .bind(workspace)
    )?;
    Ok(())
}

/// Claims the next run. That runs have not ended is said as their index says it, without which SQLite would read all that ever were.
pub(crate) const CLAIM: &str =
    "UPDATE source_runs SET state = 'running', claim_id = $1, lease_until = $3, attempts = attempts + 1,
                            started_at = COALESCE(started_at, $2)
     WHERE id = (
         SELECT q.id FROM source_runs q JOIN sources m ON m.id = q.source_id
         WHERE q.state IN ('queued', 'running') AND (q.state = 'queued' OR q.lease_until < $2)
           AND (SELECT COUNT(*) FROM source_runs o
                WHERE o.state IN ('queued', 'running') AND o.state = 'running' AND o.lease_until >= $2
                  AND o.workspace_id = q.workspace_id) < $4
           AND (SELECT COUNT(*) FROM source_runs o
                WHERE o.state IN ('queued', 'running') AND o.state = 'running' AND o.lease_until >= $2
                  AND (SELECT COALESCE(s.created_by, s.workspace_id) FROM sources s WHERE s.id = o.source_id)
                      = COALESCE(m.created_by, m.workspace_id)) < $4
         ORDER BY q.created_at, q.id LIMIT 1)
       AND (state = 'queued' OR (state = 'running' AND lease_until < $2))
     RETURNING *";

/// Claims the next run: one that is queued, or whose worker has been silent for a lease. Of a workspace at most `of_one` are under
/// way at once, and of the sources that one account has made in however many workspaces.
pub async fn claim(
    tx: &mut Tx,
    now: Timestamp,
    lease_until: Timestamp,
    of_one: u32,
) -> Result<Option<SyncRun>> {
    Ok(on!(tx, |c| {
        sqlx::query_as(CLAIM)
            .bind(ClaimId::generate())
            .bind(now)
            .bind(lease_until)
            .bind(i64::from(of_one))
            .fetch_optional(c)
    })?)
}

/// Ends the claims of all workers: they are known to be gone.
pub async fn void_claims(tx: &mut Tx) -> Result<()> {
    execute!(tx, sqlx::query("UPDATE source_runs SET lease_until = 0 WHERE state = 'running'"))?;
    Ok(())
}

/// Whether a run could be claimed, as far as a glance tells.
pub(crate) const DUE: &str = "SELECT id FROM source_runs
     WHERE state IN ('queued', 'running') AND (state = 'queued' OR lease_until < $1) LIMIT 1";

/// Whether a run could be claimed: a glance, so that idle workers do not queue for the write lock.
pub async fn any_due(db: &Db, now: Timestamp) -> Result<bool> {
    let found: Option<SourceRunId> = on!(db, |c| sqlx::query_scalar(DUE).bind(now).fetch_optional(c))?;
    Ok(found.is_some())
}

/// Keeps a claim, and adds to what the run has found; false when the claim is no longer held.
pub async fn hold(
    tx: &mut Tx,
    id: SourceRunId,
    claim: ClaimId,
    lease_until: Timestamp,
    more: &SyncCounts,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE source_runs SET lease_until = $3, added = added + $4, changed = changed + $5, unchanged = unchanged + $6,
                                    failed = failed + $7, bytes = bytes + $8, deleted_here = deleted_here + $9,
                                    moved = moved + $10
             WHERE id = $1 AND claim_id = $2 AND state = 'running'"
        )
        .bind(id)
        .bind(claim)
        .bind(lease_until)
        .bind(more.added)
        .bind(more.changed)
        .bind(more.unchanged)
        .bind(more.failed)
        .bind(more.bytes)
        .bind(more.deleted_here)
        .bind(more.moved)
    )?;
    Ok(rows == 1)
}

/// Gives a run back, which goes on where it is; that it was taken up counts only where that is said.
pub async fn release(tx: &mut Tx, id: SourceRunId, claim: ClaimId, counts: bool) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE source_runs SET state = 'queued', claim_id = NULL, lease_until = NULL, attempts = attempts - $3
             WHERE id = $1 AND claim_id = $2 AND state = 'running'"
        )
        .bind(id)
        .bind(claim)
        .bind(i64::from(!counts))
    )?;
    Ok(())
}

/// Notes what is to be known of a run, in the place of what was noted before, while it is claimed.
pub async fn warn(tx: &mut Tx, run: &SyncRun, warning: Option<&str>) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE source_runs SET warning = $3 WHERE id = $1 AND claim_id = $2 AND state = 'running'"
        )
        .bind(run.id)
        .bind(run.claim_id)
        .bind(warning)
    )?;
    Ok(())
}

/// Ends a run, or has it wait for an answer, and has that told; false when the claim is no longer held.
pub async fn end(
    tx: &mut Tx,
    run: &SyncRun,
    state: SyncRunState,
    error: Option<&str>,
    now: Timestamp,
) -> Result<bool> {
    let finished_at = Some(now).filter(|_| state != SyncRunState::Waiting);
    let ended: Option<SyncRun> = on!(tx, |c| {
        sqlx::query_as(
        "UPDATE source_runs SET state = $3, error = $4, finished_at = $5, claim_id = NULL, lease_until = NULL,
                                gone = (SELECT COUNT(*) FROM source_run_items i WHERE i.run_id = source_runs.id AND i.outcome = 'gone'),
                                skipped = (SELECT COUNT(*) FROM source_run_items i WHERE i.run_id = source_runs.id AND i.outcome = 'skipped')
         WHERE id = $1 AND claim_id = $2 AND state = 'running' RETURNING *"
    )
    .bind(run.id)
    .bind(run.claim_id)
    .bind(state)
    .bind(error)
    .bind(finished_at)
    .fetch_optional(c)
    })?;
    let Some(SyncRun { counts, skipped, warning, .. }) = ended else { return Ok(false) };
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM source_run_items
             WHERE run_id IN (SELECT id FROM source_runs WHERE source_id = $1)
               AND run_id NOT IN (SELECT id FROM source_runs WHERE source_id = $1 ORDER BY id DESC LIMIT $2)"
        )
        .bind(run.source_id)
        .bind(i64::from(DETAILED))
    )?;
    let name: Option<String> = on!(tx, |c| sqlx::query_scalar("SELECT name FROM sources WHERE id = $1")
        .bind(run.source_id)
        .fetch_optional(c))?;
    let told = json!({
        "sourceId": run.source_id, "name": name, "runId": run.id, "state": state, "dryRun": run.dry_run, "error": error,
        "added": counts.added, "changed": counts.changed, "moved": counts.moved, "unchanged": counts.unchanged,
        "gone": counts.gone, "failed": counts.failed, "deletedHere": counts.deleted_here, "skipped": skipped, "warning": warning,
    });
    webhooks::emit(tx, run.workspace_id, WebhookEvent::SourceFinished, &told, now).await?;
    Ok(true)
}

/// Forgets runs that were long ago; at most `limit`.
pub async fn expire(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<u64> {
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM source_runs WHERE id IN (
                 SELECT id FROM source_runs
                 WHERE created_at < $1 AND state NOT IN ('queued', 'running', 'waiting') ORDER BY created_at LIMIT $2)"
        )
        .bind(now.minus(KEPT_FOR))
        .bind(i64::from(limit))
    )
}
