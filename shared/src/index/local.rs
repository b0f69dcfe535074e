//! The embedded index: immutable segments of each generation in the relational store, read through a cache of bounded
//! size. Exact, and transactional with everything else.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use lru::LruCache;
use parking_lot::Mutex;

use super::{
    Candidate, Candidates, Entry, IndexError, IndexQuery, IndexStatus, IndexWriter, Indexed, SearchIndex,
    SpaceVector, Target,
    score::{DenseSearch, Hit, LexicalScorer, LexicalSearch},
    segment::{Segment, SegmentBuilder},
};
use crate::{
    compute::{Compute, Stopped},
    db::{self, Db, index_segments},
    ids::{GenerationId, UserId},
};

/// The segments of one generation, as they are cached.
type Segments = Arc<Vec<Segment>>;

/// Bytes that a search larger than the cache reads at a time.
const PIECE: i64 = 64 << 20;

/// The embedded index. Cheap to clone.
#[derive(Clone)]
pub struct LocalIndex {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    cache: Mutex<Cache>,
    /// Scans and builds at once: as many as there are cores.
    compute: Compute,
    /// The cache's size in bytes.
    capacity: u64,
    /// Cold generations are read by one search at a time, so that memory stays bounded when many come at once.
    load: tokio::sync::Mutex<()>,
}

struct Cache {
    /// By owner too: a generation is shown to nobody else, whoever names it.
    entries: LruCache<(UserId, GenerationId), Segments>,
    bytes: u64,
    capacity: u64,
}

impl Cache {
    fn insert(&mut self, key: (UserId, GenerationId), segments: Segments) {
        let size = size_of(&segments);
        // What would push out everything else is used once and not kept.
        if size > self.capacity / 2 {
            return;
        }
        self.remove(key);
        self.bytes += size;
        self.entries.put(key, segments);
        while self.bytes > self.capacity {
            let Some((_, evicted)) = self.entries.pop_lru() else { break };
            self.bytes -= size_of(&evicted);
        }
    }

    fn remove(&mut self, key: (UserId, GenerationId)) {
        if let Some(segments) = self.entries.pop(&key) {
            self.bytes -= size_of(&segments);
        }
    }
}

/// Bytes that a cached generation takes, its bookkeeping included.
fn size_of(segments: &Segments) -> u64 {
    segments.iter().map(|segment| segment.byte_len() as u64 + 128).sum::<u64>() + 128
}

impl LocalIndex {
    /// An index over `db` that caches at most `cache_bytes`.
    pub fn new(db: Db, cache_bytes: u64) -> Self {
        Self {
            inner: Arc::new(Inner {
                db,
                cache: Mutex::new(Cache { entries: LruCache::unbounded(), bytes: 0, capacity: cache_bytes }),
                capacity: cache_bytes,
                compute: Compute::per_core(),
                load: tokio::sync::Mutex::new(()),
            }),
        }
    }

    /// Calls `visit` with every segment of these generations and its generation's place in the list, in order. What fits
    /// into the cache is kept there; what is too much for it is read in pieces, so that memory stays bounded.
    async fn visit<V: Visitor>(
        &self,
        user: UserId,
        generations: &Arc<[GenerationId]>,
        mut visitor: V,
    ) -> Result<V, IndexError> {
        let cached = self.cached(user, generations);
        if cached.len() == generations.len() {
            return self.scan(Arc::clone(generations), cached, visitor).await;
        }
        let _one_at_a_time = self.inner.load.lock().await;
        // Another search may have read them meanwhile.
        let mut at_hand = self.cached(user, generations);
        let missing: Vec<_> = generations.iter().filter(|g| !at_hand.contains_key(g)).copied().collect();
        let sizes: HashMap<_, _> =
            index_segments::sizes(&self.inner.db, user, &missing).await?.into_iter().collect();
        let total: i64 = sizes.values().sum();
        if u64::try_from(total).unwrap_or(u64::MAX) <= self.inner.capacity / 2 {
            let read = self.read(user, &missing).await?;
            for (generation, segments) in read {
                self.inner.cache.lock().insert((user, generation), Arc::clone(&segments));
                at_hand.insert(generation, segments);
            }
            return self.scan(Arc::clone(generations), at_hand, visitor).await;
        }
        drop(at_hand);
        let mut piece = Vec::new();
        let mut bytes = 0;
        for (place, generation) in generations.iter().enumerate() {
            piece.push(*generation);
            bytes += sizes.get(generation).copied().unwrap_or(0);
            if bytes >= PIECE || place + 1 == generations.len() {
                let mut segments = self.cached(user, &piece);
                let missing: Vec<_> = piece.iter().filter(|g| !segments.contains_key(g)).copied().collect();
                segments.extend(self.read(user, &missing).await?);
                // Every place is visited, most without segments in this piece.
                visitor = self.scan(Arc::clone(generations), segments, visitor).await?;
                piece.clear();
                bytes = 0;
            }
        }
        Ok(visitor)
    }

