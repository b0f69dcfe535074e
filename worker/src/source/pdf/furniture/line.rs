//! One line of a page, taken apart for comparison with the lines of other pages.

/// Longer lines are text, in characters.
const LONGEST: usize = 160;
/// How far a printed page number may be from the page's place in the file where little else says that it is one.
const NEAR: i64 = 40;

/// What pages are called in front of their number, or behind it, in lower case.
const PAGE_WORDS: &[&str] = &[
    "page",
    "pages",
    "pag",
    "pág",
    "pg",
    "p",
    "página",
    "pagina",
    "seite",
    "s",
    "blatt",
    "strona",
    "str",
    "sida",
    "side",
    "sivu",
    "oldal",
    "sayfa",
    "стр",
    "страница",
    "сторінка",
    "σελίδα",
    "صفحة",
    "صفحه",
    "עמוד",
    "页",
    "頁",
    "第",
    "ページ",
    "쪽",
    "페이지",
    "halaman",
    "trang",
    "หน้า",
];
/// What stands between a page's number and that of all pages.
const OF_WORDS: &[&str] = &["of", "von", "de", "sur", "di", "van", "av", "af", "z", "из", "/"];
/// What stands before the number of anything else.
const NUMBER_WORDS: &[&str] =
    &["no", "nr", "num", "number", "nummer", "numéro", "número", "n", "№", "nº", "n°", "id"];

/// A line that is not blank.
#[derive(Debug)]
pub(super) struct PageLine<'a> {
    pub(super) text: &'a str,
    /// Whether a blank line is above it.
    pub(super) after_blank: bool,
    /// Whether it is a line of a table, as those of pages are written: in Markdown.
    pub(super) in_table: bool,
}

/// What lines of several pages may have in common.
#[derive(Debug)]
pub(super) struct NormalizedLine {
    /// The text with each number as `#` and each run of white space as one space.
    pub(super) key: String,
    /// The numbers, in their order.
    pub(super) figures: Vec<LineFigure>,
}

/// A number in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineFigure {
    pub(super) value: u64,
}

impl LineFigure {
    /// How much more it is than the number of the page that it is on.
    pub(super) fn ahead_of(self, page: i64) -> i64 {
        i64::try_from(self.value).unwrap_or(i64::MAX).saturating_sub(page)
    }
}

/// The lines of a text that are not blank.
pub(super) fn lines(text: &str) -> Vec<PageLine<'_>> {
    let mut blank = false;
    let mut lines = Vec::new();
    for text in text.split('\n') {
        if text.trim().is_empty() {
            blank = true;
        } else {
            lines.push(PageLine { text, after_blank: std::mem::take(&mut blank), in_table: false });
        }
    }
    mark_tables(&mut lines);
    lines
}

/// Marks what stands in tables: a row over a line of dashes, and every row up to the next blank line.
fn mark_tables(lines: &mut [PageLine<'_>]) {
    let begins = |pair: &[PageLine<'_>]| match pair {
        [head, rule] => head.is_row() && rule.is_rule() && !rule.after_blank,
        _ => false,
    };
    let begins: Vec<bool> = lines.windows(2).map(begins).chain([false]).collect();
    let mut within = false;
    for (line, begins) in lines.iter_mut().zip(begins) {
        within = begins || (within && line.is_row() && !line.after_blank);
        line.in_table = within;
    }
}

impl PageLine<'_> {
    /// Its numbers apart from its words; none of a line that is too long to be anything but text, and of a table's, which is never
    /// anything else: its head is the same on every page that it goes on over.
    pub(super) fn apart(&self) -> Option<NormalizedLine> {
        let said = self.text.trim();
        (!self.in_table && said.chars().nth(LONGEST).is_none()).then(|| take_apart(said))
    }

    fn is_row(&self) -> bool {
        let said = self.text.trim();
        said.len() > 1 && said.starts_with('|') && said.ends_with('|')
    }

    fn is_rule(&self) -> bool {
        self.is_row()
            && self.text.contains("---")
            && self.text.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
    }

    /// Whether it is a remark in brackets, such as what the numbers below it are counted in.
    pub(super) fn is_remark(&self) -> bool {
        let said = self.text.trim();
        said.starts_with(['(', '[', '（']) && said.ends_with([')', ']', '）'])
    }

    /// Whether it says what a key does.
    pub(super) fn says(&self, key: &str) -> bool {
        let (said, first) = (self.text.trim(), key.chars().next());
        // Most lines differ at once.
        (first == Some('#') || said.chars().next() == first)
            && self.apart().is_some_and(|apart| apart.key == key)
    }

    /// Whether it begins or ends as something that goes on: what footers say in sentences besides is told by what is in
    /// them.
    pub(super) fn is_part_of_a_sentence(&self) -> bool {
        let said = self.text.trim();
        let address =
            said.contains("://") || said.contains("www.") || said.contains('@') || said.contains('©');
        let ends = said.ends_with(['.', ',', ';', ':', '!', '?', '…', '”', '»', '"', '。', '！', '？', '؟']);
        !address && (ends || said.starts_with(char::is_lowercase))
    }

    /// Whether it is the head of a table of which the rows `next` follow.
    pub(super) fn heads(&self, next: [Option<&Self>; 2]) -> bool {
        let [Some(first), second] = next else { return false };
        let tabs = |line: &Self| line.text.matches('\t').count();
        if tabs(self) > 0 {
            return tabs(first) == tabs(self);
        }
        let Some(second) = second else { return false };
        let words = |line: &Self| line.text.split_whitespace().count();
        let (above, below): (Vec<_>, Vec<_>) =
            (first.text.split_whitespace().collect(), second.text.split_whitespace().collect());
        let alike = words(self) > 1 && above.len() == words(self) && below.len() == words(self);
        let named = |word: &&&str| word.contains(char::is_alphabetic);
        let shared = above.iter().filter(named).any(|word| below.contains(word));
        let counted = |line: &Self| line.text.contains(|c| digit(c).is_some());
        alike && !shared && counted(first) && counted(second)
    }
}

