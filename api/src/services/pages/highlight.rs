//! What is to be marked on a page: passages, or stretches of the document's text.

use std::{ops::Range, str::FromStr};

use lectern_db::{self as db, Db};
use lectern_shared::{
    ids::{ChunkId, WorkspaceId},
    model::document::{Chunk, Document},
};
use uuid::Uuid;

use crate::{error::ApiError, services::documents::CitedParts};

/// Passages that a stretch of text may go over.
const MAX_CHUNKS: u32 = 20;

/// Something to mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Highlight {
    /// A passage.
    Passage(ChunkId),
    /// Characters of the document's text (Unicode code points).
    Characters(Range<u64>),
    /// A text itself.
    Text(String),
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

/// The texts to look for on a page. What is no passage of the document, or not any more, marks nothing.
pub(super) async fn texts(
    db: &Db,
    workspace: WorkspaceId,
    document: &Document,
    page: u32,
    highlights: &[Highlight],
) -> Result<Vec<String>, ApiError> {
    let mut texts = Vec::new();
    for highlight in highlights {
        match highlight {
            Highlight::Text(text) => texts.push(text.clone()),
            Highlight::Passage(id) => {
                let ordinal = db::chunks::ordinal(db, workspace, document.id, *id).await?;
                if let Some(ordinal) = ordinal {
                    let chunks = db::chunks::list(db, workspace, document.id, ordinal, 1).await?;
                    texts.extend(chunks.into_iter().map(|chunk| chunk.text));
                }
            }
            Highlight::Characters(range) => {
                texts.extend(characters(db, workspace, document, page, range).await?);
            }
        }
    }
    Ok(texts)
}

/// The text of a stretch as far as a page may hold it, from the passages there.
async fn characters(
    db: &Db,
    workspace: WorkspaceId,
    document: &Document,
    page: u32,
    range: &Range<u64>,
) -> Result<Option<String>, ApiError> {
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
    Ok(joined(&passage(low, MAX_CHUNKS).await?, range))
}

/// What these passages, which follow one another, hold of a stretch.
fn joined(chunks: &[Chunk], range: &Range<u64>) -> Option<String> {
    let mut text = String::new();
    let mut at = range.start;
    for chunk in chunks {
        let place = &chunk.place.0;
        let (from, to) = (at.max(place.char_start), range.end.min(place.char_end));
        if from >= to {
            continue;
        }
        let index = |at: u64| usize::try_from(at - place.char_start).unwrap_or(usize::MAX);
        // A passage may say more than its stretch of the text, before it: the header of the table that it is a part of.
        let length = place.char_end - place.char_start;
        let own = chunk.text.chars().count().saturating_sub(usize::try_from(length).unwrap_or(usize::MAX));
        text.extend(chunk.text.chars().skip(own + index(from)).take(index(to) - index(from)));
        at = to;
    }
    (!text.is_empty()).then_some(text)
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
        assert_eq!(joined(&chunks, &(6..20)).unwrap(), "eins. Zwei. Dr");
        assert_eq!(joined(&chunks, &(25..900)).unwrap(), "ier.");
        assert_eq!(joined(&chunks, &(900..901)), None);
    }

    #[test]
    fn the_header_of_a_table_that_a_passage_repeats_is_no_part_of_its_stretch() {
        let chunks = [chunk("| A | B |\n| 1 | 2 |", 100, 109)];
        assert_eq!(joined(&chunks, &(100..109)).unwrap(), "| 1 | 2 |");
    }
}
