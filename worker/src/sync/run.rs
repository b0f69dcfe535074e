//! One run of a source: what there is is looked at, and then what is gone is deleted, if that is not too much.

use lectern_db::{
    self as db, Tx,
    audit::AuditEvent,
    documents::deletion::delete_with_receipt,
    sync::{
        self, items,
        runs::{self, RunRequest},
    },
};
use lectern_runtime::{Runtime, leased::lease_end};
use lectern_sandbox::Sandbox;
use lectern_shared::{
    compute::ComputePool,
    ids::{AuditEventId, DocumentId, UserId},
    model::{
        audit::AuditAction,
        sync::{SyncConfig, SyncCounts, SyncRun, SyncRunState, SyncSecret, SyncSource},
    },
    secrets::CiphertextLocation,
};
use secrecy::ExposeSecret;

use super::{
    SyncRuns, bucket,
    context::{Enumeration, SyncContext},
    failure::RunFailure,
    feed, folder,
    hosts::HostPacer,
    record::RunRecorder,
    site, warning,
};

/// Documents that are looked up at a time when they are deleted.
const DELETED: u32 = 200;

/// Works on a run that was claimed.
pub(super) struct SyncRunner<'a> {
    runtime: &'a Runtime,
    sandbox: Sandbox,
    pacer: &'a HostPacer,
    folders: &'a ComputePool,
    run: SyncRun,
}

impl<'a> SyncRunner<'a> {
    pub(super) fn new(runs: &'a SyncRuns, run: SyncRun) -> Self {
        let SyncRuns { runtime, sandbox, pacer, folders } = runs;
        let sandbox = sandbox.for_workspace(run.workspace_id);
        Self { runtime, sandbox, pacer, folders, run }
    }

    /// Goes through with it, and returns how it ended.
    pub(super) async fn go(&self) -> Result<SyncRunState, RunFailure> {
        let source = sync::find(&self.runtime.db, self.run.workspace_id, self.run.source_id).await?;
        let source = source.ok_or(RunFailure::Lost)?;
        let mut recorder = RunRecorder::new(self.runtime, &self.run, &source);
        let read = Box::pin(self.read(&source, &mut recorder)).await;
        let Some(by) = self.run.confirmed_by else {
            return self.conclude(&source, &read?, &recorder).await;
        };
        // What is there again by now stays.
        let read = read.map_err(|failure| match failure {
            RunFailure::Stopped(why) => {
                RunFailure::stop(format!("Nothing is deleted, since it could not be looked for again. {why}"))
            }
            failure => failure,
        })?;
        self.delete_confirmed(&source, &read, &recorder, by).await
    }

    /// Looks at what there is.
    async fn read(
        &self,
        source: &SyncSource,
        recorder: &mut RunRecorder<'_>,
    ) -> Result<Enumeration, RunFailure> {
        let secret = self.open(source)?;
        let context = SyncContext {
            runtime: self.runtime,
            sandbox: &self.sandbox,
            pacer: self.pacer,
            folders: self.folders,
            source,
            secret: &secret,
        };
        match &source.config.0 {
            SyncConfig::Site(site) => Box::pin(site::read(&context, site, recorder)).await,
            SyncConfig::Feed(feed) => Box::pin(feed::read(&context, feed, recorder)).await,
            SyncConfig::S3(bucket) => Box::pin(bucket::read(&context, bucket, recorder)).await,
            SyncConfig::Folder(folder) => Box::pin(folder::read(&context, folder, recorder)).await,
        }
    }

    /// Begins a transaction that keeps the run's claim, with the source as it stays until that ends; or tells how the run has ended, where
    /// the source was changed since it was read.
    async fn begin(&self, source: &SyncSource) -> Result<Result<(Tx, SyncSource), SyncRunState>, RunFailure> {
        let claim = self.run.claim_id.ok_or(RunFailure::Lost)?;
        let db = &self.runtime.db;
        // What was confirmed frees a disk that is full.
        let essential = self.run.confirmed_by.is_some();
        let mut tx = if essential { db.begin_essential().await? } else { db.begin().await? };
        db::locks::lock_workspace(&mut tx, self.run.workspace_id).await?;
        let current = sync::lock(&mut tx, self.run.workspace_id, source.id).await?.ok_or(RunFailure::Lost)?;
        if current.config != source.config {
            return self.begin_anew(tx).await.map(Err);
        }
        let nothing = SyncCounts::default();
        if !runs::hold(&mut tx, self.run.id, claim, lease_end(&self.runtime.jobs), &nothing).await? {
            return Err(RunFailure::Lost);
        }
        Ok(Ok((tx, current)))
    }

