//! Cuts a text into passages: each as many whole sections of the strongest level of which one fits.
//!
//! No step looks further ahead than a passage can reach, so that the time grows with the text alone, whatever it holds.

use std::{cmp::Ordering, collections::HashMap, ops::Range};

use super::{
    blanks::WhitespaceRuns,
    outline::{OutlineCursor, TextOutline},
    units::{TextUnit, UnicodeSegmenters},
};

/// Bytes beyond the reach of a passage that decide where the last sentence in it ends.
const BEYOND: usize = 1 << 10;
/// Sections of no size that are tried one by one; further ones are taken in growing steps.
const ONE_BY_ONE: usize = 64;
/// Bytes that are measured for passages that say nothing new, before the next one begins without repeating anything.
const REPEATED: usize = 2 << 20;
/// A text is measured from so many times its room in bytes on by its beginning.
const PROBED: usize = 8;

/// How large passages may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassageLimits {
    /// The largest size, at least 1.
    pub(super) capacity: usize,
    /// The largest size of what a passage repeats of the one before, smaller than `capacity`.
    pub(super) overlap: usize,
    /// What has more bytes, and white space neither before nor after them, is larger than `capacity`.
    pub(super) bytes: usize,
}

/// Cuts `text` and hands out the passages in order.
///
/// # Errors
/// The first error of `size` or `each`, which ends the cutting.
pub(super) fn cut<E>(
    text: &str,
    outline: &TextOutline,
    segmenters: &UnicodeSegmenters,
    room: PassageLimits,
    size: impl FnMut(&str) -> Result<usize, E>,
    mut each: impl FnMut(Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    let mut cutter = PassageCutter {
        text,
        room,
        segmenters,
        is_markdown: outline.is_markdown(),
        blanks: WhitespaceRuns::of(text),
        walk: OutlineCursor::new(text, outline),
        ruler: SizeCache { size, sizes: HashMap::new(), measured: 0 },
        cursor: 0,
        horizon: 0,
        sections: Vec::new(),
        largest: None,
    };
    let mut said = 0;
    while cutter.cursor < text.len() {
        let passage = cutter.next(said)?;
        if !passage.is_empty() && passage.end > said {
            said = passage.end;
            cutter.ruler.measured = 0;
            each(passage)?;
        }
    }
    Ok(())
}

/// Measures pieces of the text, each once.
struct SizeCache<F> {
    size: F,
    sizes: HashMap<(usize, usize), usize>,
    /// Bytes that were measured since something new was said.
    measured: usize,
}

struct PassageCutter<'t, F> {
    text: &'t str,
    room: PassageLimits,
    segmenters: &'t UnicodeSegmenters,
    is_markdown: bool,
    blanks: WhitespaceRuns<'t>,
    walk: OutlineCursor<'t>,
    ruler: SizeCache<F>,
    /// Where the next passage begins.
    cursor: usize,
    /// What ends further on is too large for a passage.
    horizon: usize,
    /// What the next passage may be made of.
    sections: Vec<Range<usize>>,
    /// Bytes of the largest passage so far.
    largest: Option<usize>,
}

