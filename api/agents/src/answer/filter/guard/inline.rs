//! Links, images and definitions.

use super::{
    LinePrefix, LinkGuard,
    judge::{AddressStart, LinkKind, is_allowed_address, is_settled, start},
    step::{GuardStep, REMOVED},
};
use crate::answer::filter::{characters::is_invisible, known::KnownReferences, lookahead::LookaheadEnd};

/// What brackets that have passed may still begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenBrackets {
    /// A link to a page: nothing but blanks has passed since `[[`.
    pub(super) page: bool,
    /// A definition: its label was too long to be looked at.
    label: bool,
}

impl OpenBrackets {
    pub(super) const fn new() -> Self {
        Self { page: false, label: false }
    }

    /// Goes past a character that comes after `last`.
    pub(super) fn feed(&mut self, last: char, character: char) {
        let is_blank = character <= ' ' || is_invisible(character);
        self.page = (self.page && is_blank) || (last == '[' && character == '[');
        // A label ends with its paragraph.
        self.label &= !(last == '\n' && character == '\n');
    }
}

/// Where the brackets that a text begins with close.
enum BracketMatch {
    Close(usize),
    /// They may still close.
    Open,
    /// They do not.
    None,
}

/// What stands in the parentheses after a link's text.
enum LinkDestination<'a> {
    Is {
        written: &'a str,
        /// After the closing parenthesis.
        end: usize,
    },
    Open,
    None,
}

impl LinkGuard {
    /// Looks at a text that begins with `[`, `!` or `]`.
    pub(super) fn inline(&mut self, view: &str, end: LookaheadEnd, known: &KnownReferences) -> GuardStep {
        let is_open = end == LookaheadEnd::Open;
        match view.as_bytes() {
            [b'!' | b']'] | [b'!', b'['] if is_open => GuardStep::More(&[]),
            [b'!', b'[', ..] if self.is_code() => GuardStep::Keep(1),
            [b'!', b'[', ..] => self.unless_code(view, end).unwrap_or_else(|| Self::image(view, end, known)),
            [b']', b'(', ..] => Self::close(view, end, known),
            [b']', b':', ..] if self.opened.label && !self.is_code() => GuardStep::Break,
            // Mathematics is written like this; a link is not.
            [b'[', ..] if self.last == '\\' && self.last_but_one != '\\' => GuardStep::Keep(1),
            [b'[', ..] => self.link(view, end, known),
            _ => GuardStep::Keep(1),
        }
    }

    /// Looks at what may be an image. It passes only if nobody can read it as any other than the one that was looked at; in
    /// particular, none passes that names a definition.
    fn image(view: &str, end: LookaheadEnd, known: &KnownReferences) -> GuardStep {
        let is_open = end == LookaheadEnd::Open;
        let close = match brackets(&view[1..]) {
            BracketMatch::Close(close) => 1 + close,
            BracketMatch::Open if is_open => return GuardStep::More(&[']', '\n']),
            BracketMatch::Open | BracketMatch::None => return GuardStep::Break,
        };
        let inner = &view[2..close];
        if view.len() == close + 1 && is_open {
            return GuardStep::More(&[]);
        }
        if !view[close + 1..].starts_with('(') {
            return GuardStep::Break;
        }
        match destination(&view[close + 1..]) {
            LinkDestination::Open if is_open => GuardStep::More(&[')', '\n']),
            LinkDestination::Is { written, end } if !is_allowed_address(written, LinkKind::Image, known) => {
                GuardStep::Replace { length: close + 1 + end, with: "", then: inner.to_owned() }
            }
            LinkDestination::Is { written, end } => {
                let end = close + 1 + end;
                let is_plain = |byte: u8| {
                    byte.is_ascii_alphanumeric() || b"-._~:/?#@!$+,;=%&".contains(&byte) && byte != b'\\'
                };
                let is_alone = view[close + 1..end] == format!("({written})");
                let is_text = !inner.contains(['[', ']', '\\', '`', '<', '&', '$', '\n', '!']);
                if is_alone && is_text && written.bytes().all(is_plain) && !Self::would_remove(inner, known) {
                    GuardStep::Keep(end)
                } else {
                    GuardStep::Break
                }
            }
            LinkDestination::Open | LinkDestination::None => GuardStep::Break,
        }
    }

