//! Looking at the collections for the operator, over all users, without changing anything.

use uuid::Uuid;

use super::{
    Inner, PREFIX, QdrantConfig, QdrantIndex,
    client::Client,
    collections,
    collections::{Names, Spaces},
    points,
};
use crate::{compute::Compute, ids::GenerationId, index::IndexError};

impl QdrantIndex {
    /// Connects, and makes nothing: collections may be missing (see [`Self::missing`]).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn look(config: &QdrantConfig, instance: &str) -> Result<Self, IndexError> {
        let client = Client::new(config)?;
        let names = Names::new(&format!("{PREFIX}_{}", instance.replace('-', "")));
        collections::check_version(&collections::version(&client).await?)?;
        collections::content(&client, &names.lexical, instance).await?;
        Ok(Self {
            inner: std::sync::Arc::new(Inner {
                client,
                names,
                instance: instance.to_owned(),
                spaces: parking_lot::Mutex::new(Spaces::default()),
                making: tokio::sync::Mutex::default(),
                compute: Compute::per_core(),
            }),
        })
    }

    /// Those of the collections of words and of these embedding spaces that do not exist.
    pub async fn missing(&self, spaces: &[Uuid]) -> Result<Vec<String>, IndexError> {
        let Inner { client, names, .. } = &*self.inner;
        let there = collections::list(client, names).await?;
        let wanted =
            std::iter::once(names.lexical.clone()).chain(spaces.iter().map(|space| names.dense(*space)));
        Ok(wanted.filter(|name| !there.contains(name)).collect())
    }

    /// How many passages the collection of words, or that of an embedding space, holds of these generations together, whoever's they
    /// are; counted exactly. None are in a collection that does not exist.
    pub async fn entries(
        &self,
        space: Option<Uuid>,
        generations: &[GenerationId],
    ) -> Result<u64, IndexError> {
        let names = &self.inner.names;
        let collection = space.map_or_else(|| names.lexical.clone(), |space| names.dense(space));
        Ok(self.inner.count(&collection, points::of_any(generations)).await?)
    }
}
