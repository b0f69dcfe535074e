//! Guesses at passwords: what each counts for, and what becomes of the count when the guess is decided. A guess counts before it is
//! looked at, so that many at a time do not slip through together; a right one is taken back.

use std::sync::Arc;

use lectern_shared::clock::Timestamp;
use tokio::{runtime::Handle, task::JoinHandle};

use super::{LimitKey, LimiterState};

/// Tells one attempt from another; random.
pub(super) type AttemptId = u64;

/// What a guess counts for, and which of these counts may refuse it.
#[derive(Clone, Copy)]
pub(crate) struct AttemptKeys {
    /// What may refuse it, and what a right guess clears.
    own: LimitKey,
    /// What may refuse it as well.
    also_refuses: Option<LimitKey>,
    /// What it counts for without being refused by it.
    only_counts: Option<LimitKey>,
}

impl AttemptKeys {
    /// At a password that somebody who is signed in is asked for.
    pub(crate) fn at(account: LimitKey) -> Self {
        Self { own: account, also_refuses: None, only_counts: None }
    }

    /// From an address where nobody has signed in to the account of late. All of these count together for the account.
    pub(crate) fn for_unknown_address(account: LimitKey, address: LimitKey) -> Self {
        Self { own: account, also_refuses: Some(address), only_counts: None }
    }

    /// From an address where the account was signed in to of late. It counts by itself, and for the account too; but what strangers
    /// guess does not keep its owner out.
    pub(crate) fn for_known_address(account: LimitKey, address: LimitKey) -> Self {
        let own = LimitKey::pair(account, address);
        Self { own, also_refuses: Some(address), only_counts: Some(account) }
    }

    pub(super) fn own(&self) -> &LimitKey {
        &self.own
    }

    /// What may refuse it, its own first.
    pub(super) fn blocking_keys(&self) -> impl Iterator<Item = &LimitKey> {
        std::iter::once(&self.own).chain(&self.also_refuses)
    }

    /// What it counts for: first what may refuse it.
    pub(super) fn keys(&self) -> impl Iterator<Item = &LimitKey> {
        self.blocking_keys().chain(&self.only_counts)
    }
}

#[derive(Clone, Copy)]
pub(super) struct AttemptRecord {
    pub(super) guess: AttemptKeys,
    pub(super) id: AttemptId,
    pub(super) at: Timestamp,
    pub(super) place: CounterScope,
}

/// Where an attempt was counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CounterScope {
    Local,
    Shared,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptOutcome {
    Failed,
    Succeeded,
    Undecided,
}

/// An attempt that is not decided yet. Dropped without a decision, it was none; so what looks at the password owns it, lest a client
/// that hangs up meanwhile take it back.
#[must_use = "an attempt that is dropped was none"]
pub(crate) struct PasswordAttempt {
    limits: Arc<LimiterState>,
    counted: AttemptRecord,
    decided: bool,
}

impl PasswordAttempt {
    /// One that is about to be counted. It is there before it counts: a client that hangs up meanwhile leaves no failure behind.
    pub(super) fn new(limits: Arc<LimiterState>, counted: AttemptRecord) -> Self {
        Self { limits, counted, decided: false }
    }

    /// It is counted in this process, since Redis could not be asked.
    pub(super) fn counted_locally(mut self) -> Self {
        self.counted.place = CounterScope::Local;
        self
    }

    /// It was refused, and counts nowhere.
    pub(super) fn refused(mut self) {
        self.decided = true;
    }

    /// The password was wrong: the attempt stays counted.
    pub(crate) fn failed(mut self) {
        // Nothing is on its way that could be waited for.
        drop(self.settle(AttemptOutcome::Failed));
    }

    /// The password was right: the attempt is taken back, and earlier failures at its own key are forgiven, wherever they were counted.
    pub(crate) fn succeeded(mut self) -> AttemptSettlement {
        self.settle(AttemptOutcome::Succeeded)
    }

    fn settle(&mut self, decision: AttemptOutcome) -> AttemptSettlement {
        self.decided = true;
        let (limits, counted) = (Arc::clone(&self.limits), self.counted);
        limits.settle_locally(&counted, decision);
        if decision == AttemptOutcome::Failed || limits.shared.is_none() {
            return AttemptSettlement(None);
        }
        // In a task of its own: a client that goes away takes nothing back. Without a runtime the process is ending.
        let runtime = Handle::try_current().ok();
        AttemptSettlement(
            runtime.map(|runtime| {
                runtime.spawn(async move { limits.settle_in_redis(&counted, decision).await })
            }),
        )
    }
}

impl Drop for PasswordAttempt {
    fn drop(&mut self) {
        if !self.decided {
            self.settle(AttemptOutcome::Undecided);
        }
    }
}

/// A decision on its way to where it is counted. It arrives whether or not anybody waits for it.
pub(crate) struct AttemptSettlement(Option<JoinHandle<()>>);

impl AttemptSettlement {
    /// Waits until every later attempt sees the decision, or Redis turns out to be away.
    pub(crate) async fn wait(self) {
        if let Some(task) = self.0 {
            // It fails only when the runtime ends.
            let _ = task.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;

    use super::*;
    use crate::limits::{
        FailureRule, RateLimiter,
        tests::{now, patient, redis, server, until},
    };

    #[tokio::test]
    async fn a_guess_whose_client_hangs_up_while_it_is_counted_leaves_no_failure() {
        let Some(url) = server() else { return };
        let redis = redis(&url);
        let limits = RateLimiter::counted_in(Some(patient(redis.clone())), None, FailureRule::SIGN_IN);
        let counted = async || {
            let pattern = format!("{}:*", redis.prefix());
            let keys: Vec<String> =
                ::redis::cmd("KEYS").arg(pattern).query_async(&mut redis.connection()).await.unwrap();
            keys.len()
        };
        let begin = || limits.begin(AttemptKeys::at(LimitKey::account("ada")), now());
        // Connects, and has Redis know the script, so that the next one is sent at once.
        begin().await.unwrap().succeeded().wait().await;
        let mut counting = Box::pin(begin());
        assert!(poll!(&mut counting).is_pending());
        until("the guess to be counted", async || counted().await == 1).await;
        drop(counting);
        until("the guess to be taken back", async || counted().await == 0).await;
    }
}
