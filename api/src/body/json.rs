//! JSON of any shape, but for objects that have more members than anything that is meant.

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// Members that an object may have. Each costs many times what an element of a list does, in memory and in time: without a bound, a body of
/// a hundred thousand of them keeps a core for 50 ms.
pub(super) const MAX_MEMBERS: usize = 10_000;
/// Lists and objects within each other, at most: the library reads no more.
pub(super) const MAX_DEPTH: usize = 127;

/// The value of a whole text.
///
/// # Errors
/// Of the category `Data` when an object has more than [`MAX_MEMBERS`]; what comes after is not looked at.
pub(super) fn parse(bytes: &[u8]) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = BoundedValue.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

struct BoundedValue;

impl<'de> DeserializeSeed<'de> for BoundedValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(Self)? {
            list.push(element);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.len() == MAX_MEMBERS {
                return Err(A::Error::custom("too many members"));
            }
            object.insert(name, members.next_value_seed(Self)?);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(members: usize) -> String {
        let members: Vec<String> = (0..members).map(|n| format!("\"m{n}\":{n}")).collect();
        format!("{{{}}}", members.join(","))
    }

    #[test]
    fn what_is_read_is_what_the_library_reads() {
        for text in [
            r#"{"b": [1, -2, 3.5, 1e300, null, true, false, "x\n\u00e9", {}, []], "a": {"b": "c"}, "a": 2}"#,
            "18446744073709551615",
            "-9223372036854775808",
            "1E400",
            "\"a\" ",
            "",
            "{",
            "{\"a\" 1}",
            "1 2",
            "[1,]",
            "nul",
            &object(MAX_MEMBERS),
            &format!("{}1{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH)),
            &"[".repeat(MAX_DEPTH + 1),
        ] {
            let (ours, theirs) = (parse(text.as_bytes()), serde_json::from_str::<Value>(text));
            match (ours, theirs) {
                (Ok(ours), Ok(theirs)) => assert_eq!(ours.to_string(), theirs.to_string(), "{text}"),
                (Err(ours), Err(theirs)) => assert_eq!(ours.to_string(), theirs.to_string(), "{text}"),
                (ours, theirs) => panic!("{text}: {ours:?} and {theirs:?}"),
            }
        }
    }

    #[test]
    fn an_object_with_more_members_than_anything_has_is_refused_wherever_it_is() {
        for text in [object(MAX_MEMBERS + 1), format!("[{}]", object(MAX_MEMBERS + 1))] {
            assert!(parse(text.as_bytes()).unwrap_err().is_data());
        }
    }
}
