//! From bytes to text, in whatever encoding they are.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1250, WINDOWS_1252};

use crate::{output::ParserOutput, protocol::ParseAbort};

/// A language that needs the Central European encoding has at least one such letter in so many characters; in a text with fewer
/// they are the quotation marks and names of a Western one, which the detector cannot tell from so little.
const SPARSE: usize = 33;
/// The first byte of a character of UTF-8 that is not ASCII is at least this one; those that go on are less.
const LEAD: u8 = 0xc0;
/// Characters of UTF-8 for each error, from which on a text is UTF-8 that was damaged. Where another encoding looks like such
/// characters by chance, errors are more than they are, in Japanese a little and in most languages many times; but for a word or two.
const DAMAGED: usize = 4;
/// The same of a text of which its sender says that it is UTF-8, as servers say of everything.
const DAMAGED_IF_NAMED: usize = 2;

/// The text, its encoding, and whether bytes were not valid in it and were replaced: by its byte order mark, else the encoding
/// that its sender named, else the one that fits best.
pub fn decode<'a>(raw: &'a [u8], named: Option<&str>) -> (Cow<'a, str>, &'static Encoding, bool) {
    let encoding = encoding_of(raw, named);
    let (text, encoding, replaced) = encoding.decode(raw);
    (text, encoding, replaced)
}

/// The text, as [`decode`] finds it, with a warning of the bytes that were replaced.
pub(crate) fn decode_noting<'a>(
    raw: &'a [u8],
    named: Option<&str>,
    output: &mut ParserOutput<'_>,
) -> Result<Cow<'a, str>, ParseAbort> {
    let (text, encoding, replaced) = decode(raw, named);
    if replaced {
        let count = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count() as u64;
        let message = format!("Some bytes are not valid {} and were replaced.", encoding.name());
        output.warn("undecodable_bytes", &message, count)?;
    }
    Ok(text)
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
    let Utf8Fit { characters, errors } = Utf8Fit::of(raw);
    let ratio = if named.is_some() { DAMAGED_IF_NAMED } else { DAMAGED };
    if characters > 0 && characters >= errors.saturating_mul(ratio) {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(raw, true);
    let guess = detector.guess(None, Utf8Detection::Allow);
    let foreign = raw.iter().filter(|byte| !byte.is_ascii()).count();
    if guess == WINDOWS_1250 && foreign < raw.len() / SPARSE { WINDOWS_1252 } else { guess }
}

/// How far a text is UTF-8, ASCII aside.
struct Utf8Fit {
    characters: usize,
    /// What is none, besides a character at the end that was cut off.
    errors: usize,
}

impl Utf8Fit {
    fn of(raw: &[u8]) -> Self {
        let (mut characters, mut errors) = (0, 0);
        let mut chunks = raw.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            characters += chunk.valid().bytes().filter(|byte| *byte >= LEAD).count();
            let is_error = match chunks.peek() {
                Some(_) => true,
                // Of a cut character there is a beginning and no end, which is no error yet.
                None => std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_some()),
            };
            errors += usize::from(is_error);
        }
        Self { characters, errors }
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, EUC_JP, EUC_KR, GBK, KOI8_R, SHIFT_JIS, WINDOWS_874, WINDOWS_1251};

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

    #[test]
    fn utf_8_with_a_few_stray_bytes_is_utf_8_whether_or_not_it_is_named() {
        let line = "Die Straße führt über die Brücke. ";
        let whole = line.repeat(4_000).into_bytes();
        let with = |at: usize, stray: &[u8]| [&whole[..at], stray, &whole[at..]].concat();
        let end = whole.len();
        for (what, raw, replaced) in [
            ("a byte within", with(line.len() * 2_000, b"\xff"), 1),
            ("a word of another encoding behind", with(end, b" Stra\xdfe"), 1),
            ("several of them before", with(0, b"\xdcber Gr\xf6\xdfe "), 3),
            ("cut in its last character", line.as_bytes()[..=line.find('ü').unwrap()].to_vec(), 1),
            (
                "quotation marks around little",
                b"\xe2\x80\x9cAy\xe2\x80\x9d \xc3\xa9\xc3\xa0 \xa0".to_vec(),
                1,
            ),
        ] {
            for named in [Some("UTF-8"), Some("utf8"), Some("no such"), None] {
                let (text, encoding, is_replaced) = decode(&raw, named);
                assert_eq!((encoding, is_replaced), (UTF_8, true), "{what}, {named:?}");
                assert_eq!(text.matches('\u{fffd}').count(), replaced, "{what}, {named:?}");
            }
        }
        let mixed = b"Gr\xc3\xbcn, s\xc3\xbc\xc3\x9f und gr\xfcn";
        let text = "Grün, süß und gr\u{fffd}n";
        assert_eq!(decode(mixed, Some("utf-8")).0, text, "a name decides where so little does not");
    }

    #[test]
    fn other_encodings_are_read_although_utf_8_is_named() {
        for (encoding, line) in [
            (WINDOWS_1252, "Die Straße führt über die Brücke, « Clarté » et « Été »."),
            (WINDOWS_1251, "Дорога ведёт через мост, и Ёлка стоит у дома на берегу реки."),
            (KOI8_R, "Дорога ведёт через мост, и ёлка стоит у дома на берегу реки."),
            (SHIFT_JIS, "道は橋を渡って隣の村へ続いています。川のそばに木があります。"),
            (EUC_JP, "これはひらがなだけのぶんしょうです。とてもよいてんきですね。"),
            (GBK, "这条路通过桥梁通往邻近的村庄，河边有一棵树，树下坐着一位老人。"),
            (BIG5, "這條路通過橋樑通往鄰近的村莊，河邊有一棵樹，樹下坐著一位老人。"),
            (EUC_KR, "길은 다리를 건너 이웃 마을로 이어지고 강가에는 나무가 있습니다."),
            (WINDOWS_874, "ถนนข้ามสะพานไปยังหมู่บ้านใกล้เคียง และมีต้นไม้อยู่ริมแม่น้ำ"),
        ] {
            let text = line.repeat(20);
            let (raw, _, unmappable) = encoding.encode(&text);
            assert!(!unmappable, "{}", encoding.name());
            for named in [Some("utf-8"), None] {
                assert_eq!(decode(&raw, named).0, text, "{} as {named:?}", encoding.name());
            }
        }
        let raw = b"Stra\xdfe und B\xe4ume f\xfcr alle";
        assert_eq!(decode(raw, Some("utf-8")).0, "Straße und Bäume für alle");
    }
}
