//! What a workspace holds and has used of what it may.

use std::{pin::pin, time::Duration};

use lectern_agents::run::{RunRecorder, RunReservation};
use lectern_db::{self as db, Db, usage::MonthlyUsage};
use lectern_shared::{clock::Clock, ids::WorkspaceId, model::workspace::WorkspaceQuotas};
use tokio::time::timeout;

use super::open_runs::{OpenRun, OpenRuns, has_room};
use crate::{
    coalesced::CoalescedReads,
    error::{ApiError, ApiErrorKind},
    limits::RetryAfter,
    services::actor::{Actor, Permission},
};

/// How long a run waits for the end of another one that goes on.
const PATIENCE: Duration = Duration::from_secs(10);
/// After how many seconds it may try again then.
const AGAIN: u64 = 10;

/// What a workspace holds, and has used this month.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkspaceUsage {
    /// Documents that are not deleted.
    pub documents: u64,
    /// Bytes that are stored.
    pub bytes: u64,
    /// Tokens of models, read and written.
    pub tokens_this_month: u64,
    /// What they cost, in the currency of the service's prices.
    pub cost_this_month: f64,
}

/// What workspaces hold and use. Cheap to clone.
#[derive(Clone)]
pub(crate) struct UsageService {
    db: Db,
    clock: Clock,
    /// An answer may be read before what it used is counted.
    recorder: RunRecorder,
    open: OpenRuns,
    /// Of many runs that wait for the same quota, not each asks for itself.
    months: CoalescedReads<WorkspaceId, Result<MonthlyUsage, ApiError>>,
}

impl UsageService {
    pub(crate) fn new(db: Db, clock: Clock, recorder: RunRecorder) -> Self {
        Self { db, clock, recorder, open: OpenRuns::default(), months: CoalescedReads::default() }
    }

    /// What the workspace holds and uses.
    pub(crate) async fn of(&self, actor: &Actor) -> Result<WorkspaceUsage, ApiError> {
        self.of_workspace(actor.may(Permission::ListMembers)?.workspace_id).await
    }

    /// What any workspace holds and uses. Who may know was decided before.
    pub(crate) async fn of_workspace(&self, workspace: WorkspaceId) -> Result<WorkspaceUsage, ApiError> {
        let stored = db::storage::totals(&self.db, workspace).await?;
        let month = self.this_month(workspace).await?;
        Ok(WorkspaceUsage {
            documents: stored.documents,
            bytes: stored.bytes,
            tokens_this_month: u64::try_from(month.tokens).unwrap_or(0),
            cost_this_month: month.cost(),
        })
    }

    /// Whether the workspace may have a model read something.
    ///
    /// # Errors
    /// 403 with what is used, when the month's tokens or money are used up.
    pub(crate) async fn admit(&self, actor: &Actor) -> Result<(), ApiError> {
        self.admit_workspace(actor.named_workspace(), actor.quotas()).await
    }

    /// [`UsageService::admit`] a workspace with these quotas.
    pub(crate) async fn admit_workspace(
        &self,
        workspace: WorkspaceId,
        quotas: WorkspaceQuotas,
    ) -> Result<(), ApiError> {
        if is_limited(quotas) { check(self.this_month(workspace).await?, quotas) } else { Ok(()) }
    }

    /// [`UsageService::admit`] a run, which goes on as long as what is returned is kept. Nothing is, where nothing is limited.
    ///
    /// # Errors
    /// 429 too, when the rest of the month has no room for it besides the runs that go on, and none of them ends soon.
    pub(crate) async fn admit_run(&self, actor: &Actor) -> Result<Option<RunReservation>, ApiError> {
        let (workspace, quotas) = (actor.named_workspace(), actor.quotas());
        if !is_limited(quotas) {
            return Ok(None);
        }
        let opened = timeout(PATIENCE, self.open_run(workspace, quotas)).await;
        let open = opened.unwrap_or_else(|_| Err(too_many_answers()))?;
        Ok(Some(RunReservation::of(open)))
    }

    async fn open_run(&self, workspace: WorkspaceId, quotas: WorkspaceQuotas) -> Result<OpenRun, ApiError> {
        loop {
            let mut end = pin!(self.open.next_end());
            end.as_mut().enable();
            let ended = self.open.ended();
            let used = self.months.share(workspace, self.this_month(workspace)).await?;
            check(used, quotas)?;
            if let Some(open) = self.open.begin(workspace, ended, |others| has_room(used, quotas, others)) {
                return Ok(open);
            }
            end.await;
        }
    }

    /// Counts tokens that a model which has no price reads for a workspace.
    pub(crate) async fn count(&self, workspace: WorkspaceId, tokens: usize) -> Result<(), ApiError> {
        let used = MonthlyUsage::new(u64::try_from(tokens).unwrap_or(u64::MAX), 0.0);
        let mut tx = self.db.begin_relaxed().await?;
        db::usage::add(&mut tx, workspace, self.clock.now().month_start(), used).await?;
        Ok(tx.commit().await?)
    }

    async fn this_month(&self, workspace: WorkspaceId) -> Result<MonthlyUsage, ApiError> {
        self.recorder.settled(workspace).await;
        Ok(db::usage::of_month(&self.db, workspace, self.clock.now().month_start()).await?)
    }
}

/// Whether what models use is limited.
const fn is_limited(quotas: WorkspaceQuotas) -> bool {
    quotas.tokens_per_month.is_some() || quotas.cost_per_month.is_some()
}

/// Whether something is left of the month.
fn check(used: MonthlyUsage, quotas: WorkspaceQuotas) -> Result<(), ApiError> {
    if let Some(allowed) = quotas.tokens_per_month
        && u64::try_from(used.tokens).unwrap_or(0) >= allowed
    {
        return Err(over_quota(&format!("{} of {allowed} tokens of this month are used", used.tokens)));
    }
    if let Some(allowed) = quotas.cost_per_month
        && used.cost() >= allowed
    {
        return Err(over_quota(&format!("{:.6} of {allowed} of this month's cost is used", used.cost())));
    }
    Ok(())
}

fn too_many_answers() -> ApiError {
    // Strangers on a published page are told it, too, and know nothing of quotas.
    let message = "As many questions are being answered here as may be at once. Try again in some seconds.";
    ApiError::too_many("too_many_answers", message, RetryAfter::from_secs(AGAIN))
}

pub(crate) fn over_quota(used: &str) -> ApiError {
    let message = format!("This workspace has used what it may: {used}. Its operator can raise its quotas.");
    ApiError::new(ApiErrorKind::Forbidden, "quota_exceeded", message)
}
