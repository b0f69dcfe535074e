//! From cues to a text that can be read.
//!
//! - Cues are joined by a space, or by nothing in scripts that have none; the lines of a dialogue (`- Yes. - No.`) stay lines.
//! - A pause of [`PAUSE`] makes a paragraph, in the midst of a sentence only one of [`LONG_PAUSE`]; so does another speaker, whose name
//!   is put before. A paragraph that has become long ends with the next sentence.
//! - A cue or line that is nothing but a short note in brackets says what is heard and is left out: `[door slams]`, `(applause)`. Within
//!   speech only the best known are: a note there may be part of what is said. Signs of music are left out, and what is sung stays.

use lectern_shared::model::job::IngestionWarning;

use super::{CaptionCue, ParsedCaptions, TimedTranscript, rolling, script::is_unspaced};
use crate::protocol::{MarkKind, TextMark};

/// A silence that ends a paragraph, in seconds.
const PAUSE: f64 = 3.0;
/// One that ends it even where a sentence goes on.
const LONG_PAUSE: f64 = 10.0;
/// One that ends a long paragraph.
const SHORT_PAUSE: f64 = 1.0;
/// A paragraph is long from so many characters on.
const LONG_PARAGRAPH: u64 = 600;
/// A text with fewer sentences than one in so many characters has no punctuation to go by.
const LONGEST_SENTENCE: usize = 400;
/// Most words of a note on a sound, and its most characters.
const NOTE_WORDS: usize = 3;
const NOTE_CHARACTERS: usize = 32;
/// Notes that automatic captions put into speech, in lower case.
const SOUNDS: [&str; 32] = [
    "applaudissements",
    "applaus",
    "applause",
    "applausi",
    "aplausos",
    "cheering",
    "gelächter",
    "laughter",
    "music",
    "musica",
    "musik",
    "musique",
    "muziek",
    "muzyka",
    "música",
    "rires",
    "risas",
    "risate",
    "risos",
    "аплодисменты",
    "музыка",
    "смех",
    "掌声",
    "拍手",
    "笑い",
    "笑声",
    "音乐",
    "音楽",
    "音樂",
    "박수",
    "웃음",
    "음악",
];

/// Where something said begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CueBreak {
    Here,
    Line,
    Paragraph,
}

/// Makes the text and marks every character of it with the time of its cue.
pub(super) fn transcript(captions: ParsedCaptions) -> TimedTranscript {
    let warnings = warnings(&captions);
    let cues = rolling::unroll(captions.cues);
    let mut prose = TranscriptBuilder { is_punctuated: is_punctuated(&cues), ..TranscriptBuilder::default() };
    for cue in &cues {
        prose.add(cue);
    }
    TimedTranscript { text: prose.text, marks: prose.marks, warnings }
}

fn warnings(captions: &ParsedCaptions) -> Vec<IngestionWarning> {
    let ParsedCaptions { unreadable_times, untimed_lines, is_cut_off, .. } = captions;
    let mut warnings = Vec::new();
    let mut warn = |code: &str, message: &str, count: u64| {
        if count > 0 {
            warnings.push(IngestionWarning { code: code.to_owned(), message: message.to_owned(), count });
        }
    };
    let message = "Times of some cues could not be read; they were taken from their neighbours.";
    warn("unreadable_cue_time", message, *unreadable_times);
    let message = "Lines before the first cue have no time and were left out.";
    warn("text_outside_cues", message, *untimed_lines);
    warn("captions_cut_off", "The captions break off; what comes before was read.", u64::from(*is_cut_off));
    warnings
}

fn is_punctuated(cues: &[CaptionCue]) -> bool {
    let length: usize = cues.iter().map(|cue| cue.text.len()).sum();
    let ends = cues.iter().flat_map(|cue| cue.text.chars()).filter(|c| is_sentence_end(*c)).count();
    ends * LONGEST_SENTENCE >= length
}

#[derive(Default)]
struct TranscriptBuilder {
    text: String,
    length: u64,
    marks: Vec<TextMark>,
    paragraph_at: u64,
    is_punctuated: bool,
    last_end: f64,
    speaker: Option<String>,
}

impl TranscriptBuilder {
    fn add(&mut self, cue: &CaptionCue) {
        let mut begins = self.begins(cue);
        let mut prefix = None;
        if cue.speaker != self.speaker {
            begins = CueBreak::Paragraph;
            prefix = cue.speaker.as_deref().filter(|name| !is_named(&cue.text, name));
        }
        if is_note(&cue.text) {
            return;
        }
        let mut is_new = true;
        for line in cue.text.lines() {
            for (turn, said) in turns(line) {
                let said = without_sounds(said);
                let said = said.trim();
                if said.is_empty() || is_note(said) {
                    continue;
                }
                self.separate(begins.max(turn), said);
                if is_new {
                    let what = MarkKind::Time { start: cue.start, end: cue.end };
                    self.marks.push(TextMark { at: self.length, what });
                    is_new = false;
                }
                if let Some(name) = prefix.take() {
                    self.push(name);
                    self.push(": ");
                }
                self.push(said);
                begins = CueBreak::Here;
            }
        }
        if !is_new {
            self.last_end = cue.end;
            self.speaker.clone_from(&cue.speaker);
        }
    }

    /// Whether a cue goes on with the paragraph.
    fn begins(&self, cue: &CaptionCue) -> CueBreak {
        let gap = cue.start - self.last_end;
        let is_long = self.length - self.paragraph_at >= LONG_PARAGRAPH;
        let ended = ends_sentence(&self.text);
        let pause = if ended || !self.is_punctuated { PAUSE } else { LONG_PAUSE };
        // Back in time is another part of the recording.
        let ends = gap >= pause || gap <= -LONG_PAUSE || (is_long && (ended || gap >= SHORT_PAUSE));
        if ends { CueBreak::Paragraph } else { CueBreak::Here }
    }

