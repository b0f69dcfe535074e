//! What reads as code in a text of which only the beginning is known. It decides whether `[9]` may be a program's own, and on
//! nothing that could do harm: for that there is [`super::markdown`].

/// Where a text stands, by what has been seen of it: a run of backticks opens code until the same run or a blank line
/// comes; a line that begins with three backticks or tildes opens a block until such a line closes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodeState {
    mode: Mode,
    /// Only blanks stand in the line so far.
    line_is_blank: bool,
    /// The run of fence signs that ends the text so far.
    run: Option<Run>,
    /// The line holds nothing but this run, and blanks.
    closing: Option<Run>,
    /// The block has begun in this line.
    is_opening: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Text,
    Span(usize),
    Fence(Run),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    sign: char,
    length: usize,
    begins_line: bool,
}

const FENCE_LENGTH: usize = 3;

impl CodeState {
    pub(super) const fn new() -> Self {
        Self { mode: Mode::Text, line_is_blank: true, run: None, closing: None, is_opening: false }
    }

    /// Goes past the next character; whether it stands in code.
    pub(super) fn feed(&mut self, character: char) -> bool {
        if let Some(run) = &mut self.run
            && run.sign == character
        {
            run.length += 1;
            return self.mode != Mode::Text;
        }
        if let Some(run) = self.run.take() {
            self.end_run(run);
        }
        let was_blank = self.line_is_blank;
        match character {
            '\n' => {
                if let (Mode::Fence(opened), Some(closing)) = (self.mode, self.closing)
                    && opened.sign == closing.sign
                    && closing.length >= opened.length
                {
                    self.mode = Mode::Text;
                }
                if was_blank && matches!(self.mode, Mode::Span(_)) {
                    self.mode = Mode::Text;
                }
                self.closing = None;
                self.is_opening = false;
                self.line_is_blank = true;
            }
            '`' | '~' => {
                self.run = Some(Run { sign: character, length: 1, begins_line: was_blank });
                self.line_is_blank = false;
                self.closing = None;
            }
            ' ' | '\t' => {}
            _ => {
                self.line_is_blank = false;
                self.closing = None;
            }
        }
        self.mode != Mode::Text
    }

    fn end_run(&mut self, run: Run) {
        match self.mode {
            // What follows a fence of backticks in its line has none.
            Mode::Fence(opened) if self.is_opening && opened.sign == '`' && run.sign == '`' => {
                let is_closed = opened.length == run.length;
                self.mode = if is_closed { Mode::Text } else { Mode::Span(opened.length) };
            }
            Mode::Fence(_) => self.closing = run.begins_line.then_some(run),
            Mode::Text if run.begins_line && run.length >= FENCE_LENGTH => {
                self.mode = Mode::Fence(run);
                self.is_opening = true;
            }
            Mode::Text if run.sign == '`' => self.mode = Mode::Span(run.length),
            Mode::Span(length) if run.sign == '`' && run.length == length => self.mode = Mode::Text,
            Mode::Text | Mode::Span(_) => {}
        }
    }
}
