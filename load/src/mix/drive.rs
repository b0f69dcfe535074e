//! Requests at a set rate, whatever the service does.
//!
//! A request is due at a time that follows from the rate alone, and its time counts from there. Were it counted from the moment
//! at which it is sent, a service that stands still for ten seconds would have one slow request where its users had hundreds
//! ("coordinated omission").

use std::{sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time::Instant};
use tokio_util::task::TaskTracker;

use super::user::LoadUser;
use crate::{api::RequestProblem, random::SeededRandom, stats::LoadOperation, units::LoadRate};

/// A request that is sent later than this counts as late.
const LATE: Duration = Duration::from_millis(100);
/// A request that could not be sent for so long is not sent any more: users have gone by then.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is done at a rate of its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum LoadStream {
    /// Documents are added.
    Documents,
    /// The agent is asked.
    Questions,
    /// Passages are searched.
    Searches,
    /// Lists are read.
    Lists,
    /// Metadata is changed.
    Patches,
    /// The oldest documents go, when there are more than so many.
    Deletes(usize),
}

impl LoadStream {
    /// What its requests are counted as.
    fn operation(self) -> LoadOperation {
        match self {
            Self::Documents => LoadOperation::Post,
            Self::Questions => LoadOperation::Predict,
            Self::Searches => LoadOperation::Search,
            Self::Lists => LoadOperation::List,
            Self::Patches => LoadOperation::Patch,
            Self::Deletes(_) => LoadOperation::Delete,
        }
    }

    async fn act(self, user: &LoadUser, due: Instant, random: SeededRandom) {
        match self {
            Self::Documents => user.add(due).await,
            Self::Questions => user.ask(due, random).await,
            Self::Searches => user.search(due, random).await,
            Self::Lists => user.list(due, random).await,
            Self::Patches => user.change(due, random).await,
            Self::Deletes(keep) => user.remove_oldest(due, keep, random).await,
        }
    }
}

/// When the load is on, and how much of one kind may be under way.
#[derive(Clone)]
pub(super) struct LoadPlan {
    pub(super) begin: Instant,
    pub(super) duration: Duration,
    pub(super) in_flight: usize,
    pub(super) seed: u64,
    /// Every request that is under way.
    pub(super) tasks: TaskTracker,
}

/// Begins one request after the other, each when it is due, until the load ends.
pub(super) async fn drive(plan: LoadPlan, user: Arc<LoadUser>, stream: LoadStream, rate: LoadRate) {
    let operation = stream.operation();
    // Each kind has its place in the first interval, or all would begin at the same moment again and again.
    let offset = rate.due(1).min(Duration::from_secs(1)) * (operation as u32) / 16;
    let slots = Arc::new(Semaphore::new(plan.in_flight));
    let Some(lasting) = plan.duration.checked_sub(offset) else { return };
    for number in 0..rate.due_before(lasting) {
        let due = plan.begin + offset + rate.due(number);
        tokio::time::sleep_until(due).await;
        let slot = tokio::time::timeout_at(due + PATIENCE, Arc::clone(&slots).acquire_owned()).await;
        if due.elapsed() > LATE {
            user.recorder.late(operation);
        }
        let Ok(Ok(slot)) = slot else {
            let message = format!("{} requests were under way for {PATIENCE:?}", plan.in_flight);
            user.recorder.error(operation, &RequestProblem::new("not_sent", message));
            continue;
        };
        let random = SeededRandom::of(plan.seed ^ (u64::from(operation as u8) << 56), number);
        let user = Arc::clone(&user);
        plan.tasks.spawn(async move {
            stream.act(&user, due, random).await;
            drop(slot);
        });
    }
}
