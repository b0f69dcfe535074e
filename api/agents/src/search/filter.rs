//! Which documents a search is about, told by their metadata.

mod compared;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, collections::HashMap, fmt};

use serde::{
    Deserialize, Serialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

use self::compared::{ComparedValue, DocumentValue, ValueKey};
use super::members::{FoundMember, MemberDirectory};

/// What a document's metadata has to say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum MetadataFilter {
    /// Each of these has to be met: any document meets none of them.
    All(Vec<Self>),
    /// One of these has to be met.
    Any(Vec<Self>),
    /// This has to be met.
    Condition(MetadataCondition),
}

/// A condition on one value of a document's metadata.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetadataCondition {
    /// The value's key.
    pub key: String,
    /// What it has to be.
    pub test: MetadataTest,
}

/// What a value has to be. Besides [`AnyOf`](Self::AnyOf), two texts that are both a date or a time of RFC 3339 are compared as times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum MetadataTest {
    /// One of these to the letter, or a list that contains one of them. `null` stands for a missing one too.
    AnyOf(Vec<Value>),
    /// One of these, or a list that contains one of them.
    In(Vec<Value>),
    /// Missing, or neither one of these nor a list that contains one of them.
    NotIn(Vec<Value>),
    /// Of the same type and greater.
    Greater(Value),
    /// Of the same type and not less.
    AtLeast(Value),
    /// Of the same type and less.
    Less(Value),
    /// Of the same type and not greater.
    AtMost(Value),
}

impl Default for MetadataFilter {
    /// What every document meets.
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

impl MetadataFilter {
    /// Whether every document meets it.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::All(parts) if parts.is_empty())
    }
}

/// A filter whose values are read, ready to be held against any number of documents.
pub(super) struct PreparedFilter {
    keys: ConditionKeys,
    whole: PreparedPart,
}

/// The keys that a filter has conditions on.
struct ConditionKeys {
    /// The place of each.
    places: HashMap<String, usize>,
    /// A bit for each length that they have: most keys of a document are told from them by that, without being hashed.
    lengths: u64,
}

impl ConditionKeys {
    fn new(places: HashMap<String, usize>) -> Self {
        let lengths = places.keys().fold(0, |lengths, key| lengths | length_bit(key));
        Self { places, lengths }
    }

    fn place(&self, key: &str) -> Option<usize> {
        if self.lengths & length_bit(key) == 0 { None } else { self.places.get(key).copied() }
    }
}

/// One bit for each length, the last one for all that are longer.
fn length_bit(key: &str) -> u64 {
    1 << key.len().min(63)
}

impl PreparedFilter {
    pub(super) fn of(filter: &MetadataFilter) -> Self {
        let mut places = HashMap::new();
        let whole = PreparedPart::of(filter, &mut places);
        Self { keys: ConditionKeys::new(places), whole }
    }

    /// Whether a document with this metadata, an object in JSON, meets it. What this takes is about the number of the document's values
    /// and of the filter's together.
    ///
    /// # Errors
    /// When it is not that.
    pub(super) fn meets(&self, metadata: Option<&str>) -> serde_json::Result<bool> {
        let values = match metadata {
            None => Vec::new(),
            Some(metadata) => {
                let mut reader = serde_json::Deserializer::from_str(metadata);
                let values = FilterSeed { keys: &self.keys }.deserialize(&mut reader)?;
                reader.end()?;
                values
            }
        };
        Ok(self.is_met(&values))
    }

    /// [`meets`](Self::meets), of a document of which it is known where its values stand.
    pub(super) fn meets_known(
        &self,
        members: &MemberDirectory,
        document: usize,
        metadata: &str,
    ) -> serde_json::Result<bool> {
        let mut values = vec![None; self.keys.places.len()];
        for (key, place) in &self.keys.places {
            let Some(value) = values.get_mut(*place) else { continue };
            match members.find(document, metadata, key) {
                FoundMember::Missing => {}
                FoundMember::Value(text) => {
                    *value = Some(Value::deserialize(&mut serde_json::Deserializer::from_str(text))?);
                }
                FoundMember::Unsure => return self.meets(Some(metadata)),
            }
        }
        Ok(self.is_met(&values))
    }

    /// Whether a document meets it that has these values at the places of their keys.
    fn is_met(&self, values: &[Option<Value>]) -> bool {
        let values: Vec<_> = values.iter().map(|value| value.as_ref().map(DocumentValue::of)).collect();
        self.whole.is_met(&values)
    }
}