    /// Visits the segments that are at hand, off the async threads.
    async fn scan<V: Visitor>(
        &self,
        generations: Arc<[GenerationId]>,
        segments: HashMap<GenerationId, Segments>,
        mut visitor: V,
    ) -> Result<V, IndexError> {
        Ok(self
            .inner
            .compute
            .run(move || {
                for (place, generation) in generations.iter().enumerate() {
                    for segment in segments.get(generation).into_iter().flat_map(|segments| segments.iter()) {
                        visitor.visit(place, segment);
                    }
                }
                visitor
            })
            .await?)
    }

    /// Reads and checks segments. A generation without any has no passages.
    async fn read(
        &self,
        user: UserId,
        generations: &[GenerationId],
    ) -> Result<HashMap<GenerationId, Segments>, IndexError> {
        let stored = index_segments::fetch(&self.inner.db, user, generations).await?;
        let all: Vec<GenerationId> = generations.to_vec();
        Ok(self.inner.compute.run(move || {
            let mut read: HashMap<GenerationId, Vec<Segment>> =
                all.into_iter().map(|g| (g, Vec::new())).collect();
            for blob in stored {
                // One damaged document must not keep all others from being found.
                let segment = match Segment::from_bytes(blob.data) {
                    Ok(segment) => segment,
                    Err(error) => {
                        let (generation, part) = (blob.generation_id, blob.part);
                        tracing::error!(%error, %generation, part, "a part of the index is damaged; ingest its document again");
                        continue;
                    }
                };
                read.entry(blob.generation_id).or_default().push(segment);
            }
            read.into_iter().map(|(generation, segments)| (generation, Arc::new(segments))).collect()
        })
        .await?)
    }

    fn cached(&self, user: UserId, generations: &[GenerationId]) -> HashMap<GenerationId, Segments> {
        let mut cache = self.inner.cache.lock();
        generations.iter().filter_map(|g| Some((*g, Arc::clone(cache.entries.get(&(user, *g))?)))).collect()
    }
}

#[async_trait]
impl SearchIndex for LocalIndex {
    fn writer<'a>(&'a self, target: Target<'a>) -> Result<Box<dyn IndexWriter + 'a>, IndexError> {
        let builder = Some(new_builder(target, 0)?);
        Ok(Box::new(Writer { index: self, target, builder, pending: 0, ordinal: 0, part: 0 }))
    }

    async fn search(&self, query: IndexQuery) -> Result<Candidates, IndexError> {
        let generations: Arc<[GenerationId]> = query.generations.into();
        let candidates = |hits: Vec<Hit>| {
            let named = |hit: Hit| {
                Some(Candidate {
                    generation: *generations.get(hit.segment)?,
                    ordinal: hit.ordinal,
                    score: hit.score,
                })
            };
            hits.into_iter().filter_map(named).collect()
        };
        let counted = self.visit(query.user, &generations, LexicalSearch::new(&query.text)).await?;
        let scored = self.visit(query.user, &generations, counted.score(query.depth)).await?;
        let mut dense = Vec::with_capacity(query.vectors.len());
        for SpaceVector { space, vector } in query.vectors {
            let search = DenseSearch::new(space, vector, query.depth);
            dense.push(candidates(self.visit(query.user, &generations, search).await?.finish()));
        }
        Ok(Candidates { lexical: candidates(scored.finish()), dense })
    }

