//! The bodies of prompts. What they have in common is that the template and its variables agree.

use std::fmt::Write;

use lectern_shared::{
    db::Json,
    model::prompt::Prompt,
    prompt::{LONGEST_NAME, Template, is_variable_name},
};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    error::{ApiError, FieldError},
    extract::{Fields, FromFields},
    routes::NAME,
};

/// Longest template, in characters.
const TEMPLATE: usize = 100_000;
/// Most variables of a prompt.
const VARIABLES: usize = 100;
/// Names that a message lists, at most.
const LISTED: usize = 10;

/// A new prompt. Its template and its variables have to agree: each variable that the template uses is declared, and each that
/// is declared is used.
#[derive(ToSchema)]
pub(super) struct NewPrompt {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    pub(super) name: String,
    /// The text. `{name}` stands for a variable's value, `{{` for `{` and `}}` for `}`. Python's other forms, such as `{}`,
    /// `{0}`, `{a.b}`, `{a[0]}`, `{a!r}` and `{a:>3}`, are refused.
    #[schema(min_length = 1, max_length = 100_000, pattern = r"\S")]
    pub(super) template: String,
    /// The names of the variables, each once: Unicode letters, digits and `_`, not beginning with a digit, at most 100
    /// characters each.
    #[schema(max_items = 100)]
    pub(super) input_variables: Vec<String>,
}

impl FromFields for NewPrompt {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
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

/// What is to be different about a prompt. What is left out stays as it is.
#[derive(ToSchema)]
#[schema(as = PromptChange)]
pub(super) struct Change {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", nullable = false)]
    name: Option<String>,
    /// The text. It has to agree with the variables as they are afterwards.
    #[schema(min_length = 1, max_length = 100_000, pattern = r"\S", nullable = false)]
    template: Option<String>,
    /// The names of the variables, all of them: they take the place of the earlier ones, and have to agree with the template
    /// as it is afterwards.
    #[schema(max_items = 100, nullable = false)]
    input_variables: Option<Vec<String>>,
}

impl FromFields for Change {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
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

impl Change {
    /// The prompt with this change.
    ///
    /// # Errors
    /// When its template and its variables would not agree. The field that is named is one of those that were given.
    pub(super) fn apply(self, before: &Prompt) -> Result<Prompt, ApiError> {
        let path = if self.input_variables.is_some() { "input_variables" } else { "template" };
        let after = Prompt {
            name: self.name.unwrap_or_else(|| before.name.clone()),
            template: self.template.unwrap_or_else(|| before.template.clone()),
            input_variables: self.input_variables.map_or_else(|| before.input_variables.clone(), Json),
            ..before.clone()
        };
        let template = Template::parse(&after.template).map_err(|error| {
            tracing::error!(prompt = %before.id, %error, "a stored template cannot be read");
            ApiError::internal()
        })?;
        let problems = problems(path, &template, &after.input_variables.0);
        if problems.is_empty() { Ok(after) } else { Err(ApiError::invalid(problems)) }
    }
}

/// Reads the template, which is there when it is a good one.
fn template(fields: &mut Fields<'_>) -> Option<String> {
    let text = fields.text("template", TEMPLATE);
    let given = fields.get("template").and_then(Value::as_str);
    // What was refused already is not refused once more for what it is not.
    if given != Some(&text) || text.trim().is_empty() {
        return None;
    }
    if let Err(error) = Template::parse(&text) {
        fields.refuse("template", error);
        return None;
    }
    Some(text)
}

/// Reads the names of the variables, which are there when they are good ones.
fn variables(fields: &mut Fields<'_>) -> Option<Vec<String>> {
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
fn agree(fields: &mut Fields<'_>, template: Option<&String>, variables: Option<&[String]>) {
    let (Some(text), Some(variables)) = (template, variables) else { return };
    if let Ok(template) = Template::parse(text) {
        for FieldError { path, message } in problems("input_variables", &template, variables) {
            fields.refuse(&path, message);
        }
    }
}

/// In what a template and its variables differ, as it is said of one of the two fields.
fn problems(path: &str, template: &Template, variables: &[String]) -> Vec<FieldError> {
    let Some(found) = template.disagreement(variables) else { return Vec::new() };
    let (undeclared, unused) = match path {
        "template" => (
            "uses variables that input_variables does not name",
            "must use every variable that input_variables names; it lacks",
        ),
        _ => (
            "must name every variable of the template; it lacks",
            "names variables that the template does not use",
        ),
    };
    [(undeclared, found.undeclared), (unused, found.unused)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| FieldError {
            path: path.to_owned(),
            message: format!("{what}: {}", several(&names)),
        })
        .collect()
}

fn several(names: &[String]) -> String {
    let mut text = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = names.len().checked_sub(LISTED) {
        // Writing to a string cannot fail.
        let _ = write!(text, " and {more} more");
    }
    text
}