/// What stands in a filter.
enum PreparedPart {
    All(Vec<Self>),
    Any(Vec<Self>),
    /// A test of the value at a place.
    Condition(usize, PreparedTest),
}

impl PreparedPart {
    /// Gives every new key the next place.
    fn of(filter: &MetadataFilter, keys: &mut HashMap<String, usize>) -> Self {
        match filter {
            MetadataFilter::All(parts) => Self::All(parts.iter().map(|part| Self::of(part, keys)).collect()),
            MetadataFilter::Any(parts) => Self::Any(parts.iter().map(|part| Self::of(part, keys)).collect()),
            MetadataFilter::Condition(MetadataCondition { key, test }) => {
                let next = keys.len();
                let place = *keys.entry(key.clone()).or_insert(next);
                Self::Condition(place, PreparedTest::of(test))
            }
        }
    }

    /// Whether it is met by a document that has these values at their places.
    fn is_met(&self, values: &[Option<DocumentValue<'_>>]) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.is_met(values)),
            Self::Any(parts) => parts.iter().any(|part| part.is_met(values)),
            Self::Condition(place, test) => test.is_met(values.get(*place).and_then(Option::as_ref)),
        }
    }
}

/// What a value has to be, with what it is compared with.
enum PreparedTest {
    /// One that is kept by one of these, or a list that contains one; perhaps also a missing one.
    OneOf { sought: Vec<ValueKey<'static>>, or_missing: bool },
    /// Missing, or no such one.
    NoneOf(Vec<ValueKey<'static>>),
    /// One that stands to this in one of these orders.
    Ordered(ComparedValue<'static>, &'static [Ordering]),
}

impl PreparedTest {
    fn of(test: &MetadataTest) -> Self {
        let compared = |value: &Value| ComparedValue::of(value).into_owned();
        let sought = |values: &[Value]| -> Vec<_> {
            values.iter().flat_map(|value| compared(value).sought()).flatten().collect()
        };
        match test {
            MetadataTest::AnyOf(values) => Self::OneOf {
                sought: values
                    .iter()
                    .flat_map(|value| compared(value).sought_to_the_letter())
                    .flatten()
                    .collect(),
                or_missing: values.contains(&Value::Null),
            },
            MetadataTest::In(values) => Self::OneOf { sought: sought(values), or_missing: false },
            MetadataTest::NotIn(values) => Self::NoneOf(sought(values)),
            MetadataTest::Greater(wanted) => Self::Ordered(compared(wanted), &[Ordering::Greater]),
            MetadataTest::AtLeast(wanted) => {
                Self::Ordered(compared(wanted), &[Ordering::Greater, Ordering::Equal])
            }
            MetadataTest::Less(wanted) => Self::Ordered(compared(wanted), &[Ordering::Less]),
            MetadataTest::AtMost(wanted) => {
                Self::Ordered(compared(wanted), &[Ordering::Less, Ordering::Equal])
            }
        }
    }

    /// Whether a document meets it that has this value, or none.
    fn is_met(&self, value: Option<&DocumentValue<'_>>) -> bool {
        match self {
            Self::OneOf { sought, or_missing } => value.map_or(*or_missing, |value| value.holds_one(sought)),
            Self::NoneOf(sought) => value.is_none_or(|value| !value.holds_one(sought)),
            Self::Ordered(wanted, orders) => {
                let order = value.and_then(|value| value.compare(wanted));
                order.is_some_and(|order| orders.contains(&order))
            }
        }
    }
}

/// Reads an object of which only the values are kept that a condition is about.
struct FilterSeed<'a> {
    keys: &'a ConditionKeys,
}

impl<'de> DeserializeSeed<'de> for FilterSeed<'_> {
    /// The values at the places of their keys; of a key that is there twice the last one.
    type Value = Vec<Option<Value>>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FilterSeed<'_> {
    type Value = Vec<Option<Value>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let Self { keys } = self;
        let mut values = vec![None; keys.places.len()];
        while let Some(place) = object.next_key_seed(ConditionKeySeed { keys })? {
            match place.and_then(|place| values.get_mut(place)) {
                Some(value) => *value = Some(object.next_value()?),
                None => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(values)
    }
}

/// Reads a key: its place, if a condition is about it.
struct ConditionKeySeed<'a> {
    keys: &'a ConditionKeys,
}

impl<'de> DeserializeSeed<'de> for ConditionKeySeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for ConditionKeySeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.keys.place(key))
    }
}
