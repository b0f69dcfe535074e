//! How the slots of a worker get their jobs. Those that ask at the same moment are given theirs by one transaction: beginning it, waiting for
//! whoever else claims, and committing it takes longer than taking a job.

use std::{sync::Arc, time::Duration};

use lectern_db::{
    self as db, Db,
    jobs::{ClaimedJobs, DueJobs},
};
use lectern_shared::{clock::Clock, combine::RequestCombiner, model::job::JobClaim};
use parking_lot::Mutex;
use tokio::time::Instant;

/// How often jobs are looked for that waited for a moment which has come, while others are in line.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The most jobs that a worker claims at once.
const CLAIMED_TOGETHER: usize = 64;

/// Claims for slots. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct SlotClaims {
    claimer: JobClaimer,
    /// What a worker's slots ask for at the same moment, by the worker's name.
    together: RequestCombiner<Arc<str>, (), SlotAnswer>,
}

/// What a slot gets; no job when none is due.
type SlotAnswer = Result<Option<JobClaim>, TogetherFailure>;

/// No jobs could be claimed together: why is told to whoever asks for one alone then.
#[derive(Debug)]
struct TogetherFailure;

impl SlotClaims {
    /// Of jobs in `db`, each for so long.
    pub(crate) fn new(db: &Db, clock: &Clock, lease: Duration) -> Self {
        let claimer = JobClaimer { db: db.clone(), clock: clock.clone(), lease, seen: Arc::default() };
        let shared = claimer.clone();
        let claim = move |worker: Arc<str>, asked: Vec<()>| {
            let claimer = shared.clone();
            async move { claimer.claim_together(&worker, asked.len()).await }
        };
        Self { claimer, together: RequestCombiner::new(CLAIMED_TOGETHER, |()| 1, claim) }
    }

    /// Takes the next due job for a slot of this worker, if there is one.
    pub(crate) async fn claim(&self, worker: &str) -> db::Result<Option<JobClaim>> {
        match self.together.ask(worker.into(), ()).await {
            Some(Ok(claim)) => Ok(claim),
            Some(Err(TogetherFailure)) | None => Ok(self.claimer.claim_in_turn(worker, 1).await?.pop()),
        }
    }
}

/// Takes jobs for several slots at once. Cheap to clone.
#[derive(Clone, Debug)]
struct JobClaimer {
    db: Db,
    clock: Clock,
    /// How long a claim lasts without renewal.
    lease: Duration,
    seen: Arc<Mutex<LineSight>>,
}

/// What this process has last seen of the jobs in line.
#[derive(Clone, Copy, Debug, Default)]
struct LineSight {
    /// When jobs that waited for their moment were last looked for.
    looked: Option<Instant>,
    /// Several workspaces have jobs in line.
    several_wait: bool,
}

impl LineSight {
    /// Whether it is time to look for jobs that have to get a place in line.
    fn is_old(self) -> bool {
        self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY)
    }
}

impl JobClaimer {
    /// What each of these slots gets.
    async fn claim_together(&self, worker: &str, slots: usize) -> Vec<SlotAnswer> {
        let mut claims = Vec::with_capacity(slots);
        let filled = self.fill(&mut claims, worker, slots).await;
        if let Err(error) = &filled {
            tracing::debug!(%error, "no jobs can be claimed together");
        }
        let mut answers: Vec<_> = claims.into_iter().map(|claim| Ok(Some(claim))).collect();
        answers.resize_with(slots, || if filled.is_ok() { Ok(None) } else { Err(TogetherFailure) });
        answers
    }

    /// Adds claims until each slot has one, or nothing is due. What was claimed before a failure is there after it.
    async fn fill(&self, claims: &mut Vec<JobClaim>, worker: &str, slots: usize) -> db::Result<()> {
        claims.extend(self.claim_undisputed(worker, slots).await?);
        if claims.len() < slots {
            claims.extend(self.claim_in_turn(worker, slots - claims.len()).await?);
        }
        Ok(())
    }

