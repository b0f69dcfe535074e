//! Workspaces, for the operator's shell: whoever is at it need be no member. What is changed is noted in the workspace's audit log, by
//! an account that is none.

use std::sync::Arc;

use lectern_agents::run::RunRecorder;
use lectern_db::{self as db, Db, Tx};
use lectern_shared::{
    clock::Clock,
    ids::{UserId, WorkspaceId},
    model::{
        Json,
        audit::{AuditAction, AuditDetails},
        user::{User, email_key},
        workspace::{Member, Role, Workspace, WorkspaceQuotas},
    },
    secrets::Keyring,
};
use uuid::Uuid;

use super::{UsageService, WorkspaceUsage, members, told_quotas, unknown};
use crate::{
    error::ApiError,
    services::{actor::Actor, audit::AuditService},
};

/// Workspaces, or members, that are read at a time.
const PAGE: u32 = 200;

/// Why a workspace could not be shown or changed, in words for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WorkspaceCommandError(String);

impl From<ApiError> for WorkspaceCommandError {
    fn from(error: ApiError) -> Self {
        Self(error.message)
    }
}

/// Everything that the operator is shown of a workspace.
#[derive(Clone, Debug)]
pub struct WorkspaceReport {
    /// The workspace.
    pub workspace: Workspace,
    /// What it holds, and has used this month.
    pub used: WorkspaceUsage,
    /// Its members, those with the newest accounts first.
    pub members: Vec<Member>,
}

/// Which quotas of a workspace become different. What is none stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QuotaChange {
    /// Takes away all that there are, before the others are set.
    pub clears: bool,
    /// Documents.
    pub documents: Option<u64>,
    /// Bytes that are stored.
    pub bytes: Option<u64>,
    /// Tokens of models in a calendar month.
    pub tokens_per_month: Option<u64>,
    /// What models may cost in a calendar month.
    pub cost_per_month: Option<f64>,
}

impl QuotaChange {
    /// What the quotas are after it.
    fn applied_to(self, before: WorkspaceQuotas) -> WorkspaceQuotas {
        let before = if self.clears { WorkspaceQuotas::default() } else { before };
        WorkspaceQuotas {
            documents: self.documents.or(before.documents),
            bytes: self.bytes.or(before.bytes),
            tokens_per_month: self.tokens_per_month.or(before.tokens_per_month),
            cost_per_month: self.cost_per_month.or(before.cost_per_month),
        }
    }
}

/// Workspaces, for the operator.
#[derive(Clone)]
pub struct WorkspaceOperator {
    db: Db,
    clock: Clock,
    audit: AuditService,
    usage: UsageService,
}

/// The operator, in a workspace.
pub(crate) fn operator(workspace: WorkspaceId) -> Actor {
    Actor::new(Uuid::nil().into(), workspace, Role::Owner, WorkspaceQuotas::default(), None)
}

impl WorkspaceOperator {
    pub(crate) fn new(db: Db, clock: Clock, keyring: Arc<Keyring>) -> Self {
        let (audit, usage) = (
            AuditService::new(db.clone(), clock.clone(), keyring),
            UsageService::new(db.clone(), clock.clone(), RunRecorder::default()),
        );
        Self { db, clock, audit, usage }
    }

