//! Runs of evaluations, and what came of each case in them.

use lectern_shared::{
    clock::Timestamp,
    ids::{ClaimId, EvaluationCaseId, EvaluationId, EvaluationRunId, UserId, WorkspaceId},
    model::{
        Json,
        evaluation::{
            CaseResult, EvaluationConfig, EvaluationMetrics, EvaluationRun, EvaluationRunState,
            StoredCaseResult,
        },
        webhook::WebhookEvent,
        workspace::WorkspaceQuotas,
    },
};
use serde_json::json;
use sqlx::QueryBuilder;

use crate::{Db, Result, Tx, execute, on, webhooks};

/// Runs of one set that are kept.
const KEPT: u32 = 200;

/// Queues a run of a set that is [locked](super::lock).
pub async fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    evaluation: EvaluationId,
    by: UserId,
    config: &EvaluationConfig,
    cases: i64,
    now: Timestamp,
) -> Result<EvaluationRun> {
    Ok(on!(tx, |c| {
        sqlx::query_as(
        "INSERT INTO evaluation_runs (id, workspace_id, evaluation_id, requested_by, state, config, attempts, cases, done, created_at)
         VALUES ($1, $2, $3, $4, 'queued', $5, 0, $6, 0, $7) RETURNING *"
    )
    .bind(EvaluationRunId::generate())
    .bind(workspace)
    .bind(evaluation)
    .bind(by)
    .bind(Json(config))
    .bind(cases)
    .bind(now)
    .fetch_one(c)
    })?)
}

/// How many runs of a workspace wait or are under way.
pub async fn count_active(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64> {
    let count: i64 = on!(tx, |c| sqlx::query_scalar(
        "SELECT COUNT(*) FROM evaluation_runs WHERE workspace_id = $1 AND state IN ('queued', 'running')"
    )
    .bind(workspace)
    .fetch_one(c))?;
    Ok(count.unsigned_abs())
}

/// A run of one of a workspace's sets.
pub async fn find(
    db: &Db,
    workspace: WorkspaceId,
    evaluation: EvaluationId,
    id: EvaluationRunId,
) -> Result<Option<EvaluationRun>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT * FROM evaluation_runs WHERE id = $1 AND evaluation_id = $2 AND workspace_id = $3"
    )
    .bind(id)
    .bind(evaluation)
    .bind(workspace)
    .fetch_optional(c))?)
}

/// At most `limit` runs of one of a workspace's sets older than `before`, newest first.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    evaluation: EvaluationId,
    before: EvaluationRunId,
    limit: u32,
) -> Result<Vec<EvaluationRun>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT * FROM evaluation_runs WHERE evaluation_id = $1 AND workspace_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
    )
    .bind(evaluation)
    .bind(workspace)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c)
    })?)
}

/// At most `limit` results of a run, of cases older than `before`, newest first.
pub async fn results(
    db: &Db,
    workspace: WorkspaceId,
    run: EvaluationRunId,
    before: EvaluationCaseId,
    limit: u32,
) -> Result<Vec<StoredCaseResult>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT case_id, question, result FROM evaluation_results
         WHERE run_id = $1 AND workspace_id = $2 AND case_id < $3 ORDER BY case_id DESC LIMIT $4"
    )
    .bind(run)
    .bind(workspace)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// What came of these cases in a run, in any order.
pub async fn results_of(
    db: &Db,
    workspace: WorkspaceId,
    run: EvaluationRunId,
    cases: &[EvaluationCaseId],
) -> Result<Vec<StoredCaseResult>> {
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on!(db, |c| async {
        let mut query =
            QueryBuilder::new("SELECT case_id, question, result FROM evaluation_results WHERE run_id = ");
        query.push_bind(run).push(" AND workspace_id = ").push_bind(workspace).push(" AND case_id IN (");
        let mut listed = query.separated(", ");
        for case in cases {
            listed.push_bind(*case);
        }
        query.push(")");
        query.build_query_as().fetch_all(c).await
    })?)
}

/// The last case of which a run has a result.
pub async fn last_case(
    db: &Db,
    workspace: WorkspaceId,
    run: EvaluationRunId,
) -> Result<Option<EvaluationCaseId>> {
    Ok(on!(db, |c| {
        sqlx::query_scalar(
        "SELECT case_id FROM evaluation_results WHERE run_id = $1 AND workspace_id = $2 ORDER BY case_id DESC LIMIT 1"
    )
    .bind(run)
    .bind(workspace)
    .fetch_optional(c)
    })?)
}

