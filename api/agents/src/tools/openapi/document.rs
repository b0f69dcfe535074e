//! An OpenAPI document, read and walked as plain JSON: the same code for Swagger 2.0 and OpenAPI 3.0 and 3.1.

use serde_json::{Map, Value};

use super::{super::encode, yaml};

/// References that lead to each other, at most.
const HOPS: usize = 16;
/// What can separate values in a text: more than this, and the document would take too much memory.
const SEPARATORS: usize = 400_000;
/// Longest reference that is followed, in bytes.
const REFERENCE: usize = 2_000;
/// Most paths that are looked at.
const PATHS: usize = 16_384;

/// Which dialect a document is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenApiVersion {
    /// Swagger 2.0.
    Two,
    /// OpenAPI 3.0 and 3.1, which differ in schemas only.
    Three,
}

pub(super) struct OpenApiDocument {
    root: Value,
    pub(super) version: OpenApiVersion,
}

impl OpenApiDocument {
    /// Reads JSON or YAML. What is wrong comes as a part of a sentence, without anything of the text.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, &'static str> {
        let unreadable = "is neither JSON nor YAML, or is too complex";
        let text = std::str::from_utf8(bytes).map_err(|_| unreadable)?.trim_start_matches('\u{feff}');
        let has_more = |marks: &[u8]| text.bytes().filter(|byte| marks.contains(byte)).count() > SEPARATORS;
        if has_more(b",:[{") {
            return Err(unreadable);
        }
        let json = text.trim_start().starts_with('{').then(|| serde_json::from_str(text).ok()).flatten();
        let root: Value = match json {
            Some(root) => root,
            // In YAML these stand before values, or for some, and the reader looks ahead over them.
            None if has_more(b",:[{?&*!") => return Err(unreadable),
            None => yaml::read(text).ok_or(unreadable)?,
        };
        let starts = |name: &str, versions: [&str; 2]| match &root[name] {
            Value::String(version) => versions.iter().any(|known| version.starts_with(known)),
            Value::Number(version) => versions.iter().any(|known| version.to_string().starts_with(known)),
            _ => false,
        };
        let version = if starts("swagger", ["2.", "2"]) {
            OpenApiVersion::Two
        } else if starts("openapi", ["3.", "3"]) {
            OpenApiVersion::Three
        } else {
            return Err("is no OpenAPI document of version 2.0, 3.0 or 3.1");
        };
        Ok(Self { root, version })
    }

    pub(super) fn root(&self) -> &Value {
        &self.root
    }

    /// The value itself, or the one that it refers to, in this document.
    pub(super) fn follow<'a>(&'a self, value: &'a Value) -> Option<&'a Value> {
        let mut value = value;
        for _ in 0..HOPS {
            match reference(value) {
                None => return Some(value),
                Some(reference) => value = self.at(reference)?,
            }
        }
        None
    }

    /// What a reference means, if it stays in this document.
    pub(super) fn at(&self, reference: &str) -> Option<&Value> {
        // A pointer is copied several times on its way.
        let pointer = reference.strip_prefix('#').filter(|pointer| pointer.len() < REFERENCE)?;
        self.root.pointer(pointer).or_else(|| self.root.pointer(&encode::decode(pointer)))
    }

    /// The paths, with what is common to their operations.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
        let paths = self.root["paths"].as_object().into_iter().flatten().take(PATHS);
        paths.filter_map(|(path, item)| Some((path.as_str(), self.follow(item)?.as_object()?)))
    }
}

pub(super) fn reference(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(document: &Value) -> OpenApiDocument {
        OpenApiDocument::read(document.to_string().as_bytes()).ok().unwrap()
    }

    #[test]
    fn what_yaml_looks_ahead_over_is_counted_unless_the_text_is_json() {
        let marks = |mark: &str| mark.repeat(SEPARATORS);
        for mark in ["?", "&", "*", "!"] {
            let yaml = format!("openapi: 3.0.0\ninfo: '{}'\n", marks(mark));
            assert!(OpenApiDocument::read(yaml.as_bytes()).is_err(), "{mark}");
        }
        let looks_so = format!("{{'openapi': 3.0.0, 'info': '{}'}}", marks("*"));
        assert!(OpenApiDocument::read(looks_so.as_bytes()).is_err());
        let json = json!({"openapi": "3.0.0", "info": marks("*")}).to_string();
        assert!(OpenApiDocument::read(json.as_bytes()).is_ok());
        let ordinary = format!("openapi: 3.0.0\ninfo: '{}'\n", "* *Really?* R&D!\n\n  ".repeat(500));
        assert!(OpenApiDocument::read(ordinary.as_bytes()).is_ok());
    }

    #[test]
    fn a_reference_that_is_very_long_leads_nowhere() {
        let (short, long) = ("s".repeat(REFERENCE - 2), "l".repeat(REFERENCE - 1));
        let document = read(&json!({"openapi": "3.0.0", &short: 1, &long: 2}));
        assert_eq!(document.at(&format!("#/{short}")), Some(&json!(1)));
        assert_eq!(document.at(&format!("#/{long}")), None);
        assert_eq!(document.follow(&json!({"$ref": format!("#/{long}")})), None);
    }

    #[test]
    fn only_so_many_paths_are_looked_at() {
        let paths: Map<_, _> = (0..=PATHS).map(|n| (format!("/{n}"), json!({}))).collect();
        assert_eq!(read(&json!({"openapi": "3.0.0", "paths": paths})).paths().count(), PATHS);
    }
}
