//! What is certainly code for whoever shows the answer as Markdown.
//!
//! pulldown-cmark is asked about what has passed so far, with none of its extensions and with all of them, and code is what all
//! agree on. Whatever later text could still change is none: then its tags are made harmless, which is always right.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// How much of what has passed is kept to be looked at. Texts seldom have so much without a paragraph of its own.
const REACH: usize = 32 * 1024;

/// The most bytes that are parsed for one answer, so that none takes long: half a second in all, a millisecond at a time.
const MOST_PARSED: usize = 32 << 20;

/// The shortest fence.
const FENCE_LENGTH: usize = 3;

/// What stands where the next line would have its text. No format means anything by it.
const PROBE: char = '\u{E000}';

/// An answer as it is read, up to what has passed.
#[derive(Debug)]
pub(super) struct Markdown {
    /// What has passed since a place at which no block was open. None if it is too much.
    passed: Option<String>,
    /// Where the line begins in it.
    line_at: usize,
    line: Line,
    is_after_blank: bool,
    fence: Option<Fence>,
    /// From here on nothing is certain any more.
    is_lost: bool,
    parsed: usize,
}

/// A fenced block that is open.
#[derive(Debug, Clone, Copy)]
struct Fence {
    sign: char,
    length: usize,
    /// In which column it began.
    indent: usize,
    /// It stands in no list, so that only its end ends it.
    is_top: bool,
}

/// What has passed of the line.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// Spaces at its beginning.
    indent: usize,
    /// Only spaces and tabs so far.
    is_blank: bool,
    has_tab: bool,
    /// The run of fence signs that its text begins with.
    run: Option<(char, usize)>,
    /// What follows the run.
    rest: Rest,
    /// How many equal fence signs end it so far, and whether there were enough of them anywhere.
    signs: (char, usize),
    has_fence: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Nothing or spaces.
    Spaces,
    /// Other blanks, which not everybody takes for such.
    Blanks,
    Text,
}

impl Line {
    const fn new() -> Self {
        Self {
            indent: 0,
            is_blank: true,
            has_tab: false,
            run: None,
            rest: Rest::Spaces,
            signs: ('\n', 0),
            has_fence: false,
        }
    }

    fn feed(&mut self, character: char) {
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
                    self.rest = if self.rest == Rest::Text { Rest::Text } else { Rest::Blanks };
                }
                Some(_) => self.rest = Rest::Text,
                None => {}
            },
        }
    }

    /// Whether it could end this block.
    fn may_close(&self, fence: Fence) -> bool {
        self.rest != Rest::Text
            && self.run.is_some_and(|(sign, length)| sign == fence.sign && length >= fence.length)
    }
}

/// Whether a text goes on as code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// For so many bytes.
    Is(usize),
    /// It depends on what follows.
    Open,
    /// Not for sure.
    No,
}

impl Markdown {
    pub(super) const fn new() -> Self {
        Self {
            passed: Some(String::new()),
            line_at: 0,
            line: Line::new(),
            is_after_blank: true,
            fence: None,
            is_lost: false,
            parsed: 0,
        }
    }

    /// Whether what comes next stands in a fenced block.
    pub(super) fn is_fenced(&self) -> bool {
        let begins_deep = |fence: Fence| !self.line.has_tab && self.line.indent >= fence.indent;
        let is_in = |fence: Fence| fence.is_top || !self.line.is_blank || begins_deep(fence);
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
            match &mut self.passed {
                Some(passed) if passed.len() < REACH => passed.push(character),
                passed => *passed = None,
            }
        }
        if character == '\n' {
            self.end_line();
        } else {
            self.line.feed(character);
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
        if self.fence.is_none() && is_first && (character.is_alphanumeric() || character == '#') {
            self.begin_anew();
        }
    }

    fn begin_anew(&mut self) {
        self.passed = Some(String::new());
        self.line_at = 0;
    }

    fn end_line(&mut self) {
        let line = std::mem::replace(&mut self.line, Line::new());
        self.is_after_blank = line.is_blank;
        match self.fence {
            Some(fence) if line.may_close(fence) => self.close(fence, line),
            None if line.has_fence => self.open(),
            Some(_) | None => {}
        }
        self.line_at = self.passed.as_ref().map_or(0, String::len);
    }

