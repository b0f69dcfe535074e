//! Takes the numbers that name no source out of an answer's markers, as the answer comes.

use std::collections::VecDeque;

use super::{code::CodeState, known::KnownReferences};
use crate::answer::{
    cite::{
        MAX_MARKER_CHARACTERS, closing_parenthesis, is_label, link_target, may_stand_in_marker, read_numbers,
    },
    quote::opens,
};

/// How far after `[1]` is looked for what makes it a link's text, in bytes.
const LABEL_LIMIT: usize = 256;

/// What stands in some models' markers between the number and a word, as in `【1†source】`. `【4:0†source】` is none: a model that was taught to
/// write so counts messages before the colon and what a search of its own found behind it, and would cite whichever source has that number.
const DAGGER: char = '†';

/// The most blanks that are held back, since a marker may follow and take them along.
const MAX_BLANKS: usize = 64;

/// The most bytes that an answer gains when ranges like `[0-9]` are written out without their unknown numbers.
const MAX_GROWTH: usize = 64 * 1024;

/// Blanks within a line, in front of a marker.
const BLANKS: [char; 4] = [' ', '\t', '\u{A0}', '\u{202F}'];

#[derive(Debug)]
pub(super) struct MarkerFilter {
    /// What may become a marker, or decide on one.
    held: String,
    /// The blanks before it, not yet passed on.
    blanks: VecDeque<char>,
    code: CodeState,
    last: Option<char>,
    /// Nothing but blanks was passed on in this line.
    line_is_blank: bool,
    /// A marker began the line and is gone, and with it the blanks after it.
    skip_blanks: bool,
    /// Parentheses that are open in the address of a link whose text was a marker: it is dropped to its end.
    dropping: usize,
    /// What closes the quotation marks that are open.
    closes: Option<&'static [char]>,
    /// A mark that may open a quotation by what follows, and what stands before it.
    may_open: Option<(char, char)>,
    growth: usize,
}

impl Default for MarkerFilter {
    fn default() -> Self {
        Self {
            held: String::new(),
            blanks: VecDeque::new(),
            code: CodeState::new(),
            last: None,
            line_is_blank: true,
            skip_blanks: false,
            dropping: 0,
            closes: None,
            may_open: None,
            growth: 0,
        }
    }
}

/// What is to be done with what is held.
enum MarkerStep {
    /// More must come.
    More,
    /// So many bytes are no marker.
    Plain(usize),
    /// So many bytes are a marker.
    Marker(usize),
    /// So many bytes are a marker, and so many more the address of which it is the text. It is the marker that counts.
    LinkedMarker(usize, usize),
    /// The same with an address that goes on.
    LinkedOpenMarker(usize),
}

impl MarkerFilter {
    pub(super) fn push(&mut self, known: &KnownReferences, text: &str, passed: &mut String) {
        for character in text.chars() {
            self.held.push(character);
            self.run(known, false, passed);
        }
    }

    pub(super) fn finish(&mut self, known: &KnownReferences, passed: &mut String) {
        self.run(known, true, passed);
        self.pass_blanks(passed);
    }

