//! Work that processes claim for a while, whichever is first: it is kept while it goes on, given back when the process stops, and goes on
//! elsewhere when a process goes away without a word.

mod failure;

use std::time::Duration;

use lectern_db::DbError;
use lectern_jobs::JobQueue;
use lectern_shared::{clock::Timestamp, shutdown::Shutdown};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::failure::RunFailure;

/// How often it is looked for something to claim.
const EVERY: Duration = Duration::from_millis(500);
/// How often, after the store has failed.
pub const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// How often claims are renewed at least, so that somebody who stops something need not wait for long.
const RENEWED_EVERY: Duration = Duration::from_secs(5);
/// How often something may be taken up by a process that then goes away without a word.
pub const MOST_ATTEMPTS: i64 = 5;

/// A kind of work that is claimed.
pub trait LeasedWork: Clone + Send + Sync + 'static {
    /// One piece of it, claimed.
    type Claimed: Send + 'static;

    /// What it is called in the log, such as "runs of sources".
    const NAME: &'static str;

    /// How many pieces one process is at.
    fn most_at_once(&self) -> usize;

    /// Claims the next piece, if there is one.
    fn claim(&self) -> impl Future<Output = Result<Option<Self::Claimed>, DbError>> + Send;

    /// Works on a piece until it ends, is lost, or the process stops.
    fn work(self, claimed: Self::Claimed, stopping: CancellationToken) -> impl Future<Output = ()> + Send;
}

/// Works in the background as long as the process goes on. What is under way when it stops is given back.
pub fn start<W: LeasedWork>(work: W, shutdown: &Shutdown) {
    let soft = shutdown.soft().clone();
    shutdown.spawn(async move {
        let mut failing = false;
        let mut under_way = JoinSet::new();
        loop {
            let worked = take_up(&work, &soft, &mut under_way).await;
            // One line for an outage, not one for every try.
            if let Some(error) = worked.as_ref().err().filter(|_| !failing) {
                tracing::warn!(%error, "{} cannot be read; trying again", W::NAME);
            }
            failing = worked.is_err();
            tokio::select! {
                biased;
                () = soft.cancelled() => break,
                Some(ended) = under_way.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "one of the {} panicked", W::NAME);
                    }
                }
                () = tokio::time::sleep(if failing { AFTER_FAILURE } else { EVERY }) => {}
            }
        }
        while under_way.join_next().await.is_some() {}
    });
}

/// Takes up as much as there is room for.
async fn take_up<W: LeasedWork>(
    work: &W,
    stopping: &CancellationToken,
    under_way: &mut JoinSet<()>,
) -> Result<(), DbError> {
    while under_way.len() < work.most_at_once() {
        let Some(claimed) = work.claim().await? else { break };
        under_way.spawn(work.clone().work(claimed, stopping.clone()));
    }
    Ok(())
}

/// When a claim ends that is renewed now.
pub fn lease_end(jobs: &JobQueue) -> Timestamp {
    jobs.now().plus(jobs.settings().lease)
}

/// Renews a claim until a time again and again, and returns when it is lost: when `renew` says that it is not held any more, or it could
/// not be renewed in time.
pub async fn until_lost<F>(jobs: &JobQueue, renew: impl Fn(Timestamp) -> F)
where
    F: Future<Output = Result<bool, DbError>>,
{
    let lease = jobs.settings().lease;
    let mut held_until = lease_end(jobs);
    loop {
        tokio::time::sleep((lease / 4).min(RENEWED_EVERY)).await;
        let until = lease_end(jobs);
        match renew(until).await {
            Ok(true) => held_until = until,
            Ok(false) => return,
            Err(error) if jobs.now() >= held_until => {
                tracing::warn!(%error, "a claim could not be renewed");
                return;
            }
            Err(_) => {}
        }
    }
}
