//! Names of files, which come from strangers and go to strangers.

use lectern_shared::model::document::DocumentType;
use unicode_normalization::UnicodeNormalization;

use crate::routes::NAME;

/// The name of a document that is made of a file without a usable name.
const NAMELESS: &str = "upload";

/// How a document is called that is made of this file: without folders, and without characters that cannot be seen or that
/// turn the others around.
pub(super) fn document_name(file_name: &str) -> String {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|c| !is_treacherous(*c)).nfc().collect();
    let cut: String = name.trim().chars().take(NAME).collect();
    match cut.trim() {
        "" | "." | ".." => NAMELESS.to_owned(),
        name => name.to_owned(),
    }
}

/// Control characters, and those that change the direction of text or break its line.
fn is_treacherous(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Whether a file of this name holds a table.
pub(super) fn is_table(file_name: &str) -> bool {
    extension(file_name).is_some_and(|extension| matches!(extension.as_str(), "csv" | "tsv"))
}

fn extension(name: &str) -> Option<String> {
    let (stem, extension) = name.trim_end().rsplit_once('.')?;
    let plain =
        (1..=8).contains(&extension.len()) && extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (plain && !stem.is_empty()).then(|| extension.to_ascii_lowercase())
}

/// The `Content-Disposition` under which a document's file is saved (RFC 6266): with a name that old clients can read, and
/// with the whole one.
pub(super) fn disposition(name: &str, r#type: DocumentType) -> String {
    let mut file_name: String = name
        .chars()
        .filter(|c| !is_treacherous(*c))
        .map(|c| if matches!(c, '/' | '\\') { '_' } else { c })
        .collect();
    let extension = extension(&file_name);
    let missing = match (r#type, extension.as_deref()) {
        (DocumentType::Pdf, Some("pdf")) | (DocumentType::Csv, Some("csv" | "tsv")) => None,
        (DocumentType::Pdf, _) => Some(".pdf"),
        (DocumentType::Csv, _) => Some(".csv"),
        (DocumentType::Txt | DocumentType::Url | DocumentType::Video, extension) => {
            extension.is_none().then_some(".txt")
        }
    };
    file_name.push_str(missing.unwrap_or_default());
    let plain = |c: char| {
        if c == ' ' || (c.is_ascii_graphic() && !matches!(c, '"' | '%' | '<' | '>')) { c } else { '_' }
    };
    let ascii: String = file_name.chars().map(plain).collect();
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{}", encoded(&file_name))
}

/// Percent-encoded as RFC 8187 asks.
fn encoded(text: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.extend([byte >> 4, byte & 15].map(|digit| char::from(HEX[usize::from(digit)])));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_called_like_its_file_without_folders_and_tricks() {
        let long = "n".repeat(NAME + 50);
        for (file_name, name) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            (r"C:\Users\ada\notes.txt", "notes.txt"),
            ("evil\u{202e}fdp.exe", "evilfdp.exe"),
            ("a\0b\r\nc\u{7f}.txt", "abc.txt"),
            ("  spaced name .txt  ", "spaced name .txt"),
            ("u\u{308}ber.txt", "über.txt"),
            ("", NAMELESS),
            ("..", NAMELESS),
            ("folder/", NAMELESS),
            ("\u{202e}\u{2066}", NAMELESS),
            (&long, &long[..NAME]),
        ] {
            assert_eq!(document_name(file_name), name, "{file_name:?}");
        }
    }

    #[test]
    fn a_table_is_told_by_the_end_of_its_name() {
        for (name, table) in [
            ("a.csv", true),
            ("A.TSV", true),
            ("csv", false),
            (".csv", false),
            ("a.csv.txt", false),
            ("a.", false),
        ] {
            assert_eq!(is_table(name), table, "{name}");
        }
    }

    #[test]
    fn a_file_is_saved_under_a_name_that_leads_nowhere() {
        for (name, r#type, saved) in [
            (
                "Handbook",
                DocumentType::Pdf,
                "attachment; filename=\"Handbook.pdf\"; filename*=UTF-8''Handbook.pdf",
            ),
            ("a.PDF", DocumentType::Pdf, "attachment; filename=\"a.PDF\"; filename*=UTF-8''a.PDF"),
            ("t.tsv", DocumentType::Csv, "attachment; filename=\"t.tsv\"; filename*=UTF-8''t.tsv"),
            ("t", DocumentType::Csv, "attachment; filename=\"t.csv\"; filename*=UTF-8''t.csv"),
            ("read.md", DocumentType::Txt, "attachment; filename=\"read.md\"; filename*=UTF-8''read.md"),
            (
                "../ü \"100%\"\r\n",
                DocumentType::Txt,
                "attachment; filename=\".._\u{5f} _100__.txt\"; filename*=UTF-8''.._%C3%BC%20%22100%25%22.txt",
            ),
        ] {
            assert_eq!(disposition(name, r#type), saved);
        }
    }
}
