//! Where a text that was read stands on its page.
//!
//! Letters and digits are compared and nothing else: white space, hyphens at the ends of lines, ligatures, accents and the marks
//! of Markdown are written by a page and by its text in different ways. The order of a page's content need not be that of its
//! text, so several orders are tried, and where none has the whole text its pieces are looked for, one after the other.

use std::{
    cmp::Ordering,
    collections::HashMap,
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    ops::Range,
};

use lectern_shared::model::page::{PageBox, RecognisedWord};
use unicode_normalization::UnicodeNormalization;

use crate::{formats::pdf::hayro::PageGlyph, protocol::MAX_BOXES};

/// The most texts that are looked for, and the most letters of one.
const MAX_MARKS: usize = 50;
const MAX_LETTERS: usize = 20_000;
/// A piece of a text has at least so many letters.
const PIECE: usize = 10;
/// Places where a piece may begin that are compared.
const MAX_PLACES: usize = 32;
/// What is marked of a text that goes over the page's end has at least so many letters, unless it is the whole of it.
const LEAST: usize = 8;
/// Fewer letters that stand apart from the others stand there by chance: pages say a phrase more than once.
const ALONE: usize = 30;
/// So many letters at most are said on the page between two pieces, and not in the text, or the other way round.
const DETOUR: usize = 100;
/// Points around the letters.
const MARGIN: f32 = 1.0;

/// What a page shows in one order: its letters, and which unit each belongs to.
struct LetterOrder {
    letters: Vec<char>,
    /// For each letter, the number of its unit in `units`.
    owners: Vec<usize>,
    /// The units in this order, by their numbers in the page.
    units: Vec<usize>,
}

/// A glyph or a word.
struct MarkedUnit {
    text: String,
    place: PageBox,
    /// Where its line is, across the direction of the writing.
    line: f32,
    size: f32,
    /// Its lines run from top to bottom of the page, or the other way round.
    upright: bool,
}

/// A page's text with places, ready to be searched.
pub(super) struct MarkedText {
    units: Vec<MarkedUnit>,
    orders: Vec<LetterOrder>,
}

impl MarkedText {
    pub(super) fn of_glyphs(glyphs: Vec<PageGlyph>) -> Self {
        let unit = |glyph: PageGlyph| {
            let upright = glyph.vertical || matches!(glyph.turned, 46..=135 | 225..=314);
            let middle = f32::midpoint(glyph.place.left, glyph.place.right);
            let line = if upright { middle } else { glyph.base };
            MarkedUnit { text: glyph.text, place: glyph.place, line, size: glyph.size, upright }
        };
        Self::new(glyphs.into_iter().map(unit).collect())
    }

    pub(super) fn of_words(words: &[RecognisedWord]) -> Self {
        let unit = |word: &RecognisedWord| MarkedUnit {
            text: word.text.clone(),
            place: word.place,
            line: word.place.bottom,
            size: word.place.bottom - word.place.top,
            upright: false,
        };
        Self::new(words.iter().map(unit).collect())
    }

    fn new(units: Vec<MarkedUnit>) -> Self {
        let of_content: Vec<usize> = (0..units.len()).collect();
        let rightwards = by_lines(&units, 1.0);
        let leftwards = by_lines(&units, -1.0);
        let orders = [of_content, rightwards, leftwards];
        let orders = orders.into_iter().map(|order| LetterOrder::new(&units, order)).collect();
        Self { units, orders }
    }

    /// The boxes of all texts on a page of this size: one for each line of each.
    pub(super) fn find_all(&self, texts: &[String], (width, height): (f32, f32)) -> Vec<PageBox> {
        let mut boxes = Vec::new();
        for text in texts.iter().take(MAX_MARKS) {
            let wanted: Vec<char> = letters(text).take(MAX_LETTERS).collect();
            let found = self.orders.iter().map(|order| order.find(&wanted));
            let best = found
                .zip(&self.orders)
                .reduce(|best, next| if next.0.letters > best.0.letters { next } else { best });
            let Some((found, order)) = best else { continue };
            for piece in found.pieces {
                if boxes.len() < MAX_BOXES {
                    self.add_boxes(order.units.get(piece).unwrap_or_default(), &mut boxes);
                }
            }
        }
        boxes.truncate(MAX_BOXES);
        for place in &mut boxes {
            place.left = (place.left - MARGIN).clamp(0.0, width);
            place.top = (place.top - MARGIN).clamp(0.0, height);
            place.right = (place.right + MARGIN).clamp(place.left, width.max(place.left));
            place.bottom = (place.bottom + MARGIN).clamp(place.top, height.max(place.top));
        }
        boxes
    }

