//! Text cut into words, numbers, identifiers and bigrams.
//!
//! Words are runs of letters, digits and marks, as in Unicode's word boundaries (UAX #29), except for what
//! those would lose: `RFC-9110`, `snake_case`, `CamelCase`, `AB-12/7`, `v1.2.3` and `example.com` count as one *compound*,
//! which is emitted whole (without its joiners, so that `e-mail` is `email`) and in its parts; so is a number with commas. Scripts
//! that put no spaces between words, and Hangul, whose words carry particles, are cut into overlapping bigrams.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, char::is_combining_mark, is_nfkc_quick};

use super::{fold::push_lower, script::GramScript};

/// The longest token, in characters; of a longer word the beginning counts.
pub(crate) const MAX_TOKEN_CHARS: usize = 64;

/// The longest compound, in characters; what follows begins a new one.
const MAX_COMPOUND_CHARS: usize = 1024;

/// More changes between letters and digits than this are a hash or a serial number, not a name.
const MAX_DIGIT_CHANGES: usize = 3;

/// What a text is cut up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenizeMode {
    /// For an index: everything that a question might ask for.
    Document,
    /// For a question: what best identifies it.
    Query,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A word, a number or a part of a compound.
    Word,
    /// A compound as a whole.
    Whole,
    /// A number with commas, as a whole.
    Number,
    /// What stands between the commas of a number: it may be one of a list.
    Group,
    /// Two adjacent characters, or one that stands alone.
    Bigram,
    /// A bigram that is most likely a particle or an ending (Japanese hiragana).
    WeakBigram,
    /// One character of a longer run, for words of one character.
    Single,
}

impl TokenKind {
    /// Whether the token adds to the length of its text; the others repeat what was counted.
    pub(crate) const fn is_counted(self) -> bool {
        matches!(self, Self::Word | Self::Number | Self::Bigram | Self::WeakBigram)
    }
}

/// A token in lower case, with its accents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LexicalToken<'a> {
    /// The token.
    pub(crate) text: &'a str,
    /// What it is.
    pub(crate) kind: TokenKind,
    /// Whether it was written in capitals only, with at least two of them.
    pub(crate) capitals: bool,
    /// Tokens of one compound have the same number.
    pub(crate) unit: u32,
}

/// Cuts a text into tokens, in reading order; a compound comes before its parts.
pub(crate) fn tokenize(text: &str, mode: TokenizeMode, sink: &mut impl FnMut(LexicalToken<'_>)) {
    let text = normalized(text);
    LexicalTokenizer { text: &text, mode, unit: 0, compound: Vec::new(), token: String::new(), sink }.run();
}

fn normalized(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfkc().collect())
    }
}

/// Letters, digits and marks of scripts that are not cut into bigrams.
fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || (!c.is_ascii() && GramScript::of(c).is_none() && (c.is_alphanumeric() || is_combining_mark(c)))
}

/// Characters that are not there for a reader: soft hyphen, joiners, byte order marks.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{feff}')
}

/// The character that joins two words to a compound, whichever way it is written.
const fn joiner(c: char) -> Option<char> {
    Some(match c {
        '-' | '\u{2010}' => '-',
        '\'' | '\u{2019}' => '\'',
        '.' | '_' | '&' | ',' | '/' | ':' => c,
        _ => return None,
    })
}

/// The signs that belong to the number after them: currencies, sections (`§ 5`), issues (`#123`).
const fn is_number_sign(c: char) -> bool {
    matches!(c, '$' | '£' | '¥' | '¢' | '\u{20a0}'..='\u{20c0}' | '§' | '#')
}

struct LexicalTokenizer<'a, S> {
    text: &'a str,
    mode: TokenizeMode,
    unit: u32,
    /// The compound being read, with its joiners.
    compound: Vec<char>,
    /// The token being emitted.
    token: String,
    sink: &'a mut S,
}

