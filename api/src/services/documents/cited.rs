//! What those who only ask agents see of a document: the passages that were cited to them, and the pages on which these stand.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::{Range, RangeInclusive},
};

use lectern_db as db;
use lectern_shared::{
    ids::{ChunkId, DocumentId, TraceId},
    model::{
        document::{Chunk, Document},
        workspace::RunOwner,
    },
};
use uuid::Uuid;

use super::{DocumentService, unknown};
use crate::error::ApiError;

/// Latest traces among which those are looked for that name a document.
const LATEST: u32 = 1_000;
/// Traces that name the document and are read, the latest ones.
const READ: usize = 200;
/// Traces that are looked at in one statement. What all of them say may be in memory at once.
const TOGETHER: u32 = 20;
/// Passages that are looked for: more than any traces of runs name, and what tools made up takes no more memory.
const MOST_CITED: usize = 50_000;
/// Passages that are read at a time.
const PAGE: usize = 200;

/// What of a document was cited to somebody.
#[derive(Debug, Default)]
pub(crate) struct CitedParts {
    /// With the number that each has in the document.
    passages: HashMap<ChunkId, i64>,
    /// The first and the last page of each passage.
    pages: Vec<RangeInclusive<u32>>,
    /// Where each passage ends in the text, by where it begins.
    stretches: BTreeMap<u64, u64>,
}

impl CitedParts {
    /// Adds a passage.
    fn add(&mut self, chunk: &Chunk) {
        let place = &chunk.place.0;
        self.passages.insert(chunk.chunk_id, chunk.ordinal);
        if let Some(first) = place.page {
            self.pages.push(first..=place.page_end.unwrap_or(first));
        }
        let end = self.stretches.entry(place.char_start).or_default();
        *end = place.char_end.max(*end);
    }

    /// Whether a passage is one of them.
    pub(crate) fn has_passage(&self, id: ChunkId) -> bool {
        self.passages.contains_key(&id)
    }

    /// Whether something of a page is.
    pub(crate) fn has_page(&self, page: u32) -> bool {
        self.pages.iter().any(|pages| pages.contains(&page))
    }

    /// Whether all of a stretch of the text is. Passages that touch or overlap are one.
    pub(crate) fn has_stretch(&self, stretch: &Range<u64>) -> bool {
        let mut reached = stretch.start;
        for (begin, end) in self.stretches.range(..stretch.end) {
            if *begin > reached {
                return false;
            }
            reached = reached.max(*end);
        }
        reached >= stretch.end
    }

    /// At most `limit` of the passages from a number on, in the order of the source.
    fn passages_from(&self, from: i64, limit: usize) -> Vec<ChunkId> {
        let from = self.passages.iter().filter(|(_, ordinal)| **ordinal >= from);
        let mut passages: Vec<(i64, ChunkId)> = from.map(|(id, ordinal)| (*ordinal, *id)).collect();
        passages.sort_unstable();
        passages.into_iter().take(limit).map(|(_, id)| id).collect()
    }
}

