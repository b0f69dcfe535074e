//! When requests begin: of one address a few at a time, and further ones together, after a pause. A hundred that one client sends at once
//! would otherwise all stand between another's request and a processor, a connection to the database and whatever else they are worked on
//! with.

use std::{pin::pin, time::Duration};

use lectern_shared::config::rate::RequestRate;
use tokio::time::{Instant, sleep_until, timeout};

use super::LimitKey;
use crate::turns::{FairPermit, FairSemaphore, SemaphoreLimits};

/// Requests of one address that begin at once: as many as a browser sends, and some more.
const AT_ONCE: u32 = 8;
/// How long one keeps the next from beginning at most, and where more are in line, at least. Whatever takes longer waits for something as a
/// rule, such as a model.
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

    /// Does what a request asks for, from its address's turn on. The turn ends with it, or after a while, and not before that where others of
    /// its address wait.
    pub(super) async fn in_turn<T>(&self, address: LimitKey, work: impl Future<Output = T>) -> T {
        let turn = self.turns.acquire(address).await;
        let over = Instant::now() + self.longest;
        let mut work = pin!(work);
        let Ok(done) = timeout(self.longest, &mut work).await else {
            drop(turn);
            return work.await;
        };
        if let Some(turn) = turn.ok().filter(FairPermit::is_awaited) {
            // Those in line begin together, when the turns are over of those who began together: they share what is read for them, and
            // leave the processors to others until then.
            tokio::spawn(async move {
                sleep_until(over).await;
                drop(turn);
            });
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::pending};

    use futures::{future::join_all, poll};
    use tokio::sync::{Barrier, Semaphore};

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
    async fn those_in_line_wait_until_the_turns_of_the_first_are_over_however_quick_these_are() {
        // Longer than anything here takes.
        let (starts, begun) = (RequestStarts::lasting(Duration::from_mins(1)), Cell::new(0));
        let may_end = Semaphore::new(0);
        let request = || async {
            begun.set(begun.get() + 1);
            drop(may_end.acquire().await);
        };
        let mut flood: Vec<_> =
            (0..50).map(|_| Box::pin(starts.in_turn(somebody("flood"), request()))).collect();
        for request in &mut flood {
            assert!(poll!(request).is_pending());
        }
        may_end.add_permits(50);
        let (first, line) = flood.split_at_mut(AT_ONCE as usize);
        for request in first {
            assert!(poll!(request).is_ready());
        }
        for request in line {
            assert!(poll!(request).is_pending());
        }
        assert_eq!(begun.get(), AT_ONCE);
    }

    #[tokio::test]
    async fn one_request_after_the_other_does_not_wait() {
        // Longer than anything here takes.
        let starts = RequestStarts::lasting(Duration::from_mins(1));
        for _ in 0..3 * AT_ONCE {
            assert!(poll!(pin!(starts.in_turn(somebody("ada"), async {}))).is_ready());
        }
    }

    #[tokio::test]
    async fn all_of_a_line_begin_at_last() {
        let starts = RequestStarts::lasting(Duration::from_millis(1));
        let all = (0..50).map(|number| starts.in_turn(somebody("ada"), async move { number }));
        assert_eq!(join_all(all).await, (0..50).collect::<Vec<_>>());
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
