//! Values as they are compared: each is read once, however many others it is compared with.

use std::{borrow::Cow, cmp::Ordering};

use lectern_shared::clock::Timestamp;
use serde_json::{Number, Value};

/// A value of a filter, or of a document.
pub(super) enum ComparedValue<'a> {
    Null,
    Bool(bool),
    Number(Number),
    /// A text, and the time that it is, if it is one.
    Text {
        text: Cow<'a, str>,
        moment: Option<Timestamp>,
    },
    /// A list or an object, which is compared with nothing.
    Other,
}

/// What values are kept and looked up by: numbers as what they are and as what they are rounded to, texts as they are written and as the
/// time that they are.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueKey<'a> {
    Null,
    Bool(bool),
    /// A whole number.
    Whole(i128),
    /// The bits of another number.
    Float(u64),
    /// The bits of any number, which may be rounded.
    Rounded(u64),
    Text(Cow<'a, str>),
    Moment(Timestamp),
}

/// The keys of one value.
type ValueKeys<'a> = [Option<ValueKey<'a>>; 2];

impl<'a> ComparedValue<'a> {
    pub(super) fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text { text: Cow::Borrowed(text), moment: moment(text) },
            Value::Array(_) | Value::Object(_) => Self::Other,
        }
    }

    /// The same, independent of what it was read from.
    pub(super) fn into_owned(self) -> ComparedValue<'static> {
        match self {
            Self::Null => ComparedValue::Null,
            Self::Bool(value) => ComparedValue::Bool(value),
            Self::Number(number) => ComparedValue::Number(number),
            Self::Text { text, moment } => {
                ComparedValue::Text { text: Cow::Owned(text.into_owned()), moment }
            }
            Self::Other => ComparedValue::Other,
        }
    }

    /// How two values of one type stand to each other; none when they are of two, or have no order.
    fn compare(&self, other: &ComparedValue<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Number(a), ComparedValue::Number(b)) => compare_numbers(a, b),
            (Self::Text { text: a, moment: moment_a }, ComparedValue::Text { text: b, moment: moment_b }) => {
                Some(match moment_a.zip(*moment_b) {
                    Some((a, b)) => a.cmp(&b),
                    // By bytes, which is by code points.
                    None => a.cmp(b),
                })
            }
            (Self::Bool(a), ComparedValue::Bool(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    /// What it is kept by.
    fn kept_by(&self) -> ValueKeys<'a> {
        match self {
            Self::Null => [Some(ValueKey::Null), None],
            Self::Bool(value) => [Some(ValueKey::Bool(*value)), None],
            Self::Number(number) => {
                let rounded = bits(number);
                let exact = number.as_i128().map(ValueKey::Whole).or(rounded.map(ValueKey::Float));
                [exact, rounded.map(ValueKey::Rounded)]
            }
            Self::Text { text, moment } => [Some(ValueKey::Text(text.clone())), moment.map(ValueKey::Moment)],
            Self::Other => [None, None],
        }
    }

    /// What others are kept by that are the same to the letter, of numbers those that are worth the same.
    pub(super) fn sought_to_the_letter(&self) -> ValueKeys<'a> {
        match self {
            Self::Null => [Some(ValueKey::Null), None],
            Self::Bool(value) => [Some(ValueKey::Bool(*value)), None],
            // As `compare_numbers` has it: two whole numbers exactly, and others as far as they can be told apart.
            Self::Number(number) => match number.as_i128() {
                Some(whole) => [Some(ValueKey::Whole(whole)), bits(number).map(ValueKey::Float)],
                None => [bits(number).map(ValueKey::Rounded), None],
            },
            Self::Text { text, .. } => [Some(ValueKey::Text(text.clone())), None],
            Self::Other => [None, None],
        }
    }

    /// What others are kept by that are neither greater nor less.
    pub(super) fn sought(&self) -> ValueKeys<'a> {
        match self {
            // It has no order.
            Self::Null => [None, None],
            Self::Text { moment: Some(moment), .. } => [Some(ValueKey::Moment(*moment)), None],
            Self::Bool(_) | Self::Number(_) | Self::Text { moment: None, .. } | Self::Other => {
                self.sought_to_the_letter()
            }
        }
    }
}

