//! Counters in this process: all there are when there is no Redis, and those that go on while it is away.

use std::{collections::VecDeque, num::NonZeroUsize, time::Duration};

use lectern_shared::{clock::Timestamp, config::rate::RequestRate};
use lru::LruCache;
use parking_lot::Mutex;

use super::{AttemptId, AttemptKeys, FailureRule, LimitKey, RetryAfter};

/// Keys that are remembered of each kind; those not met for longest are forgotten first.
const REMEMBERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(49_999);

#[derive(Clone)]
struct FailedAttempt {
    at: Timestamp,
    id: AttemptId,
}

/// The counters of one process.
pub(super) struct LocalCounters {
    /// The moment of each key, as [`RequestRate::next`] has it.
    requests: Mutex<LruCache<LimitKey, Timestamp>>,
    /// Oldest first.
    failures: Mutex<LruCache<LimitKey, VecDeque<FailedAttempt>>>,
}

impl Default for LocalCounters {
    fn default() -> Self {
        Self {
            requests: Mutex::new(LruCache::new(REMEMBERED)),
            failures: Mutex::new(LruCache::new(REMEMBERED)),
        }
    }
}

impl LocalCounters {
    /// Counts a request for every key, or for none when one of them must wait.
    pub(super) fn admit(
        &self,
        rate: RequestRate,
        keys: &[LimitKey],
        now: Timestamp,
    ) -> Result<(), RetryAfter> {
        let mut requests = self.requests.lock();
        let mut wait = Duration::ZERO;
        for key in keys {
            let before = requests.get(key).copied().unwrap_or(now);
            wait = wait.max(rate.next(before, now).1);
        }
        RetryAfter::unless_zero(wait)?;
        for (position, key) in keys.iter().enumerate() {
            // One that is named twice is one.
            if keys.iter().take(position).any(|earlier| earlier == key) {
                continue;
            }
            let before = requests.get(key).copied().unwrap_or(now);
            requests.put(*key, rate.next(before, now).0);
        }
        Ok(())
    }

    /// Counts a guess for each of its keys, unless one that may refuse it must wait.
    pub(super) fn begin(
        &self,
        rule: FailureRule,
        guess: &AttemptKeys,
        id: AttemptId,
        now: Timestamp,
    ) -> Result<(), RetryAfter> {
        let mut failures = self.failures.lock();
        let waits = guess.blocking_keys().map(|key| wait_of(&mut failures, rule, key, now));
        RetryAfter::unless_zero(waits.max().unwrap_or_default())?;
        count(&mut failures, rule, guess, &FailedAttempt { at: now, id });
        Ok(())
    }

    /// Whether a key that may refuse a guess would refuse one now. Nothing is counted.
    pub(super) fn look_at(
        &self,
        rule: FailureRule,
        key: &LimitKey,
        now: Timestamp,
    ) -> Result<(), RetryAfter> {
        RetryAfter::unless_zero(wait_of(&mut self.failures.lock(), rule, key, now))
    }

    /// Counts a failure for each of its keys.
    pub(super) fn failed(&self, rule: FailureRule, guess: &AttemptKeys, id: AttemptId, at: Timestamp) {
        count(&mut self.failures.lock(), rule, guess, &FailedAttempt { at, id });
    }

    /// Takes a guess back, and forgives its own key.
    pub(super) fn succeeded(&self, guess: &AttemptKeys, id: AttemptId) {
        self.failures.lock().pop(guess.own());
        self.undecided(guess, id);
    }

    /// Takes a guess back.
    pub(super) fn undecided(&self, guess: &AttemptKeys, id: AttemptId) {
        let mut failures = self.failures.lock();
        for key in guess.keys() {
            let Some(counted) = failures.get_mut(key) else { continue };
            counted.retain(|failure| failure.id != id);
            if counted.is_empty() {
                failures.pop(key);
            }
        }
    }
}

/// How long a key has to wait for its failures; zero when it need not.
fn wait_of(
    failures: &mut LruCache<LimitKey, VecDeque<FailedAttempt>>,
    rule: FailureRule,
    key: &LimitKey,
    now: Timestamp,
) -> Duration {
    let Some(counted) = failures.get_mut(key) else { return Duration::ZERO };
    forget(rule, counted, now);
    // Of more than are allowed, as many must be forgotten as there are too many.
    let last = counted.len().checked_sub(rule.failures).and_then(|at| counted.get(at));
    last.map_or(Duration::ZERO, |last| last.at.plus(rule.within).since(now).min(rule.within))
}

