//! Captions of every shape, written here, and what becomes of them.

mod formats;
mod transcripts;

use super::*;
use crate::protocol::MarkKind;

/// Cues as `start-end text`, a name before the text in braces.
fn cues(text: &str) -> Vec<String> {
    let captions = parse(text).unwrap_or_else(|| panic!("these are captions: {text:?}"));
    let shown = |cue: &CaptionCue| {
        let speaker = cue.speaker.as_ref().map(|name| format!("{{{name}}} ")).unwrap_or_default();
        format!("{}-{} {speaker}{}", cue.start, cue.end, cue.text.replace('\n', "|"))
    };
    captions.cues.iter().map(shown).collect()
}

fn read(text: &str) -> TimedTranscript {
    transcript(parse(text).unwrap_or_else(|| panic!("these are captions: {text:?}")))
}

fn codes(transcript: &TimedTranscript) -> Vec<(&str, u64)> {
    transcript.warnings.iter().map(|warning| (warning.code.as_str(), warning.count)).collect()
}

/// The text cut at its marks: `start-end text`.
fn timed(transcript: &TimedTranscript) -> Vec<String> {
    let characters: Vec<char> = transcript.text.chars().collect();
    let at = |mark: &TextMark| usize::try_from(mark.at).unwrap();
    let ends = transcript.marks.iter().skip(1).map(at).chain([characters.len()]);
    let parts = transcript.marks.iter().zip(ends).map(|(mark, end)| {
        let text: String = characters[at(mark)..end].iter().collect();
        match &mark.what {
            MarkKind::Time { start, end } => format!("{start}-{end} {}", text.trim_end()),
            other => panic!("{other:?}"),
        }
    });
    parts.collect()
}

/// Cues of `SubRip` from seconds and texts.
fn subrip(cues: &[(u32, u32, &str)]) -> String {
    let time = |time: u32| format!("{:02}:{:02}:{:02},000", time / 3_600, time / 60 % 60, time % 60);
    let cue = |(n, (start, end, text)): (usize, &(u32, u32, &str))| {
        format!("{}\n{} --> {}\n{text}\n\n", n + 1, time(*start), time(*end))
    };
    cues.iter().enumerate().map(cue).collect()
}
