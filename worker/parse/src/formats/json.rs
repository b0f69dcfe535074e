//! JSON and JSON Lines, as lines that can be searched and quoted: `key: value`, records parted by blank lines.
//!
//! The text is checked as a whole first; what is written is cut out of it, so that numbers and the order of keys stay as they are.

use std::ops::Range;

use serde::de::IgnoredAny;
use unicode_normalization::UnicodeNormalization;

use crate::{
    charset,
    output::ParserOutput,
    protocol::{ParseAbort, ParseError, ParseOptions, SourceMetadata},
};

/// Objects and lists within each other, as many as most programs accept.
const MAX_DEPTH: usize = 128;
/// Bytes that are gathered before they are handed on.
const GATHERED: usize = 256 << 10;
/// Most bytes in one piece.
const MAX_PIECE: usize = 512 << 10;

/// Reads a text of one value, of values one after another, or of a value on each line. Text that is none of these is taken as it is,
/// with a warning.
pub(crate) fn parse(
    bytes: Vec<u8>,
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    if bytes.is_empty() {
        return Err(ParseError::Empty.into());
    }
    let text = charset::decode_noting(&bytes, options.charset.as_deref(), output)?.into_owned();
    drop(bytes);
    let text = text.trim_start_matches('\u{feff}');
    output.about(SourceMetadata::default())?;
    let mut writer = JsonWriter { output, text: String::new(), any: false, parted: false };
    let invalid = match values(text) {
        Some(values) => {
            for value in values {
                writer.value(text.get(value).unwrap_or_default())?;
            }
            0
        }
        None if has_lines(text) => {
            let mut invalid = 0;
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                if values(line).is_some() {
                    writer.value(line)?;
                } else {
                    invalid += 1;
                    writer.part();
                    writer.line(line)?;
                }
            }
            invalid
        }
        None => {
            for line in text.lines() {
                writer.line(line)?;
            }
            1
        }
    };
    writer.flush()?;
    if invalid > 0 {
        output.warn("invalid_json", "This is not valid JSON and was taken as it is.", invalid)?;
    }
    Ok(())
}

/// Where the values of a text are, if it consists of nothing else and none is too deep.
fn values(text: &str) -> Option<Vec<Range<usize>>> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut values = Vec::new();
    let mut start = 0;
    while let Some(value) = stream.next() {
        value.ok()?;
        values.push(start..stream.byte_offset());
        start = stream.byte_offset();
    }
    let shallow = !values.is_empty() && depth(text) <= MAX_DEPTH;
    shallow.then_some(values)
}

/// Whether each line seems to be a value of its own: the first one is.
fn has_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first =
        lines.next().is_some_and(|line| line.trim_start().starts_with(['{', '[']) && values(line).is_some());
    first && lines.next().is_some()
}

fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for token in JsonTokens(text) {
        match token {
            "{" | "[" => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            "}" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The tokens of a text that is known to be JSON, without commas and colons.
struct JsonTokens<'a>(&'a str);

impl<'a> Iterator for JsonTokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.0.trim_start_matches([' ', '\t', '\n', '\r', ',', ':']);
        let bytes = rest.as_bytes();
        let end = match bytes.first()? {
            b'{' | b'}' | b'[' | b']' => 1,
            b'"' => {
                let mut escaped = false;
                let quote = bytes.iter().skip(1).position(|byte| {
                    let ends = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    ends
                });
                quote.map_or(bytes.len(), |quote| quote + 2)
            }
            _ => {
                let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
                bytes.iter().position(ends).unwrap_or(bytes.len())
            }
        };
        let (token, rest) = rest.split_at_checked(end)?;
        self.0 = rest;
        Some(token)
    }
}

/// What a list holds decides how it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonContainer {
    Object,
    /// A list of objects or lists, each of which has a number.
    Records {
        next: usize,
    },
    /// A list of nothing but words and numbers, on one line.
    Words,
}

impl JsonContainer {
    /// What a list is that has begun, by what follows.
    fn of_list(rest: &str) -> Self {
        let mut own = JsonTokens(rest).take_while(|token| *token != "]");
        let simple = !own.any(|token| matches!(token, "{" | "["));
        if simple { Self::Words } else { Self::Records { next: 0 } }
    }
}

/// An object or list that has begun.
struct OpenContainer {
    container: JsonContainer,
    /// Length of the path outside of it.
    outer: usize,
    /// Whether anything is in it yet.
    any: bool,
}

/// Where in a record its tokens have led to.
#[derive(Default)]
struct JsonPlace<'t> {
    /// Names and numbers that lead to this place.
    path: String,
    /// What has begun, the outermost first.
    open: Vec<OpenContainer>,
    /// The key of the value that comes next.
    key: Option<&'t str>,
    /// What is written of the list of words that is open.
    words: String,
}

