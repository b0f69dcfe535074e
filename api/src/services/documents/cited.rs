//! What those who only ask agents see of a document: the passages that were cited to them, and the pages on which these stand.

use std::{
    collections::HashSet,
    ops::{ControlFlow, Range, RangeInclusive},
};

use lectern_db as db;
use lectern_shared::{
    ids::{ChunkId, DocumentId},
    model::{
        document::{Chunk, Document},
        workspace::RunOwner,
    },
};

use uuid::Uuid;

use super::{DocumentService, unknown};
use crate::error::ApiError;

/// Latest traces among which those are looked for that name a document. The database looks through them.
const LATEST: u32 = 1_000;
/// Traces that name the document and are read, the latest ones.
const READ: u32 = 200;
/// Passages that are looked for: more than any traces of runs name, and what tools made up takes no more memory.
const MOST_CITED: usize = 50_000;
/// Passages that are read at a time.
const PAGE: u32 = 200;

/// What of a document was cited to somebody.
#[derive(Debug, Default)]
pub(crate) struct CitedParts {
    passages: HashSet<ChunkId>,
    /// The first and the last page of each passage.
    pages: Vec<RangeInclusive<u32>>,
    /// Stretches of the text, in its order; passages that touch or overlap are one.
    stretches: Vec<Range<u64>>,
}

impl CitedParts {
    /// Adds a passage, which begins no earlier than those before.
    fn add(&mut self, chunk: &Chunk) {
        let place = &chunk.place.0;
        self.passages.insert(chunk.chunk_id);
        if let Some(first) = place.page {
            self.pages.push(first..=place.page_end.unwrap_or(first));
        }
        match self.stretches.last_mut() {
            Some(last) if place.char_start <= last.end => last.end = last.end.max(place.char_end),
            Some(_) | None => self.stretches.push(place.char_start..place.char_end),
        }
    }

    /// Whether a passage is one of them.
    pub(crate) fn has_passage(&self, id: ChunkId) -> bool {
        self.passages.contains(&id)
    }

    /// Whether something of a page is.
    pub(crate) fn has_page(&self, page: u32) -> bool {
        self.pages.iter().any(|pages| pages.contains(&page))
    }

    /// Whether all of a stretch of the text is.
    pub(crate) fn has_stretch(&self, stretch: &Range<u64>) -> bool {
        self.stretches.iter().any(|whole| whole.start <= stretch.start && stretch.end <= whole.end)
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
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut cited = Vec::new();
        let take = |chunk: Chunk| {
            cited.push(chunk);
            if cited.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        self.each_cited(owner, id, from, take).await?;
        Ok(cited)
    }

    /// A document, and what of it stands in traces of somebody's own.
    ///
    /// # Errors
    /// Not found, when nothing of the document ever did.
    pub(in crate::services) async fn cited_parts(
        &self,
        owner: RunOwner,
        id: DocumentId,
    ) -> Result<(Document, CitedParts), ApiError> {
        let mut cited = CitedParts::default();
        let take = |chunk: Chunk| {
            cited.add(&chunk);
            ControlFlow::Continue(())
        };
        let document = self.each_cited(owner, id, 0, take).await?;
        Ok((document, cited))
    }

    /// Goes through the passages of a document from a number on that stand in traces of somebody's own, in the order of the source, as
    /// long as more are taken.
    ///
    /// # Errors
    /// Not found, when no trace names the document.
    async fn each_cited(
        &self,
        owner: RunOwner,
        id: DocumentId,
        mut from: i64,
        mut take: impl FnMut(Chunk) -> ControlFlow<()> + Send,
    ) -> Result<Document, ApiError> {
        let document = db::documents::find(&self.db, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        self.recorder.settled(owner.workspace_id).await;
        let cited_ids = self.cited_ids(owner, id).await?.ok_or_else(unknown)?;
        loop {
            let page = db::chunks::list(&self.db, owner.workspace_id, id, from, PAGE).await?;
            let Some(last) = page.last().map(|last| last.ordinal) else { return Ok(document) };
            for chunk in page.into_iter().filter(|chunk| cited_ids.contains(&chunk.chunk_id)) {
                if take(chunk).is_break() {
                    return Ok(document);
                }
            }
            from = last + 1;
        }
    }

    /// The ids of all passages in those of somebody's latest traces that name a document; none when no trace does. One trace at a time is
    /// in memory.
    async fn cited_ids(&self, owner: RunOwner, id: DocumentId) -> Result<Option<HashSet<ChunkId>>, ApiError> {
        let now = self.clock.now();
        let traces = db::traces::naming(&self.db, owner, id, now, LATEST, READ).await?;
        if traces.is_empty() {
            return Ok(None);
        }
        let mut cited = HashSet::new();
        for trace in traces {
            // What is deleted meanwhile cites nothing.
            let Some(body) = db::traces::body(&self.db, owner, trace, now).await? else { continue };
            for chunk in chunk_ids(&body) {
                if cited.len() < MOST_CITED {
                    cited.insert(chunk);
                }
            }
        }
        Ok(Some(cited))
    }
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
        for beyond in [99..101, 200..251, 250..400, 200..450, 0..1_000] {
            assert!(!cited.has_stretch(&beyond), "{beyond:?}");
        }
    }
}