    /// Adds the boxes of units that follow one another: one for each stretch of a line.
    fn add_boxes(&self, units: &[usize], boxes: &mut Vec<PageBox>) {
        let mut open: Option<(PageBox, &MarkedUnit)> = None;
        let units = units.iter().filter_map(|unit| self.units.get(*unit));
        for unit in units.filter(|unit| !unit.text.trim().is_empty() && is_sane(unit.place)) {
            open = Some(match open.take() {
                Some((place, last)) if continues(last, unit) => (united(place, unit.place), unit),
                other => {
                    boxes.extend(other.map(|(place, _)| place));
                    (unit.place, unit)
                }
            });
        }
        boxes.extend(open.map(|(place, _)| place));
    }
}

fn is_sane(place: PageBox) -> bool {
    [place.left, place.top, place.right, place.bottom].iter().all(|edge| edge.is_finite())
        && place.left <= place.right
        && place.top <= place.bottom
}

/// Whether a unit stands on the same line as the one before it, and near it.
fn continues(last: &MarkedUnit, next: &MarkedUnit) -> bool {
    let size = last.size.max(next.size);
    let gap = |a: (f32, f32), b: (f32, f32)| (b.0 - a.1).max(a.0 - b.1);
    let apart = if next.upright {
        gap((last.place.top, last.place.bottom), (next.place.top, next.place.bottom))
    } else {
        gap((last.place.left, last.place.right), (next.place.left, next.place.right))
    };
    last.upright == next.upright && (last.line - next.line).abs() < 0.6 * size && apart < 3.0 * size
}

fn united(a: PageBox, b: PageBox) -> PageBox {
    PageBox {
        left: a.left.min(b.left),
        top: a.top.min(b.top),
        right: a.right.max(b.right),
        bottom: a.bottom.max(b.bottom),
    }
}

/// Units line by line from the top, each from left to right, or the other way round. Lines that run down the page come from
/// right to left.
fn by_lines(units: &[MarkedUnit], direction: f32) -> Vec<usize> {
    let order = |a: f32, b: f32| a.partial_cmp(&b).unwrap_or(Ordering::Equal);
    // From the top, or from the right.
    let down = |unit: &MarkedUnit| if unit.upright { -unit.line } else { unit.line };
    let along = |unit: &MarkedUnit| if unit.upright { unit.place.top } else { unit.place.left * direction };
    let mut sorted: Vec<(usize, &MarkedUnit)> = units.iter().enumerate().collect();
    sorted.sort_by(|(_, a), (_, b)| a.upright.cmp(&b.upright).then(order(down(a), down(b))));
    let mut lines: Vec<Vec<(usize, &MarkedUnit)>> = Vec::new();
    for unit in sorted {
        let first = lines.last().and_then(|line| line.first());
        let same = first.is_some_and(|(_, first)| {
            first.upright == unit.1.upright
                && (first.line - unit.1.line).abs() < 0.5 * first.size.max(unit.1.size)
        });
        match lines.last_mut() {
            Some(line) if same => line.push(unit),
            _ => lines.push(vec![unit]),
        }
    }
    for line in &mut lines {
        line.sort_by(|(_, a), (_, b)| order(along(a), along(b)));
    }
    lines.into_iter().flatten().map(|(number, _)| number).collect()
}

/// What is compared of a text.
fn letters(text: &str) -> impl Iterator<Item = char> + '_ {
    let undotted = |c| match c {
        '\u{131}' => 'i',
        '\u{237}' => 'j',
        c => c,
    };
    // Accents are marks of their own then, which are no letters.
    text.nfkd().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).map(undotted)
}

