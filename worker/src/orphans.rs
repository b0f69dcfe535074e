//! Finds index entries that no row tells of any more, and removes them. The beginning of a generation does not wait for the disk, so when the
//! database's machine goes down, the row may be lost of a generation whose first entries are in an index elsewhere already. Nobody finds
//! them, but they would stay for ever.

use std::{sync::Arc, time::Duration};

use lectern_db::{Db, generations};
use lectern_index::{IndexCursor, IndexError, SearchIndex};
use tokio::time::Instant;

/// The pause between two looks through everything: a crash of the database's machine is rare, and hides nothing.
const ROUND_EVERY: Duration = Duration::from_hours(24);
/// The pause after a page could not be looked at.
const AGAIN_AFTER: Duration = Duration::from_mins(5);
/// How long one turn goes on.
const TURN: Duration = Duration::from_millis(500);

/// A look through all entries, some pages at a time.
pub(crate) struct OrphanSearch {
    db: Db,
    index: Arc<dyn SearchIndex>,
    /// Where the next page begins; none at the beginning.
    cursor: Option<IndexCursor>,
    /// When the next page may be looked at; none for an index that has no such entries.
    due: Option<Instant>,
    /// Generations that this look has removed.
    removed: usize,
}

impl OrphanSearch {
    pub(crate) fn new(db: Db, index: Arc<dyn SearchIndex>) -> Self {
        let due = index.late_write_window().map(|_| Instant::now());
        Self { db, index, cursor: None, due, removed: 0 }
    }

    /// Whether there is anything to look at now.
    pub(crate) fn is_due(&self) -> bool {
        self.due.is_some_and(|due| Instant::now() >= due)
    }

    /// Looks at the next pages, if it is time. An index that is away is looked at again later.
    pub(crate) async fn go_on(&mut self) {
        let began = Instant::now();
        while self.is_due() && began.elapsed() < TURN {
            if let Err(error) = self.step().await {
                tracing::debug!(%error, "index entries could not be compared with the database yet");
                self.due = Some(Instant::now() + AGAIN_AFTER);
            }
        }
    }

    async fn step(&mut self) -> Result<(), IndexError> {
        let page = self.index.held(self.cursor.clone()).await?;
        for retired in generations::unknown(&self.db, &page.generations).await? {
            self.index.remove(retired).await?;
            self.removed += 1;
        }
        self.cursor = page.next;
        if self.cursor.is_none() {
            self.end_round();
        }
        Ok(())
    }

    fn end_round(&mut self) {
        let removed = std::mem::take(&mut self.removed);
        if removed > 0 {
            tracing::warn!(generations = removed, "index entries that nothing told of were removed");
        }
        self.due = Some(Instant::now() + ROUND_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use async_trait::async_trait;
    use lectern_db::{
        generations::RetiredGeneration,
        testing::{at, both, published, workspace},
    };
    use lectern_index::{
        EntryMismatch, ExpectedEntries, HeldGenerations, IndexCandidates, IndexQuery, IndexStatus,
        IndexTarget, IndexWriter,
    };
    use lectern_shared::{
        ids::{GenerationId, WorkspaceId},
        metrics::CacheState,
    };
    use parking_lot::Mutex;

    use super::*;

    /// An index elsewhere that holds these generations, one a page.
    struct DistantIndex(Mutex<Vec<(WorkspaceId, GenerationId)>>);

    #[async_trait]
    impl SearchIndex for DistantIndex {
        fn writer<'a>(&'a self, _: IndexTarget<'a>) -> Result<Box<dyn IndexWriter + 'a>, IndexError> {
            unreachable!("nothing is written")
        }

        async fn search(&self, _: IndexQuery) -> Result<IndexCandidates, IndexError> {
            unreachable!("nothing is asked")
        }

        async fn remove(&self, retired: RetiredGeneration) -> Result<(), IndexError> {
            self.0
                .lock()
                .retain(|(workspace, id)| (*workspace, *id) != (retired.workspace_id(), retired.id()));
            Ok(())
        }

        async fn count(&self, _: WorkspaceId, _: GenerationId) -> Result<u64, IndexError> {
            unreachable!("nothing is counted")
        }

        async fn mismatched(
            &self,
            _: &[ExpectedEntries],
        ) -> Result<BTreeMap<GenerationId, EntryMismatch>, IndexError> {
            unreachable!("nothing is compared")
        }

        async fn held(&self, from: Option<IndexCursor>) -> Result<HeldGenerations, IndexError> {
            let mut held = self.0.lock().clone();
            held.sort_unstable_by_key(|(_, id)| *id);
            let after = from.map(|cursor| cursor.point.unwrap_or_default());
            let mut left =
                held.into_iter().filter(|(_, id)| after.as_ref().is_none_or(|at| id.to_string() > *at));
            let page: Vec<_> = left.next().into_iter().collect();
            let next = page.last().filter(|_| left.next().is_some());
            let next = next
                .map(|(_, id)| IndexCursor { collection: "only".to_owned(), point: Some(id.to_string()) });
            Ok(HeldGenerations { generations: page, next })
        }

        fn late_write_window(&self) -> Option<Duration> {
            Some(Duration::ZERO)
        }

        fn cached(&self) -> Vec<CacheState> {
            unreachable!("nobody asks")
        }

        async fn ping(&self) -> Result<IndexStatus, IndexError> {
            unreachable!("nobody asks")
        }
    }

    #[tokio::test]
    async fn entries_whose_generation_has_no_row_go_and_all_others_stay() {
        for t in &both().await {
            let owner = workspace(&t.db, at(0)).await;
            let (_, answering) = published(&t.db, owner, "known", &["a text"], at(1)).await;
            let lost: Vec<_> = (0..3).map(|_| GenerationId::generate()).collect();
            let held = lost.iter().copied().chain([answering]).map(|id| (owner, id)).collect();
            let index = Arc::new(DistantIndex(Mutex::new(held)));
            let mut search = OrphanSearch::new(t.db.clone(), index.clone());
            while search.is_due() {
                search.go_on().await;
            }
            assert_eq!(*index.0.lock(), [(owner, answering)], "{}", t.name);
        }
    }
}
