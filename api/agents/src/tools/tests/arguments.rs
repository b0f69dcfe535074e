//! Checks of arguments.

use serde_json::{Value, json};

use super::{super::arguments::check, support::object};

fn told(arguments: Value) -> String {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "on": {"type": "boolean"},
            "list": {"type": "array"},
            "more": {"type": "object", "required": ["a", "b"]},
            "kind": {"type": "string", "enum": ["cat", "dog"]},
            "level": {"type": ["integer", "null"], "enum": [1, 2, null]},
            "any": {"enum": [true, 0.5, "low"]},
            "either": {"type": ["string", "null"]},
            "free": {},
        },
        "required": ["name"],
    });
    check(&schema, &object(arguments)).map_or_else(|error| error.to_string(), |()| String::new())
}

#[test]
fn what_fits_passes() {
    for arguments in [
        json!({"name": "x"}),
        json!({"name": "x", "count": 5.0, "share": 1, "on": false, "list": [], "more": {}, "kind": "cat", "free": [1]}),
        json!({"name": "x", "count": null, "either": null, "unknown": 1}),
    ] {
        assert_eq!(told(arguments.clone()), "", "{arguments}");
    }
}

#[test]
fn what_does_not_fit_is_told_all_at_once() {
    for (arguments, message) in [
        (json!({}), "`name` is required: a string."),
        (json!({"name": null}), "`name` is required: a string."),
        (
            json!({"name": 5, "count": 1.5, "share": "1", "on": "true"}),
            "`name` must be a string; `count` must be a whole number; `share` must be a number; `on` must be true or false.",
        ),
        (json!({"name": "x", "list": {}, "more": []}), "`list` must be an array; `more` must be an object."),
        (
            json!({"name": "x", "kind": "cow", "either": 1}),
            "`kind` must be one of `cat`, `dog`; `either` must be a string.",
        ),
        (
            json!({"name": "x", "level": 3, "any": "high"}),
            "`level` must be one of `1`, `2`; `any` must be one of `true`, `0.5`, `low`.",
        ),
        (
            json!({"name": 1, "count": "x", "share": "x", "on": 1, "list": 1, "more": 1, "kind": 1}),
            "`name` must be a string; `count` must be a whole number; `share` must be a number; `on` must be true or false; \
             `list` must be an array; and 2 more.",
        ),
    ] {
        assert_eq!(told(arguments), format!("The arguments are wrong: {message}"));
    }
}
