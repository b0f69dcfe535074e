//! Where the labels of the format stand in a text, and which parts of a text are no text: thinking blocks and fences.

use std::ops::Range;

/// What a label announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelKind {
    Thought,
    Action,
    Input,
    Observation,
    Answer,
}

/// One label of a text; all places are in bytes of that text.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReactLabel {
    pub(super) kind: LabelKind,
    /// Where its line starts, or the label itself if it stands inside a line.
    pub(super) start: usize,
    /// Where what it announces starts.
    pub(super) content: usize,
    /// A heading or bold line has none.
    pub(super) colon: bool,
    /// Emphasis that was opened before the label and goes on after it: `**` in `**Final Answer: 42**`.
    pub(super) open_emphasis: &'static str,
}

/// A label, seen from the start of its own line.
struct LineLabel {
    kind: LabelKind,
    content: usize,
    colon: bool,
    open_emphasis: &'static str,
}

/// Longer runs of fence characters are told apart no further. It bounds how often the end of a text is searched for
/// a closing fence that is not there.
const LONGEST_FENCE: usize = 16;

/// The fences of one text. A fence that is never closed fences nothing: a model that forgets to close it would
/// otherwise lose its next label.
#[derive(Default)]
struct FenceScanner {
    /// For backticks and tildes, the shortest fence known to stay open from here to the end; 0 if none is known.
    unclosed: [usize; 2],
}

impl FenceScanner {
    /// Where the text goes on after the fence that the line `content` opens; `next` is the start of the line after it.
    fn end(&mut self, text: &str, content: &str, next: usize) -> Option<usize> {
        let (mark, length, info) = fence_line(content)?;
        if mark == b'`' && info.contains('`') {
            return None;
        }
        let known = &mut self.unclosed[usize::from(mark == b'~')];
        if *known != 0 && *known <= length {
            return None;
        }
        let mut start = next;
        while start < text.len() {
            let line_end = end_of_line(text, start);
            if let Some((closing, closing_length, "")) = fence_line(&text[start..line_end])
                && closing == mark
                && closing_length >= length
            {
                return Some(after_line(text, line_end));
            }
            start = after_line(text, line_end);
        }
        *known = length;
        None
    }
}

/// The fence character, its count and what follows on the line, if the line is one that could open or close a fence.
fn fence_line(line: &str) -> Option<(u8, usize, &str)> {
    let line = line.trim();
    let mark = *line.as_bytes().first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = line.bytes().take_while(|byte| *byte == mark).count();
    (length >= 3).then(|| (mark, length.min(LONGEST_FENCE), line[length..].trim()))
}

/// What a single fence around the whole text is marked with, and what it holds.
pub(super) fn unfenced(text: &str) -> Option<(&str, &str)> {
    let first = end_of_line(text, 0);
    let (_, _, info) = fence_line(&text[..first])?;
    let body = after_line(text, first);
    if FenceScanner::default().end(text, &text[..first], body)? != text.len() {
        return None;
    }
    let closing = text.rfind('\n').filter(|at| *at >= body).unwrap_or(body);
    Some((info, &text[body..closing]))
}

pub(super) fn end_of_line(text: &str, from: usize) -> usize {
    text[from..].find('\n').map_or(text.len(), |at| from + at)
}

fn after_line(text: &str, line_end: usize) -> usize {
    (line_end + 1).min(text.len())
}

/// What of a text is no thinking, in order.
///
/// A block that is not closed reaches to the end. Some models are started inside a block and only close it, on a line
/// of its own or at an end of one: what stands before such a tag is thinking too, unless nothing follows.
pub(super) fn kept(text: &str) -> Vec<Range<usize>> {
    let mut kept = Vec::new();
    let mut fences = FenceScanner::default();
    let (mut from, mut line, mut seen_block) = (0, 0, false);
    while line < text.len() {
        let line_end = end_of_line(text, line);
        let mut next = after_line(text, line_end);
        if let Some(end) = fences.end(text, opener(&text[line..line_end]), next) {
            line = end;
            continue;
        }
        let first = line_end - text[line..line_end].trim_start().len();
        let mut at = line;
        while let Some((tag, closes)) = think_tag(text, at, line_end) {
            at = tag.end;
            if !closes {
                kept.push(from..tag.start);
                seen_block = true;
                from = closing_tag(text, tag.end).unwrap_or(text.len());
                at = from;
            } else if text[tag.end..].trim_start().is_empty() {
                kept.push(from..tag.start);
                from = tag.end;
            } else if !seen_block && (tag.start <= first || text[tag.end..line_end].trim_start().is_empty()) {
                kept.clear();
                seen_block = true;
                from = tag.end;
            }
            if at > line_end {
                // The line goes on behind the block; what follows is looked at as one of its own.
                next = at;
                break;
            }
        }
        line = next;
    }
    kept.push(from..text.len());
    kept
}

