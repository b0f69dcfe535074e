//! Work that outlives a request. The database is the truth (`db::jobs`); the doorbell only says that there is something to
//! do, may lose any ring, and is never needed for correctness. Handlers enqueue here, in the transaction of the change
//! that makes the work necessary; the worker claims here.

mod claims;
mod doorbell;
mod local;
pub mod operator;
mod pause;
mod redis;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::{sync::Arc, time::Duration};

use claims::SlotClaims;
pub use doorbell::Doorbell;
use lectern_db::{
    self as db, Db, Tx,
    jobs::JobProgress,
    storage::{OverQuota, StorageDemand},
};
use lectern_shared::{
    clock::{Clock, Timestamp},
    config::JobSettings,
    ids::{DocumentId, JobId, WorkspaceId},
    model::{
        document::Document,
        job::{IngestionError, JobClaim, JobKind, JobState},
    },
    retry::{JitterRange, jitter},
    shutdown::Shutdown,
    telemetry,
};
use local::LocalDoorbell;
pub use local::{DoorbellRing, LocalBackend};
pub use pause::RetryPause;
use redis::RedisDoorbell;
use tokio::time::Instant;

/// A document that outages have kept from being ingested for so long, one after the other, uses up its attempts like any other.
const OUTAGE_PATIENCE: Duration = Duration::from_hours(6);

/// About how long a job rests that an outage stopped.
const POSTPONED_FOR: Duration = Duration::from_secs(10);

/// The queue. Cheap to clone.
#[derive(Clone, Debug)]
pub struct JobQueue {
    db: Db,
    /// The process's clock, corrected by the database's, so that a machine whose clock is wrong steals no leases.
    clock: Clock,
    settings: Arc<JobSettings>,
    doorbell: Doorbell,
    /// When this process began.
    began: Instant,
    /// How slots get their jobs.
    claims: SlotClaims,
}

/// Has whoever works on a job go on with the trace of who asked for it. False when there is no job.
async fn note_trace(tx: &mut Tx, job: Option<JobId>) -> db::Result<bool> {
    if let (Some(job), Some(parent)) = (job, telemetry::trace_parent()) {
        db::jobs::set_trace_parent(tx, job, &parent).await?;
    }
    Ok(job.is_some())
}

impl JobQueue {
    /// A queue over `db`. What it writes in transactions of its own is the workers'.
    pub fn new(db: &Db, clock: Clock, settings: JobSettings, doorbell: Doorbell) -> Self {
        let db = db.in_background();
        let claims = SlotClaims::new(&db, &clock, settings.lease);
        Self { db, clock, settings: Arc::new(settings), doorbell, began: Instant::now(), claims }
    }

    /// The time by which leases are judged.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How jobs are worked on.
    pub fn settings(&self) -> &JobSettings {
        &self.settings
    }

    /// The doorbell.
    pub fn doorbell(&self) -> &Doorbell {
        &self.doorbell
    }

    /// Sets the clock of leases by the database's clock, where it has one.
    pub async fn follow_database_clock(&self) -> db::Result<()> {
        if let Some(reference) = self.db.server_time().await? {
            self.clock.follow(reference);
        }
        Ok(())
    }

    /// Sets the clock of leases by the database's clock again and again until the service stops: what a machine's clock is set to later
    /// would else be wrong in this process for good.
    pub fn keep_time(&self, every: Duration, shutdown: &Shutdown) {
        let (jobs, soft) = (self.clone(), shutdown.soft().clone());
        shutdown.spawn(async move {
            loop {
                tokio::select! {
                    () = soft.cancelled() => return,
                    () = jobs.set_clock_after(jitter(every, JitterRange::Fifth)) => {}
                }
            }
        });
    }

    /// Sets the clock once more, after a pause.
    async fn set_clock_after(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
        if let Err(error) = self.follow_database_clock().await {
            tracing::debug!(%error, "the database could not be asked for the time");
        }
    }

    /// Queues a document for ingestion; false when there is no such document. Ring the doorbell after the commit.
    pub async fn enqueue_ingest(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        document: DocumentId,
    ) -> db::Result<bool> {
        let attempts = self.settings.max_attempts;
        let job = db::jobs::enqueue(tx, workspace, document, JobKind::Ingest, attempts, self.now()).await?;
        note_trace(tx, job).await
    }

