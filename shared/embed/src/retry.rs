//! When a request that failed is sent again.

use std::time::Duration;

use chrono::DateTime;
use reqwest::{
    StatusCode,
    header::{DATE, HeaderMap, HeaderName, RETRY_AFTER},
};

/// How long to wait before a request is sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryBackoff {
    /// After the first failure; twice as long after each further one.
    pub(super) first: Duration,
    /// Never longer, unless the server asks for it.
    pub(super) longest: Duration,
}

impl RetryBackoff {
    /// The pause after so many failures in a row, of which the first is 1. A part of it is left to chance, so that those
    /// who failed together do not come back together. What the server `asked` for is the least.
    pub(super) fn after(self, failures: u32, asked: Option<Duration>) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
        let full = self.first.saturating_mul(doubled).min(self.longest);
        match asked {
            Some(asked) => asked.saturating_add(self.first.mul_f64(rand::random())),
            None => full.mul_f64(rand::random_range(0.5..1.0)),
        }
    }
}

/// Whether an answer of this status may be another one the next time.
pub(super) fn is_passing(status: StatusCode) -> bool {
    match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED => false,
        status => status.is_server_error(),
    }
}

/// How long the server asks to be left alone: seconds, or a moment, which is taken against the server's own clock.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let asked = text(RETRY_AFTER)?;
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let now = DateTime::parse_from_rfc2822(text(DATE)?).ok()?;
    let then = DateTime::parse_from_rfc2822(asked).ok()?;
    Some(then.signed_duration_since(now).to_std().unwrap_or_default())
}

/// Why no answer came, in words that name no address and hold nothing of the request.
pub(super) fn reason(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "it does not answer in time"
    } else if error.is_connect() {
        "no connection to it can be made"
    } else {
        "the connection to it broke"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_server_says_when_to_come_back_in_seconds_or_as_a_moment() {
        let seconds = headers(&[(RETRY_AFTER, " 7 ")]);
        assert_eq!(retry_after(&seconds), Some(Duration::from_secs(7)));
        let moment =
            [(DATE, "Wed, 21 Oct 2015 07:28:00 GMT"), (RETRY_AFTER, "Wed, 21 Oct 2015 07:29:30 GMT")];
        assert_eq!(retry_after(&headers(&moment)), Some(Duration::from_secs(90)));
        let past = [(DATE, "Wed, 21 Oct 2015 07:28:00 GMT"), (RETRY_AFTER, "Wed, 21 Oct 2015 07:00:00 GMT")];
        assert_eq!(retry_after(&headers(&past)), Some(Duration::ZERO));
        for nonsense in ["soon", "-1", "1.5"] {
            assert_eq!(retry_after(&headers(&[(RETRY_AFTER, nonsense)])), None, "{nonsense}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn pauses_grow_to_their_limit_and_are_never_shorter_than_asked() {
        let pauses = RetryBackoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
        for (failures, least, most) in [(1, 0.5, 1.0), (3, 2.0, 4.0), (6, 15.0, 30.0), (u32::MAX, 15.0, 30.0)]
        {
            let pause = pauses.after(failures, None).as_secs_f64();
            assert!((least..=most).contains(&pause), "{failures}: {pause}");
        }
        let asked = pauses.after(1, Some(Duration::from_secs(90))).as_secs_f64();
        assert!((90.0..=91.0).contains(&asked), "{asked}");
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for status in [408, 425, 429, 500, 502, 503, 504, 529] {
            assert!(is_passing(StatusCode::from_u16(status).unwrap()), "{status}");
        }
        for status in [200, 302, 400, 401, 403, 404, 413, 422, 501, 505] {
            assert!(!is_passing(StatusCode::from_u16(status).unwrap()), "{status}");
        }
    }
}
