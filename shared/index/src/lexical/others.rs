//! Codes and years: what tells of others of the same kind than those that are asked for.

use std::{collections::BTreeSet, ops::RangeInclusive};

use super::{TokenKind, TokenizeMode, tokenize};

/// The numbers that are read as years.
const YEARS: RangeInclusive<u32> = 1_900..=2_099;

/// A thing that is asked for by a name with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskedThing<'a> {
    /// `E-05`: its letters, in lower case, and how many digits it has.
    Code(&'a str, usize),
    /// 2026.
    Year(u32),
}

impl<'a> AskedThing<'a> {
    /// What a word in lower case and without joiners names, if it is one of these.
    pub(super) fn of(word: &'a str) -> Option<Self> {
        let (letters, digits) = word.split_at(word.find(|c: char| c.is_ascii_digit())?);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        if !letters.is_empty() {
            return letters.chars().all(char::is_alphabetic).then_some(Self::Code(letters, digits.len()));
        }
        let year = digits.parse::<u32>().ok().filter(|year| digits.len() == 4 && YEARS.contains(year));
        year.map(Self::Year)
    }
}

/// Whether texts, which have none of these things, tell of others of the kind of one of them.
pub(super) fn tell_of_others<'t>(asked: &[AskedThing<'_>], texts: impl Iterator<Item = &'t str>) -> bool {
    if asked.is_empty() {
        return false;
    }
    let (mut codes, mut years) = (Vec::new(), BTreeSet::new());
    for text in texts {
        tokenize(text, TokenizeMode::Document, &mut |token| match (token.kind, AskedThing::of(token.text)) {
            (TokenKind::Whole, Some(AskedThing::Code(..))) => codes.push(token.text.to_owned()),
            (TokenKind::Word, Some(AskedThing::Year(year))) => {
                years.insert(year);
            }
            _ => {}
        });
    }
    asked.iter().any(|thing| are_others(*thing, &codes, &years))
}

/// Whether these codes and years, among which this one is not, are others of its kind. Of years these are later ones, and a series of
/// earlier ones: what holds from one year on may hold in those behind it.
fn are_others(asked: AskedThing<'_>, codes: &[String], years: &BTreeSet<u32>) -> bool {
    match asked {
        AskedThing::Code(..) => codes.iter().any(|code| AskedThing::of(code) == Some(asked)),
        AskedThing::Year(asked) => {
            let are_later = years.first().is_some_and(|first| *first > asked);
            are_later || (years.len() > 1 && years.last().is_some_and(|last| *last < asked))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_code_or_year_is_told_from_an_amount() {
        let others = |asked: &str, text: &str| {
            let asked: Vec<_> = AskedThing::of(asked).into_iter().collect();
            tell_of_others(&asked, [text].into_iter())
        };
        assert!(others("e05", "E-01: The door is not closed."));
        assert!(!others("e05", "F-01 is a fuse."), "another kind of code");
        assert!(!others("a4", "The printer A-102 has two trays."), "A4 is none of these");
        assert!(others("2026", "The fee is 48,000 euros in 2024 and 49,500 euros in 2025."));
        assert!(others("2023", "The fee is 48,000 euros in 2024."));
        assert!(!others("2026", "From March 2024 the fee is 48,000 euros."), "it may hold in 2026");
        assert!(!others("2026", "It begins in March 2024 and ends in 2027."), "2026 lies between");
        assert!(!others("2023", "It costs 2,050 euros."), "an amount");
        assert!(!others("777", "Set the switch of module 778."), "any other number");
    }
}
