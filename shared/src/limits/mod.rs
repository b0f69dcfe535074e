//! How often one may ask, and how often one may guess a password. Counted in this process, or, when several share the work, in
//! Redis; while that is away each process counts by itself, and no request fails for it.

mod local;
mod rate;
mod redis;
#[cfg(test)]
mod tests;

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use sha2::{Digest, Sha256};
use tokio::{runtime::Handle, task::JoinHandle};

use self::{local::Local, redis::Shared};
use crate::{clock::Timestamp, redis::Redis};

pub use self::rate::{Rate, parse_rate};

/// Tells one attempt from another; random.
type AttemptId = u64;

/// What is counted for. A hash: it has the same size whatever a caller sends, and what leaves the process shows no token,
/// name or address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    fn new(kind: &str, value: &[u8]) -> Self {
        Self(Sha256::new().chain_update(kind).chain_update([0]).chain_update(value).finalize().into())
    }

    /// A token, of whatever kind.
    pub fn credential(token: &str) -> Self {
        Self::new("credential", token.as_bytes())
    }

    /// An account, or whatever else is guarded by a password.
    pub fn account(name: &str) -> Self {
        Self::new("account", name.as_bytes())
    }

    /// An address; of IPv6 the network of 64 bits, of which one subscriber has all addresses.
    pub fn address(address: IpAddr) -> Self {
        let network = match address.to_canonical() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64),
        };
        Self::new("address", &network.octets())
    }
}

/// A refusal: the same may be admitted after this time, which is never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many; again after {0:?}")]
pub struct RetryAfter(Duration);

impl RetryAfter {
    fn unless_zero(wait: Duration) -> Result<(), Self> {
        if wait.is_zero() { Ok(()) } else { Err(Self(wait)) }
    }

