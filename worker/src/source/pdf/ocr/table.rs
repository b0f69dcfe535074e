//! The table of words that tesseract writes (TSV): one line for each block, paragraph, line and word, words last.

use lectern_parse::formats::pdf;
use lectern_shared::model::page::{PageBox, RecognisedWord};

use super::{RecognisedPage, letters};

/// Most words of a page whose places are kept.
const MAX_WORDS: usize = 5_000;
/// Longest word, in characters.
const MAX_WORD: usize = 200;
/// Points in an inch.
const POINTS: f32 = 72.0;
/// Largest coordinate that is believed, in pixels.
const MAX_PIXELS: f32 = 1_000_000.0;

/// Words below it, of 100, are specks and strokes.
const LEAST_CONFIDENCE: u8 = 30;
/// A page whose letters are below it on average is a photo, or in another language.
const LEAST_OF_PAGE: u64 = 40;
/// What stands on such a page all the same: only a word that is certain.
const CERTAIN: u8 = 80;

/// A word, and where in the order of the page it stands.
struct TableWord<'a> {
    block: &'a str,
    paragraph: &'a str,
    line: &'a str,
    text: String,
    confidence: u8,
    /// None when the table does not say.
    place: Option<PageBox>,
}

/// The words of a page that was drawn with `density` pixels per inch.
pub(super) fn read(table: &str, density: f32) -> RecognisedPage {
    let scale = (density.is_finite() && density > 0.0).then(|| POINTS / density);
    let mut words: Vec<TableWord<'_>> = table.lines().filter_map(|line| word(line, scale)).collect();
    let (mut sum, mut weight) = (0_u64, 0_u64);
    for word in &words {
        let letters = letters(&word.text) as u64;
        sum += letters * u64::from(word.confidence);
        weight += letters;
    }
    let least = if sum < LEAST_OF_PAGE * weight { CERTAIN } else { LEAST_CONFIDENCE };
    words.retain(|word| word.confidence >= least);
    if !words.iter().any(|word| word.text.contains(char::is_alphanumeric)) {
        return RecognisedPage::default();
    }
    let text = pdf::tidy(&joined(&words));
    let words = words.into_iter().take(MAX_WORDS).filter_map(|word| {
        let TableWord { text, confidence, place, .. } = word;
        Some(RecognisedWord { text, place: place?, confidence })
    });
    RecognisedPage { text, words: words.collect() }
}

/// A line of the table, if it is a word's and that says anything.
fn word(line: &str, scale: Option<f32>) -> Option<TableWord<'_>> {
    let cells: Vec<&str> = line.split('\t').collect();
    let &[level, _, block, paragraph, line, _, left, top, width, height, confidence, text] = cells.as_slice()
    else {
        return None;
    };
    // Negative where there is none.
    let confidence = confidence.split('.').next()?.parse::<u8>().ok().filter(|share| *share <= 100)?;
    // Marks of direction stand at the ends of words.
    let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{200e}' | '\u{200f}'));
    if level != "5" || text.is_empty() {
        return None;
    }
    let text = text.chars().take(MAX_WORD).collect();
    let place = scale.and_then(|scale| place(scale, [left, top, width, height]));
    Some(TableWord { block, paragraph, line, text, confidence, place })
}

/// A box on the page, by the texts of its edges and sizes in pixels.
fn place(scale: f32, pixels: [&str; 4]) -> Option<PageBox> {
    let [left, top, width, height] =
        pixels.map(|pixels| pixels.parse::<f32>().ok().filter(|pixels| (0.0..=MAX_PIXELS).contains(pixels)));
    let (left, top) = (left? * scale, top? * scale);
    Some(PageBox { left, top, right: left + width? * scale, bottom: top + height? * scale })
}