/// What of a text stands on a page in one order.
#[derive(Default)]
struct FoundText {
    /// How many of its letters do.
    letters: usize,
    /// Units that show it, by their places in the order.
    pieces: Vec<Range<usize>>,
}

/// A piece of a text that stands on the page.
struct TextPiece {
    /// Where it begins in the text.
    from: usize,
    /// Its letters in the order.
    place: Range<usize>,
}

impl TextPiece {
    /// Whether the page goes from one to the next about as the text does.
    fn leads_to(&self, next: &Self) -> bool {
        // The difference of `place.start - from`, without what could be below zero.
        (self.place.start + next.from).abs_diff(next.place.start + self.from) <= DETOUR
    }
}

/// The pieces in the order of the text, without those that stand on the page by chance.
fn meant(pieces: &[TextPiece]) -> Vec<Range<usize>> {
    let longest = |pieces: &[TextPiece]| pieces.iter().map(|piece| piece.place.len()).max().unwrap_or(0);
    // Where all pieces are short, as in narrow columns, the longest of them show what is meant.
    let least = ALONE.min(longest(pieces) * 2 / 3);
    let stretches = pieces.chunk_by(TextPiece::leads_to).filter(|stretch| longest(stretch) >= least);
    stretches.flatten().map(|piece| piece.place.clone()).collect()
}

impl LetterOrder {
    fn new(page: &[MarkedUnit], units: Vec<usize>) -> Self {
        let (mut all, mut owners) = (Vec::new(), Vec::new());
        for (owner, unit) in units.iter().enumerate() {
            for c in page.get(*unit).into_iter().flat_map(|unit| letters(&unit.text)) {
                all.push(c);
                owners.push(owner);
            }
        }
        Self { letters: all, owners, units }
    }

    fn find(&self, wanted: &[char]) -> FoundText {
        if wanted.is_empty() {
            return FoundText::default();
        }
        if wanted.len() < PIECE {
            let whole = self.letters.windows(wanted.len()).position(|letters| letters == wanted);
            return whole.map_or_else(FoundText::default, |at| {
                self.found(wanted.len(), std::iter::once(at..at + wanted.len()))
            });
        }
        let pieces = meant(&self.pieces(wanted));
        let letters = pieces.iter().map(Range::len).sum();
        if letters < LEAST { FoundText::default() } else { self.found(letters, pieces) }
    }

    /// The longest pieces of a text, each behind the one before it if it stands there too.
    fn pieces(&self, wanted: &[char]) -> Vec<TextPiece> {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let mut begins: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at, piece) in self.letters.windows(PIECE).enumerate() {
            let places = begins.entry(hasher.hash_one(piece)).or_default();
            if places.len() < MAX_PLACES {
                places.push(at);
            }
        }
        let mut pieces: Vec<TextPiece> = Vec::new();
        let mut at = 0;
        while let Some(piece) = wanted.get(at..at + PIECE) {
            let after = pieces.last().map_or(0, |piece| piece.place.end);
            let places = begins.get(&hasher.hash_one(piece)).into_iter().flatten();
            let rest = wanted.get(at..).unwrap_or_default();
            let length = |place: usize| {
                let here = self.letters.get(place..).unwrap_or_default();
                here.iter().zip(rest).take_while(|(a, b)| a == b).count()
            };
            let longest = places.map(|place| (length(*place), *place)).filter(|(length, _)| *length >= PIECE);
            // Of two that are equally long the one that comes next.
            let longest = longest
                .max_by_key(|(length, place)| (*length, *place >= after, usize::MAX - place.abs_diff(after)));
            match longest {
                Some((length, place)) => {
                    pieces.push(TextPiece { from: at, place: place..place + length });
                    at += length;
                }
                None => at += 1,
            }
        }
        pieces
    }

    /// Letters of this order as the units that show them.
    fn found(&self, letters: usize, pieces: impl IntoIterator<Item = Range<usize>>) -> FoundText {
        let units = |piece: Range<usize>| {
            let first = *self.owners.get(piece.start)?;
            let last = *self.owners.get(piece.end.checked_sub(1)?)?;
            Some(first..last + 1)
        };
        FoundText { letters, pieces: pieces.into_iter().filter_map(units).collect() }
    }
}

#[cfg(test)]
mod tests;
