//! JSON of any shape, but for objects that have more members than anything that is meant.

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// Members that an object may have. Each costs many times what an element of a list does, in memory and in time: without a bound, a body of
/// a hundred thousand of them keeps a core for 50 ms.
pub(super) const MAX_MEMBERS: usize = 10_000;
/// Lists and objects within each other, at most: the library reads no more.
pub(super) const MAX_DEPTH: usize = 127;

/// How much of a text becomes a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueBounds {
    /// Members that an object may have: where one has more, the text is refused.
    pub(crate) members: usize,
    /// Elements of a list that are taken over; those behind them are passed over.
    pub(crate) elements: usize,
    /// Lists and objects within each other whose content is taken over; deeper ones are as good as empty.
    pub(crate) depth: usize,
}

impl ValueBounds {
    /// All of a body.
    pub(super) const BODY: Self = Self { members: MAX_MEMBERS, elements: usize::MAX, depth: usize::MAX };

    /// The value of a whole text.
    ///
    /// # Errors
    /// Of the category `Data` when an object has more members than it may; what comes after is not looked at.
    pub(crate) fn parse(self, bytes: &[u8]) -> serde_json::Result<Value> {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let value = BoundedValue(self).deserialize(&mut reader)?;
        reader.end()?;
        Ok(value)
    }

    /// What is to be said of a text that is not taken, such as "is not valid JSON".
    pub(crate) fn problem(self, error: &serde_json::Error) -> String {
        // What the library refuses by its own limits has no category of its own.
        let cause = error.to_string();
        // Nothing else is wrong with data that may be anything.
        if error.is_data() {
            format!("has an object with more than {} members", self.members)
        } else if cause.starts_with("recursion limit exceeded") {
            format!("is nested more than {MAX_DEPTH} deep")
        } else if cause.starts_with("number out of range") {
            "has a number that is too large for a 64-bit floating point number".to_owned()
        } else {
            "is not valid JSON".to_owned()
        }
    }

    /// Those of what is in a list or an object.
    const fn within(self) -> Self {
        Self { depth: self.depth.saturating_sub(1), ..self }
    }
}

/// The value of a whole text, as [`ValueBounds::parse`] makes it of a body.
pub(super) fn parse(bytes: &[u8]) -> serde_json::Result<Value> {
    ValueBounds::BODY.parse(bytes)
}

/// The value of a text that somebody wrote into a field.
///
/// # Errors
/// What is to be said of a text that is none, with the place and what is wrong there, such as "is not valid JSON (line 1, column 9: …)".
pub(crate) fn read_text(text: &str) -> Result<Value, String> {
    parse(text.as_bytes()).map_err(|error| {
        let (problem, line) = (ValueBounds::BODY.problem(&error), error.line());
        // The library counts bytes, and people characters.
        let written = text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
        let before = written.floor_char_boundary(error.column().saturating_sub(1));
        let column = written[..before].chars().count() + 1;
        match fault(&error) {
            Some(fault) => format!("{problem} (line {line}, column {column}: {fault})"),
            None => format!("{problem} (line {line}, column {column})"),
        }
    })
}

/// What is wrong at the place of an error, for people, as far as the library tells.
fn fault(error: &serde_json::Error) -> Option<&'static str> {
    let told = error.to_string();
    let told = told.rsplit_once(" at line ").map_or(told.as_str(), |(told, _)| told);
    Some(match told {
        "trailing comma" => "a comma stands before the closing bracket",
        "key must be a string" => "names stand in double quotes",
        "expected value" | "expected ident" => "there is no value; texts stand in double quotes",
        "expected `:`" => "a colon is missing behind a name",
        "expected `,` or `}`" | "expected `,` or `]`" => "a comma or the closing bracket is missing",
        "trailing characters" => "something stands behind the end",
        "invalid escape" => "a backslash in a text is written twice",
        "EOF while parsing a string" => "a text has no closing quotation mark",
        "EOF while parsing an object" | "EOF while parsing a list" | "EOF while parsing a value" => {
            "it ends before its brackets are closed"
        }
        told if told.starts_with("control character") => "a line break in a text is written as \\n",
        _ => return None,
    })
}

struct BoundedValue(ValueBounds);

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
        let Self(bounds) = self;
        let most = if bounds.depth == 0 { 0 } else { bounds.elements };
        let mut list = Vec::new();
        while list.len() < most {
            match elements.next_element_seed(Self(bounds.within()))? {
                Some(element) => list.push(element),
                None => return Ok(list.into()),
            }
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let Self(bounds) = self;
        let mut object = Map::new();
        if bounds.depth == 0 {
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(object.into());
        }
        while let Some(name) = members.next_key::<String>()? {
            if object.len() == bounds.members {
                return Err(A::Error::custom("too many members"));
            }
            object.insert(name, members.next_value_seed(Self(bounds.within()))?);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn of_a_text_that_is_no_json_it_is_said_where_and_why() {
        assert_eq!(read_text(" {\"year\": 2026}\r\n").unwrap(), json!({"year": 2026}));
        for (text, told) in [
            ("{\"openApiUrl\": \"x\", }", "line 1, column 21: a comma stands before the closing bracket"),
            ("{year: 2026}", "line 1, column 2: names stand in double quotes"),
            ("{\"name\": \"B\u{e4}rbel\",}", "line 1, column 19: a comma stands before the closing bracket"),
            (
                "{\r\n  \"a\": 1\r\n  \"b\": 2\r\n}",
                "line 3, column 3: a comma or the closing bracket is missing",
            ),
            ("{\"a\": x}", "line 1, column 7: there is no value; texts stand in double quotes"),
            ("{\"a\" 1}", "line 1, column 6: a colon is missing behind a name"),
            ("{} {}", "line 1, column 4: something stands behind the end"),
            ("{\"a\": 1", "line 1, column 7: it ends before its brackets are closed"),
        ] {
            assert_eq!(read_text(text).unwrap_err(), format!("is not valid JSON ({told})"), "{text}");
        }
        let many = read_text(&object(MAX_MEMBERS + 1)).unwrap_err();
        assert!(many.starts_with("has an object with more than 10000 members (line 1, column "), "{many}");
    }

    #[test]
    fn an_object_with_more_members_than_anything_has_is_refused_wherever_it_is() {
        for text in [object(MAX_MEMBERS + 1), format!("[{}]", object(MAX_MEMBERS + 1))] {
            assert!(parse(text.as_bytes()).unwrap_err().is_data());
        }
    }

    #[test]
    fn what_is_longer_or_deeper_than_wanted_is_passed_over_and_has_to_be_json_still() {
        let few = ValueBounds { members: 2, elements: 2, depth: 2 };
        let read = few.parse(br#"{"a": [1, 2, 3, [4]], "b": {"c": {"d": 1, "e": 2, "f": 3}, "g": [{}]}}"#);
        assert_eq!(read.unwrap(), json!({"a": [1, 2], "b": {"c": {}, "g": []}}));
        for text in ["[1, 2, 3,]", "[1, 2, no]", "[[[1,]]]", "[[{1: 2}]]"] {
            let error = few.parse(text.as_bytes()).unwrap_err();
            assert_eq!(few.problem(&error), "is not valid JSON", "{text}");
        }
        let error = few.parse(br#"{"a": 1, "b": 2, "c": 3}"#).unwrap_err();
        assert_eq!(few.problem(&error), "has an object with more than 2 members");
    }
}