const THINK: [&str; 2] = ["think", "thinking"];

/// The first tag of a thinking block in a line, and whether it closes. One in backticks is only spoken of.
fn think_tag(text: &str, from: usize, to: usize) -> Option<(Range<usize>, bool)> {
    text[from..to].match_indices('<').find_map(|(at, _)| {
        let start = from + at;
        if text[..start].ends_with('`') {
            return None;
        }
        let inner = &text[start + 1..to];
        let (closes, name) = inner.strip_prefix('/').map_or((false, inner), |name| (true, name));
        THINK.iter().find_map(|word| {
            let rest = strip_word(name, word)?.strip_prefix('>')?;
            Some((start..to - rest.len(), closes))
        })
    })
}

/// Where the text goes on after the next closing tag.
fn closing_tag(text: &str, from: usize) -> Option<usize> {
    text[from..].match_indices("</").find_map(|(at, _)| {
        let name = &text[from + at + 2..];
        let rest = THINK.iter().find_map(|word| strip_word(name, word)?.strip_prefix('>'))?;
        Some(text.len() - rest.len())
    })
}

/// The labels of a text, in order: at line starts outside fences, and `Final Answer:` inside a line of thought.
pub(super) fn labels(text: &str) -> Vec<ReactLabel> {
    let mut labels: Vec<ReactLabel> = Vec::new();
    let mut fences = FenceScanner::default();
    let (mut line, mut begun) = (0, false);
    while line < text.len() {
        let line_end = end_of_line(text, line);
        let next = after_line(text, line_end);
        let this = &text[line..line_end];
        let found = label(this).or_else(|| alone(this));
        // A prompt that ends in `Thought:` has the model go on without the label.
        let thinks = found.as_ref().map_or(!begun, |found| found.kind == LabelKind::Thought);
        let mut content = line + found.as_ref().map_or(0, |found| found.content);
        if let Some(found) = found {
            labels.push(found.at(line, line));
        }
        if thinks && let Some((at, found)) = inline_answer(&text[content..line_end], true) {
            let start = content + at;
            content = start + found.content;
            labels.push(found.at(start, start));
        }
        begun |= !this.trim_start().is_empty();
        line = fences.end(text, &text[content..line_end], next).unwrap_or(next);
    }
    without_words(text, labels)
}

/// Without the lines `Observation` that announce nothing. Only before the end, or before an observation, such a line
/// is a label: what a service leaves that cuts at the colon.
fn without_words(text: &str, mut labels: Vec<ReactLabel>) -> Vec<ReactLabel> {
    let mut ends = text.len();
    for label in labels.iter_mut().rev().filter(|label| label.kind == LabelKind::Observation) {
        label.colon |= !decorated(text, label)
            && text.get(label.content..ends).is_some_and(|rest| rest.trim_start().is_empty());
        if label.colon {
            ends = label.start;
        }
    }
    labels.retain(|label| label.kind != LabelKind::Observation || label.colon || decorated(text, label));
    labels
}

fn decorated(text: &str, label: &ReactLabel) -> bool {
    text[label.start..label.content].contains(['#', '*', '_'])
}

impl LineLabel {
    fn at(self, start: usize, base: usize) -> ReactLabel {
        let Self { kind, content, colon, open_emphasis } = self;
        ReactLabel { kind, start, content: base + content, colon, open_emphasis }
    }
}

/// What of a line could open a fence.
fn opener(line: &str) -> &str {
    let Some(found) = label(line) else { return line };
    let content = &line[found.content..];
    let answer = (found.kind == LabelKind::Thought).then(|| inline_answer(content, true)).flatten();
    answer.map_or(content, |(at, found)| &content[at + found.content..])
}

/// `Observation` alone on a line.
fn alone(line: &str) -> Option<LineLabel> {
    let alone = line.trim().eq_ignore_ascii_case("observation");
    alone.then_some(LineLabel {
        kind: LabelKind::Observation,
        content: line.len(),
        colon: false,
        open_emphasis: "",
    })
}

