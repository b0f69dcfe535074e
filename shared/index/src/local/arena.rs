//! What is in memory of one workspace.
//!
//! Generations come in a few at a time, and searches name them in any mixture. So that a search has few blocks to look into,
//! small blocks are merged, several of about one size into one, as log-structured stores do: what is in memory was
//! copied a few times, and an arena has a few small blocks at most, besides those that are large enough.

use std::{
    collections::{BTreeMap, HashSet},
    hash::BuildHasherDefault,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use lectern_shared::ids::GenerationId;
use parking_lot::Mutex;

use super::hash::{IdHasher, IdMap};
use crate::{
    score::{BlockSelection, NOT_SEARCHED, SpilledSelection},
    segment::{BlockKind, BlockPart, MAX_ROWS, MergeSource, PostingsBlock},
    spill::SpilledBlock,
};

/// The most bytes that blocks are merged into: what is copied at a time, and what is evicted at a time.
pub(super) const MAX_BLOCK: usize = 16 << 20;
/// So many blocks of one size are merged.
const FAN_IN: usize = 4;
/// Blocks up to this size, in bytes, are of one size; each next size is [`FAN_IN`] times as large.
const SMALLEST: usize = 64 << 10;
/// The memory of knowing where a generation is, and of the last search that named it, in bytes.
pub(super) const HOME: u64 = 80;
/// What is in memory of a generation that is in a file, in bytes, with one segment.
pub(super) const OUTLINE: u64 = HOME + size_of::<BlockPart>() as u64;
/// So many searches that read files are about as much work as it is to read what they search from the store again.
const OFTEN: u64 = 100;
/// So many generations are looked up once, when they are searched again and again.
const MANY: usize = 512;

/// What is in memory of one workspace.
#[derive(Debug, Default)]
pub(super) struct WorkspaceArena {
    homes: IdMap<GenerationId, GenerationPlaces>,
    slots: Vec<Option<ArenaSlot>>,
    /// What the blocks in the slots take.
    block_bytes: u64,
    /// What a large search found last, as long as nothing has changed.
    memo: Mutex<Option<SelectionMemo>>,
    /// How many searches have read files; see [`count_anew`](Self::count_anew).
    file_searches: AtomicU64,
    /// When the first of these was, on the cache's clock.
    counted_since: AtomicU64,
}

/// A block that is kept: in memory, or but for its outline in a file.
#[derive(Debug, Clone)]
pub(super) enum KeptBlock {
    InMemory(Arc<PostingsBlock>),
    InFile(Arc<SpilledBlock>),
}

impl KeptBlock {
    /// The block, in a file or not, as far as it is in memory: its kind and its parts are.
    fn outline(&self) -> &Arc<PostingsBlock> {
        match self {
            Self::InMemory(block) => block,
            Self::InFile(block) => block.outline(),
        }
    }

    /// The block, if all of it is in memory.
    pub(super) const fn in_memory(&self) -> Option<&Arc<PostingsBlock>> {
        match self {
            Self::InMemory(block) => Some(block),
            Self::InFile(_) => None,
        }
    }

    /// The memory that it takes, in bytes.
    pub(super) fn byte_len(&self) -> u64 {
        let bytes = match self {
            Self::InMemory(block) => block.byte_len(),
            Self::InFile(block) => block.byte_len(),
        };
        bytes as u64
    }

    /// The room that its file takes, in bytes.
    pub(super) fn file_bytes(&self) -> u64 {
        match self {
            Self::InMemory(_) => 0,
            Self::InFile(block) => block.file_bytes(),
        }
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.outline(), other.outline())
    }
}

/// A block in an arena.
#[derive(Debug)]
struct ArenaSlot {
    block: KeptBlock,
    /// Its rows whose generation is still there.
    live: u32,
    /// When it was searched last, on the cache's clock.
    used: AtomicU64,
}

/// The rows of one segment in an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ArenaPlace {
    slot: u32,
    part: u32,
}

/// Where a generation is.
#[derive(Debug)]
enum GenerationPlaces {
    /// It has no passages.
    Nowhere,
    One(ArenaPlace),
    Many(Box<[ArenaPlace]>),
}

impl GenerationPlaces {
    fn new(places: Vec<ArenaPlace>) -> Self {
        match places.as_slice() {
            [] => Self::Nowhere,
            [one] => Self::One(*one),
            _ => Self::Many(places.into()),
        }
    }

    fn places(&self) -> &[ArenaPlace] {
        match self {
            Self::Nowhere => &[],
            Self::One(place) => std::slice::from_ref(place),
            Self::Many(places) => places,
        }
    }

