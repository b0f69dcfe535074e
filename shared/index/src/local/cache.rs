//! The cache of the index: an arena for each workspace. Together they never take more memory than the setting allows. The blocks that
//! were searched least recently make room: they move into a file, or are forgotten where there is no disk for them.

use std::{
    collections::HashSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use lectern_shared::{
    cache_budget::CacheBudget,
    ids::{GenerationId, WorkspaceId},
    metrics::CacheState,
};
use parking_lot::{Mutex, RwLock};

use super::{
    arena::{KeptBlock, PendingMerge, ResolvedBlocks, WorkspaceArena},
    hash::IdMap,
};
use crate::{
    segment::PostingsBlock,
    spill::{SpillSpace, SpilledBlock},
};

/// The cache.
#[derive(Debug)]
pub(super) struct IndexCache {
    state: RwLock<IndexCacheState>,
    /// What the most bytes are told by: others take of it too.
    budget: CacheBudget,
    /// Where blocks go that do not fit into memory.
    spill: Option<SpillSpace>,
    /// Held by whoever makes room.
    making_room: Mutex<()>,
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

/// A block that is to make room.
struct EvictionVictim {
    /// When it was searched last.
    used: u64,
    workspace: WorkspaceId,
    slot: u32,
    block: KeptBlock,
}

/// While it is held, what is removed is remembered. What is inserted goes in by it, so that it is there until then, whatever becomes of
/// the search that has read it.
pub(super) struct CacheReadGuard(Arc<IndexCache>);

impl CacheReadGuard {
    /// Keeps blocks, which hold all of these generations, unless they were kept or removed meanwhile. Room is made for them by
    /// [`IndexCache::make_room`].
    pub(super) fn insert(
        &self,
        workspace: WorkspaceId,
        generations: &[GenerationId],
        blocks: Vec<KeptBlock>,
    ) {
        let Self(cache) = self;
        let now = cache.now();
        let mut state = cache.state.write();
        let wanted: Vec<_> =
            generations.iter().copied().filter(|g| !state.removed.contains(&(workspace, *g))).collect();
        state.arenas.entry(workspace).or_default();
        state.change(workspace, |arena| arena.insert(&wanted, blocks, now));
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
    /// An empty cache of at most what is left of a budget, and of this room on the disk.
    pub(super) fn new(budget: CacheBudget, spill: Option<SpillSpace>) -> Self {
        Self {
            state: RwLock::default(),
            budget,
            spill,
            making_room: Mutex::new(()),
            clock: AtomicU64::new(0),
        }
    }

    /// The most bytes now.
    pub(super) fn capacity(&self) -> u64 {
        self.budget.for_index()
    }

    /// Whether others have taken of the budget since what is here was inserted.
    pub(super) fn is_over(&self) -> bool {
        self.bytes() > self.capacity()
    }

    /// Whether so many bytes fit into memory and files together, when so many of them are in memory wherever the rest is.
    pub(super) fn fits(&self, bytes: u64, in_memory: u64) -> bool {
        let capacity = self.capacity();
        let on_disk = self.spill.as_ref().map_or(0, SpillSpace::capacity);
        in_memory <= capacity && bytes <= capacity.saturating_add(on_disk)
    }

    /// Has what was searched least recently make room, as far as it is more than may be in memory. Takes as long as the disk does.
    pub(super) fn make_room(&self) {
        let _one_at_a_time = self.making_room.lock();
        self.give_up_least_used();
    }

    /// The same, unless somebody is at it, who goes on until there is enough: all searches that see it must not wait for the disk.
    pub(super) fn make_room_unless_busy(&self) {
        if let Some(_one_at_a_time) = self.making_room.try_lock() {
            self.give_up_least_used();
        }
    }

    fn give_up_least_used(&self) {
        loop {
            let capacity = self.capacity();
            let victims = self.state.read().victims(capacity);
            if victims.is_empty() {
                let mut state = self.state.write();
                if state.bytes > capacity && state.has_no_blocks() {
                    // What is left are generations without passages.
                    state.arenas.clear();
                    state.bytes = 0;
                }
                return;
            }
            for EvictionVictim { used, workspace, slot, block } in victims {
                let copy = block.in_memory().and_then(|block| self.spilled(block, used));
                self.state.write().change(workspace, |arena| arena.give_up(slot, &block, copy));
            }
        }
    }

    /// Whether searches of a workspace have read files so often that [`bring_back`](Self::bring_back) is worth a look.
    pub(super) fn reads_files_often(&self, workspace: WorkspaceId) -> bool {
        self.state.read().arenas.get(&workspace).is_some_and(WorkspaceArena::reads_files_often)
    }

    /// Forgets what searches of a workspace have often read from files while as much in memory was not searched at all: the next one
    /// reads it into memory, in the place of that.
    pub(super) fn bring_back(&self, workspace: WorkspaceId) {
        let capacity = self.capacity();
        let forgotten = self.state.write().bring_back(workspace, capacity);
        drop(forgotten);
    }

    /// Blocks of a search that does not fit into memory: each stays in memory if it fits without driving anything out, and goes into a
    /// file otherwise. Files that were not searched since that time make room for it.
    pub(super) fn beside_others(&self, blocks: Vec<PostingsBlock>, since: u64) -> Vec<KeptBlock> {
        let (mut bytes, capacity) = (self.bytes(), self.capacity());
        let place = |block: PostingsBlock| {
            bytes += block.byte_len() as u64;
            let copy = if bytes <= capacity { None } else { self.spilled(&block, since) };
            match copy {
                Some(copy) => {
                    bytes -= block.byte_len() as u64;
                    KeptBlock::InFile(Arc::new(copy))
                }
                None => KeptBlock::InMemory(Arc::new(block)),
            }
        };
        blocks.into_iter().map(place).collect()
    }

    /// A copy of a block in a file; none if there is no room for it. Files that were searched before the time `used` make room.
    fn spilled(&self, block: &PostingsBlock, used: u64) -> Option<SpilledBlock> {
        let spill = self.spill.as_ref().filter(|spill| spill.is_worth(block.byte_len() as u64))?;
        let lacking = spill.lacking(block)?;
        if lacking > 0 {
            self.forget_files(lacking, used);
        }
        spill.write(block)
    }

    fn forget_files(&self, bytes: u64, used: u64) {
        let forgotten = self.state.write().forget_files(bytes, used);
        // Now that nobody waits for it the system frees them, which takes a moment.
        drop(forgotten);
    }

    /// Uses no file from now on: one could not be read.
    pub(super) fn give_up_files(&self, error: &io::Error) {
        if let Some(spill) = &self.spill {
            spill.give_up(error);
            self.forget_files(u64::MAX, u64::MAX);
        }
    }

    /// The bytes that are taken.
    pub(super) fn bytes(&self) -> u64 {
        self.state.read().bytes
    }

    /// What is in memory, what tells where files are included, and what is in files, if there may be any.
    pub(super) fn parts(&self) -> Vec<CacheState> {
        let index = CacheState { part: "index", bytes: self.bytes(), max: self.capacity() };
        let files = self.spill.as_ref().map(|spill| CacheState {
            part: "files",
            bytes: spill.taken(),
            max: spill.capacity(),
        });
        [Some(index), files].into_iter().flatten().collect()
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

    /// The next time on the cache's clock.
    pub(super) fn now(&self) -> u64 {
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

    /// What was searched least recently, as far as it must make room for the rest to fit into memory: blocks in memory first, since of
    /// those in files only what tells where they are is in memory.
    fn victims(&self, capacity: u64) -> Vec<EvictionVictim> {
        let mut over = self.bytes.saturating_sub(capacity);
        if over == 0 {
            return Vec::new();
        }
        let mut victims = self.blocks();
        victims.sort_unstable_by_key(|v| (v.block.in_memory().is_none(), v.used, v.workspace, v.slot));
        let is_needed = |victim: &EvictionVictim| {
            let is_needed = over > 0;
            over = over.saturating_sub(victim.block.byte_len());
            is_needed
        };
        victims.into_iter().take_while(is_needed).collect()
    }

    /// Forgets what is in files and was searched least recently, before the time `used`, until so many bytes are free.
    /// Returns it: a file is freed when it is dropped.
    fn forget_files(&mut self, bytes: u64, used: u64) -> Vec<EvictionVictim> {
        let mut files = self.blocks();
        files.retain(|file| file.block.in_memory().is_none() && file.used < used);
        files.sort_unstable_by_key(|file| (file.used, file.workspace, file.slot));
        let mut free = 0;
        let is_needed = |file: &EvictionVictim| {
            let is_needed = free < bytes;
            free += file.block.file_bytes();
            is_needed
        };
        let forgotten: Vec<_> = files.into_iter().take_while(is_needed).collect();
        for EvictionVictim { workspace, slot, block, .. } in &forgotten {
            self.change(*workspace, |arena| arena.give_up(*slot, block, None));
        }
        forgotten
    }

    /// Forgets what a workspace's searches have often read from files, if memory has room for it beside what else was searched in that
    /// time. Returns it, as [`forget_files`](Self::forget_files) does.
    fn bring_back(&mut self, workspace: WorkspaceId, capacity: u64) -> Vec<EvictionVictim> {
        let Some(since) = self.arenas.get(&workspace).and_then(WorkspaceArena::count_anew) else {
            return Vec::new();
        };
        let (mut room, mut needed, mut files) = (capacity.saturating_sub(self.bytes), 0, Vec::new());
        for at in self.blocks() {
            let is_in_memory = at.block.in_memory().is_some();
            match (is_in_memory, at.used >= since) {
                (true, false) => room += at.block.byte_len(),
                (false, true) if at.workspace == workspace => {
                    needed += at.block.file_bytes();
                    files.push(at);
                }
                _ => {}
            }
        }
        if needed > room {
            return Vec::new();
        }
        for EvictionVictim { slot, block, .. } in &files {
            self.change(workspace, |arena| arena.give_up(*slot, block, None));
        }
        files
    }

    fn blocks(&self) -> Vec<EvictionVictim> {
        let of_workspace = |(workspace, arena): (&WorkspaceId, &WorkspaceArena)| {
            let workspace = *workspace;
            let victim = |(used, slot, block): (u64, u32, &KeptBlock)| EvictionVictim {
                used,
                workspace,
                slot,
                block: block.clone(),
            };
            arena.uses().map(victim).collect::<Vec<_>>()
        };
        self.arenas.iter().flat_map(of_workspace).collect()
    }

    fn has_no_blocks(&self) -> bool {
        self.arenas.values().all(|arena| arena.uses().next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{BlockKind, MergeSource, Segment, SegmentBuilder};

    /// A block of one passage.
    fn block(generation: GenerationId) -> PostingsBlock {
        let mut builder = SegmentBuilder::new(0);
        builder.push("the words of a passage", None).unwrap();
        let segment = Segment::from_bytes(builder.finish()).unwrap();
        PostingsBlock::merge(BlockKind::of(&segment), &[MergeSource::Segment(generation, &segment)])
    }

    #[test]
    fn what_a_search_brings_in_does_not_drive_out_what_it_brought_in_before() {
        let folder = tempfile::tempdir().unwrap();
        let generations = [(); 3].map(|()| GenerationId::generate());
        let one_file = SpilledBlock::file_len(&block(generations[0]));
        let spill = SpillSpace::of_blocks_from(folder.path().to_owned(), one_file, 1, u64::MAX);
        let cache = Arc::new(IndexCache::new(CacheBudget::new(0), Some(spill)));
        let workspace = WorkspaceId::generate();
        let bring_in = |generation: GenerationId, since: u64| {
            let blocks = cache.beside_others(vec![block(generation)], since);
            let is_in_file = blocks.iter().all(|block| block.in_memory().is_none());
            cache.reading().insert(workspace, &[generation], blocks);
            is_in_file
        };
        let since = cache.now();
        assert_eq!([bring_in(generations[0], since), bring_in(generations[1], since)], [true, false]);
        assert!(cache.missing(workspace, &generations[..2]).is_empty());
        // Another one does.
        assert!(bring_in(generations[2], cache.now()));
        assert_eq!(cache.missing(workspace, &generations), generations[..1]);
    }

    #[test]
    fn what_is_in_files_is_known_in_memory() {
        let spill = SpillSpace::new(std::path::PathBuf::new(), u64::MAX);
        let cache = IndexCache::new(CacheBudget::new(1_000), Some(spill));
        assert!(cache.fits(u64::MAX, 1_000));
        assert!(!cache.fits(1_001, 1_001));
        let memory_only = IndexCache::new(CacheBudget::new(1_000), None);
        assert!(memory_only.fits(1_000, 0) && !memory_only.fits(1_001, 0));
    }

    #[test]
    fn a_search_does_not_wait_for_who_makes_room_already() {
        let cache = IndexCache::new(CacheBudget::new(0), None);
        let busy = cache.making_room.lock();
        cache.make_room_unless_busy();
        drop(busy);
        cache.make_room_unless_busy();
        assert!(cache.making_room.try_lock().is_some());
    }

    #[test]
    fn what_is_removed_while_it_is_read_does_not_come_back() {
        let cache = Arc::new(IndexCache::new(CacheBudget::new(1 << 20), None));
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