    fn close(&mut self, fence: Fence, line: Line) {
        if line.rest == Rest::Blanks {
            self.is_lost = true;
        } else if !fence.is_top {
            // Deeper than it began it may be a part of the code; then the next fence is looked at with all that was before.
            self.fence = None;
        } else if line.indent <= 3 && !line.has_tab {
            self.fence = None;
            self.begin_anew();
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
        let begins_at = self.line_at + indent;
        let probe_at = passed.len() + indent;
        let text = format!("{passed}{}{PROBE}\n", " ".repeat(indent));
        if !self.may_parse(text.len()) {
            return;
        }
        let seen = ways_to_read().map(|options| block_at(&text, options, begins_at, probe_at));
        match seen {
            [Block::None, Block::None] => {}
            [Block::Fenced { is_top }, Block::Fenced { is_top: other }] if is_top == other => {
                self.fence = Some(Fence { sign, length, indent, is_top });
                if is_top {
                    self.begin_anew();
                }
            }
            [Block::None | Block::Fenced { .. } | Block::Unclear, _] => self.is_lost = true,
        }
    }

    /// Whether so much may be looked at once more.
    fn may_parse(&mut self, bytes: usize) -> bool {
        self.parsed += 2 * bytes;
        self.is_lost |= self.parsed > MOST_PARSED;
        !self.is_lost
    }

    /// Whether this text, which comes next, is at its beginning within backticks that have opened and will close in this line.
    pub(super) fn span(&mut self, view: &str, is_open: bool) -> Span {
        let Some(passed) = self.passed.as_ref().filter(|_| !self.is_lost && self.fence.is_none()) else {
            return Span::No;
        };
        let line = &passed[self.line_at..];
        let Some(length) = open_run(line) else { return Span::No };
        let (close, end) = match closing_run(view, length, is_open) {
            Closing::At(close) => (close, close + length),
            Closing::Open => return Span::Open,
            Closing::None => return Span::No,
        };
        // A reference may take the first backticks for a part of its label, wherever it is defined.
        let paragraph = &passed[passed.rfind("\n\n").unwrap_or(0)..];
        if paragraph.contains("][") {
            return Span::No;
        }
        let has_cells = line.contains('|');
        let alone = line.trim_start();
        // What follows may make a table or a heading of this line, without those before it.
        let texts = [
            (format!("{passed}{}", &view[..end]), passed.len(), has_cells),
            (format!("{alone}{}", &view[..end]), alone.len(), false),
        ];
        if !self.may_parse(texts.iter().map(|(text, ..)| text.len()).sum()) {
            return Span::No;
        }
        let is_code = texts.iter().all(|(text, at, has_cells)| {
            let [plain, extended] = ways_to_read();
            is_span(text, plain, *at, false) && is_span(text, extended, *at, *has_cells)
        });
        if is_code { Span::Is(close) } else { Span::No }
    }
}

/// The ways in which answers are shown: with no extension, and with all but those for a document's front matter, which an
/// answer has none of.
fn ways_to_read() -> [Options; 2] {
    let front_matter =
        Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    [Options::empty(), Options::all().difference(front_matter)]
}

enum Block {
    /// No fence began here.
    None,
    Fenced {
        is_top: bool,
    },
    Unclear,
}

/// What the text at `probe_at` stands in, if that began at `begins_at`.
fn block_at(text: &str, options: Options, begins_at: usize, probe_at: usize) -> Block {
    let mut depth = 0_usize;
    let mut is_in_note = false;
    let mut began = false;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                depth += 1;
                began = matches!(tag, Tag::CodeBlock(CodeBlockKind::Fenced(_))) && range.start == begins_at;
                is_in_note |= matches!(tag, Tag::FootnoteDefinition(_));
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                began = false;
                is_in_note &= tag != TagEnd::FootnoteDefinition;
            }
            Event::Text(_) if began && range.contains(&probe_at) => {
                return if is_in_note { Block::Unclear } else { Block::Fenced { is_top: depth == 1 } };
            }
            _ => {}
        }
    }
    Block::None
}

/// Whether what stands at `at` is a code span that goes to the end of the text and that nothing after it can undo.
fn is_span(text: &str, options: Options, at: usize, has_cells: bool) -> bool {
    let mut is_in_cell = false;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::TableCell) => is_in_cell = true,
            Event::End(TagEnd::TableCell) => is_in_cell = false,
            Event::Code(_) if range.contains(&at) => {
                // Cells and the attributes of headings end within code, and are seen only later.
                return range.end == text.len()
                    && !text[range].contains(['|', '{', '\n'])
                    && (is_in_cell || !has_cells);
            }
            _ => {}
        }
    }
    false
}

/// Where the first run of fence signs stands that is long enough.
fn fence_at(line: &str) -> Option<usize> {
    ["```", "~~~"].into_iter().filter_map(|fence| line.find(fence)).min()
}

/// The length of the backticks that have opened and not closed in this line.
fn open_run(line: &str) -> Option<usize> {
    let mut open = None;
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        let escapes = rest[..at].len() - rest[..at].trim_end_matches('\\').len();
        let skip = usize::from(open.is_none() && escapes % 2 == 1);
        let length = rest[at + skip..].bytes().take_while(|byte| *byte == b'`').count();
        open = match open {
            None if length > 0 => Some(length),
            Some(opened) if opened == length => None,
            open => open,
        };
        rest = &rest[at + skip + length..];
    }
    open
}

enum Closing {
    At(usize),
    Open,
    None,
}

/// Where backticks of this length close in the line.
fn closing_run(view: &str, length: usize, is_open: bool) -> Closing {
    let line = view.split('\n').next().unwrap_or_default();
    let is_open = is_open && line.len() == view.len();
    let mut at = 0;
    while let Some(next) = line[at..].find('`') {
        let start = at + next;
        let run = line[start..].bytes().take_while(|byte| *byte == b'`').count();
        at = start + run;
        if at == line.len() && is_open {
            return Closing::Open;
        }
        if run == length {
            return Closing::At(start);
        }
    }
    if is_open { Closing::Open } else { Closing::None }
}
