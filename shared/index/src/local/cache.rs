//! What of the index is in memory: an arena for each workspace, together never larger than the setting.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use lectern_shared::{
    cache_budget::CacheBudget,
    ids::{GenerationId, WorkspaceId},
};
use parking_lot::RwLock;

use super::{
    arena::{PendingMerge, ResolvedBlocks, WorkspaceArena},
    hash::IdMap,
};
use crate::segment::PostingsBlock;

/// The cache.
#[derive(Debug)]
pub(super) struct IndexCache {
    state: RwLock<IndexCacheState>,
    /// What the most bytes are told by: others take of it too.
    budget: CacheBudget,
    /// Counts what happens, to tell what was used last.
    clock: AtomicU64,
}

#[derive(Debug, Default)]
struct IndexCacheState {
    arenas: IdMap<WorkspaceId, WorkspaceArena>,
    /// What the arenas take together.
    bytes: u64,
    /// How many readers are about to insert.
    readers: usize,
    /// What was removed since the first of them began: it must not come back.
    removed: HashSet<(WorkspaceId, GenerationId)>,
}

/// While it is held, what is removed is remembered. What is inserted goes in by it, so that it is there until then, whatever becomes of
/// the search that has read it.
pub(super) struct CacheReadGuard(Arc<IndexCache>);

impl CacheReadGuard {
    /// Keeps blocks, which hold all of these generations, unless they were kept or removed meanwhile. What was searched least
    /// recently makes room.
    pub(super) fn insert(
        &self,
        workspace: WorkspaceId,
        generations: &[GenerationId],
        blocks: Vec<PostingsBlock>,
    ) {
        let Self(cache) = self;
        let now = cache.now();
        let mut state = cache.state.write();
        let wanted: Vec<_> =
            generations.iter().copied().filter(|g| !state.removed.contains(&(workspace, *g))).collect();
        state.arenas.entry(workspace).or_default();
        state.change(workspace, |arena| arena.insert(&wanted, blocks, now));
        state.evict(cache.capacity());
    }
}

impl Drop for CacheReadGuard {
    fn drop(&mut self) {
        let mut state = self.0.state.write();
        state.readers -= 1;
        if state.readers == 0 {
            state.removed = HashSet::new();
        }
    }
}

impl IndexCache {
    /// An empty cache of at most what is left of a budget.
    pub(super) fn new(budget: CacheBudget) -> Self {
        Self { state: RwLock::default(), budget, clock: AtomicU64::new(0) }
    }

    /// The most bytes now.
    pub(super) fn capacity(&self) -> u64 {
        self.budget.for_index()
    }

    /// Whether others have taken of the budget since what is here was inserted.
    pub(super) fn is_over(&self) -> bool {
        self.bytes() > self.capacity()
    }

    /// Forgets what was searched least recently, as far as it is more than may be here.
    pub(super) fn make_room(&self) {
        self.state.write().evict(self.capacity());
    }

    /// The bytes that are taken.
    pub(super) fn bytes(&self) -> u64 {
        self.state.read().bytes
    }

    /// To be held from before something is read from the store until it is inserted.
    pub(super) fn reading(self: &Arc<Self>) -> CacheReadGuard {
        self.state.write().readers += 1;
        CacheReadGuard(Arc::clone(self))
    }

    /// What is in memory of these generations, and what is not. Takes a moment when there are many.
    pub(super) fn resolve(
        &self,
        workspace: WorkspaceId,
        generations: &Arc<[GenerationId]>,
    ) -> ResolvedBlocks {
        let now = self.now();
        match self.state.read().arenas.get(&workspace) {
            Some(arena) => arena.resolve(generations, now),
            None => WorkspaceArena::default().resolve(generations, now),
        }
    }

    /// Those of these generations that are not in memory.
    pub(super) fn missing(&self, workspace: WorkspaceId, generations: &[GenerationId]) -> Vec<GenerationId> {
        let state = self.state.read();
        let arena = state.arenas.get(&workspace);
        let is_missing = |g: &&GenerationId| arena.is_none_or(|arena| !arena.contains(**g));
        generations.iter().filter(is_missing).copied().collect()
    }

    /// Forgets a generation.
    pub(super) fn remove(&self, workspace: WorkspaceId, generation: GenerationId) {
        let mut state = self.state.write();
        if state.readers > 0 {
            state.removed.insert((workspace, generation));
        }
        state.change(workspace, |arena| arena.remove(generation));
    }

    /// Blocks of a workspace that should be one, if there are any.
    pub(super) fn to_merge(&self, workspace: WorkspaceId) -> Option<PendingMerge> {
        self.state.read().arenas.get(&workspace)?.to_merge()
    }

    /// Puts the merged block in the place of those that it was made of, if they are all still there.
    pub(super) fn merged(&self, workspace: WorkspaceId, merge: &PendingMerge, block: PostingsBlock) {
        self.state.write().change(workspace, |arena| arena.replace(merge, block));
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl IndexCacheState {
    /// Changes a workspace's arena, if there is one; it goes when nothing is left in it.
    fn change(&mut self, workspace: WorkspaceId, change: impl FnOnce(&mut WorkspaceArena)) {
        let Some(arena) = self.arenas.get_mut(&workspace) else { return };
        self.bytes -= arena.bytes();
        change(arena);
        self.bytes += arena.bytes();
        if arena.is_empty() {
            self.arenas.remove(&workspace);
        }
    }

    /// Forgets what was searched least recently until the rest fits.
    fn evict(&mut self, capacity: u64) {
        if self.bytes <= capacity {
            return;
        }
        let mut oldest: Vec<(u64, WorkspaceId, u32)> = Vec::new();
        for (workspace, arena) in &self.arenas {
            oldest.extend(arena.uses().map(|(used, slot)| (used, *workspace, slot)));
        }
        oldest.sort_unstable();
        for (_, workspace, slot) in oldest {
            self.change(workspace, |arena| arena.evict(slot));
            if self.bytes <= capacity {
                return;
            }
        }
        // What is left are generations without passages.
        self.arenas.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_while_it_is_read_does_not_come_back() {
        let cache = Arc::new(IndexCache::new(CacheBudget::new(1 << 20)));
        let (workspace, generation) = (WorkspaceId::generate(), GenerationId::generate());
        let others = [cache.reading(), cache.reading()];
        cache.remove(workspace, generation);
        for reading in others {
            reading.insert(workspace, &[generation], Vec::new());
            assert_eq!(cache.missing(workspace, &[generation]), [generation]);
        }
        // Whoever begins to read it now reads what is there.
        cache.reading().insert(workspace, &[generation], Vec::new());
        assert!(cache.missing(workspace, &[generation]).is_empty());
    }
}