/// Words as text, each line on a line, with a blank one between paragraphs.
fn joined(words: &[TableWord<'_>]) -> String {
    let mut text = String::new();
    let mut last: Option<&TableWord<'_>> = None;
    for word in words {
        if let Some(last) = last {
            if (last.block, last.paragraph) != (word.block, word.paragraph) {
                text.push_str("\n\n");
            } else if last.line != word.line {
                text.push('\n');
            } else if !(last.text.ends_with(is_unspaced) && word.text.starts_with(is_unspaced)) {
                text.push(' ');
            }
        }
        text.push_str(&word.text);
        last = Some(word);
    }
    text
}

/// Whether no spaces stand between words in this script: Chinese, Japanese with their punctuation, Thai, Lao, Khmer, Burmese.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3000}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ff65}'
        | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// A table of words, each by its block, paragraph and line, its confidence and its text; beside each other in boxes of
    /// 100 by 50 pixels.
    fn table(words: &[(&str, &str, &str)]) -> String {
        let mut table =
            "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n\
             1\t1\t0\t0\t0\t0\t0\t0\t2480\t3509\t-1\t\n"
                .to_owned();
        for (at, (order, confidence, text)) in words.iter().enumerate() {
            let order = order.replace('.', "\t");
            let left = at * 150;
            let places = format!("{left}\t300\t100\t50");
            writeln!(table, "5\t1\t{order}\t1\t{places}\t{confidence}\t{text}").unwrap();
        }
        table
    }

    #[test]
    fn words_come_in_the_order_of_blocks_with_lines_and_paragraphs() {
        let table = table(&[
            ("1.1.1", "96.3", "The"),
            ("1.1.1", "95", "left"),
            ("1.1.2", "91.99", "col-"),
            ("1.2.1", "96", "Then"),
            ("2.2.1", "96", "right."),
        ]);
        let page = read(&table, 300.0);
        assert_eq!(page.text, "The left\ncol-\n\nThen\n\nright.");
        let place = PageBox { left: 36.0, top: 72.0, right: 60.0, bottom: 84.0 };
        assert_eq!(page.words[1], RecognisedWord { text: "left".to_owned(), place, confidence: 95 });
        assert_eq!(page.words.len(), 5);
    }

    #[test]
    fn specks_are_dropped_and_a_photo_says_only_what_is_certain() {
        let with_specks = table(&[("1.1.1", "90", "harbour"), ("1.1.1", "12", "~;"), ("1.1.2", "95", " ")]);
        assert_eq!(read(&with_specks, 300.0).text, "harbour");
        let photo = [("1.1.1", "71", "OM):"), ("1.1.1", "35", "a10U:"), ("1.1.2", "11", "LOUSLOUSLOUSLOUS")];
        assert_eq!(read(&table(&photo), 300.0), RecognisedPage::default());
        let sign = [photo.as_slice(), &[("2.1.1", "96", "EXIT")]].concat();
        assert_eq!(read(&table(&sign), 300.0).text, "EXIT");
        assert_eq!(read(&table(&[("1.1.1", "97", "|")]), 300.0), RecognisedPage::default());
    }

    #[test]
    fn scripts_without_spaces_get_none() {
        let page =
            read(&table(&[("1.1.1", "90", "港口"), ("1.1.1", "90", "的"), ("1.1.1", "90", "PDF")]), 300.0);
        assert_eq!(page.text, "港口的 PDF");
    }

    #[test]
    fn what_is_no_such_table_says_nothing_and_a_strange_one_has_no_boxes() {
        assert_eq!(read("plain words\nof another program\t", 300.0), RecognisedPage::default());
        let table = table(&[("1.1.1", "90", "here")]);
        for density in [0.0, -1.0, f32::NAN] {
            assert_eq!((read(&table, density).text.as_str(), read(&table, density).words.len()), ("here", 0));
        }
        let strange = table.replace("\t100\t50\t", "\tinf\t-50\t");
        assert_eq!((read(&strange, 300.0).text.as_str(), read(&strange, 300.0).words.len()), ("here", 0));
    }

    #[test]
    fn a_page_of_too_many_words_keeps_its_text() {
        let page = read(&table(&vec![("1.1.1", "90", "word"); MAX_WORDS + 7]), 300.0);
        assert_eq!(page.words.len(), MAX_WORDS);
        assert_eq!(page.text.split(' ').count(), MAX_WORDS + 7);
        assert_eq!(read(&table(&[("1.1.1", "90", &"w".repeat(999))]), 300.0).words[0].text.len(), MAX_WORD);
    }
}
