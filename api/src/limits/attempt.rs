//! Guesses at passwords: what each counts for, and what becomes of the count when the guess is decided. A guess counts before it is
//! looked at, so that many at a time do not slip through together; a right one is taken back.

use std::sync::Arc;

use lectern_shared::clock::Timestamp;
use tokio::{runtime::Handle, task::JoinHandle};

use super::{Inner, Key};

/// Tells one attempt from another; random.
pub(super) type AttemptId = u64;

/// What a guess counts for, and which of these counts may refuse it.
#[derive(Clone, Copy)]
pub(crate) struct Guess {
    /// What may refuse it, and what a right guess clears.
    own: Key,
    /// What may refuse it as well.
    also_refuses: Option<Key>,
    /// What it counts for without being refused by it.
    only_counts: Option<Key>,
}

impl Guess {
    /// At a password that somebody who is signed in is asked for.
    pub(crate) fn at(account: Key) -> Self {
        Self { own: account, also_refuses: None, only_counts: None }
    }

    /// From an address where nobody has signed in to the account of late. All of these count together for the account.
    pub(crate) fn from_stranger(account: Key, address: Key) -> Self {
        Self { own: account, also_refuses: Some(address), only_counts: None }
    }

    /// From an address where the account was signed in to of late. It counts by itself, and for the account too; but what strangers
    /// guess does not keep its owner out.
    pub(crate) fn from_known(account: Key, address: Key) -> Self {
        let own = Key::pair(account, address);
        Self { own, also_refuses: Some(address), only_counts: Some(account) }
    }

    pub(super) fn own(&self) -> &Key {
        &self.own
    }

    /// What may refuse it, its own first.
    pub(super) fn refusing(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.own).chain(&self.also_refuses)
    }

    /// What it counts for: first what may refuse it.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.refusing().chain(&self.only_counts)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Counted {
    pub(super) guess: Guess,
    pub(super) id: AttemptId,
    pub(super) at: Timestamp,
    pub(super) place: Place,
}

/// Where an attempt was counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Local,
    Shared,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Failed,
    Succeeded,
    Undecided,
}

/// An attempt that is not decided yet. Dropped without a decision, it was none; so what looks at the password owns it, lest a client
/// that hangs up meanwhile take it back.
#[must_use = "an attempt that is dropped was none"]
pub(crate) struct Attempt {
    limits: Arc<Inner>,
    counted: Counted,
    decided: bool,
}

impl Attempt {
    pub(super) fn new(limits: Arc<Inner>, counted: Counted) -> Self {
        Self { limits, counted, decided: false }
    }

    /// The password was wrong: the attempt stays counted.
    pub(crate) fn failed(mut self) {
        // Nothing is on its way that could be waited for.
        drop(self.settle(Decision::Failed));
    }

    /// The password was right: the attempt is taken back, and earlier failures at its own key are forgiven, wherever they were counted.
    pub(crate) fn succeeded(mut self) -> Settled {
        self.settle(Decision::Succeeded)
    }

    fn settle(&mut self, decision: Decision) -> Settled {
        self.decided = true;
        let (limits, counted) = (Arc::clone(&self.limits), self.counted);
        limits.settle_here(&counted, decision);
        if decision == Decision::Failed || limits.shared.is_none() {
            return Settled(None);
        }
        // In a task of its own: a client that goes away takes nothing back. Without a runtime the process is ending.
        let runtime = Handle::try_current().ok();
        Settled(
            runtime
                .map(|runtime| runtime.spawn(async move { limits.settle_there(&counted, decision).await })),
        )
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.decided {
            self.settle(Decision::Undecided);
        }
    }
}

/// A decision on its way to where it is counted. It arrives whether or not anybody waits for it.
pub(crate) struct Settled(Option<JoinHandle<()>>);

impl Settled {
    /// Waits until every later attempt sees the decision, or Redis turns out to be away.
    pub(crate) async fn wait(self) {
        if let Some(task) = self.0 {
            // It fails only when the runtime ends.
            let _ = task.await;
        }
    }
}