    /// Looks at brackets that may begin a link or a definition.
    fn link(&mut self, view: &str, end: LookaheadEnd, known: &KnownReferences) -> GuardStep {
        let close = match brackets(view) {
            BracketMatch::Close(close) => close,
            BracketMatch::Open => return self.out_of_sight(end, &[']', '\n']),
            BracketMatch::None => return GuardStep::Keep(1),
        };
        let inner = &view[1..close];
        let Some(next) = view[close + 1..].chars().next() else { return self.out_of_sight(end, &[]) };
        match next {
            '(' => match destination(&view[close + 1..]) {
                LinkDestination::Open if end == LookaheadEnd::Open => return GuardStep::More(&[')', '\n']),
                LinkDestination::Is { written, end }
                    if !is_allowed_address(written, LinkKind::Link, known) =>
                {
                    return GuardStep::Replace { length: close + 1 + end, with: "", then: inner.to_owned() };
                }
                // Outside of a link the brackets would be a tag's.
                LinkDestination::Is { written, end } if !self.is_code() && is_angled(&view[close + 1..]) => {
                    let rest = &view[close + 1..close + 1 + end];
                    let title = rest.split_once('>').map_or("", |(_, title)| title);
                    let then = format!("[{inner}]({}{title}", without_angles(written));
                    return GuardStep::Replace { length: close + 1 + end, with: "", then };
                }
                // If it is still open, it is looked at where it begins.
                LinkDestination::Is { .. } | LinkDestination::Open | LinkDestination::None => {}
            },
            ':' if self.line == LinePrefix::Empty => {
                let Some(note) = inner.strip_prefix('^') else {
                    return definition(view, close + 2, inner, end, known);
                };
                if note
                    .contains(|character: char| !(character.is_alphanumeric() || "-_ ".contains(character)))
                {
                    return GuardStep::Break;
                }
                self.line = LinePrefix::Footnote;
                return GuardStep::Keep(close + 1);
            }
            _ => {}
        }
        GuardStep::Keep(1)
    }

    /// What is to be done with a bracket when what is held does not show what it begins.
    fn out_of_sight(&mut self, end: LookaheadEnd, wake: &'static [char]) -> GuardStep {
        match end {
            LookaheadEnd::Open => return GuardStep::More(wake),
            LookaheadEnd::Full => self.opened.label |= self.line == LinePrefix::Empty,
            LookaheadEnd::Last => {}
        }
        GuardStep::Keep(1)
    }

    /// Looks at `](`, wherever its beginning may be.
    fn close(view: &str, end: LookaheadEnd, known: &KnownReferences) -> GuardStep {
        let at = 2 + view[2..].len() - view[2..].trim_start().len();
        let rest = &view[at..];
        let length = if let Some(angled) = rest.strip_prefix('<') {
            angled.find('>').map(|length| length + 1)
        } else {
            run_length(rest)
        };
        let (written, is_whole) = match (length, end) {
            (Some(length), _) => (&rest[..length], true),
            (None, LookaheadEnd::Open) => return GuardStep::More(&[' ', '\t', '\n', ')', '>']),
            (None, LookaheadEnd::Full) => (rest, false),
            (None, LookaheadEnd::Last) => (rest, true),
        };
        let written = written.strip_prefix('<').unwrap_or(written);
        let may_stay =
            is_allowed_address(written, LinkKind::Link, known) && (is_whole || is_settled(written));
        if may_stay { GuardStep::Keep(2) } else { GuardStep::Break }
    }

    /// Looks at what stands after `[[`, which some readers take for an address as it is written. What must not pass is parted where
    /// it begins, and is a page of one's own then. None if there is nothing to be done.
    pub(super) fn page(
        &mut self,
        view: &str,
        end: LookaheadEnd,
        known: &KnownReferences,
    ) -> Option<GuardStep> {
        if self.is_code() {
            return None;
        }
        let length = match start(view, end) {
            AddressStart::Own => return None,
            AddressStart::Open => return Some(GuardStep::More(&[])),
            AddressStart::Elsewhere(length) => length,
        };
        let paragraph = view.split("\n\n").next().unwrap_or_default();
        match (paragraph.find("]]"), end) {
            (Some(close), _) => {
                let written = paragraph[..close].split('|').next().unwrap_or_default();
                if is_allowed_address(written, LinkKind::Link, known) {
                    return None;
                }
            }
            (None, _) if paragraph.len() < view.len() => return None,
            (None, LookaheadEnd::Open) => return Some(GuardStep::More(&[']', '\n'])),
            (None, LookaheadEnd::Full) => {}
            (None, LookaheadEnd::Last) => return None,
        }
        let parted = GuardStep::Replace { length, with: "", then: format!("{} ", &view[..length]) };
        Some(self.unless_code(view, end).unwrap_or(parted))
    }
}

