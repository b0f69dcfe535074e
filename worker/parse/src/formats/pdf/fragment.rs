//! The pieces of text that a page is read from, as `pdf_oxide` finds them: joined runs, or single glyphs where their
//! order cannot be relied on.

use pdf_oxide::layout::{TextChar, TextSpan};
use unicode_normalization::char::is_combining_mark;

use super::direction;

/// A piece of text and its place, in points; y grows upwards.
#[derive(Debug, Clone)]
pub(super) struct TextFragment {
    /// The text, never blank, without spaces at its ends.
    pub(super) text: String,
    /// Where it begins and ends from left to right.
    pub(super) left: f32,
    pub(super) right: f32,
    /// The line it stands on.
    pub(super) base: f32,
    /// Its font size.
    pub(super) size: f32,
    /// A space was written before or after it.
    pub(super) spaced: (bool, bool),
}

impl TextFragment {
    /// A piece, unless it is blank or stands nowhere.
    pub(super) fn new(text: &str, left: f32, right: f32, base: f32, size: f32) -> Option<Self> {
        let size = if size.is_finite() { size.clamp(1.0, 1_000.0) } else { 10.0 };
        let trimmed = text.trim();
        let sane = [left, right, base].iter().all(|place| place.is_finite());
        if trimmed.is_empty() || !sane {
            return None;
        }
        let spaced = (text.starts_with(char::is_whitespace), text.ends_with(char::is_whitespace));
        Some(Self { text: trimmed.to_owned(), left, right: right.max(left), base, size, spaced })
    }
}

/// Whether nearly all of a page's text is written horizontally, from the page's point of view.
pub(super) fn is_upright(spans: &[TextSpan]) -> bool {
    let (mut turned, mut all, mut stacked) = (0, 0, 0);
    for span in spans.iter().filter(|span| !span.text.trim().is_empty()) {
        all += 1;
        turned += usize::from(is_turned(span));
        let mut chars = span.text.trim().chars();
        let single = chars.next().is_some_and(is_ideograph) && chars.next().is_none();
        stacked += usize::from(single);
    }
    turned * 10 < all.max(1) && stacked * 2 < all.max(1)
}

/// What is written at an angle on an upright page, a stamp in the margin as a rule, piece by piece.
pub(super) fn turned_lines(spans: &[TextSpan]) -> String {
    let turned = spans.iter().filter(|span| is_turned(span)).map(|span| span.text.trim());
    turned.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

fn is_turned(span: &TextSpan) -> bool {
    span.rotation_degrees.abs() > 1.0
}

/// Ideographs and kana: when most pieces are single ones, the page may be written from top to bottom.
pub(super) fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0xff66..=0xff9f)
}

/// The pieces of a page as `pdf_oxide` joins them.
pub(super) fn of_spans(spans: &[TextSpan]) -> Vec<TextFragment> {
    let fragment = |span: &TextSpan| {
        let right = span.bbox.x + span.bbox.width;
        // A span's box holds the spaces at its ends, which would narrow a gutter.
        let blanks =
            |text: &str, trimmed: &str| f32::from(u8::try_from(text.len() - trimmed.len()).unwrap_or(0));
        let count = f32::from(u16::try_from(span.text.chars().count()).unwrap_or(u16::MAX)).max(1.0);
        let blank = (span.bbox.width / count).min(span.font_size * 0.25);
        let before = blanks(&span.text, span.text.trim_start_matches(' ')) * blank;
        let after = blanks(&span.text, span.text.trim_end_matches(' ')) * blank;
        TextFragment::new(&span.text, span.bbox.x + before, right - after, span.bbox.y, span.font_size)
    };
    spans.iter().filter(|span| !is_turned(span)).filter_map(fragment).collect()
}

/// The pieces of a page as single glyphs.
///
/// A mark is joined to the letter it stands on. A glyph that stands for several letters gives them in logical order,
/// each with an equal share of its width; they are turned round here, so that all text is in visual order.
pub(super) fn of_chars(chars: &[TextChar]) -> Vec<TextFragment> {
    let upright = chars.iter().filter(|c| c.rotation_degrees.abs() <= 1.0);
    let mut glyphs: Vec<Vec<&TextChar>> = Vec::with_capacity(chars.len());
    for c in upright {
        match glyphs.last_mut() {
            Some(glyph) if glyph.last().is_some_and(|last| shares_glyph(last, c)) => glyph.push(c),
            _ => glyphs.push(vec![c]),
        }
    }
    glyphs.iter().filter_map(|glyph| fragment_of_glyph(glyph)).collect()
}

fn fragment_of_glyph(glyph: &[&TextChar]) -> Option<TextFragment> {
    let (first, last) = (glyph.first()?, glyph.last()?);
    let text: String = glyph.iter().map(|c| c.char).collect();
    let right = glyph.iter().filter(|c| !is_combining_mark(c.char)).map(|c| c.bbox.x + c.bbox.width);
    let right = right.fold(last.bbox.x, f32::max);
    TextFragment::new(&direction::logical(&text, false), first.bbox.x, right, first.origin_y, first.font_size)
}

/// Whether a character belongs to the same glyph as the one given before it: a mark, the alef of a lam-alef, or one of
/// several that share a width too small for a letter.
fn shares_glyph(last: &TextChar, c: &TextChar) -> bool {
    if last.char.is_whitespace() || (last.origin_y - c.origin_y).abs() > 0.5 * c.font_size.max(1.0) {
        return false;
    }
    if is_combining_mark(c.char) {
        return true;
    }
    let shared = (last.bbox.width - c.bbox.width).abs() < 0.001
        && (last.bbox.x + last.bbox.width - c.bbox.x).abs() < 0.01
        && !c.is_monospace;
    let narrow = c.bbox.width < 0.12 * c.font_size;
    let lam_alef = last.char == '\u{644}' && matches!(c.char, '\u{622}' | '\u{623}' | '\u{625}' | '\u{627}');
    shared && (narrow || lam_alef)
}
