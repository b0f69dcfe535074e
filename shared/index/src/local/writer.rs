//! Adding a generation.

use std::{cmp::Reverse, collections::BTreeMap};

use async_trait::async_trait;
use lectern_db::{self as db, index_segments};
use lectern_shared::{compute::ComputeStopped, model::language::Language};

use super::LocalIndex;
use crate::{
    IndexEntry, IndexError, IndexTarget, IndexWriter, IndexedGeneration, SearchIndex, segment::SegmentBuilder,
};

fn new_builder(target: IndexTarget<'_>, first_ordinal: u32) -> Result<SegmentBuilder, IndexError> {
    Ok(match target.space {
        None => SegmentBuilder::new(first_ordinal),
        Some((space, dimension)) => SegmentBuilder::with_space(first_ordinal, space, dimension)?,
    })
}

/// Fills segments and writes each when it is full.
pub(super) struct LocalIndexWriter<'a> {
    index: &'a LocalIndex,
    target: IndexTarget<'a>,
    /// None only while a computation holds it.
    builder: Option<SegmentBuilder>,
    /// Entries in the builder.
    pending: u32,
    /// The next entry's number.
    ordinal: u32,
    /// The next segment's number.
    part: u32,
    /// How many entries are in segments of each language.
    languages: BTreeMap<Language, u64>,
}

impl<'a> LocalIndexWriter<'a> {
    /// A writer that has written nothing yet.
    pub(super) fn new(index: &'a LocalIndex, target: IndexTarget<'a>) -> Result<Self, IndexError> {
        let builder = Some(new_builder(target, 0)?);
        Ok(Self { index, target, builder, pending: 0, ordinal: 0, part: 0, languages: BTreeMap::new() })
    }

    async fn flush(&mut self) -> Result<(), IndexError> {
        if self.pending == 0 {
            return Ok(());
        }
        let next = new_builder(self.target, self.ordinal)?;
        let full = self.builder.replace(next).ok_or(ComputeStopped)?;
        let (data, language) = self.index.inner.compute.run(move || full.finish_with_language()).await?;
        let IndexTarget { claim, generation, .. } = self.target;
        // It is nothing until its generation is published, which takes it to the disk.
        let db = self.index.inner.db.on_behalf_of(claim.workspace_id);
        let mut tx = db.begin_relaxed().await?;
        if !db::generations::may_write(&mut tx, claim, generation).await? {
            return Err(IndexError::ClaimLost);
        }
        index_segments::insert(&mut tx, claim.workspace_id, generation, self.part, self.pending, &data)
            .await?;
        tx.commit().await?;
        *self.languages.entry(language).or_default() += u64::from(self.pending);
        self.part += 1;
        self.pending = 0;
        Ok(())
    }
}

#[async_trait]
impl IndexWriter for LocalIndexWriter<'_> {
    async fn add(&mut self, entries: Vec<IndexEntry>) -> Result<(), IndexError> {
        let mut entries = entries.into_iter();
        loop {
            let mut builder = self.builder.take().ok_or(ComputeStopped)?;
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

    async fn finish(mut self: Box<Self>) -> Result<IndexedGeneration, IndexError> {
        self.flush().await?;
        let entries = self.index.count(self.target.claim.workspace_id, self.target.generation).await?;
        let mut languages: Vec<_> = self.languages.into_iter().collect();
        languages.sort_by_key(|(_, count)| Reverse(*count));
        Ok(IndexedGeneration { entries, languages })
    }
}
