//! From the glyphs of a page to its text: glyphs become pieces of lines, and `layout` finds the order in which they are read.
//!
//! What is written in another direction than most of the page is read in a frame of its own, after the rest: there its lines
//! run from left to right and follow one another downwards, whichever way they do on the page.

use std::collections::{BTreeMap, HashMap};

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use super::{
    super::{direction, fragment, fragment::TextFragment, layout},
    glyphs::PageGlyph,
};

/// A gap of this many font sizes ends a piece: `layout` decides what stands between it and the next.
const PIECE_GAP: f32 = 0.6;
/// A gap of this many font sizes is a space.
const SPACE_GAP: f32 = 0.13;
/// The same between characters that are written without spaces.
const IDEOGRAPH_GAP: f32 = 0.5;
/// The same text so many font sizes away is its shadow; of a single letter, which may be meant twice, nearer.
const SHADOW: f32 = 0.3;
/// See [`SHADOW`].
const SHADOW_OF_LETTER: f32 = 0.1;
/// Places of the same text that are compared.
const MAX_PLACES: usize = 200;
/// Degrees by which a line of a crooked scan is off.
const CROOKED: i16 = 5;
/// Directions of writing of one page that are told apart; further ones are read as upright.
const MAX_DIRECTIONS: usize = 16;