/// Takes the numbers out of a line.
fn take_apart(text: &str) -> NormalizedLine {
    if let Some(value) = roman(text) {
        return NormalizedLine { key: "#".to_owned(), figures: vec![LineFigure { value }] };
    }
    let mut key = String::with_capacity(text.len());
    let mut figures = Vec::new();
    let mut number: Option<u64> = None;
    for c in text.chars() {
        if let Some(digit) = digit(c) {
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit));
            continue;
        }
        close(&mut number, &mut key, &mut figures);
        if !c.is_whitespace() {
            key.push(c);
        } else if !key.ends_with(' ') {
            key.push(' ');
        }
    }
    close(&mut number, &mut key, &mut figures);
    NormalizedLine { key, figures }
}

fn close(number: &mut Option<u64>, key: &mut String, figures: &mut Vec<LineFigure>) {
    if let Some(value) = number.take() {
        key.push('#');
        figures.push(LineFigure { value });
    }
}

/// The value of a decimal digit in the scripts that pages are numbered in.
fn digit(c: char) -> Option<u64> {
    const ZEROS: [u32; 7] = [0x30, 0x660, 0x6f0, 0x966, 0x9e6, 0xe50, 0xff10];
    let code = u32::from(c);
    ZEROS.iter().find(|zero| (**zero..**zero + 10).contains(&code)).map(|zero| u64::from(code - zero))
}

/// The value of a line that is a small Roman number, as the pages of a preface have it. Capitals number poems and chapters.
fn roman(text: &str) -> Option<u64> {
    const NUMERALS: [(&str, u64); 9] =
        [("c", 100), ("xc", 90), ("l", 50), ("xl", 40), ("x", 10), ("ix", 9), ("v", 5), ("iv", 4), ("i", 1)];
    let mut rest = text.trim_matches(|c: char| !c.is_alphanumeric());
    let mut value = 0;
    let mut smallest = u64::MAX;
    while !rest.is_empty() {
        let (numeral, worth) = NUMERALS.iter().find(|(numeral, _)| rest.starts_with(numeral))?;
        if *worth > smallest {
            return None;
        }
        (smallest, value) = (*worth, value + worth);
        rest = rest.strip_prefix(numeral)?;
    }
    (value > 0).then_some(value)
}

/// The words of a key, in lower case.
fn words(key: &str) -> Vec<String> {
    key.split(|c: char| !(c.is_alphanumeric() || "#№º°".contains(c)))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn is_one_of(word: &str, of: &[&str]) -> bool {
    of.contains(&word.trim_matches('#'))
}

/// Whether a line with so many numbers says that one of them is a page's.
pub(super) fn names_page(key: &str, numbers: usize) -> bool {
    words(key).iter().any(|word| is_one_of(word, PAGE_WORDS) || (numbers > 1 && is_one_of(word, OF_WORDS)))
}

/// Whether a line with words in which a number counts with the pages is a page number, rather than the number of a
/// question or an invoice of which every page holds one. `which` of its `numbers` counts; `ahead` is how far it is ahead of
/// the page's place.
pub(super) fn is_page_label(key: &str, which: usize, numbers: usize, ahead: i64, tabbed: bool) -> bool {
    if names_page(key, numbers) {
        return true;
    }
    let words = words(key);
    let at = words.iter().scan(0, |before, word| {
        let from = *before;
        *before += word.matches('#').count();
        Some(from..*before)
    });
    let counting = at.into_iter().position(|numbers| numbers.contains(&which)).unwrap_or_default();
    let before = counting.checked_sub(1).and_then(|before| words.get(before));
    if before.is_some_and(|word| is_one_of(word, NUMBER_WORDS)) {
        return false;
    }
    let said = key.trim_matches(|c: char| c.is_whitespace() || "-–—|·•()[]".contains(c));
    let at_edge = (which == 0 && said.starts_with('#')) || (which + 1 == numbers && said.ends_with('#'));
    let letters = words.iter().filter(|word| word.contains(char::is_alphabetic)).count();
    at_edge && (tabbed || letters > 2 || (letters == 2 && ahead.abs() <= NEAR))
}
