//! What reads as code in a text of which only the beginning is known. It decides whether `[9]` may be a program's own, and on
//! nothing that could do harm: for that there is [`super::markdown`].

/// Where a text stands, by what has been seen of it: a run of backticks opens code until the same run or a blank line
/// comes; a line that begins with three backticks or tildes opens a block until such a line closes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodeState {
    mode: CodeMode,
    /// Only blanks stand in the line so far.
    line_is_blank: bool,
    /// The run of fence signs that ends the text so far.
    run: Option<FenceRun>,
    /// The line holds nothing but this run, and blanks.
    closing: Option<FenceRun>,
    /// The block has begun in this line.
    is_opening: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeMode {
    Text,
    Span(usize),
    Fence(FenceRun),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FenceRun {
    sign: char,
    length: usize,
    begins_line: bool,
}

const FENCE_LENGTH: usize = 3;

impl CodeState {
    pub(super) const fn new() -> Self {
        Self { mode: CodeMode::Text, line_is_blank: true, run: None, closing: None, is_opening: false }
    }

    /// Goes past the next character; whether it stands in code.
    pub(super) fn feed(&mut self, character: char) -> bool {
        if let Some(run) = &mut self.run
            && run.sign == character
        {
            run.length += 1;
            return self.mode != CodeMode::Text;
        }
        if let Some(run) = self.run.take() {
            self.end_run(run);
        }
        let was_blank = self.line_is_blank;
        match character {
            '\n' => {
                if let (CodeMode::Fence(opened), Some(closing)) = (self.mode, self.closing)
                    && opened.sign == closing.sign
                    && closing.length >= opened.length
                {
                    self.mode = CodeMode::Text;
                }
                if was_blank && matches!(self.mode, CodeMode::Span(_)) {
                    self.mode = CodeMode::Text;
                }
                self.closing = None;
                self.is_opening = false;
                self.line_is_blank = true;
            }
            '`' | '~' => {
                self.run = Some(FenceRun { sign: character, length: 1, begins_line: was_blank });
                self.line_is_blank = false;
                self.closing = None;
            }
            ' ' | '\t' => {}
            _ => {
                self.line_is_blank = false;
                self.closing = None;
            }
        }
        self.mode != CodeMode::Text
    }

    fn end_run(&mut self, run: FenceRun) {
        match self.mode {
            // What follows a fence of backticks in its line has none.
            CodeMode::Fence(opened) if self.is_opening && opened.sign == '`' && run.sign == '`' => {
                let is_closed = opened.length == run.length;
                self.mode = if is_closed { CodeMode::Text } else { CodeMode::Span(opened.length) };
            }
            CodeMode::Fence(_) => self.closing = run.begins_line.then_some(run),
            CodeMode::Text if run.begins_line && run.length >= FENCE_LENGTH => {
                self.mode = CodeMode::Fence(run);
                self.is_opening = true;
            }
            CodeMode::Text if run.sign == '`' => self.mode = CodeMode::Span(run.length),
            CodeMode::Span(length) if run.sign == '`' && run.length == length => self.mode = CodeMode::Text,
            CodeMode::Text | CodeMode::Span(_) => {}
        }
    }
}