    /// Deletes what is gone, or asks.
    async fn conclude(
        &self,
        source: &SyncSource,
        enumeration: &Enumeration,
        recorder: &RunRecorder<'_>,
    ) -> Result<SyncRunState, RunFailure> {
        let (mut tx, current) = match self.begin(source).await? {
            Ok(begun) => begun,
            Err(ended) => return Ok(ended),
        };
        if let Some(reason) = enumeration.unseen {
            items::note_unseen(&mut tx, &self.run, reason).await?;
        }
        // What failed is to be tried again, and so read again; and so is what was left out.
        let is_settled = recorder.counts.failed == 0 && recorder.left_out == 0 && !self.run.dry_run;
        if let Some((etag, last_modified)) = enumeration.validators.as_ref().filter(|_| is_settled) {
            sync::set_validators(&mut tx, source.id, etag.as_deref(), last_modified.as_deref()).await?;
        }
        runs::warn(&mut tx, &self.run, warning::of_reading(recorder, enumeration).as_deref()).await?;
        let (there, gone) = items::share_gone(&mut tx, &self.run).await?;
        if self.run.dry_run || gone == 0 {
            return self.end_in(tx, SyncRunState::Succeeded, None).await;
        }
        let before = there - recorder.counts.added;
        if gone * 100 > current.delete_limit * before {
            let asks = format!(
                "{gone} of {before} documents are gone, which is more than the limit of {} %. Confirm the run to delete them, or \
                 cancel it to keep them.",
                current.delete_limit
            );
            // Whoever changes the source after it was compared finds the run that asks, and ends it.
            return self.end_in(tx, SyncRunState::Waiting, Some(&asks)).await;
        }
        tx.commit().await?;
        self.delete_gone(source, source.owner.creator()).await
    }

    /// Deletes what was gone when somebody was asked, and is gone still. Nobody was asked of anything else.
    async fn delete_confirmed(
        &self,
        source: &SyncSource,
        enumeration: &Enumeration,
        recorder: &RunRecorder<'_>,
        by: UserId,
    ) -> Result<SyncRunState, RunFailure> {
        let mut tx = match self.begin(source).await? {
            Ok((tx, _)) => tx,
            Err(ended) => return Ok(ended),
        };
        if enumeration.unseen.is_none() {
            for key in items::gone(&mut tx, self.run.id).await? {
                if !recorder.still_gone.contains(&key) {
                    items::take_back(&mut tx, self.run.id, &key).await?;
                }
            }
        }
        let (_, gone) = items::share_gone(&mut tx, &self.run).await?;
        let returned = warning::of_return(self.run.counts.gone, gone, enumeration.unseen.is_some());
        let said: Vec<String> =
            returned.into_iter().chain(warning::of_reading(recorder, enumeration)).collect();
        let said = Some(said.join(" ")).filter(|said| !said.is_empty());
        runs::warn(&mut tx, &self.run, said.as_deref()).await?;
        tx.commit().await?;
        self.delete_gone(source, by).await
    }

    /// Ends the run, since what it has read is not the source any more, and queues one like it: nothing that it has not come across is gone,
    /// and the tags of what it has read are another place's.
    async fn begin_anew(&self, mut tx: Tx) -> Result<SyncRunState, RunFailure> {
        const CHANGED: &str = "The source was changed meanwhile; it is read again.";
        let SyncRun { workspace_id, source_id, requested_by, dry_run, is_full, .. } = self.run;
        let (state, now) = (SyncRunState::Failed, self.runtime.jobs.now());
        if !runs::end(&mut tx, &self.run, state, Some(CHANGED), now).await? {
            return Err(RunFailure::Lost);
        }
        let request = RunRequest { by: requested_by, dry_run, is_full };
        runs::insert(&mut tx, workspace_id, source_id, request, now).await?;
        tx.commit().await?;
        Ok(state)
    }

