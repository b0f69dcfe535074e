//! What is read of the bodies of prompts, besides plain texts.

use serde_json::Value;

use super::{NewPrompt, PromptChange, problems};
use crate::{
    error::FieldError,
    fields::{FieldRule, JsonFields},
};
use lectern_agents::prompt::{LONGEST_NAME, PromptTemplate, is_variable_name};

/// Reads the template, which is there when it is a good one.
pub(super) fn template(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    let text = fields.text(rule.name, rule.max_length);
    let given = fields.get(rule.name).and_then(Value::as_str);
    // What was refused already is not refused once more for what it is not.
    if given != Some(&text) || text.trim().is_empty() {
        return None;
    }
    if let Err(error) = PromptTemplate::parse(&text) {
        fields.refuse(rule.name, error);
        return None;
    }
    Some(text)
}

/// Reads the names of the variables, which are there when they are good ones.
pub(super) fn variables(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Vec<String>> {
    if fields.get(rule.name).is_none() {
        fields.refuse(rule.name, "is required: the names that the template uses");
        return None;
    }
    let items = fields.array(rule.name, rule.max_items, "strings")?;
    let mut names: Vec<String> = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let path = format!("{}.{at}", rule.name);
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

/// Notes in what the template and the variables of a new prompt differ, when both are good ones.
pub(super) fn check_new(new: &NewPrompt, fields: &mut JsonFields<'_>) {
    // What was refused is empty; a good template is not, and good variables are as many as were given.
    let template = Some(&new.template).filter(|template| !template.is_empty());
    let given = fields.get("input_variables").and_then(Value::as_array).map(Vec::len);
    let variables = Some(new.input_variables.as_slice()).filter(|names| given == Some(names.len()));
    agree(fields, template, variables);
}

/// The same of a change that has both.
pub(super) fn check_change(change: &PromptChange, fields: &mut JsonFields<'_>) {
    agree(fields, change.template.as_ref(), change.input_variables.as_deref());
}

/// Notes in what a template and its variables differ, when both are given.
fn agree(fields: &mut JsonFields<'_>, template: Option<&String>, variables: Option<&[String]>) {
    let (Some(text), Some(variables)) = (template, variables) else { return };
    if let Ok(template) = PromptTemplate::parse(text) {
        for FieldError { path, message, .. } in problems("input_variables", &template, variables) {
            fields.refuse(&path, message);
        }
    }
}
