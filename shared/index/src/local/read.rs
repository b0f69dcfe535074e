//! Reading what is not in memory.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::Arc,
};

use lectern_db::{DbError, index_segments};
use lectern_shared::ids::{GenerationId, WorkspaceId};

use super::{
    LocalIndex,
    arena::{KeptBlock, MAX_BLOCK, ResolvedBlocks},
    scan::{RankedHits, ScanQuery},
};
use crate::{
    IndexError,
    score::{BlockSelection, DenseSearch, LexicalScorer, LexicalSearch, NOT_SEARCHED, SpilledSelection},
    segment::{BlockKind, BlockPart, MAX_ROWS, MergeSource, PostingsBlock, Segment},
};

/// Bytes that are read at a time.
const PIECE: u64 = 32 << 20;

/// The most bytes of postings that a search keeps, so that it need not read everything twice.
const KEPT: u64 = 32 << 20;

/// How many bytes a generation has in the store; nothing for one that is not there.
pub(super) type GenerationSizes = HashMap<GenerationId, u64>;

/// What makes room for what is brought into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeepPolicy {
    /// What was searched least recently: all of the search fits into memory.
    InsteadOfOthers,
    /// Nothing in memory: what does not fit there beside the others goes into files. Files that were not searched since this time on the
    /// cache's clock make room.
    BesideOthers { since: u64 },
}

impl LocalIndex {
    /// The sizes of those of these generations that the workspace has.
    pub(super) async fn sizes(
        &self,
        workspace: WorkspaceId,
        generations: &[GenerationId],
    ) -> Result<GenerationSizes, IndexError> {
        let sizes = index_segments::sizes(&self.inner.db, workspace, generations).await?;
        Ok(sizes.into_iter().map(|(g, size)| (g, u64::try_from(size).unwrap_or(0))).collect())
    }

    /// Brings generations into memory, some at a time, so that many cold searches together need no more than one, and none
    /// waits for all that another one reads.
    pub(super) async fn load(
        &self,
        workspace: WorkspaceId,
        generations: &[GenerationId],
        sizes: &GenerationSizes,
        keep: KeepPolicy,
    ) -> Result<(), IndexError> {
        for some in pieces(generations, sizes) {
            let _one_at_a_time = self.inner.read.lock().await;
            let reading = self.inner.cache.reading();
            // Another search may have read them meanwhile.
            let missing = self.inner.cache.missing(workspace, some);
            if missing.is_empty() {
                continue;
            }
            let blocks = self.read(workspace, &missing).await?;
            let cache = Arc::clone(&self.inner.cache);
            self.inner
                .compute
                .run(move || {
                    let blocks = match keep {
                        KeepPolicy::InsteadOfOthers => in_memory(blocks),
                        KeepPolicy::BesideOthers { since } => cache.beside_others(blocks, since),
                    };
                    reading.insert(workspace, &missing, blocks);
                    while let Some(merge) = cache.to_merge(workspace) {
                        cache.merged(workspace, &merge, merge.run());
                    }
                    cache.make_room();
                })
                .await?;
        }
        Ok(())
    }

