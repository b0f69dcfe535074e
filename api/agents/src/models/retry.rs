//! When a failed try is repeated, and after how long.

use std::time::Duration;

use lectern_shared::retry::{self, JitterRange, RetryBackoff, jitter};
use reqwest::header::HeaderMap;

use super::{ChatErrorKind, settings::RequestSetting};

/// Requests that one call may send in all, besides those that a model refused for a setting.
const MAX_ATTEMPTS: u32 = 3;

/// The pauses before the second try and each further one.
const PAUSES: RetryBackoff =
    RetryBackoff { first: Duration::from_millis(200), longest: Duration::from_millis(51_200) };

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
                | ChatErrorKind::Upstream { status: Some(408 | 425 | 500..=599) }
        );
        Self { kind, retry_after: None, retryable, refused: None }
    }

    /// An unsuccessful status, of a response or of an event that names one.
    pub(super) const fn from_status(status: u16) -> Self {
        Self::new(ChatErrorKind::from_status(status, None))
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

    /// The pause before the same is asked again, when `failed` requests have failed: what the provider asked for, if it asked,
    /// or else growing pauses of which a random half keeps callers from coming back all at once. None when it is not asked again.
    pub(super) fn pause(&self, failed: u32) -> Option<Duration> {
        if !self.retryable || failed >= MAX_ATTEMPTS {
            return None;
        }
        let jittered = jitter(PAUSES.delay(failed), JitterRange::Equal);
        Some(self.retry_after.map_or(jittered, |asked| asked.max(jittered)))
    }
}

/// The wait that an answer's headers ask for: in the milliseconds of some providers, or as everybody does.
pub(super) fn requested_wait(headers: &HeaderMap) -> Option<Duration> {
    let millis = headers.get("retry-after-ms").and_then(|value| value.to_str().ok()?.trim().parse().ok());
    millis.map(Duration::from_millis).or_else(|| retry::retry_after(headers))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

    use super::requested_wait;

    fn asked(pairs: &[(&'static str, &'static str)]) -> Option<Duration> {
        let headers: HeaderMap = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        requested_wait(&headers)
    }

    #[test]
    fn the_wait_in_milliseconds_comes_before_the_one_that_everybody_names() {
        assert_eq!(asked(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        let milliseconds = [("retry-after", "7"), ("retry-after-ms", " 1500 ")];
        assert_eq!(asked(&milliseconds), Some(Duration::from_millis(1500)));
        let nonsense = [("retry-after", "7"), ("retry-after-ms", "soon")];
        assert_eq!(asked(&nonsense), Some(Duration::from_secs(7)));
        assert_eq!(asked(&[]), None);
    }
}
