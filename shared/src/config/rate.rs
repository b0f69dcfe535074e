//! A rate as an operator writes it, and the arithmetic of the generic cell rate algorithm (GCRA): one moment a key, before
//! which its next request is early. Source: ITU-T Recommendation I.371, annex A, the virtual scheduling algorithm.

use std::time::Duration;

use crate::clock::Timestamp;

/// Requests for which one that rests may be ahead, in multiples of the rate's number, when no burst is given.
const DEFAULT_BURST: u32 = 10;
/// The highest rate that can be set, a second: moments are whole microseconds, and this keeps the error of rounding to them
/// under one in a hundred.
const HIGHEST: u64 = 10_000;
/// The largest burst that can be set.
const LARGEST_BURST: u32 = 1_000_000;

const EXPECTED: &str = "expected a number of requests a second, a minute or an hour, such as `200/s`, `60/m` or \
                        `200/s burst 500`, or `off`";

/// How many requests one key may make: a steady rate, and a burst after a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    /// Between two requests of the steady rate; whole microseconds, at least 100.
    interval: Duration,
    /// Requests at once after a rest; at least one.
    burst: u32,
}

impl RequestRate {
    /// So many requests a minute, at least one, all of which may come at once after a minute's rest: who is promised five a minute
    /// does not wait between them.
    pub fn per_minute(requests: u32) -> Self {
        let requests = requests.max(1);
        let interval = Duration::from_mins(1) / requests;
        Self { interval: interval.max(Duration::from_micros(100)), burst: requests }
    }
}

/// Reads `200/s`, `60/m`, `1000/h`, each with ` burst N` after it or with a burst of ten times the number; none is `off`.
///
/// # Errors
/// What is wrong with the text, and what would be right.
pub fn parse_rate(text: &str) -> Result<Option<RequestRate>, String> {
    let words: Vec<_> = text.split_whitespace().collect();
    let (rate, burst) = match *words.as_slice() {
        ["off"] => return Ok(None),
        [rate] => (rate, None),
        [rate, "burst", burst] => (rate, Some(burst)),
        _ => return Err(EXPECTED.to_owned()),
    };
    let (requests, period) = rate.split_once('/').ok_or(EXPECTED)?;
    let period = match period {
        "s" => Duration::from_secs(1),
        "m" => Duration::from_mins(1),
        "h" => Duration::from_hours(1),
        _ => return Err(EXPECTED.to_owned()),
    };
    let requests: u32 = requests.parse().map_err(|_| EXPECTED)?;
    if requests == 0 {
        return Err("no request could ever be made; `off` limits nothing".to_owned());
    }
    if u64::from(requests) > HIGHEST * period.as_secs() {
        return Err(format!("the highest rate is {HIGHEST} a second; `off` limits nothing"));
    }
    // To the nearest microsecond.
    let interval = (period + Duration::from_nanos(500) * requests) / requests;
    let interval = Duration::from_micros(micros(interval));
    let burst = match burst {
        None => requests.saturating_mul(DEFAULT_BURST).min(LARGEST_BURST),
        Some(burst) => burst
            .parse()
            .ok()
            .filter(|burst| (1..=LARGEST_BURST).contains(burst))
            .ok_or_else(|| format!("the burst must be a number between 1 and {LARGEST_BURST}"))?,
    };
    Ok(Some(RequestRate { interval, burst }))
}

impl RequestRate {
    /// Microseconds between two requests of the steady rate.
    pub fn interval_micros(self) -> u64 {
        micros(self.interval)
    }

    /// How far ahead of the steady rate a key may be, in microseconds.
    pub fn span_micros(self) -> u64 {
        micros(self.span())
    }

    fn span(self) -> Duration {
        self.interval.saturating_mul(self.burst)
    }

    /// What a key's moment is after something that costs as much as `units` requests and cannot be refused any more, and how long
    /// its answer is to be held back. A key is never further ahead than that its answers are held back for `longest`.
    pub fn charge(
        self,
        before: Timestamp,
        now: Timestamp,
        units: u32,
        longest: Duration,
    ) -> (Timestamp, Duration) {
        let free = now.plus(self.span());
        let furthest = free.plus(longest);
        let cost = self.interval.saturating_mul(units).min(furthest.since(now));
        let next = before.clamp(now, furthest).plus(cost).min(furthest);
        (next, next.since(free))
    }

    /// What a key's moment would be after one more request, and how long that request must wait. `before` is the moment
    /// now, `now` that of a key without one.
    pub fn next(self, before: Timestamp, now: Timestamp) -> (Timestamp, Duration) {
        // Later than a whole burst ahead it can only be when the clock was set back, or the rate was another.
        let next = before.max(now).min(now.plus(self.span())).plus(self.interval);
        (next, next.since(now.plus(self.span())))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> RequestRate {
        parse_rate(text).unwrap().unwrap()
    }

    #[test]
    fn a_rate_has_a_burst_of_ten_times_its_number_unless_it_says_otherwise() {
        assert_eq!(rate("200/s"), RequestRate { interval: Duration::from_millis(5), burst: 2_000 });
        assert_eq!(rate("60/m"), RequestRate { interval: Duration::from_secs(1), burst: 600 });
        assert_eq!(rate("1/h burst 3"), RequestRate { interval: Duration::from_hours(1), burst: 3 });
        assert_eq!(rate("3/s burst 1").interval, Duration::from_micros(333_333));
        assert_eq!(rate("7/s").interval, Duration::from_micros(142_857));
        assert_eq!(rate("  200/s   burst 500 ").burst, 500);
        assert_eq!(rate("10000/s").interval, Duration::from_micros(100));
        assert_eq!(rate("36000000/h").burst, LARGEST_BURST);
        assert_eq!(parse_rate("off"), Ok(None));
    }

    #[test]
    fn a_minutes_requests_may_come_at_once_and_are_earned_back_in_a_minute() {
        let now = Timestamp::from_micros(1_800_000_000_000_000);
        for requests in [1, 5, 60, 90_000, u32::MAX] {
            let rate = RequestRate::per_minute(requests);
            assert_eq!(rate.burst, requests);
            assert!(rate.interval >= Duration::from_micros(100), "{requests}");
        }
        let rate = RequestRate::per_minute(5);
        let mut moment = now;
        for _ in 0..5 {
            let (next, wait) = rate.next(moment, now);
            assert_eq!(wait, Duration::ZERO);
            moment = next;
        }
        let seconds = Duration::from_secs;
        assert_eq!(rate.next(moment, now).1, seconds(12));
        assert_eq!(rate.next(moment, now.plus(seconds(12))).1, Duration::ZERO);
        assert_eq!(rate.span_micros(), 60_000_000);
    }

    #[test]
    fn a_text_that_is_no_rate_is_refused_with_what_would_be_right() {
        for text in [
            "fast",
            "",
            "200",
            "200/",
            "/s",
            "200/d",
            "-1/s",
            "1.5/s",
            "200/s burst",
            "200/s 500",
            "200/s/m",
            "99999999999/s",
            "200 / s",
        ] {
            let problem = parse_rate(text).unwrap_err();
            assert!(problem.contains("200/s"), "{text:?}: {problem}");
        }
        for (text, hint) in [
            ("0/s", "`off`"),
            ("10001/s", "10000 a second"),
            ("200/s burst 0", "between 1 and"),
            ("200/s burst many", "between 1 and"),
            ("200/s burst 1000001", "between 1 and"),
        ] {
            let problem = parse_rate(text).unwrap_err();
            assert!(problem.contains(hint), "{text:?}: {problem}");
        }
    }
}
