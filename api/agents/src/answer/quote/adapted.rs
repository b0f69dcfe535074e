//! Quotations as they are adapted to the sentence around them: signs in the form that a keyboard has, and a first letter that is a capital
//! because a sentence begins with it, or none because no sentence does any more. That says nothing else. What is shown as quoted is the
//! source's own text all the same.

use std::ops::Range;

use super::{NormalizedChar, NormalizedText, QuoteParts};

/// Where an adapted quotation stands in a text that does not have it literally.
pub(super) fn find(mut quote: QuoteParts<'_>, mut stored: NormalizedText<'_>) -> Option<Range<usize>> {
    quote.set_plain();
    set_plain(&mut stored.units);
    if let Some(found) = quote.find_in(&stored, &|_| true) {
        return Some(found);
    }
    let is_capital = quote.turn_first_letter()?;
    // A capital that no sentence asks for is the word's own: of names, and of nouns in some languages.
    quote.find_in(&stored, &|start| !is_capital || stored.begins_sentence(start))
}

impl QuoteParts<'_> {
    fn set_plain(&mut self) {
        set_plain(&mut self.whole.units);
        for part in &mut self.parts {
            set_plain(&mut part.units);
        }
    }

    /// Makes the first letter a small one, or a capital, and tells whether it is a capital now; none when it is no letter that can be both.
    fn turn_first_letter(&mut self) -> Option<bool> {
        let first = self.parts.first_mut()?.units.first_mut()?;
        let turned = turned(first.character)?;
        if let Some(same) = self.whole.units.first_mut().filter(|same| same.character == first.character) {
            same.character = turned;
        }
        first.character = turned;
        Some(turned.is_uppercase())
    }
}

/// A letter in its other case, if that is one letter.
fn turned(letter: char) -> Option<char> {
    let turned: Vec<char> =
        if letter.is_lowercase() { letter.to_uppercase().collect() } else { letter.to_lowercase().collect() };
    match turned.as_slice() {
        [turned] if *turned != letter => Some(*turned),
        _ => None,
    }
}

/// Gives signs that have several forms the plainest one. A dash between clauses stays: it joins what a hyphen does not.
fn set_plain(units: &mut [NormalizedChar]) {
    for unit in units {
        unit.character = match unit.character {
            '\u{2018}' | '\u{2019}' | '\u{201B}' | '\u{2BC}' => '\'',
            '\u{201C}' | '\u{201D}' | '\u{201E}' | '\u{201F}' => '"',
            '\u{2010}' | '\u{2011}' | '\u{2012}' | '\u{2013}' | '\u{2212}' => '-',
            character => character,
        };
    }
}

impl NormalizedText<'_> {
    /// Whether a sentence begins with a unit: with the first one, behind the end of another sentence, in a new paragraph, or as an item of a
    /// list.
    fn begins_sentence(&self, at: usize) -> bool {
        let mut is_item = false;
        for unit in self.units.get(..at).unwrap_or_default().iter().rev() {
            match unit.character {
                ' ' => {
                    let blank = self.text.get(unit.bytes.clone()).unwrap_or_default();
                    let lines = blank.matches('\n').count();
                    if lines > 1 || (is_item && lines > 0) {
                        return true;
                    }
                }
                '.' | '!' | '?' | '…' | '|' => return true,
                '-' | '*' | '•' => is_item = true,
                '"' | '\'' | '«' | '»' | '‹' | '›' | '(' | ')' | '[' | ']' | '_' | '#' | '>' => {}
                _ => return false,
            }
        }
        true
    }
}
