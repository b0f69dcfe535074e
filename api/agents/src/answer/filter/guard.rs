//! Takes links, images and addresses out of an answer whose host nobody named, and tags wherever they could be read as such.
//!
//! Every place at which an address can begin is looked at by itself: a link's destination, a tag, a definition, and any
//! run of characters that reads as an address, wherever it stands. What was looked at and passes is not jumped over, so
//! nothing hides inside of something else; where something is taken out, what stood around it never touches.

mod address;
mod html;
mod inline;
mod judge;
mod step;

use self::{
    address::RemovedAddress,
    inline::OpenBrackets,
    step::{GuardStep, REMOVED},
};
use super::{
    characters::is_invisible,
    known::KnownReferences,
    lookahead::LookaheadEnd,
    markdown::{CodeSpan, MarkdownState},
};

/// The most bytes that are held back. The other filters hold back as many at most.
const LIMIT: usize = 1024;

/// The guard of one answer.
#[derive(Debug)]
pub(super) struct LinkGuard {
    held: String,
    /// Nothing changes before one of these comes.
    wake: &'static [char],
    swallow: Option<RemovedAddress>,
    /// What passed last.
    last: char,
    /// What passed before that.
    last_but_one: char,
    markdown: MarkdownState,
    /// So many bytes of what is held are code.
    code: usize,
    /// What passed last takes its meaning from what follows.
    escapes: bool,
    line: LinePrefix,
    opened: OpenBrackets,
    /// Something is gone, and what follows must not touch what stood before it.
    is_apart: bool,
    looks_for: GuardScope,
}

/// What of a line has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePrefix {
    /// Only what may stand before a definition.
    Empty,
    /// The head of a footnote, after which a definition may stand.
    Footnote,
    /// Something else.
    Begun,
}

/// What a guard looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GuardScope {
    /// Addresses and what holds them.
    Everything,
    /// Addresses by themselves.
    Addresses,
}

impl LinkGuard {
    pub(super) const fn new() -> Self {
        Self {
            held: String::new(),
            wake: &[],
            swallow: None,
            last: '\n',
            last_but_one: '\n',
            markdown: MarkdownState::new(),
            code: 0,
            escapes: false,
            line: LinePrefix::Empty,
            opened: OpenBrackets::new(),
            is_apart: false,
            looks_for: GuardScope::Everything,
        }
    }

    /// Whether an address in this text would be taken out.
    fn would_remove(text: &str, known: &KnownReferences) -> bool {
        let mut passed = String::with_capacity(text.len());
        let mut guard = Self { looks_for: GuardScope::Addresses, ..Self::new() };
        guard.push(known, text, &mut passed);
        guard.finish(known, &mut passed);
        passed != text
    }

    pub(super) fn push(&mut self, known: &KnownReferences, text: &str, passed: &mut String) {
        // One character after the other, so that it never matters how the text was cut.
        for character in text.chars() {
            let waits = !self.held.is_empty() && !self.wake.is_empty() && !self.wake.contains(&character);
            self.held.push(character);
            if !waits || self.held.len() >= LIMIT {
                self.run(known, false, passed);
            }
        }
    }

    pub(super) fn finish(&mut self, known: &KnownReferences, passed: &mut String) {
        self.run(known, true, passed);
        if let Some(rest) = self.swallow.take().map(RemovedAddress::finish) {
            self.held = rest;
            self.run(known, true, passed);
        }
    }

