//! The text of one cue: what is said, without what says how it looks.

use std::borrow::Cow;

use quick_xml::escape::resolve_html5_entity;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// Longest name of an entity, in bytes, with room for its number in any spelling.
const MAX_ENTITY: usize = 32;
/// Elements of `WebVTT`, of HTML as `SubRip` took it over, and of what tools leave behind. Anything else in angle brackets is text.
const ELEMENTS: [&str; 23] = [
    "a", "b", "big", "bold", "c", "center", "div", "em", "font", "i", "italic", "lang", "p", "rp", "rt",
    "ruby", "s", "small", "span", "strike", "strong", "u", "v",
];

/// What one voice says in a cue.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct VoiceSpan {
    pub(super) speaker: Option<String>,
    /// Lines ended by `\n`, never blank.
    pub(super) text: String,
}

/// What is said in a cue of `WebVTT`, `SubRip` and their like, voice by voice.
pub(super) fn voices(raw: &str) -> Vec<VoiceSpan> {
    let mut voices = Vec::new();
    let (mut speaker, mut said) = (None, CaptionLines::default());
    let mut reading_aid = false;
    let mut rest = raw;
    while let Some(at) = rest.find(['<', '{', '&', '\\', '[']) {
        let (plain, marked) = rest.split_at(at);
        let (length, what) = mark(marked);
        if !reading_aid {
            said.add(plain);
        }
        match what {
            CueMark::Nothing => {}
            CueMark::Text(text) if reading_aid => drop(text),
            CueMark::Text(text) => said.add(&text),
            CueMark::Speaker(name) => {
                if name != speaker {
                    finish(&mut voices, speaker.take(), &mut said);
                }
                speaker = name;
            }
            CueMark::ReadingAid(begins) => reading_aid = begins,
        }
        rest = marked.get(length..).unwrap_or_default();
    }
    if !reading_aid {
        said.add(rest);
    }
    finish(&mut voices, speaker, &mut said);
    voices
}

fn finish(voices: &mut Vec<VoiceSpan>, speaker: Option<String>, said: &mut CaptionLines) {
    let text = std::mem::take(said).finish();
    if !text.is_empty() {
        voices.push(VoiceSpan { speaker, text });
    }
}

/// What a sign that may begin markup turns out to be.
enum CueMark<'a> {
    Nothing,
    Text(Cow<'a, str>),
    Speaker(Option<String>),
    /// How characters are read, which is written beside them; or the end of that.
    ReadingAid(bool),
}

/// What stands at the beginning of `marked`, and how many bytes that is. Each search ends at the next sign of the same kind, so that
/// a row of them costs no more than its length.
fn mark(marked: &str) -> (usize, CueMark<'_>) {
    let inside = |open: char, close: char| {
        let rest = marked.get(open.len_utf8()..)?;
        let end = rest.find([open, close])?;
        rest.get(end..)?.starts_with(close).then(|| rest.get(..end)).flatten()
    };
    match marked.as_bytes().first() {
        Some(b'<') => {
            if let Some(inner) = inside('<', '>')
                && let Some(what) = element(inner)
            {
                return (inner.len() + 2, what);
            }
        }
        Some(b'{') => {
            // `{\an8}` of Advanced SubStation, `{y:i}` of MicroDVD.
            if let Some(inner) = inside('{', '}')
                && (inner.starts_with('\\') || inner.get(1..2) == Some(":"))
                && !inner.contains('\n')
            {
                return (inner.len() + 2, CueMark::Nothing);
            }
        }
        Some(b'[') if marked.get(..4).is_some_and(|tag| tag.eq_ignore_ascii_case("[br]")) => {
            return (4, CueMark::Text("\n".into()));
        }
        Some(b'\\') => match marked.get(..2) {
            Some("\\N") => return (2, CueMark::Text("\n".into())),
            Some("\\h") => return (2, CueMark::Text(" ".into())),
            _ => {}
        },
        Some(b'&') => {
            if let Some((length, text)) = entity(marked) {
                return (length, CueMark::Text(text));
            }
        }
        _ => {}
    }
    (1, CueMark::Text(marked.get(..1).unwrap_or_default().into()))
}

/// What an element does, if it is one.
fn element(inner: &str) -> Option<CueMark<'_>> {
    if inner.starts_with(|c: char| c.is_ascii_digit()) {
        // When the words after it are said.
        return inner.contains(':').then_some(CueMark::Nothing);
    }
    let (ends, inner) = inner.strip_prefix('/').map_or((false, inner), |inner| (true, inner));
    let length = inner.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
    let (name, more) = inner.split_at(length);
    let name = name.to_ascii_lowercase();
    // `</>`, as some write it, or `</ i>`.
    if ends && name.is_empty() && more.trim().len() <= 1 {
        return Some(CueMark::Nothing);
    }
    match name.as_str() {
        "br" => Some(CueMark::Text("\n".into())),
        "v" if ends => Some(CueMark::Speaker(None)),
        "v" => {
            // `<v.loud Name>`: classes, then the name.
            let name = more.find(char::is_whitespace).and_then(|at| more.get(at..)).unwrap_or_default();
            let name = line(&decode(name));
            Some(CueMark::Speaker((!name.is_empty()).then_some(name)))
        }
        "rt" | "rp" => Some(CueMark::ReadingAid(!ends)),
        "ruby" => Some(CueMark::ReadingAid(false)),
        name => ELEMENTS.contains(&name).then_some(CueMark::Nothing),
    }
}