/// Stops a run of a workspace that is [locked](crate::locks::lock_workspace); none when it has ended.
pub async fn cancel(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: EvaluationRunId,
    now: Timestamp,
) -> Result<Option<EvaluationRun>> {
    let cancelled: Option<EvaluationRun> = on!(tx, |c| {
        sqlx::query_as(
        "UPDATE evaluation_runs SET state = 'cancelled', claim_id = NULL, lease_until = NULL, finished_at = $2
         WHERE id = $1 AND workspace_id = $3 AND state IN ('queued', 'running') RETURNING *"
    )
    .bind(id)
    .bind(now)
    .bind(workspace)
    .fetch_optional(c)
    })?;
    if let Some(cancelled) = &cancelled {
        emit_finished(tx, cancelled, now).await?;
    }
    Ok(cancelled)
}

/// Has it told that a run has ended, with what came of it.
async fn emit_finished(tx: &mut Tx, run: &EvaluationRun, now: Timestamp) -> Result<()> {
    let name: Option<String> = on!(tx, |c| sqlx::query_scalar("SELECT name FROM evaluations WHERE id = $1")
        .bind(run.evaluation_id)
        .fetch_optional(c))?;
    let metrics = run.metrics.as_ref().map(|Json(metrics)| metrics);
    let told = json!({
        "evaluationId": run.evaluation_id, "name": name, "runId": run.id, "state": run.state, "error": run.error,
        "cases": run.cases, "done": run.done,
        "failed": metrics.map(|metrics| metrics.failed),
        "metrics": metrics.map(|metrics| metrics.headline(&run.config.0)),
    });
    webhooks::emit(tx, run.workspace_id, WebhookEvent::EvaluationFinished, &told, now).await
}

/// A run that a process has claimed, with what it takes.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ClaimedEvaluationRun {
    /// The run.
    #[sqlx(flatten)]
    pub run: EvaluationRun,
    /// What its workspace may use.
    pub quotas: Option<Json<WorkspaceQuotas>>,
}

/// Claims the next run. That runs have not ended is said as their index says it, without which SQLite would read all that ever were.
pub(crate) const CLAIM: &str =
    "UPDATE evaluation_runs SET state = 'running', claim_id = $1, lease_until = $3, attempts = attempts + 1,
                                started_at = COALESCE(started_at, $2)
     WHERE id = (
         SELECT q.id FROM evaluation_runs q
         WHERE q.state IN ('queued', 'running') AND (q.state = 'queued' OR q.lease_until < $2)
           AND NOT EXISTS (SELECT 1 FROM evaluation_runs o
                           WHERE o.state IN ('queued', 'running') AND o.state = 'running' AND o.lease_until >= $2
                             AND (o.workspace_id = q.workspace_id OR o.requested_by = q.requested_by))
         ORDER BY q.created_at, q.id LIMIT 1)
       AND (state = 'queued' OR (state = 'running' AND lease_until < $2))
     RETURNING *, (SELECT quotas FROM workspaces w WHERE w.id = evaluation_runs.workspace_id) AS quotas";

/// Claims the next run: one that is queued, or whose process has been silent for a lease. Of a workspace one is under way at a time, and of
/// those that one account has asked for in however many workspaces.
pub async fn claim(
    tx: &mut Tx,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Option<ClaimedEvaluationRun>> {
    Ok(on!(tx, |c| {
        sqlx::query_as(CLAIM).bind(ClaimId::generate()).bind(now).bind(lease_until).fetch_optional(c)
    })?)
}

/// Ends the claims of all processes: they are known to be gone.
pub async fn void_claims(tx: &mut Tx) -> Result<()> {
    execute!(tx, sqlx::query("UPDATE evaluation_runs SET lease_until = 0 WHERE state = 'running'"))?;
    Ok(())
}

/// Whether a run could be claimed, asked as [`CLAIM`] does.
pub(crate) const DUE: &str = "SELECT q.id FROM evaluation_runs q
     WHERE q.state IN ('queued', 'running') AND (q.state = 'queued' OR q.lease_until < $1)
       AND NOT EXISTS (SELECT 1 FROM evaluation_runs o
                       WHERE o.state IN ('queued', 'running') AND o.state = 'running' AND o.lease_until >= $1
                         AND (o.workspace_id = q.workspace_id OR o.requested_by = q.requested_by))
     LIMIT 1";

/// Whether a run could be claimed: a glance, so that idle processes do not queue for the write lock.
pub async fn any_due(db: &Db, now: Timestamp) -> Result<bool> {
    let found: Option<EvaluationRunId> = on!(db, |c| sqlx::query_scalar(DUE).bind(now).fetch_optional(c))?;
    Ok(found.is_some())
}

/// Keeps a claim; false when it is no longer held.
pub async fn hold(tx: &mut Tx, id: EvaluationRunId, claim: ClaimId, lease_until: Timestamp) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE evaluation_runs SET lease_until = $3 WHERE id = $1 AND claim_id = $2 AND state = 'running'"
        )
        .bind(id)
        .bind(claim)
        .bind(lease_until)
    )?;
    Ok(rows == 1)
}