    /// The time in whole seconds, rounded up, so at least 1.
    pub fn seconds(self) -> u64 {
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
pub struct Limits(Arc<Inner>);

struct Inner {
    rate: Option<Rate>,
    rule: FailureRule,
    local: Local,
    shared: Option<Shared>,
}

impl Limits {
    /// Limits requests to `rate`, and failed sign-ins always. With `redis`, all processes that use the same prefix count
    /// together.
    pub fn new(rate: Option<Rate>, redis: Option<Redis>) -> Self {
        let shared = redis.map(|redis| Shared::new(redis, redis::PATIENCE));
        Self::counted_in(shared, rate, FailureRule::SIGN_IN)
    }

    fn counted_in(shared: Option<Shared>, rate: Option<Rate>, rule: FailureRule) -> Self {
        Self(Arc::new(Inner { rate, rule, local: Local::default(), shared }))
    }

    /// Whether requests are limited at all.
    pub fn limits_requests(&self) -> bool {
        self.0.rate.is_some()
    }

    /// Counts a request for every one of `keys`, or for none of them when it is refused.
    ///
    /// # Errors
    /// How long to wait, when one of the keys has made too many.
    pub async fn admit(&self, keys: &[Key], now: Timestamp) -> Result<(), RetryAfter> {
        let Some(rate) = self.0.rate.filter(|_| !keys.is_empty()) else { return Ok(()) };
        if let Some(shared) = &self.0.shared
            && let Some(decision) = shared.admit(rate, keys).await
        {
            return decision;
        }
        self.0.local.admit(rate, keys, now)
    }

    /// Begins an attempt to sign in. It counts against the account at once, so that many at a time do not slip through
    /// together, and against the address when it fails.
    ///
    /// # Errors
    /// How long to wait, when there were too many failures for the account or the address.
    pub async fn begin(
        &self,
        account: Key,
        address: Option<Key>,
        now: Timestamp,
    ) -> Result<Attempt, RetryAfter> {
        let id = rand::random();
        if let Some(shared) = &self.0.shared
            && let Some(decision) = shared.begin(self.0.rule, account, address, id).await
        {
            return decision.map(|()| self.attempt(account, address, id, now, Place::Shared));
        }
        self.0.local.begin(self.0.rule, account, address, id, now)?;
        Ok(self.attempt(account, address, id, now, Place::Local))
    }

    fn attempt(
        &self,
        account: Key,
        address: Option<Key>,
        id: AttemptId,
        at: Timestamp,
        place: Place,
    ) -> Attempt {
        let counted = Counted { account, address, id, at, place };
        Attempt { limits: Arc::clone(&self.0), counted, decided: false }
    }
}

impl Inner {
    /// What of a decision is counted in this process.
    fn settle_here(&self, counted: Counted, decision: Decision) {
        let Counted { account, address, id, at, place } = counted;
        match (decision, place) {
            (Decision::Succeeded, _) => self.local.succeeded(&account),
            (Decision::Failed, Place::Local) => {
                if let Some(address) = address {
                    self.local.failed(address, id, at);
                }
            }
            (Decision::Undecided, Place::Local) => self.local.undecided(&account, id),
            (Decision::Failed | Decision::Undecided, Place::Shared) => {}
        }
    }

    /// Whether something of a decision is counted in Redis.
    fn settles_there(&self, counted: Counted, decision: Decision) -> bool {
        self.shared.is_some()
            && match decision {
                Decision::Succeeded => true,
                Decision::Failed => counted.place == Place::Shared && counted.address.is_some(),
                Decision::Undecided => counted.place == Place::Shared,
            }
    }

    async fn settle_there(&self, counted: Counted, decision: Decision) {
        let Some(shared) = &self.shared else { return };
        let Counted { account, address, id, at, .. } = counted;
        match (decision, address) {
            (Decision::Succeeded, _) => shared.succeeded(account).await,
            (Decision::Undecided, _) => shared.undecided(account, id).await,
            (Decision::Failed, None) => {}
            (Decision::Failed, Some(address)) => {
                if shared.failed(self.rule, address, id).await.is_none() {
                    // What Redis cannot count any more is counted here, lest its going away be a fresh start.
                    self.local.failed(account, id, at);
                    self.local.failed(address, id, at);
                }
            }
        }
    }
}

/// Where an attempt was counted, and so is decided.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Local,
    Shared,
}

#[derive(Clone, Copy)]
struct Counted {
    account: Key,
    address: Option<Key>,
    id: AttemptId,
    at: Timestamp,
    place: Place,
}

#[derive(Clone, Copy)]
enum Decision {
    Failed,
    Succeeded,
    Undecided,
}

/// An attempt that is not decided yet. Dropped without a decision, it was none.
#[must_use = "an attempt that is dropped was none"]
pub struct Attempt {
    limits: Arc<Inner>,
    counted: Counted,
    decided: bool,
}

impl Attempt {
    /// The password was wrong.
    pub fn failed(mut self) -> Settled {
        self.settle(Decision::Failed)
    }

    /// The password was right: the account's earlier failures are forgiven, wherever they were counted.
    pub fn succeeded(mut self) -> Settled {
        self.settle(Decision::Succeeded)
    }

    fn settle(&mut self, decision: Decision) -> Settled {
        self.decided = true;
        let (limits, counted) = (Arc::clone(&self.limits), self.counted);
        limits.settle_here(counted, decision);
        if !limits.settles_there(counted, decision) {
            return Settled(None);
        }
        // In a task of its own: a client that goes away takes nothing back. Without a runtime the process is ending.
        let runtime = Handle::try_current().ok();
        Settled(
            runtime.map(|runtime| runtime.spawn(async move { limits.settle_there(counted, decision).await })),
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
pub struct Settled(Option<JoinHandle<()>>);

impl Settled {
    /// Waits until every later attempt sees the decision, or Redis turns out to be away.
    pub async fn wait(self) {
        if let Some(task) = self.0 {
            // It fails only when the runtime ends.
            let _ = task.await;
        }
    }
}