    /// Puts one place for another; false when it is not there.
    fn replace(&mut self, old: ArenaPlace, new: ArenaPlace) -> bool {
        let places = match self {
            Self::Nowhere => &mut [],
            Self::One(place) => std::slice::from_mut(place),
            Self::Many(places) => &mut **places,
        };
        places.iter_mut().find(|place| **place == old).map(|place| *place = new).is_some()
    }
}

/// The answer to a search that named many generations, which are often named again.
#[derive(Debug)]
struct SelectionMemo {
    generations: Arc<[GenerationId]>,
    selections: Arc<[BlockSelection]>,
    spilled: Arc<[SpilledSelection]>,
    slots: Vec<u32>,
}

/// What a search finds in memory and in files.
#[derive(Debug, Default)]
pub(super) struct ResolvedBlocks {
    /// The blocks to search.
    pub(super) selections: Arc<[BlockSelection]>,
    /// Those of them that are in files.
    pub(super) spilled: Arc<[SpilledSelection]>,
    /// The places, in the list of those searched, of generations that are in neither, each once.
    pub(super) missing: Vec<usize>,
}

impl ResolvedBlocks {
    /// The bytes that the blocks take, in memory and in files.
    pub(super) fn byte_len(&self) -> u64 {
        let in_memory = self.selections.iter().map(|selection| selection.block().byte_len() as u64);
        let in_files = self.spilled.iter().map(|selection| selection.block().file_bytes());
        in_memory.chain(in_files).sum()
    }
}

/// Blocks that are to become one.
#[derive(Debug)]
pub(super) struct PendingMerge {
    kind: BlockKind,
    /// Their slots, ascending, and which of their parts are still wanted.
    sources: Vec<(u32, Arc<PostingsBlock>, Vec<bool>)>,
}

impl PendingMerge {
    /// Copies what is still wanted. Takes a moment.
    pub(super) fn run(&self) -> PostingsBlock {
        let sources: Vec<_> =
            self.sources.iter().map(|(_, block, live)| MergeSource::Block(block, live)).collect();
        PostingsBlock::merge(self.kind, &sources)
    }

    /// Where the parts of the merged block were, in their order.
    fn old_places(&self) -> impl Iterator<Item = ArenaPlace> {
        self.sources.iter().flat_map(|(slot, _, live)| {
            let parts = (0..).zip(live).filter(|(_, live)| **live);
            parts.map(|(part, _)| ArenaPlace { slot: *slot, part })
        })
    }
}

