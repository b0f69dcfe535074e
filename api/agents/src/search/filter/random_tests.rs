//! Filters against a plain reading of what they mean, over ten thousand random documents. Which index is searched makes no difference:
//! filters decide which documents it is asked for.

use std::{cmp::Ordering, iter};

use serde_json::{Map, Value, json};

use super::{
    super::members::MemberDirectory, MetadataCondition, MetadataFilter, MetadataTest, PreparedFilter,
};

const DOCUMENTS: usize = 10_000;
const KEYS: [&str; 3] = ["year", "team", "due"];

/// Marsaglia's generator: the same documents in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % most
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        let at = usize::try_from(self.below(choices.len() as u64)).unwrap();
        choices[at].clone()
    }

    fn scalar(&mut self) -> Value {
        let choices = [
            json!(null),
            json!(true),
            json!(false),
            json!(-1),
            json!(0),
            json!(2),
            json!(2.0),
            json!(2.5),
            json!("2"),
            json!(""),
            json!("legal"),
            json!("sales"),
            json!("2026-01-05"),
            json!("2026-01-31"),
        ];
        self.of(&choices)
    }

    fn value(&mut self) -> Value {
        match self.below(5) {
            0 => (0..self.below(4)).map(|_| self.scalar()).collect(),
            1 if self.below(4) == 0 => json!({"year": 2}),
            _ => self.scalar(),
        }
    }

    fn document(&mut self) -> Map<String, Value> {
        let mut document = Map::new();
        for key in KEYS {
            if self.below(4) > 0 {
                document.insert(key.to_owned(), self.value());
            }
        }
        document
    }

    fn filter(&mut self, depth: u64) -> MetadataFilter {
        match self.below(4) {
            0 if depth > 0 => {
                MetadataFilter::All((0..self.below(4)).map(|_| self.filter(depth - 1)).collect())
            }
            1 if depth > 0 => {
                MetadataFilter::Any((0..self.below(4)).map(|_| self.filter(depth - 1)).collect())
            }
            _ => {
                let several: Vec<Value> = (0..=self.below(3)).map(|_| self.scalar()).collect();
                let one = self.scalar();
                let test = self.of(&[
                    MetadataTest::AnyOf(several.clone()),
                    MetadataTest::In(several.clone()),
                    MetadataTest::NotIn(several),
                    MetadataTest::Greater(one.clone()),
                    MetadataTest::AtLeast(one.clone()),
                    MetadataTest::Less(one.clone()),
                    MetadataTest::AtMost(one),
                ]);
                MetadataFilter::Condition(MetadataCondition { key: self.of(&KEYS).to_owned(), test })
            }
        }
    }
}

/// How two values of one type stand to each other. Dates of one form stand to each other as their characters do.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn is_same(a: &Value, b: &Value) -> bool {
    order(a, b) == Some(Ordering::Equal)
}

fn holds(value: &Value, is_sought: impl Fn(&Value) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(is_sought),
        other => is_sought(other),
    }
}

fn plainly_meets(document: &Map<String, Value>, filter: &MetadataFilter) -> bool {
    let MetadataCondition { key, test } = match filter {
        MetadataFilter::All(parts) => return parts.iter().all(|part| plainly_meets(document, part)),
        MetadataFilter::Any(parts) => return parts.iter().any(|part| plainly_meets(document, part)),
        MetadataFilter::Condition(condition) => condition,
    };
    let value = document.get(key);
    let ordered = |wanted: &Value, orders: &[Ordering]| {
        value.and_then(|value| order(value, wanted)).is_some_and(|order| orders.contains(&order))
    };
    match test {
        MetadataTest::AnyOf(sought) => match value {
            None => sought.contains(&Value::Null),
            Some(value) => holds(value, |item| {
                sought.iter().any(|sought| is_same(item, sought) || (item.is_null() && sought.is_null()))
            }),
        },
        MetadataTest::In(sought) => {
            value.is_some_and(|value| holds(value, |item| sought.iter().any(|sought| is_same(item, sought))))
        }
        MetadataTest::NotIn(sought) => {
            !value.is_some_and(|value| holds(value, |item| sought.iter().any(|sought| is_same(item, sought))))
        }
        MetadataTest::Greater(wanted) => ordered(wanted, &[Ordering::Greater]),
        MetadataTest::AtLeast(wanted) => ordered(wanted, &[Ordering::Greater, Ordering::Equal]),
        MetadataTest::Less(wanted) => ordered(wanted, &[Ordering::Less]),
        MetadataTest::AtMost(wanted) => ordered(wanted, &[Ordering::Less, Ordering::Equal]),
    }
}

#[test]
fn random_documents_meet_random_filters_as_a_plain_reading_has_it() {
    let mut draw = Draw(0x2545_f491_4f6c_dd1d);
    let mut met = 0;
    for _ in 0..DOCUMENTS {
        let (document, filter) = (draw.document(), draw.filter(3));
        let text = Value::Object(document.clone()).to_string();
        let prepared = PreparedFilter::of(&filter);
        let found = prepared.meets(Some(&text)).expect("an object");
        let members = MemberDirectory::of(iter::once(text.as_str())).expect("an object");
        let by_place = prepared.meets_known(&members, 0, &text).expect("values");
        assert_eq!(found, by_place, "{filter:?}\n{text}");
        assert_eq!(found, plainly_meets(&document, &filter), "{filter:?}\n{text}");
        met += usize::from(found);
    }
    assert!((DOCUMENTS / 5..DOCUMENTS * 4 / 5).contains(&met), "{met}: so few or so many prove little");
}
