//! Formats made of lines: a line of times, and the lines of text below it.

use super::{FoundCues, RawCue, clock::clock, markup};

/// How a format of lines differs from the others.
pub(super) struct BlockDialect {
    /// Reads a line of times.
    pub(super) timing: fn(&str) -> Option<CueTiming<'_>>,
    /// A line after a blank one and before the times may be the cue's name, whatever it says, and blocks without times may be
    /// comments, styles and regions.
    pub(super) is_webvtt: bool,
}

/// A line of times, in milliseconds as far as they could be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CueTiming<'a> {
    pub(super) start: Option<u32>,
    pub(super) end: Option<u32>,
    /// Text on the same line.
    pub(super) text: &'a str,
}

struct BlockLine<'a> {
    text: &'a str,
    begins_block: bool,
}

/// The cue that is being read, or what stands before the first one.
#[derive(Default)]
struct OpenCue<'a> {
    timing: Option<CueTiming<'a>>,
    lines: Vec<BlockLine<'a>>,
    /// Whether no blank line follows the last line.
    touches: bool,
}

/// Reads all cues. Blank lines need not stand where they should: what is between two lines of times belongs to the first.
pub(super) fn read(text: &str, dialect: &BlockDialect) -> FoundCues {
    let mut found = FoundCues::default();
    let mut open = OpenCue::default();
    let mut is_numbered = false;
    let mut after_blank = true;
    let mut in_comment = false;
    for text in text.lines() {
        if text.trim().is_empty() {
            (after_blank, in_comment, open.touches) = (true, false, false);
            continue;
        }
        if let Some(timing) = (dialect.timing)(text) {
            is_numbered |= open.forget_name(dialect, is_numbered);
            open.close(&mut found);
            open = OpenCue { timing: Some(timing), ..OpenCue::default() };
            in_comment = false;
        } else {
            in_comment |= dialect.is_webvtt && after_blank && is_comment(text);
            if !in_comment {
                open.lines.push(BlockLine { text, begins_block: after_blank });
                open.touches = true;
            }
        }
        after_blank = false;
    }
    // The number of a cue that was cut off.
    if is_numbered && open.lines.last().is_some_and(|line| line.begins_block && is_number(line.text)) {
        open.lines.pop();
    }
    open.close(&mut found);
    found
}

impl OpenCue<'_> {
    /// Takes away the number or the name of the next cue; tells whether it was a number.
    fn forget_name(&mut self, dialect: &BlockDialect, is_numbered: bool) -> bool {
        let Some(last) = self.lines.last().filter(|_| self.touches) else { return false };
        let is_number = is_number(last.text) && (last.begins_block || is_numbered);
        if is_number || (dialect.is_webvtt && last.begins_block) {
            self.lines.pop();
        }
        is_number
    }

    fn close(self, found: &mut FoundCues) {
        let Some(timing) = self.timing else {
            found.untimed_lines += self.lines.len() as u64;
            return;
        };
        let mut raw = timing.text.to_owned();
        for line in self.lines {
            raw.push('\n');
            raw.push_str(line.text);
        }
        let is_unreadable = timing.start.is_none() || timing.end.is_none();
        for (number, markup::VoiceSpan { speaker, text }) in markup::voices(&raw).into_iter().enumerate() {
            found.unreadable_times += u64::from(is_unreadable && number == 0);
            found.cues.push(RawCue { start: timing.start, end: timing.end, text, speaker });
        }
    }
}

fn is_number(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && line.len() <= 9 && line.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_end();
    matches!(line, "NOTE" | "STYLE" | "REGION") || line.starts_with("NOTE ") || line.starts_with("NOTE\t")
}

/// `00:00:01.000 --> 00:00:02.000 align:start`, as `WebVTT` and `SubRip` have it, with comma or point.
pub(super) fn arrow(line: &str) -> Option<CueTiming<'_>> {
    let line = line.trim_start();
    // Most lines are text, and most texts do not begin with a digit.
    if !line.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '\u{2212}')) {
        return None;
    }
    let at = line.find("->").or_else(|| line.find("--&gt;"))?;
    let (before, after) = line.split_at(at);
    let after = after.trim_start_matches('-');
    let after = after.strip_prefix('>').or_else(|| after.strip_prefix("&gt;"))?.trim_start();
    let is_long = before.ends_with('-') || line.get(at..)?.starts_with("--");
    let before = before.trim_end_matches('-').trim_end();
    let is_time = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | ',' | ';' | '-' | '\u{2212}');
    let begins = before.trim_start_matches(['-', '\u{2212}']).starts_with(|c: char| c.is_ascii_digit());
    if !begins || !before.chars().all(|c| is_time(c) || c == ' ') || !before.contains([':', '.', ',']) {
        return None;
    }
    let (time, rest) = after.split_at(after.find(|c| !is_time(c)).unwrap_or(after.len()));
    let (start, end) = (clock(before), clock(time));
    // A short arrow, or a number without a colon, may well be what somebody says.
    let fractions = before.contains(['.', ',']) && time.contains(['.', ',']);
    let is_sure = is_long && before.contains(':');
    (is_sure || (fractions && start.is_some() && end.is_some())).then(|| CueTiming {
        start,
        end,
        text: after_settings(rest),
    })
}

/// What follows `align:start position:0%`, or `X1:117 X2:619` of old `SubRip`.
fn after_settings(text: &str) -> &str {
    const NAMES: [&str; 15] = [
        "align", "line", "position", "region", "size", "vertical", "a", "d", "l", "s", "t", "x1", "x2", "y1",
        "y2",
    ];
    let mut rest = text.trim();
    while let Some((name, more)) = rest.split_once(':')
        && NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
    {
        rest = more.find(char::is_whitespace).and_then(|at| more.get(at..)).unwrap_or_default().trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_times_are_told_from_text() {
        let timing = |start, end, text| Some(CueTiming { start, end, text });
        for (line, expected) in [
            ("00:00:01.000 --> 00:00:02.000", timing(Some(1_000), Some(2_000), "")),
            ("00:00:01,000-->00:00:02,000", timing(Some(1_000), Some(2_000), "")),
            ("  00:01 --> 00:02", timing(Some(1_000), Some(2_000), "")),
            ("00:01.5 -> 00:02.5", timing(Some(1_500), Some(2_500), "")),
            ("00:01.5 --&gt; 00:02.5", timing(Some(1_500), Some(2_500), "")),
            ("-00:00:01,000 --> 00:00:02,000", timing(Some(0), Some(2_000), "")),
            ("00:01.000 --> 00:02.000 align:start position:0%", timing(Some(1_000), Some(2_000), "")),
            ("00:01.000 --> 00:02.000 X1:1 X2:2 Y1:3 Y2:4", timing(Some(1_000), Some(2_000), "")),
            ("00:01.000 --> 00:02.000 size:50% Hello: you", timing(Some(1_000), Some(2_000), "Hello: you")),
            ("00:00:10,000 --> 00:0", timing(Some(10_000), Some(0), "")),
            ("00:00:10,000 -->", timing(Some(10_000), None, "")),
            ("00:00:1x", None),
            ("12.500 --> 14.000", timing(Some(12_500), Some(14_000), "")),
            ("10:30 -> 11:00 lunch", None),
            ("1 --> 2", None),
            ("- 00:01 --> there", None),
            ("a --> b", None),
            ("", None),
        ] {
            assert_eq!(arrow(line), expected, "{line:?}");
        }
    }
}