    async fn remove(&self, user: UserId, generation: GenerationId) -> Result<(), IndexError> {
        let mut tx = self.inner.db.begin().await?;
        index_segments::delete(&mut tx, generation).await?;
        tx.commit().await?;
        self.inner.cache.lock().remove((user, generation));
        Ok(())
    }

    async fn count(&self, _: UserId, generation: GenerationId) -> Result<u64, IndexError> {
        let count = index_segments::count(&self.inner.db, generation).await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Segments are written in the transaction that checks the claim.
    fn straggle(&self) -> Option<Duration> {
        None
    }

    async fn ping(&self) -> Result<IndexStatus, IndexError> {
        self.inner.db.ping().await?;
        Ok(IndexStatus { kind: "embedded", version: None })
    }
}

/// Something that looks at segments one by one.
trait Visitor: Send + 'static {
    /// Looks at a segment of the generation at `place` in the list of those searched.
    fn visit(&mut self, place: usize, segment: &Segment);
}

impl Visitor for LexicalSearch {
    fn visit(&mut self, _: usize, segment: &Segment) {
        self.count(segment);
    }
}

impl Visitor for LexicalScorer {
    fn visit(&mut self, place: usize, segment: &Segment) {
        self.add(place, segment);
    }
}

impl Visitor for DenseSearch {
    fn visit(&mut self, place: usize, segment: &Segment) {
        self.add(place, segment);
    }
}

fn new_builder(target: Target<'_>, first_ordinal: u32) -> Result<SegmentBuilder, IndexError> {
    Ok(match target.space {
        None => SegmentBuilder::new(first_ordinal),
        Some((space, dimension)) => SegmentBuilder::with_space(first_ordinal, space, dimension)?,
    })
}

/// Fills segments and writes each when it is full.
struct Writer<'a> {
    index: &'a LocalIndex,
    target: Target<'a>,
    /// None only while a computation holds it.
    builder: Option<SegmentBuilder>,
    /// Entries in the builder.
    pending: u32,
    /// The next entry's number.
    ordinal: u32,
    /// The next segment's number.
    part: u32,
}

impl Writer<'_> {
    async fn flush(&mut self) -> Result<(), IndexError> {
        if self.pending == 0 {
            return Ok(());
        }
        let next = new_builder(self.target, self.ordinal)?;
        let full = self.builder.replace(next).ok_or(Stopped)?;
        let data = self.index.inner.compute.run(move || full.finish()).await?;
        let Target { claim, generation, .. } = self.target;
        let mut tx = self.index.inner.db.begin().await?;
        if !db::generations::may_write(&mut tx, claim, generation).await? {
            return Err(IndexError::ClaimLost);
        }
        index_segments::insert(&mut tx, claim.user_id, generation, self.part, self.pending, &data).await?;
        tx.commit().await?;
        self.part += 1;
        self.pending = 0;
        Ok(())
    }
}

#[async_trait]
impl IndexWriter for Writer<'_> {
    async fn add(&mut self, entries: Vec<Entry>) -> Result<(), IndexError> {
        let mut entries = entries.into_iter();
        loop {
            let mut builder = self.builder.take().ok_or(Stopped)?;
            let (builder, rest, added) = self
                .index
                .inner
                .compute
                .run(move || {
                    let mut added = 0;
                    while !builder.is_full() {
                        let Some(entry) = entries.next() else { break };
                        builder.push(&entry.text, entry.vector.as_deref())?;
                        added += 1;
                    }
                    Ok::<_, IndexError>((builder, entries, added))
                })
                .await??;
            let full = builder.is_full();
            self.builder = Some(builder);
            entries = rest;
            self.pending += added;
            self.ordinal += added;
            if !full {
                return Ok(());
            }
            self.flush().await?;
        }
    }

    async fn finish(mut self: Box<Self>) -> Result<Indexed, IndexError> {
        self.flush().await?;
        let entries = self.index.count(self.target.claim.user_id, self.target.generation).await?;
        // Every segment knows its own language.
        Ok(Indexed { entries, languages: Vec::new() })
    }
}