    /// What is held back now.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.held.len() + self.blanks.iter().map(|blank| blank.len_utf8()).sum::<usize>()
    }

    fn run(&mut self, known: &KnownReferences, is_end: bool, passed: &mut String) {
        self.drop_address();
        while !self.held.is_empty() {
            match self.next(is_end) {
                MarkerStep::More => return,
                MarkerStep::Plain(length) => {
                    let plain: String = self.held.drain(..length).collect();
                    for character in plain.chars() {
                        self.pass(character, passed);
                    }
                }
                MarkerStep::Marker(length) => {
                    let written: String = self.held.drain(..length).collect();
                    self.pass_marker(&written, known, passed);
                }
                MarkerStep::LinkedMarker(length, address) => {
                    let written: String = self.held.drain(..length).collect();
                    self.held.drain(..address);
                    self.pass_marker(&written, known, passed);
                }
                MarkerStep::LinkedOpenMarker(length) => {
                    let written: String = self.held.drain(..length).collect();
                    self.pass_marker(&written, known, passed);
                    self.dropping = 1;
                    // The parenthesis that opens it is counted.
                    self.held.remove(0);
                    self.drop_address();
                }
            }
        }
    }

    /// Drops what has come of an address that is being dropped. It ends with its parenthesis, and before what no address holds.
    fn drop_address(&mut self) {
        while self.dropping > 0
            && let Some(character) = self.held.chars().next()
        {
            match character {
                '(' => self.dropping += 1,
                ')' => self.dropping -= 1,
                character if !is_of_address(character) => {
                    self.dropping = 0;
                    return;
                }
                _ => {}
            }
            self.held.remove(0);
        }
    }

    fn next(&self, is_end: bool) -> MarkerStep {
        let mut characters = self.held.chars();
        let (open, close) = match characters.next() {
            Some('[') => ('[', ']'),
            Some('【') => ('【', '】'),
            first => return MarkerStep::Plain(first.map_or(0, char::len_utf8)),
        };
        let mut peeked = self.code;
        if self.last == Some('\\') && self.blanks.is_empty() || peeked.feed(open) {
            return MarkerStep::Plain(open.len_utf8());
        }
        let inner = characters.as_str();
        let end = inner
            .char_indices()
            .take(MAX_MARKER_CHARACTERS)
            .find(|(_, character)| !may_stand_in_marker(*character));
        let (numbers, length) = match end {
            Some((length, character)) if character == close => (length, length),
            Some((numbers, DAGGER)) if open == '【' => {
                let mut word = inner[numbers..].char_indices().take(MAX_MARKER_CHARACTERS);
                match word.find(|(_, character)| matches!(character, '】' | '【' | '\n')) {
                    Some((length, '】')) => (numbers, numbers + length),
                    None if !is_end && inner[numbers..].chars().count() < MAX_MARKER_CHARACTERS => {
                        return MarkerStep::More;
                    }
                    _ => return MarkerStep::Plain(open.len_utf8()),
                }
            }
            None if !is_end && inner.chars().count() < MAX_MARKER_CHARACTERS => return MarkerStep::More,
            _ => return MarkerStep::Plain(open.len_utf8()),
        };
        if read_numbers(&inner[..numbers]).is_none() {
            return MarkerStep::Plain(open.len_utf8());
        }
        let end = open.len_utf8() + length + close.len_utf8();
        let rest = &self.held[end..];
        if open == '【' {
            return MarkerStep::Marker(end);
        }
        let is_label = match rest.chars().next() {
            None if !is_end => return MarkerStep::More,
            Some('(') => {
                // `![1](…)` is an image.
                let is_text = self.last != Some('!') || !self.blanks.is_empty();
                let is_closed = rest.contains('\n') || closing_parenthesis(&rest[1..]).is_some();
                match link_target(rest) {
                    Some(target) if is_text && is_address(target.address) => {
                        return MarkerStep::LinkedMarker(end, target.length);
                    }
                    None if is_closed || is_end => false,
                    None if rest.len() < LABEL_LIMIT => return MarkerStep::More,
                    None if is_text && is_address(rest) && rest.chars().all(is_of_address) => {
                        return MarkerStep::LinkedOpenMarker(end);
                    }
                    Some(_) | None => true,
                }
            }
            Some(':') if self.line_is_blank => match rest.find('\n') {
                None if !is_end && rest.len() < LABEL_LIMIT => return MarkerStep::More,
                _ => is_label(&self.held, 0, end),
            },
            _ => false,
        };
        if is_label { MarkerStep::Plain(end) } else { MarkerStep::Marker(end) }
    }

    /// Passes a marker on with the numbers that are known, if any is.
    fn pass_marker(&mut self, written: &str, known: &KnownReferences, passed: &mut String) {
        let is_quoted = self.closes.is_some() && known.has_marker(written);
        let inner = written.trim_matches(['[', ']', '【', '】']);
        let (inner, has_word) = inner.split_once(DAGGER).map_or((inner, false), |(inner, _)| (inner, true));
        let numbers = read_numbers(inner).unwrap_or_default();
        let kept: Vec<usize> = numbers.iter().copied().filter(|n| known.has_source(*n)).collect();
        if is_quoted || kept.len() == numbers.len() && !has_word {
            for character in written.chars() {
                self.pass(character, passed);
            }
            return;
        }
        if kept.is_empty() {
            self.blanks.clear();
            self.skip_blanks |= matches!(self.last, None | Some('\n'));
            return;
        }
        let (open, close) = if written.starts_with('[') || has_word { ('[', ']') } else { ('【', '】') };
        let mut rewritten = String::from(open);
        for (position, n) in kept.iter().enumerate() {
            if position > 0 {
                if self.growth + rewritten.len() > written.len() + MAX_GROWTH {
                    break;
                }
                rewritten.push_str(", ");
            }
            rewritten.push_str(&n.to_string());
        }
        rewritten.push(close);
        // What stood behind a dropped address would make a link of it.
        if self.held.starts_with('(') {
            rewritten.push(' ');
        }
        self.growth += rewritten.len().saturating_sub(written.len());
        for character in rewritten.chars() {
            self.pass(character, passed);
        }
    }

    fn pass(&mut self, character: char, passed: &mut String) {
        self.code.feed(character);
        if BLANKS.contains(&character) {
            self.may_open = None;
            if !self.skip_blanks {
                self.blanks.push_back(character);
            }
            if self.blanks.len() > MAX_BLANKS
                && let Some(first) = self.blanks.pop_front()
            {
                passed.push(first);
                self.last = Some(first);
            }
            return;
        }
        self.skip_blanks = false;
        self.pass_blanks(passed);
        passed.push(character);
        let previous = self.last.replace(character).unwrap_or('\n');
        self.line_is_blank = character == '\n';
        if let Some((mark, before)) = self.may_open.take()
            && opens(mark, before, character)
        {
            self.closes = ends_of(mark);
        }
        self.closes = match (self.closes, character) {
            (_, '\n') => None,
            (Some(closes), _) if closes.contains(&character) => None,
            (None, '"' | '“' | '„') => ends_of(character),
            (None, '«' | '‹') if opens(character, previous, ' ') => ends_of(character),
            (None, '»' | '›' | '”') => {
                self.may_open = Some((character, previous));
                None
            }
            (closes, _) => closes,
        };
    }

    fn pass_blanks(&mut self, passed: &mut String) {
        if let Some(last) = self.blanks.back() {
            self.last = Some(*last);
        }
        passed.extend(self.blanks.drain(..));
    }
}

/// Whether a link's target is an address rather than a remark in parentheses, such as `(ibid)`.
fn is_address(target: &str) -> bool {
    target.contains(['/', '#', ':']) && !target.contains(['）', '，', '。', '、', '；'])
}

/// Whether a character may stand in an address of which the end is not known yet. A sentence in a script without blanks may follow it.
fn is_of_address(character: char) -> bool {
    character.is_ascii() && !character.is_whitespace()
}

/// The marks that end a quotation which begins with this one.
const fn ends_of(mark: char) -> Option<&'static [char]> {
    match mark {
        '"' => Some(&['"']),
        '“' | '„' => Some(&['”', '“']),
        '”' => Some(&['”']),
        '«' => Some(&['»']),
        '»' => Some(&['«']),
        '‹' => Some(&['›']),
        '›' => Some(&['‹']),
        _ => None,
    }
}
