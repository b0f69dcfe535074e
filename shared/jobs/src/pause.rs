//! How long what has failed waits before it is tried again.

use std::time::Duration;

use lectern_shared::retry::{JitterRange, RetryBackoff, jitter};

/// No attempt is later than this after the one before.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// The pauses before an attempt is repeated.
const PAUSES: RetryBackoff = RetryBackoff { first: Duration::from_secs(2), longest: LONGEST_PAUSE };

/// The first pauses when it is the source that cannot be had: a site that is started anew is away for minutes. Further ones are as long
/// as can be.
const SOURCE_PAUSES: [Duration; 3] =
    [Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(2)];

/// How long a failed attempt's next one waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPause {
    /// What failed in the service may be over in seconds.
    Service,
    /// The source cannot be had now. Its server may have said for how long.
    Source(Option<Duration>),
}

impl RetryPause {
    /// The pause after the `attempts`-th failure: longer each time, and shortened by up to a half at random, so that jobs which failed
    /// together do not come back together. What a server asks for is heeded, within bounds.
    pub(crate) fn after(self, attempts: i64) -> Duration {
        let failures = u32::try_from(attempts).unwrap_or(0);
        let (pause, asked) = match self {
            Self::Service => (PAUSES.delay(failures), None),
            Self::Source(asked) => {
                let pause = SOURCE_PAUSES.get(failures.saturating_sub(1) as usize);
                (pause.copied().unwrap_or(LONGEST_PAUSE), asked)
            }
        };
        jitter(pause, JitterRange::Equal).max(asked.unwrap_or_default().min(LONGEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_and_has_an_end() {
        let after = |attempts| RetryPause::Service.after(attempts);
        for _ in 0..100 {
            assert!((1..=2).contains(&after(1).as_millis().div_ceil(1000)));
            assert!(after(3) >= Duration::from_secs(4) && after(3) <= Duration::from_secs(8));
            assert!(after(1_000) <= LONGEST_PAUSE);
        }
    }

    #[test]
    fn a_source_that_is_away_for_minutes_is_asked_again_after_that() {
        let minute = Duration::from_mins(1);
        for _ in 0..100 {
            // Of five attempts, the last comes so long after the first.
            let all: Duration = (1..5).map(|attempts| RetryPause::Source(None).after(attempts)).sum();
            assert!((6 * minute..13 * minute).contains(&all), "{all:?}");
            assert!(RetryPause::Source(None).after(1) <= Duration::from_secs(5), "a hiccup is over at once");
            assert!(RetryPause::Source(None).after(1_000) <= LONGEST_PAUSE);
        }
    }

    #[test]
    fn what_a_server_asks_for_is_heeded_within_bounds() {
        let after = |seconds| RetryPause::Source(Some(Duration::from_secs(seconds))).after(1);
        assert_eq!(after(90), Duration::from_secs(90));
        assert_eq!(after(86_400), Duration::from_mins(10), "a document does not wait for a day");
        assert!(after(0) > Duration::from_secs(2), "it is not asked again at once");
    }
}
