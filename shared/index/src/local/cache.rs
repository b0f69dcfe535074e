//! What of the index is in memory: an arena for each user, together never larger than the setting.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use lectern_shared::{
    cache_budget::CacheBudget,
    ids::{GenerationId, UserId},
};
use parking_lot::RwLock;

use super::{
    arena::{PendingMerge, ResolvedBlocks, UserArena},
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
    arenas: IdMap<UserId, UserArena>,
    /// What the arenas take together.
    bytes: u64,
    /// How many readers are about to insert.
    readers: usize,
    /// What was removed since the first of them began: it must not come back.
    removed: HashSet<(UserId, GenerationId)>,
}

/// While it is held, what is removed is remembered.
pub(super) struct CacheReadGuard<'a>(&'a IndexCache);

impl Drop for CacheReadGuard<'_> {
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
    pub(super) fn reading(&self) -> CacheReadGuard<'_> {
        self.state.write().readers += 1;
        CacheReadGuard(self)
    }

    /// What is in memory of these generations, and what is not. Takes a moment when there are many.
    pub(super) fn resolve(&self, user: UserId, generations: &Arc<[GenerationId]>) -> ResolvedBlocks {
        let now = self.now();
        match self.state.read().arenas.get(&user) {
            Some(arena) => arena.resolve(generations, now),
            None => UserArena::default().resolve(generations, now),
        }
    }

    /// Those of these generations that are not in memory.
    pub(super) fn missing(&self, user: UserId, generations: &[GenerationId]) -> Vec<GenerationId> {
        let state = self.state.read();
        let arena = state.arenas.get(&user);
        let is_missing = |g: &&GenerationId| arena.is_none_or(|arena| !arena.contains(**g));
        generations.iter().filter(is_missing).copied().collect()
    }

    /// Keeps blocks, which hold all of these generations, unless they were kept or removed meanwhile. What was searched least
    /// recently makes room.
    pub(super) fn insert(&self, user: UserId, generations: &[GenerationId], blocks: Vec<PostingsBlock>) {
        let now = self.now();
        let mut state = self.state.write();
        let wanted: Vec<_> =
            generations.iter().copied().filter(|g| !state.removed.contains(&(user, *g))).collect();
        state.arenas.entry(user).or_default();
        state.change(user, |arena| arena.insert(&wanted, blocks, now));
        state.evict(self.capacity());
    }

    /// Forgets a generation.
    pub(super) fn remove(&self, user: UserId, generation: GenerationId) {
        let mut state = self.state.write();
        if state.readers > 0 {
            state.removed.insert((user, generation));
        }
        state.change(user, |arena| arena.remove(generation));
    }

    /// Blocks of a user that should be one, if there are any.
    pub(super) fn to_merge(&self, user: UserId) -> Option<PendingMerge> {
        self.state.read().arenas.get(&user)?.to_merge()
    }

    /// Puts the merged block in the place of those that it was made of, if they are all still there.
    pub(super) fn merged(&self, user: UserId, merge: &PendingMerge, block: PostingsBlock) {
        self.state.write().change(user, |arena| arena.replace(merge, block));
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl IndexCacheState {
    /// Changes a user's arena, if there is one; it goes when nothing is left in it.
    fn change(&mut self, user: UserId, change: impl FnOnce(&mut UserArena)) {
        let Some(arena) = self.arenas.get_mut(&user) else { return };
        self.bytes -= arena.bytes();
        change(arena);
        self.bytes += arena.bytes();
        if arena.is_empty() {
            self.arenas.remove(&user);
        }
    }

    /// Forgets what was searched least recently until the rest fits.
    fn evict(&mut self, capacity: u64) {
        if self.bytes <= capacity {
            return;
        }
        let mut oldest: Vec<(u64, UserId, u32)> = Vec::new();
        for (user, arena) in &self.arenas {
            oldest.extend(arena.uses().map(|(used, slot)| (used, *user, slot)));
        }
        oldest.sort_unstable();
        for (_, user, slot) in oldest {
            self.change(user, |arena| arena.evict(slot));
            if self.bytes <= capacity {
                return;
            }
        }
        // What is left are generations without passages.
        self.arenas.clear();
        self.bytes = 0;
    }
}
