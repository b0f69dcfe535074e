//! Counters in Redis, where all processes of an installation count together. Each decision is one script, so one round trip
//! and indivisible, by Redis's own clock: those of the processes differ.

use std::time::{Duration, Instant};

use ::redis::{ErrorKind, RedisError, Script};
use parking_lot::Mutex;

use super::{AttemptId, AttemptKeys, FailureRule, LimitKey, RetryAfter, deferred::DeferredCounts};
use lectern_shared::config::rate::RequestRate;
use lectern_shared::{redis::Redis, secrets::hex};

/// The longest that a request waits for Redis.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// How long Redis is left alone after it did not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// Charges every key for the requests of its that were admitted before they were counted, and for so many more (one or none), unless one must
/// wait for that. Returns the microseconds to wait, and those that each key is ahead then. See `RequestRate::next`, which this repeats.
const ADMIT: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, span, more = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local wait, moments = 0, {}
for i, before in ipairs(redis.call('MGET', unpack(KEYS))) do
    local counted = math.max(tonumber(before or now), now) + tonumber(ARGV[i + 3]) * interval
    moments[i] = math.min(counted, now + span)
    wait = math.max(wait, moments[i] + more * interval - now - span)
end
if wait > 0 then
    more = 0
end
local told = {wait}
for i, key in ipairs(KEYS) do
    local charged = more + tonumber(ARGV[i + 3])
    local moment = moments[i] + more * interval
    if charged > 0 then
        local lasts = string.format('%.0f', math.ceil((moment - now) / 1000))
        redis.call('SET', key, string.format('%.0f', moment), 'PX', lasts)
    end
    told[i + 1] = moment - now
end
return told";
/// Keys that one script is about.
const TOGETHER: usize = 500;

/// Counts a guess for every key, unless one of the first so many must wait. Returns the microseconds to wait.
const BEGIN: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local within, most, refusing = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local wait = 0
for i, key in ipairs(KEYS) do
    redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - within))
    local count = redis.call('ZCARD', key)
    if i <= refusing and count >= most then
        local last = redis.call('ZRANGE', key, count - most, count - most, 'WITHSCORES')
        wait = math.max(wait, math.min(last[2] + within - now, within))
    end
end
if wait > 0 then
    return wait
end
for _, key in ipairs(KEYS) do
    redis.call('ZADD', key, string.format('%.0f', now), ARGV[3])
    redis.call('PEXPIRE', key, string.format('%.0f', math.ceil(within / 1000)))
end
return 0";

/// Takes a guess back, and forgives the first so many keys.
const TAKE_BACK: &str = r"
for i, key in ipairs(KEYS) do
    if i <= tonumber(ARGV[2]) then
        redis.call('DEL', key)
    else
        redis.call('ZREM', key, ARGV[1])
    end
end";

/// The counters of an installation. Every question is answered by none when Redis does not answer in time.
pub(super) struct RedisCounters {
    redis: Redis,
    patience: Duration,
    breaker: CircuitBreaker,
    admit: Script,
    begin: Script,
    take_back: Script,
    /// Requests that are admitted without asking.
    pub(super) deferred: DeferredCounts,
}

impl RedisCounters {
    /// Counters in `redis`, which is away when it does not answer within `patience`.
    pub(super) fn new(redis: Redis, patience: Duration) -> Self {
        Self {
            redis,
            patience,
            breaker: CircuitBreaker(Mutex::new(BreakerState::Asked)),
            admit: Script::new(ADMIT),
            begin: Script::new(BEGIN),
            take_back: Script::new(TAKE_BACK),
            deferred: DeferredCounts::default(),
        }
    }

    /// As [`super::local::Local::admit`].
    pub(super) async fn admit(&self, rate: RequestRate, keys: &[LimitKey]) -> Option<Result<(), RetryAfter>> {
        let uncounted = self.deferred.take_of(keys);
        let counts: Vec<_> = keys.iter().copied().zip(uncounted).collect();
        self.charge(rate, &counts, 1).await.map(RetryAfter::unless_zero)
    }

    /// Counts requests that were admitted without asking. They are not counted anywhere when Redis does not answer.
    pub(super) async fn count(&self, rate: RequestRate, counts: &[(LimitKey, u32)]) {
        for some in counts.chunks(TOGETHER) {
            if self.charge(rate, some, 0).await.is_none() {
                self.deferred.forget();
            }
        }
    }

    /// Charges keys for so many requests each, and for so many more if none must wait; how long one must.
    async fn charge(&self, rate: RequestRate, counts: &[(LimitKey, u32)], more: u8) -> Option<Duration> {
        let told = self.ask(async {
            let mut call = self.admit.prepare_invoke();
            for (key, _) in counts {
                call.key(self.name("rate", key));
            }
            call.arg(rate.interval_micros()).arg(rate.span_micros()).arg(more);
            for (_, count) in counts {
                call.arg(*count);
            }
            call.invoke_async::<Vec<u64>>(&mut self.redis.connection()).await
        });
        let told: Vec<_> = told.await?.into_iter().map(Duration::from_micros).collect();
        let (wait, ahead) = told.split_first()?;
        self.deferred.learn(counts.iter().map(|(key, _)| *key).zip(ahead.iter().copied()), Instant::now());
        Some(*wait)
    }

