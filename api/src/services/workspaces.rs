//! Workspaces, their members, and invitations to them.

pub(crate) mod invitations;
pub(crate) mod members;
mod open_runs;
pub(crate) mod operator;
mod usage;

use lectern_db::{self as db, Db, DbError, Tx};
use lectern_derive::RequestBody;
use lectern_jobs::JobQueue;
use lectern_shared::{
    clock::Clock,
    ids::{UserId, WorkspaceId},
    model::{
        audit::{AuditAction, AuditDetails},
        workspace::{JoinedWorkspace, Role, Workspace, WorkspaceQuotas},
    },
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    actor::{Actor, Permission},
    audit::AuditService,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
};
use crate::error::{ApiError, ApiErrorKind};

pub use self::usage::WorkspaceUsage;
pub(crate) use self::usage::{UsageService, over_quota};

/// A new workspace.
#[derive(Debug, RequestBody, ToSchema)]
pub(crate) struct NewWorkspace {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    pub(crate) name: String,
}

/// What is to be different about a workspace. What is left out stays as it is.
#[derive(Debug, RequestBody, ToSchema)]
#[body(change)]
pub(crate) struct WorkspaceChange {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", nullable = false)]
    pub(crate) name: Option<String>,
    /// What it may hold and use, all of it: what is left out here has no limit of its own. For the operator's admins.
    #[schema(nullable = false)]
    pub(crate) quotas: Option<NewQuotas>,
}

/// What a workspace may hold and use. What is left out has no limit but the service's.
#[derive(Debug, RequestBody, ToSchema)]
#[schema(as = WorkspaceQuotas, rename_all = "camelCase")]
pub(crate) struct NewQuotas {
    /// Documents. With 0 none is added to those that there are.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_i64)]
    documents: Option<usize>,
    /// Bytes that are stored: files, texts, and the passages made of them.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_i64)]
    bytes: Option<usize>,
    /// Tokens of models, read and written, in a calendar month in UTC.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_i64)]
    tokens_per_month: Option<usize>,
    /// What models may cost in a calendar month in UTC, in the currency of the service's prices.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    cost_per_month: Option<f64>,
}

/// The name of a workspace, said again by whoever deletes it.
#[derive(Debug, RequestBody, ToSchema)]
pub(crate) struct WorkspaceRemoval {
    /// What the workspace is called.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    pub(crate) name: String,
}

/// A workspace that was changed.
pub(crate) struct ChangedWorkspace {
    pub(crate) workspace: Workspace,
    /// The role of whoever changed it; none for an admin who is no member.
    pub(crate) role: Option<Role>,
}

/// Shared workspaces that one account may own: each has quotas and a place in the queue of its own.
const MOST_OWNED: i64 = 100;

/// Workspaces. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WorkspaceService {
    db: Db,
    clock: Clock,
    jobs: JobQueue,
    creations: IdempotencyStore,
    audit: AuditService,
}

pub(super) fn unknown() -> ApiError {
    ApiError::not_found("workspace")
}

/// What the audit log says of quotas that are others than before, besides what it says already.
fn told_quotas(details: AuditDetails, from: WorkspaceQuotas, to: WorkspaceQuotas) -> AuditDetails {
    details
        .with_setting("documents", from.documents, to.documents)
        .with_setting("bytes", from.bytes, to.bytes)
        .with_setting("tokensPerMonth", from.tokens_per_month, to.tokens_per_month)
        .with_setting("costPerMonth", from.cost_per_month, to.cost_per_month)
}

/// Whether an account may own one more shared workspace. Counted while its other requests wait: its own workspace is locked for that,
/// after the shared one, as whoever deletes an account does it.
///
/// # Errors
/// 403, when it owns as many as it may.
async fn admit_owner(tx: &mut Tx, user: UserId) -> Result<(), ApiError> {
    db::locks::lock_workspace(tx, user.into()).await?;
    if db::workspaces::members::count_owned(tx, user).await? >= MOST_OWNED {
        let message = format!("An account may own at most {MOST_OWNED} workspaces.");
        return Err(ApiError::new(ApiErrorKind::Forbidden, "quota_exceeded", message));
    }
    Ok(())
}

