//! Times that can be relied on, from those that were written.

use super::{CaptionCue, FoundCues, ParsedCaptions, RawCue};

/// What cannot be read of a cue's end lasts no longer than this, in milliseconds.
const LONGEST_GUESS: u32 = 10_000;
/// A cue that begins so much earlier than one before it, in milliseconds, belongs to another part of the recording, or to a
/// translation of it: the order of the file is kept there. Less is disorder.
const NEW_PART: u32 = 60_000;

/// Gives every cue a beginning and an end that is not before it, and puts them in order.
pub(super) fn settle(found: FoundCues) -> ParsedCaptions {
    let FoundCues { cues, mut unreadable_times, untimed_lines, is_cut_off } = found;
    let mut following: Vec<Option<u32>> = Vec::with_capacity(cues.len());
    let mut next = None;
    for cue in cues.iter().rev() {
        following.push(next);
        next = cue.start.or(next);
    }
    let mut settled: Vec<(u32, u32, String, Option<String>)> = Vec::with_capacity(cues.len());
    let mut last_end = 0;
    for (RawCue { start, end, text, speaker }, next) in cues.into_iter().zip(following.into_iter().rev()) {
        let begin = start.unwrap_or(last_end);
        let is_reversed = start.zip(end).is_some_and(|(start, end)| end < start);
        unreadable_times += u64::from(is_reversed);
        let end = end.filter(|end| *end >= begin).unwrap_or_else(|| {
            let latest = begin.saturating_add(LONGEST_GUESS);
            next.filter(|next| *next >= begin).map_or(begin, |next| next.min(latest))
        });
        last_end = end;
        settled.push((begin, end, text, speaker));
    }
    let mut rest = settled.as_mut_slice();
    while !rest.is_empty() {
        let mut latest = 0;
        let border = rest.iter().position(|(start, ..)| {
            latest = latest.max(*start);
            start.saturating_add(NEW_PART) < latest
        });
        let (part, more) = rest.split_at_mut(border.unwrap_or(rest.len()));
        part.sort_by_key(|(start, ..)| *start);
        rest = more;
    }
    let seconds = |time: u32| f64::from(time) / 1_000.0;
    let cue =
        |(start, end, text, speaker)| CaptionCue { start: seconds(start), end: seconds(end), text, speaker };
    ParsedCaptions {
        cues: settled.into_iter().map(cue).collect(),
        unreadable_times,
        untimed_lines,
        is_cut_off,
    }
}
