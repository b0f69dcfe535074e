//! Requests that are counted in Redis a moment after they were admitted: those of keys that are far from their limit. And those that are refused
//! without asking, since a key has been told to wait until then. Nobody waits for the way to Redis and back to be told what this process knows,
//! and whoever is near a limit is decided about there, one request after the other.

use std::{
    collections::HashMap,
    mem,
    num::NonZeroUsize,
    time::{Duration, Instant},
};

use lectern_shared::config::rate::RequestRate;
use lru::LruCache;
use parking_lot::Mutex;

use super::LimitKey;

/// How long what was admitted waits to be counted.
pub(super) const EVERY: Duration = Duration::from_millis(50);
/// Requests that a key must have free at least, beside the half of its burst that is decided about in Redis: more than come in [`EVERY`].
const FREE: u32 = 100;
/// Keys of which is known how far ahead they are; those not met for longest are forgotten first.
const REMEMBERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deferral {
    /// It is decided about in Redis.
    Ask,
    /// It is admitted, and whoever counts for the others counts it too.
    Admitted,
    /// It is admitted, and nobody counts yet: the caller has to begin that.
    AdmittedFirst,
    /// It is refused for so long: it would be in Redis, too, where no key is less far ahead.
    Refused(Duration),
}

/// What is known of keys, and what is still to be counted.
pub(super) struct DeferredCounts(Mutex<DeferredState>);

struct DeferredState {
    /// The moment of each key, as [`RequestRate::next`] has it: no later than it would be in Redis if everything was counted there.
    moments: LruCache<LimitKey, Instant>,
    uncounted: HashMap<LimitKey, u32>,
    is_counted: bool,
}

impl Default for DeferredCounts {
    fn default() -> Self {
        let (moments, uncounted) = (LruCache::new(REMEMBERED), HashMap::new());
        Self(Mutex::new(DeferredState { moments, uncounted, is_counted: false }))
    }
}