    /// Takes jobs as quickly as can be, unless it is time to look for others that have to get a place in line, or somebody disputes them.
    async fn claim_undisputed(&self, worker: &str, most: usize) -> db::Result<Vec<JobClaim>> {
        let seen = *self.seen.lock();
        if seen.is_old() || seen.several_wait {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        db::jobs::claim_undisputed(&self.db, worker, now, now.plus(self.lease), most).await
    }

    async fn claim_in_turn(&self, worker: &str, most: usize) -> db::Result<Vec<JobClaim>> {
        let due = self.glance().await?;
        if !due.any() {
            return Ok(Vec::new());
        }
        let mut tx = self.db.begin_relaxed().await?;
        // Only now, since that may have taken a while and the lease is counted from here.
        let now = self.clock.now();
        if due.waited {
            db::jobs::admit(&mut tx, now).await?;
        }
        let claimed = db::jobs::claim(&mut tx, worker, now, now.plus(self.lease), most).await?;
        tx.commit().await?;
        let ClaimedJobs { claims, several_wait } = claimed;
        self.seen.lock().several_wait = several_wait;
        Ok(claims)
    }

    /// What is due: idle workers must not queue for the write lock. Whoever has just seen that several workspaces wait need not look.
    async fn glance(&self) -> db::Result<DueJobs> {
        let seen = *self.seen.lock();
        if seen.several_wait && !seen.is_old() {
            return Ok(DueJobs { in_line: true, waited: false });
        }
        let due = db::jobs::due(&self.db, self.clock.now()).await?;
        *self.seen.lock() = LineSight { looked: Some(Instant::now()), several_wait: false };
        Ok(due)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use lectern_db::testing::{TestDb, at, both, document, plain, workspace};
    use lectern_shared::ids::WorkspaceId;

    use super::*;
    use crate::{JobQueue, testing::queue};

    /// Queues many documents of a workspace, in one transaction.
    async fn fill(t: &TestDb, jobs: &JobQueue, owner: WorkspaceId, count: usize) {
        let mut tx = t.db.begin().await.unwrap();
        for _ in 0..count {
            let row = plain(owner, "one of many");
            db::documents::insert(&mut tx, &row, jobs.now()).await.unwrap();
            assert!(jobs.enqueue_ingest(&mut tx, owner, row.id).await.unwrap());
        }
        tx.commit().await.unwrap();
    }

    /// What so many slots get that ask at the same moment.
    async fn ask(jobs: &JobQueue, slots: usize) -> Vec<JobClaim> {
        let asked = (0..slots).map(|_| {
            let jobs = jobs.clone();
            tokio::spawn(async move { jobs.claim("worker").await.unwrap() })
        });
        let mut claims = Vec::new();
        for answer in asked.collect::<Vec<_>>() {
            claims.extend(answer.await.unwrap());
        }
        claims
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn slots_that_ask_at_the_same_moment_get_a_job_each_and_workspaces_have_turns() {
        for t in &both().await {
            let jobs = queue(&t.db, &Clock::manual(at(0)));
            let (many, few) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
            fill(t, &jobs, many, 20).await;
            fill(t, &jobs, few, 6).await;
            let (mut documents, mut claims) = (HashSet::new(), HashSet::new());
            // How many slots ask, how many get a job, and how many of these the one has who has few.
            for (slots, given, of_few) in [(8, 8, 4), (8, 8, 2), (20, 10, 0), (8, 0, 0)] {
                let taken = ask(&jobs, slots).await;
                assert_eq!(taken.len(), given, "{}", t.name);
                let turns = taken.iter().filter(|claim| claim.workspace_id == few).count();
                assert_eq!(turns, of_few, "{}", t.name);
                for claim in taken {
                    assert!(documents.insert(claim.document_id), "{}: a job was given twice", t.name);
                    assert!(claims.insert(claim.claim_id), "{}: two jobs have one claim", t.name);
                }
            }
            // What comes when nothing was left is found.
            let only = document(&t.db, few, "only", at(0)).await;
            assert_eq!(ask(&jobs, 1).await[0].document_id, only, "{}", t.name);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "a measurement: it prints"]
    async fn claims_of_the_slots_of_a_worker_are_measured() {
        const CLAIMS: u32 = 4_000;
        for workspaces in [1, 10, 1_000] {
            for t in &both().await {
                let jobs = queue(&t.db, &Clock::manual(at(0)));
                for _ in 0..workspaces {
                    let owner = workspace(&t.db, at(0)).await;
                    fill(t, &jobs, owner, 20_000 / workspaces).await;
                }
                for slots in [1, 8] {
                    let began = Instant::now();
                    let claiming = (0..slots).map(|_| {
                        let jobs = jobs.clone();
                        tokio::spawn(async move {
                            for _ in 0..CLAIMS / slots {
                                assert!(jobs.claim("worker").await.unwrap().is_some());
                            }
                        })
                    });
                    for slot in claiming.collect::<Vec<_>>() {
                        slot.await.unwrap();
                    }
                    let rate = f64::from(CLAIMS) / began.elapsed().as_secs_f64();
                    println!("{} {workspaces} workspaces, {slots} slots: {rate:.0}/s", t.name);
                }
            }
        }
    }
}