/// The text of a page's glyphs in reading order, as `layout` writes it.
pub(super) fn read(glyphs: Vec<PageGlyph>) -> String {
    let glyphs = join_marks(glyphs);
    let mut directions: BTreeMap<i16, Vec<FrameGlyph>> = BTreeMap::new();
    let stacked = are_stacked(&glyphs);
    for glyph in glyphs {
        let mut turned = direction_of(&glyph, stacked);
        if directions.len() >= MAX_DIRECTIONS && !directions.contains_key(&turned) {
            turned = 0;
        }
        directions.entry(turned).or_default().push(FrameGlyph::new(glyph, turned));
    }
    let mut frames: Vec<(usize, Vec<FrameGlyph>)> =
        directions.into_values().map(|glyphs| (letters(&glyphs), glyphs)).collect();
    // The sort is stable: upright writing goes before other of the same extent.
    frames.sort_by_key(|(letters, _)| std::cmp::Reverse(*letters));
    let texts = frames.into_iter().map(|(_, glyphs)| layout::read(pieces(glyphs)));
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// A glyph in a frame in which its line runs from left to right; y grows upwards.
#[derive(Debug)]
struct FrameGlyph {
    text: String,
    left: f32,
    right: f32,
    base: f32,
    size: f32,
}

impl FrameGlyph {
    fn new(glyph: PageGlyph, turned: i16) -> Self {
        let PageGlyph { text, place, base, size, .. } = glyph;
        let middle = (f32::midpoint(place.left, place.right), f32::midpoint(place.top, place.bottom));
        let (left, right, base) = match turned {
            0 => (place.left, place.right, -base),
            90 => (place.top, place.bottom, middle.0),
            180 => (-place.right, -place.left, base),
            270 => (-place.bottom, -place.top, -middle.0),
            oblique => {
                let (sin, cos) = f32::from(oblique).to_radians().sin_cos();
                let (wide, high) = (place.right - place.left, place.bottom - place.top);
                // The box is that of a slanted rectangle, one font size high.
                let width = if cos.abs() > sin.abs() {
                    (wide - size * sin.abs()) / cos.abs()
                } else {
                    (high - size * cos.abs()) / sin.abs()
                };
                let along = middle.0 * cos + middle.1 * sin;
                let half = width.max(0.0) / 2.0;
                (along - half, along + half, middle.0 * sin - middle.1 * cos)
            }
        };
        Self { text, left, right, base, size }
    }
}

/// By how many degrees the frame is turned in which a glyph is read: a quarter for what is written from top to bottom.
fn direction_of(glyph: &PageGlyph, stacked: bool) -> i16 {
    if glyph.vertical || (stacked && glyph.turned == 0) {
        return 90;
    }
    let quarter = (glyph.turned + 45).div_euclid(90) * 90;
    if (glyph.turned - quarter).abs() <= CROOKED { quarter % 360 } else { glyph.turned }
}

/// Whether a page's ideographs stand one below the other, each set by itself: vertical writing in a font that is not.
fn are_stacked(glyphs: &[PageGlyph]) -> bool {
    let ideographs =
        glyphs.iter().filter(|glyph| glyph.text.chars().next().is_some_and(fragment::is_ideograph));
    let (mut below, mut beside, mut before) = (0_usize, 0_usize, None::<&PageGlyph>);
    for glyph in ideographs {
        if let Some(before) = before {
            let right = (glyph.place.left - before.place.left) / before.size;
            let down = (glyph.base - before.base) / before.size;
            below += usize::from(right.abs() < 0.2 && (0.7..1.8).contains(&down));
            beside += usize::from(down.abs() < 0.2 && (0.3..1.8).contains(&right));
        }
        before = Some(glyph);
    }
    below > 3 && below > 2 * beside && below * 2 > glyphs.len()
}

fn letters(glyphs: &[FrameGlyph]) -> usize {
    glyphs.iter().filter(|glyph| !glyph.text.trim().is_empty()).count()
}

/// Joins what stands on, below or over a letter to it: combining marks, and accents that are drawn as signs of their own.
fn join_marks(glyphs: Vec<PageGlyph>) -> Vec<PageGlyph> {
    let mut joined: Vec<PageGlyph> = Vec::with_capacity(glyphs.len());
    // A mark that came before its letter.
    let mut waiting: Option<PageGlyph> = None;
    for mut glyph in glyphs {
        if let Some(mark) = waiting.take()
            && !(stands_on(&mark, &glyph) && add_mark(&mut glyph, &mark))
        {
            joined.push(mark);
        }
        if mark_of(&glyph).is_some() {
            let letter = joined.last_mut().filter(|last| stands_on(&glyph, last));
            if !letter.is_some_and(|letter| add_mark(letter, &glyph)) {
                waiting = Some(glyph);
            }
            continue;
        }
        // Bold is often the same letter drawn twice, a hair apart.
        let doubled = joined.last().is_some_and(|last| {
            last.text == glyph.text
                && (last.place.left - glyph.place.left).abs() < 0.1 * glyph.size
                && (last.base - glyph.base).abs() < 0.1 * glyph.size
        });
        if !doubled || glyph.text.trim().is_empty() {
            joined.push(glyph);
        }
    }
    joined.extend(waiting);
    joined
}

/// Whether the middle of a mark is over a letter.
fn stands_on(mark: &PageGlyph, letter: &PageGlyph) -> bool {
    let middle = |glyph: &PageGlyph| {
        (
            f32::midpoint(glyph.place.left, glyph.place.right),
            f32::midpoint(glyph.place.top, glyph.place.bottom),
        )
    };
    let (mark_at, letter_at) = (middle(mark), middle(letter));
    let slack = 0.1 * letter.size;
    let is_letter = letter.text.chars().next().is_some_and(char::is_alphabetic);
    let within = letter.place.left - slack <= mark_at.0 && mark_at.0 <= letter.place.right + slack;
    is_letter
        && mark.turned == letter.turned
        && (within || mark.turned != 0)
        && (mark_at.1 - letter_at.1).abs() < letter.size
        && (mark_at.0 - letter_at.0).abs() < letter.size
}

/// Writes a mark behind its letter; refused when the letter does not take it.
fn add_mark(letter: &mut PageGlyph, mark: &PageGlyph) -> bool {
    let Some((combining, drawn_alone)) = mark_of(mark) else { return false };
    let mut text = letter.text.clone();
    if drawn_alone {
        // Letters below accents lose their dots.
        let dotted = match text.as_str() {
            "\u{131}" => "i",
            "\u{237}" => "j",
            other => other,
        };
        let composed: String = dotted.chars().chain([combining]).nfc().collect();
        // An accent that makes no letter of its own with this one stays a sign.
        if composed.chars().count() > dotted.chars().count() {
            return false;
        }
        text = composed;
    } else {
        text.push_str(&mark.text);
    }
    letter.text = text;
    true
}

/// The combining mark that a glyph is, and whether it is drawn as a sign of its own, as typewriters and TeX do.
fn mark_of(glyph: &PageGlyph) -> Option<(char, bool)> {
    let mut chars = glyph.text.chars();
    let first = chars.next()?;
    if is_combining_mark(first) {
        return Some((first, false));
    }
    let combining = match first {
        '`' | '\u{2cb}' => '\u{300}',
        '\u{b4}' | '\u{2ca}' => '\u{301}',
        '^' | '\u{2c6}' => '\u{302}',
        '~' | '\u{2dc}' => '\u{303}',
        '\u{af}' | '\u{2c9}' => '\u{304}',
        '\u{2d8}' => '\u{306}',
        '\u{2d9}' => '\u{307}',
        '\u{a8}' => '\u{308}',
        '\u{2da}' => '\u{30a}',
        '\u{2dd}' => '\u{30b}',
        '\u{2c7}' => '\u{30c}',
        '\u{b8}' => '\u{327}',
        '\u{2db}' => '\u{328}',
        _ => return None,
    };
    chars.next().is_none().then_some((combining, true))
}

/// The pieces of lines that glyphs make: single glyphs where some of the page is written from right to left, as a PDF holds
/// those in no order that can be relied on.
fn pieces(glyphs: Vec<FrameGlyph>) -> Vec<TextFragment> {
    if glyphs.iter().any(|glyph| direction::has_rtl(&glyph.text)) {
        let fragment = |glyph: FrameGlyph| {
            let visual = direction::logical(&glyph.text, false);
            TextFragment::new(&visual, glyph.left, glyph.right, glyph.base, glyph.size)
        };
        return glyphs.into_iter().filter_map(fragment).collect();
    }
    let mut pieces = Vec::new();
    let mut open: Option<OpenPiece> = None;
    for glyph in glyphs {
        if glyph.text.trim().is_empty() {
            if let Some(piece) = &mut open {
                piece.spaced = true;
            }
            continue;
        }
        match &mut open {
            Some(piece) if piece.goes_on_with(&glyph) => piece.push(&glyph),
            _ => pieces.extend(open.replace(OpenPiece::new(glyph)).and_then(OpenPiece::close)),
        }
    }
    pieces.extend(open.and_then(OpenPiece::close));
    without_shadows(pieces)
}

/// Leaves out pieces that are written again nearly where they stand already, as shadows and filled-in forms are.
fn without_shadows(pieces: Vec<TextFragment>) -> Vec<TextFragment> {
    let mut written: HashMap<String, Vec<(f32, f32)>> = HashMap::new();
    let mut kept = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let near = if piece.text.chars().nth(1).is_some() { SHADOW } else { SHADOW_OF_LETTER } * piece.size;
        let places = written.entry(piece.text.clone()).or_default();
        let is_shadow =
            |(left, base): &(f32, f32)| (left - piece.left).abs() < near && (base - piece.base).abs() < near;
        // A thousand pieces of the same text are a pattern, not to be compared with one another.
        if places.len() < MAX_PLACES {
            if places.iter().any(is_shadow) {
                continue;
            }
            places.push((piece.left, piece.base));
        }
        kept.push(piece);
    }
    kept
}

