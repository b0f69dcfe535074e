//! When requests begin: of one address a few at a time. A hundred that one client sends at once would otherwise all stand between
//! another's request and a processor, a connection to the database and whatever else they are worked on with.

use std::{pin::pin, time::Duration};

use lectern_shared::config::rate::RequestRate;
use tokio::time::timeout;

use super::LimitKey;
use crate::turns::{FairSemaphore, SemaphoreLimits};

/// Requests of one address that begin at once: as many as a browser sends, and some more.
const AT_ONCE: u32 = 8;
/// How long one keeps the next from beginning at most. Whatever takes longer waits for something as a rule, such as a model.
const LONGEST: Duration = Duration::from_millis(20);
/// How long one waits to begin. It is not refused afterwards, but begins.
const PATIENCE: Duration = Duration::from_secs(10);

/// The turns at beginning, of every address.
pub(super) struct RequestStarts {
    turns: FairSemaphore<LimitKey>,
    longest: Duration,
}

impl RequestStarts {
    /// Turns that let an address begin twice as many requests as it may make at `rate`, however long each of them takes.
    pub(super) fn new(rate: RequestRate) -> Self {
        let longest = Duration::from_micros(rate.interval_micros()) * AT_ONCE / 2;
        Self::lasting(longest.min(LONGEST))
    }

    fn lasting(longest: Duration) -> Self {
        let bounds = SemaphoreLimits {
            at_once: usize::MAX,
            reserved: 0,
            of_one: AT_ONCE as usize,
            // Each has a connection of its own, which are bounded.
            waiting: usize::MAX,
            patience: PATIENCE,
        };
        Self { turns: FairSemaphore::new(bounds), longest }
    }

    /// Does what a request asks for, from its address's turn on. The turn ends with it, or after a while.
    pub(super) async fn in_turn<T>(&self, address: LimitKey, work: impl Future<Output = T>) -> T {
        let turn = self.turns.acquire(address).await;
        let mut work = pin!(work);
        if let Ok(done) = timeout(self.longest, &mut work).await {
            return done;
        }
        drop(turn);
        work.await
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::pending};

    use futures::{future::join_all, poll};
    use tokio::sync::Barrier;

    use super::*;

    fn somebody(name: &str) -> LimitKey {
        LimitKey::account(name)
    }

    #[tokio::test]
    async fn of_many_at_once_a_few_begin_and_another_address_does_not_wait_for_them() {
        // Longer than anything here takes.
        let (starts, begun) = (RequestStarts::lasting(Duration::from_mins(1)), Cell::new(0));
        let request = || async {
            begun.set(begun.get() + 1);
            pending::<()>().await;
        };
        let mut flood: Vec<_> =
            (0..50).map(|_| Box::pin(starts.in_turn(somebody("flood"), request()))).collect();
        for request in &mut flood {
            assert!(poll!(request).is_pending());
        }
        assert_eq!(begun.get(), AT_ONCE);
        assert!(poll!(pin!(starts.in_turn(somebody("other"), async {}))).is_ready());
        drop(flood.remove(0));
        for request in &mut flood {
            assert!(poll!(request).is_pending());
        }
        assert_eq!(begun.get(), AT_ONCE + 1, "one whose client has gone lets the next begin");
    }

    #[tokio::test]
    async fn what_takes_long_keeps_nothing_from_beginning_and_is_done_all_the_same() {
        let starts = RequestStarts::lasting(Duration::from_millis(1));
        // None of them ends before all have begun.
        let all = Barrier::new(40);
        let slow = || {
            starts.in_turn(somebody("ada"), async {
                all.wait().await;
                "answered"
            })
        };
        assert_eq!(join_all((0..40).map(|_| slow())).await, ["answered"; 40]);
    }
}