    /// Answers from the cache and, for what is missing there, from the store, without keeping it.
    pub(super) async fn stream(
        &self,
        workspace: WorkspaceId,
        generations: &Arc<[GenerationId]>,
        resolved: ResolvedBlocks,
        question: ScanQuery,
        sizes: &GenerationSizes,
    ) -> Result<RankedHits, IndexError> {
        let ResolvedBlocks { selections: at_hand, spilled, missing } = resolved;
        let places: Arc<HashMap<GenerationId, u32>> = Arc::new(
            missing.iter().filter_map(|at| Some((generations[*at], u32::try_from(*at).ok()?))).collect(),
        );
        let missing: Vec<GenerationId> = missing.into_iter().map(|at| generations[at]).collect();
        let mut pass = FirstPass {
            lexical: LexicalSearch::new(&question.text),
            dense: question.dense(),
            kept: Vec::new(),
            bytes: 0,
        };
        let read = |some: &[GenerationId]| {
            let (some, places) = (some.to_vec(), Arc::clone(&places));
            async move {
                let blocks = self.read(workspace, &some).await?;
                let place = |part: &BlockPart| places.get(&part.generation).copied().unwrap_or(NOT_SEARCHED);
                let select = |block| BlockSelection::all(Arc::new(block), place);
                Ok::<Vec<BlockSelection>, IndexError>(blocks.into_iter().map(select).collect())
            }
        };
        let (blocks, files) = (Arc::clone(&at_hand), Arc::clone(&spilled));
        pass = self.inner.compute.run(move || pass.visit_cached(&blocks, &files)).await??;
        for some in pieces(&missing, sizes) {
            let _one_at_a_time = self.inner.read.lock().await;
            let selections = read(some).await?;
            pass = self.inner.compute.run(move || pass.visit(selections)).await?;
        }
        let FirstPass { lexical, dense, kept, bytes } = pass;
        let mut scorer = lexical.score(question.depth);
        scorer = self.inner.compute.run(move || score_cached(scorer, &at_hand, &spilled)).await??;
        if bytes <= KEPT {
            scorer = self.score(scorer, kept).await?;
        } else {
            for some in pieces(&missing, sizes) {
                let _one_at_a_time = self.inner.read.lock().await;
                let selections = read(some).await?;
                scorer = self.score(scorer, selections).await?;
            }
        }
        Ok(RankedHits {
            lexical: scorer.finish(),
            dense: dense.into_iter().map(DenseSearch::finish).collect(),
        })
    }

    async fn score(
        &self,
        mut scorer: LexicalScorer,
        selections: Vec<BlockSelection>,
    ) -> Result<LexicalScorer, IndexError> {
        let score = move || {
            for selection in &selections {
                scorer.add(selection);
            }
            scorer
        };
        Ok(self.inner.compute.run(score).await?)
    }

    /// Reads generations and merges their segments into blocks. A generation without any has no passages.
    async fn read(
        &self,
        workspace: WorkspaceId,
        generations: &[GenerationId],
    ) -> Result<Vec<PostingsBlock>, IndexError> {
        let stored = index_segments::fetch(&self.inner.db, workspace, generations).await?;
        let merging = self.inner.compute.run(move || {
            let mut kinds = BTreeMap::<BlockKind, Vec<(GenerationId, Segment)>>::new();
            let mut damaged = Vec::new();
            for blob in stored {
                let generation = blob.generation_id;
                // One damaged document must not keep all others from being found.
                match Segment::from_bytes(blob.data) {
                    Ok(segment) => {
                        kinds.entry(BlockKind::of(&segment)).or_default().push((generation, segment));
                    }
                    Err(error) => {
                        let part = blob.part;
                        tracing::error!(%error, %generation, part, "a part of the index is damaged; its document is indexed again");
                        if blob.chunks != 0 {
                            damaged.push((generation, part));
                        }
                    }
                }
            }
            let blocks = kinds.into_iter().flat_map(|(kind, segments)| merge(kind, segments)).collect();
            (blocks, damaged)
        });
        let (blocks, damaged) = merging.await?;
        // What is found does not depend on it.
        if !damaged.is_empty()
            && let Err(error) = self.note_damage(&damaged).await
        {
            tracing::warn!(%error, "that a part of the index is damaged could not be noted; the next search that reads it tries again");
        }
        Ok(blocks)
    }

    /// Notes parts that could not be read as ones without passages: what compares the index with the store has their documents indexed
    /// again, in whichever process.
    async fn note_damage(&self, damaged: &[(GenerationId, i64)]) -> Result<(), DbError> {
        let mut tx = self.inner.db.begin().await?;
        for (generation, part) in damaged {
            index_segments::note_damage(&mut tx, *generation, *part).await?;
        }
        tx.commit().await
    }
}