    /// Queues a document that this transaction has made, and reads it; none when its owner is gone. What is stored of it is admitted with its
    /// place in line. Ring the doorbell after the commit.
    ///
    /// # Errors
    /// [`OverQuota`] within, when it may not stay.
    pub async fn enqueue_new(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        document: DocumentId,
        demand: StorageDemand,
    ) -> db::Result<Result<Option<Document>, OverQuota>> {
        let attempts = self.settings.max_attempts;
        let queued = db::jobs::enqueue_new(tx, workspace, document, demand, attempts, self.now()).await?;
        let (job, document) = match queued {
            Ok(Some(queued)) => queued,
            Ok(None) => return Ok(Ok(None)),
            Err(over) => return Ok(Err(over)),
        };
        note_trace(tx, Some(job)).await?;
        Ok(Ok(Some(document)))
    }

    /// Takes the next due job, if there is one.
    pub async fn claim(&self, worker: &str) -> db::Result<Option<JobClaim>> {
        let claim = self.claims.claim(worker).await?;
        // A claim that a crash takes back was never used for anything that stayed.
        if let Some(claim) = claim.as_ref().filter(|claim| self.may_have_crashed(claim)) {
            self.make_durable(claim).await?;
        }
        Ok(claim)
    }

    /// Whether the job may have brought the machine down before. It has been tried, or was queued before this process began:
    /// of a first attempt that ends in a crash nothing may be left.
    fn may_have_crashed(&self, claim: &JobClaim) -> bool {
        claim.attempts > 1 || claim.queued_at <= self.now().minus(self.began.elapsed())
    }

    /// Has a claim outlast a crash, so that its attempt counts whatever comes of it: each crash but the first then uses one up,
    /// and no job crashes the machine for ever. A commit that waits for the disk takes all before it there.
    async fn make_durable(&self, claim: &JobClaim) -> db::Result<()> {
        let mut tx = self.db.begin_essential().await?;
        db::jobs::renew(&mut tx, claim, self.lease_end(self.now()), &JobProgress::default()).await?;
        tx.commit().await
    }

    /// Extends a claim and notes how far it is; false when it is no longer held.
    pub async fn renew(&self, claim: &JobClaim, report: &JobProgress) -> db::Result<bool> {
        // A full disk must not take claims from workers: the attempts would count.
        let mut tx = self.db.begin_essential_relaxed().await?;
        let held = db::jobs::renew(&mut tx, claim, self.lease_end(self.now()), report).await?;
        tx.commit().await?;
        Ok(held)
    }

    /// Gives a job back as if it had not been taken.
    pub async fn release(&self, claim: &JobClaim) -> db::Result<()> {
        let mut tx = self.db.begin_essential().await?;
        let was_held = db::jobs::release(&mut tx, claim, self.now()).await?;
        tx.commit().await?;
        if was_held {
            self.doorbell.ring(1);
        }
        Ok(())
    }

    /// Whether a job that an outage stops is to be [requeued](Self::postpone): how long it stood in line before does not count.
    pub fn may_wait(&self, claim: &JobClaim) -> bool {
        claim.outage_at.is_none_or(|since| self.now().since(since) < OUTAGE_PATIENCE)
    }

    /// Gives a job back that could not be worked on through no fault of its own. The attempt does not count; it is due again
    /// after a short pause.
    pub async fn postpone(&self, claim: &JobClaim, reason: &IngestionError) -> db::Result<()> {
        let now = self.now();
        let mut tx = self.db.begin_essential().await?;
        let again_at = now.plus(jitter(POSTPONED_FOR, JitterRange::Half));
        db::jobs::postpone(&mut tx, claim, again_at, reason, now).await?;
        tx.commit().await
    }