/// Gives a run back, which goes on where it is; that it was taken up counts only where that is said.
pub async fn release(tx: &mut Tx, id: EvaluationRunId, claim: ClaimId, counts: bool) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE evaluation_runs SET state = 'queued', claim_id = NULL, lease_until = NULL, attempts = attempts - $3
             WHERE id = $1 AND claim_id = $2 AND state = 'running'"
        )
        .bind(id)
        .bind(claim)
        .bind(i64::from(!counts))
    )?;
    Ok(())
}

/// What came of a case.
#[derive(Clone, Debug)]
pub struct NewCaseResult {
    /// The case.
    pub case: EvaluationCaseId,
    /// The question as it was.
    pub question: String,
    /// What came of it.
    pub result: CaseResult,
}

/// Adds results to a run whose claim is held. Those that it has stay: they were written by whoever had the run before. How often it was
/// taken up begins anew: a long run that goes on is not cut off because something failed now and then.
pub async fn add_results(tx: &mut Tx, run: &EvaluationRun, results: &[NewCaseResult]) -> Result<()> {
    if results.is_empty() {
        return Ok(());
    }
    on!(tx, |c| async {
        let mut query = QueryBuilder::new(
            "INSERT INTO evaluation_results (run_id, case_id, workspace_id, question, result) ",
        );
        query.push_values(results, |mut row, result| {
            row.push_bind(run.id)
                .push_bind(result.case)
                .push_bind(run.workspace_id)
                .push_bind(result.question.as_str())
                .push_bind(Json(&result.result));
        });
        query.push(" ON CONFLICT (run_id, case_id) DO NOTHING");
        query.build().execute(c).await.map(|_| ())
    })?;
    execute!(
        tx,
        sqlx::query(
            "UPDATE evaluation_runs SET done = (SELECT COUNT(*) FROM evaluation_results WHERE run_id = $1), attempts = 1
             WHERE id = $1"
        )
        .bind(run.id)
    )?;
    Ok(())
}

/// How a run ended.
#[derive(Clone, Debug)]
pub enum EvaluationEnd {
    /// Well, with this.
    Succeeded(EvaluationMetrics),
    /// Not; why.
    Failed(String),
}

/// Ends a run of a workspace that is [locked](crate::locks::lock_workspace); false when the claim is no longer held. Of the workspace no
/// more than `results` results are kept, those of the latest runs.
pub async fn end(
    tx: &mut Tx,
    run: &EvaluationRun,
    end: &EvaluationEnd,
    now: Timestamp,
    results: u64,
) -> Result<bool> {
    let (state, metrics, error) = match end {
        EvaluationEnd::Succeeded(metrics) => (EvaluationRunState::Succeeded, Some(Json(metrics)), None),
        EvaluationEnd::Failed(why) => (EvaluationRunState::Failed, None, Some(why.as_str())),
    };
    let ended: Option<EvaluationRun> = on!(tx, |c| {
        sqlx::query_as(
        "UPDATE evaluation_runs SET state = $3, metrics = $4, error = $5, finished_at = $6, claim_id = NULL, lease_until = NULL
         WHERE id = $1 AND claim_id = $2 AND state = 'running' RETURNING *"
    )
    .bind(run.id)
    .bind(run.claim_id)
    .bind(state)
    .bind(metrics)
    .bind(error)
    .bind(now)
    .fetch_optional(c)
    })?;
    let Some(ended) = ended else { return Ok(false) };
    emit_finished(tx, &ended, now).await?;
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM evaluation_runs WHERE evaluation_id = $1 AND state NOT IN ('queued', 'running')
               AND id NOT IN (SELECT id FROM evaluation_runs WHERE evaluation_id = $1 ORDER BY id DESC LIMIT $2)"
        )
        .bind(run.evaluation_id)
        .bind(i64::from(KEPT))
    )?;
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM evaluation_results WHERE run_id <> $3 AND run_id IN (
                 SELECT id FROM (SELECT id, SUM(done) OVER (ORDER BY id DESC) AS total FROM evaluation_runs
                                 WHERE workspace_id = $1) AS kept
                 WHERE total > $2)"
        )
        .bind(run.workspace_id)
        .bind(i64::try_from(results).unwrap_or(i64::MAX))
        .bind(run.id)
    )?;
    Ok(true)
}
