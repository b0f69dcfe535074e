//! What a workspace holds and has used of what it may.

use lectern_agents::run::RunRecorder;
use lectern_db::{self as db, Db, usage::MonthlyUsage};
use lectern_shared::{clock::Clock, ids::WorkspaceId, model::workspace::WorkspaceQuotas};

use crate::{
    error::{ApiError, ApiErrorKind},
    services::actor::{Actor, Permission},
};

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
}

impl UsageService {
    pub(crate) fn new(db: Db, clock: Clock, recorder: RunRecorder) -> Self {
        Self { db, clock, recorder }
    }

    /// What the workspace holds and uses.
    pub(crate) async fn of(&self, actor: &Actor) -> Result<WorkspaceUsage, ApiError> {
        self.of_workspace(actor.may(Permission::ListMembers)?.workspace_id).await
    }

    /// What any workspace holds and uses: for the operator.
    pub(super) async fn of_workspace(&self, workspace: WorkspaceId) -> Result<WorkspaceUsage, ApiError> {
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
        let WorkspaceQuotas { tokens_per_month, cost_per_month, .. } = quotas;
        if tokens_per_month.is_none() && cost_per_month.is_none() {
            return Ok(());
        }
        let used = self.this_month(workspace).await?;
        if let Some(allowed) = tokens_per_month
            && u64::try_from(used.tokens).unwrap_or(0) >= allowed
        {
            return Err(over_quota(&format!("{} of {allowed} tokens of this month are used", used.tokens)));
        }
        if let Some(allowed) = cost_per_month
            && used.cost() >= allowed
        {
            return Err(over_quota(&format!("{:.6} of {allowed} of this month's cost is used", used.cost())));
        }
        Ok(())
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

pub(crate) fn over_quota(used: &str) -> ApiError {
    let message = format!("This workspace has used what it may: {used}. Its operator can raise its quotas.");
    ApiError::new(ApiErrorKind::Forbidden, "quota_exceeded", message)
}
