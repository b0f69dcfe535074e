//! When a failed try is repeated, and after how long.

use std::time::Duration;

use chrono::DateTime;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use super::{ChatErrorKind, rejection::RequestSetting};

/// Requests that one call may send in all.
pub(super) const MAX_ATTEMPTS: u32 = 3;

/// The pause before the second try; doubled before each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// One try that failed.
#[derive(Debug)]
pub(super) struct AttemptFailure {
    /// The class of the failure.
    pub(super) kind: ChatErrorKind,
    /// How long the provider asked callers to wait.
    pub(super) retry_after: Option<Duration>,
    /// The same request may work in a moment, and nothing of this try was passed on.
    pub(super) retryable: bool,
    /// The request was rejected for a setting without which it may work.
    pub(super) refused: Option<RequestSetting>,
}

impl AttemptFailure {
    /// A failure whose class alone decides whether a repetition makes sense.
    pub(super) const fn new(kind: ChatErrorKind) -> Self {
        let retryable = matches!(
            kind,
            ChatErrorKind::RateLimited { .. }
                | ChatErrorKind::Connect
                | ChatErrorKind::Upstream { status: Some(425 | 500..=599) }
        );
        Self { kind, retry_after: None, retryable, refused: None }
    }

    /// An unsuccessful status, of a response or of an event that names one.
    pub(super) const fn from_status(status: u16) -> Self {
        let failure = Self::new(ChatErrorKind::from_status(status, None));
        // 408 says that the provider gave up waiting, which is no deadline of ours.
        Self { retryable: failure.retryable || status == 408, ..failure }
    }

    /// A wait of ours that ended; worth another try unless the deadline ended it.
    pub(super) const fn timed_out(retryable: bool) -> Self {
        Self { kind: ChatErrorKind::Timeout, retry_after: None, retryable, refused: None }
    }

    /// The same with the wait that the provider asked for.
    pub(super) fn after(self, wait: Option<Duration>) -> Self {
        let kind = match self.kind {
            ChatErrorKind::RateLimited { .. } => ChatErrorKind::RateLimited { retry_after: wait },
            kind => kind,
        };
        Self { kind, retry_after: wait, ..self }
    }

    /// The pause before the next try, when `attempts` requests have failed: what the provider asked for, if it asked,
    /// or else growing pauses of which a random half keeps callers from coming back all at once.
    pub(super) fn backoff_delay(&self, attempts: u32) -> Duration {
        let backoff = FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(8));
        let jittered = backoff.mul_f64(rand::random_range(0.5..=1.0));
        self.retry_after.map_or(jittered, |asked| asked.max(jittered))
    }
}

/// The wait that an answer's headers ask for. A date is read against the answer's own `Date`, so that the two clocks
/// need not agree.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|value| value.parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let value = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = DateTime::parse_from_rfc2822(value).ok()?;
    let now = DateTime::parse_from_rfc2822(text(DATE.as_str())?).ok()?;
    Some((until - now).to_std().unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

    use super::retry_after;

    fn asked(pairs: &[(&'static str, &'static str)]) -> Option<Duration> {
        let headers: HeaderMap = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        retry_after(&headers)
    }

    #[test]
    fn the_wait_is_read_from_seconds_milliseconds_and_dates() {
        assert_eq!(asked(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(
            asked(&[("retry-after", "7"), ("retry-after-ms", "1500")]),
            Some(Duration::from_millis(1500))
        );
        let date = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(
            asked(&[date, ("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT")]),
            Some(Duration::from_secs(30))
        );
        assert_eq!(asked(&[date, ("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT")]), Some(Duration::ZERO));
        assert_eq!(asked(&[("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT")]), None);
        assert_eq!(asked(&[("retry-after", "soon")]), None);
        assert_eq!(asked(&[]), None);
    }
}
