//! Timed text of video sites in XML: `<transcript><text start dur>` in seconds, `<timedtext><body><p t d>` in milliseconds.

use super::{
    FoundCues, RawCue,
    markup::{self, CaptionLines},
    ttml::decimal,
    xml::{XmlPiece, walk},
};

/// Reads all cues.
pub(super) fn read(text: &str) -> FoundCues {
    let mut found = FoundCues::default();
    let mut depth = 0_usize;
    // The cue that is being read, how deep it is, and what it says.
    let mut open: Option<(usize, Option<u32>, Option<u32>)> = None;
    let mut said = String::new();
    let cues = &mut found.cues;
    let is_whole = walk(text, |piece| match piece {
        XmlPiece::Start(element) => {
            depth += 1;
            if open.is_none() && (element.is("text") || element.is("p")) {
                let in_seconds = |name| element.attribute(name).and_then(|text| decimal(&text, 1_000.0));
                let in_milliseconds = |name| element.attribute(name).and_then(|text| decimal(&text, 1.0));
                let start = in_milliseconds("t").or_else(|| in_seconds("start"));
                let length = in_milliseconds("d").or_else(|| in_seconds("dur"));
                let end = start.zip(length).map(|(start, length)| start.saturating_add(length));
                open = Some((depth, start, end));
            } else if open.is_some() && element.is("br") {
                said.push('\n');
            }
        }
        XmlPiece::Text(text) => {
            if open.is_some() {
                said.push_str(&text);
            }
        }
        XmlPiece::End => {
            if let Some((_, start, end)) = open.take_if(|(at, ..)| *at == depth) {
                close(cues, start, end, &std::mem::take(&mut said));
            }
            depth = depth.saturating_sub(1);
        }
    });
    found.unreadable_times = cues.iter().filter(|cue| cue.start.is_none()).count() as u64;
    found.is_cut_off = !is_whole;
    found
}

/// What stands in the elements has often been escaped twice, and may have the tags of `SubRip`.
fn close(cues: &mut Vec<RawCue>, start: Option<u32>, end: Option<u32>, said: &str) {
    let mut tidy = CaptionLines::default();
    tidy.add(said);
    for markup::VoiceSpan { speaker, text } in markup::voices(&tidy.finish()) {
        cues.push(RawCue { start, end, text, speaker });
    }
}
