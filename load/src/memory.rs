//! Whether a process takes more and more memory.

use std::time::Duration;

use crate::units::{GrowthAllowance, mebibytes};

/// What one process held at which time of the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemorySeries(Vec<(Duration, u64)>);

/// What is to be thought of a course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryGrowth {
    /// The process did not say what it holds.
    Unknown,
    /// There are no two intervals after the warm-up that could be compared.
    TooShort,
    /// Medians of the first interval after the warm-up and of the last one.
    Judged {
        /// In the first one, bytes.
        before: u64,
        /// In the last one, bytes.
        after: u64,
        /// The most that would have been good, bytes.
        limit: u64,
    },
}

impl MemoryGrowth {
    /// Whether it grew by more than is allowed.
    pub(crate) fn is_bad(self) -> bool {
        matches!(self, Self::Judged { after, limit, .. } if after > limit)
    }
}

impl MemorySeries {
    /// Adds what is held at `at`, counted from the begin of the run.
    pub(crate) fn add(&mut self, at: Duration, bytes: u64) {
        self.0.push((at, bytes));
    }

    /// The median of what was held from `from` to before `to`.
    pub(crate) fn median(&self, from: Duration, to: Duration) -> Option<u64> {
        let mut held: Vec<u64> =
            self.0.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, bytes)| *bytes).collect();
        held.sort_unstable();
        held.get(held.len() / 2).copied()
    }

    /// The most that was held.
    pub(crate) fn most(&self) -> Option<u64> {
        self.0.iter().map(|(_, bytes)| *bytes).max()
    }

    /// Compares the first interval after `warm_up` with the last one before `end`.
    pub(crate) fn growth(
        &self,
        warm_up: Duration,
        interval: Duration,
        end: Duration,
        allowance: GrowthAllowance,
    ) -> MemoryGrowth {
        if self.0.is_empty() {
            return MemoryGrowth::Unknown;
        }
        if warm_up + interval * 2 > end {
            return MemoryGrowth::TooShort;
        }
        let before = self.median(warm_up, warm_up + interval);
        let after = self.median(end.saturating_sub(interval), end);
        match (before, after) {
            (Some(before), Some(after)) => {
                MemoryGrowth::Judged { before, after, limit: allowance.limit(before) }
            }
            _ => MemoryGrowth::Unknown,
        }
    }
}

impl std::fmt::Display for MemoryGrowth {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Unknown => formatter.write_str("unknown: it does not say, or not at both times"),
            Self::TooShort => formatter.write_str(
                "not judged: the run has no two intervals after the warm-up that could be compared",
            ),
            Self::Judged { before, after, limit } => {
                let (before, after, limit) = (mebibytes(before), mebibytes(after), mebibytes(limit));
                let verdict = if self.is_bad() { "IT GROWS" } else { "does not grow" };
                write!(
                    formatter,
                    "{before} after the warm-up, {after} at the end, {limit} allowed: {verdict}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn course(held: impl Fn(u64) -> u64) -> MemorySeries {
        let mut course = MemorySeries::default();
        (0..60).for_each(|step| course.add(Duration::from_secs(step * 10), held(step)));
        course
    }

    fn growth(course: &MemorySeries, allowance: &str) -> MemoryGrowth {
        course.growth(MINUTE * 2, MINUTE, MINUTE * 10, allowance.parse().unwrap())
    }

    #[test]
    fn what_happens_in_the_warm_up_does_not_count() {
        let level = course(|step| if step < 12 { 10 + step } else { 1_000 });
        let level = growth(&level, "0%");
        assert_eq!(level, MemoryGrowth::Judged { before: 1_000, after: 1_000, limit: 1_000 });
        assert!(!level.is_bad());
    }

    #[test]
    fn a_leak_is_seen_and_an_allowance_is_given() {
        let leak = course(|step| 1_000 + step);
        assert!(growth(&leak, "0%").is_bad());
        assert!(growth(&leak, "4%").is_bad());
        assert!(!growth(&leak, "5%").is_bad());
        assert!(!growth(&leak, "1KiB").is_bad());
    }

    #[test]
    fn one_peak_is_no_growth() {
        let peak = course(|step| if step == 58 { 9_000 } else { 1_000 });
        assert!(!growth(&peak, "1%").is_bad());
        assert_eq!(peak.most(), Some(9_000));
    }

    #[test]
    fn nothing_is_said_of_what_is_not_known() {
        assert_eq!(growth(&MemorySeries::default(), "0%"), MemoryGrowth::Unknown);
        let course = course(|step| step);
        let short = course.growth(MINUTE * 2, MINUTE, MINUTE * 3, "0%".parse().unwrap());
        assert_eq!(short, MemoryGrowth::TooShort);
        assert!(!short.is_bad());
    }
}