impl JsonPlace<'_> {
    fn is_in(&self, container: JsonContainer) -> bool {
        self.open.last().is_some_and(|open| open.container == container)
    }

    /// Whether the token that comes next is a key, if it ends nothing.
    fn expects_key(&self) -> bool {
        self.key.is_none() && self.is_in(JsonContainer::Object)
    }

    fn lists_of_records(&self) -> usize {
        let is_of_records = |open: &&OpenContainer| matches!(open.container, JsonContainer::Records { .. });
        self.open.iter().filter(is_of_records).count()
    }

    /// Goes on to the next value, by its key or its number. True when that is a record: the elements of a list that is the whole text
    /// are records, and so are those of the first list on the way to them.
    fn enter(&mut self) -> bool {
        let Some(parent) = self.open.last_mut() else { return false };
        parent.any = true;
        if let Some(key) = self.key.take() {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(&on_one_line(&unquoted(key)));
            return false;
        }
        let JsonContainer::Records { next } = &mut parent.container else { return false };
        let number = *next;
        *next += 1;
        if self.open.len() > 1 {
            self.path.extend(["[", &number.to_string(), "]"]);
        }
        self.lists_of_records() == 1
    }

    fn begin(&mut self, container: JsonContainer, outer: usize) {
        self.open.push(OpenContainer { container, outer, any: false });
    }
}

struct JsonWriter<'w, 'o> {
    output: &'w mut ParserOutput<'o>,
    text: String,
    /// Whether anything has been written.
    any: bool,
    /// Whether what comes next begins a block of its own.
    parted: bool,
}

impl JsonWriter<'_, '_> {
    /// A record of its own.
    fn value(&mut self, value: &str) -> Result<(), ParseAbort> {
        if !value.trim_start().starts_with('[') {
            self.part();
        }
        let (mut tokens, mut place) = (JsonTokens(value), JsonPlace::default());
        while let Some(token) = tokens.next() {
            if matches!(token, "}" | "]") {
                self.close(&mut place, token)?;
                continue;
            }
            if place.expects_key() {
                place.key = Some(token);
                continue;
            }
            let outer = place.path.len();
            if place.enter() {
                self.part();
            }
            match token {
                "{" => place.begin(JsonContainer::Object, outer),
                "[" => place.begin(JsonContainer::of_list(tokens.0), outer),
                word => self.word(&mut place, word, outer)?,
            }
        }
        Ok(())
    }

    /// Ends the innermost object or list.
    fn close(&mut self, place: &mut JsonPlace<'_>, token: &str) -> Result<(), ParseAbort> {
        let Some(OpenContainer { container, outer, any }) = place.open.pop() else { return Ok(()) };
        match (container, any) {
            (JsonContainer::Words, true) => self.pair(&place.path, &std::mem::take(&mut place.words))?,
            (JsonContainer::Object | JsonContainer::Records { .. }, true) => {}
            (_, false) => self.pair(&place.path, if token == "}" { "{}" } else { "[]" })?,
        }
        place.path.truncate(outer);
        // What comes after the records belongs to none of them.
        if matches!(container, JsonContainer::Records { .. }) && place.lists_of_records() == 0 {
            self.part();
        }
        Ok(())
    }

    /// A word or a number: a line of its own, or a part of the line of a list that has nothing else.
    fn word(&mut self, place: &mut JsonPlace<'_>, token: &str, outer: usize) -> Result<(), ParseAbort> {
        let written = if token.starts_with('"') { unquoted(token) } else { token.to_owned() };
        if place.is_in(JsonContainer::Words) {
            if !place.words.is_empty() {
                place.words.push_str(if place.open.len() > 1 { ", " } else { "\n" });
            }
            place.words.push_str(&written);
        } else {
            self.pair(&place.path, &written)?;
        }
        place.path.truncate(outer);
        Ok(())
    }

    /// Puts a blank line before what comes next.
    fn part(&mut self) {
        self.parted = self.any;
    }

    fn pair(&mut self, path: &str, value: &str) -> Result<(), ParseAbort> {
        match path {
            "" => self.line(value),
            path => self.line(&format!("{path}: {value}")),
        }
    }

    fn line(&mut self, line: &str) -> Result<(), ParseAbort> {
        if std::mem::take(&mut self.parted) {
            self.text.push('\n');
        }
        for line in line.replace("\r\n", "\n").split(['\n', '\r']) {
            self.text.extend(line.trim_end().chars().filter(|c| *c != '\0').nfc());
            self.text.push('\n');
        }
        self.any = true;
        if self.text.len() > GATHERED { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ParseAbort> {
        let text = std::mem::take(&mut self.text);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(MAX_PIECE));
            self.output.part(piece.to_owned(), Vec::new())?;
            rest = after;
        }
        Ok(())
    }
}

