//! Captions: from the formats in which they come to a text that can be read, with the time of every character.
//!
//! Called by `text` for transcripts; calls nothing but the parsers beside it. All of them read on where
//! others stop, in time that grows with the text, and without recursion.

mod blocks;
mod clock;
mod json3;
mod markup;
mod prose;
mod rolling;
mod sbv;
mod script;
mod srv;
mod subrip;
#[cfg(test)]
mod tests;
mod timing;
mod ttml;
mod webvtt;
mod xml;

use lectern_shared::model::job::IngestionWarning;

use crate::protocol::TextMark;

/// By so many bytes from its beginning a format is told.
const HEAD: usize = 64 << 10;
/// Without a header, the first times stand within so many lines that are not blank: a text further on only quotes them.
const MAX_PREAMBLE: usize = 20;

/// A format of captions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaptionFormat {
    /// `WebVTT`.
    WebVtt,
    /// `SubRip`, `.srt`; also `WebVTT` without its header.
    SubRip,
    /// SBV or `SubViewer`.
    Sbv,
    /// TTML or DFXP.
    Ttml,
    /// Timed text of video sites, JSON.
    Json3,
    /// Timed text of video sites, XML.
    Srv,
}

/// What was found in captions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ParsedCaptions {
    /// In the order in which they are shown.
    pub(crate) cues: Vec<CaptionCue>,
    /// Times that could not be read, or ended before they began.
    pub(crate) unreadable_times: u64,
    /// Lines that belong to no cue.
    pub(crate) untimed_lines: u64,
    /// Whether they end in the midst.
    pub(crate) is_cut_off: bool,
}

/// What is shown, and when.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CaptionCue {
    /// Seconds from the beginning, to the millisecond.
    pub(crate) start: f64,
    /// Never before `start`.
    pub(crate) end: f64,
    /// Lines ended by `\n`, without markup; never empty.
    pub(crate) text: String,
    /// Who says it, where the captions name them.
    pub(crate) speaker: Option<String>,
}

/// What was said, as a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TimedTranscript {
    /// Lines and paragraphs; empty when nothing is said.
    pub(crate) text: String,
    /// The time of every character: the first one is at 0.
    pub(crate) marks: Vec<TextMark>,
    /// What was gone past.
    pub(crate) warnings: Vec<IngestionWarning>,
}

/// A cue as it was written: times in milliseconds, as far as they could be read.
#[derive(Debug, PartialEq, Eq)]
struct RawCue {
    start: Option<u32>,
    end: Option<u32>,
    text: String,
    speaker: Option<String>,
}

/// What a parser finds.
#[derive(Debug, Default)]
struct FoundCues {
    cues: Vec<RawCue>,
    unreadable_times: u64,
    untimed_lines: u64,
    is_cut_off: bool,
}

/// Tells the format of captions from how they begin.
pub(crate) fn detect(head: &str) -> Option<CaptionFormat> {
    let head = head.trim_start_matches('\u{feff}').trim_start();
    if webvtt::is_webvtt(head) {
        return Some(CaptionFormat::WebVtt);
    }
    match head.as_bytes().first()? {
        b'<' => match xml::first_elements(head) {
            (Some("tt"), _) => Some(CaptionFormat::Ttml),
            (Some("timedtext"), _) | (Some("transcript"), Some("text") | None) => Some(CaptionFormat::Srv),
            _ => None,
        },
        b'{' => {
            let has = |key: &str| head.contains(key);
            let is_json3 = has("\"wireMagic\"") || (has("\"events\"") && has("\"tStartMs\""));
            // Frames between braces are `MicroDVD`, which needs the film to know what they mean.
            is_json3.then_some(CaptionFormat::Json3)
        }
        _ => {
            let lines = head.lines().filter(|line| !line.trim().is_empty()).take(MAX_PREAMBLE);
            // A guide to a format quotes it in a fence.
            lines.take_while(|line| !line.starts_with("```") && !line.starts_with("~~~")).find_map(of_times)
        }
    }
}

/// The format that has such a line, if it is one of times without any doubt.
fn of_times(line: &str) -> Option<CaptionFormat> {
    if sbv::times(line).is_some_and(|timing| timing.end.is_some()) {
        return Some(CaptionFormat::Sbv);
    }
    let timing = blocks::arrow(line)?;
    let is_sure = line.contains(['.', ',']) || line.matches(':').count() >= 4;
    (is_sure && timing.start.is_some() && timing.end.is_some()).then_some(CaptionFormat::SubRip)
}

/// Reads captions of any format; none when the text is not captions.
pub(crate) fn parse(text: &str) -> Option<ParsedCaptions> {
    let text = text.trim_start_matches('\u{feff}');
    let found = match detect(text.get(..text.floor_char_boundary(HEAD)).unwrap_or_default())? {
        CaptionFormat::WebVtt => webvtt::read(text),
        CaptionFormat::SubRip => subrip::read(text),
        CaptionFormat::Sbv => sbv::read(text),
        CaptionFormat::Ttml => ttml::read(text),
        CaptionFormat::Json3 => json3::read(text),
        CaptionFormat::Srv => srv::read(text),
    };
    Some(timing::settle(found))
}

/// Makes a readable text of captions: what rolls is said once, cues are joined to sentences and paragraphs.
pub(crate) fn transcript(captions: ParsedCaptions) -> TimedTranscript {
    prose::transcript(captions)
}
