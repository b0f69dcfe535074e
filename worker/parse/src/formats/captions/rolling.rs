//! Captions that roll: tracks made while somebody speaks show the line before again above the new one, or a line again with each
//! word that comes. Only what is new of each cue is kept.

use super::CaptionCue;

/// Lines of the cue before that may still be shown.
const MAX_LINES: usize = 8;
/// Cues further apart than this, in seconds, do not roll into each other.
const MAX_GAP: f64 = 1.0;
/// A track rolls when at least one in so many of its cues does.
const ONE_IN: usize = 3;
/// Layers of one cue stand this near to each other.
const MAX_LAYERS: usize = 4;

/// How a cue goes on from the one before.
#[derive(Debug, Clone, Copy, Default)]
struct CueOverlap {
    /// Bytes at its beginning that the one before showed last; 0 when they do not follow each other closely.
    repeats: usize,
    /// Whether these are all that the one before showed, and something is new.
    grows: bool,
    /// Whether they are lines of their own, above what is new.
    lifts: bool,
}

impl CueOverlap {
    fn between(before: &CaptionCue, after: &CaptionCue) -> Self {
        if !is_near(before, after) {
            return Self::default();
        }
        let repeats = repeated(&before.text, &after.text);
        let new = after.text.get(repeats..).unwrap_or_default();
        let grows = !new.is_empty() && beginning(&before.text, &after.text) > 0;
        Self { repeats, grows, lifts: grows && new.trim_start_matches(' ').starts_with('\n') }
    }
}

/// Keeps what is new of each cue.
pub(super) fn unroll(cues: Vec<CaptionCue>) -> Vec<CaptionCue> {
    let mut cues = without_layers(cues);
    let (mut near, mut rolling, mut overlapping) = (0, 0, 0);
    let mut overlaps = vec![CueOverlap::default()];
    for (before, after) in cues.iter().zip(cues.iter().skip(1)) {
        overlapping += usize::from(after.start < before.end && after.start > before.start);
        let overlap = CueOverlap::between(before, after);
        near += usize::from(is_near(before, after));
        // Nothing but the same may have been said twice.
        rolling += usize::from((1..after.text.len()).contains(&overlap.repeats));
        overlaps.push(overlap);
    }
    // Where most lines stay while the next one comes, the end of a cue is when it goes, not when it has been said.
    if overlapping >= 2 && overlapping * 2 > cues.len() {
        let mut next = f64::INFINITY;
        for cue in cues.iter_mut().rev() {
            if next > cue.start {
                cue.end = cue.end.min(next);
            }
            next = cue.start;
        }
    }
    let is_track = rolling > 0 && (rolling == near || (rolling >= 2 && rolling * ONE_IN >= near));
    if !is_track {
        overlaps = certain(&overlaps);
    }
    fresh(cues, &overlaps)
}

/// The overlaps that are no coincidence in captions that do not roll as a whole: lines that move up when another one comes, and
/// cues that grow several times.
fn certain(overlaps: &[CueOverlap]) -> Vec<CueOverlap> {
    let grows = |at: Option<usize>| at.and_then(|at| overlaps.get(at)).is_some_and(|overlap| overlap.grows);
    let is_certain = |at: usize, overlap: &CueOverlap| {
        overlap.lifts || (overlap.grows && (grows(at.checked_sub(1)) || grows(at.checked_add(1))))
    };
    let of = |(at, overlap): (usize, &CueOverlap)| {
        if is_certain(at, overlap) { *overlap } else { CueOverlap::default() }
    };
    overlaps.iter().enumerate().map(of).collect()
}

/// Of each cue what the one before did not show.
fn fresh(cues: Vec<CaptionCue>, overlaps: &[CueOverlap]) -> Vec<CaptionCue> {
    let mut kept: Vec<CaptionCue> = Vec::with_capacity(cues.len());
    for (cue, overlap) in cues.into_iter().zip(overlaps) {
        let text = cue.text.get(overlap.repeats..).unwrap_or_default().trim().to_owned();
        if !text.is_empty() {
            kept.push(CaptionCue { text, ..cue });
        }
    }
    kept
}

/// Cues that are shown twice at the same time, once for the shadow perhaps, only once.
fn without_layers(cues: Vec<CaptionCue>) -> Vec<CaptionCue> {
    let mut kept: Vec<CaptionCue> = Vec::with_capacity(cues.len());
    for cue in cues {
        let near = kept.iter_mut().rev().take(MAX_LAYERS);
        let mut layers =
            near.filter(|one| one.text == cue.text && cue.start < one.end && one.start <= cue.start);
        match layers.next() {
            Some(one) => one.end = one.end.max(cue.end),
            None => kept.push(cue),
        }
    }
    kept
}

fn is_near(before: &CaptionCue, after: &CaptionCue) -> bool {
    after.start >= before.start && after.start - before.end <= MAX_GAP && after.speaker == before.speaker
}

/// How many bytes of `after` are the last lines of `before`.
fn repeated(before: &str, after: &str) -> usize {
    let breaks = before.rmatch_indices('\n').map(|(at, _)| at + 1).take(MAX_LINES - 1);
    let mut starts: Vec<usize> = breaks.collect();
    if starts.len() < MAX_LINES - 1 {
        starts.push(0);
    }
    // The more lines, the better.
    let lines = starts.into_iter().rev().filter_map(|start| before.get(start..));
    lines.map(|lines| beginning(lines, after)).find(|length| *length > 0).unwrap_or(0)
}

/// How many bytes of `text` are `start`, wherever their lines end, if `text` begins with it and does not go on in the midst of a word.
fn beginning(start: &str, text: &str) -> usize {
    let same = |(a, b): &(u8, u8)| a == b || (matches!(a, b'\n' | b' ') && matches!(b, b'\n' | b' '));
    let common = start.bytes().zip(text.bytes()).take_while(same).count();
    // A line that goes on loses its full stop.
    let needed = start.trim_end_matches(['.', ',', '…', '-']).len();
    if needed == 0 || common < needed {
        return 0;
    }
    let length = if common == start.len() { common } else { needed };
    let Some(rest) = text.get(length..) else { return 0 };
    let last = start.get(..length).and_then(|start| start.chars().next_back());
    // In "I'm" and "re-read" a word goes on behind a sign.
    let signless =
        if last.is_some_and(char::is_alphanumeric) { rest.strip_prefix(['\'', '’', '-']) } else { None };
    let goes_on = signless.unwrap_or(rest).starts_with(char::is_alphanumeric)
        && !last.is_some_and(super::script::is_unspaced);
    if goes_on { 0 } else { length }
}
