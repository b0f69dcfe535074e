//! YAML as the JSON value that it stands for, by the core schema of YAML 1.2, with keys as text. One document, bounded:
//! an alias is a copy, and copies of copies would grow without end.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

/// Most values of a document, copies included.
pub(super) const NODES: usize = 200_000;
/// Most bytes of text that copies may add.
const COPIED: usize = 2 * 1024 * 1024;
/// Deepest value.
const DEEPEST: usize = 100;

/// A collection that is being read.
enum OpenCollection {
    List(Vec<Value>),
    /// With the key whose value comes next.
    Map(Map<String, Value>, Option<String>),
}

struct YamlReader {
    open: Vec<(OpenCollection, usize)>,
    anchors: HashMap<usize, Value>,
    nodes: usize,
    copied: usize,
    root: Option<Value>,
}

/// Reads the first document of `text`; none when it is no YAML or too large.
pub(super) fn read(text: &str) -> Option<Value> {
    let mut reader =
        YamlReader { open: Vec::new(), anchors: HashMap::new(), nodes: 0, copied: 0, root: None };
    let mut parser = Parser::new_from_str(text);
    while reader.root.is_none() {
        let (event, _) = parser.next_event()?.ok()?;
        reader.take(event)?;
    }
    reader.root
}

impl YamlReader {
    fn take(&mut self, event: Event<'_>) -> Option<()> {
        self.nodes += 1;
        if self.nodes > NODES {
            return None;
        }
        match event {
            Event::StreamEnd | Event::DocumentEnd => None,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => Some(()),
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor)?;
                let (nodes, bytes) = size(value);
                self.nodes = self.nodes.checked_add(nodes)?;
                self.copied = self.copied.checked_add(bytes)?;
                if self.nodes > NODES || self.copied > COPIED {
                    return None;
                }
                let value = value.clone();
                self.put(value, 0)
            }
            Event::Scalar(text, style, anchor, tag) => {
                if self.expects_key() {
                    return self.put(Value::String(text.into_owned()), anchor);
                }
                let value = scalar(&text, style, tag.as_deref());
                self.put(value, anchor)
            }
            Event::SequenceStart(anchor, _) => self.open(OpenCollection::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.open(OpenCollection::Map(Map::new(), None), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let (value, anchor) = match self.open.pop()? {
                    (OpenCollection::List(items), anchor) => (Value::Array(items), anchor),
                    (OpenCollection::Map(map, _), anchor) => (Value::Object(map), anchor),
                };
                self.put(value, anchor)
            }
        }
    }

    fn open(&mut self, collection: OpenCollection, anchor: usize) -> Option<()> {
        // A key that is a collection stands for nothing in JSON.
        if self.open.len() >= DEEPEST || self.expects_key() {
            return None;
        }
        self.open.push((collection, anchor));
        Some(())
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some((OpenCollection::Map(_, None), _)))
    }

    fn put(&mut self, value: Value, anchor: usize) -> Option<()> {
        // 0 is no anchor.
        if anchor != 0 {
            let (nodes, bytes) = size(&value);
            self.nodes = self.nodes.checked_add(nodes)?;
            self.copied = self.copied.checked_add(bytes)?;
            if self.nodes > NODES || self.copied > COPIED {
                return None;
            }
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some((OpenCollection::List(items), _)) => items.push(value),
            Some((OpenCollection::Map(map, key), _)) => match key.take() {
                None => {
                    *key = Some(match value {
                        Value::String(text) => text,
                        Value::Null => String::new(),
                        Value::Bool(_) | Value::Number(_) => value.to_string(),
                        Value::Array(_) | Value::Object(_) => return None,
                    });
                }
                Some(name) if name == "<<" => merge(map, value),
                Some(name) => drop(map.insert(name, value)),
            },
        }
        Some(())
    }
}

/// What a merge key brings: what is there already stays.
fn merge(map: &mut Map<String, Value>, value: Value) {
    match value {
        Value::Object(more) => {
            for (name, value) in more {
                map.entry(name).or_insert(value);
            }
        }
        Value::Array(several) => several.into_iter().for_each(|one| merge(map, one)),
        _ => {}
    }
}

/// How many values there are, and how many bytes of text.
fn size(value: &Value) -> (usize, usize) {
    let add = |(nodes, bytes): (usize, usize), (more, text): (usize, usize)| (nodes + more, bytes + text);
    match value {
        Value::String(text) => (1, text.len()),
        Value::Array(items) => items.iter().map(size).fold((1, 0), add),
        Value::Object(map) => {
            map.iter().map(|(name, value)| add(size(value), (0, name.len()))).fold((1, 0), add)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => (1, 0),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
    if style != ScalarStyle::Plain || is_text {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().map(Number::from);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    // Rust would read words such as `inf` as numbers, too.
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
    {
        return None;
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.into());
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.into());
    }
    text.parse().ok().and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_reads_as_the_same_json() {
        let text = "
openapi: '3.0.3'
info: {title: Pets, version: 1.0.0}
numbers: [1, -2, 0x1f, 0o17, 1.5, 1e3, +7, .5]
words: [true, ~, null, yes, 1.2.3, 2020-01-01, inf, '1', !!str 5]
responses:
  200: &ok
    description: |
      fine
      really
  201: *ok
  202:
    <<: *ok
    more: true
";
        let expected = json!({
            "openapi": "3.0.3",
            "info": {"title": "Pets", "version": "1.0.0"},
            "numbers": [1, -2, 31, 15, 1.5, 1000.0, 7, 0.5],
            "words": [true, null, null, "yes", "1.2.3", "2020-01-01", "inf", "1", "5"],
            "responses": {
                "200": {"description": "fine\nreally\n"},
                "201": {"description": "fine\nreally\n"},
                "202": {"description": "fine\nreally\n", "more": true},
            },
        });
        assert_eq!(read(text), Some(expected));
    }

    #[test]
    fn copies_of_copies_come_to_an_end() {
        let level = |level: u32| {
            format!("l{level}: &l{level} [{}]\n", vec![format!("*l{}", level - 1); 10].join(", "))
        };
        let bomb = "l0: &l0 [lol, lol, lol]\n".to_owned() + &(1..12).map(level).collect::<String>();
        assert_eq!(read(&bomb), None);
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 1000].join(", "));
        assert_eq!(read(&long), None);
    }

    #[test]
    fn what_is_no_document_is_refused_whatever_it_looks_like() {
        for text in [
            String::new(),
            "a: *nowhere".to_owned(),
            "a: &a [*a]".to_owned(),
            "? [a]\n: b".to_owned(),
            "a: 'never closed".to_owned(),
            "[".repeat(100_000),
            "{a: ".repeat(100_000),
            "- ".repeat(100_000),
            "? ".repeat(100_000),
        ] {
            let shown: String = text.chars().take(20).collect();
            assert_eq!(read(&text), None, "{shown}");
        }
        assert_eq!(read(&"&a ".repeat(100_000)), Some(Value::Null));
    }
}
