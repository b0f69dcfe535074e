//! Where a text may be cut, found once: the ends of its lines, or the elements of its Markdown.

use std::ops::Range;

use lectern_parse::formats::markdown::{flattened, options};
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag};

/// How strong a boundary is; of two, the larger one parts more.
pub(super) type BoundaryLevel = usize;

/// Levels of Markdown. In a text of lines, the level is the number of line ends that follow each other.
const SOFT_BREAK: BoundaryLevel = 0;
const INLINE: BoundaryLevel = 1;
/// A table's row below its header; the table itself is a block, which stays whole where it fits.
const ROW: BoundaryLevel = 2;
const BLOCK: BoundaryLevel = 3;
const RULE: BoundaryLevel = 4;
/// The weakest heading; the others follow.
const HEADING: BoundaryLevel = 5;
const LEVELS: usize = 11;

/// Something that is one of its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OutlineSpan {
    start: usize,
    end: usize,
    level: BoundaryLevel,
}

/// What a text is made of, in order.
#[derive(Debug)]
pub(super) struct TextOutline {
    spans: Vec<OutlineSpan>,
    markdown: bool,
    /// Of Markdown: where the last span of each level begins.
    last: [Option<usize>; LEVELS],
}

impl TextOutline {
    /// The runs of line ends.
    pub(super) fn of_lines(text: &str) -> Self {
        let mut spans: Vec<OutlineSpan> = Vec::new();
        let mut returned = false;
        for (start, byte) in text.bytes().enumerate() {
            if byte == b'\n' || byte == b'\r' {
                // Both together end one line.
                let level = usize::from(!(byte == b'\n' && returned));
                match spans.last_mut().filter(|last| last.end == start) {
                    Some(last) => {
                        last.end += 1;
                        last.level += level;
                    }
                    None => spans.push(OutlineSpan { start, end: start + 1, level: 1 }),
                }
            }
            returned = byte == b'\r';
        }
        Self { spans, markdown: false, last: [None; LEVELS] }
    }

    /// The elements of Markdown, before which there may be `metadata` of so many bytes.
    pub(super) fn of_markdown(text: &str, metadata: usize) -> Self {
        let flat = flattened(text);
        let body = flat.get(metadata..).unwrap_or_default();
        let span = |(event, Range { start, end }): (Event<'_>, Range<usize>)| {
            Some(OutlineSpan { start: metadata + start, end: metadata + end, level: level(&event)? })
        };
        let before = (metadata > 0).then_some(OutlineSpan { start: 0, end: metadata, level: BLOCK });
        let parsed = Parser::new_ext(body, options()).into_offset_iter().filter_map(span);
        let mut spans: Vec<OutlineSpan> = before.into_iter().chain(parsed).collect();
        // What holds another comes before it.
        spans.sort_by(|a, b| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
        let mut last = [None; LEVELS];
        for span in &spans {
            if let Some(last) = last.get_mut(span.level) {
                *last = Some(span.start);
            }
        }
        Self { spans, markdown: true, last }
    }

    /// Whether indentation means something.
    pub(super) fn is_markdown(&self) -> bool {
        self.markdown
    }
}

/// The level of what an event begins.
fn level(event: &Event<'_>) -> Option<BoundaryLevel> {
    Some(match event {
        Event::SoftBreak => SOFT_BREAK,
        Event::Start(
            Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Link { .. }
            | Tag::Image { .. }
            | Tag::Subscript
            | Tag::Superscript
            | Tag::TableCell,
        )
        | Event::Text(_)
        | Event::HardBreak
        | Event::Code(_)
        | Event::InlineHtml(_)
        | Event::InlineMath(_)
        | Event::FootnoteReference(_)
        | Event::TaskListMarker(_) => INLINE,
        Event::Start(Tag::TableRow) => ROW,
        Event::Rule => RULE,
        Event::Start(Tag::Heading { level, .. }) => match level {
            HeadingLevel::H6 => HEADING,
            HeadingLevel::H5 => HEADING + 1,
            HeadingLevel::H4 => HEADING + 2,
            HeadingLevel::H3 => HEADING + 3,
            HeadingLevel::H2 => HEADING + 4,
            HeadingLevel::H1 => HEADING + 5,
        },
        // A header is nothing without what stands below it, and the line of dashes between.
        Event::Start(Tag::TableHead) | Event::End(_) => return None,
        Event::Start(_) | Event::Html(_) | Event::DisplayMath(_) => BLOCK,
    })
}

/// How far an outline has been gone through: only forward, so that all of it costs no more than its length.
#[derive(Clone, Copy)]
pub(super) struct OutlineCursor<'t> {
    text: &'t str,
    outline: &'t TextOutline,
    cursor: usize,
    /// The first span that does not begin before the cursor.
    next: usize,
    /// Of Markdown: the first span of each level from `next` on.
    firsts: [usize; LEVELS],
}

impl<'t> OutlineCursor<'t> {
    pub(super) fn new(text: &'t str, outline: &'t TextOutline) -> Self {
        Self { text, outline, cursor: 0, next: 0, firsts: [0; LEVELS] }
    }

    pub(super) fn go_to(&mut self, cursor: usize) {
        self.cursor = cursor;
        let spans = &self.outline.spans;
        while spans.get(self.next).is_some_and(|span| span.start < cursor) {
            self.next += 1;
        }
        if self.outline.markdown {
            for (level, first) in self.firsts.iter_mut().enumerate() {
                *first = self.next.max(*first);
                while spans.get(*first).is_some_and(|span| span.level != level) {
                    *first += 1;
                }
            }
        }
    }

