//! Which documents a search is about, told by their metadata.

mod compared;
#[cfg(test)]
mod random_tests;

use std::{cmp::Ordering, collections::HashMap, fmt};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

use self::compared::{ComparedValue, DocumentValue, ValueKey};
use super::members::{FoundMember, MemberDirectory};

/// What a document's metadata has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataFilter {
    /// Each of these has to be met: any document meets none of them.
    All(Vec<Self>),
    /// One of these has to be met.
    Any(Vec<Self>),
    /// This has to be met.
    Condition(MetadataCondition),
}

/// A condition on one value of a document's metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataCondition {
    /// The value's key.
    pub key: String,
    /// What it has to be.
    pub test: MetadataTest,
}

/// What a value has to be. Besides [`AnyOf`](Self::AnyOf), two texts that are both a date or a time of RFC 3339 are compared as times.
#[derive(Clone, Debug, PartialEq)]
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

#[cfg(test)]
mod tests {
    use std::iter;

    use serde_json::json;

    use super::*;

    impl MetadataFilter {
        /// Both ways have to say the same.
        fn meets(&self, metadata: Option<&str>) -> serde_json::Result<bool> {
            let filter = PreparedFilter::of(self);
            let read = filter.meets(metadata);
            let found = match metadata {
                None => filter.meets(None),
                Some(metadata) => MemberDirectory::of(iter::once(metadata))
                    .and_then(|members| filter.meets_known(&members, 0, metadata)),
            };
            assert_eq!(read.as_ref().ok(), found.as_ref().ok(), "{metadata:?}");
            read
        }
    }

    fn meets(metadata: &Value, conditions: &Value) -> bool {
        let metadata = metadata.is_object().then(|| metadata.to_string());
        filter(conditions).meets(metadata.as_deref()).unwrap()
    }

