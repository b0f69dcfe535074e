//! Long runs of white space, so that trimming takes no longer for them than for short ones.

use std::ops::Range;

/// A run that is shorter is gone through each time.
const LONG: usize = 256;
const NEWLINES: [char; 2] = ['\n', '\r'];

/// The long runs of white space of a text.
pub(super) struct WhitespaceRuns<'t> {
    text: &'t str,
    runs: Vec<Range<usize>>,
}

impl<'t> WhitespaceRuns<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let mut runs = Vec::new();
        let mut begun = 0;
        for (at, c) in text.char_indices() {
            if !c.is_whitespace() {
                if at - begun >= LONG {
                    runs.push(begun..at);
                }
                begun = at + c.len_utf8();
            }
        }
        if text.len() - begun >= LONG {
            runs.push(begun..text.len());
        }
        Self { text, runs }
    }

    /// The first byte at or after `at` that is no white space.
    pub(super) fn after(&self, at: usize) -> usize {
        if let Some(run) = self.around(at) {
            return run.end;
        }
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len())
    }

    /// A piece without the white space around it.
    pub(super) fn trim(&self, piece: Range<usize>) -> Range<usize> {
        let start = self.after(piece.start).min(piece.end);
        let mut end = piece.end;
        if let Some(run) = end.checked_sub(1).and_then(|last| self.around(last)) {
            end = run.start;
        }
        let end = start + self.text.get(start..end).unwrap_or_default().trim_end().len();
        start..end
    }

    /// A piece without the white space after it, and without the blank lines before it: in a text where indentation means
    /// something it is kept, unless the piece is a single line.
    pub(super) fn trim_around_lines(&self, piece: Range<usize>) -> Range<usize> {
        let inner = self.trim(piece.clone());
        if !self.text.get(inner.clone()).unwrap_or_default().contains(NEWLINES) {
            return inner;
        }
        let before = self.text.get(piece.start..inner.start).unwrap_or_default();
        let lines = before.len() - before.trim_start_matches(NEWLINES).len();
        piece.start + lines..inner.end
    }

    /// The long run that a byte is in.
    fn around(&self, at: usize) -> Option<&Range<usize>> {
        let after = self.runs.partition_point(|run| run.start <= at);
        self.runs.get(after.checked_sub(1)?).filter(|run| run.contains(&at))
    }
}
