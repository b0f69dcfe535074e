//! Whether the relational store can be written. Reading says nothing of it: a full disk, or a server that only follows another,
//! answers every question.

use std::time::Duration;

use lectern_db::{self as db, Db, DbError, singletons};
use lectern_jobs::JobQueue;
use tokio::{sync::Mutex, time::Instant};
use uuid::Uuid;

use super::coalesced::CoalescedChecks;

/// How long a write that went well stands for the next one: as long as an idle service leaves its disk alone anyway.
const GOOD_FOR: Duration = Duration::from_mins(1);
/// How long a failed one does.
const BAD_FOR: Duration = Duration::from_millis(500);
/// A write waits for others. One that waited for so long says nothing yet...
const PATIENCE: Duration = Duration::from_secs(2);
/// ...unless it has been so for so long.
const BUSY_FOR: Duration = Duration::from_mins(3);
/// The lease that is written: nobody wants it.
const NAME: &str = "write-probe";

/// Writes now and then, when somebody asks.
#[derive(Debug)]
pub(crate) struct WriteProbe {
    me: Uuid,
    /// Held while it is written, so that one probe serves all who ask.
    known: Mutex<ProbeResult>,
    /// The looks at all of the parts. They are kept here because a process has one of this.
    pub(super) looks: CoalescedChecks,
}

#[derive(Debug)]
struct ProbeResult {
    good_at: Option<Instant>,
    bad: Option<(Instant, &'static str)>,
}

impl WriteProbe {
    /// A process that has just started has written.
    pub(crate) fn new() -> Self {
        let known = ProbeResult { good_at: Some(Instant::now()), bad: None };
        Self { me: Uuid::now_v7(), known: Mutex::new(known), looks: CoalescedChecks::default() }
    }

    /// Whether the store can be written, or a word that says why not.
    pub(crate) async fn check(&self, db: &Db, jobs: &JobQueue) -> Result<(), &'static str> {
        let mut known = self.known.lock().await;
        if let Some((at, reason)) = known.bad {
            if at.elapsed() < BAD_FOR {
                return Err(reason);
            }
        } else if known.good_at.is_some_and(|at| at.elapsed() < GOOD_FOR) && !db.is_room_doubtful().await {
            return Ok(());
        }
        let found = match tokio::time::timeout(PATIENCE, self.write(db, jobs)).await {
            Ok(Ok(())) => {
                known.good_at = Some(Instant::now());
                Ok(())
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the database cannot be written");
                Err(if matches!(error, DbError::Full(_)) { "storage_full" } else { "not_writable" })
            }
            Err(_) if known.good_at.is_some_and(|at| at.elapsed() < BUSY_FOR) => Ok(()),
            Err(_) => Err("no_write_in_time"),
        };
        known.bad = found.err().map(|reason| (Instant::now(), reason));
        found
    }

    /// Writes a row. No process waits for the disk: a disk that sleeps is not woken.
    async fn write(&self, db: &Db, jobs: &JobQueue) -> db::Result<()> {
        let now = jobs.now();
        let mut tx = db.probes().begin_relaxed().await?;
        singletons::hold_lease(&mut tx, NAME, self.me, now, now).await?;
        tx.commit().await
    }
}
