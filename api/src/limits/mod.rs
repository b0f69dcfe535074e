//! How often one may ask, and how often one may guess a password. Counted in this process, or, when several share the work, in
//! Redis; while that is away each process counts by itself, and no request fails for it. Requests far from their limit are counted there a
//! moment later.

mod attempt;
mod deferred;
mod local;
mod redis;
mod starts;
#[cfg(test)]
mod tests;

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::{Duration, Instant},
};

use lectern_shared::{clock::Timestamp, ids::ApiTokenId, redis::Redis};
use sha2::{Digest, Sha256};

use self::{
    attempt::{AttemptId, AttemptOutcome, AttemptRecord, CounterScope},
    deferred::Deferral,
    local::LocalCounters,
    redis::RedisCounters,
    starts::RequestStarts,
};

pub(crate) use self::attempt::{AttemptKeys, PasswordAttempt};
use lectern_shared::config::rate::RequestRate;

/// What is counted for. A hash: it has the same size whatever a caller sends, and what leaves the process shows no token,
/// name or address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LimitKey([u8; 32]);

impl LimitKey {
    fn new(kind: &str, value: &[u8]) -> Self {
        Self(Sha256::new().chain_update(kind).chain_update([0]).chain_update(value).finalize().into())
    }

    /// A token, of whatever kind.
    pub(crate) fn credential(token: &str) -> Self {
        Self::new("credential", token.as_bytes())
    }

    /// An API token that has a rate of its own.
    pub(crate) fn token(id: ApiTokenId) -> Self {
        Self::new("token", id.as_uuid().as_bytes())
    }

    /// An account, or whatever else is guarded by a password.
    pub(crate) fn account(name: &str) -> Self {
        Self::new("account", name.as_bytes())
    }

    /// An address; of IPv6 the network of 64 bits, of which one subscriber has all addresses.
    pub(crate) fn address(address: IpAddr) -> Self {
        let network = match address.to_canonical() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64),
        };
        Self::new("address", &network.octets())
    }

    /// An account and an address together.
    pub(crate) fn pair(account: Self, address: Self) -> Self {
        Self::new("pair", &[account.0, address.0].concat())
    }

    /// The hash itself.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A refusal: the same may be admitted after this time, which is never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many; again after {0:?}")]
pub(crate) struct RetryAfter(Duration);

impl RetryAfter {
    /// So many seconds.
    pub(crate) const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    fn unless_zero(wait: Duration) -> Result<(), Self> {
        if wait.is_zero() { Ok(()) } else { Err(Self(wait)) }
    }

    /// The time in whole seconds, rounded up, so at least 1.
    pub(crate) fn seconds(self) -> u64 {
        self.0.as_secs() + u64::from(self.0.subsec_nanos() > 0)
    }
}

/// How many failures make one wait.
#[derive(Clone, Copy, Debug)]
struct FailureRule {
    failures: usize,
    within: Duration,
}

impl FailureRule {
    const SIGN_IN: Self = Self { failures: 10, within: Duration::from_mins(10) };

    fn within_micros(self) -> u64 {
        u64::try_from(self.within.as_micros()).unwrap_or(u64::MAX)
    }
}

/// Every limit on how often something is done. Cheap to clone; clones count together.
#[derive(Clone)]
pub(crate) struct RateLimiter(Arc<LimiterState>);

struct LimiterState {
    rate: Option<RequestRate>,
    starts: Option<RequestStarts>,
    rule: FailureRule,
    local: LocalCounters,
    shared: Option<RedisCounters>,
}

impl RateLimiter {
    /// Limits requests to `rate`, and failed sign-ins always. With `redis`, all processes that use the same prefix count
    /// together.
    pub(crate) fn new(rate: Option<RequestRate>, redis: Option<Redis>) -> Self {
        let shared = redis.map(|redis| RedisCounters::new(redis, redis::PATIENCE));
        Self::counted_in(shared, rate, FailureRule::SIGN_IN)
    }

    fn counted_in(shared: Option<RedisCounters>, rate: Option<RequestRate>, rule: FailureRule) -> Self {
        let (starts, local) = (rate.map(RequestStarts::new), LocalCounters::default());
        Self(Arc::new(LimiterState { rate, starts, rule, local, shared }))
    }

    /// Whether requests are limited at all.
    pub(crate) fn limits_requests(&self) -> bool {
        self.0.rate.is_some()
    }

    /// Does what a request asks for, where requests are limited: after those of its address that began before it, a few of which are
    /// worked on at once.
    pub(crate) async fn in_turn<T>(&self, address: LimitKey, work: impl Future<Output = T>) -> T {
        match &self.0.starts {
            Some(starts) => starts.in_turn(address, work).await,
            None => work.await,
        }
    }