    /// As [`super::local::Local::begin`].
    pub(super) async fn begin(
        &self,
        rule: FailureRule,
        guess: &AttemptKeys,
        id: AttemptId,
    ) -> Option<Result<(), RetryAfter>> {
        let wait = self.ask(async {
            let mut call = self.begin.prepare_invoke();
            for key in guess.keys() {
                call.key(self.name("sign-in", key));
            }
            call.arg(rule.within_micros()).arg(rule.failures).arg(id).arg(guess.blocking_keys().count());
            call.invoke_async::<u64>(&mut self.redis.connection()).await
        });
        wait.await.map(|micros| RetryAfter::unless_zero(Duration::from_micros(micros)))
    }

    /// As [`super::local::Local::succeeded`], if Redis is there.
    pub(super) async fn succeeded(&self, guess: &AttemptKeys, id: AttemptId) {
        self.revoke_attempt(guess, id, 1).await;
    }

    /// As [`super::local::Local::undecided`], if Redis is there.
    pub(super) async fn undecided(&self, guess: &AttemptKeys, id: AttemptId) {
        self.revoke_attempt(guess, id, 0).await;
    }

    async fn revoke_attempt(&self, guess: &AttemptKeys, id: AttemptId, forgiven: usize) {
        self.ask(async {
            let mut call = self.take_back.prepare_invoke();
            for key in guess.keys() {
                call.key(self.name("sign-in", key));
            }
            call.arg(id).arg(forgiven);
            call.invoke_async::<()>(&mut self.redis.connection()).await
        })
        .await;
    }

    fn name(&self, kind: &str, key: &LimitKey) -> String {
        format!("{}:{kind}:{}", self.redis.prefix(), hex(&key.0))
    }

    /// Asks, unless Redis is away. Without an answer in time it is away.
    async fn ask<T>(&self, question: impl Future<Output = Result<T, RedisError>>) -> Option<T> {
        let permit = self.breaker.permit()?;
        let answer = tokio::time::timeout(self.patience, question).await;
        match answer.unwrap_or_else(|_| Err((ErrorKind::Io, "no answer in time").into())) {
            Ok(answer) => {
                self.breaker.answered(permit);
                Some(answer)
            }
            Err(error) => {
                self.breaker.failed(&error);
                None
            }
        }
    }
}

/// Keeps requests from waiting for a Redis that is known to be away, and says only once that it is.
struct CircuitBreaker(Mutex<BreakerState>);

#[derive(Clone, Copy)]
enum BreakerState {
    Asked,
    Away { again_at: Instant },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BreakerPermit {
    Ordinary,
    /// The one question that finds out whether Redis is back.
    Probe,
}

impl CircuitBreaker {
    fn permit(&self) -> Option<BreakerPermit> {
        let mut state = self.0.lock();
        match *state {
            BreakerState::Asked => Some(BreakerPermit::Ordinary),
            BreakerState::Away { again_at } => {
                let now = Instant::now();
                if now < again_at {
                    return None;
                }
                *state = BreakerState::Away { again_at: now + PAUSE };
                Some(BreakerPermit::Probe)
            }
        }
    }

    fn answered(&self, permit: BreakerPermit) {
        // The late answer to an ordinary question, from before Redis went away, says nothing about now.
        if permit == BreakerPermit::Probe {
            *self.0.lock() = BreakerState::Asked;
            tracing::info!("Redis is back; limits are counted there again");
        }
    }

    fn failed(&self, error: &RedisError) {
        let away = BreakerState::Away { again_at: Instant::now() + PAUSE };
        let before = std::mem::replace(&mut *self.0.lock(), away);
        if matches!(before, BreakerState::Asked) {
            tracing::warn!(%error, "Redis is away; until it is back, each process counts limits by itself");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc};

    use super::*;

    /// The log, as far as this thread writes it.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(line);
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn redis_is_left_alone_while_it_is_away_and_the_log_says_so_once() {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer({
            let log = log.clone();
            move || log.clone()
        });
        let said = |what: &str| String::from_utf8(log.0.lock().clone()).unwrap().matches(what).count();
        tracing::subscriber::with_default(subscriber.finish(), || {
            let breaker = CircuitBreaker(Mutex::new(BreakerState::Asked));
            let error = RedisError::from((ErrorKind::Io, "gone"));
            assert!(breaker.permit() == Some(BreakerPermit::Ordinary));
            for _ in 0..50 {
                breaker.failed(&error);
                assert!(breaker.permit().is_none());
            }
            assert_eq!((said("WARN"), said("INFO")), (1, 0));
            breaker.answered(BreakerPermit::Ordinary);
            assert!(breaker.permit().is_none(), "a late answer does not bring it back");

            while breaker.permit().is_none() {
                std::thread::yield_now();
            }
            assert!(breaker.permit().is_none(), "one question finds out, not all of them");
            breaker.answered(BreakerPermit::Probe);
            assert!(breaker.permit() == Some(BreakerPermit::Ordinary));
            assert_eq!((said("WARN"), said("INFO")), (1, 1));
        });
    }
}
