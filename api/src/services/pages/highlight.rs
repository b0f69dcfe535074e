//! What is to be marked on a page: passages, or stretches of the document's text.

use std::{ops::Range, str::FromStr};

use lectern_db::{self as db, Db};
use lectern_parse::protocol::TextToMark;
use lectern_shared::{
    ids::{ChunkId, WorkspaceId},
    model::document::{Chunk, Document},
};
use uuid::Uuid;

use crate::{error::ApiError, services::documents::CitedParts};

/// Passages that a stretch of text may go over.
const MAX_CHUNKS: u32 = 20;
/// Characters on each side of a stretch that tell its place from others with the same words.
const AROUND: u64 = 300;

/// Something to mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Highlight {
    /// A passage.
    Passage(ChunkId),
    /// Characters of the document's text (Unicode code points).
    Characters(Range<u64>),
    /// A text itself.
    Text(TextToMark),
}

impl Highlight {
    /// Whether all of it was cited to somebody, as far as a request can name it.
    pub(super) fn is_within(&self, cited: &CitedParts) -> bool {
        match self {
            Self::Passage(id) => cited.has_passage(*id),
            Self::Characters(range) => cited.has_stretch(range),
            Self::Text(_) => false,
        }
    }
}

impl FromStr for Highlight {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim();
        if let Ok(id) = text.parse::<Uuid>() {
            return Ok(Self::Passage(ChunkId::from(id)));
        }
        let (start, end) = text.split_once('-').ok_or(())?;
        let (start, end) = (start.parse::<u64>().map_err(|_| ())?, end.parse::<u64>().map_err(|_| ())?);
        if start < end { Ok(Self::Characters(start..end)) } else { Err(()) }
    }
}

/// The texts to look for on a page. What is no passage of the document, or not any more, marks nothing, and neither does what stands on
/// other pages.
pub(super) async fn texts(
    db: &Db,
    workspace: WorkspaceId,
    document: &Document,
    page: u32,
    highlights: &[Highlight],
) -> Result<Vec<TextToMark>, ApiError> {
    let mut texts = Vec::new();
    for highlight in highlights {
        match highlight {
            Highlight::Text(text) => texts.push(text.clone()),
            Highlight::Passage(id) => {
                let ordinal = db::chunks::ordinal(db, workspace, document.id, *id).await?;
                if let Some(ordinal) = ordinal {
                    let chunks = db::chunks::list(db, workspace, document.id, ordinal - 1, 3).await?;
                    let passage = chunks.iter().find(|chunk| chunk.chunk_id == *id);
                    let range = passage.map(|chunk| chunk.place.0.char_start..chunk.place.0.char_end);
                    texts.extend(range.and_then(|range| on_page(&chunks, &range, page)));
                }
            }
            Highlight::Characters(range) => {
                let chunks = around(db, workspace, document, page, range).await?;
                texts.extend(on_page(&chunks, range, page));
            }
        }
    }
    Ok(texts)
}

/// The passages that hold what a page may hold of a stretch, and some of what stands around that.
async fn around(
    db: &Db,
    workspace: WorkspaceId,
    document: &Document,
    page: u32,
    range: &Range<u64>,
) -> Result<Vec<Chunk>, ApiError> {
    let passages = document.search_index.as_ref().map_or(0, |index| index.0.chunks);
    let passage = async |ordinal, count| db::chunks::list(db, workspace, document.id, ordinal, count).await;
    // The last passage that begins at or before the stretch, or ends before the page: they are in the order of the text.
    let is_before = |chunk: &Chunk| {
        let place = &chunk.place.0;
        place.char_start <= range.start || place.page_end.or(place.page).is_some_and(|last| last < page)
    };
    let (mut low, mut high) = (0, i64::try_from(passages).unwrap_or(i64::MAX));
    while low + 1 < high {
        let middle = i64::midpoint(low, high);
        if passage(middle, 1).await?.first().is_some_and(is_before) {
            low = middle;
        } else {
            high = middle;
        }
    }
    // What stands before the stretch may be in the passage before.
    Ok(passage(low - 1, MAX_CHUNKS + 1).await?)
}