/// A document's value, ready to be compared with any number of others.
pub(super) struct DocumentValue<'a> {
    value: ComparedValue<'a>,
    /// What it is kept by, or all its items when it is a list, ascending.
    held: Vec<ValueKey<'a>>,
}

impl<'a> DocumentValue<'a> {
    pub(super) fn of(value: &'a Value) -> Self {
        let compared = ComparedValue::of(value);
        let mut held: Vec<_> = match value {
            Value::Array(items) => {
                items.iter().flat_map(|item| ComparedValue::of(item).kept_by()).flatten().collect()
            }
            _ => compared.kept_by().into_iter().flatten().collect(),
        };
        held.sort_unstable();
        Self { value: compared, held }
    }

    /// Whether it, or one of its items when it is a list, is kept by one of these.
    pub(super) fn holds_one(&self, sought: &[ValueKey<'static>]) -> bool {
        sought.iter().any(|key| self.held.binary_search(key).is_ok())
    }

    /// How it stands to another value of its type; none when that is of another one, or they have no order.
    pub(super) fn compare(&self, other: &ComparedValue<'_>) -> Option<Ordering> {
        self.value.compare(other)
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Option<Ordering> {
    // Large whole numbers must not be rounded together.
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// The bits of a number as a float, alike for both zeros: the sum of them is the one without a sign.
fn bits(number: &Number) -> Option<u64> {
    number.as_f64().map(|number| (number + 0.0).to_bits())
}

/// The time that a text is, if it is a time or a date, which is its beginning in UTC.
fn moment(text: &str) -> Option<Timestamp> {
    #[cfg(test)]
    tests::READ.set(tests::READ.get() + 1);
    // Most texts are none, which this tells at once.
    if text.as_bytes().get(4) != Some(&b'-') {
        return None;
    }
    let date = || format!("{text}T00:00:00Z");
    if text.len() == 10 { date().parse().ok() } else { text.parse().ok() }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;

    thread_local! {
        /// How many texts this thread has tried to read as times.
        pub(in super::super) static READ: Cell<usize> = const { Cell::new(0) };
    }

    /// Keys are a shorter way to what comparing every two values says.
    #[test]
    fn values_are_found_by_their_keys_when_they_are_equal() {
        let all = [
            json!(null),
            json!(true),
            json!(false),
            json!(0),
            json!(0.0),
            json!(-0.0),
            json!(1),
            json!(1.0),
            json!(1.5),
            json!(-1),
            json!(9_007_199_254_740_992_u64),
            json!(9_007_199_254_740_993_u64),
            json!(9_007_199_254_740_992.0),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(1.8e19),
            json!(""),
            json!("1"),
            json!("true"),
            json!("2024-05-01"),
            json!("2024-05-01T00:00:00Z"),
            json!("2024-05-01T02:00:00+02:00"),
            json!("2024-05-01T00:00:00.5Z"),
            json!("2024-5-1"),
            json!("2024-xx-01"),
            json!([1]),
            json!({"a": 1}),
        ];
        let keys = |keys: ValueKeys<'static>| keys.into_iter().flatten().collect::<Vec<_>>();
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            let (value, wanted) = (ComparedValue::of(a), ComparedValue::of(b).into_owned());
            let is_equal = value.compare(&wanted) == Some(Ordering::Equal);
            let is_alike =
                if a.is_number() { is_equal } else { a == b && !matches!(value, ComparedValue::Other) };
            let list = json!(["other", a, 7.25]);
            let plain = (!a.is_array()).then_some(a);
            for held in plain.into_iter().chain([&list]) {
                let held = DocumentValue::of(held);
                assert_eq!(held.holds_one(&keys(wanted.sought())), is_equal, "{a} and {b}");
                assert_eq!(held.holds_one(&keys(wanted.sought_to_the_letter())), is_alike, "{a} and {b}");
            }
        }
    }
}
