//! Links, images and definitions.

use super::{End, Guard, Kind, Line, REMOVED, Step, judge::may_pass};
use crate::predict::filter::known::Known;

/// Where the brackets that a text begins with close.
enum Brackets {
    Close(usize),
    /// They may still close.
    Open,
    /// They do not.
    None,
}

/// What stands in the parentheses after a link's text.
enum Destination<'a> {
    Is {
        written: &'a str,
        /// After the closing parenthesis.
        end: usize,
    },
    Open,
    None,
}

impl Guard {
    /// Looks at a text that begins with `[`, `!` or `]`.
    pub(super) fn inline(&mut self, view: &str, end: End, known: &Known) -> Step {
        let is_open = end == End::Open;
        match view.as_bytes() {
            [b'!' | b']'] | [b'!', b'['] if is_open => Step::More(&[]),
            // Some programs show what these hold, which is no text.
            [b'!', b'[', b'[', ..] => Step::Break,
            [b']', b'(', ..] => self.close(view, end, known),
            [b'!', b'[', ..] => self.bracket(view, 1, end, known),
            // Mathematics is written like this; a link is not.
            [b'[', ..] if self.last == '\\' && self.last_but_one != '\\' => Step::Keep(1),
            [b'[', ..] => self.bracket(view, 0, end, known),
            _ => Step::Keep(1),
        }
    }

    /// Looks at brackets that may begin a link or a definition, or, after one byte, an image.
    fn bracket(&mut self, view: &str, from: usize, end: End, known: &Known) -> Step {
        let is_open = end == End::Open;
        let kind = if from == 1 { Kind::Image } else { Kind::Link };
        let opening = from + 1;
        let close = match brackets(&view[from..]) {
            Brackets::Close(close) => from + close,
            Brackets::Open if is_open => return Step::More(&[']', '\n']),
            Brackets::Open | Brackets::None => {
                self.image_is_open |= kind == Kind::Image;
                return Step::Keep(opening);
            }
        };
        let inner = &view[opening..close];
        let is_simple = !inner.contains(['[', ']', '\\', '`', '<', '&']);
        match view[close + 1..].chars().next() {
            None if is_open => return Step::More(&[]),
            Some('(') => match destination(&view[close + 1..]) {
                Destination::Open if is_open => return Step::More(&[')', '\n']),
                Destination::Is { written, end } if !may_pass(written, kind, known) => {
                    return Step::Replace { length: close + 1 + end, with: "", then: inner.to_owned() };
                }
                Destination::Is { .. } | Destination::Open | Destination::None => {
                    if is_simple {
                        self.next_close = Some(kind);
                    } else {
                        self.image_is_open |= kind == Kind::Image;
                    }
                }
            },
            Some(':') if kind == Kind::Link && self.line == Line::Empty => {
                let Some(note) = inner.strip_prefix('^') else {
                    return definition(view, close + 2, inner, end, known);
                };
                if note
                    .contains(|character: char| !(character.is_alphanumeric() || "-_ ".contains(character)))
                {
                    return Step::Break;
                }
                self.line = Line::Footnote;
                return Step::Keep(close + 1);
            }
            _ => self.image_is_open |= kind == Kind::Image && !is_simple,
        }
        Step::Keep(opening)
    }

    /// Looks at `](`, wherever its beginning may be.
    fn close(&mut self, view: &str, end: End, known: &Known) -> Step {
        let at = 2 + view[2..].len() - view[2..].trim_start().len();
        let rest = &view[at..];
        let length = if let Some(angled) = rest.strip_prefix('<') {
            angled.find('>').map(|length| length + 1)
        } else {
            run_length(rest)
        };
        let (written, is_whole) = match length {
            None if end == End::Open => return Step::More(&[' ', '\t', '\n', ')', '>']),
            None => (rest, false),
            Some(length) => (&rest[..length], true),
        };
        let kind =
            self.next_close.take().unwrap_or(if self.image_is_open { Kind::Image } else { Kind::Link });
        let written = written.strip_prefix('<').unwrap_or(written);
        // Of a long address, the host is known by now; that of an image must be known to its end.
        let is_decided = is_whole || kind == Kind::Link || end == End::Last;
        if is_decided && may_pass(written, kind, known) { Step::Keep(2) } else { Step::Break }
    }
}

/// Looks at a definition whose destination begins at `at` or after the blanks there.
fn definition(view: &str, at: usize, label: &str, end: End, known: &Known) -> Step {
    let blank = |character: char| character.is_whitespace() || character == '>';
    let start = at + view[at..].len() - view[at..].trim_start_matches(blank).len();
    let rest = &view[start..];
    let length = if rest.starts_with('<') {
        rest.find('>').map(|length| length + 1)
    } else {
        rest.find(char::is_whitespace)
    };
    let is_whole = length.is_some() || end == End::Last;
    if !is_whole && end == End::Open {
        return Step::More(&[]);
    }
    let length = length.unwrap_or(rest.len());
    let written = rest[..length].trim_start_matches('<').trim_end_matches('>');
    // An image may refer to it, before or after.
    if is_whole && may_pass(written, Kind::Image, known) {
        return Step::Keep(1);
    }
    if may_pass(written, Kind::Link, known) {
        return Step::Replace { length: at, with: "", then: format!("{label}:") };
    }
    if is_whole {
        return Step::Replace { length: start + length, with: "", then: String::new() };
    }
    Step::Replace { length: at, with: REMOVED, then: format!("{label}:") }
}

/// Finds the bracket that closes the first one, in its paragraph.
fn brackets(view: &str) -> Brackets {
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
            b']' if depth == 1 => return Brackets::Close(at),
            b']' => depth -= 1,
            b'\n' if previous == b'\n' => return Brackets::None,
            _ => {}
        }
    }
    Brackets::Open
}

/// Reads what begins with the parenthesis after a link's text.
fn destination(view: &str) -> Destination<'_> {
    let blanks = |at: usize| view[at..].len() - view[at..].trim_start().len();
    let start = 1 + blanks(1);
    let rest = &view[start..];
    let (written, length) = if let Some(angled) = rest.strip_prefix('<') {
        match angled.find('>') {
            None => return Destination::Open,
            Some(length) => (&angled[..length], length + 2),
        }
    } else {
        match run_length(rest) {
            None => return Destination::Open,
            Some(length) => (&rest[..length], length),
        }
    };
    let after = start + length;
    let at = after + blanks(after);
    let rest = &view[at..];
    let close = match rest.chars().next() {
        None => return Destination::Open,
        Some(')') => return Destination::Is { written, end: at + 1 },
        Some(_) if at == after => return Destination::None,
        Some('(') => ')',
        Some(quote @ ('"' | '\'')) => quote,
        Some(_) => return Destination::None,
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
                None => Destination::Open,
                Some(')') => Destination::Is { written, end: at + 1 },
                Some(_) => Destination::None,
            };
        }
    }
    Destination::Open
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