    /// Every workspace, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(&self) -> Result<Vec<Workspace>, WorkspaceCommandError> {
        let (mut all, mut before) = (Vec::new(), WorkspaceId::from(Uuid::max()));
        loop {
            let page = db::workspaces::list(&self.db, before, PAGE).await.map_err(ApiError::from)?;
            let Some(last) = page.last() else { return Ok(all) };
            before = last.id;
            all.extend(page);
        }
    }

    /// One workspace.
    ///
    /// # Errors
    /// When there is none.
    pub async fn show(&self, id: WorkspaceId) -> Result<WorkspaceReport, WorkspaceCommandError> {
        Ok(self.report(id).await?)
    }

    /// Changes what a workspace may hold and use, which is as it is returned afterwards.
    ///
    /// # Errors
    /// When there is no such workspace.
    pub async fn set_quotas(
        &self,
        id: WorkspaceId,
        change: QuotaChange,
    ) -> Result<WorkspaceQuotas, WorkspaceCommandError> {
        let done = async {
            let mut tx = self.db.begin().await?;
            // Of two changes at once neither undoes the other.
            db::locks::lock_workspace(&mut tx, id).await?;
            let before = db::workspaces::quotas(&mut tx, id).await?;
            let quotas = change.applied_to(before);
            if !db::workspaces::set_quotas(&mut tx, id, quotas, self.clock.now()).await? {
                return Err(unknown());
            }
            let details = told_quotas(AuditDetails::default(), before, quotas);
            self.audit
                .note_with(&mut tx, &operator(id), AuditAction::WorkspaceChanged, "workspace", id, details)
                .await?;
            tx.commit().await?;
            Ok::<_, ApiError>(quotas)
        };
        Ok(done.await?)
    }

    /// Makes an account a member, or gives a member another role.
    ///
    /// # Errors
    /// When there is no such workspace or account, and when the workspace would have no owner.
    pub async fn put_member(
        &self,
        id: WorkspaceId,
        email: &str,
        role: Role,
    ) -> Result<UserId, WorkspaceCommandError> {
        let done = async {
            let user = self.account(email).await?.id;
            let mut tx = self.db.begin().await?;
            let member = lock_member(&mut tx, id, user).await?;
            if let Some(member) = member.as_ref().filter(|_| role != Role::Owner) {
                keep_an_owner(&mut tx, id, member).await?;
            }
            let action = if member.is_some() { AuditAction::RoleChanged } else { AuditAction::MemberJoined };
            let disabled = db::workspaces::members::put(&mut tx, id, user, role, self.clock.now()).await?;
            let details = AuditDetails::change(member.map(|member| member.role), Some(role));
            self.audit.note_with(&mut tx, &operator(id), action, "user", user, details).await?;
            self.audit.note_disabled(&mut tx, &operator(id), &disabled).await?;
            tx.commit().await?;
            Ok::<_, ApiError>(user)
        };
        Ok(done.await?)
    }

    /// Removes a member, with the API tokens that it made there, and switches off the webhooks that it set up.
    ///
    /// # Errors
    /// When there is no such workspace, account or member, when the workspace would have no owner, and when it is the account's own.
    pub async fn remove_member(&self, id: WorkspaceId, email: &str) -> Result<UserId, WorkspaceCommandError> {
        let done = async {
            let user = self.account(email).await?.id;
            if *user.as_uuid() == *id.as_uuid() {
                return Err(members::own_workspace());
            }
            let mut tx = self.db.begin_essential().await?;
            let member = lock_member(&mut tx, id, user).await?.ok_or_else(members::unknown)?;
            keep_an_owner(&mut tx, id, &member).await?;
            let removed = db::workspaces::members::remove(&mut tx, id, user, self.clock.now()).await?;
            self.audit.note_removal(&mut tx, &operator(id), user, member.role, &removed).await?;
            tx.commit().await?;
            Ok::<_, ApiError>(user)
        };
        Ok(done.await?)
    }

    async fn report(&self, id: WorkspaceId) -> Result<WorkspaceReport, ApiError> {
        let workspace = db::workspaces::find(&self.db, id).await?.ok_or_else(unknown)?;
        let used = self.usage.of_workspace(id).await?;
        let (mut members, mut before) = (Vec::new(), UserId::from(Uuid::max()));
        loop {
            let page = db::workspaces::members::list(&self.db, id, "", before, PAGE).await?;
            let Some(last) = page.last() else { return Ok(WorkspaceReport { workspace, used, members }) };
            before = last.user_id;
            members.extend(page);
        }
    }

    async fn account(&self, email: &str) -> Result<User, ApiError> {
        let found = db::accounts::find_by_email(&self.db, &email_key(email)).await?;
        Ok(found.ok_or_else(|| ApiError::not_found("account"))?.user)
    }
}

impl WorkspaceReport {
    /// What the workspace may hold and use.
    pub fn quotas(&self) -> WorkspaceQuotas {
        self.workspace.quotas.as_ref().map(|Json(quotas)| *quotas).unwrap_or_default()
    }
}

/// The member, if the account is one, while changes to the workspace wait.
async fn lock_member(tx: &mut Tx, id: WorkspaceId, user: UserId) -> Result<Option<Member>, ApiError> {
    db::locks::lock_workspace(tx, id).await?;
    if !db::workspaces::is_active(tx, id).await? {
        return Err(unknown());
    }
    Ok(db::workspaces::members::find(tx, id, user).await?)
}

/// Refuses to take the role from a member without whom the workspace would have no owner, or whose own it is.
async fn keep_an_owner(tx: &mut Tx, id: WorkspaceId, member: &Member) -> Result<(), ApiError> {
    if member.role != Role::Owner {
        return Ok(());
    }
    if *member.user_id.as_uuid() == *id.as_uuid() {
        return Err(members::own_workspace());
    }
    if !db::workspaces::members::has_other_owner(tx, id, member.user_id).await? {
        return Err(members::last_owner());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_that_are_not_named_stay_unless_all_are_taken_away() {
        let before =
            WorkspaceQuotas { documents: Some(10), bytes: Some(1_000), ..WorkspaceQuotas::default() };
        let change = QuotaChange { bytes: Some(2_000), cost_per_month: Some(5.0), ..QuotaChange::default() };
        let after = change.applied_to(before);
        assert_eq!((after.documents, after.bytes), (Some(10), Some(2_000)));
        assert_eq!(after.cost_per_month, Some(5.0));
        let after = QuotaChange { clears: true, ..change }.applied_to(before);
        assert_eq!((after.documents, after.bytes), (None, Some(2_000)));
    }
}
