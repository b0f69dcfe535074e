//! JSON that is read in part: what nobody looks at stays text.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Most items of a list that are looked at.
const ITEMS: usize = 1_000;

/// The object in a JSON text, if it is one.
pub(super) fn object<'a, T: Deserialize<'a>>(text: &'a RawValue) -> Option<T> {
    text.get().starts_with('{').then(|| serde_json::from_str(text.get()).ok()).flatten()
}

/// A part of an object, whatever it is; none when it is not there.
#[derive(Clone, Copy, Default)]
pub(super) struct RawPart<'a>(pub(super) Option<&'a RawValue>);

impl<'a> From<&'a RawValue> for RawPart<'a> {
    fn from(text: &'a RawValue) -> Self {
        Self(Some(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawPart<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'a RawValue>::deserialize(deserializer).map(Self::from)
    }
}

impl<'a> RawPart<'a> {
    /// Its text, if it is one.
    pub(super) fn text(self) -> Option<String> {
        let quoted = self.0.filter(|part| part.get().starts_with('"'))?;
        serde_json::from_str(quoted.get()).ok()
    }

    /// Its items, if it is a list.
    pub(super) fn items(self) -> Option<RawItems<'a>> {
        let list = self.0.filter(|part| part.get().starts_with('['))?;
        serde_json::from_str(list.get()).ok()
    }

    /// The object that it is.
    pub(super) fn object<T: Deserialize<'a>>(self) -> Option<T> {
        object(self.0?)
    }

    /// Whether it is there, and not null.
    pub(super) fn is_given(self) -> bool {
        self.0.is_some_and(|part| part.get() != "null")
    }
}

/// The first items of a list.
pub(super) struct RawItems<'a>(pub(super) Vec<&'a RawValue>);

impl RawItems<'_> {
    /// Whether one of them is this text.
    pub(super) fn any_text(&self, wanted: &str) -> bool {
        self.0.iter().any(|item| RawPart::from(*item).text().is_some_and(|text| text == wanted))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawItems<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ItemVisitor).map(RawItems)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() < ITEMS {
            match list.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(items),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(items)
    }
}

/// How large a JSON text is, known without making a tree of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RawMeasure {
    /// Its bytes without white space.
    pub(super) bytes: usize,
    /// Objects and lists within each other.
    pub(super) depth: usize,
    /// Values, or a few more.
    pub(super) values: usize,
}

impl RawMeasure {
    pub(super) fn of(text: &RawValue) -> Self {
        let mut measure = Self { values: 1, ..Self::default() };
        let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
        for byte in text.get().bytes() {
            if is_quoted {
                measure.bytes += 1;
                is_quoted = is_escaped || byte != b'"';
                is_escaped = byte == b'\\' && !is_escaped;
                continue;
            }
            match byte {
                b'"' => is_quoted = true,
                b'{' | b'[' => {
                    depth += 1;
                    measure.depth = measure.depth.max(depth);
                    measure.values += 1;
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b',' => measure.values += 1,
                _ => {}
            }
            measure.bytes += usize::from(!byte.is_ascii_whitespace());
        }
        measure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_text_is_measured_without_its_strings_being_taken_for_structure() {
        let measure = RawMeasure::of(&raw(r#"{"a\"[[[": [1, {"b, c": "]\\"}], "d" : 2}"#));
        assert_eq!((measure.depth, measure.bytes), (3, r#"{"a\"[[[":[1,{"b, c":"]\\"}],"d":2}"#.len()));
        assert!((5..=7).contains(&measure.values), "{measure:?}");
        assert_eq!(RawMeasure::of(&raw(&format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)))).depth, 5_000);
    }

    #[test]
    fn parts_are_read_by_what_they_are() {
        let list = raw(r#"["a", {"b": 1}, null]"#);
        let items = RawPart::from(&*list).items().unwrap();
        assert_eq!(items.0.len(), 3);
        assert!(items.any_text("a") && !items.any_text("b"));
        assert_eq!(RawPart::from(&*raw("7")).text(), None);
        assert!(RawPart::from(&*raw("{}")).items().is_none());
        let long = raw(&format!("[{}1]", "[[]],".repeat(5_000)));
        assert_eq!(RawPart::from(&*long).items().unwrap().0.len(), ITEMS);
    }
}
