//! Where the values of documents stand in the text of their metadata. A document may have thousands of them, of which a filter asks for
//! one: found by its key it takes next to nothing, and by reading all the others forty milliseconds for five hundred documents.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The values of some documents, by the keys of each.
pub(in crate::search) struct MemberDirectory {
    hasher: RandomState,
    /// Where those of each document end in the other two.
    ends: Vec<usize>,
    /// The hash of each key, ascending within a document. Two keys of one have the same once in 2^64 times, and nobody can choose them to,
    /// since the hasher is made by chance.
    keys: Vec<u64>,
    /// Where the value of each begins in the document's text.
    values: Vec<u32>,
}

impl MemberDirectory {
    /// The most bytes that the directory of a document with this metadata takes.
    pub(super) fn bytes(metadata: &str) -> u64 {
        // What looks like the end of a key; within a text it may be none.
        let members = metadata.matches("\":").count();
        (members * (size_of::<u64>() + size_of::<u32>()) + size_of::<usize>()) as u64
    }

    /// The values of documents with this metadata, each an object in JSON.
    ///
    /// # Errors
    /// When one is not that.
    pub(in crate::search) fn of<'a>(documents: impl Iterator<Item = &'a str>) -> serde_json::Result<Self> {
        let mut all =
            Self { hasher: RandomState::new(), ends: Vec::new(), keys: Vec::new(), values: Vec::new() };
        for metadata in documents {
            let mut reader = serde_json::Deserializer::from_str(metadata);
            let mut members = MembersSeed { hasher: &all.hasher, metadata }.deserialize(&mut reader)?;
            reader.end()?;
            // Of a key that is there twice the last one counts.
            members.reverse();
            members.sort_by_key(|(key, _)| *key);
            members.dedup_by_key(|(key, _)| *key);
            all.keys.extend(members.iter().map(|(key, _)| *key));
            all.values.extend(members.iter().map(|(_, value)| *value));
            all.ends.push(all.keys.len());
        }
        all.keys.shrink_to_fit();
        all.values.shrink_to_fit();
        Ok(all)
    }

    /// The rest of a document's metadata from the value of a key on, if it has one.
    pub(in crate::search) fn find<'a>(
        &self,
        document: usize,
        metadata: &'a str,
        key: &str,
    ) -> Option<&'a str> {
        let begin = document.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let keys = self.keys.get(begin..*self.ends.get(document)?)?;
        let place = keys.binary_search(&self.hasher.hash_one(key)).ok()?;
        metadata.get(usize::try_from(*self.values.get(begin + place)?).ok()?..)
    }
}

/// Reads an object: the hash of each key, and where its value begins.
struct MembersSeed<'a> {
    hasher: &'a RandomState,
    metadata: &'a str,
}

impl<'de> DeserializeSeed<'de> for MembersSeed<'_> {
    type Value = Vec<(u64, u32)>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MembersSeed<'_> {
    type Value = Vec<(u64, u32)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = object.next_key_seed(KeyHashSeed(self.hasher))? {
            let value: &RawValue = object.next_value()?;
            let begin = value.get().as_ptr().addr() - self.metadata.as_ptr().addr();
            members.push((key, u32::try_from(begin).map_err(serde::de::Error::custom)?));
        }
        Ok(members)
    }
}

/// Reads a key: its hash.
struct KeyHashSeed<'a>(&'a RandomState);

impl<'de> DeserializeSeed<'de> for KeyHashSeed<'_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<u64, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyHashSeed<'_> {
    type Value = u64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<u64, E> {
        Ok(self.0.hash_one(key))
    }
}