/// The label at the start of a line.
fn label(line: &str) -> Option<LineLabel> {
    let indented = line.trim_start();
    let rest = indented.trim_start_matches('#');
    let heading = rest.len() < indented.len();
    let rest = if heading { rest.trim_start() } else { rest };
    let (emphasis, rest) = emphasis(rest);
    label_after(line, rest, heading, emphasis)
}

fn label_after(line: &str, rest: &str, heading: bool, emphasis: &'static str) -> Option<LineLabel> {
    let (kind, rest) = name(rest)?;
    let rest = rest.trim_start();
    let before_colon = rest.strip_prefix(emphasis).filter(|_| !emphasis.is_empty());
    let rest = before_colon.unwrap_or(rest).trim_start();
    let closed = emphasis.is_empty() || before_colon.is_some();
    let found = |rest: &str, colon, closed| LineLabel {
        kind,
        content: line.len() - rest.len(),
        colon,
        open_emphasis: if closed { "" } else { emphasis },
    };
    if let Some(rest) = rest.strip_prefix([':', '：']) {
        return Some(match rest.strip_prefix(emphasis).filter(|_| !closed) {
            Some(rest) => found(rest, true, true),
            None => found(rest, true, closed),
        });
    }
    let stands_alone = rest.is_empty() && closed && (heading || !emphasis.is_empty());
    stands_alone.then(|| found(rest, false, true))
}

/// What follows a `Final Answer:` inside a line.
pub(super) fn holds_answer(line: &str) -> Option<&str> {
    inline_answer(line, false).map(|(at, found)| &line[at + found.content..])
}

/// The `Final Answer:` inside a line and where it starts. `spelled`: only if both words have capitals and no quote or
/// code opens before them, as "I need the final answer: …" is a thought.
fn inline_answer(line: &str, spelled: bool) -> Option<(usize, LineLabel)> {
    let mut from = 0;
    while let Some(step) = line[from..].bytes().position(|byte| matches!(byte, b'F' | b'f')) {
        let at = from + step;
        from = at + 1;
        let before = line[..at].chars().next_back();
        if before.is_some_and(char::is_alphanumeric)
            || spelled
                && (!line[at..].starts_with('F') || before.is_some_and(|c| "`'\"‘’“”„«‹「『".contains(c)))
        {
            continue;
        }
        let opened = ["***", "**", "__", "*", "_"].into_iter().find(|mark| line[..at].ends_with(mark));
        let emphasis = opened.unwrap_or("");
        let start = at - emphasis.len();
        let Some(found) = label_after(&line[start..], &line[at..], false, emphasis) else { continue };
        let capitals = line[at..start + found.content].contains('A');
        if found.kind == LabelKind::Answer && found.colon && (capitals || !spelled) {
            return Some((start, found));
        }
    }
    None
}

/// The name of a label and what follows it.
fn name(text: &str) -> Option<(LabelKind, &str)> {
    if let Some(rest) = strip_word(text, "action") {
        let rest = without_number(rest);
        let input = rest.trim_start_matches([' ', '\t', '_', '-']);
        return Some(match strip_word(input, "input") {
            Some(rest) => (LabelKind::Input, without_number(rest)),
            None => (LabelKind::Action, rest),
        });
    }
    if let Some(rest) = strip_word(text, "final") {
        let rest = strip_word(rest.trim_start_matches([' ', '\t', '_', '-']), "answer")?;
        return Some((LabelKind::Answer, without_number(rest)));
    }
    let plain = [("thought", LabelKind::Thought), ("observation", LabelKind::Observation)];
    plain.into_iter().find_map(|(word, kind)| Some((kind, without_number(strip_word(text, word)?))))
}

/// Without the number of a step: `Action 1:`, `Thought #2:`.
fn without_number(text: &str) -> &str {
    let number = text.trim_start_matches([' ', '\t']);
    let digits = number.strip_prefix('#').unwrap_or(number);
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() < digits.len() { rest } else { text }
}

/// What follows a word, in any case.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}

/// The emphasis that starts a text, and what follows it.
fn emphasis(text: &str) -> (&'static str, &str) {
    let opened = ["***", "**", "__", "*", "_"].into_iter().find(|mark| text.starts_with(mark)).unwrap_or("");
    (opened, &text[opened.len()..])
}
