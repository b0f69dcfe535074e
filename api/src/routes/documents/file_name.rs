//! Names of files, which come from strangers and go to strangers.

use lectern_shared::format::extensions;
use unicode_normalization::UnicodeNormalization;

use crate::routes::NAME;

/// The name of a document that is made of a file without a usable name.
pub(super) const NAMELESS: &str = "upload";

/// How a file is called: without folders, and without characters that cannot be seen or that turn the others around. None when
/// nothing is left.
pub(super) fn cleaned(file_name: &str) -> Option<String> {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|c| !is_treacherous(*c)).nfc().collect();
    match shortened(name.trim()).trim() {
        "" | "." | ".." => None,
        name => Some(name.to_owned()),
    }
}

/// At most as many characters as a name may have. What is cut is not its end, which tells what the file is.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= NAME {
        return name.to_owned();
    }
    let end = extension(name).map_or(0, |extension| extension.len() + 1);
    name.chars().take(NAME - end).chain(name.chars().skip(length - end)).collect()
}

/// Control characters, and those that change the direction of text or break its line.
fn is_treacherous(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn extension(name: &str) -> Option<String> {
    let (stem, extension) = name.trim_end().rsplit_once('.')?;
    let plain =
        (1..=8).contains(&extension.len()) && extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (plain && !stem.is_empty()).then(|| extension.to_ascii_lowercase())
}

/// The `Content-Disposition` under which a document's file is saved (RFC 6266): with a name that old clients can read, and
/// with the whole one. It is the document's name, with the end that files of its media type have; `file_name` is how the file
/// was called when it came.
pub(super) fn disposition(name: &str, media_type: &str, file_name: Option<&str>) -> String {
    let mut saved: String = name
        .chars()
        .filter(|c| !is_treacherous(*c))
        .map(|c| if matches!(c, '/' | '\\') { '_' } else { c })
        .collect();
    let fitting = extensions(media_type);
    let fits = |extension: &String| fitting.is_empty() || fitting.contains(&extension.as_str());
    if !extension(&saved).is_some_and(|extension| fits(&extension)) {
        let usual = fitting.first().copied().or((media_type == "text/plain").then_some("txt"));
        let end = file_name.and_then(extension).filter(fits).or(usual.map(str::to_owned));
        if let Some(end) = end {
            saved.push('.');
            saved.push_str(&end);
        }
    }
    let file_name = saved;
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
    fn a_file_is_called_as_it_was_without_folders_and_tricks() {
        let long = format!("{}.txt", "n".repeat(NAME + 50));
        let cut = format!("{}.txt", "n".repeat(NAME - 4));
        let endless = "n".repeat(NAME + 50);
        for (file_name, name) in [
            ("report.pdf", Some("report.pdf")),
            ("../../etc/passwd", Some("passwd")),
            (r"C:\Users\ada\notes.txt", Some("notes.txt")),
            ("evil\u{202e}fdp.exe", Some("evilfdp.exe")),
            ("a\0b\r\nc\u{7f}.txt", Some("abc.txt")),
            ("  spaced name .txt  ", Some("spaced name .txt")),
            ("u\u{308}ber.txt", Some("über.txt")),
            ("", None),
            ("..", None),
            ("folder/", None),
            ("\u{202e}\u{2066}", None),
            (&long, Some(cut.as_str())),
            (&endless, Some(&endless[..NAME])),
        ] {
            assert_eq!(cleaned(file_name).as_deref(), name, "{file_name:?}");
        }
    }

    #[test]
    fn a_file_is_saved_under_a_name_that_leads_nowhere_and_shows_what_it_is() {
        let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        for (name, media_type, file_name, saved) in [
            ("Handbook", "application/pdf", Some("a.pdf"), "Handbook.pdf"),
            ("a.PDF", "application/pdf", None, "a.PDF"),
            ("called.txt", "application/pdf", Some("called.txt"), "called.txt.pdf"),
            ("t.tab", "text/tab-separated-values", Some("t.tab"), "t.tab"),
            ("t", "text/tab-separated-values", Some("t.tab"), "t.tab"),
            ("t", "text/csv", None, "t.csv"),
            ("Letter", docx, Some("x.DOCX"), "Letter.docx"),
            ("Version 1.2", docx, Some("x.docx"), "Version 1.2.docx"),
            ("read", "text/plain", Some("read.rst"), "read.rst"),
            ("read", "text/plain", None, "read.txt"),
            ("main.rs", "text/plain", None, "main.rs"),
            ("sheet", "application/octet-stream", None, "sheet"),
        ] {
            let expected = format!("attachment; filename=\"{saved}\"; filename*=UTF-8''{}", encoded(saved));
            assert_eq!(disposition(name, media_type, file_name), expected);
        }
        assert_eq!(
            disposition("../ü \"100%\"\r\n", "text/plain", None),
            "attachment; filename=\".._\u{5f} _100__.txt\"; filename*=UTF-8''.._%C3%BC%20%22100%25%22.txt",
        );
    }
}