    /// Whether a source was changed since it was compared. It stays as it is in a transaction that has locked the workspace.
    async fn is_another(&self, tx: &mut Tx, source: &SyncSource) -> Result<bool, RunFailure> {
        let current = sync::config(tx, self.run.workspace_id, source.id).await?.ok_or(RunFailure::Lost)?;
        Ok(current != source.config)
    }

    /// Deletes the documents of what was found gone, in somebody's name, and ends the run.
    async fn delete_gone(&self, source: &SyncSource, by: UserId) -> Result<SyncRunState, RunFailure> {
        loop {
            let gone = items::to_delete(&self.runtime.db, self.run.id, DELETED).await?;
            if gone.is_empty() {
                let mut tx = self.runtime.db.begin_essential().await?;
                db::locks::lock_workspace(&mut tx, self.run.workspace_id).await?;
                if self.is_another(&mut tx, source).await? {
                    return self.begin_anew(tx).await;
                }
                return self.end_in(tx, SyncRunState::Succeeded, None).await;
            }
            for (key, document) in gone {
                if let Some(ended) = self.delete(source, &key, document, by).await? {
                    return Ok(ended);
                }
            }
        }
    }

    /// Deletes a document, or ends the run, and tells how, where the source was changed since it was compared.
    async fn delete(
        &self,
        source: &SyncSource,
        key: &str,
        document: DocumentId,
        by: UserId,
    ) -> Result<Option<SyncRunState>, RunFailure> {
        let (workspace, now) = (self.run.workspace_id, self.runtime.jobs.now());
        let claim = self.run.claim_id.ok_or(RunFailure::Lost)?;
        let mut tx = self.runtime.db.begin_essential().await?;
        db::locks::lock_workspace(&mut tx, workspace).await?;
        let nothing = SyncCounts::default();
        if !runs::hold(&mut tx, self.run.id, claim, lease_end(&self.runtime.jobs), &nothing).await? {
            return Err(RunFailure::Lost);
        }
        if self.is_another(&mut tx, source).await? {
            return self.begin_anew(tx).await.map(Some);
        }
        delete_with_receipt(&mut tx, workspace, document, by, now).await?;
        items::forget(&mut tx, self.run.source_id, key).await?;
        let event = AuditEvent {
            id: AuditEventId::generate(),
            workspace_id: workspace,
            at: now,
            user_id: by,
            token_id: None,
            action: AuditAction::Deleted,
            target_kind: "document".to_owned(),
            target_id: document.to_string(),
            address: None,
            request_id: None,
            details: None,
        };
        db::audit::insert(&mut tx, &event).await?;
        tx.commit().await?;
        Ok(None)
    }

    /// Ends the run.
    ///
    /// # Errors
    /// [`RunFailure::Lost`] when it is not this worker's any more.
    pub(super) async fn end(
        &self,
        state: SyncRunState,
        error: Option<&str>,
    ) -> Result<SyncRunState, RunFailure> {
        let mut tx = self.runtime.db.begin_essential().await?;
        db::locks::lock_workspace(&mut tx, self.run.workspace_id).await?;
        self.end_in(tx, state, error).await
    }

    /// [`Self::end`] with a transaction that has locked the workspace.
    async fn end_in(
        &self,
        mut tx: Tx,
        state: SyncRunState,
        error: Option<&str>,
    ) -> Result<SyncRunState, RunFailure> {
        let ended = runs::end(&mut tx, &self.run, state, error, self.runtime.jobs.now()).await?;
        tx.commit().await?;
        if ended { Ok(state) } else { Err(RunFailure::Lost) }
    }

    /// What opens a source.
    fn open(&self, source: &SyncSource) -> Result<SyncSecret, RunFailure> {
        let Some(sealed) = &source.secret_sealed else { return Ok(SyncSecret::default()) };
        let place = CiphertextLocation::source_secret(source.id.as_uuid());
        let unreadable = || RunFailure::stop("What opens the source cannot be read; set it anew");
        let json = self.runtime.keyring.decrypt_text(place, sealed).map_err(|_| unreadable())?;
        serde_json::from_str(json.expose_secret()).map_err(|_| unreadable())
    }
}
