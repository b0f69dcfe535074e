//! How figures are written.

use std::{fmt::Write as _, time::Duration};

use crate::stats::LatencyHistogram;

/// The median and the 95th percentile, both less `off` milliseconds.
pub(crate) fn both(latency: &LatencyHistogram, off: f64) -> String {
    let less = |share| (latency.at(share) - off).max(0.0);
    format!("{:.1} / {:.1} ms", less(0.5), less(0.95))
}

/// A time in milliseconds: `41 ms`.
pub(crate) fn millis(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

/// The one in the middle; zero of none.
pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Each process or program with its size, in millions of bytes.
pub(crate) fn megabytes(sizes: &[(String, u64)]) -> String {
    let mut text = String::new();
    for (name, bytes) in sizes {
        if !text.is_empty() {
            text.push_str(", ");
        }
        #[expect(clippy::cast_precision_loss, reason = "it is rounded to a tenth of a million")]
        let millions = *bytes as f64 / 1e6;
        if sizes.len() > 1 {
            // Writing to a string cannot fail.
            let _ = write!(text, "{} ", name.trim_start_matches("lectern-"));
        }
        let _ = write!(text, "{millions:.1} MB");
    }
    text
}

/// A whole number as people read it: `1,000,000`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        let millis = |numbers: &[u64]| numbers.iter().map(|&n| Duration::from_millis(n)).collect::<Vec<_>>();
        assert_eq!(median(&mut millis(&[9, 1, 5])), Duration::from_millis(5));
        assert_eq!(median(&mut []), Duration::ZERO);
    }

    #[test]
    fn what_the_model_takes_is_taken_off_and_nothing_becomes_negative() {
        let mut latency = LatencyHistogram::new();
        (0..100).for_each(|_| latency.add(Duration::from_millis(10)));
        assert_eq!(both(&latency, 4.0), "6.0 / 6.0 ms");
        assert_eq!(both(&latency, 40.0), "0.0 / 0.0 ms");
    }

    #[test]
    fn sizes_of_several_processes_are_told_apart() {
        let one = ("lectern".to_owned(), 52_340_000);
        let other = ("lectern-worker".to_owned(), 1_000_000);
        assert_eq!(megabytes(std::slice::from_ref(&one)), "52.3 MB");
        assert_eq!(megabytes(&[one, other]), "lectern 52.3 MB, worker 1.0 MB");
    }

    #[test]
    fn thousands_are_told_apart() {
        let shown = [0, 999, 1_000, 12_345, 1_000_000].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,000,000"]);
    }
}
