//! Where the values of documents stand in the text of their metadata. A document may have thousands of them, of which a filter asks for
//! one: found by its key it takes next to nothing, and by reading all the others thirty milliseconds for five hundred documents.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The values of some documents, by the keys of each.
pub(super) struct MemberDirectory {
    hasher: RandomState,
    /// Where those of each document end in the other two.
    ends: Vec<usize>,
    /// A part of the hash of each key, ascending within a document.
    keys: Vec<u32>,
    /// Where the value of each begins in the document's text.
    values: Vec<u16>,
}

/// What is known of a key of a document.
pub(super) enum FoundMember<'a> {
    /// The document has no such key.
    Missing,
    /// The rest of its metadata from the value on.
    Value(&'a str),
    /// Two keys are alike as far as they are known here, or it is written in an unusual way: the metadata has to be read.
    Unsure,
}

impl MemberDirectory {
    /// The most bytes that the directory of a document with this metadata takes.
    pub(super) fn bytes(metadata: &str) -> u64 {
        // What looks like the end of a key; within a text it may be none.
        let members = metadata.matches("\":").count();
        (members * (size_of::<u32>() + size_of::<u16>()) + size_of::<usize>()) as u64
    }

    /// The values of documents with this metadata, each an object in JSON of at most 64 KiB.
    ///
    /// # Errors
    /// When one is not that.
    pub(super) fn of<'a>(documents: impl Iterator<Item = &'a str>) -> serde_json::Result<Self> {
        let mut all =
            Self { hasher: RandomState::new(), ends: Vec::new(), keys: Vec::new(), values: Vec::new() };
        for metadata in documents {
            let mut reader = serde_json::Deserializer::from_str(metadata);
            let mut members = MembersSeed { hasher: &all.hasher, metadata }.deserialize(&mut reader)?;
            reader.end()?;
            members.sort_unstable();
            all.keys.extend(members.iter().map(|(key, _)| *key));
            all.values.extend(members.iter().map(|(_, value)| *value));
            all.ends.push(all.keys.len());
        }
        all.keys.shrink_to_fit();
        all.values.shrink_to_fit();
        Ok(all)
    }

    /// What a document with this metadata has under a key.
    pub(super) fn find<'a>(&self, document: usize, metadata: &'a str, key: &str) -> FoundMember<'a> {
        let begin = document.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(document).copied().unwrap_or(begin);
        let hash = part_of_hash(&self.hasher, key);
        let keys = self.keys.get(begin..end).unwrap_or_default();
        let first = keys.partition_point(|known| *known < hash);
        match keys.get(first..).unwrap_or_default() {
            [known, ..] if *known != hash => FoundMember::Missing,
            [] => FoundMember::Missing,
            [_, next, ..] if *next == hash => FoundMember::Unsure,
            [_, ..] => {
                let value = self.values.get(begin + first).map(|value| usize::from(*value));
                let split = value.and_then(|value| metadata.split_at_checked(value));
                split
                    .filter(|(before, _)| ends_with_key(before, key))
                    .map_or(FoundMember::Unsure, |(_, value)| FoundMember::Value(value))
            }
        }
    }
}

fn part_of_hash(hasher: &RandomState, key: &str) -> u32 {
    let [a, b, c, d, ..] = hasher.hash_one(key).to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}

/// Whether what stands before a value ends with this key, as it is usually written.
fn ends_with_key(before: &str, key: &str) -> bool {
    let Some(before) = before.trim_ascii_end().strip_suffix(':') else { return false };
    let written = serde_json::Value::from(key).to_string();
    let before = before.trim_ascii_end().strip_suffix(&written);
    before.is_some_and(|before| before.trim_ascii_end().ends_with(['{', ',']))
}

/// Reads an object: the hash of each key, and where its value begins.
struct MembersSeed<'a> {
    hasher: &'a RandomState,
    metadata: &'a str,
}

impl<'de> DeserializeSeed<'de> for MembersSeed<'_> {
    type Value = Vec<(u32, u16)>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MembersSeed<'_> {
    type Value = Vec<(u32, u16)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = object.next_key_seed(KeyHashSeed(self.hasher))? {
            let value: &RawValue = object.next_value()?;
            let begin = value.get().as_ptr().addr() - self.metadata.as_ptr().addr();
            members.push((key, u16::try_from(begin).map_err(serde::de::Error::custom)?));
        }
        Ok(members)
    }
}

/// Reads a key: its hash.
struct KeyHashSeed<'a>(&'a RandomState);

impl<'de> DeserializeSeed<'de> for KeyHashSeed<'_> {
    type Value = u32;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<u32, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyHashSeed<'_> {
    type Value = u32;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<u32, E> {
        Ok(part_of_hash(self.0, key))
    }
}