fn count(
    failures: &mut LruCache<LimitKey, VecDeque<FailedAttempt>>,
    rule: FailureRule,
    guess: &AttemptKeys,
    failure: &FailedAttempt,
) {
    for key in guess.keys() {
        let counted = failures.get_or_insert_mut(*key, VecDeque::new);
        // Here too: a key that refuses nobody is looked at nowhere else.
        forget(rule, counted, failure.at);
        counted.push_back(failure.clone());
    }
}

/// Forgets what is long ago.
fn forget(rule: FailureRule, counted: &mut VecDeque<FailedAttempt>, now: Timestamp) {
    counted.retain(|failure| failure.at > now.minus(rule.within));
}

#[cfg(test)]
mod tests {
    use lectern_shared::config::rate::parse_rate;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
    const RULE: FailureRule = FailureRule::SIGN_IN;

    fn ada() -> LimitKey {
        LimitKey::account("ada")
    }

    #[test]
    fn a_burst_passes_at_once_and_the_steady_rate_after_it() {
        let (local, rate) = (LocalCounters::default(), parse_rate("10/s burst 3").unwrap().unwrap());
        let step = Duration::from_millis(100);
        for _ in 0..3 {
            local.admit(rate, &[ada()], NOW).unwrap();
        }
        assert_eq!(local.admit(rate, &[ada()], NOW), Err(RetryAfter(step)));
        local.admit(rate, &[ada()], NOW.plus(step)).unwrap();
        assert_eq!(local.admit(rate, &[ada()], NOW.plus(step)), Err(RetryAfter(step)));
        let rested = NOW.plus(Duration::from_hours(1));
        let passed = (0..10).take_while(|_| local.admit(rate, &[ada()], rested).is_ok()).count();
        assert_eq!(passed, 3, "a long rest earns no more than one burst");
    }

    #[test]
    fn a_clock_that_is_set_back_stops_nobody_for_longer_than_one_interval() {
        let (local, rate) = (LocalCounters::default(), parse_rate("1/s burst 5").unwrap().unwrap());
        local.admit(rate, &[ada()], NOW).unwrap();
        let earlier = NOW.minus(Duration::from_hours(1));
        assert_eq!(local.admit(rate, &[ada()], earlier), Err(RetryAfter(Duration::from_secs(1))));
    }

    fn guess() -> AttemptKeys {
        AttemptKeys::at(ada())
    }

    #[test]
    fn failures_are_forgotten_one_by_one_after_ten_minutes() {
        let local = LocalCounters::default();
        let minute = |minute: u32| NOW.plus(Duration::from_mins(1) * minute);
        for failure in 0..9 {
            local.begin(RULE, &guess(), failure, minute(0)).unwrap();
        }
        local.begin(RULE, &guess(), 9, minute(4)).unwrap();
        let six = RetryAfter(Duration::from_mins(6));
        assert_eq!(local.begin(RULE, &guess(), 10, minute(4)), Err(six));
        for failure in 0..9 {
            local.begin(RULE, &guess(), 10 + failure, minute(10)).unwrap();
        }
        let four = RetryAfter(Duration::from_mins(4));
        assert_eq!(local.begin(RULE, &guess(), 20, minute(10)), Err(four));
    }

    #[test]
    fn with_more_failures_than_allowed_the_wait_lasts_until_enough_are_forgotten() {
        let local = LocalCounters::default();
        let minute = |minute: u32| NOW.plus(Duration::from_mins(1) * minute);
        // Ten were let in elsewhere, and two more by an owner's own address.
        for failure in 0..12 {
            local.failed(RULE, &guess(), failure, minute(if failure < 2 { 0 } else { 3 }));
        }
        let refused = local.begin(RULE, &guess(), 12, minute(3));
        assert_eq!(refused, Err(RetryAfter(Duration::from_mins(10))));
    }

    #[test]
    fn keys_that_count_nothing_any_more_take_no_room() {
        let local = LocalCounters::default();
        let guess = AttemptKeys::for_known_address(ada(), LimitKey::account("stands for an address"));
        local.begin(RULE, &guess, 0, NOW).unwrap();
        local.begin(RULE, &guess, 1, NOW).unwrap();
        assert_eq!(local.failures.lock().len(), 3);
        local.undecided(&guess, 0);
        local.succeeded(&guess, 1);
        assert_eq!(local.failures.lock().len(), 0);
        for failure in 0..1_000_u32 {
            local.failed(RULE, &guess, 2, NOW.plus(Duration::from_mins(1) * failure));
        }
        assert!(local.failures.lock().iter().all(|(_, counted)| counted.len() <= RULE.failures));
    }
}
