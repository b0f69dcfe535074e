//! The name under which a document's file is saved.

use lectern_shared::format::extensions;

use lectern_shared::file_name::{extension, is_treacherous};

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
