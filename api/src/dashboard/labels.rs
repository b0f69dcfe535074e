//! What the fields of forms are called where a failure names them.

use std::borrow::Cow;

use super::{sources, values::VALUES};

/// The fields of the forms, but for those of a source's configuration.
const LABELS: &[(&str, &str)] = &[
    ("accent", "Colour of its buttons"),
    ("access", "Who may open it"),
    ("agentId", "Agent"),
    ("agentVersion", "The agent"),
    ("answers", "Answers"),
    ("authorization", "Access"),
    ("authorization.password", "Password"),
    ("authorization.token", "Token"),
    ("authorization.type", "It is opened by"),
    ("authorization.username", "Name to sign in with"),
    ("collection", "Collection"),
    ("collectionId", "Collection"),
    ("collectionIds", "Collection"),
    ("content", "Text"),
    ("currentPassword", "The password so far"),
    ("deleteLimit", "Per cent that may be deleted without a question"),
    ("description", "Description"),
    ("document", "Document"),
    ("email", "E-mail"),
    ("evaluationId", "Evaluation"),
    ("events", "It is told when"),
    ("every", "It runs"),
    ("expiresAt", "Last day"),
    ("file", "File"),
    ("from_page", "First page"),
    ("greeting", "What is said before the first question"),
    ("input_variables", "Variables"),
    ("judgeAgentId", "The agent that says whether answers are right"),
    ("llm.api_key", "Key"),
    ("llm.base_url", "Address of the provider"),
    ("llm.max_cost", "Most that one answer may cost"),
    ("llm.max_steps", "Most questions to the model for one answer"),
    ("llm.max_tokens", "Most tokens of an answer"),
    ("llm.model", "Model"),
    ("llm.provider", "Provider"),
    ("llm.temperature", "Temperature"),
    ("metadata", "Metadata"),
    ("mode", "Search"),
    ("name", "Name"),
    ("origins", "Sites"),
    ("password", "Password"),
    ("place", "What answers"),
    ("promptId", "Prompt"),
    ("question", "Question"),
    ("questions", "Questions to choose from"),
    ("quote", "Words of it that answer"),
    ("ratePerMinute", "Requests a minute"),
    ("role", "Role"),
    ("secretAccessKey", "Secret"),
    ("slug", "The last part of its address"),
    ("template", "Text"),
    ("text", "What was good, or wrong"),
    ("title", "Title"),
    ("to_page", "Last page"),
    ("token", "The code of the invitation"),
    ("type", "Type"),
    ("url", "Address"),
    ("workspace", "Workspace"),
];

/// What one line is called of the fields that have several.
const LINES: &[(&str, &str)] =
    &[("input_variables", "Variable"), ("origins", "Site"), ("questions", "Question")];

fn find(labels: &[(&str, &'static str)], path: &str) -> Option<&'static str> {
    labels.iter().find(|(name, _)| *name == path).map(|(_, label)| *label)
}

/// What a field, or a line of one, is called on the pages.
pub(super) fn field_label(path: &str) -> Cow<'_, str> {
    if let Some((VALUES, name)) = path.split_once('.') {
        return Cow::Borrowed(name);
    }
    let line = path.rsplit_once('.').and_then(|(list, at)| Some((list, at.parse::<u32>().ok()?)));
    if let Some((label, at)) = line.and_then(|(list, at)| Some((find(LINES, list)?, at))) {
        return Cow::Owned(format!("{label} {}", at.saturating_add(1)));
    }
    let list = line.map_or(path, |(list, _)| list);
    // What opens a source is called what opens a document is.
    let own = list.strip_prefix("config.").unwrap_or(list);
    if let Some(label) = find(&sources::CONFIG, list).or_else(|| find(LABELS, own)) {
        return Cow::Borrowed(label);
    }
    // A key of a field that is JSON.
    let inner = path.split_once('.').and_then(|(whole, inner)| Some((find(LABELS, whole)?, inner)));
    inner.map_or(Cow::Borrowed(path), |(label, inner)| Cow::Owned(format!("{label} {inner}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_prompt_is_called_as_its_builder_calls_it() {
        for (path, label) in [("values.company", "company"), ("values.name", "name"), ("name", "Name")] {
            assert_eq!(field_label(path), label);
        }
    }

    #[test]
    fn a_line_is_called_by_its_number_and_what_opens_a_source_as_elsewhere() {
        for (path, label) in [
            ("origins.0", "Site 1"),
            ("input_variables.11", "Variable 12"),
            ("config.include.2", "Only what is like this becomes documents"),
            ("config.authorization.type", "It is opened by"),
            ("config.url", "Address"),
            ("line 3", "line 3"),
            ("metadata.app_id", "Metadata app_id"),
        ] {
            assert_eq!(field_label(path), label);
        }
    }
}
