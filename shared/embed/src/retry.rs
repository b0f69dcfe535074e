//! When a request that failed is sent again.

use std::time::Duration;

use lectern_shared::retry::{JitterRange, RetryBackoff, jitter};
use reqwest::StatusCode;

/// The pause after so many failures in a row, of which the first is 1. A part of it is left to chance, so that those who
/// failed together do not come back together. What the server `asked` for is the least.
pub(super) fn pause(backoff: RetryBackoff, failures: u32, asked: Option<Duration>) -> Duration {
    match asked {
        Some(asked) => asked.saturating_add(backoff.first.mul_f64(rand::random())),
        None => jitter(backoff.delay(failures), JitterRange::Equal),
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

    #[test]
    fn pauses_grow_to_their_limit_and_are_never_shorter_than_asked() {
        let backoff = RetryBackoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
        for (failures, least, most) in [(1, 0.5, 1.0), (3, 2.0, 4.0), (6, 15.0, 30.0), (u32::MAX, 15.0, 30.0)]
        {
            let drawn = pause(backoff, failures, None).as_secs_f64();
            assert!((least..=most).contains(&drawn), "{failures}: {drawn}");
        }
        let asked = pause(backoff, 1, Some(Duration::from_secs(90))).as_secs_f64();
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
