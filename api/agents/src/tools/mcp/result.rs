//! What a call gave, as text for a model.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    super::{ToolError, text},
    raw::{self, RawPart},
};

/// Longest text that is told of something that is not shown, in characters.
const SHOWN: usize = 300;

/// A result, of which only that is read which a model is told.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(borrow, default)]
    result_type: RawPart<'a>,
    #[serde(borrow, default)]
    is_error: RawPart<'a>,
    #[serde(borrow, default)]
    content: RawPart<'a>,
    #[serde(borrow, default)]
    structured_content: RawPart<'a>,
}

/// One part of the content, of any kind.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContentItem<'a> {
    #[serde(borrow, default)]
    r#type: RawPart<'a>,
    #[serde(borrow, default)]
    text: RawPart<'a>,
    #[serde(borrow, default)]
    resource: RawPart<'a>,
    #[serde(borrow, default)]
    mime_type: RawPart<'a>,
    #[serde(borrow, default)]
    name: RawPart<'a>,
    #[serde(borrow, default)]
    uri: RawPart<'a>,
}

/// The text of a result.
///
/// # Errors
/// [`ToolError::Reported`] when the tool says that it failed, [`ToolError::Failed`] when there is no result yet, or none that
/// can be understood.
pub(super) fn read(result: &RawValue) -> Result<String, ToolError> {
    let Some(result) = raw::object::<CallResult<'_>>(result) else {
        return Err(ToolError::Failed("The MCP server gave a result that cannot be understood.".to_owned()));
    };
    match result.result_type.text().as_deref() {
        None | Some("complete") => {}
        Some("input_required") => {
            let told =
                "The MCP server wants something of a person before it answers, which is not possible here.";
            return Err(ToolError::Failed(told.to_owned()));
        }
        Some(_) => {
            let told = "The MCP server does not answer at once, and its answer is not waited for here.";
            return Err(ToolError::Failed(told.to_owned()));
        }
    }
    let said = text::cut(content(&result), text::MOST);
    let is_error = result.is_error.0.is_some_and(|part| part.get() == "true");
    if is_error { Err(ToolError::Reported(said)) } else { Ok(said) }
}

fn content(result: &CallResult<'_>) -> String {
    let items = result.content.items().map(|items| items.0).unwrap_or_default();
    let (mut parts, mut has_text) = (Vec::new(), false);
    for item in items {
        let item: ContentItem<'_> = raw::object(item).unwrap_or_default();
        let (said, is_text) = item.told();
        has_text |= is_text;
        parts.push(said);
    }
    // The same as in the text, if there is text.
    if let Some(structured) = result.structured_content.0.filter(|_| !has_text)
        && result.structured_content.is_given()
    {
        parts.push(structured.get().to_owned());
    }
    if parts.is_empty() { "The tool gave no content.".to_owned() } else { parts.join("\n") }
}

impl ContentItem<'_> {
    /// What a model is told of it, and whether it holds text.
    fn told(&self) -> (String, bool) {
        let resource: ContentItem<'_> = self.resource.object().unwrap_or_default();
        let (own, inner) = (self.text.text(), resource.text.text());
        let is_text = own.is_some() || inner.is_some();
        let told = match self.r#type.text().unwrap_or_default().as_str() {
            "text" => own.unwrap_or_default(),
            "resource" => inner.unwrap_or_else(|| resource.hidden("A file")),
            "resource_link" => format!(
                "[A link: {}, {}]",
                shown(self.name, "without a name"),
                shown(self.uri, "without an address")
            ),
            "image" => self.hidden("An image"),
            "audio" => self.hidden("A recording"),
            _ => "[Content of an unknown kind, which is not shown]".to_owned(),
        };
        (told, is_text)
    }

    fn hidden(&self, what: &str) -> String {
        format!("[{what}, {}, which is not shown]", shown(self.mime_type, "of an unknown type"))
    }
}

fn shown(part: RawPart<'_>, otherwise: &str) -> String {
    let text = text::line(&part.text().unwrap_or_default(), SHOWN);
    if text.is_empty() { otherwise.to_owned() } else { text }
}
