//! Adding a generation.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use futures::future::try_join;
use lectern_shared::model::language::Language;
use qdrant_client::qdrant::{PointStruct, Vectors};

use super::{
    super::{
        IndexEntry, IndexError, IndexTarget, IndexWriter, IndexedGeneration, lexical::document_terms,
        segment::BuildError,
    },
    QdrantIndexState,
    batches::WrittenGeneration,
    client::QdrantErrorKind,
    gone,
    points::{PointOwner, text_vector},
};
use crate::lexical::detect_language;

/// The most entries that are sent at once.
const BATCH: usize = 256;
/// The most numbers in a vector that Qdrant takes.
const MAX_DIMENSION: usize = 65_536;

/// Sends entries as they come: when [`IndexWriter::add`] returns, they can be found. Nothing is held back, so a caller that
/// checks its claim before each call writes as little as possible after the claim is lost.
pub(super) struct QdrantIndexWriter<'a> {
    inner: &'a Arc<QdrantIndexState>,
    target: IndexTarget<'a>,
    owner: PointOwner,
    /// The next entry's number.
    ordinal: u32,
    /// How many entries are in each language.
    languages: BTreeMap<Language, u64>,
}

/// A batch, ready to be sent.
struct PointBatch {
    lexical: Vec<PointStruct>,
    dense: Vec<PointStruct>,
    /// The language of each entry that has words.
    languages: Vec<Language>,
}

impl<'a> QdrantIndexWriter<'a> {
    pub(super) fn new(inner: &'a Arc<QdrantIndexState>, target: IndexTarget<'a>) -> Result<Self, IndexError> {
        if let Some((_, dimension)) = target.space
            && (dimension == 0 || dimension > MAX_DIMENSION)
        {
            return Err(BuildError::Dimension { expected: MAX_DIMENSION, actual: dimension }.into());
        }
        let owner = PointOwner {
            workspace: target.claim.workspace_id,
            document: target.claim.document_id,
            generation: target.generation,
        };
        Ok(Self { inner, target, owner, ordinal: 0, languages: BTreeMap::new() })
    }

    async fn write(&mut self, entries: Vec<IndexEntry>) -> Result<(), IndexError> {
        let count = u32::try_from(entries.len()).map_err(|_| BuildError::Full)?;
        let next = self.ordinal.checked_add(count).ok_or(BuildError::Full)?;
        let (owner, first) = (self.owner, self.ordinal);
        let batch = self.inner.compute.run(move || prepare(owner, first, entries)).await?;
        let lexical = async {
            match self.inner.lexical.upsert(batch.lexical).await {
                Err(failure) if failure.kind == QdrantErrorKind::Missing => Err(gone(&self.inner.names)),
                end => end,
            }
        };
        let dense = async {
            let Some((space, dimension)) = self.target.space else { return Ok(()) };
            self.inner.ensure_space(space, dimension).await?;
            let written = self.inner.dense(space).upsert(batch.dense).await;
            if matches!(&written, Err(failure) if failure.kind == QdrantErrorKind::Missing) {
                // The next attempt makes it again.
                self.inner.forget(space);
            }
            written
        };
        try_join(lexical, dense).await?;
        self.ordinal = next;
        for language in batch.languages {
            *self.languages.entry(language).or_default() += 1;
        }
        Ok(())
    }
}

/// Computes what is stored of each entry.
fn prepare(owner: PointOwner, first: u32, entries: Vec<IndexEntry>) -> PointBatch {
    let mut batch =
        PointBatch { lexical: Vec::with_capacity(entries.len()), dense: Vec::new(), languages: Vec::new() };
    for (ordinal, IndexEntry { text, vector }) in (first..).zip(entries) {
        let point = owner.point(ordinal);
        if let Some(vector) = vector {
            batch.dense.push(PointStruct { vectors: Some(Vectors::from(vector)), ..point.clone() });
        }
        let language = detect_language(&text);
        let terms = document_terms(&text, language);
        // An entry without words is counted, and never found.
        if terms.is_empty() {
            batch.lexical.push(point);
        } else {
            batch.languages.push(language);
            batch.lexical.push(PointStruct { vectors: Some(text_vector(&terms)), ..point });
        }
    }
    batch
}

/// Refuses what the embedded index refuses, so that both take the same documents.
fn check(space: Option<usize>, entry: &IndexEntry) -> Result<(), BuildError> {
    match (space, &entry.vector) {
        (Some(expected), Some(vector)) if vector.len() != expected => {
            Err(BuildError::Dimension { expected, actual: vector.len() })
        }
        (Some(_), Some(vector)) if !vector.iter().all(|number| number.is_finite()) => {
            Err(BuildError::NotFinite)
        }
        (None, None) | (Some(_), Some(_)) => Ok(()),
        _ => Err(BuildError::MixedVectors),
    }
}

#[async_trait]
impl IndexWriter for QdrantIndexWriter<'_> {
    async fn add(&mut self, entries: Vec<IndexEntry>) -> Result<(), IndexError> {
        let dimension = self.target.space.map(|(_, dimension)| dimension);
        for entry in &entries {
            check(dimension, entry)?;
        }
        let mut entries = entries.into_iter();
        loop {
            let batch: Vec<IndexEntry> = entries.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                return Ok(());
            }
            self.write(batch).await?;
        }
    }

    async fn finish(self: Box<Self>) -> Result<IndexedGeneration, IndexError> {
        let Self { inner, target, owner: PointOwner { generation, .. }, ordinal, languages } = *self;
        let written = WrittenGeneration { generation, points: u64::from(ordinal) };
        let words = inner.lexical.count(written);
        let entries = match target.space {
            None => words.await?,
            // An entry counts when it is in both.
            Some((space, _)) => {
                let dense = inner.dense(space);
                let (words, vectors) = try_join(words, dense.count(written)).await?;
                words.min(vectors)
            }
        };
        let mut languages: Vec<_> = languages.into_iter().collect();
        languages.sort_by_key(|(_, count)| Reverse(*count));
        Ok(IndexedGeneration { entries, languages })
    }
}