/// Whether the destination of a link stands between angle brackets.
fn is_angled(view: &str) -> bool {
    view[1..].trim_start().starts_with('<')
}

/// A destination that stood between angle brackets, as it is written without.
fn without_angles(written: &str) -> String {
    let mut bare = String::with_capacity(written.len());
    for character in written.chars() {
        match character {
            '(' => bare.push_str("%28"),
            ')' => bare.push_str("%29"),
            ' ' | '\t' | '\n' => bare.push_str("%20"),
            _ => bare.push(character),
        }
    }
    bare
}

/// Looks at a definition whose destination begins at `at` or after the blanks there.
fn definition(view: &str, at: usize, label: &str, end: LookaheadEnd, known: &KnownReferences) -> GuardStep {
    let blank = |character: char| character.is_whitespace() || character == '>';
    let start = at + view[at..].len() - view[at..].trim_start_matches(blank).len();
    let rest = &view[start..];
    let length = if rest.starts_with('<') {
        rest.find('>').map(|length| length + 1)
    } else {
        rest.find(char::is_whitespace)
    };
    let (length, is_whole) = match (length, end) {
        (Some(length), _) => (length, true),
        (None, LookaheadEnd::Open) => return GuardStep::More(&[]),
        (None, LookaheadEnd::Full) => (rest.len(), false),
        (None, LookaheadEnd::Last) => (rest.len(), true),
    };
    let written = rest[..length].trim_start_matches('<').trim_end_matches('>');
    // Only links refer to it: no image passes that does.
    if is_allowed_address(written, LinkKind::Link, known) && (is_whole || is_settled(written)) {
        return GuardStep::Keep(1);
    }
    if is_whole {
        return GuardStep::Replace { length: start + length, with: "", then: String::new() };
    }
    GuardStep::Replace { length: at, with: REMOVED, then: format!("{label}:") }
}

/// Finds the bracket that closes the first one, in its paragraph.
fn brackets(view: &str) -> BracketMatch {
    let mut depth = 0_usize;
    let mut is_escaped = false;
    let mut last = 0;
    for (at, byte) in view.bytes().enumerate() {
        let previous = std::mem::replace(&mut last, byte);
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match byte {
            b'\\' => is_escaped = true,
            b'[' => depth += 1,
            b']' if depth == 1 => return BracketMatch::Close(at),
            b']' => depth -= 1,
            b'\n' if previous == b'\n' => return BracketMatch::None,
            _ => {}
        }
    }
    BracketMatch::Open
}

/// Reads what begins with the parenthesis after a link's text.
fn destination(view: &str) -> LinkDestination<'_> {
    let blanks = |at: usize| view[at..].len() - view[at..].trim_start().len();
    let start = 1 + blanks(1);
    let rest = &view[start..];
    let (written, length) = if let Some(angled) = rest.strip_prefix('<') {
        match angled.find('>') {
            None => return LinkDestination::Open,
            Some(length) => (&angled[..length], length + 2),
        }
    } else {
        match run_length(rest) {
            None => return LinkDestination::Open,
            Some(length) => (&rest[..length], length),
        }
    };
    let after = start + length;
    let at = after + blanks(after);
    let rest = &view[at..];
    let close = match rest.chars().next() {
        None => return LinkDestination::Open,
        Some(')') => return LinkDestination::Is { written, end: at + 1 },
        Some(_) if at == after => return LinkDestination::None,
        Some('(') => ')',
        Some(quote @ ('"' | '\'')) => quote,
        Some(_) => return LinkDestination::None,
    };
    let mut is_escaped = false;
    for (length, character) in rest.char_indices().skip(1) {
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        if character == '\\' {
            is_escaped = true;
        } else if character == close {
            let at = at + length + character.len_utf8();
            let at = at + blanks(at);
            return match view[at..].chars().next() {
                None => LinkDestination::Open,
                Some(')') => LinkDestination::Is { written, end: at + 1 },
                Some(_) => LinkDestination::None,
            };
        }
    }
    LinkDestination::Open
}

/// The bytes up to a blank, or to a parenthesis that was opened before. None if neither has come.
fn run_length(rest: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut is_escaped = false;
    for (at, character) in rest.char_indices() {
        if character <= ' ' {
            return Some(at);
        }
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match character {
            '\\' => is_escaped = true,
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}
