//! What is certainly code for whoever shows the answer as Markdown.
//!
//! pulldown-cmark is asked about what has passed so far, as each of its `readers` shows it, and code is what all agree on. Whatever
//! later text could still change is none: then its tags are made harmless, which is always right.

mod effort;
mod line;
mod nesting;
mod readers;

use std::borrow::Cow;

use self::{
    effort::ParseCost,
    line::{LineState, LineTail},
    nesting::depth,
    readers::{BlockContext, block_at, is_span, readers},
};
use super::lookahead::LookaheadEnd;

/// How much of what has passed is kept to be looked at. Texts seldom have so much without a paragraph of its own.
const REACH: usize = 32 * 1024;

/// The most that is looked at for one answer, in bytes that a parser goes past, so that none takes long: half a second in all.
const MOST_STEPS: usize = 32 << 20;

/// The same for a single look: the thread has others to serve.
const MOST_AT_ONCE: usize = 2 << 20;

/// The marks that a line begins with are looked for in so many bytes of it, while it goes on.
const LONGEST_START: usize = 1024;

/// What stands where the next line would have its text. No format means anything by it.
const PROBE: char = '\u{E000}';

/// An answer as it is read, up to what has passed.
#[derive(Debug)]
pub(super) struct MarkdownState {
    /// What has passed since a place at which no block was open. None if it is too much.
    passed: Option<String>,
    /// What it takes to look at that.
    effort: ParseCost,
    /// Where the line begins in it.
    line_at: usize,
    line: LineState,
    is_after_blank: bool,
    fence: Option<OpenFence>,
    /// From here on nothing is certain any more.
    is_lost: bool,
    /// The steps that are left.
    left: usize,
}

/// A fenced block that is open.
#[derive(Debug, Clone, Copy)]
struct OpenFence {
    sign: char,
    length: usize,
    /// In which column it began.
    indent: usize,
    /// It stands in no list, so that only its end ends it.
    is_top: bool,
}

/// Whether a text goes on as code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeSpan {
    /// For so many bytes.
    Is(usize),
    /// It depends on what follows.
    Open,
    /// Not for sure.
    No,
}

impl MarkdownState {
    pub(super) const fn new() -> Self {
        Self {
            passed: Some(String::new()),
            effort: ParseCost::new(),
            line_at: 0,
            line: LineState::new(),
            is_after_blank: true,
            fence: None,
            is_lost: false,
            left: MOST_STEPS,
        }
    }

    /// Whether what comes next stands in a fenced block.
    pub(super) fn is_fenced(&self) -> bool {
        let begins_deep = |fence: OpenFence| !self.line.has_tab && self.line.indent >= fence.indent;
        let is_in = |fence: OpenFence| fence.is_top || !self.line.is_blank || begins_deep(fence);
        !self.is_lost && self.fence.is_some_and(is_in)
    }

    /// Goes past the next character.
    pub(super) fn feed(&mut self, character: char) {
        if self.is_lost {
            return;
        }
        if self.line.is_blank && !matches!(character, ' ' | '\t' | '\n') {
            self.begin_text(character);
        }
        // What only its own end ends is not looked at again.
        if self.fence.is_none_or(|fence| !fence.is_top) {
            self.keep(character);
        }
        if character == '\n' {
            self.end_line();
        } else {
            self.line.feed(character);
        }
    }

    fn keep(&mut self, character: char) {
        match &mut self.passed {
            Some(passed) if passed.len() < REACH => {
                passed.push(character);
                self.effort.feed(character);
            }
            passed => *passed = None,
        }
    }

    /// The first character of a line that is not blank.
    fn begin_text(&mut self, character: char) {
        if !self.is_fenced() {
            // It may have ended with its list.
            self.fence = None;
        }
        // Every list, quotation and note ends before such a line, and none begins with it that is not seen from here.
        let is_first = self.is_after_blank && self.line.indent == 0 && !self.line.has_tab;
        if self.fence.is_none() && is_first && begins_anew(character) {
            self.begin_anew();
        }
    }

    fn begin_anew(&mut self) {
        self.passed = Some(String::new());
        self.effort = ParseCost::new();
        self.line_at = 0;
    }

