//! What has passed of a line, character by character.

use super::OpenFence;

/// The shortest fence.
const FENCE_LENGTH: usize = 3;

/// What has passed of the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineState {
    /// Spaces at its beginning.
    pub(super) indent: usize,
    /// Only spaces and tabs so far.
    pub(super) is_blank: bool,
    pub(super) has_tab: bool,
    /// The run of fence signs that its text begins with.
    run: Option<(char, usize)>,
    /// What follows the run.
    pub(super) rest: LineTail,
    /// How many equal fence signs end it so far, and whether there were enough of them anywhere.
    signs: (char, usize),
    pub(super) has_fence: bool,
    backticks: BacktickState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineTail {
    /// Nothing or spaces.
    Spaces,
    /// Other blanks, which not everybody takes for such.
    Blanks,
    Text,
}

impl LineState {
    pub(super) const fn new() -> Self {
        Self {
            indent: 0,
            is_blank: true,
            has_tab: false,
            run: None,
            rest: LineTail::Spaces,
            signs: ('\n', 0),
            has_fence: false,
            backticks: BacktickState::new(),
        }
    }

    pub(super) fn feed(&mut self, character: char) {
        self.backticks.feed(character);
        let count = if self.signs.0 == character { self.signs.1 + 1 } else { 1 };
        self.signs = (character, count);
        self.has_fence |= matches!(character, '`' | '~') && count >= FENCE_LENGTH;
        match character {
            ' ' if self.is_blank => self.indent += usize::from(!self.has_tab),
            '\t' if self.is_blank => self.has_tab = true,
            '`' | '~' if self.is_blank => {
                self.is_blank = false;
                self.run = Some((character, 1));
            }
            _ if self.is_blank => self.is_blank = false,
            _ => match &mut self.run {
                Some((sign, length)) if *sign == character && count > *length => *length += 1,
                Some(_) if character == ' ' => {}
                Some(_) if character.is_whitespace() || character.is_control() => {
                    self.rest = if self.rest == LineTail::Text { LineTail::Text } else { LineTail::Blanks };
                }
                Some(_) => self.rest = LineTail::Text,
                None => {}
            },
        }
    }

    /// Whether it could end this block.
    pub(super) fn may_close(&self, fence: OpenFence) -> bool {
        self.rest != LineTail::Text
            && self.run.is_some_and(|(sign, length)| sign == fence.sign && length >= fence.length)
    }

    /// The length of the backticks that have opened and not closed in it, if what comes next is none.
    pub(super) const fn open_backticks(&self) -> Option<usize> {
        self.backticks.open()
    }
}

/// The backticks of a line, as they open and close what reads as code. They are counted as they come: to look for them in the line
/// anew for every tag would take the square of its length.
#[derive(Debug, Clone, Copy)]
struct BacktickState {
    /// The length of those that had opened and not closed before the last run.
    opened: Option<usize>,
    /// How many of them end the line so far.
    run: usize,
    /// What comes next is escaped.
    is_escaped: bool,
}

impl BacktickState {
    const fn new() -> Self {
        Self { opened: None, run: 0, is_escaped: false }
    }

    const fn open(self) -> Option<usize> {
        match self.opened {
            None if self.run > 0 => Some(self.run),
            Some(length) if length == self.run => None,
            opened => opened,
        }
    }

    fn feed(&mut self, character: char) {
        if character == '`' {
            // Within code nothing is escaped.
            let is_itself = self.is_escaped && self.opened.is_none();
            self.run += usize::from(!is_itself);
            self.is_escaped = false;
        } else {
            self.opened = self.open();
            self.run = 0;
            self.is_escaped = character == '\\' && !self.is_escaped;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_open_code_until_as_many_come() {
        for (line, open) in [
            ("", None),
            ("a", None),
            ("`", Some(1)),
            ("a `` b", Some(2)),
            ("`a`", None),
            ("`a``", Some(1)),
            ("``a`b``", None),
            ("`a` ```b", Some(3)),
            ("\\`", None),
            ("\\``", Some(1)),
            ("\\\\`", Some(1)),
            ("`\\`", None),
            ("`a\\`b`", Some(1)),
            ("\\a`", Some(1)),
        ] {
            let mut seen = LineState::new();
            line.chars().for_each(|character| seen.feed(character));
            assert_eq!(seen.open_backticks(), open, "{line}");
        }
    }
}