/// The entity at the beginning of a text, how many bytes it is long and what it stands for.
fn entity(text: &str) -> Option<(usize, Cow<'_, str>)> {
    let head = text.as_bytes().get(1..)?;
    let length = head.iter().take(MAX_ENTITY).position(|byte| *byte == b';')?;
    let name = text.get(1..=length)?;
    Some((length + 2, resolve(name)?))
}

/// What an entity stands for, by its name without `&` and `;`.
pub(super) fn resolve(name: &str) -> Option<Cow<'static, str>> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        return Some(char::from_u32(code.ok()?)?.to_string().into());
    }
    resolve_html5_entity(name).map(Cow::Borrowed)
}

/// A text with its entities replaced, once.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find('&') else { return Cow::Borrowed(text) };
    let (plain, mut rest) = text.split_at(first);
    let mut decoded = plain.to_owned();
    while let Some(at) = rest.find('&') {
        let (plain, marked) = rest.split_at(at);
        decoded.push_str(plain);
        let length = match entity(marked) {
            Some((length, text)) => {
                decoded.push_str(&text);
                length
            }
            None => {
                decoded.push('&');
                1
            }
        };
        rest = marked.get(length..).unwrap_or_default();
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// A text on one line, tidied.
pub(super) fn line(text: &str) -> String {
    lines(text).replace('\n', " ")
}

/// A text without markup, tidied: lines ended by `\n`, none of them blank, single spaces.
pub(super) fn lines(text: &str) -> String {
    let mut lines = CaptionLines::default();
    lines.add(text);
    lines.finish()
}

/// Lines that are being written.
#[derive(Debug, Default)]
pub(super) struct CaptionLines {
    text: String,
    space: bool,
    line_end: bool,
}

impl CaptionLines {
    /// Goes on, with blanks made alike and what cannot be seen left out.
    pub(super) fn add(&mut self, text: &str) {
        for c in text.chars() {
            if matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}') {
                self.line_end = true;
            } else if c.is_whitespace() {
                self.space = true;
            } else if !is_invisible(c) {
                if !self.text.is_empty() {
                    match (self.line_end, self.space) {
                        (true, _) => self.text.push('\n'),
                        (false, true) => self.text.push(' '),
                        (false, false) => {}
                    }
                }
                (self.line_end, self.space) = (false, false);
                self.text.push(c);
            }
        }
    }

    /// What was written, composed.
    pub(super) fn finish(self) -> String {
        if is_nfc(&self.text) { self.text } else { self.text.nfc().collect() }
    }
}

/// Control characters, and marks of direction that players need and readers of text do not. Joiners are not among them: they make
/// letters and pictures of others.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_entities_are_gone_and_the_words_stay() {
        for (raw, expected) in [
            ("plain", "plain"),
            ("<i>leaning</i> <b>bold</b>", "leaning bold"),
            ("When the moon <00:17.500>hits your eye", "When the moon hits your eye"),
            ("That's <00:00:21.000><c.colorE5E5E5>amore</c>", "That's amore"),
            ("<c> word</c><c> by</c>", "word by"),
            ("<font color=\"#ffff00\" size=5>yellow</font>", "yellow"),
            ("{\\an8}above", "above"),
            ("{\\pos(1,2)}{\\b1}x{\\b0}", "x"),
            ("{y:i}slanted", "slanted"),
            ("{not a tag} {x", "{not a tag} {x"),
            ("one\\Ntwo\\hthree", "one\ntwo three"),
            ("one[br]two<br/>three<BR>four", "one\ntwo\nthree\nfour"),
            ("Fish &amp; chips &lt;3 &#39;so&#x27; &eacute;t&eacute;", "Fish & chips <3 'so' été"),
            ("&amp;lt;", "&lt;"),
            ("&unknown; & &; &#xFFFFFFFF; &#0;", "&unknown; & &; &#xFFFFFFFF;"),
            ("a < b and c > d, I <3 you", "a < b and c > d, I <3 you"),
            ("the <canvas> element", "the <canvas> element"),
            ("<lang en-GB>colour</lang>", "colour"),
            ("<ruby>漢<rt>かん</rt>字<rt>じ</rt></ruby>です", "漢字です"),
            ("  a \t b\u{a0}c  \n \u{200b}\n  d ", "a b c\nd"),
            ("\u{202b}\u{5e9}\u{5dc}\u{5d5}\u{5dd}\u{202c}", "\u{5e9}\u{5dc}\u{5d5}\u{5dd}"),
            ("mi\u{200c}xaham", "mi\u{200c}xaham"),
            ("e\u{301}", "é"),
            ("<i>open", "open"),
            ("<", "<"),
            ("&", "&"),
        ] {
            let text: Vec<_> = voices(raw).into_iter().map(|voice| voice.text).collect();
            assert_eq!(text.join("|"), expected, "{raw:?}");
        }
        assert_eq!(voices(" <i> </i> \n"), []);
    }

    #[test]
    fn voices_are_told_apart() {
        let said = |raw| -> Vec<(Option<String>, String)> {
            voices(raw).into_iter().map(|voice| (voice.speaker, voice.text)).collect()
        };
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(said("<v Ann Lee>Hello"), [(some("Ann Lee"), "Hello".to_owned())]);
        assert_eq!(
            said("<v.first.loud Ann>Hi</v> <v Tom &amp; Jo>Ho</v>\n(all)"),
            [(some("Ann"), "Hi".to_owned()), (some("Tom & Jo"), "Ho".to_owned()), (None, "(all)".to_owned())]
        );
        assert_eq!(said("<v Ann>Hi <v Ann>there"), [(some("Ann"), "Hi there".to_owned())]);
        assert_eq!(said("<v>Hi"), [(None, "Hi".to_owned())]);
    }
}