impl<S: FnMut(LexicalToken<'_>)> LexicalTokenizer<'_, S> {
    fn run(&mut self) {
        let text = self.text;
        let bytes = text.as_bytes();
        let mut before = ' ';
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if byte.is_ascii() && !byte.is_ascii_alphanumeric() {
                // A section sign stands apart from its number.
                if before != '§' || byte != b' ' {
                    before = char::from(byte);
                }
                at += 1;
                continue;
            }
            if let Some(end) = plain_word(bytes, at) {
                self.unit += 1;
                self.plain(&text[at..end]);
                at = end;
                before = 'a';
                continue;
            }
            let Some(c) = text[at..].chars().next() else { break };
            if GramScript::of(c).is_some() {
                at = self.bigrams(at);
            } else if is_word_char(c) {
                at = self.compound(at, before);
            } else {
                at += c.len_utf8();
            }
            before = c;
        }
    }

    /// A word of ASCII letters without inner capitals: most words of most texts.
    fn plain(&mut self, word: &str) {
        let capitals = word.len() > 1 && word.as_bytes()[1].is_ascii_uppercase();
        if word.as_bytes()[0].is_ascii_uppercase() {
            self.token.clear();
            self.token.push_str(word);
            self.token.make_ascii_lowercase();
            (self.sink)(LexicalToken { text: &self.token, kind: TokenKind::Word, capitals, unit: self.unit });
        } else {
            (self.sink)(LexicalToken { text: word, kind: TokenKind::Word, capitals, unit: self.unit });
        }
    }

    /// Reads the compound that starts at `start`, emits it, and returns where it ends.
    fn compound(&mut self, start: usize, before: char) -> usize {
        let text = self.text;
        let mut chars = std::mem::take(&mut self.compound);
        chars.clear();
        let mut at = start;
        while let Some(c) = text[at..].chars().next() {
            if is_word_char(c) {
                chars.push(c);
                at += c.len_utf8();
            } else if is_invisible(c) {
                at += c.len_utf8();
            } else if let Some(next) = joined(text, at, c, chars.last().copied()) {
                chars.extend(joiner(c));
                at = next;
            } else {
                break;
            }
            if chars.len() >= MAX_COMPOUND_CHARS {
                break;
            }
        }
        self.unit += 1;
        if is_number_sign(before) && chars.first().is_some_and(|c| c.is_numeric()) {
            chars.insert(0, before);
            self.emit(&chars, TokenKind::Whole);
            chars.remove(0);
        }
        if let Some(suffix) = sign(text, at, chars.len()) {
            chars.extend(suffix.chars());
            self.emit(&chars, TokenKind::Whole);
            chars.truncate(chars.len() - suffix.len());
        }
        self.apostrophes(&mut chars);
        self.compound = chars;
        at
    }

    /// Resolves apostrophes: `it's` is `it`, `don't` is `dont`, `l'eau` is two words, `O'Brien` is a compound.
    fn apostrophes(&mut self, chars: &mut Vec<char>) {
        if let Some(at) = chars.iter().position(|c| *c == '\'') {
            let lower = |chars: &[char]| chars.iter().flat_map(|c| c.to_lowercase()).collect::<String>();
            let rest =
                chars.iter().skip(at + 1).position(|c| !c.is_alphabetic()).unwrap_or(chars.len() - at - 1);
            match lower(&chars[at + 1..at + 1 + rest]).as_str() {
                "s" => drop(chars.drain(at..at + 2)),
                "t" | "re" | "ll" | "ve" | "d" | "m" => {
                    chars.remove(at);
                }
                _ if matches!(
                    lower(&chars[..at]).as_str(),
                    "l" | "d"
                        | "j"
                        | "m"
                        | "t"
                        | "s"
                        | "c"
                        | "n"
                        | "qu"
                        | "jusqu"
                        | "lorsqu"
                        | "puisqu"
                        | "quelqu"
                        | "un"
                        | "all"
                        | "dall"
                        | "dell"
                        | "nell"
                        | "sull"
                        | "gl"
                        | "dov"
                        | "cos"
                        | "com"
                ) =>
                {
                    let mut word: Vec<char> = chars.drain(at + 1..).collect();
                    self.node(&chars[..at], 0);
                    self.apostrophes(&mut word);
                    return;
                }
                _ => {}
            }
        }
        self.node(chars, 0);
    }

    /// Emits a compound and its parts. Sentences' marks split first, then hyphens, then case and digits.
    fn node(&mut self, chars: &[char], level: u8) {
        if chars.is_empty() {
            return;
        }
        if level > 2 {
            self.leaf(chars);
            return;
        }
        let digits_split = level == 2
            && (1..chars.len()).filter(|at| is_number(chars, *at) != is_number(chars, at - 1)).count()
                <= MAX_DIGIT_CHANGES;
        let mut start = 0;
        for at in 1..chars.len() {
            let separator = match (level, chars[at]) {
                (0, '.' | ',') => !is_number(chars, at),
                (0, '\'' | '/' | ':') | (1, '-' | '_' | '&') => true,
                _ => false,
            };
            let change = level == 2 && is_change(chars, at, digits_split);
            if separator || change {
                if start == 0 && chars.len() <= MAX_TOKEN_CHARS {
                    self.emit(chars, TokenKind::Whole);
                }
                self.node(&chars[start..at], level + 1);
                start = at + usize::from(separator);
            }
        }
        self.node(&chars[start..], level + 1);
    }

    /// Emits what has no parts. `80,443` may be one number or two ports, so it counts as both.
    fn leaf(&mut self, chars: &[char]) {
        if !chars.contains(&',') {
            self.emit(chars, TokenKind::Word);
            return;
        }
        self.emit(chars, TokenKind::Number);
        for group in chars.split(|c| *c == ',') {
            self.emit(group, TokenKind::Group);
        }
    }

    /// Emits characters in lower case, joiners left out except between digits (`1.2` is not `12`).
    fn emit(&mut self, chars: &[char], kind: TokenKind) {
        self.token.clear();
        let grouped = has_thousands(chars);
        let (mut capitals, mut lower) = (0, false);
        for (at, c) in chars.iter().enumerate().take(MAX_TOKEN_CHARS) {
            if joiner(*c).is_some() {
                if !(grouped && *c == ',') && between_digits(chars, at) {
                    self.token.push(*c);
                }
            } else {
                capitals += usize::from(c.is_uppercase());
                lower |= c.is_lowercase();
                push_lower(*c, &mut self.token);
            }
        }
        if !self.token.is_empty() {
            let capitals = capitals > 1 && !lower;
            (self.sink)(LexicalToken { text: &self.token, kind, capitals, unit: self.unit });
        }
    }

    /// Emits the run of bigram characters that starts at `start`, and returns where it ends.
    fn bigrams(&mut self, start: usize) -> usize {
        let text = self.text;
        let mut end = start;
        let mut chars = text[start..].chars().map_while(|c| Some((c, GramScript::of(c)?))).peekable();
        let mut last: Option<(char, GramScript)> = None;
        while let Some((c, script)) = chars.next() {
            end += c.len_utf8();
            let next = chars.peek().copied();
            if let Some((previous, from)) = last {
                self.gram(&[previous, c], bigram_kind(from, script));
            } else if next.is_none() {
                self.gram(&[c], TokenKind::Bigram);
                break;
            }
            let alone = last.is_none_or(|(_, before)| before != script)
                && next.is_none_or(|(_, after)| after != script);
            let wanted = match (script, self.mode) {
                (GramScript::Han, TokenizeMode::Document) => true,
                (GramScript::Han, TokenizeMode::Query) => alone,
                (GramScript::Hangul, TokenizeMode::Document) => last.is_none(),
                (GramScript::Hangul, TokenizeMode::Query) => {
                    last.is_none() && text[end..].chars().nth(1).is_none_or(|c| GramScript::of(c).is_none())
                }
                _ => false,
            };
            if wanted {
                self.gram(&[c], TokenKind::Single);
            }
            last = Some((c, script));
        }
        end
    }

    fn gram(&mut self, chars: &[char], kind: TokenKind) {
        self.unit += 1;
        self.token.clear();
        self.token.extend(chars);
        (self.sink)(LexicalToken { text: &self.token, kind, capitals: false, unit: self.unit });
    }
}