impl WorkspaceArena {
    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.block_bytes + HOME * self.homes.len() as u64
    }

    /// Whether nothing is known of any generation.
    pub(super) fn is_empty(&self) -> bool {
        self.homes.is_empty()
    }

    /// Whether all of a generation is here.
    pub(super) fn contains(&self, generation: GenerationId) -> bool {
        self.homes.contains_key(&generation)
    }

    /// When each slot's block was searched last, the slot, and the block.
    pub(super) fn uses(&self) -> impl Iterator<Item = (u64, u32, &KeptBlock)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(number, slot)| {
            let ArenaSlot { block, used, .. } = slot.as_ref()?;
            Some((used.load(Ordering::Relaxed), number, block))
        })
    }

    /// What is here of these generations, searched at the time `now`.
    pub(super) fn resolve(&self, generations: &Arc<[GenerationId]>, now: u64) -> ResolvedBlocks {
        if let Some(memo) = self.memo.lock().as_ref().filter(|memo| memo.generations == *generations) {
            for slot in memo.slots.iter().filter_map(|slot| self.slots.get(*slot as usize)?.as_ref()) {
                slot.used.store(now, Ordering::Relaxed);
            }
            self.note_files(&memo.spilled, now);
            return ResolvedBlocks {
                selections: Arc::clone(&memo.selections),
                spilled: Arc::clone(&memo.spilled),
                missing: Vec::new(),
            };
        }
        let mut missing = Vec::new();
        let mut places: Vec<Vec<u32>> = vec![Vec::new(); self.slots.len()];
        for (number, generation) in generations.iter().enumerate() {
            match self.homes.get(generation) {
                Some(home) => self.mark(home, number, &mut places),
                None => missing.push(number),
            }
        }
        let mut seen: HashSet<GenerationId, BuildHasherDefault<IdHasher>> = HashSet::default();
        missing.retain(|place| seen.insert(generations[*place]));
        let (mut selections, mut spilled, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        for ((number, slot), places) in (0..).zip(&self.slots).zip(places) {
            if let Some(slot) = slot.as_ref().filter(|_| !places.is_empty()) {
                slot.used.store(now, Ordering::Relaxed);
                match &slot.block {
                    KeptBlock::InMemory(block) => {
                        selections.push(BlockSelection::new(Arc::clone(block), places));
                    }
                    KeptBlock::InFile(block) => {
                        spilled.push(SpilledSelection::new(Arc::clone(block), places));
                    }
                }
                slots.push(number);
            }
        }
        let (selections, spilled): (Arc<[_]>, Arc<[_]>) = (selections.into(), spilled.into());
        self.note_files(&spilled, now);
        if generations.len() >= MANY && missing.is_empty() {
            *self.memo.lock() = Some(SelectionMemo {
                generations: Arc::clone(generations),
                selections: Arc::clone(&selections),
                spilled: Arc::clone(&spilled),
                slots,
            });
        }
        ResolvedBlocks { selections, spilled, missing }
    }

    /// Notes a search that reads these files.
    fn note_files(&self, spilled: &[SpilledSelection], now: u64) {
        if !spilled.is_empty() && self.file_searches.fetch_add(1, Ordering::Relaxed) == 0 {
            self.counted_since.store(now, Ordering::Relaxed);
        }
    }

    /// Whether searches have read files often since they were counted anew.
    pub(super) fn reads_files_often(&self) -> bool {
        self.file_searches.load(Ordering::Relaxed) >= OFTEN
    }

    /// Since when searches have read files often; none if they have not. They are counted anew from now on.
    pub(super) fn count_anew(&self) -> Option<u64> {
        let searches = self.file_searches.swap(0, Ordering::Relaxed);
        (searches >= OFTEN).then(|| self.counted_since.load(Ordering::Relaxed))
    }

    /// Notes that the parts of a generation are searched as the one with this number.
    fn mark(&self, home: &GenerationPlaces, number: usize, places: &mut [Vec<u32>]) {
        let number = u32::try_from(number).unwrap_or(NOT_SEARCHED);
        for place in home.places() {
            let at = place.slot as usize;
            let (Some(places), Some(Some(slot))) = (places.get_mut(at), self.slots.get(at)) else { continue };
            if places.is_empty() {
                places.resize(slot.block.outline().parts().len(), NOT_SEARCHED);
            }
            // One that is named twice is searched once, at its first place.
            if let Some(known) = places.get_mut(place.part as usize) {
                *known = number.min(*known);
            }
        }
    }

    /// Adds blocks, which hold all of these generations. What is here already, and what is of others, is passed over.
    pub(super) fn insert(&mut self, generations: &[GenerationId], blocks: Vec<KeptBlock>, now: u64) {
        let new = generations.iter().filter(|generation| !self.contains(**generation));
        let mut new: IdMap<GenerationId, Vec<ArenaPlace>> =
            new.map(|generation| (*generation, Vec::new())).collect();
        for block in blocks {
            self.add(block, now, |generation, place| {
                new.get_mut(&generation).map(|places| places.push(place)).is_some()
            });
        }
        self.homes
            .extend(new.into_iter().map(|(generation, places)| (generation, GenerationPlaces::new(places))));
    }

    /// Adds a block. `settle` is told each part's generation and place, and tells whether it is wanted; a block of which
    /// nothing is wanted is dropped.
    fn add(&mut self, block: KeptBlock, used: u64, mut settle: impl FnMut(GenerationId, ArenaPlace) -> bool) {
        *self.memo.get_mut() = None;
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let Ok(slot) = u32::try_from(free) else { return };
        let mut live = 0;
        for (number, part) in (0..).zip(block.outline().parts()) {
            if settle(part.generation, ArenaPlace { slot, part: number }) {
                live += part.len();
            }
        }
        if live == 0 {
            return;
        }
        self.block_bytes += block.byte_len();
        let taken = Some(ArenaSlot { block, live, used: AtomicU64::new(used) });
        match self.slots.get_mut(free) {
            Some(slot) => *slot = taken,
            None => self.slots.push(taken),
        }
    }

    /// Forgets a generation, and blocks of which nothing is left; of one in a file most being gone is enough, since it is not merged.
    pub(super) fn remove(&mut self, generation: GenerationId) {
        for place in self.forget(generation) {
            let slot = self.slots.get(place.slot as usize).and_then(Option::as_ref);
            if let Some(ArenaSlot { block: KeptBlock::InFile(block), live, .. }) = slot
                && live * 2 < block.outline().row_count()
            {
                self.evict(place.slot);
            }
        }
    }

    /// Forgets a generation, and blocks of which nothing is left. Returns where it was.
    fn forget(&mut self, generation: GenerationId) -> Vec<ArenaPlace> {
        let Some(home) = self.homes.remove(&generation) else { return Vec::new() };
        *self.memo.get_mut() = None;
        for place in home.places() {
            let Some(slot) = self.slots.get_mut(place.slot as usize) else { continue };
            let Some(ArenaSlot { block, live, .. }) = slot else { continue };
            *live -= block.outline().parts().get(place.part as usize).map_or(0, BlockPart::len);
            if *live == 0 {
                self.block_bytes -= block.byte_len();
                *slot = None;
            }
        }
        home.places().to_vec()
    }

    /// Forgets a block and every generation that has a part in it.
    fn evict(&mut self, slot: u32) {
        let Some(Some(ArenaSlot { block, .. })) = self.slots.get(slot as usize) else { return };
        let outline = Arc::clone(block.outline());
        for (part, live) in outline.parts().iter().zip(self.live_parts(slot, &outline)) {
            if live {
                self.forget(part.generation);
            }
        }
    }

    /// Puts a copy in a file in the place of a block, or, without one, forgets the block and every generation that has a part in it;
    /// unless another one is there by now.
    pub(super) fn give_up(&mut self, slot: u32, block: &KeptBlock, copy: Option<SpilledBlock>) {
        let Some(Some(at)) = self.slots.get_mut(slot as usize) else { return };
        if !at.block.is(block) {
            return;
        }
        let Some(copy) = copy else { return self.evict(slot) };
        let copy = KeptBlock::InFile(Arc::new(copy));
        self.block_bytes += copy.byte_len();
        self.block_bytes -= block.byte_len();
        at.block = copy;
        *self.memo.get_mut() = None;
    }

    /// Which parts of a block are of generations that are still here.
    fn live_parts(&self, slot: u32, block: &PostingsBlock) -> Vec<bool> {
        let is_here = |(part, of): (u32, &BlockPart)| {
            self.homes
                .get(&of.generation)
                .is_some_and(|home| home.places().contains(&ArenaPlace { slot, part }))
        };
        (0..).zip(block.parts()).map(is_here).collect()
    }

    /// Blocks that should be one, if there are any: several of about one size, or one of which most is gone.
    pub(super) fn to_merge(&self) -> Option<PendingMerge> {
        // The slots of each kind and size, with their rows and bytes.
        let mut sizes = BTreeMap::<(BlockKind, u32), (Vec<u32>, u32, usize)>::new();
        for (number, slot) in (0..).zip(&self.slots) {
            let Some(ArenaSlot { block: KeptBlock::InMemory(block), live, .. }) = slot else { continue };
            let (kind, rows, bytes) = (block.kind(), block.row_count(), block.byte_len());
            if live * 2 < rows {
                return Some(self.merge(kind, &[number]));
            }
            let size = (bytes / SMALLEST).max(1).ilog(FAN_IN);
            let (numbers, all_rows, all_bytes) = sizes.entry((kind, size)).or_default();
            if *all_rows + rows > MAX_ROWS || *all_bytes + bytes > MAX_BLOCK {
                continue;
            }
            numbers.push(number);
            *all_rows += rows;
            *all_bytes += bytes;
            if numbers.len() >= FAN_IN {
                return Some(self.merge(kind, numbers));
            }
        }
        None
    }

    fn merge(&self, kind: BlockKind, slots: &[u32]) -> PendingMerge {
        let source = |number: &u32| {
            let block = self.slots.get(*number as usize)?.as_ref()?.block.in_memory()?;
            Some((*number, Arc::clone(block), self.live_parts(*number, block)))
        };
        PendingMerge { kind, sources: slots.iter().filter_map(source).collect() }
    }

    /// Puts the merged block in the place of those that it was made of, unless one of them is not there any more.
    pub(super) fn replace(&mut self, merge: &PendingMerge, merged: PostingsBlock) {
        let is_there = |(number, block, _): &(u32, Arc<PostingsBlock>, _)| {
            let slot = self.slots.get(*number as usize).and_then(Option::as_ref);
            slot.and_then(|slot| slot.block.in_memory()).is_some_and(|there| Arc::ptr_eq(there, block))
        };
        if !merge.sources.iter().all(is_there) {
            return;
        }
        let mut used = 0;
        for (number, ..) in &merge.sources {
            if let Some(slot) = self.slots.get_mut(*number as usize).and_then(Option::take) {
                self.block_bytes -= slot.block.byte_len();
                used = used.max(slot.used.into_inner());
            }
        }
        let mut old = merge.old_places();
        let mut homes = std::mem::take(&mut self.homes);
        // The new block takes the first free slot, which is none after the first of the old ones: what is written is
        // never taken for an old place that is still to come.
        self.add(KeptBlock::InMemory(Arc::new(merged)), used, |generation, new| {
            old.next()
                .is_some_and(|old| homes.get_mut(&generation).is_some_and(|home| home.replace(old, new)))
        });
        self.homes = homes;
    }
}
