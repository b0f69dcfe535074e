//! Failed sign-ins are counted, per account and per address.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use axum::http::StatusCode;
use lectern_shared::clock::Timestamp;
use parking_lot::Mutex;

use crate::error::ApiError;

const FAILURES: usize = 10;
const WITHIN: Duration = Duration::from_mins(10);
/// Accounts and addresses that are remembered; past it, those that are quiet are forgotten.
const REMEMBERED: usize = 50_000;

/// Counts failed sign-ins.
#[derive(Default)]
pub(crate) struct Throttle {
    failures: Mutex<HashMap<String, VecDeque<Timestamp>>>,
}

impl Throttle {
    /// Counts an attempt before it is decided, so that many at once do not slip through together.
    ///
    /// # Errors
    /// 429 when there were too many failures for one of the keys.
    pub(crate) fn attempt(&self, keys: &[String], now: Timestamp) -> Result<(), ApiError> {
        let mut failures = self.failures.lock();
        let since = now.minus(WITHIN);
        if failures.len() > REMEMBERED {
            failures.retain(|_, times| times.back().is_some_and(|last| *last > since));
        }
        let mut wait = Duration::ZERO;
        for key in keys {
            let Some(times) = failures.get_mut(key) else { continue };
            times.retain(|time| *time > since);
            if let Some(oldest) = times.front().filter(|_| times.len() >= FAILURES) {
                wait = wait.max(oldest.plus(WITHIN).since(now));
            }
        }
        if wait > Duration::ZERO {
            let message = "Too many failed sign-ins. Wait before you try again.";
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_attempts", message);
            return Err(ApiError { retry_after: Some(wait.as_secs().max(1)), ..error });
        }
        for key in keys {
            failures.entry(key.clone()).or_default().push_back(now);
        }
        Ok(())
    }

    /// An attempt was right: it does not count, and neither do the account's earlier failures. Those of the address do.
    pub(crate) fn succeeded(&self, account: &str, address: &str) {
        let mut failures = self.failures.lock();
        failures.remove(account);
        if let Some(times) = failures.get_mut(address) {
            times.pop_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_ten_failures_one_must_wait_and_a_success_clears_the_account() {
        let throttle = Throttle::default();
        let now = Timestamp::from_micros(1_800_000_000_000_000);
        let keys = ["account".to_owned(), "address".to_owned()];
        for _ in 0..9 {
            throttle.attempt(&keys, now).unwrap();
        }
        throttle.attempt(&keys, now).unwrap();
        throttle.succeeded("account", "address");
        throttle.attempt(&keys, now).unwrap();
        let error = throttle.attempt(&keys, now).unwrap_err();
        assert_eq!((error.status.as_u16(), error.retry_after), (429, Some(600)));
        throttle.attempt(&["account".to_owned()], now).unwrap();
        throttle.attempt(&keys, now.plus(WITHIN)).unwrap();
    }
}
