//! Right-to-left text. A PDF stores what stands where, so a line read from left to right is in *visual* order; search,
//! quotation and models need the *logical* order, in which it was written.

use unicode_bidi::{BidiClass, BidiInfo, Level, bidi_class};
use unicode_normalization::char::is_combining_mark;

/// Whether there is a letter in `text` that is written from right to left.
pub(super) fn has_rtl(text: &str) -> bool {
    text.chars().any(is_rtl)
}

/// Whether a line with these pieces reads from right to left: most of its letters do.
pub(super) fn is_rtl_line<'a>(pieces: impl Iterator<Item = &'a str>) -> bool {
    let (mut rtl, mut ltr) = (0_usize, 0_usize);
    for c in pieces.flat_map(str::chars) {
        if c.is_ascii() {
            ltr += usize::from(c.is_ascii_alphabetic());
            continue;
        }
        match bidi_class(c) {
            BidiClass::R | BidiClass::AL => rtl += 1,
            BidiClass::L => ltr += 1,
            _ => {}
        }
    }
    rtl > 0 && rtl >= ltr
}

/// A line's logical order from its visual one. Marks must already follow the letters they stand on.
///
/// The bidirectional algorithm maps logical to visual order by reversing runs; for text without explicit controls
/// reversing the same runs leads back.
pub(super) fn logical(visual: &str, rtl_line: bool) -> String {
    let base = if rtl_line { Level::rtl() } else { Level::ltr() };
    let bidi = BidiInfo::new(visual, Some(base));
    let mut out = String::with_capacity(visual.len());
    for paragraph in &bidi.paragraphs {
        let (levels, runs) = bidi.visual_runs(paragraph, paragraph.range.clone());
        for run in runs {
            let piece = visual.get(run.clone()).unwrap_or_default();
            if levels.get(run.start).is_some_and(Level::is_rtl) {
                push_reversed(&mut out, piece);
            } else {
                out.push_str(piece);
            }
        }
    }
    out
}

/// Reverses a run, keeping marks behind their letters and turning brackets round.
fn push_reversed(out: &mut String, run: &str) {
    let mut end = run.len();
    for (start, c) in run.char_indices().rev() {
        if is_combining_mark(c) && start > 0 {
            continue;
        }
        let cluster = run.get(start..end).unwrap_or_default();
        let mut chars = cluster.chars();
        out.extend(chars.next().map(mirrored));
        out.push_str(chars.as_str());
        end = start;
    }
}

fn is_rtl(c: char) -> bool {
    !c.is_ascii() && matches!(bidi_class(c), BidiClass::R | BidiClass::AL)
}

fn mirrored(c: char) -> char {
    match c {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '{' => '}',
        '}' => '{',
        '<' => '>',
        '>' => '<',
        '«' => '»',
        '»' => '«',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reader of a right-to-left page sees, from left to right.
    fn visual(logical: &str) -> String {
        logical.chars().rev().collect()
    }

    #[test]
    fn a_hebrew_line_is_turned_round() {
        assert_eq!(logical(&visual("שלום עולם"), true), "שלום עולם");
    }

    #[test]
    fn numbers_and_latin_words_in_it_are_not() {
        assert_eq!(logical("PDF ץבוק 2024 תנש", true), "שנת 2024 קובץ PDF");
    }

    #[test]
    fn brackets_open_where_they_are_read_first() {
        assert_eq!(logical("(בג) א", true), "א (גב)");
    }

    #[test]
    fn a_hebrew_word_in_an_english_line_is_turned_round_alone() {
        assert_eq!(logical("the word םולש means peace", false), "the word שלום means peace");
    }

    #[test]
    fn vowel_marks_stay_behind_their_letters() {
        assert_eq!(logical("בַא", true), "אבַ");
    }

    #[test]
    fn a_line_reads_the_way_most_of_its_letters_do() {
        assert!(is_rtl_line(["שלום", " a 1234567"].into_iter()));
        assert!(!is_rtl_line(["hello", " א"].into_iter()));
        assert!(!is_rtl_line(["123"].into_iter()));
    }
}
