//! How a text parts and quotes its fields, told from the text.

use std::panic::{AssertUnwindSafe, catch_unwind};

use csv_nose::{Quote, SampleSize, Sniffer};

use super::fields::{FieldReader, TableDialect};

/// Bytes from the beginning by which the dialect is told; more of them cost time and tell nothing more.
const JUDGED: usize = 64 << 10;
/// Rows that are compared.
const ROWS: usize = 100;
/// What parts fields nearly always.
const COMMON: [u8; 4] = *b"\t;,|";

/// What is known of a dialect.
#[derive(Debug, Clone, Copy)]
pub(super) struct DetectedDialect {
    pub(super) dialect: TableDialect,
    /// How well the rows agree with it.
    pub(super) fit: DialectFit,
}

/// How well rows agree with a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DialectFit {
    /// Fields that most rows have.
    pub(super) fields: usize,
    /// Rows that have so many, of 100.
    pub(super) even: usize,
    /// Rows that were compared.
    pub(super) rows: usize,
}

/// The dialect of a text. `delimiter` is known beforehand: by a line that says so, or by the file's name.
pub(super) fn detect(text: &str, delimiter: Option<u8>) -> DetectedDialect {
    let head = head(text, JUDGED);
    let sniffed = sniff(head, delimiter);
    let quote_for = |delimiter| {
        let quote = sniffed.as_ref().map_or(Quote::Some(b'"'), |sniffed| sniffed.1);
        quote_of(head, delimiter, quote)
    };
    let with = |delimiter| {
        let quote = quote_for(delimiter);
        let dialect = TableDialect { delimiter, quote, escape: escape_of(head, quote) };
        DetectedDialect { dialect, fit: fit(head, dialect) }
    };
    if let Some(delimiter) = delimiter {
        return with(delimiter);
    }
    let sniffed = sniffed.as_ref().map(|sniffed| with(sniffed.0)).filter(|found| found.fit.fields > 1);
    if let Some(found) = sniffed.filter(|found| COMMON.contains(&found.dialect.delimiter)) {
        return found;
    }
    let common = COMMON
        .map(with)
        .into_iter()
        .filter(|found| found.fit.fields > 1)
        .max_by_key(|found| (found.fit.even, found.fit.fields));
    // Blanks and slashes part words and dates oftener than fields, so that all rows have to agree on them.
    let rare = sniffed.filter(|found| found.fit.rows > 2 && found.fit.even > 90);
    match (common, rare) {
        (Some(common), Some(rare)) if common.fit.even < rare.fit.even && common.fit.even < 80 => rare,
        (Some(common), _) => common,
        (None, Some(rare)) => rare,
        (None, None) => with(b','),
    }
}

/// The beginning of a text, up to the end of its last line within so many bytes if there is one.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let head = text.get(..text.floor_char_boundary(bytes)).unwrap_or_default();
    let end = head.rfind(['\n', '\r']).map_or(head.len(), |end| end + 1);
    head.get(..end).unwrap_or(head)
}

/// What csv-nose says: the delimiter, if it is ASCII, and the quotation mark.
fn sniff(head: &str, delimiter: Option<u8>) -> Option<(u8, Quote)> {
    // It works on a thread pool, which in a process that may not have threads has to be this one. It may already be.
    let _already_one = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
    rayon::current_thread_index()?;
    let mut sniffer = Sniffer::new();
    sniffer.sample_size(SampleSize::Records(ROWS));
    if let Some(delimiter) = delimiter {
        sniffer.delimiter(delimiter);
    }
    // A guess is not worth a document.
    let metadata = catch_unwind(AssertUnwindSafe(|| sniffer.sniff_bytes(head.as_bytes()))).ok()?.ok()?;
    let dialect = metadata.dialect;
    dialect.delimiter.is_ascii().then_some((dialect.delimiter, dialect.quote))
}

/// A mark quotes only if it opens fields, and closes nearly all of them that it opens.
fn quote_of(head: &str, delimiter: u8, sniffed: Quote) -> Option<u8> {
    let (opened, closed) = quoted(head, delimiter, b'"');
    match sniffed {
        Quote::Some(b'\'') if opened == 0 => {
            let (opened, closed) = quoted(head, delimiter, b'\'');
            Some(if opened > 1 && closed * 5 >= opened * 4 { b'\'' } else { b'"' })
        }
        Quote::None if closed * 5 < opened * 4 => None,
        // Also where none is seen: there may be some further on.
        _ => Some(b'"'),
    }
}

/// How often a quotation mark stands where a field begins, and where one ends.
pub(super) fn quoted(head: &str, delimiter: u8, quote: u8) -> (usize, usize) {
    let border = |byte: Option<&u8>| byte.is_none_or(|byte| [delimiter, b'\n', b'\r'].contains(byte));
    let bytes = head.as_bytes();
    let quotes = bytes.iter().enumerate().filter(|(_, byte)| **byte == quote);
    quotes.fold((0, 0), |(opened, closed), (at, _)| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        (opened + usize::from(border(before)), closed + usize::from(border(bytes.get(at + 1))))
    })
}

/// Whether a backslash makes a quotation mark a part of its field.
fn escape_of(head: &str, quote: Option<u8>) -> Option<u8> {
    let quote = char::from(quote?);
    let escaped = head.matches(&format!("\\{quote}")).count();
    let doubled = head.matches(&format!("{quote}{quote}")).count();
    // A field that ends with a backslash, such as a folder, is not an escape: then the marks are even without it.
    let marks = head.matches(quote).count();
    (escaped > doubled && (escaped % 2 == 0 || marks % 2 == 1)).then_some(b'\\')
}

fn fit(head: &str, dialect: TableDialect) -> DialectFit {
    let mut fields = FieldReader::new(head, dialect);
    let mut widths = Vec::new();
    while let Some(field) = fields.next() {
        if field.last {
            widths.push(field.column + 1);
            if widths.len() == ROWS {
                break;
            }
        }
    }
    widths.sort_unstable();
    let usual = widths.chunk_by(|one, other| one == other).max_by_key(|same| same.len()).unwrap_or_default();
    DialectFit {
        fields: usual.first().copied().unwrap_or(0),
        even: usual.len() * 100 / widths.len().max(1),
        rows: widths.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect(text: &str) -> (char, Option<char>) {
        let TableDialect { delimiter, quote, .. } = detect(text, None).dialect;
        (char::from(delimiter), quote.map(char::from))
    }

    #[test]
    fn delimiters_and_quotation_marks_are_told_from_the_rows() {
        for (text, delimiter) in [
            ("a,b,c\n1,2,3\n", ','),
            ("name;price\nsalt;1,20\nrice;3,40\nbread;2,10\n", ';'),
            ("a\tb\n1\t2\n3\t4\n", '\t'),
            ("a|b\n1|2\n3|4\n", '|'),
            ("when\n2024/05/01\n2024/05/02\n2024/05/03\n", ','),
            ("façade,nom\nça,garçon\nreçu,leçon\n", ','),
        ] {
            assert_eq!(dialect(text), (delimiter, Some('"')), "{text:?}");
        }
        assert_eq!(dialect("a,b\n'one, two',3\n'four, five',6\n'x',7\n"), (',', Some('\'')));
    }

    #[test]
    fn a_backslash_before_a_quotation_mark_is_an_escape_only_where_it_makes_sense() {
        assert_eq!(detect("a,b\n1,\"so \\\"called\\\" x\"\n", None).dialect.escape, Some(b'\\'));
        assert_eq!(detect("a,b\n1,\"C:\\folder\\\"\n", None).dialect.escape, None);
    }
}
