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

use crate::{
    formats::pdf::hayro::PageGlyph,
    protocol::{MAX_BOXES, TextToMark},
};

/// The most texts that are looked for, and the most letters of one.
const MAX_MARKS: usize = 50;
const MAX_LETTERS: usize = 20_000;
/// Letters on each side of a text that tell its place from others with the same words.
const AROUND: usize = 200;
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

    /// The boxes of all texts on a page of this size: one for each line of each. What several texts share has its boxes once.
    pub(super) fn find_all(&self, texts: &[TextToMark], (width, height): (f32, f32)) -> Vec<PageBox> {
        let (mut boxes, mut marked) = (Vec::new(), vec![false; self.units.len()]);
        for text in texts.iter().take(MAX_MARKS) {
            let wanted = WantedText::of(text);
            let in_its_place = self.best(|order| order.find_within(&wanted));
            // Where the page does not say what stands around it, or says it in another order, the words are looked for by themselves.
            let found = in_its_place
                .filter(|(found, _)| found.letters > 0 && found.letters * 2 >= wanted.own.len())
                .or_else(|| self.best(|order| order.find(wanted.own())));
            let Some((found, order)) = found else { continue };
            for piece in found.pieces {
                if boxes.len() < MAX_BOXES {
                    self.add_boxes(order.units.get(piece).unwrap_or_default(), &mut marked, &mut boxes);
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

    /// What is found in the order in which most of it is.
    fn best(&self, find: impl Fn(&LetterOrder) -> FoundText) -> Option<(FoundText, &LetterOrder)> {
        let found = self.orders.iter().map(|order| (find(order), order));
        found.reduce(|best, next| if next.0.letters > best.0.letters { next } else { best })
    }

    /// Adds the boxes of units that follow one another and are not marked yet: one for each stretch of a line.
    fn add_boxes(&self, units: &[usize], marked: &mut [bool], boxes: &mut Vec<PageBox>) {
        let mut open: Option<(PageBox, &MarkedUnit)> = None;
        let is_new = |unit: &&usize| {
            marked.get_mut(**unit).is_some_and(|is_marked| !std::mem::replace(is_marked, true))
        };
        let units = units.iter().filter(is_new).filter_map(|unit| self.units.get(*unit));
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

/// The letters of a text that is looked for, between those around it.
struct WantedText {
    letters: Vec<char>,
    /// Those of the text itself.
    own: Range<usize>,
}

impl WantedText {
    fn of(mark: &TextToMark) -> Self {
        let before: Vec<char> = letters(&mark.before).collect();
        let mut all = before.get(before.len().saturating_sub(AROUND)..).unwrap_or_default().to_vec();
        let start = all.len();
        all.extend(letters(&mark.text).take(MAX_LETTERS));
        let own = start..all.len();
        all.extend(letters(&mark.after).take(AROUND));
        Self { letters: all, own }
    }

    fn own(&self) -> &[char] {
        self.letters.get(self.own.clone()).unwrap_or_default()
    }
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

    /// Its letters in the order that say this part of the text.
    fn saying(&self, part: &Range<usize>) -> Option<Range<usize>> {
        let from = self.from.max(part.start);
        let to = part.end.min(self.from + self.place.len());
        (from < to).then(|| self.place.start + from - self.from..self.place.start + to - self.from)
    }
}

/// The pieces in the order of the text, without those that stand on the page by chance.
fn meant(pieces: &[TextPiece]) -> impl Iterator<Item = &TextPiece> {
    let longest = |pieces: &[TextPiece]| pieces.iter().map(|piece| piece.place.len()).max().unwrap_or(0);
    // Where all pieces are short, as in narrow columns, the longest of them show what is meant.
    let least = ALONE.min(longest(pieces) * 2 / 3);
    pieces.chunk_by(TextPiece::leads_to).filter(move |stretch| longest(stretch) >= least).flatten()
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
        let pieces: Vec<_> = meant(&self.pieces(wanted)).map(|piece| piece.place.clone()).collect();
        let letters = pieces.iter().map(Range::len).sum();
        if letters < LEAST { FoundText::default() } else { self.found(letters, pieces) }
    }

    /// The text where it stands between what is around it; nothing when that is not known.
    fn find_within(&self, wanted: &WantedText) -> FoundText {
        if wanted.own.len() == wanted.letters.len() {
            return FoundText::default();
        }
        let pieces = self.pieces(&wanted.letters);
        let pieces: Vec<_> = meant(&pieces).filter_map(|piece| piece.saying(&wanted.own)).collect();
        let letters = pieces.iter().map(Range::len).sum();
        self.found(letters, pieces)
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
