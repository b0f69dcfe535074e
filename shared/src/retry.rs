//! How long to wait before something is tried again: growing delays, chance in them, and what a server asks for.

use std::time::Duration;

use chrono::DateTime;
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// Exponential delays.
#[derive(Clone, Copy, Debug)]
pub struct RetryBackoff {
    /// After the first failure; twice as long after each further one.
    pub first: Duration,
    /// Never longer.
    pub longest: Duration,
}

impl RetryBackoff {
    /// The delay after so many failures in a row, of which the first is 1.
    pub fn delay(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }
}

/// How far chance may move a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterRange {
    /// A fifth shorter or longer at most.
    Fifth,
    /// A half shorter or longer at most.
    Half,
    /// A half shorter at most, and never longer.
    Equal,
}

/// `base` shortened or lengthened at random, so that those who started or failed together do not act together.
pub fn jitter(base: Duration, range: JitterRange) -> Duration {
    let (least, most) = match range {
        JitterRange::Fifth => (0.8, 1.2),
        JitterRange::Half => (0.5, 1.5),
        JitterRange::Equal => (0.5, 1.0),
    };
    base.mul_f64(rand::random_range(least..=most))
}

/// How long an answer's `Retry-After` asks to wait: seconds, or a date, which is read against the answer's own `Date`, so
/// that the two clocks need not agree.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let asked = text(RETRY_AFTER)?;
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let now = DateTime::parse_from_rfc2822(text(DATE)?).ok()?;
    let then = DateTime::parse_from_rfc2822(asked).ok()?;
    Some(then.signed_duration_since(now).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn delays_double_to_their_limit() {
        let backoff = RetryBackoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
        for (failures, seconds) in [(0, 1), (1, 1), (2, 2), (3, 4), (5, 16), (6, 30), (u32::MAX, 30)] {
            assert_eq!(backoff.delay(failures), Duration::from_secs(seconds), "{failures}");
        }
        let endless = RetryBackoff { first: Duration::from_secs(u64::MAX), longest: Duration::MAX };
        assert_eq!(endless.delay(u32::MAX), Duration::MAX);
    }

    #[test]
    fn chance_stays_within_its_range() {
        for (range, least, most) in
            [(JitterRange::Fifth, 8, 12), (JitterRange::Half, 5, 15), (JitterRange::Equal, 5, 10)]
        {
            let drawn: Vec<_> = (0..100).map(|_| jitter(Duration::from_secs(10), range)).collect();
            let allowed = Duration::from_secs(least)..=Duration::from_secs(most);
            assert!(drawn.iter().all(|delay| allowed.contains(delay)), "{range:?}: {drawn:?}");
            assert!(drawn.iter().any(|delay| *delay != drawn[0]), "{range:?}: {drawn:?}");
        }
    }

    #[test]
    fn a_server_says_when_to_come_back_in_seconds_or_as_a_date() {
        let seconds = headers(&[(RETRY_AFTER, " 7 ")]);
        assert_eq!(retry_after(&seconds), Some(Duration::from_secs(7)));
        let date = [(DATE, "Wed, 21 Oct 2015 07:28:00 GMT"), (RETRY_AFTER, "Wed, 21 Oct 2015 07:29:30 GMT")];
        assert_eq!(retry_after(&headers(&date)), Some(Duration::from_secs(90)));
        let past = [(DATE, "Wed, 21 Oct 2015 07:28:00 GMT"), (RETRY_AFTER, "Wed, 21 Oct 2015 07:00:00 GMT")];
        assert_eq!(retry_after(&headers(&past)), Some(Duration::ZERO));
        let no_clock = [(RETRY_AFTER, "Wed, 21 Oct 2015 07:28:30 GMT")];
        assert_eq!(retry_after(&headers(&no_clock)), None);
        for nonsense in ["soon", "-1", "1.5"] {
            assert_eq!(retry_after(&headers(&[(RETRY_AFTER, nonsense)])), None, "{nonsense}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
