//! Since when the store can be written, by which is judged whether a worker that is silent is gone.

use std::time::Duration;

use tokio::time::Instant;

/// How long workers have, after a store could be written again, to give back what they hold: they try every two seconds or so.
const GIVING_BACK: Duration = Duration::from_secs(6);

/// Since when the store can be written, as far as sweeps tell. One that could not be kept workers from renewing their claims and from
/// giving jobs back, so they get a while to do that when it can be again. What fails later in a sweep says nothing of that: a part of the
/// service that is away for hours does not keep jobs with workers that are gone.
#[derive(Default)]
pub(super) struct StoreWatch {
    access: StoreAccess,
    /// Whether the sweep that is under way has written to it.
    is_written: bool,
}

#[derive(Clone, Copy, Default)]
enum StoreAccess {
    /// Nothing is known against it.
    #[default]
    Open,
    /// The last sweep could not write to it.
    Closed,
    /// It could be written for the first time again then.
    OpenSince(Instant),
}

impl StoreWatch {
    pub(super) fn begin_sweep(&mut self) {
        self.is_written = false;
    }

    /// Notes that the sweep has written to it.
    pub(super) fn written(&mut self, now: Instant) {
        self.is_written = true;
        self.access = match self.access {
            StoreAccess::Closed => StoreAccess::OpenSince(now),
            StoreAccess::Open | StoreAccess::OpenSince(_) => self.access,
        };
    }

    /// Notes that the sweep did not come to its end.
    pub(super) fn sweep_failed(&mut self) {
        if !self.is_written {
            self.access = StoreAccess::Closed;
        }
    }

    /// Whether whoever could give a job back has done so by now.
    pub(super) fn is_settled(&self, now: Instant) -> bool {
        match self.access {
            StoreAccess::Open => true,
            StoreAccess::Closed => false,
            StoreAccess::OpenSince(since) => now.duration_since(since) > GIVING_BACK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a sweep begin at a moment; whether it may take jobs from workers, if it can write to the store at all.
    fn sweep(store: &mut StoreWatch, now: Instant, can_write: bool, fails: bool) -> bool {
        store.begin_sweep();
        if can_write {
            store.written(now);
        }
        let settled = can_write && store.is_settled(now);
        if fails {
            store.sweep_failed();
        }
        settled
    }

    #[test]
    fn workers_get_a_while_to_give_jobs_back_once_the_store_can_be_written_again() {
        let (mut store, began) = (StoreWatch::default(), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        assert!(sweep(&mut store, at(0), true, false), "it never failed");
        assert!(!sweep(&mut store, at(3), false, true));
        assert!(!sweep(&mut store, at(60), true, false), "it can be written just now");
        assert!(!sweep(&mut store, at(63), true, false));
        assert!(sweep(&mut store, at(67), true, false));
        assert!(!sweep(&mut store, at(70), false, true));
        assert!(!sweep(&mut store, at(73), true, false), "each time anew");
    }

    #[test]
    fn sweeps_that_fail_again_and_again_later_on_take_jobs_from_workers_that_are_gone() {
        let (mut store, began) = (StoreWatch::default(), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        // The store was away; then another part hangs until the sweep is given up, each time.
        assert!(!sweep(&mut store, at(0), false, true));
        assert!(!sweep(&mut store, at(3), true, true));
        assert!(sweep(&mut store, at(306), true, true), "it can be written since 303 s");
        assert!(sweep(&mut store, at(609), true, true));
    }
}
