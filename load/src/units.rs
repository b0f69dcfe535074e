//! What is written on the command line: rates, and how much more memory is too much.

use std::{fmt, str::FromStr, time::Duration};

use bytesize::ByteSize;

/// A text that is not what an option takes.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum UnitError {
    /// Not a rate.
    #[error("a rate is written 5/s, 90/m or 0/s")]
    Rate,
    /// Not an allowance.
    #[error("an allowance is written 10%, 16MiB or 10%+16MiB")]
    Allowance,
}

/// So many in so much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoadRate {
    count: u32,
    per: Duration,
}

impl LoadRate {
    /// Whether anything is to be done at all.
    pub(crate) fn is_any(self) -> bool {
        self.count > 0
    }

    /// When the `number`th is due, counted from the begin. It follows from the number alone, so no delay adds up.
    pub(crate) fn due(self, number: u64) -> Duration {
        if self.count == 0 {
            return Duration::MAX;
        }
        let nanos = self.per.as_nanos() * u128::from(number) / u128::from(self.count);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many are due before `end`.
    pub(crate) fn due_before(self, end: Duration) -> u64 {
        let count = (end.as_nanos() * u128::from(self.count)).div_ceil(self.per.as_nanos().max(1));
        u64::try_from(count).unwrap_or(u64::MAX)
    }
}

impl FromStr for LoadRate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (count, unit) = text.split_once('/').ok_or(UnitError::Rate)?;
        let per = match unit.trim() {
            "s" => Duration::from_secs(1),
            "m" => Duration::from_mins(1),
            "h" => Duration::from_hours(1),
            _ => return Err(UnitError::Rate),
        };
        Ok(Self { count: count.trim().parse().map_err(|_| UnitError::Rate)?, per })
    }
}

impl fmt::Display for LoadRate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.per.as_secs() {
            1 => "s",
            60 => "m",
            _ => "h",
        };
        write!(formatter, "{}/{unit}", self.count)
    }
}

/// By how much something may be larger in the end than it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GrowthAllowance {
    percent: f64,
    bytes: u64,
}

impl GrowthAllowance {
    /// The most that `before` may have become.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes of processes are far below 2^53, and none is negative"
    )]
    pub(crate) fn limit(self, before: u64) -> u64 {
        let share = before as f64 * self.percent / 100.0;
        before.saturating_add(share as u64).saturating_add(self.bytes)
    }
}

impl FromStr for GrowthAllowance {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let mut allowance = Self { percent: 0.0, bytes: 0 };
        for part in text.split('+').map(str::trim) {
            match part.strip_suffix('%') {
                Some(percent) => {
                    let percent: f64 = percent.trim().parse().map_err(|_| UnitError::Allowance)?;
                    if !(percent.is_finite() && percent >= 0.0) {
                        return Err(UnitError::Allowance);
                    }
                    allowance.percent += percent;
                }
                None => {
                    let size: ByteSize = part.parse().map_err(|_| UnitError::Allowance)?;
                    allowance.bytes = allowance.bytes.saturating_add(size.as_u64());
                }
            }
        }
        Ok(allowance)
    }
}

impl fmt::Display for GrowthAllowance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} % and {}", self.percent, mebibytes(self.bytes))
    }
}

/// Bytes as people read them: `85.2 MiB`.
pub(crate) fn mebibytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is rounded to a tenth of a mebibyte")]
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    format!("{mebibytes:.1} MiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> LoadRate {
        text.parse().unwrap()
    }

    #[test]
    fn rates_are_read_in_seconds_minutes_and_hours() {
        assert_eq!(rate("5/s"), LoadRate { count: 5, per: Duration::from_secs(1) });
        assert_eq!(rate(" 90 / m "), LoadRate { count: 90, per: Duration::from_mins(1) });
        assert_eq!(rate("1/h").to_string(), "1/h");
        for wrong in ["", "5", "5/d", "-1/s", "1.5/s", "/s"] {
            assert_eq!(wrong.parse::<LoadRate>(), Err(UnitError::Rate), "{wrong:?}");
        }
    }

    #[test]
    fn a_schedule_does_not_drift() {
        let third = rate("3/s");
        assert_eq!(third.due(0), Duration::ZERO);
        assert_eq!(third.due(1), Duration::from_nanos(333_333_333));
        // Adding up a third of a second would be a millisecond off by now.
        assert_eq!(third.due(3_000_000), Duration::from_secs(1_000_000));
    }

    #[test]
    fn what_is_due_before_an_end_is_counted_without_the_end_itself() {
        assert_eq!(rate("20/s").due_before(Duration::from_secs(2)), 40);
        assert_eq!(rate("3/s").due_before(Duration::from_millis(334)), 2);
        assert_eq!(rate("7/m").due_before(Duration::ZERO), 0);
        for number in [0, 1, 5, 999] {
            let due = rate("7/m").due(number);
            assert_eq!(rate("7/m").due_before(due + Duration::from_nanos(1)), number + 1);
        }
    }

    #[test]
    fn nothing_is_ever_due_at_a_rate_of_zero() {
        assert!(!rate("0/s").is_any());
        assert_eq!(rate("0/s").due(1), Duration::MAX);
        assert_eq!(rate("0/s").due_before(Duration::from_hours(1)), 0);
    }

    #[test]
    fn an_allowance_is_a_share_and_a_size() {
        let allowance: GrowthAllowance = "10%+16MiB".parse().unwrap();
        assert_eq!(allowance.limit(100 << 20), 126 << 20);
        assert_eq!("1%".parse::<GrowthAllowance>().unwrap().limit(1_000), 1_010);
        assert_eq!("0%".parse::<GrowthAllowance>().unwrap().limit(1_000), 1_000);
        assert_eq!("1KiB".parse::<GrowthAllowance>().unwrap().limit(0), 1_024);
        for wrong in ["", "ten", "-5%", "nan%", "10%+", "inf%"] {
            assert_eq!(wrong.parse::<GrowthAllowance>(), Err(UnitError::Allowance), "{wrong:?}");
        }
    }
}