/// A piece of a line that may go on.
struct OpenPiece {
    glyph: FrameGlyph,
    /// A space was written behind it.
    spaced: bool,
}

impl OpenPiece {
    fn new(glyph: FrameGlyph) -> Self {
        Self { glyph, spaced: false }
    }

    fn gap(&self, next: &FrameGlyph) -> f32 {
        (next.left - self.glyph.right) / self.glyph.size.max(next.size)
    }

    fn goes_on_with(&self, next: &FrameGlyph) -> bool {
        let (smaller, larger) = (self.glyph.size.min(next.size), self.glyph.size.max(next.size));
        larger < 1.2 * smaller
            && (self.glyph.base - next.base).abs() < 0.15 * smaller
            && (-0.5..PIECE_GAP).contains(&self.gap(next))
    }

    fn push(&mut self, next: &FrameGlyph) {
        let ideographs = self.glyph.text.chars().next_back().is_some_and(fragment::is_ideograph)
            && next.text.chars().next().is_some_and(fragment::is_ideograph);
        let least = if ideographs { IDEOGRAPH_GAP } else { SPACE_GAP };
        if self.spaced || self.gap(next) >= least {
            self.glyph.text.push(' ');
        }
        self.spaced = false;
        self.glyph.text.push_str(&next.text);
        self.glyph.right = self.glyph.right.max(next.right);
    }

