//! Failed sign-ins are counted, per account and per address.

use std::{
    collections::VecDeque,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroUsize,
    time::Duration,
};

use axum::http::StatusCode;
use lectern_shared::{clock::Timestamp, secrets::sha256};
use lru::LruCache;
use parking_lot::Mutex;

use crate::error::ApiError;

const FAILURES: usize = 10;
const WITHIN: Duration = Duration::from_mins(10);
/// Accounts and addresses that are remembered; those not met for longest are forgotten first.
const REMEMBERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(49_999);

/// What failures are counted for. A hash, so that a key has the same size whatever a caller sends.
type Key = [u8; 32];

/// Counts failed sign-ins.
pub(crate) struct Throttle {
    failures: Mutex<LruCache<Key, VecDeque<Timestamp>>>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self { failures: Mutex::new(LruCache::new(REMEMBERED)) }
    }
}

/// An attempt that is not decided yet. Dropped without a decision, it was none.
pub(crate) struct Attempt<'a> {
    throttle: &'a Throttle,
    account: Key,
    address: Option<Key>,
    counted_at: Timestamp,
    decided: bool,
}

/// The account's name as a key.
fn account_key(account: &str) -> Key {
    sha256(format!("account {account}").as_bytes())
}

/// The address as a key; of IPv6 the network, of which one subscriber has all addresses.
fn address_key(address: IpAddr) -> Key {
    let network = match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    };
    sha256(format!("address {network}").as_bytes())
}

impl Throttle {
    /// Begins an attempt. It counts against the account at once, so that many at a time do not slip through together, and
    /// against the address when it fails.
    ///
    /// # Errors
    /// 429 when there were too many failures for the account or the address.
    pub(crate) fn attempt(
        &self,
        account: &str,
        address: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Attempt<'_>, ApiError> {
        let (account, address) = (account_key(account), address.map(address_key));
        let mut failures = self.failures.lock();
        let mut wait = Duration::ZERO;
        for key in std::iter::once(&account).chain(&address) {
            let Some(times) = failures.get_mut(key) else { continue };
            times.retain(|time| *time > now.minus(WITHIN));
            if let Some(oldest) = times.front().filter(|_| times.len() >= FAILURES) {
                wait = wait.max(oldest.plus(WITHIN).since(now));
            }
        }
        if wait > Duration::ZERO {
            let message = "Too many failed sign-ins. Wait before you try again.";
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_attempts", message);
            return Err(ApiError { retry_after: Some(wait.as_secs().max(1)), ..error });
        }
        failures.get_or_insert_mut(account, VecDeque::new).push_back(now);
        Ok(Attempt { throttle: self, account, address, counted_at: now, decided: false })
    }
}

impl Attempt<'_> {
    /// The password was wrong.
    pub(crate) fn failed(mut self) {
        self.decided = true;
        if let Some(address) = self.address {
            let mut failures = self.throttle.failures.lock();
            failures.get_or_insert_mut(address, VecDeque::new).push_back(self.counted_at);
        }
    }

    /// The password was right: the account's earlier failures are forgiven.
    pub(crate) fn succeeded(mut self) {
        self.decided = true;
        self.throttle.failures.lock().pop(&self.account);
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.decided
            && let Some(times) = self.throttle.failures.lock().get_mut(&self.account)
            && let Some(at) = times.iter().rposition(|time| *time == self.counted_at)
        {
            times.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn after_ten_failures_an_account_must_wait_and_a_success_clears_it() {
        let throttle = Throttle::default();
        for _ in 0..9 {
            throttle.attempt("ada", None, NOW).unwrap().failed();
        }
        throttle.attempt("ada", None, NOW).unwrap().succeeded();
        for _ in 0..10 {
            throttle.attempt("ada", None, NOW).unwrap().failed();
        }
        let error = throttle.attempt("ada", None, NOW).err().unwrap();
        assert_eq!((error.status.as_u16(), error.retry_after), (429, Some(600)));
        throttle.attempt("bob", None, NOW).unwrap();
        throttle.attempt("ada", None, NOW.plus(WITHIN)).unwrap();
    }

    #[test]
    fn many_guesses_at_once_do_not_slip_through_together() {
        let throttle = Throttle::default();
        let undecided: Vec<_> = (0..20).map_while(|_| throttle.attempt("ada", None, NOW).ok()).collect();
        assert_eq!(undecided.len(), FAILURES);
        // None of them was decided, so none of them counts.
        drop(undecided);
        throttle.attempt("ada", None, NOW).unwrap();
    }

    #[test]
    fn an_address_is_blocked_by_failures_only_and_an_ipv6_network_counts_as_one() {
        let throttle = Throttle::default();
        for person in 0..30 {
            throttle
                .attempt(&format!("person {person}"), Some(address("192.0.2.1")), NOW)
                .unwrap()
                .succeeded();
        }
        for guess in 0..10 {
            let from = Some(address(&format!("2001:db8:1:2::{guess}")));
            throttle.attempt(&format!("account {guess}"), from, NOW).unwrap().failed();
        }
        assert!(throttle.attempt("another", Some(address("2001:db8:1:2:ffff::1")), NOW).is_err());
        throttle.attempt("another", Some(address("2001:db8:1:3::1")), NOW).unwrap();
    }
}
