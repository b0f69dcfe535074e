//! Looking at the collections for the operator, over all workspaces, without changing anything.

use std::collections::{BTreeMap, BTreeSet};

use lectern_shared::{config::QdrantConfig, ids::GenerationId};
use qdrant_client::qdrant::{PayloadIncludeSelector, PointId, ScrollPointsBuilder};
use uuid::Uuid;

use super::{
    PREFIX, QdrantIndex, QdrantIndexState,
    client::{QdrantClient, QdrantFailure, QdrantRetryPolicy},
    collections::{self, CollectionNames},
    points,
};
use crate::{EntryMismatch, ExpectedEntries, HeldGenerations, IndexCursor, IndexError};

impl QdrantIndex {
    /// Connects, and makes nothing: collections may be missing (see [`Self::missing`]).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_read_only(config: &QdrantConfig, instance: &str) -> Result<Self, IndexError> {
        let client = QdrantClient::new(config)?;
        let names = CollectionNames::new(&format!("{PREFIX}_{}", instance.replace('-', "")));
        collections::check_version(&collections::version(&client).await?)?;
        collections::content(&client, &names.lexical, instance).await?;
        Ok(Self { inner: std::sync::Arc::new(QdrantIndexState::new(client, names, instance)) })
    }

    /// Those of the collections of words and of these embedding spaces that do not exist.
    pub async fn missing(&self, spaces: &[Uuid]) -> Result<Vec<String>, IndexError> {
        let QdrantIndexState { client, names, .. } = &*self.inner;
        let there = collections::list(client, names).await?;
        let wanted =
            std::iter::once(names.lexical.clone()).chain(spaces.iter().map(|space| names.dense(*space)));
        Ok(wanted.filter(|name| !there.contains(name)).collect())
    }

    /// How many passages the collection of words, or that of an embedding space, holds of these generations together, whoever's they
    /// are; counted exactly. None are in a collection that does not exist.
    async fn entries(&self, space: Option<Uuid>, generations: &[GenerationId]) -> Result<u64, IndexError> {
        let names = &self.inner.names;
        let collection = space.map_or_else(|| names.lexical.clone(), |space| names.dense(space));
        Ok(self.inner.count(&collection, points::of_any(generations)).await?)
    }
}

/// Those of the generations of which a collection does not hold as many points as it should.
pub(super) async fn mismatched(
    index: &QdrantIndex,
    expected: &[ExpectedEntries],
) -> Result<BTreeMap<GenerationId, EntryMismatch>, IndexError> {
    let mut spaces: BTreeMap<Option<Uuid>, Vec<ExpectedEntries>> = BTreeMap::new();
    for expected in expected {
        spaces.entry(None).or_default().push(*expected);
        if expected.space.is_some() {
            spaces.entry(expected.space).or_default().push(*expected);
        }
    }
    let mut found = BTreeMap::new();
    for (space, expected) in spaces {
        halve(index, space, &expected, &mut found).await?;
    }
    Ok(found)
}

/// Points that one page looks at.
const PAGE: u32 = 1_000;

/// The generations of the next points, collection by collection.
pub(super) async fn held(
    index: &QdrantIndex,
    from: Option<IndexCursor>,
) -> Result<HeldGenerations, QdrantFailure> {
    let QdrantIndexState { client, names, .. } = &*index.inner;
    let mut collections = collections::list(client, names).await?;
    collections.sort_unstable();
    let (current, point) = match from {
        // One that was deleted meanwhile is passed over.
        Some(IndexCursor { collection, point }) => {
            let there = collections.contains(&collection);
            (collections.iter().find(|name| **name >= collection), point.filter(|_| there))
        }
        None => (collections.first(), None),
    };
    let Some(current) = current else { return Ok(HeldGenerations::default()) };
    let fields = [points::field::USER, points::field::GENERATION].map(str::to_owned);
    let mut request = ScrollPointsBuilder::new(current.as_str())
        .limit(PAGE)
        .with_payload(PayloadIncludeSelector { fields: fields.into() });
    if let Some(point) = point {
        request = request.offset(PointId::from(point));
    }
    let scroll = || async { Ok(client.qdrant().scroll(request.clone()).await?) };
    let page = client.call("its points", QdrantRetryPolicy::Read, scroll).await?;
    let owners = page.result.iter().filter_map(|point| points::owner(&point.payload));
    let generations: BTreeSet<_> = owners.collect();
    let next_point = page.next_page_offset.and_then(points::id_text);
    let next = match next_point {
        Some(point) => Some(IndexCursor { collection: current.clone(), point: Some(point) }),
        None => collections
            .iter()
            .find(|name| *name > current)
            .map(|name| IndexCursor { collection: name.clone(), point: None }),
    };
    Ok(HeldGenerations { generations: generations.into_iter().collect(), next })
}

/// Counts all of them together, and by halves only where that is not the right number.
async fn halve(
    index: &QdrantIndex,
    space: Option<Uuid>,
    expected: &[ExpectedEntries],
    found: &mut BTreeMap<GenerationId, EntryMismatch>,
) -> Result<(), IndexError> {
    let mut left = vec![expected];
    while let Some(some) = left.pop() {
        if some.is_empty() {
            continue;
        }
        let generations: Vec<GenerationId> = some.iter().map(|expected| expected.generation).collect();
        let held = index.entries(space, &generations).await?;
        let Some(mismatch) = EntryMismatch::of(held, some.iter().map(|expected| expected.entries).sum())
        else {
            continue;
        };
        if held == 0 || some.len() == 1 {
            found.extend(generations.into_iter().map(|generation| (generation, mismatch)));
        } else {
            let (first, second) = some.split_at(some.len() / 2);
            left.extend([first, second]);
        }
    }
    Ok(())
}
