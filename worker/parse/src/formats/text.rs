//! Plain text, Markdown and captions, in whatever encoding they come. The worker itself reads what is too short to be worth a
//! process.

use super::{captions, markdown};
use crate::{
    charset,
    output::ParserOutput,
    protocol::{ParseAbort, ParseError, ParseOptions, SourceMetadata, TextMark, TextMarkup},
};

/// Most bytes in one piece.
const MAX_PIECE: usize = 512 << 10;

/// Whether a text is known to be Markdown before it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkdownHint {
    /// By what it is called.
    Named,
    /// It may look like it.
    Unknown,
}

/// Reads a text.
pub(super) fn parse(
    bytes: &[u8],
    options: &ParseOptions,
    hint: MarkdownHint,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    let text = decoded(bytes, options, output)?;
    let is_markdown = hint == MarkdownHint::Named || markdown::looks_like(&text);
    let structure = if is_markdown { TextMarkup::Markdown } else { TextMarkup::Plain };
    output.about(SourceMetadata { structure, ..SourceMetadata::default() })?;
    in_pieces(&text, Vec::new(), output)
}

/// Reads captions, or what somebody wrote down by hand.
pub(super) fn transcript(
    bytes: &[u8],
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    let text = decoded(bytes, options, output)?;
    let Some(cues) = captions::parse(&text) else { return in_pieces(&text, Vec::new(), output) };
    drop(text);
    let captions::TimedTranscript { text, marks, warnings } = captions::transcript(cues);
    for warning in warnings {
        output.warn(&warning.code, &warning.message, warning.count)?;
    }
    in_pieces(&text, marks, output)
}

/// The text of these bytes; says what had to be gone past.
fn decoded(
    bytes: &[u8],
    options: &ParseOptions,
    output: &mut ParserOutput<'_>,
) -> Result<String, ParseAbort> {
    let text = charset::decode_noting(bytes, options.charset.as_deref(), output)?;
    Ok(tidy(&text, options.max_chars)?)
}

/// Line ends as `\n`, no NUL and no byte order mark.
pub(super) fn tidy(text: &str, limit: u64) -> Result<String, ParseError> {
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
            return Err(ParseError::TooLarge { limit });
        }
    }
    Ok(tidied)
}

/// Hands on a text in pieces that fit a message, each with the marks that stand in it.
pub(super) fn in_pieces(
    text: &str,
    marks: Vec<TextMark>,
    output: &mut ParserOutput<'_>,
) -> Result<(), ParseAbort> {
    let mut marks = marks.into_iter().peekable();
    let (mut rest, mut begun) = (text, 0);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(MAX_PIECE));
        let end = begun + piece.chars().count() as u64;
        let mut within = Vec::new();
        while let Some(mark) = marks.next_if(|mark| mark.at < end || after.is_empty()) {
            within.push(TextMark { at: mark.at - begun, ..mark });
        }
        output.part(piece.to_owned(), within)?;
        (rest, begun) = (after, end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{MarkKind, ParseFrame, ParsedPart};

    #[test]
    fn line_ends_are_made_alike_and_nul_is_dropped() {
        assert_eq!(tidy("\u{feff}a\r\nb\rc\n\0d", 100).unwrap(), "a\nb\nc\nd");
        assert_eq!(tidy("abc", 2).unwrap_err().code(), "too_large");
    }

    #[test]
    fn texts_and_captions_keep_their_letters_around_a_stray_byte() {
        let lines = "Die Straße führt über die Brücke.\n".repeat(100).into_bytes();
        let captions = b"WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n".to_vec();
        for (mut bytes, is_transcript) in [(Vec::new(), false), (captions, true)] {
            bytes.extend_from_slice(&lines);
            bytes.extend_from_slice(b"Ende \xff\n");
            let (mut text, mut warnings) = (String::new(), Vec::new());
            let mut emit = |frame| {
                match frame {
                    ParseFrame::Part(part) => text.push_str(&part.text),
                    ParseFrame::Warning(warning) => warnings.push((warning.code, warning.count)),
                    _ => {}
                }
                Ok(())
            };
            let (options, mut output) = (ParseOptions::default(), ParserOutput::new(&mut emit, 1_000_000));
            let done = if is_transcript {
                transcript(&bytes, &options, &mut output)
            } else {
                parse(&bytes, &options, MarkdownHint::Unknown, &mut output)
            };
            done.unwrap();
            assert_eq!(text.matches("Die Straße führt über die Brücke.").count(), 100, "{is_transcript}");
            assert_eq!(warnings, [("undecodable_bytes".to_owned(), 1)], "{is_transcript}");
        }
    }

    #[test]
    fn a_long_transcript_comes_in_pieces_and_every_mark_stands_where_it_stood() {
        let cue = |n: u64| {
            let time = |n: u64| format!("{:02}:{:02}:{:02}.000", n / 3_600, n / 60 % 60, n % 60);
            format!("{} --> {}\nWas Überraschendes gesagt wird: {n}.\n\n", time(n * 4), time(n * 4 + 3))
        };
        let vtt = format!("WEBVTT\n\n{}", (0..20_000).map(cue).collect::<String>());
        let (mut text, mut length, mut marks, mut parts) = (String::new(), 0, Vec::new(), 0);
        let mut emit = |frame| {
            if let ParseFrame::Part(ParsedPart { text: piece, marks: within }) = frame {
                let count = piece.chars().count() as u64;
                assert!(within.iter().all(|mark| mark.at <= count));
                marks.extend(within.into_iter().map(|mark| TextMark { at: mark.at + length, ..mark }));
                length += count;
                text.push_str(&piece);
                parts += 1;
            }
            Ok(())
        };
        let mut output = ParserOutput::new(&mut emit, 20_000_000);
        transcript(vtt.as_bytes(), &ParseOptions::default(), &mut output).unwrap();
        assert!(parts > 1, "{parts}");
        let whole = captions::transcript(captions::parse(&vtt).unwrap());
        assert!(marks.iter().all(|mark| matches!(mark.what, MarkKind::Time { .. })));
        assert_eq!((text, marks), (whole.text, whole.marks));
    }
}