    /// What is held back now.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.held.len()
    }

    fn run(&mut self, known: &KnownReferences, is_last: bool, passed: &mut String) {
        let mut held = std::mem::take(&mut self.held);
        let mut at = 0;
        while let Some(first) = held[at..].chars().next() {
            let is_code = self.code > 0;
            if let Some(swallow) = &mut self.swallow {
                let rest = swallow.feed(first);
                at += self.go_past(first.len_utf8());
                if let Some(rest) = rest {
                    self.swallow = None;
                    held.replace_range(..at, &rest);
                    at = 0;
                    self.code += if is_code { rest.len() } else { 0 };
                }
                continue;
            }
            // What ends code is never a part of what is looked at within.
            let view = if is_code { &held[at..at + self.code] } else { &held[at..] };
            let end = match (is_last || is_code, view.len() >= LIMIT) {
                (true, _) => LookaheadEnd::Last,
                (false, true) => LookaheadEnd::Full,
                (false, false) => LookaheadEnd::Open,
            };
            match self.step(view, end, known) {
                GuardStep::More(wake) if end == LookaheadEnd::Open => {
                    self.wake = wake;
                    break;
                }
                // Nothing waits for what will not come.
                GuardStep::More(_) => {
                    self.pass(&view[..first.len_utf8()], passed);
                    at += self.go_past(first.len_utf8());
                }
                GuardStep::Keep(length) => {
                    self.pass(&view[..length], passed);
                    at += self.go_past(length);
                }
                GuardStep::Replace { length, with, then } => {
                    self.is_apart = true;
                    self.pass(with, passed);
                    self.is_apart = true;
                    self.go_past(length);
                    self.code += if is_code { then.len() } else { 0 };
                    held.replace_range(..at + length, &then);
                    at = 0;
                }
                GuardStep::Break => {
                    self.pass(&view[..1], passed);
                    self.pass(" ", passed);
                    at += self.go_past(1);
                }
                GuardStep::Code(length) => self.code = length,
                GuardStep::Swallow(length) => {
                    self.is_apart = true;
                    self.pass(REMOVED, passed);
                    self.swallow = Some(RemovedAddress::new());
                    at += self.go_past(length);
                }
            }
        }
        held.drain(..at);
        self.held = held;
    }

    /// So many bytes are dealt with.
    fn go_past(&mut self, length: usize) -> usize {
        self.code = self.code.saturating_sub(length);
        length
    }

    fn step(&mut self, view: &str, end: LookaheadEnd, known: &KnownReferences) -> GuardStep {
        let Some(first) = view.chars().next() else { return GuardStep::More(&[]) };
        let holds = self.looks_for == GuardScope::Everything;
        if holds
            && self.opened.page
            && let Some(step) = self.page(view, end, known)
        {
            return step;
        }
        match first {
            '[' | '!' | ']' if holds => self.inline(view, end, known),
            '<' if holds => self.tag(view, end, known),
            '&' | '\\' | '/' | 'a'..='z' | 'A'..='Z' => address::bare(view, end, self.last, known),
            _ => GuardStep::Keep(first.len_utf8()),
        }
    }

    fn tag(&mut self, view: &str, end: LookaheadEnd, known: &KnownReferences) -> GuardStep {
        match html::may_begin(view, end) {
            None => GuardStep::More(&[]),
            Some(false) => GuardStep::Keep(1),
            Some(true) if self.is_code() => GuardStep::Keep(1),
            Some(true) => self
                .unless_code(view, end)
                .unwrap_or_else(|| html::tag(view, end, self.last, self.escapes && !self.is_apart, known)),
        }
    }

    /// Whether what comes next is code for every reader.
    fn is_code(&self) -> bool {
        self.code > 0 || self.markdown.is_fenced()
    }

    /// What is to be done with a text if it is code in its line, or may become that.
    fn unless_code(&mut self, view: &str, end: LookaheadEnd) -> Option<GuardStep> {
        match self.markdown.span(view, end) {
            CodeSpan::Is(length) => Some(GuardStep::Code(length)),
            // Whether backticks have ended shows in what follows them.
            CodeSpan::Open if view.ends_with('`') => Some(GuardStep::More(&[])),
            CodeSpan::Open => Some(GuardStep::More(&['`', '\n'])),
            CodeSpan::No => None,
        }
    }

    fn pass(&mut self, text: &str, passed: &mut String) {
        for character in text.chars() {
            if std::mem::take(&mut self.is_apart) && touches(self.last, character) {
                self.pass_character(' ', passed);
            }
            self.pass_character(character, passed);
        }
    }

    fn pass_character(&mut self, character: char, passed: &mut String) {
        if self.looks_for == GuardScope::Everything {
            self.markdown.feed(character);
        }
        self.opened.feed(self.last, character);
        self.escapes = character == '\\' && !self.escapes;
        if character == '\n' {
            self.line = LinePrefix::Empty;
        } else if self.line == LinePrefix::Footnote {
            if character == ':' {
                self.line = LinePrefix::Empty;
            }
        } else if !may_stand_before_definition(character) {
            self.line = LinePrefix::Begun;
        }
        self.last_but_one = std::mem::replace(&mut self.last, character);
        passed.push(character);
    }
}

/// Whether two characters could become part of one address, tag or link, if they were put together.
fn touches(before: char, after: char) -> bool {
    let may_begin = before.is_alphanumeric()
        || matches!(
            before,
            '!' | ']' | '<' | '/' | '\\' | ':' | '&' | '#' | ';' | '.' | '@' | '-' | '+' | '%' | '?' | '='
        );
    let may_go_on =
        !after.is_whitespace() && !matches!(after, '.' | ',' | ';' | '!' | '?' | ')' | '*' | '_' | '"');
    may_begin && may_go_on
        || before == '<' && !after.is_whitespace()
        || before == after && matches!(before, '`' | '~')
}

/// What a definition's line can begin with: the signs of lists, tasks and quotations.
fn may_stand_before_definition(character: char) -> bool {
    character.is_whitespace()
        || character.is_ascii_digit()
        || is_invisible(character)
        || matches!(character, '>' | '*' | '+' | '-' | '.' | ')' | ':' | '[' | ']' | 'x' | 'X')
}