/// What of a stretch stands on a page, as far as these passages hold it, which follow one another; and what is around it there.
fn on_page(chunks: &[Chunk], range: &Range<u64>, page: u32) -> Option<TextToMark> {
    let (text, own) = joined(chunks, range, page)?;
    let said = |range: Range<u64>| joined(chunks, &range, page).map_or_else(String::new, |(text, _)| text);
    Some(TextToMark {
        text,
        before: said(own.start.saturating_sub(AROUND)..own.start),
        after: said(own.end..own.end.saturating_add(AROUND)),
    })
}

/// What these passages hold of a stretch on a page, and where that begins and ends.
fn joined(chunks: &[Chunk], range: &Range<u64>, page: u32) -> Option<(String, Range<u64>)> {
    let mut text = String::new();
    let mut own: Option<Range<u64>> = None;
    for chunk in chunks {
        let place = &chunk.place.0;
        let Some(shown) = place.on_page(page) else { continue };
        let begins = own.as_ref().map_or(range.start, |own| own.end);
        let (from, to) = (begins.max(shown.start), range.end.min(shown.end));
        if from >= to {
            continue;
        }
        let index = |at: u64| usize::try_from(at - place.char_start).unwrap_or(usize::MAX);
        // A passage may say more than its stretch of the text, before it: the header of the table that it is a part of.
        let length = place.char_end - place.char_start;
        let more = chunk.text.chars().count().saturating_sub(usize::try_from(length).unwrap_or(usize::MAX));
        text.extend(chunk.text.chars().skip(more + index(from)).take(index(to) - index(from)));
        own = Some(own.map_or(from, |own| own.start)..to);
    }
    own.filter(|_| !text.is_empty()).map(|own| (text, own))
}

#[cfg(test)]
mod tests {
    use lectern_shared::{
        ids::DocumentId,
        model::{Json, place::SourceSpan},
    };

    use super::*;

    fn chunk(text: &str, start: u64, end: u64) -> Chunk {
        let document_id = DocumentId::generate();
        Chunk {
            ordinal: 0,
            chunk_id: ChunkId::derive(document_id, 0, text, "{}"),
            document_id,
            tokens: 1,
            place: Json(SourceSpan { char_start: start, char_end: end, ..SourceSpan::default() }),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_highlight_is_a_passage_or_a_stretch_of_the_text() {
        let id = Uuid::from_u128(7);
        assert_eq!(id.to_string().parse(), Ok(Highlight::Passage(ChunkId::from(id))));
        assert_eq!(" 3-17 ".parse(), Ok(Highlight::Characters(3..17)));
        for wrong in ["", "3", "17-3", "3-3", "-3", "a-b", "3-17-20"] {
            assert_eq!(wrong.parse::<Highlight>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn a_stretch_is_put_together_from_passages_that_repeat_one_another() {
        let chunks =
            [chunk("Größe eins. Zwei.", 0, 17), chunk("Zwei. Drei.", 12, 23), chunk("Vier.", 24, 29)];
        let said = |range| joined(&chunks, &range, 1);
        assert_eq!(said(6..20), Some(("eins. Zwei. Dr".to_owned(), 6..20)));
        assert_eq!(said(25..900), Some(("ier.".to_owned(), 25..29)));
        assert_eq!(said(900..901), None);
    }

    #[test]
    fn the_header_of_a_table_that_a_passage_repeats_is_no_part_of_its_stretch() {
        let chunks = [chunk("| A | B |\n| 1 | 2 |", 100, 109)];
        assert_eq!(joined(&chunks, &(100..109), 1).unwrap().0, "| 1 | 2 |");
    }

    #[test]
    fn of_a_stretch_a_page_has_what_stands_on_it_and_around_that() {
        let mut over_pages = chunk("Page one.\n\nPage two.\n\nPage three.", 50, 83);
        over_pages.place.0.page = Some(1);
        over_pages.place.0.page_end = Some(3);
        over_pages.place.0.page_starts = Some(vec![61, 72]);
        let chunks = [over_pages];
        let marked = |range, page| {
            let TextToMark { text, before, after } = on_page(&chunks, &range, page)?;
            Some([before, text, after])
        };
        let of = |texts: [&str; 3]| Some(texts.map(str::to_owned));
        assert_eq!(marked(66..69, 2), of(["Page ", "two", ".\n\n"]));
        assert_eq!(marked(66..69, 1), None, "it stands on the next");
        assert_eq!(marked(55..77, 2), of(["", "Page two.\n\n", ""]));
        assert_eq!(marked(55..77, 3), of(["", "Page ", "three."]));
        assert_eq!(marked(900..901, 3), None);
    }
}
