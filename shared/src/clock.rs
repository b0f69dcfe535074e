//! Time. Everything that asks for the time takes a [`Clock`], so that tests can set it and a worker can follow
//! its database's clock instead of its own.

use std::{
    fmt,
    ops::RangeInclusive,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};

/// A moment, to the microsecond. Stored as a `BIGINT` of microseconds since 1970 (UTC), which both databases sort
/// and compare alike; shown as `2026-01-31T08:00:00.000000+00:00`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, sqlx::Type)]
#[sqlx(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment `micros` microseconds after 1970-01-01T00:00:00Z.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970-01-01T00:00:00Z.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// The moment `by` later; saturates at the end of time.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The moment `by` earlier; saturates at the beginning of time.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero when it is not after.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The first moment of its calendar month, in UTC.
    #[must_use]
    pub fn month_start(self) -> Self {
        let first = DateTime::<Utc>::from_timestamp_micros(self.0)
            .and_then(|time| NaiveDate::from_ymd_opt(time.year(), time.month(), 1))
            .map(|first| first.and_time(NaiveTime::MIN).and_utc().timestamp_micros());
        Self(first.unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = DateTime::<Utc>::from_timestamp_micros(self.0).unwrap_or_default();
        f.write_str(&time.to_rfc3339_opts(SecondsFormat::Micros, false))
    }
}

/// Microseconds of the moments whose years have four digits, as the form in which times are shown has them.
const SHOWN: RangeInclusive<i64> = -62_167_219_200_000_000..=253_402_300_799_999_999;

/// The text is not a time of RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time")]
pub struct InvalidTimestamp;

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// Reads a time of RFC 3339, of whatever offset, such as `2026-01-31T09:00:00+01:00`. One whose year in UTC has not four digits any more
    /// is none.
    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let micros = DateTime::parse_from_rfc3339(text).map_err(|_| InvalidTimestamp)?.timestamp_micros();
        if SHOWN.contains(&micros) { Ok(Self(micros)) } else { Err(InvalidTimestamp) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where the time comes from. Cheap to clone; clones share one source.
#[derive(Clone, Debug)]
pub struct Clock(Arc<ClockSource>);

#[derive(Debug)]
enum ClockSource {
    System { offset: AtomicI64 },
    Manual { now: AtomicI64 },
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Arc::new(ClockSource::System { offset: AtomicI64::new(0) }))
    }

    /// A clock that stands still until it is moved.
    pub fn manual(start: Timestamp) -> Self {
        Self(Arc::new(ClockSource::Manual { now: AtomicI64::new(start.0) }))
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        match &*self.0 {
            ClockSource::System { offset } => {
                #[expect(clippy::disallowed_methods, reason = "this is the clock that the ban points to")]
                let now = Utc::now().timestamp_micros();
                Timestamp(now.saturating_add(offset.load(Ordering::Relaxed)))
            }
            ClockSource::Manual { now } => Timestamp(now.load(Ordering::Relaxed)),
        }
    }

    /// Moves a manual clock forward; does nothing to the machine's clock.
    pub fn advance(&self, by: Duration) {
        match &*self.0 {
            ClockSource::System { .. } => {}
            ClockSource::Manual { now } => {
                now.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
            }
        }
    }

    /// Makes this clock show `reference` now: later readings are the machine's clock plus the difference. Does
    /// nothing to a manual clock.
    pub fn follow(&self, reference: Timestamp) {
        match &*self.0 {
            ClockSource::System { offset } => {
                let own = self.now().0.saturating_sub(offset.load(Ordering::Relaxed));
                offset.store(reference.0.saturating_sub(own), Ordering::Relaxed);
            }
            ClockSource::Manual { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_the_form_that_the_interface_promises() {
        assert_eq!(Timestamp::from_micros(0).to_string(), "1970-01-01T00:00:00.000000+00:00");
        let json = serde_json::to_string(&Timestamp::from_micros(1_700_000_000_000_042)).unwrap();
        assert_eq!(json, "\"2023-11-14T22:13:20.000042+00:00\"");
    }

    #[test]
    fn a_time_that_is_read_can_be_shown_in_that_form() {
        for (text, shown) in [
            ("2026-01-31T09:00:00+01:00", Some("2026-01-31T08:00:00.000000+00:00")),
            ("9999-12-31T23:59:59.9999999Z", Some("9999-12-31T23:59:59.999999+00:00")),
            ("9999-12-31T23:59:60Z", None),
            ("9999-12-31T23:59:59-01:00", None),
            ("0000-01-01T00:00:00Z", Some("0000-01-01T00:00:00.000000+00:00")),
            ("0000-01-01T00:00:00+01:00", None),
        ] {
            let read = text.parse::<Timestamp>().ok().map(|time| time.to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn a_clock_that_follows_another_shows_its_time() {
        let clock = Clock::system();
        let reference = clock.now().plus(Duration::from_hours(1));
        clock.follow(reference);
        assert!(clock.now() >= reference);
        clock.follow(reference.minus(Duration::from_hours(2)));
        assert!(clock.now() < reference);
    }

    #[test]
    fn a_month_begins_with_its_first_day_in_utc() {
        for (moment, first) in [
            ("2026-01-31T23:59:59.999999Z", "2026-01-01T00:00:00Z"),
            ("2026-02-01T00:00:00Z", "2026-02-01T00:00:00Z"),
            ("2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z"),
            ("2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z"),
        ] {
            let start = moment.parse::<Timestamp>().unwrap().month_start();
            assert_eq!(start, first.parse().unwrap(), "{moment}");
        }
    }
}
