//! The little of Markdown that citations must know: what is code, and what is a link.

use std::ops::Range;

/// The longest link target, with its title, that is recognised.
const MAX_LINK_BYTES: usize = 2048;

/// Fenced blocks and code spans, in order.
pub(super) fn code_spans(text: &str) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    let mut line_start = true;
    while at < text.len() {
        let rest = &text[at..];
        if line_start && let Some(length) = fenced_length(rest) {
            spans.push(at..at + length);
            at += length;
            continue;
        }
        let ticks = rest.bytes().take_while(|byte| *byte == b'`').count();
        if ticks > 0 {
            line_start = false;
            match code_span_length(rest, ticks) {
                Some(length) => {
                    spans.push(at..at + length);
                    at += length;
                }
                None => at += ticks,
            }
            continue;
        }
        let next = rest.find(['\n', '`']).unwrap_or(rest.len());
        if rest[next..].starts_with('\n') {
            at += next + 1;
            line_start = true;
        } else {
            at += next;
            line_start = line_start && next == 0;
        }
    }
    spans
}

/// The bytes of the fenced block that begins with this line; it ends with the text if nothing closes it.
fn fenced_length(text: &str) -> Option<usize> {
    let fence = |line: &str| -> Option<(u8, usize)> {
        let trimmed = line.trim_start_matches(' ');
        let sign = *trimmed.as_bytes().first().filter(|sign| matches!(sign, b'`' | b'~'))?;
        let length = trimmed.bytes().take_while(|byte| *byte == sign).count();
        (length >= 3).then_some((sign, length))
    };
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    let (sign, length) = fence(first)?;
    if sign == b'`' && first.trim().trim_start_matches('`').contains('`') {
        return None;
    }
    let mut end = first.len();
    for line in lines {
        end += line.len();
        let closes = fence(line).is_some_and(|(other, count)| other == sign && count >= length);
        if closes && line.trim().bytes().all(|byte| byte == sign) {
            return Some(end);
        }
    }
    Some(text.len())
}

/// The bytes of the code span that begins with `ticks` backticks, if as many close it within the paragraph.
fn code_span_length(text: &str, ticks: usize) -> Option<usize> {
    let mut at = ticks;
    loop {
        at += text[at..].find(['`', '\n'])?;
        if text[at..].starts_with("\n\n") {
            return None;
        }
        let run = text[at..].bytes().take_while(|byte| *byte == b'`').count();
        at += run.max(1);
        if run == ticks {
            return Some(at);
        }
    }
}

/// Whether the brackets are a link's text, an image's, or the head of a link definition.
pub(super) fn is_label(answer: &str, start: usize, end: usize) -> bool {
    let rest = &answer[end..];
    if let Some(target) = rest.strip_prefix('(') {
        let target =
            target[..target.floor_char_boundary(MAX_LINK_BYTES)].split('\n').next().unwrap_or_default();
        if let Some((target, _)) = target.split_once(')') {
            let (address, title) = target.trim().split_once(' ').unwrap_or((target.trim(), "\""));
            return !address.is_empty() && title.trim_start().starts_with(['"', '\'']);
        }
    }
    let before = answer[..start].trim_end_matches([' ', '\t']);
    let begins_line = before.is_empty() || before.ends_with('\n');
    begins_line
        && rest
            .strip_prefix(':')
            .is_some_and(|rest| rest.split('\n').next().unwrap_or_default().contains("://"))
}