/// What a string says; one that no text can hold, as it is written.
fn unquoted(token: &str) -> String {
    serde_json::from_str(token).unwrap_or_else(|_| token.trim_matches('"').to_owned())
}

fn on_one_line(key: &str) -> String {
    key.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ParseFrame, ParsedPart};

    fn read(bytes: &[u8]) -> (String, Vec<(String, u64)>) {
        let (mut text, mut warnings) = (String::new(), Vec::new());
        let mut emit = |frame| {
            match frame {
                ParseFrame::Part(ParsedPart { text: part, .. }) => text.push_str(&part),
                ParseFrame::Warning(warning) => warnings.push((warning.code, warning.count)),
                _ => {}
            }
            Ok(())
        };
        parse(bytes.to_vec(), &ParseOptions::default(), &mut ParserOutput::new(&mut emit, 1_000_000))
            .unwrap();
        (text, warnings)
    }

    fn text(json: &str) -> String {
        let (text, warnings) = read(json.as_bytes());
        assert_eq!(warnings, [], "{json}");
        text
    }

    #[test]
    fn records_of_a_list_are_blocks_of_keys_and_values_in_their_order() {
        let json = r#"[{"zeta":"Gr\u00fcn","a":{"b":1.50,"c":[]},"tags":["x","y"],"n":null},
                      {"zeta":"two","big":123456789012345678901234567890,"tiny":1e-400}]"#;
        assert_eq!(
            text(json),
            "zeta: Grün\na.b: 1.50\na.c: []\ntags: x, y\nn: null\n\n\
             zeta: two\nbig: 123456789012345678901234567890\ntiny: 1e-400\n"
        );
    }

    #[test]
    fn records_within_an_object_are_parted_too_and_say_where_they_stand() {
        let json =
            r#"{"shop":"A","items":[{"name":"p","sizes":[{"cm":1},{"cm":2}]},{"name":"q"}],"end":true}"#;
        assert_eq!(
            text(json),
            "shop: A\n\nitems[0].name: p\nitems[0].sizes[0].cm: 1\nitems[0].sizes[1].cm: 2\n\n\
             items[1].name: q\n\nend: true\n"
        );
    }

    #[test]
    fn values_without_keys_are_lines() {
        assert_eq!(text(r#"["one, two", 3, "fo\"ur"]"#), "one, two\n3\nfo\"ur\n");
        assert_eq!(text("\u{feff} \"alone\" "), "alone\n");
        assert_eq!(text("[[1,2],[3]]"), "1, 2\n\n3\n");
        assert_eq!(text("{}"), "{}\n");
        assert_eq!(text(r#"{"text":"first \r\nsecond\u0000"}"#), "text: first\nsecond\n");
    }

    #[test]
    fn lines_of_json_are_records_and_a_broken_one_is_kept_as_it_is() {
        let lines = "{\"a\":1}\r\n{\"a\":2}\n\n{\"a\":3}\n";
        assert_eq!(text(lines), "a: 1\n\na: 2\n\na: 3\n");
        let (text, warnings) = read(b"{\"a\":1}\n{\"a\":\n{\"a\":3}");
        assert_eq!(text, "a: 1\n\n{\"a\":\n\na: 3\n");
        assert_eq!(warnings, [("invalid_json".to_owned(), 1)]);
    }

    #[test]
    fn what_is_no_json_is_taken_as_it_is_with_a_warning() {
        for invalid in ["{\"a\": 1,}\n", "{'a': 1}\n", "// remark\n{}\n"] {
            assert_eq!(read(invalid.as_bytes()), (invalid.to_owned(), vec![("invalid_json".to_owned(), 1)]));
        }
    }

    #[test]
    fn bytes_that_are_replaced_are_counted() {
        let (text, warnings) = read(b"{\"a\":\"\xc3\xbc\xc3\xb6\xc3\xa4\xc3\x9f \xff\"}");
        assert_eq!(text, "a: üöäß \u{fffd}\n");
        assert_eq!(warnings, [("undecodable_bytes".to_owned(), 1)]);
    }

    #[test]
    fn nesting_is_bounded_and_half_a_pair_of_surrogates_is_kept_as_written() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(read(nested(MAX_DEPTH).as_bytes()).1, []);
        assert_eq!(read(nested(100_000).as_bytes()).1, [("invalid_json".to_owned(), 1)]);
        assert_eq!(text(r#"{"a":"x\ud800"}"#), "a: x\\ud800\n");
    }

    #[test]
    fn a_long_text_comes_in_pieces_that_fit_a_message() {
        let long = format!("{{\"a\":\"{}\"}}", "ü".repeat(MAX_PIECE));
        assert_eq!(text(&long).len(), "a: \n".len() + 2 * MAX_PIECE);
    }
}
