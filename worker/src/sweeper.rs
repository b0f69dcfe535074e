//! Keeps the house: takes jobs from workers that went away, purges what nobody reads any more, and wakes workers for work
//! that waits. One process at a time does it.

mod purge;
mod remembered;
mod store;

use std::time::Duration;

use lectern_db::{
    self as db, Db, DbError, audit,
    documents::{self, uploads},
    generations::{self, PurgeableGeneration},
    idempotency,
    jobs::ReindexTarget,
    known_addresses::{self, KNOWN_FOR},
    memory, receipts, singletons,
    sync::runs,
    traces, webhooks,
    workspaces::{invitations, leftovers},
};
use lectern_embed::ModelState;
use lectern_jobs::JobQueue;
use lectern_runtime::Runtime;
use lectern_shared::{
    blobs::BlobError,
    clock::Timestamp,
    ids::{DocumentId, WorkspaceId},
    metrics::Metrics,
    model::job::{IngestionError, JobState, QueueDepth},
    retry::{JitterRange, jitter},
    shutdown::Shutdown,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::{
    purge::{purge_document, purge_file, purge_generation},
    remembered::UnreachableSearch,
    store::StoreWatch,
};
use crate::{orphans::OrphanSearch, scrubber::IndexScrubber};

const EVERY: Duration = Duration::from_secs(3);
/// How often it is swept when there is nothing to do.
const IDLE_EVERY: Duration = Duration::from_mins(1);
/// How often documents without vectors are looked for, once there is a model.
const EMBED_EVERY: Duration = Duration::from_mins(1);
/// A document that has been without vectors for so long although there is a model was ingested by a process without one.
const UNEMBEDDED_AFTER: Duration = Duration::from_mins(10);
/// How often leftovers outside the database are looked for.
const TIDY_EVERY: Duration = Duration::from_mins(5);
/// An upload that nothing was added to for so long is given up.
const UNFINISHED_AFTER: Duration = Duration::from_hours(1);
/// The longest that one sweep may take; what is left waits for the next.
const PATIENCE: Duration = Duration::from_mins(5);
/// How long one process keeps the broom without saying so again.
const LEASE: Duration = Duration::from_secs(15);
const LEASE_NAME: &str = "sweeper";
/// How long the row of a deleted account stays at least: longer than any request that had begun before goes on. Until it is gone, what
/// such a request adds is looked for.
const DELETED_FOR: Duration = Duration::from_hours(24);
/// How long one sweep purges generations, and then documents: a store that hangs must not keep the rest of a sweep from its turn.
const PURGED_FOR: Duration = Duration::from_mins(1);
/// What one sweep takes on; the rest waits for the next.
const BATCH: u32 = 100;

/// Why a sweep stopped early.
#[derive(Debug, thiserror::Error)]
enum SweepError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Index(#[from] lectern_index::IndexError),
    #[error(transparent)]
    Blobs(#[from] BlobError),
    #[error("the index still holds {0} entries of it")]
    Left(u64),
}

/// Sweeps in the background until the service stops.
pub(crate) fn start(runtime: Runtime, shutdown: &Shutdown) {
    let soft = shutdown.soft().clone();
    shutdown.spawn(async move {
        let Runtime { db, index, jobs, metrics, .. } = runtime.clone();
        let mut sweeper = Sweeper {
            runtime,
            soft: soft.clone(),
            me: Uuid::now_v7(),
            swept: None,
            tidied: Instant::now(),
            embedded: None,
            orphans: OrphanSearch::new(db.clone(), index.clone()),
            scrubber: IndexScrubber::new(db, index, jobs, metrics),
            looked_through: WorkspaceId::from(Uuid::nil()),
            remembered: UnreachableSearch::default(),
            store: StoreWatch::default(),
        };
        let mut failing = false;
        loop {
            tokio::select! {
                () = soft.cancelled() => return,
                () = tokio::time::sleep(jitter(EVERY, JitterRange::Fifth)) => {}
            }
            sweeper.store.begin_sweep();
            // A store that hangs must not hold the broom for ever.
            let problem = match tokio::time::timeout(PATIENCE, sweeper.sweep()).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("it took too long".to_owned()),
            };
            if problem.is_some() {
                sweeper.store.sweep_failed();
            }
            // One line for an outage, not one for every try.
            if let Some(problem) = problem.as_ref().filter(|_| !failing) {
                tracing::warn!(problem, "housekeeping failed; trying again");
            }
            failing = problem.is_some();
        }
    });
}

struct Sweeper {
    runtime: Runtime,
    soft: CancellationToken,
    /// Who holds the broom.
    me: Uuid,
    swept: Option<Instant>,
    tidied: Instant,
    embedded: Option<Instant>,
    scrubber: IndexScrubber,
    orphans: OrphanSearch,
    /// The deleted account that was looked through last.
    looked_through: WorkspaceId,
    remembered: UnreachableSearch,
    store: StoreWatch,
}

/// What a sweep has come across.
struct FoundWork {
    depth: QueueDepth,
    generations: Vec<PurgeableGeneration>,
    documents: Vec<DocumentId>,
    /// The keys of files that no document names.
    files: Vec<String>,
}

impl FoundWork {
    /// Whether there are documents, generations or files to be removed.
    fn frees_room(&self) -> bool {
        !self.generations.is_empty() || !self.documents.is_empty() || !self.files.is_empty()
    }

    fn is_nothing(&self) -> bool {
        let QueueDepth { due, waiting, running, .. } = self.depth;
        due + waiting + running == 0 && !self.frees_room()
    }
}

impl Sweeper {
    async fn sweep(&mut self) -> Result<(), SweepError> {
        let now = self.runtime.jobs.now();
        // While there is no room, nothing is looked for that would take more.
        let has_room = self.runtime.db.regain_room().await.is_ok();
        if has_room && let Err(error) = self.embed().await {
            tracing::warn!(%error, "documents without vectors could not be queued to be embedded yet");
            self.embedded = Some(Instant::now());
        }
        let found = self.look(now).await?;
        // A service that does nothing leaves the disk alone.
        let rests = found.is_nothing() && self.swept.is_some_and(|swept| swept.elapsed() < IDLE_EVERY);
        if rests && !self.scrubber.is_due() && !self.orphans.is_due() {
            return Ok(());
        }
        // On a full disk only what frees room is worth its reserve.
        let is_mine = self.acquire_sweep_lease(found.frees_room()).await?;
        self.store.written(Instant::now());
        if !is_mine {
            self.scrubber.give_way();
            return Ok(());
        }
        if !rests {
            self.swept = Some(Instant::now());
            // Plans are quicker with it, and right without.
            if let Err(error) = db::statistics::keep_up(&self.runtime.db).await {
                tracing::debug!(%error, "the planner's statistics could not be brought up to date");
            }
            self.expire(now).await?;
            if !self.purge(found, now).await? {
                return Ok(());
            }
        }
        self.look_through_index().await;
        Ok(())
    }

    /// What there is to do.
    async fn look(&self, now: Timestamp) -> Result<FoundWork, DbError> {
        let db = &self.runtime.db;
        Ok(FoundWork {
            depth: db::jobs::depth(db, now).await?,
            generations: generations::purgeable(db, now, BATCH).await?,
            documents: documents::tombstones(db, now, BATCH).await?,
            files: uploads::loose(db, now, BATCH).await?,
        })
    }

    /// Ends what has gone on for too long: claims of workers that went away, generations that nobody fills, and what is kept for a while
    /// only.
    async fn expire(&mut self, now: Timestamp) -> Result<(), DbError> {
        let runtime = &self.runtime;
        // Workers that could not tell what became of their jobs come first.
        if self.store.is_settled(Instant::now()) {
            expire_job_leases(&runtime.db, &runtime.jobs, &runtime.metrics, now).await?;
        }
        let mut tx = runtime.db.begin_essential().await?;
        generations::abandon(&mut tx, now.plus(runtime.settings.index_grace)).await?;
        tx.commit().await?;
        self.forget().await?;
        self.remembered.go_on(runtime, &self.soft).await?;
        if self.tidied.elapsed() > TIDY_EVERY {
            runtime.jobs.doorbell().tidy().await;
            // A store of blobs that is away keeps nothing else from being swept.
            if let Err(error) = runtime.blobs.forget_unfinished(UNFINISHED_AFTER).await {
                tracing::warn!(%error, "unfinished uploads could not be cleared away yet");
            }
            self.tidied = Instant::now();
        }
        Ok(())
    }

    /// Removes what nobody reads any more, and wakes workers for what waits. False when another process has the broom by now, or this one
    /// stops.
    async fn purge(&mut self, found: FoundWork, now: Timestamp) -> Result<bool, DbError> {
        let FoundWork { depth, generations, documents, files } = found;
        if !self.purge_generations(&generations).await? {
            return Ok(false);
        }
        self.purge_documents(documents, now).await;
        self.purge_files(files).await;
        let waiting = usize::try_from(depth.due).unwrap_or(0);
        let Runtime { jobs, settings, .. } = &self.runtime;
        jobs.doorbell().ring(waiting.min(settings.jobs.concurrency));
        if let Err(error) = self.purge_deleted_workspaces(now).await {
            tracing::warn!(%error, "what is left of deleted accounts could not be removed yet");
        }
        Ok(true)
    }

    /// Removes generations, for a while. False when another process has the broom by now, or this one stops.
    async fn purge_generations(&self, generations: &[PurgeableGeneration]) -> Result<bool, DbError> {
        let runtime = &self.runtime;
        let purging = Instant::now();
        for generation in generations.iter().take_while(|_| purging.elapsed() < PURGED_FOR) {
            // Whoever else took the broom meanwhile goes on with it.
            if self.soft.is_cancelled() || !self.acquire_sweep_lease(true).await? {
                return Ok(false);
            }
            // One that cannot be removed does not keep the others.
            let purged = purge_generation(&runtime.db, &*runtime.index, &runtime.jobs, generation);
            if let Err(error) = purged.await {
                tracing::warn!(%error, generation = %generation.retired.id(), "a generation could not be purged yet");
            }
        }
        Ok(true)
    }

    /// Forgets deleted documents of which nothing is left, for a while.
    async fn purge_documents(&self, documents: Vec<DocumentId>, now: Timestamp) {
        let Runtime { db, blobs, .. } = &self.runtime;
        let purging = Instant::now();
        for document in documents.into_iter().take_while(|_| purging.elapsed() < PURGED_FOR) {
            let Err(error) = purge_document(db, blobs, document, now).await else { continue };
            tracing::warn!(%error, %document, "a deleted document could not be purged yet");
            if matches!(error, SweepError::Blobs(BlobError::Unavailable { .. })) {
                // The next would fare no better, and take as long to.
                break;
            }
        }
    }

    /// Removes files that no document names, for a while.
    async fn purge_files(&self, files: Vec<String>) {
        let Runtime { db, blobs, .. } = &self.runtime;
        let purging = Instant::now();
        for key in files.into_iter().take_while(|_| purging.elapsed() < PURGED_FOR) {
            let Err(error) = purge_file(db, blobs, &key).await else { continue };
            tracing::warn!(%error, "a file that was replaced could not be removed yet");
            if matches!(error, SweepError::Blobs(BlobError::Unavailable { .. })) {
                // The next would fare no better, and take as long to.
                break;
            }
        }
    }

    /// Looks at the next of what the index holds and should hold.
    async fn look_through_index(&mut self) {
        self.scrubber.go_on().await;
        self.orphans.go_on().await;
    }

    /// Has documents embedded that were ingested before there was a model.
    async fn embed(&mut self) -> Result<(), DbError> {
        let runtime = &self.runtime;
        let ModelState::Ready(_, since) = runtime.models.state() else { return Ok(()) };
        if self.embedded.is_some_and(|looked| looked.elapsed() < EMBED_EVERY) {
            return Ok(());
        }
        let now = runtime.jobs.now();
        let before = since.max(now.minus(UNEMBEDDED_AFTER));
        if db::jobs::any_without_vectors(&runtime.db, before).await? {
            if !self.acquire_sweep_lease(false).await? {
                return Ok(());
            }
            let mut tx = runtime.db.begin().await?;
            let queued = db::jobs::enqueue_again(&mut tx, ReindexTarget::WithoutVectors(before), now).await?;
            tx.commit().await?;
            tracing::info!(documents = queued, "documents without vectors are embedded from what is stored");
            let ringing = usize::try_from(queued).unwrap_or(usize::MAX);
            runtime.jobs.doorbell().ring(ringing.min(runtime.settings.jobs.concurrency));
        }
        self.embedded = Some(Instant::now());
        Ok(())
    }

    /// Whether this process is the one that sweeps, for a while from now.
    async fn acquire_sweep_lease(&self, is_essential: bool) -> Result<bool, DbError> {
        let (db, now) = (&self.runtime.db, self.runtime.jobs.now());
        let mut tx = if is_essential { db.begin_essential().await? } else { db.begin().await? };
        let mine = singletons::hold_lease(&mut tx, LEASE_NAME, self.me, now, now.plus(LEASE)).await?;
        tx.commit().await?;
        Ok(mine)
    }

    /// Removes what was added to deleted workspaces by requests that had begun before, some of them in each sweep, all in turn.
    async fn purge_deleted_workspaces(&mut self, now: Timestamp) -> Result<(), DbError> {
        let Runtime { db, .. } = &self.runtime;
        let workspaces = leftovers::deleted(db, self.looked_through, BATCH).await?;
        if workspaces.is_empty() {
            self.looked_through = WorkspaceId::from(Uuid::nil());
        }
        let purging = Instant::now();
        for workspace in workspaces {
            // Before it is tried: one that cannot be purged does not keep the others for ever.
            self.looked_through = workspace;
            let mut more = true;
            while more && purging.elapsed() < PURGED_FOR && !self.soft.is_cancelled() {
                let mut tx = db.begin_essential_relaxed().await?;
                more = leftovers::purge_some_runs(&mut tx, workspace).await?;
                tx.commit().await?;
            }
            let mut tx = db.begin_essential().await?;
            let gone = leftovers::purge(&mut tx, workspace, now, now.minus(DELETED_FOR)).await?;
            tx.commit().await?;
            if gone {
                tracing::info!(%workspace, "nothing is left of a deleted workspace");
            }
        }
        Ok(())
    }

    /// Forgets traces, kept answers, known addresses, invitations, lines of the audit log, receipts, deliveries and erasures whose time is
    /// over.
    async fn forget(&self) -> Result<(), DbError> {
        while !self.soft.is_cancelled() {
            let mut tx = self.runtime.db.begin_essential().await?;
            let traces = traces::expire(&mut tx, self.runtime.clock.now(), BATCH).await?;
            let answers = idempotency::expire(&mut tx, self.runtime.jobs.now(), BATCH).await?;
            let unknown = self.runtime.clock.now().minus(KNOWN_FOR);
            let addresses = known_addresses::expire(&mut tx, unknown, BATCH).await?;
            let invitations = invitations::expire(&mut tx, self.runtime.clock.now(), BATCH).await?;
            let lines =
                audit::expire(&mut tx, self.runtime.clock.now().minus(audit::KEPT_FOR), BATCH).await?;
            let deliveries = webhooks::expire(&mut tx, self.runtime.clock.now(), BATCH).await?;
            let receipts = receipts::expire(&mut tx, self.runtime.clock.now(), BATCH).await?;
            let runs = runs::expire(&mut tx, self.runtime.clock.now(), BATCH).await?;
            let erasures = memory::expire_erasures(&mut tx, self.runtime.clock.now(), BATCH).await?;
            tx.commit().await?;
            let most = [traces, answers, addresses, invitations, lines, deliveries, receipts, runs, erasures]
                .into_iter()
                .max();
            if most < Some(u64::from(BATCH)) {
                break;
            }
        }
        Ok(())
    }
}

/// Takes the jobs whose lease ran out before `before` from their workers.
pub(crate) async fn expire_job_leases(
    db: &Db,
    jobs: &JobQueue,
    metrics: &Metrics,
    before: Timestamp,
) -> Result<(), DbError> {
    let error = IngestionError::interrupted();
    let mut tx = db.begin_essential().await?;
    let expired = db::jobs::expire_leases(&mut tx, before, jobs.now(), &error).await?;
    tx.commit().await?;
    metrics.leases_expired(expired.len() as u64);
    for job in &expired {
        tracing::warn!(job = %job.id, attempts = job.attempts, state = %job.state, "a job's worker went away");
    }
    jobs.doorbell().ring(expired.iter().filter(|job| job.state == JobState::Queued).count());
    Ok(())
}
