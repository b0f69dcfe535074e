//! Keeps the house: takes jobs from workers that went away, purges what nobody reads any more, and wakes workers for work
//! that waits. One process at a time does it.

use std::time::Duration;

use lectern_shared::{
    clock::Timestamp,
    db::{
        self, DbError, chunks, documents,
        generations::{self, Purgeable},
        singletons, traces,
    },
    ids::DocumentId,
    model::job::{IngestionError, JobState},
    runtime::Runtime,
    shutdown::Shutdown,
};
use tokio::time::Instant;
use uuid::Uuid;

use crate::jitter;

const EVERY: Duration = Duration::from_secs(3);
/// How often it is swept when there is nothing to do.
const IDLE_EVERY: Duration = Duration::from_mins(1);
const CLOCK_EVERY: Duration = Duration::from_mins(1);
/// How long one process keeps the broom without saying so again.
const LEASE: Duration = Duration::from_secs(15);
const LEASE_NAME: &str = "sweeper";
/// What one sweep takes on; the rest waits for the next.
const BATCH: u32 = 100;

/// Why a sweep stopped early.
#[derive(Debug, thiserror::Error)]
enum SweepError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Index(#[from] lectern_shared::index::IndexError),
    #[error(transparent)]
    Blobs(#[from] lectern_shared::blobs::BlobError),
}

/// Sweeps in the background until the service stops.
pub(crate) fn start(runtime: Runtime, shutdown: &Shutdown) {
    let soft = shutdown.soft().clone();
    shutdown.spawn(async move {
        let mut sweeper = Sweeper { runtime, me: Uuid::now_v7(), clock_set: Instant::now(), swept: None };
        let mut failing = false;
        loop {
            tokio::select! {
                () = soft.cancelled() => return,
                () = tokio::time::sleep(jitter(EVERY)) => {}
            }
            match sweeper.sweep().await {
                Ok(()) => failing = false,
                // One line for an outage, not one for every try.
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(%error, "housekeeping failed; trying again");
                }
                Err(_) => {}
            }
        }
    });
}

struct Sweeper {
    runtime: Runtime,
    /// Who holds the broom.
    me: Uuid,
    clock_set: Instant,
    swept: Option<Instant>,
}

impl Sweeper {
    async fn sweep(&mut self) -> Result<(), SweepError> {
        let runtime = &self.runtime;
        if self.clock_set.elapsed() > CLOCK_EVERY {
            runtime.jobs.follow_database_clock().await?;
            self.clock_set = Instant::now();
        }
        let now = runtime.jobs.now();
        let depth = db::jobs::depth(&runtime.db, now).await?;
        let generations = generations::purgeable(&runtime.db, now, BATCH).await?;
        let documents = documents::tombstones(&runtime.db, BATCH).await?;
        let idle =
            depth.due + depth.waiting + depth.running == 0 && generations.is_empty() && documents.is_empty();
        // A service that does nothing leaves the disk alone.
        if idle && self.swept.is_some_and(|swept| swept.elapsed() < IDLE_EVERY) {
            return Ok(());
        }
        let mut tx = runtime.db.begin().await?;
        let mine = singletons::hold_lease(&mut tx, LEASE_NAME, self.me, now, now.plus(LEASE)).await?;
        tx.commit().await?;
        if !mine {
            return Ok(());
        }
        self.swept = Some(Instant::now());
        release_all(runtime, now).await?;
        let mut tx = runtime.db.begin().await?;
        generations::abandon(&mut tx, now.plus(runtime.settings.index_grace)).await?;
        traces::expire(&mut tx, runtime.clock.now(), BATCH).await?;
        tx.commit().await?;
        purge_generations(runtime, &generations).await?;
        purge_documents(runtime, &documents).await?;
        let waiting = usize::try_from(depth.due).unwrap_or(0);
        runtime.jobs.doorbell().ring(waiting.min(runtime.settings.jobs.concurrency));
        Ok(())
    }
}

/// Takes the jobs whose lease ran out before `before` from their workers.
pub(crate) async fn release_all(runtime: &Runtime, before: Timestamp) -> Result<(), DbError> {
    let error = IngestionError {
        code: "interrupted".to_owned(),
        message: "The worker that was ingesting this document stopped before it was done.".to_owned(),
        retryable: true,
    };
    let mut tx = runtime.db.begin().await?;
    let expired = db::jobs::expire_leases(&mut tx, before, runtime.jobs.now(), &error).await?;
    tx.commit().await?;
    for job in &expired {
        tracing::warn!(job = %job.id, attempts = job.attempts, state = %job.state, "a job's worker went away");
    }
    runtime.jobs.doorbell().ring(expired.iter().filter(|job| job.state == JobState::Queued).count());
    Ok(())
}

/// Removes what no search reads any more: replaced and abandoned generations, and those of deleted documents.
async fn purge_generations(runtime: &Runtime, generations: &[Purgeable]) -> Result<(), SweepError> {
    for generation in generations {
        runtime.index.remove(generation.id).await?;
        loop {
            let mut tx = runtime.db.begin().await?;
            let more = chunks::purge_some(&mut tx, generation.id).await?;
            if !more {
                generations::delete(&mut tx, generation.id).await?;
            }
            tx.commit().await?;
            if !more {
                break;
            }
        }
        tracing::debug!(generation = %generation.id, document = %generation.document_id, "generation purged");
    }
    Ok(())
}

/// Forgets deleted documents of which nothing is left.
async fn purge_documents(runtime: &Runtime, documents: &[DocumentId]) -> Result<(), SweepError> {
    for document in documents {
        runtime.blobs.remove_document(*document).await?;
        let mut tx = runtime.db.begin().await?;
        documents::drop_tombstone(&mut tx, *document).await?;
        tx.commit().await?;
        tracing::info!(%document, "document purged");
    }
    Ok(())
}
