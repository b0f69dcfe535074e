//! The fields of a form as the JSON that other clients send, so that one reader checks both.
//!
//! A browser sends texts only, so the name of an input says what its text is: `limit:number`, `hasMemory:boolean`, `metadata:json`,
//! `origins:lines` (one a line), `origins:given-lines` for such a list that is left out when there is no line in it, `ids:list` (one an
//! input), `end:day` for the end of a day in UTC, `description:nullable` for a text that is taken away by emptying it, `metadata:object`
//! for JSON that is, and `name:text` for a text that is told although it is left empty, so that it is refused. A name with dots is a field
//! of an object. What else is left empty is left out. Of several inputs with one name the last one counts, so that a hidden one can say
//! what an unchecked box means.

use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::json::{self, MAX_MEMBERS};

/// Objects within objects, at most.
const DEEPEST: usize = 4;
/// What stands behind a day in its last second.
const DAY_END: &str = "T23:59:59Z";

/// The fields of a form; none when it has more inputs than an object may have members.
pub(super) fn to_json(bytes: &[u8]) -> Option<Value> {
    let mut fields = Map::new();
    for (number, (name, text)) in form_urlencoded::parse(bytes).enumerate() {
        if number == MAX_MEMBERS {
            return None;
        }
        let (path, kind) = name.split_once(':').unwrap_or((&name, ""));
        let Some(given) = GivenInput::of(kind, &text) else { continue };
        let mut steps: Vec<&str> = path.splitn(DEEPEST, '.').collect();
        let Some(last) = steps.pop() else { continue };
        let mut object = Some(&mut fields);
        for step in steps {
            object = object.and_then(|object| {
                object.entry(step).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
            });
        }
        if let Some(object) = object {
            given.put(object, last);
        }
    }
    Some(Value::Object(fields))
}

/// What an input says.
enum GivenInput {
    /// The value of its field.
    Value(Value),
    /// An item of its field's list; none for a list that may stay empty.
    Item(Option<String>),
}

impl GivenInput {
    /// Nothing, when it is left empty.
    fn of(kind: &str, text: &str) -> Option<Self> {
        let trimmed = text.trim();
        let value = match kind {
            "list" => return Some(Self::Item(Some(trimmed.to_owned()).filter(|item| !item.is_empty()))),
            "given-lines" if trimmed.is_empty() => return None,
            "lines" | "given-lines" => {
                json!(trimmed.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>())
            }
            "text" => json!(text),
            "nullable" if trimmed.is_empty() => Value::Null,
            "object" if trimmed.is_empty() => json!({}),
            _ if trimmed.is_empty() => return None,
            // What is no day makes no time either, and the reader of the field says so.
            "day" => json!(format!("{trimmed}{DAY_END}")),
            "boolean" => json!(matches!(trimmed, "true" | "on")),
            // What cannot be read is passed on as the text that it is: the reader of the field says what is wrong with it.
            "number" => json::parse(trimmed.as_bytes()).unwrap_or_else(|_| json!(trimmed)),
            // Blank lines and all: what is wrong is said to be in a line.
            "json" | "object" => json::parse(trimmed.as_bytes()).unwrap_or_else(|_| json!(text)),
            // As it was typed, spaces and all: it may be a password.
            _ => json!(text),
        };
        Some(Self::Value(value))
    }

    fn put(self, object: &mut Map<String, Value>, name: &str) {
        match self {
            Self::Value(value) => drop(object.insert(name.to_owned(), value)),
            Self::Item(item) => {
                let list = object.entry(name).or_insert_with(|| json!([]));
                if let (Value::Array(list), Some(item)) = (list, item) {
                    list.push(json!(item));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Value {
        to_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_form_has_so_many_inputs_at_most() {
        assert!(to_json("ids:list=a&".repeat(MAX_MEMBERS).as_bytes()).is_some());
        assert!(to_json("ids:list=a&".repeat(MAX_MEMBERS + 1).as_bytes()).is_none());
    }

    #[test]
    fn a_form_says_what_the_json_would() {
        for (sent, read) in [
            ("name=A+b%26c&description=", json!({"name": "A b&c"})),
            ("description:nullable=", json!({"description": null})),
            ("limit:number=10&rate:number=x", json!({"limit": 10, "rate": "x"})),
            ("on:boolean=false&on:boolean=true&off:boolean=false", json!({"on": true, "off": false})),
            ("llm.model=m&llm.temperature:number=0.5", json!({"llm": {"model": "m", "temperature": 0.5}})),
            ("ids:list=a&ids:list=b&none:list=", json!({"ids": ["a", "b"], "none": []})),
            ("origins:lines=a%0D%0A%0D%0A+b", json!({"origins": ["a", "b"]})),
            ("origins:given-lines=+%0D%0A+a", json!({"origins": ["a"]})),
            ("none:lines=%0D%0A&origins:given-lines=%0D%0A", json!({"none": []})),
            ("end:day=+2026-01-31&none:day=+", json!({"end": "2026-01-31T23:59:59Z"})),
            ("metadata:json=%7B%22a%22%3A1%7D&bad:json=%7B", json!({"metadata": {"a": 1}, "bad": "{"})),
            ("bad:object=%0D%0A+%7B+&n:number=+x+", json!({"bad": "\r\n { ", "n": "x"})),
            ("metadata:object=%7B%22a%22%3A1%7D", json!({"metadata": {"a": 1}})),
            ("metadata:object=+", json!({"metadata": {}})),
            ("password=+secret+", json!({"password": " secret "})),
            ("name:text=++&other:text=", json!({"name": "  ", "other": ""})),
            ("llm.provider=&llm.model=", json!({})),
            ("", json!({})),
        ] {
            assert_eq!(form(sent), read, "{sent}");
        }
    }

    #[test]
    fn no_name_brings_it_out_of_step() {
        assert_eq!(form("a=1&a.b=2"), json!({"a": "1"}));
        assert_eq!(form("a.b.c.d.e.f=1"), json!({"a": {"b": {"c": {"d.e.f": "1"}}}}));
        assert_eq!(form("=1&.=2&:list=3"), json!({"": "1"}));
    }
}
