//! What those who only ask agents see of a document: the passages that were cited to them.

use std::collections::HashSet;

use lectern_db as db;
use lectern_shared::{
    ids::{ChunkId, DocumentId},
    model::{document::Chunk, workspace::RunOwner},
};

use uuid::Uuid;

use super::{DocumentService, unknown};
use crate::error::ApiError;

/// Latest traces that are looked at.
const TRACES: u32 = 100;
/// Passages that are looked for: more than any traces of runs name, and what tools made up takes no more memory.
const MOST_CITED: usize = 50_000;
/// Passages that are read at a time.
const PAGE: u32 = 200;

impl DocumentService {
    /// At most `limit` of a document's passages from a number on, of those that stand in traces of somebody's own.
    ///
    /// # Errors
    /// Not found, when none of the document ever was.
    pub(super) async fn cited_chunks(
        &self,
        owner: RunOwner,
        id: DocumentId,
        mut from: i64,
        limit: u32,
    ) -> Result<Vec<Chunk>, ApiError> {
        db::documents::find(&self.db, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        self.recorder.settled(owner.workspace_id).await;
        let cited_ids = self.cited_ids(owner, id).await?.ok_or_else(unknown)?;
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut cited = Vec::new();
        loop {
            let page = db::chunks::list(&self.db, owner.workspace_id, id, from, PAGE).await?;
            let Some(last) = page.last().map(|last| last.ordinal) else { return Ok(cited) };
            cited.extend(page.into_iter().filter(|chunk| cited_ids.contains(&chunk.chunk_id)));
            if cited.len() >= most {
                cited.truncate(most);
                return Ok(cited);
            }
            from = last + 1;
        }
    }

    /// The ids of all passages in those of somebody's traces that name a document; none when no trace does. One trace at a time is in
    /// memory.
    async fn cited_ids(&self, owner: RunOwner, id: DocumentId) -> Result<Option<HashSet<ChunkId>>, ApiError> {
        let now = self.clock.now();
        let traces = db::traces::naming(&self.db, owner, id, now, TRACES).await?;
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