    /// Writes what stands between the text so far and what comes.
    fn separate(&mut self, begins: CueBreak, next: &str) {
        if self.text.is_empty() {
            return;
        }
        match begins {
            CueBreak::Paragraph => {
                self.push("\n\n");
                self.paragraph_at = self.length;
            }
            CueBreak::Line => self.push("\n"),
            CueBreak::Here => {
                let last = self.text.chars().next_back();
                if needs_space(last, next) {
                    self.push(" ");
                }
            }
        }
    }

    fn push(&mut self, text: &str) {
        self.length += text.chars().count() as u64;
        self.text.push_str(text);
    }
}

/// What is said on a line, by whom it is said: `>>` and a dash say that it is somebody else.
fn turns(line: &str) -> impl Iterator<Item = (CueBreak, &str)> {
    let mut rest = Some(line);
    let mut begins = if line.starts_with(['-', '–', '—']) && is_dialogue(line) {
        CueBreak::Line
    } else {
        CueBreak::Here
    };
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let border = text.match_indices(">>").map(|(at, _)| at).find(|at| {
            let (before, after) = text.split_at(*at);
            let next = after.trim_start_matches('>').trim_start().chars().next();
            // Elsewhere it is a sign of the text's own.
            before.trim().is_empty()
                || (before.ends_with(' ') && next.is_none_or(|c| !c.is_lowercase() && !c.is_numeric()))
        });
        let Some((before, after)) = border.map(|at| text.split_at(at)) else { return Some((begins, text)) };
        rest = Some(after.trim_start_matches('>'));
        let turn = (begins, before);
        begins = CueBreak::Paragraph;
        Some(turn)
    })
}

fn is_dialogue(line: &str) -> bool {
    let said = line.trim_start_matches(['-', '–', '—']);
    said.starts_with(' ') || said.starts_with(char::is_uppercase)
}

/// Whether a text is nothing but notes on sounds, or signs of music.
fn is_note(text: &str) -> bool {
    let mut rest = text.trim_matches(is_decoration);
    if rest.is_empty() {
        return true;
    }
    while let Some((open, close)) = brackets(rest) {
        let Some((inner, after)) = rest.get(open.len_utf8()..).and_then(|inner| inner.split_once(close))
        else {
            return false;
        };
        let is_word = |c: char| c.is_alphabetic() || c.is_whitespace() || matches!(c, '\'' | '’' | '-');
        let is_short =
            inner.split_whitespace().count() <= NOTE_WORDS && inner.chars().count() <= NOTE_CHARACTERS;
        if !is_short || !inner.chars().all(is_word) || !inner.contains(char::is_alphabetic) {
            return false;
        }
        rest = after.trim_start_matches(is_decoration);
        if rest.is_empty() {
            return true;
        }
    }
    false
}

fn brackets(text: &str) -> Option<(char, char)> {
    let open = text.chars().next()?;
    let close = match open {
        '[' => ']',
        '(' => ')',
        '（' => '）',
        '【' => '】',
        '［' => '］',
        _ => return None,
    };
    Some((open, close))
}

/// A line without the best known notes, and without signs of music.
fn without_sounds(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['[', '(']) {
        let (before, note) = rest.split_at(at);
        kept.push_str(before);
        let end = note.get(1..).and_then(|inner| inner.find([']', ')', '[', '(']));
        let inner = end.and_then(|end| note.get(1..=end)).unwrap_or_default();
        let is_sound = SOUNDS.contains(&inner.trim().to_lowercase().as_str());
        let length = if is_sound { inner.len() + 2 } else { 1 };
        let (note, after) = note.split_at_checked(length).unwrap_or((note, ""));
        if is_sound {
            let ends = kept.trim_end().len();
            kept.truncate(ends);
            if !kept.is_empty() && !after.starts_with(' ') {
                kept.push(' ');
            }
        } else {
            kept.push_str(note);
        }
        rest = after;
    }
    kept.push_str(rest);
    if kept.contains(is_music) {
        kept = kept.replace(is_music, " ");
        kept = kept.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    kept
}

fn is_music(c: char) -> bool {
    matches!(c, '♩' | '♪' | '♫' | '♬')
}

/// What stands between and around notes and says nothing.
fn is_decoration(c: char) -> bool {
    is_music(c) || c.is_whitespace() || matches!(c, '>' | '-' | '–' | '—' | '*' | '#')
}

/// Whether a text already begins with who says it.
fn is_named(text: &str, name: &str) -> bool {
    let text = text.trim_start_matches(['-', '>', ' ']);
    let start = text.get(..name.len()).unwrap_or_default();
    start.to_lowercase() == name.to_lowercase()
        && text.get(name.len()..).is_some_and(|rest| rest.starts_with(':'))
}

fn is_sentence_end(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '؟' | '।' | '۔' | '｡')
}

fn ends_sentence(text: &str) -> bool {
    let closing = |c: &char| matches!(c, '"' | '\'' | '”' | '’' | '»' | ')' | ']' | '」' | '』' | '）');
    text.chars().rev().find(|c| !closing(c)).is_some_and(is_sentence_end)
}

/// Whether a blank belongs between what was said and what comes next.
fn needs_space(last: Option<char>, next: &str) -> bool {
    let Some((last, first)) = last.zip(next.chars().next()) else { return false };
    let is_closing =
        matches!(first, ',' | '.' | ';' | ':' | '!' | '?' | ')' | ']') && !next.starts_with("..");
    !(is_closing || last.is_whitespace() || (is_unspaced(last) && is_unspaced(first)))
}