/// [`admit_owner`] of a workspace that is there and locked. Those that are an account's own do not count.
async fn admit_owner_of(tx: &mut Tx, workspace: WorkspaceId, user: UserId) -> Result<(), ApiError> {
    if db::workspaces::is_personal(tx, workspace).await? { Ok(()) } else { admit_owner(tx, user).await }
}

impl WorkspaceService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        jobs: JobQueue,
        creations: IdempotencyStore,
        audit: AuditService,
    ) -> Self {
        Self { db, clock, jobs, creations, audit }
    }

    /// Makes a workspace, of which whoever is signed in is the owner.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewWorkspace,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<JoinedWorkspace>,
    ) -> Result<CreationOutcome, ApiError> {
        let (user, now) = (actor.signed_in()?, self.clock.now());
        let workspace = Workspace {
            id: WorkspaceId::generate(),
            name: new.name.trim().to_owned(),
            is_personal: false,
            quotas: None,
            created_at: now,
            updated_at: now,
        };
        let mut tx = self.db.begin().await?;
        admit_owner(&mut tx, user).await?;
        db::workspaces::insert(&mut tx, &workspace).await?;
        db::workspaces::members::put(&mut tx, workspace.id, user, Role::Owner, now).await?;
        let actor = actor.clone().within(workspace.id, Role::Owner);
        self.audit.note(&mut tx, &actor, AuditAction::WorkspaceCreated, "workspace", workspace.id).await?;
        let made = JoinedWorkspace { workspace, role: Role::Owner };
        self.creations.commit(tx, once.for_sign_ins(), &made, tell).await
    }

    /// The workspaces that the account is a member of, before an id, newest first. An API token sees its own.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<JoinedWorkspace>, ApiError> {
        if actor.token().is_some() {
            let owner = actor.may(Permission::ListMembers)?;
            let own = self.find(actor, owner.workspace_id).await?;
            return Ok(Some(own).filter(|own| *own.workspace.id.as_uuid() < before).into_iter().collect());
        }
        Ok(db::workspaces::list_joined(&self.db, actor.user, before.into(), limit).await?)
    }

    /// One workspace that the account is a member of, and the actor in it.
    pub(crate) async fn enter(
        &self,
        actor: &Actor,
        id: WorkspaceId,
    ) -> Result<(Actor, JoinedWorkspace), ApiError> {
        if actor.token().is_some() && id != actor.named_workspace() {
            return Err(unknown());
        }
        let found = db::workspaces::find_joined(&self.db, actor.user, id).await?.ok_or_else(unknown)?;
        let role = if actor.token().is_some() { found.role.at_most(actor.role()) } else { found.role };
        let quotas = found.workspace.quotas.as_ref().map(|quotas| quotas.0).unwrap_or_default();
        let actor = actor.clone().within(id, role).under(quotas);
        actor.may(Permission::ListMembers)?;
        Ok((actor, JoinedWorkspace { role, ..found }))
    }

    /// Whether an account is a member of a workspace, which somebody may have chosen who signs in only now.
    pub(crate) async fn has_member(&self, id: WorkspaceId, user: UserId) -> Result<bool, ApiError> {
        Ok(db::workspaces::find_joined(&self.db, user, id).await?.is_some())
    }

    /// One workspace.
    pub(crate) async fn find(&self, actor: &Actor, id: WorkspaceId) -> Result<JoinedWorkspace, ApiError> {
        Ok(self.enter(actor, id).await?.1)
    }

    /// Changes a workspace. Its name is its owners' to change, and its quotas the operator's admins', members or not.
    ///
    /// # Errors
    /// When whoever asks may not change what is to be different, or is neither a member nor an admin.
    pub(crate) async fn change(
        &self,
        actor: &Actor,
        is_admin: bool,
        id: WorkspaceId,
        change: WorkspaceChange,
    ) -> Result<ChangedWorkspace, ApiError> {
        let sets_quotas_alone = change.quotas.is_some() && change.name.is_none();
        let (actor, role) = match self.enter(actor, id).await {
            Ok((actor, joined)) => {
                // Whatever is changed, the workspace is shown.
                actor.may(Permission::ListMembers)?;
                (actor, Some(joined.role))
            }
            // An admin need not be a member to set what a workspace may hold.
            Err(error)
                if error.kind == ApiErrorKind::NotFound
                    && is_admin
                    && sets_quotas_alone
                    && actor.account().is_ok() =>
            {
                (actor.clone().within(id, Role::Asker), None)
            }
            Err(error) => return Err(error),
        };
        if change.quotas.is_some() {
            actor.account()?;
            if !is_admin {
                let message = "Quotas are the operator's to set. Your account is no admin's.";
                return Err(ApiError::forbidden(message));
            }
        }
        if change.name.is_some() {
            actor.may(Permission::ManageWorkspace)?;
        }
        if change.name.is_some() || change.quotas.is_some() {
            self.write(&actor, id, change).await?;
        }
        let workspace = db::workspaces::find(&self.db, id).await?.ok_or_else(unknown)?;
        Ok(ChangedWorkspace { workspace, role })
    }

    async fn write(&self, actor: &Actor, id: WorkspaceId, change: WorkspaceChange) -> Result<(), ApiError> {
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        // What the log says that it was before is what this change replaces.
        db::locks::lock_workspace(&mut tx, id).await?;
        let (mut is_there, mut details) = (true, AuditDetails::default());
        if let Some(name) = change.name.as_deref().map(str::trim) {
            let before = db::workspaces::name(&mut tx, id).await?;
            details = details.with_setting("name", Some(before.as_str()), Some(name));
            is_there = db::workspaces::rename(&mut tx, id, name, now).await?;
        }
        if let Some(quotas) = change.quotas.map(NewQuotas::stored) {
            details = told_quotas(details, db::workspaces::quotas(&mut tx, id).await?, quotas);
            is_there = db::workspaces::set_quotas(&mut tx, id, quotas, now).await?;
        }
        if !is_there {
            return Err(unknown());
        }
        self.audit.note_with(&mut tx, actor, AuditAction::WorkspaceChanged, "workspace", id, details).await?;
        Ok(tx.commit().await?)
    }

    /// Deletes a workspace with everything in it.
    ///
    /// # Errors
    /// When it is an account's own, or the name is not its name.
    pub(crate) async fn delete(
        &self,
        actor: &Actor,
        id: WorkspaceId,
        removal: WorkspaceRemoval,
    ) -> Result<(), ApiError> {
        let (actor, found) = self.enter(actor, id).await?;
        actor.may(Permission::ManageWorkspace)?;
        if found.workspace.is_personal {
            let message = "This is an account's own workspace, which goes with the account.";
            return Err(ApiError::new(ApiErrorKind::Conflict, "personal_workspace", message));
        }
        if removal.name.trim() != found.workspace.name {
            return Err(ApiError::invalid_field("name", "is not the workspace's name"));
        }
        let mut tx = self.db.begin_essential().await?;
        members::lock_asking(&mut tx, &actor, id).await?;
        // In the account's own log: the workspace's goes with it.
        let own = actor.clone().within(actor.user.into(), Role::Owner);
        self.audit.note(&mut tx, &own, AuditAction::WorkspaceDeleted, "workspace", id).await?;
        self.remove(tx, id).await
    }

    /// Deletes a workspace, of which nothing is found any more once this returns.
    async fn remove(&self, mut tx: Tx, id: WorkspaceId) -> Result<(), ApiError> {
        let now = self.jobs.now();
        db::workspaces::close(&mut tx, id, now).await?;
        tx.commit().await?;
        tracing::info!(workspace = %id, "workspace deleted");
        let removed = async {
            let mut tx = self.db.begin_essential().await?;
            db::workspaces::delete(&mut tx, id, now).await?;
            tx.commit().await
        };
        let removed: Result<(), DbError> = removed.await;
        if let Err(error) = removed {
            // It is ended for good by now; the sweeper does the rest.
            tracing::warn!(%error, workspace = %id, "what a deleted workspace owned is removed later");
        }
        Ok(())
    }
}

impl NewQuotas {
    fn stored(self) -> WorkspaceQuotas {
        let whole = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        WorkspaceQuotas {
            documents: self.documents.map(whole),
            bytes: self.bytes.map(whole),
            tokens_per_month: self.tokens_per_month.map(whole),
            cost_per_month: self.cost_per_month,
        }
    }
}