    /// The levels that the rest of the text has, and where the first section of each ends, from the weakest on. What is beyond
    /// `horizon` may be left out.
    pub(super) fn levels(&self, horizon: usize) -> LevelBoundaries<'t> {
        LevelBoundaries { walk: *self, horizon, level: 0, at: self.next, ended: false }
    }

    /// The rest of the text in sections of a level. The first one that ends beyond `horizon` is the last.
    pub(super) fn sections(&self, level: BoundaryLevel, horizon: usize) -> OutlineSections<'t> {
        let spans = &self.outline.spans;
        OutlineSections {
            text: self.text,
            spans: spans.get(self.after_holders(level, horizon)..).unwrap_or_default(),
            markdown: self.outline.markdown,
            level,
            horizon,
            cursor: self.cursor,
            pending: None,
            ended: false,
        }
    }

    /// The first span that holds no other one of the level: what stands in something larger would be passed over with it.
    fn after_holders(&self, level: BoundaryLevel, horizon: usize) -> usize {
        let spans = &self.outline.spans;
        let first = self.firsts.get(level).copied().unwrap_or(usize::MAX);
        let Some(mut inner) = spans.get(first).filter(|_| self.outline.markdown) else { return self.next };
        if first == self.next {
            // Of those that begin here, the smallest.
            let same = |span: &&OutlineSpan| span.level == level && span.start == inner.start;
            inner = spans.get(first..).unwrap_or_default().iter().take_while(same).last().unwrap_or(inner);
        }
        let mut at = self.next;
        while let Some(span) = spans.get(at).filter(|span| span.start <= horizon) {
            let holds = span.level > level && (span.start..span.end).contains(&inner.start)
                || span.level == level && span.start == inner.start && span.end > inner.end;
            if span.level >= level && !holds {
                break;
            }
            at += 1;
        }
        at
    }
}

/// See [`OutlineCursor::levels`].
pub(super) struct LevelBoundaries<'t> {
    walk: OutlineCursor<'t>,
    horizon: usize,
    /// Levels below are done.
    level: BoundaryLevel,
    at: usize,
    ended: bool,
}

impl Iterator for LevelBoundaries<'_> {
    type Item = (BoundaryLevel, usize);

    fn next(&mut self) -> Option<(BoundaryLevel, usize)> {
        let OutlineCursor { outline, cursor, .. } = self.walk;
        if outline.markdown {
            loop {
                let (level, last) = (self.level, outline.last.get(self.level)?);
                self.level += 1;
                if last.is_some_and(|last| last >= cursor) {
                    let first = self.walk.sections(level, self.horizon).next()?;
                    return Some((level, first.end));
                }
            }
        }
        // Where a stronger boundary comes before a weaker one, the section of both ends there.
        while let Some(span) = outline.spans.get(self.at).filter(|_| !self.ended) {
            self.at += 1;
            self.ended = span.start > self.horizon;
            if span.level > self.level {
                self.level = span.level;
                return Some((span.level, if span.start == cursor { span.end } else { span.start }));
            }
        }
        None
    }
}

/// See [`OutlineCursor::sections`].
pub(super) struct OutlineSections<'t> {
    text: &'t str,
    spans: &'t [OutlineSpan],
    markdown: bool,
    level: BoundaryLevel,
    horizon: usize,
    cursor: usize,
    pending: Option<Range<usize>>,
    ended: bool,
}

impl OutlineSections<'_> {
    /// The next span of the level or a stronger one, if there is any before the horizon.
    fn span(&mut self) -> Option<OutlineSpan> {
        while let Some((span, rest)) = self.spans.split_first()
            && span.start <= self.horizon
        {
            self.spans = rest;
            if span.level >= self.level && span.start >= self.cursor {
                return Some(*span);
            }
        }
        None
    }
}

impl Iterator for OutlineSections<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if let Some(pending) = self.pending.take() {
            return Some(pending);
        }
        while !self.ended {
            let begun = self.cursor;
            let Some(OutlineSpan { start, end, level }) = self.span() else {
                self.ended = true;
                let beyond = self.spans.first().map_or(self.text.len(), |span| span.start);
                self.cursor = beyond.max(begun);
                return (begun < self.cursor).then_some(begun..self.cursor);
            };
            if self.markdown && level >= HEADING {
                // A heading belongs to what follows.
                self.cursor = start;
            } else {
                self.cursor = end;
                let before = self.text.get(begun..start).unwrap_or_default();
                if self.markdown && matches!(level, ROW | BLOCK) && before.chars().all(char::is_whitespace) {
                    return Some(begun..end);
                }
                self.pending = Some(start..end).filter(|span| !span.is_empty());
            }
            if begun < start {
                return Some(begun..start);
            }
            if let Some(pending) = self.pending.take() {
                return Some(pending);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use lectern_parse::formats::markdown::front_matter;

    use super::*;

    #[test]
    fn headings_between_rules_are_headings_and_metadata_before_a_text_are_a_block() {
        let text = "---\ntitle: Grün\n# of nobody\n---\n\n# First\n\n---\n## Second\n---\n\nWords\n";
        let outline = TextOutline::of_markdown(text, front_matter(text));
        let blocks = outline.spans.iter().filter(|span| span.level >= BLOCK);
        let blocks: Vec<_> = blocks.map(|span| (text[span.start..span.end].trim(), span.level)).collect();
        assert_eq!(
            blocks,
            [
                ("---\ntitle: Grün\n# of nobody\n---", BLOCK),
                ("# First", HEADING + 5),
                ("---", RULE),
                ("## Second", HEADING + 4),
                ("---", RULE),
                ("Words", BLOCK)
            ]
        );
    }
}