/// Hiragana writes particles and endings; where it meets another script a word begins or ends.
const fn bigram_kind(first: GramScript, second: GramScript) -> TokenKind {
    match (first, second) {
        (GramScript::Hiragana, _) | (GramScript::Katakana, GramScript::Hiragana) => TokenKind::WeakBigram,
        _ => TokenKind::Bigram,
    }
}

/// The end of the plain ASCII word at `start`, unless something follows that may belong to it.
fn plain_word(bytes: &[u8], start: usize) -> Option<usize> {
    let letters = bytes[start..].iter().take(MAX_TOKEN_CHARS + 1);
    let length = letters.take_while(|b| b.is_ascii_alphabetic()).count();
    let end = start + length;
    let inner = bytes.get(start + 1..end)?;
    let first_upper = bytes[start].is_ascii_uppercase();
    let uniform =
        inner.iter().all(u8::is_ascii_lowercase) || (first_upper && inner.iter().all(u8::is_ascii_uppercase));
    if length == 0 || length > MAX_TOKEN_CHARS || !uniform {
        return None;
    }
    let ends = match (bytes.get(end), bytes.get(end + 1)) {
        (Some(b), _) if !b.is_ascii() || b.is_ascii_alphanumeric() => false,
        (Some(b'-'), next) => {
            next.is_none_or(|b| b.is_ascii() && !b.is_ascii_alphanumeric() && !b.is_ascii_whitespace())
        }
        (Some(b'.' | b'\'' | b'&' | b'_'), next) => {
            next.is_none_or(|b| b.is_ascii() && !b.is_ascii_alphanumeric() && *b != b'_')
        }
        (Some(b'/' | b':'), next) => next.is_none_or(|b| !b.is_ascii_digit() && *b != b':'),
        (Some(b'+' | b'#'), _) => false,
        _ => true,
    };
    ends.then_some(end)
}

