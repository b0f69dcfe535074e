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

/// Keeps what is new of each cue.
pub(super) fn unroll(cues: Vec<CaptionCue>) -> Vec<CaptionCue> {
    let mut cues = without_layers(cues);
    let (mut near, mut rolling, mut overlapping) = (0, 0, 0);
    for (before, after) in cues.iter().zip(cues.iter().skip(1)) {
        overlapping += usize::from(after.start < before.end && after.start > before.start);
        if is_near(before, after) {
            near += 1;
            // Nothing but the same may have been said twice.
            rolling += usize::from((1..after.text.len()).contains(&repeated(&before.text, &after.text)));
        }
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
    if rolling >= 2 && rolling * ONE_IN >= near { fresh(cues) } else { cues }
}

/// Of each cue what the one before did not show.
fn fresh(cues: Vec<CaptionCue>) -> Vec<CaptionCue> {
    let mut kept: Vec<CaptionCue> = Vec::with_capacity(cues.len());
    let mut before: Option<CaptionCue> = None;
    for cue in cues {
        let repeats = before.as_ref().filter(|before| is_near(before, &cue));
        let repeats = repeats.map_or(0, |before| repeated(&before.text, &cue.text));
        let text = cue.text.get(repeats..).unwrap_or_default().trim();
        if !text.is_empty() {
            kept.push(CaptionCue { text: text.to_owned(), speaker: cue.speaker.clone(), ..cue });
        }
        before = Some(cue);
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
    let goes_on = rest.starts_with(char::is_alphanumeric) && !last.is_some_and(super::script::is_unspaced);
    if goes_on { 0 } else { length }
}
