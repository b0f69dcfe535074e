//! Plain text, in whatever encoding it comes.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};
use lectern_shared::model::job::Warning;
use tokio::{fs::File, io::AsyncReadExt};

use super::{Extracted, LoadContext};
use crate::ingest::Failure;

/// Text that came with the document.
pub(super) async fn from_inline(content: String, context: &LoadContext<'_>) -> Result<Extracted, Failure> {
    let limit = context.limits.characters;
    tokio::task::spawn_blocking(move || {
        Ok(Extracted { text: tidy(&content, limit)?, ..Extracted::default() })
    })
    .await
    .map_err(|_| Failure::Panicked)?
}

/// Text from a file: by its byte order mark, else the encoding that the server named, else the one that fits best.
pub(super) async fn load(
    mut file: File,
    bytes: u64,
    charset: Option<String>,
    context: &LoadContext<'_>,
) -> Result<Extracted, Failure> {
    let mut raw = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    file.read_to_end(&mut raw).await?;
    let limit = context.limits.characters;
    tokio::task::spawn_blocking(move || {
        let encoding = encoding_of(&raw, charset.as_deref());
        let (text, _, replaced) = encoding.decode(&raw);
        let mut extracted = Extracted { text: tidy(&text, limit)?, ..Extracted::default() };
        if replaced {
            let count = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count() as u64;
            extracted.warnings.push(Warning {
                code: "undecodable_bytes".to_owned(),
                message: format!("Some bytes are not valid {} and were replaced.", encoding.name()),
                count,
            });
        }
        Ok(extracted)
    })
    .await
    .map_err(|_| Failure::Panicked)?
}

fn encoding_of(raw: &[u8], charset: Option<&str>) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(raw) {
        return encoding;
    }
    let named = charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    // These look like something else to everyone who was not told.
    if let Some(encoding) = named.filter(|encoding| !encoding.is_ascii_compatible()) {
        return encoding;
    }
    if std::str::from_utf8(raw).is_ok() {
        return UTF_8;
    }
    if let Some(encoding) = named.filter(|encoding| *encoding != UTF_8) {
        return encoding;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(raw, true);
    detector.guess(None, Utf8Detection::Allow)
}

/// Line ends as `\n`, no NUL and no byte order mark.
fn tidy(text: &str, limit: u64) -> Result<String, Failure> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut tidied = String::with_capacity(text.len());
    let mut characters = 0_u64;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\0' => continue,
            '\r' => {
                rest.next_if_eq(&'\n');
                tidied.push('\n');
            }
            c => tidied.push(c),
        }
        characters += 1;
        if characters > limit {
            let message =
                format!("The text has more than {limit} characters. Split it into several documents.");
            return Err(Failure::permanent("too_large", message));
        }
    }
    Ok(tidied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_is_found_by_mark_by_name_or_by_fit() {
        for (raw, charset, text) in [
            (&b"\xef\xbb\xbfgr\xc3\xbcn"[..], None, "grün"),
            (b"\xff\xfeg\0r\0\xfc\0n\0", None, "grün"),
            (b"gr\xc3\xbcn", Some("iso-8859-1"), "grün"),
            (b"gr\xfcn", Some("iso-8859-1"), "grün"),
            (b"\x1b$B8e\x1b(B", Some("iso-2022-jp"), "後"),
            (b"Stra\xdfe und B\xe4ume f\xfcr alle", None, "Straße und Bäume für alle"),
        ] {
            let (decoded, _, _) = encoding_of(raw, charset).decode(raw);
            assert_eq!(tidy(&decoded, 100).unwrap(), text);
        }
    }

    #[test]
    fn line_ends_are_made_alike_and_nul_is_dropped() {
        assert_eq!(tidy("\u{feff}a\r\nb\rc\n\0d", 100).unwrap(), "a\nb\nc\nd");
        assert!(matches!(tidy("abc", 2), Err(Failure::Document(error)) if error.code == "too_large"));
    }
}