    /// Counts a request for every one of `keys`, or for none of them when it is refused.
    ///
    /// # Errors
    /// How long to wait, when one of the keys has made too many.
    pub(crate) async fn admit(&self, keys: &[LimitKey], now: Timestamp) -> Result<(), RetryAfter> {
        let Some(rate) = self.0.rate.filter(|_| !keys.is_empty()) else { return Ok(()) };
        let deferred = self.0.shared.as_ref().map(|shared| shared.deferred.admit(rate, keys, Instant::now()));
        match deferred {
            None | Some(Deferral::Ask) => self.admit_at(rate, keys, now).await,
            Some(Deferral::Refused(wait)) => RetryAfter::unless_zero(wait),
            Some(Deferral::Admitted) => Ok(()),
            Some(Deferral::AdmittedFirst) => {
                let limits = Arc::clone(&self.0);
                tokio::spawn(async move { limits.count_deferred(rate).await });
                Ok(())
            }
        }
    }

    /// [`RateLimiter::admit`] at another rate than the settings'.
    pub(crate) async fn admit_at(
        &self,
        rate: RequestRate,
        keys: &[LimitKey],
        now: Timestamp,
    ) -> Result<(), RetryAfter> {
        if let Some(shared) = &self.0.shared
            && let Some(decision) = shared.admit(rate, keys).await
        {
            return decision;
        }
        self.0.local.admit(rate, keys, now)
    }

    /// Whether guesses from an address have to wait, whatever they are at: where Redis counts them, this process knows besides what has failed
    /// here. Whoever may go on is asked again when the guess [begins](RateLimiter::begin).
    ///
    /// # Errors
    /// How long to wait.
    pub(crate) fn may_guess(&self, address: &LimitKey, now: Timestamp) -> Result<(), RetryAfter> {
        match &self.0.shared {
            Some(_) => self.0.local.look_at(self.0.rule, address, now),
            // What is being looked at counts here, and is not to keep others of its address from waiting for their turn.
            None => Ok(()),
        }
    }

    /// Begins a guess at a password. It counts at once, so that many at a time do not slip through together, and is taken back
    /// when it turns out to be right, or to be none.
    ///
    /// # Errors
    /// How long to wait, when there were too many failures; it does not count then.
    pub(crate) async fn begin(
        &self,
        guess: AttemptKeys,
        now: Timestamp,
    ) -> Result<PasswordAttempt, RetryAfter> {
        let id = rand::random();
        let counted = AttemptRecord { guess, id, at: now, place: CounterScope::Shared };
        let attempt = PasswordAttempt::new(Arc::clone(&self.0), counted);
        let decision = match &self.0.shared {
            Some(shared) => shared.begin(self.0.rule, &guess, id).await,
            None => None,
        };
        match decision {
            Some(Ok(())) => Ok(attempt),
            Some(Err(wait)) => {
                attempt.refused();
                Err(wait)
            }
            // An answer that came too late may have counted it in Redis: refused here, it is taken back there.
            None => {
                self.0.local.begin(self.0.rule, &guess, id, now)?;
                Ok(attempt.counted_locally())
            }
        }
    }
}

impl LimiterState {
    /// What of a decision is counted in this process.
    fn settle_locally(&self, counted: &AttemptRecord, decision: AttemptOutcome) {
        let AttemptRecord { guess, id, at, place } = counted;
        match (decision, place) {
            (AttemptOutcome::Succeeded, _) => self.local.succeeded(guess, *id),
            (AttemptOutcome::Undecided, _) => self.local.undecided(guess, *id),
            (AttemptOutcome::Failed, CounterScope::Local) => {}
            // Noted here too, lest Redis's going away be a fresh start.
            (AttemptOutcome::Failed, CounterScope::Shared) => self.local.failed(self.rule, guess, *id, *at),
        }
    }

    /// Counts what was admitted without asking, until nothing comes any more.
    async fn count_deferred(&self, rate: RequestRate) {
        let Some(shared) = &self.shared else { return };
        loop {
            tokio::time::sleep(deferred::EVERY).await;
            let Some(counts) = shared.deferred.take() else { return };
            shared.count(rate, &counts).await;
        }
    }

    /// What of a decision is counted in Redis, even if the attempt was counted here: an answer that came too late may have counted
    /// it there as well.
    async fn settle_in_redis(&self, counted: &AttemptRecord, decision: AttemptOutcome) {
        let Some(shared) = &self.shared else { return };
        match decision {
            AttemptOutcome::Succeeded => shared.succeeded(&counted.guess, counted.id).await,
            AttemptOutcome::Undecided => shared.undecided(&counted.guess, counted.id).await,
            AttemptOutcome::Failed => {}
        }
    }
}