    fn end_line(&mut self) {
        let line = std::mem::replace(&mut self.line, LineState::new());
        self.is_after_blank = line.is_blank;
        match self.fence {
            Some(fence) if line.may_close(fence) => self.close(fence, line),
            Some(_) => {}
            None => {
                self.deepen();
                if line.has_fence && !self.is_lost {
                    self.open();
                }
            }
        }
        self.line_at = self.passed.as_ref().map_or(0, String::len);
    }

    fn close(&mut self, fence: OpenFence, line: LineState) {
        if line.rest == LineTail::Blanks {
            self.is_lost = true;
        } else if !fence.is_top {
            // Deeper than it began it may be a part of the code; then the next fence is looked at with all that was before.
            self.fence = None;
        } else if line.indent <= 3 && !line.has_tab {
            self.fence = None;
            self.begin_anew();
        }
    }

    /// Looks how deep the line is nested that has ended: to the parser, every line that follows is as deep.
    fn deepen(&mut self) {
        let Some(passed) = &self.passed else { return };
        match depth(&passed[self.line_at..]) {
            Some(depth) => self.effort.deepen(depth),
            None => self.is_lost = true,
        }
    }

    /// Looks whether the line that has ended begins a block.
    fn open(&mut self) {
        let Some(passed) = &self.passed else {
            self.is_lost = true;
            return;
        };
        let line = &passed[self.line_at..];
        let Some(indent) = fence_at(line) else { return };
        let before = &line[..indent];
        if before.contains("[^") {
            // Not even the versions of one parser agree on where a note ends.
            self.is_lost = true;
            return;
        }
        // In a quotation it ends with it, and is never taken for certain.
        if before.contains(|character: char| !" 0123456789.)-+*".contains(character)) {
            return;
        }
        let Some(sign) = line[indent..].chars().next() else { return };
        let length = line[indent..].chars().take_while(|character| *character == sign).count();
        let signs = self.effort.signs();
        let steps = (self.effort.steps() + indent) * readers(signs).count();
        if !spend(&mut self.left, steps) {
            self.is_lost = true;
            return;
        }
        let text = format!("{passed}{}{PROBE}\n", " ".repeat(indent));
        match block_at(&text, signs, self.line_at + indent, passed.len() + indent) {
            BlockContext::None => {}
            BlockContext::Fenced { is_top } => {
                self.fence = Some(OpenFence { sign, length, indent, is_top });
                if is_top {
                    self.begin_anew();
                }
            }
            BlockContext::Unclear => self.is_lost = true,
        }
    }

    /// Whether this text, which comes next, is at its beginning within backticks that have opened and will close in this line.
    pub(super) fn span(&mut self, view: &str, end: LookaheadEnd) -> CodeSpan {
        if self.is_lost || self.passed.is_none() || self.fence.is_some() {
            return CodeSpan::No;
        }
        let Some(length) = self.line.open_backticks() else { return CodeSpan::No };
        match closing_run(view, length, end) {
            // A reference may take the first backticks for a part of its label, wherever it is defined.
            ClosingRun::At(_) if self.effort.has_reference() => CodeSpan::No,
            ClosingRun::At(close) if self.is_code(&view[..close + length]) => CodeSpan::Is(close),
            ClosingRun::At(_) | ClosingRun::None => CodeSpan::No,
            ClosingRun::Open => CodeSpan::Open,
        }
    }

    /// Whether this text, which comes next and ends with backticks, is code up to them for all readers.
    fn is_code(&mut self, code: &str) -> bool {
        let Some(passed) = &self.passed else { return false };
        let line = &passed[self.line_at..];
        let Some(depth) = depth(&line[..line.floor_char_boundary(LONGEST_START)]) else { return false };
        let mut effort = self.effort;
        effort.deepen(depth);
        code.chars().for_each(|character| effort.feed(character));
        let signs = effort.signs();
        let steps = (effort.steps() + line.len() + code.len()) * readers(signs).count();
        if !spend(&mut self.left, steps) {
            self.is_lost = true;
            return false;
        }
        // What follows may make a table or a heading of this line, without those before it.
        let alone = line.trim_start();
        is_span(&format!("{passed}{code}"), signs, passed.len(), line.contains('|'))
            && is_span(&format!("{alone}{code}"), signs, alone.len(), false)
    }
}

