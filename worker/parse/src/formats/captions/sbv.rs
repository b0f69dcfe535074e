//! SBV, and `SubViewer` from which it comes: `0:00:01.000,0:00:02.000` above each cue.

use super::{
    FoundCues,
    blocks::{self, BlockDialect, CueTiming},
    clock::clock,
};

/// Reads all cues.
pub(super) fn read(text: &str) -> FoundCues {
    blocks::read(text, &BlockDialect { timing: times, is_webvtt: false })
}

/// A line that is nothing but two times.
pub(super) fn times(line: &str) -> Option<CueTiming<'_>> {
    let line = line.trim();
    let (start, end) = line.split_once(',')?;
    let is_time = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | '-' | ' ');
    if !line.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        || start.matches(':').count() != 2
        || !start.contains('.')
        || !end.chars().all(is_time)
    {
        return None;
    }
    let start = clock(start)?;
    Some(CueTiming { start: Some(start), end: clock(end), text: "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_times_are_a_line_of_times() {
        let timing = |start, end| Some(CueTiming { start: Some(start), end, text: "" });
        for (line, expected) in [
            ("0:00:01.000,0:00:02.500", timing(1_000, Some(2_500))),
            (" 100:00:00.5 , 100:00:01.5 ", timing(360_000_500, Some(360_001_500))),
            ("0:00:01.000,0:0", timing(1_000, Some(0))),
            ("0:00:01.000,", timing(1_000, None)),
            ("1,2", None),
            ("0:00:01,000", None),
            ("0:00:01.000,then", None),
            ("at 0:00:01.000,0:00:02.000", None),
        ] {
            assert_eq!(times(line), expected, "{line:?}");
        }
    }
}
