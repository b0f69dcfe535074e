//! From bytes to text, in whatever encoding they are.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1250, WINDOWS_1252};

/// A language that needs the Central European encoding has at least one such letter in so many characters; in a text with fewer
/// they are the quotation marks and names of a Western one, which the detector cannot tell from so little.
const SPARSE: usize = 33;

/// The text, its encoding, and whether bytes were not valid in it and were replaced: by its byte order mark, else the encoding
/// that its sender named, else the one that fits best.
pub fn decode<'a>(raw: &'a [u8], named: Option<&str>) -> (Cow<'a, str>, &'static Encoding, bool) {
    let encoding = encoding_of(raw, named);
    let (text, encoding, replaced) = encoding.decode(raw);
    (text, encoding, replaced)
}

fn encoding_of(raw: &[u8], named: Option<&str>) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(raw) {
        return encoding;
    }
    let named = named.and_then(|label| Encoding::for_label(label.as_bytes()));
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
    let guess = detector.guess(None, Utf8Detection::Allow);
    let foreign = raw.iter().filter(|byte| !byte.is_ascii()).count();
    if guess == WINDOWS_1250 && foreign < raw.len() / SPARSE { WINDOWS_1252 } else { guess }
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
            assert_eq!(decode(raw, charset).0, text);
        }
    }

    #[test]
    fn a_few_quotation_marks_do_not_make_a_text_central_european() {
        let mut raw = "Costs of the two \u{2014} of several \u{2014} machines. ".repeat(30);
        raw.push_str("Fa\u{e7}ade, S\u{e3}o Paulo");
        let (bytes, _, _) = WINDOWS_1252.encode(&raw);
        assert_eq!(decode(&bytes, None).0, raw);
    }
}