impl DeferredCounts {
    /// Admits a request if all of its keys are known to be far from their limit, and refuses it if one is known to have to wait.
    pub(super) fn admit(&self, rate: RequestRate, keys: &[LimitKey], now: Instant) -> Deferral {
        let interval = Duration::from_micros(rate.interval_micros());
        let span = Duration::from_micros(rate.span_micros());
        let half = span / 2;
        let mut state = self.0.lock();
        // What it would be ahead after this request; none when nothing is known of it.
        let ahead = |key: &LimitKey| Some(state.moments.peek(key)?.saturating_duration_since(now) + interval);
        let wait = keys.iter().filter_map(ahead).map(|ahead| ahead.saturating_sub(span)).max();
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            return Deferral::Refused(wait);
        }
        if half < interval * FREE || !keys.iter().all(|key| ahead(key).is_some_and(|ahead| ahead <= half)) {
            return Deferral::Ask;
        }
        for (position, key) in keys.iter().enumerate() {
            // One that is named twice is one.
            if keys.iter().take(position).any(|earlier| earlier == key) {
                continue;
            }
            if let Some(moment) = state.moments.get_mut(key) {
                *moment = (*moment).max(now) + interval;
            }
            *state.uncounted.entry(*key).or_default() += 1;
        }
        if mem::replace(&mut state.is_counted, true) { Deferral::Admitted } else { Deferral::AdmittedFirst }
    }

    /// What is to be counted now. None when nothing has come: whoever counts ends then, and the next request begins anew.
    pub(super) fn take(&self) -> Option<Vec<(LimitKey, u32)>> {
        let mut state = self.0.lock();
        if state.uncounted.is_empty() {
            state.is_counted = false;
            return None;
        }
        Some(mem::take(&mut state.uncounted).into_iter().collect())
    }

    /// How often each of these keys is to be counted: whoever asks about them counts that.
    pub(super) fn take_of(&self, keys: &[LimitKey]) -> Vec<u32> {
        let mut state = self.0.lock();
        let counts = keys.iter().map(|key| state.uncounted.get(key).copied().unwrap_or(0)).collect();
        for key in keys {
            state.uncounted.remove(key);
        }
        counts
    }

    /// Notes how far ahead keys are by what is counted in Redis.
    pub(super) fn learn(&self, ahead: impl IntoIterator<Item = (LimitKey, Duration)>, now: Instant) {
        let mut state = self.0.lock();
        for (key, ahead) in ahead {
            let known = state.moments.get_or_insert_mut(key, || now);
            *known = (*known).max(now + ahead);
        }
    }

    /// Has every request decided about in Redis, or without it while it is away, until that has told of its keys anew.
    pub(super) fn forget(&self) {
        self.0.lock().moments.clear();
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::config::rate::parse_rate;

    use super::*;
    use crate::limits::{
        FailureRule, RateLimiter,
        tests::{now, patient, redis, server},
    };

    fn rate(text: &str) -> RequestRate {
        parse_rate(text).unwrap().unwrap()
    }

    fn key(name: &str) -> LimitKey {
        LimitKey::account(name)
    }

    #[test]
    fn half_a_burst_is_admitted_without_asking_and_counted_together() {
        let (counts, rate, now) = (DeferredCounts::default(), rate("1/h burst 1000"), Instant::now());
        let admit = || counts.admit(rate, &[key("ada"), key("ada")], now);
        assert_eq!(admit(), Deferral::Ask, "nothing is known of it");
        counts.learn([(key("ada"), Duration::ZERO)], now);
        assert_eq!(admit(), Deferral::AdmittedFirst);
        assert_eq!((1..=1000).take_while(|_| admit() == Deferral::Admitted).count(), 499);
        assert_eq!(admit(), Deferral::Ask);
        assert!(counts.take() == Some(vec![(key("ada"), 500)]));
        assert!(counts.take().is_none());
        counts.learn([(key("ada"), Duration::ZERO)], now);
        assert_eq!(admit(), Deferral::Ask, "Redis may not have heard of all that was admitted");
        counts.forget();
        counts.learn([(key("ada"), Duration::ZERO)], now);
        assert_eq!(admit(), Deferral::AdmittedFirst);
    }

    #[test]
    fn whoever_has_to_wait_is_refused_without_asking_until_then() {
        let (counts, rate, now) = (DeferredCounts::default(), rate("1/h burst 5"), Instant::now());
        let hours = Duration::from_hours;
        let both = [key("new"), key("ada")];
        counts.learn([(key("ada"), hours(5))], now);
        assert_eq!(counts.admit(rate, &both, now), Deferral::Refused(hours(1)));
        assert_eq!(counts.admit(rate, &both, now + hours(1)), Deferral::Ask);
        assert_eq!(
            counts.admit(rate, &both[..1], now),
            Deferral::Ask,
            "another key has nothing to do with it"
        );
        assert!(counts.take().is_none());
    }

    #[test]
    fn whoever_is_near_one_limit_is_decided_about_in_redis_and_so_is_every_small_burst() {
        let (counts, now) = (DeferredCounts::default(), Instant::now());
        counts.learn([(key("far"), Duration::ZERO), (key("near"), Duration::from_hours(500))], now);
        let both = [key("far"), key("near")];
        assert_eq!(counts.admit(rate("1/h burst 1000"), &both, now), Deferral::Ask);
        assert!(counts.take().is_none(), "none of its keys is charged");
        assert_eq!(counts.admit(rate("1/h burst 199"), &both[..1], now), Deferral::Ask);
        assert_eq!(counts.admit(rate("1/h burst 200"), &both[..1], now), Deferral::AdmittedFirst);
    }

    #[tokio::test]
    async fn what_one_process_has_admitted_counts_for_the_others() {
        let Some(url) = server() else { return };
        let (redis, rate) = (redis(&url), rate("1/h burst 1000"));
        let [one, other] = [redis.clone(), redis]
            .map(|redis| RateLimiter::counted_in(Some(patient(redis)), Some(rate), FailureRule::SIGN_IN));
        for _ in 0..400 {
            one.admit(&[key("ada")], now()).await.unwrap();
        }
        let shared = one.0.shared.as_ref().unwrap();
        let uncounted = shared.deferred.take().unwrap();
        assert!(uncounted == [(key("ada"), 399)], "the first one was asked for");
        shared.count(rate, &uncounted).await;
        let mut passed = 0;
        while other.admit(&[key("ada")], now()).await.is_ok() {
            passed += 1;
        }
        assert_eq!(passed, 600, "what the other has admitted itself is counted when it has to ask");
        assert!(one.admit(&[key("ada")], now()).await.is_ok(), "it has not heard of that yet");
        shared.count(rate, &shared.deferred.take().unwrap_or_default()).await;
        assert!(one.admit(&[key("ada")], now()).await.is_err());
    }
}