impl<F, E> PassageCutter<'_, F>
where
    F: FnMut(&str) -> Result<usize, E>,
{
    /// The next passage, which may say nothing or nothing new.
    fn next(&mut self, said: usize) -> Result<Range<usize>, E> {
        self.walk.go_to(self.cursor);
        let begins = self.blanks.after(self.cursor);
        self.horizon =
            self.blanks.after(self.text.ceil_char_boundary(begins.saturating_add(self.room.bytes)));
        let low = self.gather()?;
        let start = self.cursor;
        let end = self.longest(low)?;
        self.largest = self.largest.max(Some(end - start));
        self.ruler.sizes.clear();
        let passage = self.trim(start..end);
        self.cursor = self.after(end, passage.end, said)?;
        Ok(passage)
    }

    fn trim(&self, piece: Range<usize>) -> Range<usize> {
        if self.is_markdown { self.blanks.trim_around_lines(piece) } else { self.blanks.trim(piece) }
    }

    /// The size of a piece without the white space around it.
    fn size(&mut self, piece: Range<usize>) -> Result<usize, E> {
        let piece = self.trim(piece);
        if let Some(size) = self.ruler.sizes.get(&(piece.start, piece.end)) {
            return Ok(*size);
        }
        self.ruler.measured += piece.len();
        let size = (self.ruler.size)(self.text.get(piece.clone()).unwrap_or_default())?;
        self.ruler.sizes.insert((piece.start, piece.end), size);
        Ok(size)
    }

    /// The size of what ends at `end`, compared with the room for it.
    fn fits(&mut self, end: usize) -> Result<Ordering, E> {
        let capacity = self.room.capacity;
        if end > self.horizon {
            return Ok(Ordering::Greater);
        }
        // Its beginning may be too large by far.
        let mut reach = capacity.saturating_mul(PROBED);
        while self.cursor.saturating_add(reach) < end {
            let beginning = self.text.floor_char_boundary(self.cursor + reach);
            if self.size(self.cursor..beginning)? > capacity + (capacity / 4).max(1) {
                return Ok(Ordering::Greater);
            }
            reach = reach.saturating_mul(2);
        }
        Ok(self.size(self.cursor..end)?.cmp(&capacity))
    }

    /// Of levels with the end of their first section, from the weakest on, the strongest that fits; and the end of the first one
    /// that does not.
    fn choose<L>(
        &mut self,
        levels: impl Iterator<Item = (L, usize)>,
    ) -> Result<(Option<L>, Option<usize>), E> {
        let mut chosen = None;
        let mut levels = levels.peekable();
        while let Some((level, end)) = levels.next() {
            if levels.peek().is_some_and(|(_, next)| *next <= end) {
                // The next one says more and takes no more room.
                continue;
            }
            if end - self.cursor > self.room.capacity && self.fits(end)?.is_gt() {
                return Ok((chosen, Some(end)));
            }
            chosen = Some(level);
        }
        Ok((chosen, None))
    }

    /// Gathers the sections that the next passage may be made of, and the number of one that is certain to fit with those before it.
    fn gather(&mut self) -> Result<usize, E> {
        let (cursor, horizon) = (self.cursor, self.horizon);
        let (level, most) = self.choose(self.walk.levels(horizon))?;
        if let Some(level) = level {
            let sections = self.walk.sections(level, horizon);
            return self.fill(sections, most);
        }
        let segmenters = self.segmenters;
        let rest = self.text.get(cursor..self.text.ceil_char_boundary(horizon.saturating_add(BEYOND)));
        let rest = rest.unwrap_or_default();
        let first = |unit| Some((unit, segmenters.units(unit, rest, cursor).next()?.end));
        let (unit, less) = self.choose(TextUnit::ALL.into_iter().filter_map(first))?;
        let most = most.into_iter().chain(less).min();
        self.fill(segmenters.units(unit.unwrap_or(TextUnit::Character), rest, cursor), most)
    }

    /// Takes sections until they are too large together, a little more each time: the larger a text, the longer it is measured.
    fn fill(
        &mut self,
        sections: impl Iterator<Item = Range<usize>>,
        most: Option<usize>,
    ) -> Result<usize, E> {
        let mut sections = sections.take_while(|section| most.is_none_or(|most| section.start <= most));
        let capacity = self.room.capacity;
        let mut wanted = self.largest.unwrap_or(capacity);
        let mut low = 0;
        self.sections.clear();
        loop {
            let before = self.sections.len();
            for section in sections.by_ref() {
                let end = section.end;
                self.sections.push(section);
                if end > self.cursor.saturating_add(wanted) {
                    break;
                }
            }
            let Some(end) = self.sections.last().map(|last| last.end) else { break };
            let length = end - self.cursor;
            if self.sections.len() == before || length < wanted || end > self.horizon {
                break;
            }
            let size = self.size(self.cursor..end)?;
            if size <= capacity {
                let per_size = length.div_ceil(size.max(1));
                let left = (capacity - size.max(1).min(capacity)).max(1);
                wanted =
                    length.saturating_add(left.saturating_mul(per_size)).saturating_add(length.div_ceil(10));
            }
            match size.cmp(&capacity) {
                Ordering::Less => low = self.sections.len() - 1,
                Ordering::Equal => {}
                Ordering::Greater => break,
            }
        }
        Ok(low)
    }

    fn end_of(&self, section: usize) -> Option<usize> {
        self.sections.get(section).map(|section| section.end)
    }

    /// Where the longest passage of whole sections ends; of `low` of them it is known that they fit.
    fn longest(&mut self, mut low: usize) -> Result<usize, E> {
        let start = self.cursor;
        let mut high = self.sections.len().saturating_sub(1);
        let mut found: Option<(usize, usize, usize)> = None;
        let mut is_full = false;
        while low <= high {
            let middle = low + (high - low) / 2;
            let Some(end) = self.end_of(middle) else { break };
            let size = if end > self.horizon { usize::MAX } else { self.size(start..end)? };
            match size.cmp(&self.room.capacity) {
                Ordering::Less => {
                    if found.is_none_or(|(_, before, _)| end > before) {
                        found = Some((middle, end, size));
                    }
                    low = middle + 1;
                    continue;
                }
                Ordering::Equal => {
                    // Of those that fill it, the shortest.
                    if !is_full || found.is_none_or(|(_, before, _)| end < before) {
                        found = Some((middle, end, size));
                    }
                    is_full = true;
                }
                // One section there must be.
                Ordering::Greater if middle == 0 && found.is_none() => found = Some((middle, end, size)),
                Ordering::Greater => {}
            }
            match middle.checked_sub(1) {
                Some(below) => high = below,
                None => break,
            }
        }
        let Some((section, end, size)) = found else {
            return Ok(self.end_of(0).unwrap_or(self.text.len()));
        };
        let last = self.without_size(section, size)?;
        Ok(self.end_of(last).map_or(end, |further| further.max(end)))
    }

    /// The last section after `section` up to which nothing adds to a size.
    fn without_size(&mut self, section: usize, size: usize) -> Result<usize, E> {
        let mut last = section;
        let mut step = 1;
        loop {
            let next = last + step;
            let fits = match self.end_of(next) {
                Some(end) if end <= self.horizon => self.size(self.cursor..end)? <= size,
                _ => false,
            };
            if fits {
                last = next;
                if last - section >= ONE_BY_ONE {
                    step *= 2;
                }
            } else if step > 1 {
                step /= 2;
            } else {
                return Ok(last);
            }
        }
    }

    /// Where the passage after one that ends at `end` begins: `text_end` is where its text ends.
    fn after(&mut self, end: usize, text_end: usize, said: usize) -> Result<usize, E> {
        let is_cut_off = self.blanks.after(text_end).saturating_sub(text_end) > self.room.bytes;
        let is_stale = text_end <= said && self.ruler.measured > REPEATED;
        if self.room.overlap == 0 || is_cut_off || is_stale {
            return Ok(end);
        }
        let mut start = end;
        let (mut low, mut high) = (0, self.sections.partition_point(|section| section.end < end));
        while low <= high {
            let middle = low + (high - low) / 2;
            let Some(offset) = self.sections.get(middle).map(|section| section.start) else { break };
            let size = if offset < end { self.size(offset..end)? } else { 0 };
            if size <= self.room.overlap && offset < start && offset > self.cursor {
                start = offset;
            }
            if size < self.room.overlap && middle > 0 {
                high = middle - 1;
            } else {
                low = middle + 1;
            }
        }
        Ok(start)
    }
}