/// Where the word continues after the joiner `c` at `at`, if it does.
///
/// A hyphen at the end of a line joins too if the next line goes on in lower case: the halves and the
/// whole are then all indexed, whether the hyphen was the author's or the typesetter's.
fn joined(text: &str, at: usize, c: char, last: Option<char>) -> Option<usize> {
    let kind = joiner(c)?;
    let last = last.filter(|last| joiner(*last).is_none())?;
    let after = at + c.len_utf8();
    let rest = &text[after..];
    let next = rest.chars().next()?;
    if kind == '-' && matches!(next, '\r' | '\n') && last.is_alphabetic() {
        let line = rest.strip_prefix('\r').unwrap_or(rest);
        let line = line.strip_prefix('\n').unwrap_or(line).trim_start_matches([' ', '\t']);
        return line.starts_with(char::is_lowercase).then(|| text.len() - line.len());
    }
    if kind == '_' && next == '_' {
        let word = rest.trim_start_matches('_');
        return word.starts_with(is_word_char).then(|| text.len() - word.len());
    }
    // `std::fmt`, and the zeros left out of an IPv6 address.
    if kind == ':' && next == ':' {
        return rest[1..].starts_with(is_word_char).then_some(after + 1);
    }
    let fits = is_word_char(next)
        && match kind {
            ',' => last.is_numeric() && next.is_numeric(),
            // `12/7` and `10:30`, but not `and/or` and `note:this`.
            '/' | ':' => last.is_numeric() || next.is_numeric(),
            _ => true,
        };
    fits.then_some(after)
}

/// The signs in names such as C++ and F#.
fn sign(text: &str, at: usize, length: usize) -> Option<&'static str> {
    let rest = &text[at..];
    let sign = ["++", "#"].into_iter().find(|sign| rest.starts_with(sign))?;
    let ends = !rest[sign.len()..].starts_with(|c| is_word_char(c) || c == '+' || c == '#');
    (length <= 2 && ends).then_some(sign)
}

fn between_digits(chars: &[char], at: usize) -> bool {
    let digit = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_numeric());
    digit(at.checked_sub(1)) && digit(at.checked_add(1))
}

/// Whether the character is a digit, or the point or comma inside a number.
fn is_number(chars: &[char], at: usize) -> bool {
    chars[at].is_numeric() || (matches!(chars[at], '.' | ',') && between_digits(chars, at))
}

/// Whether another part of an identifier begins at `at`.
fn is_change(chars: &[char], at: usize, digits_split: bool) -> bool {
    let (before, here) = (chars[at - 1], chars[at]);
    if is_number(chars, at) != is_number(chars, at - 1) {
        return digits_split && !is_combining_mark(here);
    }
    if !here.is_uppercase() {
        return false;
    }
    // `HTTPServer` has two parts, `PDFs` one.
    before.is_lowercase()
        || (before.is_uppercase()
            && chars.len() > at + 2
            && chars[at + 1..at + 3].iter().all(|c| c.is_lowercase()))
}

/// Whether the commas in a number group its thousands: `1,000,000` is the same as `1000000`.
fn has_thousands(chars: &[char]) -> bool {
    let mut groups = chars.split(|c| *c == ',');
    groups.next();
    let mut any = false;
    groups.all(|group| {
        any = true;
        group.len() >= 3
            && group[..3].iter().all(|c| c.is_numeric())
            && group.get(3).is_none_or(|c| !c.is_numeric())
    }) && any
}
