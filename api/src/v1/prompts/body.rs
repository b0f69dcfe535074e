//! The bodies of prompts.

use lectern_agents::prompt::{LONGEST_NAME, PromptTemplate, is_variable_name};
use serde_json::Value;

use crate::{
    error::FieldError,
    extract::{FromFields, JsonFields},
    services::prompts::{NewPrompt, PromptChange, problems},
    v1::NAME,
};

/// Longest template, in characters.
const TEMPLATE: usize = 100_000;
/// Most variables of a prompt.
const VARIABLES: usize = 100;

impl FromFields for NewPrompt {
    fn from_fields(fields: &mut JsonFields<'_>) -> Self {
        let name = fields.text("name", NAME);
        let (template, input_variables) = (template(fields), variables(fields));
        agree(fields, template.as_ref(), input_variables.as_deref());
        Self {
            name,
            template: template.unwrap_or_default(),
            input_variables: input_variables.unwrap_or_default(),
        }
    }
}

impl FromFields for PromptChange {
    fn from_fields(fields: &mut JsonFields<'_>) -> Self {
        const NAMES: [&str; 3] = ["name", "template", "input_variables"];
        fields.only(&NAMES);
        fields.refuse_nulls(&NAMES);
        let [name, template, input_variables] = NAMES.map(|name| fields.get(name).is_some());
        let change = Self {
            name: name.then(|| fields.text("name", NAME)),
            template: template.then(|| self::template(fields)).flatten(),
            input_variables: input_variables.then(|| variables(fields)).flatten(),
        };
        agree(fields, change.template.as_ref(), change.input_variables.as_deref());
        change
    }
}

/// Reads the template, which is there when it is a good one.
fn template(fields: &mut JsonFields<'_>) -> Option<String> {
    let text = fields.text("template", TEMPLATE);
    let given = fields.get("template").and_then(Value::as_str);
    // What was refused already is not refused once more for what it is not.
    if given != Some(&text) || text.trim().is_empty() {
        return None;
    }
    if let Err(error) = PromptTemplate::parse(&text) {
        fields.refuse("template", error);
        return None;
    }
    Some(text)
}

/// Reads the names of the variables, which are there when they are good ones.
fn variables(fields: &mut JsonFields<'_>) -> Option<Vec<String>> {
    let items = match fields.get("input_variables") {
        Some(Value::Array(items)) if items.len() <= VARIABLES => items,
        other => {
            match other {
                None => fields.refuse("input_variables", "is required: the names that the template uses"),
                Some(Value::Array(_)) => {
                    fields.refuse("input_variables", format_args!("must have at most {VARIABLES} items"));
                }
                Some(_) => fields.refuse("input_variables", "must be an array of strings"),
            }
            return None;
        }
    };
    let mut names: Vec<String> = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let path = format!("input_variables.{at}");
        match item {
            Value::String(name) if name.chars().count() > LONGEST_NAME => {
                fields.refuse(&path, format_args!("must have at most {LONGEST_NAME} characters"));
            }
            Value::String(name) if !is_variable_name(name) => {
                fields.refuse(&path, "must be letters, digits and `_`, and not begin with a digit");
            }
            Value::String(name) if names.contains(name) => {
                fields.refuse(&path, format_args!("must not be given twice: `{name}`"));
            }
            Value::String(name) => names.push(name.clone()),
            _ => fields.refuse(&path, "must be a string"),
        }
    }
    (names.len() == items.len()).then_some(names)
}

/// Notes in what a template and its variables differ, when both are given.
fn agree(fields: &mut JsonFields<'_>, template: Option<&String>, variables: Option<&[String]>) {
    let (Some(text), Some(variables)) = (template, variables) else { return };
    if let Ok(template) = PromptTemplate::parse(text) {
        for FieldError { path, message } in problems("input_variables", &template, variables) {
            fields.refuse(&path, message);
        }
    }
}