    fn filter(conditions: &Value) -> MetadataFilter {
        let conditions = conditions.as_object().unwrap().iter().map(|(key, wanted)| {
            let wanted = wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()]);
            condition(key, MetadataTest::AnyOf(wanted))
        });
        MetadataFilter::All(conditions.collect())
    }

    fn condition(key: &str, test: MetadataTest) -> MetadataFilter {
        MetadataFilter::Condition(MetadataCondition { key: key.to_owned(), test })
    }

    #[test]
    fn a_key_is_found_whatever_its_length() {
        for length in [0, 1, 62, 63, 64, 65, 500] {
            let key = |letter: &str| letter.repeat(length);
            let metadata = json!({key("x"): 1, key("y"): 2});
            assert!(meets(&metadata, &json!({key("x"): if length == 0 { 2 } else { 1 }})), "{length}");
            assert!(!meets(&metadata, &json!({format!("{}z", key("x")): 1})), "{length}");
        }
    }

    #[test]
    fn a_document_meets_a_filter_when_every_key_has_one_of_its_values() {
        let metadata =
            json!({"team": "legal", "year": 2024, "draft": false, "tags": ["a", "b"], "note": null});
        for (conditions, expected) in [
            (json!({}), true),
            (json!({"team": "legal"}), true),
            (json!({"team": "Legal"}), false),
            (json!({"team": ["sales", "legal"], "year": 2024}), true),
            (json!({"team": "legal", "year": 2023}), false),
            (json!({"year": 2024.0}), true),
            (json!({"year": "2024"}), false),
            (json!({"draft": false}), true),
            (json!({"tags": "b"}), true),
            (json!({"tags": ["c", "d"]}), false),
            (json!({"note": null}), true),
            (json!({"missing": null}), true),
            (json!({"missing": ["x", null]}), true),
            (json!({"missing": "x"}), false),
            (json!({"team": []}), false),
        ] {
            assert_eq!(meets(&metadata, &conditions), expected, "{conditions}");
        }
        assert!(meets(&Value::Null, &json!({"team": null})));
        assert!(!meets(&Value::Null, &json!({"team": "legal"})));
    }

    /// Whether a document whose value `v` is this meets a test of it.
    fn tested(value: &Value, test: MetadataTest) -> bool {
        condition("v", test).meets(Some(&json!({ "v": value }).to_string())).unwrap()
    }

    #[test]
    fn values_of_one_type_have_an_order_and_others_have_none() {
        use MetadataTest::*;
        for (value, wanted, order) in [
            (json!(2), json!(2.5), Some(Ordering::Less)),
            (json!(2.0), json!(2), Some(Ordering::Equal)),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64), Some(Ordering::Greater)),
            (json!("b"), json!("ä"), Some(Ordering::Less)),
            (json!("2024-05-01"), json!("2024-05-01T00:00:00Z"), Some(Ordering::Equal)),
            (json!("2024-05-01T01:30:00+02:00"), json!("2024-05-01"), Some(Ordering::Less)),
            (json!("2024-5-1"), json!("2024-05-01"), Some(Ordering::Greater)),
            (json!(true), json!(true), Some(Ordering::Equal)),
            (json!("2"), json!(2), None),
            (json!(true), json!(1), None),
            (json!(null), json!(1), None),
            (json!([3]), json!(1), None),
            (json!({"a": 1}), json!(1), None),
        ] {
            let what = format!("{value} and {wanted}");
            let same = order == Some(Ordering::Equal);
            assert_eq!(tested(&value, Greater(wanted.clone())), order == Some(Ordering::Greater), "{what}");
            assert_eq!(tested(&value, Less(wanted.clone())), order == Some(Ordering::Less), "{what}");
            assert_eq!(
                tested(&value, AtLeast(wanted.clone())),
                order == Some(Ordering::Greater) || same,
                "{what}"
            );
            assert_eq!(
                tested(&value, AtMost(wanted.clone())),
                order == Some(Ordering::Less) || same,
                "{what}"
            );
            assert_eq!(tested(&value, In(vec![wanted.clone()])), same, "{what}");
            assert_eq!(tested(&value, NotIn(vec![wanted])), !same, "{what}");
        }
        let dates = AnyOf(vec![json!("2024-05-01")]);
        assert!(!tested(&json!("2024-05-01T00:00:00Z"), dates), "to the letter");
    }

    #[test]
    fn a_list_is_what_one_of_its_items_is_and_what_is_missing_is_only_not_something() {
        use MetadataTest::*;
        let wanted = || vec![json!("b"), json!(7)];
        assert!(tested(&json!(["a", "b"]), In(wanted())) && !tested(&json!(["a", "b"]), NotIn(wanted())));
        assert!(!tested(&json!(["a"]), In(wanted())) && tested(&json!(["a"]), NotIn(wanted())));
        assert!(!tested(&json!([]), In(wanted())) && tested(&json!([]), NotIn(wanted())));
        let one = || json!(1);
        for metadata in [None, Some("{}"), Some(r#"{"other": 1}"#)] {
            let meets = |test| condition("v", test).meets(metadata).unwrap();
            assert!(meets(NotIn(vec![one()])), "{metadata:?}");
            for test in [In(vec![one()]), Greater(one()), AtLeast(one()), Less(one()), AtMost(one())] {
                assert!(!meets(test), "{metadata:?}");
            }
        }
    }

    #[test]
    fn conditions_are_joined_as_they_are_nested() {
        let is = |key: &str, value: i64| condition(key, MetadataTest::In(vec![json!(value)]));
        let filter = MetadataFilter::Any(vec![
            MetadataFilter::All(vec![is("a", 1), is("b", 1)]),
            MetadataFilter::All(vec![is("a", 2), MetadataFilter::Any(vec![is("b", 2), is("c", 2)])]),
        ]);
        for (metadata, expected) in [
            (r#"{"a": 1, "b": 1}"#, true),
            (r#"{"b": 1, "x": {"a": 1}, "a": 1}"#, true),
            (r#"{"a": 1, "b": 2}"#, false),
            (r#"{"c": 2, "a": 2}"#, true),
            (r#"{"a": 2, "b": 2, "c": 0}"#, true),
            (r#"{"a": 2, "c": 1}"#, false),
            ("{}", false),
        ] {
            assert_eq!(filter.meets(Some(metadata)).unwrap(), expected, "{metadata}");
        }
        assert!(!filter.meets(None).unwrap());
        assert!(MetadataFilter::default().is_empty() && MetadataFilter::default().meets(None).unwrap());
        assert!(!MetadataFilter::Any(Vec::new()).meets(None).unwrap(), "one of none is none");
    }

    /// Not for every two that are compared: a hundred conditions with a hundred values each are held against lists of thousands.
    #[test]
    fn every_text_is_read_as_a_time_once_however_many_it_is_compared_with() {
        let read = || compared::tests::READ.get();
        let day = |day: usize| json!(format!("2024-05-{day:02}"));
        let nin = |at: usize| condition("v", MetadataTest::NotIn(vec![day(at), day(at + 1)]));
        let is_later = condition("v", MetadataTest::Greater(day(1)));
        let filter = MetadataFilter::Any(vec![MetadataFilter::All((1..9).map(nin).collect()), is_later]);
        let before = read();
        let filter = PreparedFilter::of(&filter);
        assert_eq!(read() - before, 8 * 2 + 1, "when the filter is read");
        let list = json!({ "v": (10..30).map(day).collect::<Vec<_>>(), "other": day(1) }).to_string();
        for documents in 1..=3 {
            let before = read();
            assert!(filter.meets(Some(&list)).unwrap());
            assert_eq!(read() - before, 20, "of document {documents}");
        }
    }

    #[test]
    fn large_whole_numbers_are_told_apart() {
        let metadata = json!({"id": 9_007_199_254_740_993_u64});
        assert!(!meets(&metadata, &json!({"id": 9_007_199_254_740_992_u64})));
        assert!(meets(&metadata, &json!({"id": 9_007_199_254_740_993_u64})));
    }

    #[test]
    fn keys_and_values_are_what_their_json_stands_for() {
        for (metadata, conditions, expected) in [
            (r#"{"\u0061\"b": "\u00e9\n"}"#, json!({"a\"b": "é\n"}), true),
            (r#"{"": 1}"#, json!({"": 1}), true),
            // A value inside another one is not the document's own.
            (
                r#"{"nested": {"team": "legal"}, "list": [{"team": "legal"}]}"#,
                json!({"team": "legal"}),
                false,
            ),
            (r#"{"nested": {"team": "legal"}, "list": [{"team": "legal"}]}"#, json!({"team": null}), true),
            // Of a key that is there twice the last value counts.
            (r#"{"team": "sales", "team": "legal"}"#, json!({"team": "legal"}), true),
            (r#"{"team": "legal", "team": "sales"}"#, json!({"team": "legal"}), false),
        ] {
            assert_eq!(
                filter(&conditions).meets(Some(metadata)).unwrap(),
                expected,
                "{metadata} {conditions}"
            );
        }
    }

    #[test]
    fn what_is_no_object_cannot_be_judged() {
        for metadata in ["", "[]", "1", "null", "{", r#"{"a": 1} {"#, r#"{"a" 1}"#, r#"{"a": }"#] {
            assert!(filter(&json!({"b": null})).meets(Some(metadata)).is_err(), "{metadata}");
        }
    }
}