impl DocumentService {
    /// At most `limit` of a document's passages from a number on, of those that stand in traces of somebody's own.
    ///
    /// # Errors
    /// Not found, when none of the document ever was.
    pub(super) async fn cited_chunks(
        &self,
        owner: RunOwner,
        id: DocumentId,
        from: i64,
        limit: u32,
    ) -> Result<Vec<Chunk>, ApiError> {
        let (_, cited) = self.cited_parts(owner, id, |_: &CitedParts| false).await?;
        let passages = cited.passages_from(from, usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(db::chunks::of_ids(&self.db, owner.workspace_id, id, &passages).await?)
    }

    /// A document, and what of it stands in traces of somebody's own. The latest are looked at first, and no more of them than it takes
    /// until `is_enough`: what somebody looks at was mostly cited to them just before.
    ///
    /// # Errors
    /// Not found, when nothing of the document ever did.
    pub(in crate::services) async fn cited_parts(
        &self,
        owner: RunOwner,
        id: DocumentId,
        is_enough: impl Fn(&CitedParts) -> bool + Send,
    ) -> Result<(Document, CitedParts), ApiError> {
        let workspace = owner.workspace_id;
        let document = db::documents::find(&self.db, workspace, id).await?.ok_or_else(unknown)?;
        self.recorder.settled(workspace).await;
        let now = self.clock.now();
        let mut cited = CitedParts::default();
        let mut known = HashSet::new();
        let (mut before, mut left, mut read) = (TraceId::from(Uuid::max()), LATEST, 0);
        while left > 0 && read < READ && !is_enough(&cited) {
            let limit = TOGETHER.min(left);
            let traces = db::traces::naming(&self.db, owner, id, now, before, limit).await?;
            let Some((last, _)) = traces.last() else { break };
            before = *last;
            left = if traces.len() < limit as usize { 0 } else { left - limit };
            let bodies: Vec<String> =
                traces.into_iter().filter_map(|(_, body)| body).take(READ - read).collect();
            read += bodies.len();
            for some in new_passages(&bodies, &mut known).chunks(PAGE) {
                for chunk in db::chunks::of_ids(&self.db, workspace, id, some).await? {
                    cited.add(&chunk);
                }
            }
        }
        if read == 0 { Err(unknown()) } else { Ok((document, cited)) }
    }
}

/// The passages in traces that are not known yet, which they are from then on.
fn new_passages(traces: &[String], known: &mut HashSet<ChunkId>) -> Vec<ChunkId> {
    let ids = traces.iter().flat_map(|trace| chunk_ids(trace));
    ids.filter(|id| known.len() < MOST_CITED && known.insert(*id)).collect()
}

/// The ids of passages in a trace's JSON.
fn chunk_ids(trace: &str) -> impl Iterator<Item = ChunkId> {
    let values = trace.split("\"chunkId\":\"").skip(1);
    values.filter_map(|rest| rest.split('"').next()?.parse::<Uuid>().ok()).map(ChunkId::from)
}

#[cfg(test)]
mod tests {
    use lectern_shared::model::{Json, place::SourceSpan};

    use super::*;

    fn chunk(number: u128, pages: Option<(u32, Option<u32>)>, characters: Range<u64>) -> Chunk {
        let place = SourceSpan {
            page: pages.map(|(first, _)| first),
            page_end: pages.and_then(|(_, last)| last),
            char_start: characters.start,
            char_end: characters.end,
            ..SourceSpan::default()
        };
        Chunk {
            ordinal: 0,
            chunk_id: Uuid::from_u128(number).into(),
            document_id: DocumentId::generate(),
            tokens: 1,
            place: Json(place),
            text: String::new(),
        }
    }

    #[test]
    fn what_was_cited_is_its_passages_their_pages_and_their_text_and_nothing_beside() {
        let mut cited = CitedParts::default();
        cited.add(&chunk(1, Some((2, Some(4))), 100..200));
        cited.add(&chunk(2, Some((4, None)), 180..250));
        cited.add(&chunk(3, Some((9, None)), 400..500));
        cited.add(&chunk(4, None, 600..700));
        assert!(cited.has_passage(Uuid::from_u128(3).into()));
        assert!(!cited.has_passage(Uuid::from_u128(5).into()));
        let pages: Vec<u32> = (0..12).filter(|page| cited.has_page(*page)).collect();
        assert_eq!(pages, [2, 3, 4, 9]);
        for within in [100..250, 100..101, 249..250, 400..500, 650..700] {
            assert!(cited.has_stretch(&within), "{within:?}");
        }
        for beyond in [99..101, 200..251, 250..400, 200..450, 0..1_000, 250..251, 399..400] {
            assert!(!cited.has_stretch(&beyond), "{beyond:?}");
        }
    }

    #[test]
    fn in_which_order_passages_were_cited_makes_no_difference() {
        let mut cited = CitedParts::default();
        for (ordinal, characters) in [(7, 400..500), (2, 180..250), (1, 100..200), (3, 180..220)] {
            let chunk = Chunk { ordinal, ..chunk(u128::try_from(ordinal).unwrap(), None, characters) };
            cited.add(&chunk);
        }
        assert!(cited.has_stretch(&(100..250)) && !cited.has_stretch(&(100..251)));
        let ids = |numbers: &[u128]| -> Vec<ChunkId> {
            numbers.iter().map(|number| Uuid::from_u128(*number).into()).collect()
        };
        assert_eq!(cited.passages_from(0, 10), ids(&[1, 2, 3, 7]));
        assert_eq!(cited.passages_from(2, 2), ids(&[2, 3]));
        assert!(cited.passages_from(8, 10).is_empty());
    }
}