fn in_memory(blocks: Vec<PostingsBlock>) -> Vec<KeptBlock> {
    blocks.into_iter().map(|block| KeptBlock::InMemory(Arc::new(block))).collect()
}

/// Scores what is in the cache.
fn score_cached(
    mut scorer: LexicalScorer,
    selections: &[BlockSelection],
    spilled: &[SpilledSelection],
) -> io::Result<LexicalScorer> {
    for selection in selections {
        scorer.add(selection);
    }
    for selection in spilled {
        scorer.add_spilled(selection)?;
    }
    Ok(scorer)
}

/// Merges segments of one kind into as few blocks as may be.
fn merge(kind: BlockKind, segments: Vec<(GenerationId, Segment)>) -> Vec<PostingsBlock> {
    let mut blocks = Vec::new();
    let mut some: Vec<(GenerationId, Segment)> = Vec::new();
    let (mut rows, mut bytes) = (0, 0);
    let block = |some: &mut Vec<(GenerationId, Segment)>| {
        let sources: Vec<_> = some.iter().map(|(g, segment)| MergeSource::Segment(*g, segment)).collect();
        let block = PostingsBlock::merge(kind, &sources);
        drop(sources);
        // What was merged is not needed any more; memory is.
        some.clear();
        block
    };
    for (generation, segment) in segments {
        let (more_rows, more_bytes) = (segment.chunk_count(), segment.byte_len());
        if !some.is_empty() && (rows + more_rows > MAX_ROWS || bytes + more_bytes > MAX_BLOCK) {
            blocks.push(block(&mut some));
            (rows, bytes) = (0, 0);
        }
        rows += more_rows;
        bytes += more_bytes;
        some.push((generation, segment));
    }
    if !some.is_empty() {
        blocks.push(block(&mut some));
    }
    blocks
}

/// Generations in pieces of about [`PIECE`] bytes.
fn pieces<'a>(
    generations: &'a [GenerationId],
    sizes: &'a GenerationSizes,
) -> impl Iterator<Item = &'a [GenerationId]> {
    let mut left = generations;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let before = left.iter().take_while(|generation| {
            let fits = bytes < PIECE;
            bytes += sizes.get(generation).copied().unwrap_or(0);
            fits
        });
        let (piece, rest) = left.split_at(before.count());
        left = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The first time that everything is visited.
struct FirstPass {
    lexical: LexicalSearch,
    dense: Vec<DenseSearch>,
    /// What the second visit needs of what is not in the cache, and its size; nothing when it would be more than [`KEPT`].
    kept: Vec<BlockSelection>,
    bytes: u64,
}

impl FirstPass {
    /// Visits blocks that are in the cache.
    fn visit_cached(
        mut self,
        selections: &[BlockSelection],
        spilled: &[SpilledSelection],
    ) -> io::Result<Self> {
        for selection in selections {
            self.visit_block(selection);
        }
        for selection in spilled {
            self.lexical.count_spilled(selection)?;
            for dense in &mut self.dense {
                dense.add_spilled(selection)?;
            }
        }
        Ok(self)
    }

    /// Visits blocks that are not, of which the question's postings are kept.
    fn visit(mut self, selections: Vec<BlockSelection>) -> Self {
        for selection in selections {
            self.visit_block(&selection);
            if self.bytes <= KEPT {
                let only = selection.only(self.lexical.terms(&selection));
                self.bytes += only.byte_len() as u64;
                self.kept.push(only);
                if self.bytes > KEPT {
                    self.kept = Vec::new();
                }
            }
        }
        self
    }

    fn visit_block(&mut self, selection: &BlockSelection) {
        self.lexical.count(selection);
        for dense in &mut self.dense {
            dense.add(selection, 0..selection.block().row_count());
        }
    }
}