    fn close(self) -> Option<TextFragment> {
        let Self { glyph: FrameGlyph { mut text, left, right, base, size }, spaced } = self;
        if spaced {
            text.push(' ');
        }
        TextFragment::new(&text, left, right, base, size)
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::model::page::PageBox;

    use super::*;

    const SIZE: f32 = 10.0;

    /// A glyph half a size wide, whose writing is turned.
    fn glyph(text: &str, left: f32, base: f32, turned: i16) -> PageGlyph {
        let place = match turned {
            90 => PageBox { left: left - 2.0, top: base, right: left + 7.5, bottom: base + 5.0 },
            270 => PageBox { left: left - 7.5, top: base - 5.0, right: left + 2.0, bottom: base },
            _ => PageBox { left, top: base - 7.5, right: left + 5.0, bottom: base + 2.0 },
        };
        PageGlyph { text: text.to_owned(), place, base, size: SIZE, turned, vertical: false }
    }

    /// Glyphs of a line that begins at a place, and goes on as it is turned.
    fn line(text: &str, left: f32, base: f32, turned: i16) -> Vec<PageGlyph> {
        let (right, down) = match turned {
            90 => (0.0, 5.0),
            270 => (0.0, -5.0),
            _ => (5.0, 0.0),
        };
        let place = |(at, c): (usize, char)| {
            let at = f32::from(u16::try_from(at).unwrap());
            glyph(&c.to_string(), left + at * right, base + at * down, turned)
        };
        text.chars().enumerate().map(place).collect()
    }

    #[test]
    fn words_are_told_by_gaps_where_no_space_is_written() {
        let mut glyphs = line("two", 50.0, 100.0, 0);
        glyphs.extend(line("words", 68.0, 100.0, 0));
        glyphs.extend(line("below", 50.0, 112.0, 0));
        assert_eq!(read(glyphs), "two words\nbelow");
    }

    #[test]
    fn accents_that_are_drawn_alone_belong_to_their_letters() {
        let mut glyphs = line("caf", 50.0, 100.0, 0);
        glyphs.push(glyph("\u{b4}", 65.0, 99.0, 0));
        glyphs.extend(line("e na", 65.0, 100.0, 0));
        glyphs.push(glyph("\u{131}", 85.0, 100.0, 0));
        glyphs.push(glyph("\u{a8}", 85.0, 100.0, 0));
        glyphs.extend(line("ve a^b", 90.0, 100.0, 0));
        assert_eq!(read(glyphs), "café naïve a^b");
    }

    #[test]
    fn letters_drawn_twice_are_read_once_and_double_letters_stay() {
        let mut glyphs = Vec::new();
        for glyph in line("ball", 50.0, 100.0, 0) {
            let mut again = glyph.clone();
            again.place.left += 0.3;
            again.place.right += 0.3;
            glyphs.extend([glyph, again]);
        }
        assert_eq!(read(glyphs), "ball");
    }

    #[test]
    fn a_stamp_in_the_margin_comes_after_the_page_and_a_turned_page_is_read_as_it_is_turned() {
        let mut glyphs = line("stamp", 20.0, 500.0, 270);
        glyphs.extend(line("the text of the page", 50.0, 100.0, 0));
        assert_eq!(read(glyphs), "the text of the page\n\nstamp");
        let mut turned = line("first line", 500.0, 50.0, 90);
        turned.extend(line("second line", 488.0, 50.0, 90));
        assert_eq!(read(turned), "first line\nsecond line");
    }

    #[test]
    fn columns_of_ideographs_are_read_from_right_to_left() {
        let column = |text: &str, left: f32, vertical: bool| -> Vec<PageGlyph> {
            let place = |(at, c): (usize, char)| {
                let top = 100.0 + f32::from(u16::try_from(at).unwrap()) * 10.0;
                let place = PageBox { left, top, right: left + 10.0, bottom: top + 10.0 };
                PageGlyph { text: c.to_string(), place, base: top + 8.8, size: SIZE, turned: 0, vertical }
            };
            text.chars().enumerate().map(place).collect()
        };
        for vertical in [true, false] {
            let mut glyphs = column("吾輩は猫である", 500.0, vertical);
            glyphs.extend(column("名前はまだ無い", 484.0, vertical));
            assert_eq!(read(glyphs), "吾輩は猫である\n名前はまだ無い");
        }
    }

    #[test]
    fn a_line_from_right_to_left_is_read_in_logical_order() {
        let visual: String = "שלום עולם".chars().rev().collect();
        assert_eq!(read(line(&visual, 50.0, 100.0, 0)), "שלום עולם");
    }
}
