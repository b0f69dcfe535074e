//! The little of Markdown that citations must know: what is code, and what is a link.

use std::{collections::HashMap, ops::Range};

/// The longest link target, with its title, that is recognised.
const MAX_LINK_BYTES: usize = 2048;

/// Fenced blocks and code spans, in order. Takes time in proportion to the text.
pub(super) fn code_spans(text: &str) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut backticks = BacktickRuns::new(text);
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
            match backticks.close(at + ticks, ticks) {
                Some(end) => {
                    spans.push(at..end);
                    at = end;
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

/// Where the runs of backticks stand, so that none is looked for twice.
struct BacktickRuns<'a> {
    text: &'a str,
    starts_by_length: HashMap<usize, Vec<usize>>,
    paragraph_end: Option<usize>,
}

impl<'a> BacktickRuns<'a> {
    fn new(text: &'a str) -> Self {
        let mut starts_by_length: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut at = 0;
        while let Some(gap) = text[at..].find('`') {
            at += gap;
            let length = text[at..].bytes().take_while(|byte| *byte == b'`').count();
            starts_by_length.entry(length).or_default().push(at);
            at += length;
        }
        Self { text, starts_by_length, paragraph_end: None }
    }

    /// The end of the code span that `ticks` backticks before `from` begin, if as many close it within the
    /// paragraph. To be asked from front to back.
    fn close(&mut self, from: usize, ticks: usize) -> Option<usize> {
        let paragraph_end = match self.paragraph_end {
            Some(end) if end >= from => end,
            _ => self.text[from..].find("\n\n").map_or(self.text.len(), |length| from + length),
        };
        self.paragraph_end = Some(paragraph_end);
        let starts = self.starts_by_length.get(&ticks)?;
        let start = *starts.get(starts.partition_point(|start| *start < from))?;
        (start < paragraph_end).then_some(start + ticks)
    }
}

/// Where a link leads, as it stands behind its text: `(address "title")`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::answer) struct LinkTarget<'a> {
    /// The address.
    pub(in crate::answer) address: &'a str,
    /// The bytes of all of it, with the parentheses.
    pub(in crate::answer) length: usize,
}

/// The target that stands at the beginning of this text, if there is one.
pub(in crate::answer) fn link_target(text: &str) -> Option<LinkTarget<'_>> {
    let inner = text.strip_prefix('(')?;
    let end = closing_parenthesis(&inner[..inner.floor_char_boundary(MAX_LINK_BYTES)])?;
    let target = inner[..end].trim();
    let (address, title) = target.split_once(' ').unwrap_or((target, "\""));
    let is_target = !address.is_empty() && title.trim_start().starts_with(['"', '\'']);
    is_target.then_some(LinkTarget { address, length: end + 2 })
}

/// Where the parenthesis is that closes the one before this text, in the same line.
pub(in crate::answer) fn closing_parenthesis(text: &str) -> Option<usize> {
    let line = text.split('\n').next().unwrap_or_default();
    let last = line.rfind(')')?;
    let mut depth = 1_usize;
    line[..=last].char_indices().find_map(|(at, character)| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// Whether the brackets are a link's text, an image's, or the head of a link definition.
pub(in crate::answer) fn is_label(answer: &str, start: usize, end: usize) -> bool {
    let rest = &answer[end..];
    if rest.starts_with('(') {
        return link_target(rest).is_some();
    }
    let before = answer[..start].trim_end_matches([' ', '\t']);
    let begins_line = before.is_empty() || before.ends_with('\n');
    begins_line
        && rest
            .strip_prefix(':')
            .is_some_and(|rest| rest.split('\n').next().unwrap_or_default().contains("://"))
}

/// Words without the pairs of Markdown's marks of emphasis in them, `**so**` or `_so_`; none if there are none.
pub(super) fn without_emphasis(words: &str) -> Option<String> {
    /// Marks that wait for the one that closes them.
    const MAX_OPEN: usize = 8;
    let is_word = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    let is_blank = |character: Option<char>| character.is_none_or(char::is_whitespace);
    let (mut open, mut marks): (Vec<Range<usize>>, Vec<Range<usize>>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(gap) = words[at..].find(['*', '_']) {
        let start = at + gap;
        let sign = words.as_bytes()[start];
        let end = start + words[start..].bytes().take_while(|byte| *byte == sign).count();
        at = end;
        let (before, after) = (words[..start].chars().next_back(), words[end..].chars().next());
        let opening = open.iter().rposition(|other| words[other.clone()] == words[start..end]);
        match opening.filter(|_| !is_blank(before) && !is_word(after)) {
            Some(opening) => {
                marks.push(open[opening].clone());
                marks.push(start..end);
                open.truncate(opening);
            }
            None if !is_word(before) && !is_blank(after) && open.len() < MAX_OPEN => open.push(start..end),
            None => {}
        }
    }
    if marks.is_empty() {
        return None;
    }
    marks.sort_unstable_by_key(|mark| mark.start);
    let (mut plain, mut from) = (String::with_capacity(words.len()), 0);
    for mark in marks {
        plain.push_str(&words[from..mark.start]);
        from = mark.end;
    }
    plain.push_str(&words[from..]);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::code_spans;

    fn spans(text: &str) -> Vec<&str> {
        code_spans(text).into_iter().map(|span| &text[span]).collect()
    }

    #[test]
    fn a_code_span_is_closed_by_as_many_backticks_in_its_paragraph() {
        assert_eq!(spans("a `b` ``c ` d`` `e"), ["`b`", "``c ` d``"]);
        assert_eq!(spans("``a ` b\n`c` d"), ["` b\n`"]);
        assert_eq!(spans("`a\n\nb` `c\nd`"), ["` `"]);
        assert_eq!(spans("`a\n\n\n`b`"), ["`b`"]);
        assert_eq!(spans("x ```` `a` ```` `"), ["```` `a` ````"]);
    }

    #[test]
    fn runs_of_backticks_that_nothing_closes_are_each_looked_for_once() {
        let text = (1..4_000).fold("x".to_owned(), |text, length| text + &"`".repeat(length) + " ");
        assert!(code_spans(&text).is_empty());
    }
}