/// Whether a line that begins with this, behind a blank one, stands in no block of those before.
fn begins_anew(character: char) -> bool {
    character.is_alphanumeric() || character == '#'
}

/// What a Markdown parser has to do for a whole text, in bytes that it goes past; none if that is nested deeper than anybody writes.
/// It takes time in proportion to the text, which a parser may not.
pub fn markdown_steps(text: &str) -> Option<usize> {
    // To a parser, a carriage return ends a line too.
    let text = if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    };
    let (mut steps, mut effort, mut is_after_blank) = (0_usize, ParseCost::new(), true);
    for line in text.split_inclusive('\n') {
        if is_after_blank && line.starts_with(begins_anew) {
            steps = steps.saturating_add(effort.steps());
            effort = ParseCost::new();
        }
        effort.deepen(depth(line)?);
        line.chars().for_each(|character| effort.feed(character));
        is_after_blank = line.trim_matches([' ', '\t', '\n']).is_empty();
    }
    Some(steps.saturating_add(effort.steps()))
}

/// Takes so many steps of those that are left; whether they may be taken.
fn spend(left: &mut usize, steps: usize) -> bool {
    let after = left.checked_sub(steps).filter(|_| steps <= MOST_AT_ONCE);
    *left = after.unwrap_or(0);
    after.is_some()
}

/// Where the first run of fence signs stands that is long enough.
fn fence_at(line: &str) -> Option<usize> {
    ["```", "~~~"].into_iter().filter_map(|fence| line.find(fence)).min()
}

enum ClosingRun {
    At(usize),
    Open,
    None,
}

/// Where backticks of this length close in the line.
fn closing_run(view: &str, length: usize, end: LookaheadEnd) -> ClosingRun {
    let line = view.split('\n').next().unwrap_or_default();
    let goes_on = line.len() == view.len() && end != LookaheadEnd::Last;
    let mut at = 0;
    while let Some(next) = line[at..].find('`') {
        let start = at + next;
        let run = line[start..].bytes().take_while(|byte| *byte == b'`').count();
        at = start + run;
        // As long as they may become more, they close nothing, however much of the text is held.
        if run == length && (at < line.len() || !goes_on) {
            return ClosingRun::At(start);
        }
    }
    match end {
        LookaheadEnd::Open if goes_on => ClosingRun::Open,
        LookaheadEnd::Open | LookaheadEnd::Full | LookaheadEnd::Last => ClosingRun::None,
    }
}

#[cfg(test)]
mod tests {
    use super::markdown_steps;

    #[test]
    fn a_whole_text_takes_what_its_parts_take() {
        let words = "Words of it.\nMore of them.\n\n".repeat(10_000);
        assert_eq!(markdown_steps(&words), Some(words.len()));
        // What is deep or hard makes no more of the rest.
        let (list, title) = ("- - - a\n  b\n\n", "[a](b \"\n\"c\n\n");
        let [alone, hard] = [list, title].map(|text| markdown_steps(text).unwrap());
        assert!(alone > list.len(), "{alone}");
        assert_eq!(markdown_steps(&format!("{list}{words}")), Some(alone + words.len()));
        assert_eq!(markdown_steps(&format!("{words}A {title}{words}")), Some(2 * words.len() + hard + 2));
    }

    #[test]
    fn what_keeps_a_parser_busy_takes_many_steps_whatever_ends_its_lines() {
        for end in ["\n", "\r", "\r\n"] {
            let title = format!("[a](b \"{}", format!("\"a{end}").repeat(10_000));
            assert!(markdown_steps(&title).is_some_and(|steps| steps > 500 * title.len()), "{end:?}");
            let list = format!("- - - a{end}{}", format!("b{end}").repeat(1_000));
            assert!(markdown_steps(&list).is_some_and(|steps| steps >= 3 * list.len() / 2), "{end:?}");
        }
        assert_eq!(markdown_steps(&"> ".repeat(100)), None);
        assert_eq!(markdown_steps(&"- ".repeat(100)), None);
    }
}