    /// Notes a failed attempt. It is tried again after a growing pause when that can help and attempts are left. Returns
    /// the job's new state; none when the claim is no longer held.
    pub async fn fail(
        &self,
        claim: &JobClaim,
        error: &IngestionError,
        pause: RetryPause,
        report: &JobProgress,
    ) -> db::Result<Option<JobState>> {
        let now = self.now();
        let again = error.retryable && claim.attempts < claim.max_attempts;
        let retry_at = again.then(|| now.plus(pause.after(claim.attempts)));
        let mut tx = self.db.begin_essential().await?;
        let state = db::jobs::fail(&mut tx, claim, error, retry_at, report, now).await?;
        tx.commit().await?;
        Ok(state)
    }

    fn lease_end(&self, now: Timestamp) -> Timestamp {
        now.plus(self.settings.lease)
    }
}

#[cfg(test)]
mod tests {
    use lectern_db::testing::{ATTEMPTS, at, both, document, workspace};
    use lectern_shared::shutdown::DrainEnd;

    use super::{pause::LONGEST_PAUSE, testing::queue, *};

    fn passing() -> IngestionError {
        IngestionError { code: "timeout".to_owned(), message: "Too slow.".to_owned(), retryable: true }
    }

    #[tokio::test]
    async fn a_claim_that_is_renewed_outlasts_its_lease_and_one_that_is_not_is_lost() {
        for t in &both().await {
            let clock = Clock::manual(at(0));
            let jobs = queue(&t.db, &clock);
            let owner = workspace(&t.db, at(0)).await;
            document(&t.db, owner, "slow", at(0)).await;
            let claim = jobs.claim("first").await.unwrap().expect(t.name);
            let expire = async || {
                let mut tx = t.db.begin().await.unwrap();
                let expired =
                    db::jobs::expire_leases(&mut tx, jobs.now(), jobs.now(), &passing()).await.unwrap();
                tx.commit().await.unwrap();
                expired.len()
            };
            clock.advance(Duration::from_secs(50));
            assert!(jobs.renew(&claim, &JobProgress::default()).await.unwrap(), "{}", t.name);
            clock.advance(Duration::from_secs(50));
            assert_eq!(expire().await, 0, "{}: it was renewed", t.name);
            clock.advance(Duration::from_secs(20));
            assert_eq!(expire().await, 1, "{}: it was silent for a lease", t.name);
            assert!(!jobs.renew(&claim, &JobProgress::default()).await.unwrap(), "{}", t.name);
            assert!(jobs.claim("second").await.unwrap().is_some(), "{}: another takes over", t.name);
        }
    }

    #[tokio::test]
    async fn a_failed_attempt_is_due_again_after_its_pause_until_none_is_left() {
        for t in &both().await {
            let clock = Clock::manual(at(0));
            let jobs = queue(&t.db, &clock);
            let owner = workspace(&t.db, at(0)).await;
            document(&t.db, owner, "flaky", at(0)).await;
            for attempt in 1..=i64::from(ATTEMPTS) {
                let claim = jobs.claim("worker").await.unwrap().expect(t.name);
                assert_eq!(claim.attempts, attempt, "{}", t.name);
                let state = jobs
                    .fail(&claim, &passing(), RetryPause::Service, &JobProgress::default())
                    .await
                    .unwrap();
                let last = attempt == claim.max_attempts;
                assert_eq!(state, Some(if last { JobState::Dead } else { JobState::Queued }), "{}", t.name);
                assert!(jobs.claim("worker").await.unwrap().is_none(), "{}: not before the pause", t.name);
                clock.advance(LONGEST_PAUSE);
            }
            assert!(jobs.claim("worker").await.unwrap().is_none(), "{}: it is not tried for ever", t.name);
        }
    }

