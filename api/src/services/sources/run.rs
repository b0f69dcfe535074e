//! Runs of sources, as they are asked for, followed and answered.

use lectern_db::{
    self as db, Tx,
    sync::runs::{self, RunRequest},
};
use lectern_derive::RequestBody;
use lectern_shared::{
    ids::{SourceId, SourceRunId, SourceRunItemId, WorkspaceId},
    model::sync::{SyncRun, SyncRunItem},
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{SourceService, unknown};
use crate::{
    error::{ApiError, ApiErrorKind},
    services::{
        actor::{Actor, Permission},
        creation::{CreationOutcome, IdempotentRequest, ResponseEncoder},
    },
};

/// What is said of a run that has asked, and was told not to delete anything.
const KEPT: &str =
    "What is gone there was kept here. The next run asks again, unless it is there again by then.";

/// How a source is to run.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewRun {
    /// Whether it is only looked at what would be added, changed and deleted.
    #[schema(value_type = Option<bool>)]
    #[body(default = false)]
    dry_run: bool,
    /// Whether everything is read anew, whether or not it says that it has changed; documents that somebody deleted are made again then.
    #[schema(value_type = Option<bool>)]
    #[body(default = false)]
    full: bool,
}

fn unknown_run() -> ApiError {
    ApiError::not_found("run")
}

impl SourceService {
    /// Has a source run.
    ///
    /// # Errors
    /// When a run of it is under way.
    pub(crate) async fn run(
        &self,
        actor: &Actor,
        id: SourceId,
        new: NewRun,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<SyncRun>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let mut tx = self.db.begin().await?;
        db::locks::lock_workspace(&mut tx, owner.workspace_id).await?;
        db::sync::lock(&mut tx, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        let request = RunRequest { by: Some(actor.user), dry_run: new.dry_run, is_full: new.full };
        let run = runs::insert(&mut tx, owner.workspace_id, id, request, self.clock.now()).await?;
        let Some(run) = run else {
            // It may be the one that the same request began a moment ago.
            drop(tx);
            let earlier = self.creations.stored_response(&once).await?;
            return earlier.map(CreationOutcome::Before).ok_or_else(|| {
                let message =
                    "A run of this source is under way, or waits for an answer. Let it end, answer it or stop it first.";
                ApiError::new(ApiErrorKind::Conflict, "run_under_way", message)
            });
        };
        self.creations.commit(tx, once, &run, tell).await
    }

    /// The runs of a source before an id, newest first.
    pub(crate) async fn runs(
        &self,
        actor: &Actor,
        id: SourceId,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<SyncRun>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        db::sync::find(&self.db, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        Ok(runs::list(&self.db, owner.workspace_id, id, before.into(), limit).await?)
    }

    /// One run of a source.
    pub(crate) async fn find_run(
        &self,
        actor: &Actor,
        id: SourceId,
        run: SourceRunId,
    ) -> Result<SyncRun, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        runs::find(&self.db, owner.workspace_id, id, run).await?.ok_or_else(unknown_run)
    }

    /// What was found in a run before an id, the last first, but for what has not changed.
    pub(crate) async fn found(
        &self,
        actor: &Actor,
        id: SourceId,
        run: SourceRunId,
        before: SourceRunItemId,
        limit: u32,
    ) -> Result<Vec<SyncRunItem>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        self.find_run(actor, id, run).await?;
        Ok(runs::found(&self.db, owner.workspace_id, run, before, limit).await?)
    }

    /// Has a run go on that asks whether so many documents are to be deleted.
    ///
    /// # Errors
    /// When it does not ask.
    pub(crate) async fn confirm(
        &self,
        actor: &Actor,
        id: SourceId,
        run: SourceRunId,
    ) -> Result<SyncRun, ApiError> {
        let (workspace, mut tx) = self.begin_with_run(actor, id, run).await?;
        let confirmed = runs::confirm(&mut tx, workspace, run, actor.user).await?.ok_or_else(|| {
            let message = "The run asks nothing: there is nothing to confirm.";
            ApiError::new(ApiErrorKind::Conflict, "nothing_to_confirm", message)
        })?;
        tx.commit().await?;
        Ok(confirmed)
    }

    /// Stops a run, and tells whether it did: it does nothing when the run has ended. What it has added and changed stays.
    pub(crate) async fn cancel(
        &self,
        actor: &Actor,
        id: SourceId,
        run: SourceRunId,
    ) -> Result<(SyncRun, bool), ApiError> {
        let (workspace, mut tx) = self.begin_with_run(actor, id, run).await?;
        let cancelled = runs::cancel(&mut tx, workspace, run, KEPT, self.clock.now()).await?;
        tx.commit().await?;
        match cancelled {
            Some(cancelled) => Ok((cancelled, true)),
            None => Ok((self.find_run(actor, id, run).await?, false)),
        }
    }

    /// Begins a transaction about a run that is the workspace's.
    async fn begin_with_run(
        &self,
        actor: &Actor,
        id: SourceId,
        run: SourceRunId,
    ) -> Result<(WorkspaceId, Tx), ApiError> {
        let workspace = actor.may(Permission::EditDocuments)?.workspace_id;
        self.find_run(actor, id, run).await?;
        let mut tx = self.db.begin_essential().await?;
        db::locks::lock_workspace(&mut tx, workspace).await?;
        Ok((workspace, tx))
    }
}
