//! Filters held against documents, by reading all of their metadata and by the places of its values.

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
    let metadata = json!({"team": "legal", "year": 2024, "draft": false, "tags": ["a", "b"], "note": null});
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
        assert_eq!(tested(&value, AtMost(wanted.clone())), order == Some(Ordering::Less) || same, "{what}");
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
        (r#"{"nested": {"team": "legal"}, "list": [{"team": "legal"}]}"#, json!({"team": "legal"}), false),
        (r#"{"nested": {"team": "legal"}, "list": [{"team": "legal"}]}"#, json!({"team": null}), true),
        // Of a key that is there twice the last value counts.
        (r#"{"team": "sales", "team": "legal"}"#, json!({"team": "legal"}), true),
        (r#"{"team": "legal", "team": "sales"}"#, json!({"team": "legal"}), false),
    ] {
        assert_eq!(filter(&conditions).meets(Some(metadata)).unwrap(), expected, "{metadata} {conditions}");
    }
}

#[test]
fn what_is_no_object_cannot_be_judged() {
    for metadata in ["", "[]", "1", "null", "{", r#"{"a": 1} {"#, r#"{"a" 1}"#, r#"{"a": }"#] {
        assert!(filter(&json!({"b": null})).meets(Some(metadata)).is_err(), "{metadata}");
    }
}