    #[tokio::test]
    async fn an_outage_ends_nothing_that_has_only_stood_in_line_for_long() {
        for t in &both().await {
            let clock = Clock::manual(at(0));
            let jobs = queue(&t.db, &clock);
            let owner = workspace(&t.db, at(0)).await;
            document(&t.db, owner, "late", at(0)).await;
            let (hour, minutes) = (Duration::from_hours(1), Duration::from_mins(10));
            // Behind others, again and again, and each time it meets a short outage.
            for _ in 0..3 {
                clock.advance(7 * hour);
                let claim = jobs.claim("worker").await.unwrap().expect(t.name);
                assert_eq!(claim.attempts, 1, "{}: none of them counts", t.name);
                assert!(jobs.may_wait(&claim), "{}", t.name);
                jobs.postpone(&claim, &passing()).await.unwrap();
            }
            // One that does not end.
            let (since, lasting) = loop {
                clock.advance(minutes);
                let claim = jobs.claim("worker").await.unwrap().expect(t.name);
                assert_eq!(claim.attempts, 1, "{}: none of them counts", t.name);
                if !jobs.may_wait(&claim) {
                    break (claim.outage_at.expect(t.name), claim);
                }
                jobs.postpone(&claim, &passing()).await.unwrap();
            };
            let lasted = jobs.now().since(since);
            assert!(lasted >= 6 * hour && lasted < 6 * hour + minutes, "{}: {lasted:?}", t.name);
            let state =
                jobs.fail(&lasting, &passing(), RetryPause::Service, &JobProgress::default()).await.unwrap();
            assert_eq!((state, lasting.max_attempts), (Some(JobState::Queued), 2), "{}", t.name);
            clock.advance(LONGEST_PAUSE);
            let last = jobs.claim("worker").await.unwrap().expect(t.name);
            assert!(!jobs.may_wait(&last), "{}", t.name);
            let state =
                jobs.fail(&last, &passing(), RetryPause::Service, &JobProgress::default()).await.unwrap();
            assert_eq!(state, Some(JobState::Dead), "{}: it is not tried for ever", t.name);
            // Queued anew, it has all its patience again.
            let mut tx = t.db.begin().await.unwrap();
            assert!(jobs.enqueue_ingest(&mut tx, owner, last.document_id).await.unwrap(), "{}", t.name);
            tx.commit().await.unwrap();
            let anew = jobs.claim("worker").await.unwrap().expect(t.name);
            assert!(jobs.may_wait(&anew), "{}", t.name);
        }
    }

    #[tokio::test]
    async fn a_claim_outlasts_a_crash_if_the_job_may_have_caused_one_before() {
        let tests = both().await;
        let t = &tests[0];
        assert_eq!(t.name, "SQLite");
        let clock = Clock::manual(at(0));
        let jobs = queue(&t.db, &clock);
        // What a claim asks of the disk is all that can be seen without a power cut.
        let claim = async || {
            let before = t.db.flushed();
            let claim = jobs.claim("worker").await.unwrap().unwrap();
            (claim, t.db.flushed() > before)
        };
        let owner = workspace(&t.db, at(0)).await;
        clock.advance(Duration::from_hours(1));
        document(&t.db, owner, "new", jobs.now()).await;
        let (new, is_durable) = claim().await;
        assert!(!is_durable, "a document that was just accepted was never tried");

        jobs.fail(&new, &passing(), RetryPause::Service, &JobProgress::default()).await.unwrap();
        clock.advance(LONGEST_PAUSE);
        let (again, is_durable) = claim().await;
        assert_eq!(again.attempts, 2);
        assert!(is_durable, "a second attempt counts whatever comes of it");

        // The first attempt brought the machine down and left no trace: the job waits as if it were new.
        document(&t.db, owner, "old", at(1)).await;
        let (old, is_durable) = claim().await;
        assert_eq!(old.attempts, 1);
        assert!(is_durable, "what was queued before the process began may have ended one");
    }

    #[tokio::test]
    async fn a_clock_that_is_set_wrong_while_the_process_runs_becomes_right_again() {
        for t in both().await.iter().filter(|t| t.name == "PostgreSQL") {
            let (clock, shutdown) = (Clock::system(), Shutdown::new());
            let jobs = queue(&t.db, &clock);
            jobs.keep_time(Duration::from_millis(10), &shutdown);
            // As when somebody sets the machine's clock.
            clock.follow(clock.now().plus(Duration::from_hours(1)));
            let right = async {
                loop {
                    let reference = t.db.server_time().await.unwrap().unwrap();
                    if jobs.now().since(reference) < Duration::from_mins(1) {
                        break;
                    }
                }
            };
            tokio::time::timeout(Duration::from_mins(1), right).await.expect("nobody sets the clock");
            shutdown.begin();
            let end = shutdown.finished(std::future::ready(())).await;
            assert_eq!(end, DrainEnd::Complete, "it ends with the service");
        }
    }
}
