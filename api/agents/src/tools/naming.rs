//! How functions are called and described to models.

use lectern_shared::model::tool::{Tool, ToolType};
use unicode_normalization::UnicodeNormalization as _;

use super::text;

/// Longest name of a function: what every provider takes.
const LONGEST: usize = 64;
/// Longest part of it that names the tool, where a tool has several functions.
const LONGEST_PREFIX: usize = 24;
/// Longest description of the tool that stands before each of several functions', in characters.
const SHORT: usize = 300;

/// The name of a tool's only function.
pub(crate) fn function(tool: &Tool) -> String {
    let name = words(&tool.name.to_lowercase(), LONGEST);
    match name.as_bytes().first() {
        None => default(tool.r#type).to_owned(),
        // Some providers want a letter first.
        Some(byte) if byte.is_ascii_digit() => cut(&format!("tool_{name}"), LONGEST),
        Some(_) => name,
    }
}

/// The names of a tool's functions, one for each of its members, all different.
pub(super) fn members<'a>(tool: &Tool, members: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let prefix = cut(&function(tool), LONGEST_PREFIX);
    let mut names: Vec<String> = Vec::new();
    for member in members {
        let whole = words(&format!("{prefix}_{member}"), LONGEST);
        let mut name = whole.clone();
        for number in 2.. {
            if !names.contains(&name) {
                break;
            }
            let number = format!("_{number}");
            name = cut(&whole, LONGEST - number.len()) + &number;
        }
        names.push(name);
    }
    names
}

/// What a model reads about a tool's only function: what its owner says it is for, then what its kind does.
pub(super) fn describe(tool: &Tool, does: &str) -> String {
    let own = tool.description.trim();
    if own.is_empty() { does.to_owned() } else { format!("{own}\n\n{does}") }
}

/// The same for one function of several.
pub(super) fn describe_member(tool: &Tool, does: &str) -> String {
    let own = text::line(&tool.description, SHORT);
    if own.is_empty() { does.to_owned() } else { format!("{own}\n\n{does}") }
}

/// ASCII letters, digits and `-`, and `_` for each run of anything else. Empty when there is no letter or digit.
pub(super) fn words(text: &str, longest: usize) -> String {
    let mut out = String::new();
    // Letters with marks come apart, and the marks, which are no words' ends, go.
    for c in text.nfkd().filter(|c| !unicode_normalization::char::is_combining_mark(*c)) {
        if c.is_ascii_alphanumeric() || c == '-' {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
        if out.len() > 4 * longest {
            break;
        }
    }
    cut(out.trim_start_matches(['-', '_']), longest)
}

fn cut(name: &str, longest: usize) -> String {
    // Names are ASCII.
    name[..name.len().min(longest)].trim_end_matches(['-', '_']).to_owned()
}

fn default(r#type: ToolType) -> &'static str {
    match r#type {
        ToolType::Search => "search",
        ToolType::ComputeAlpha => "compute_alpha",
        ToolType::ModelHost => "modelhost",
        ToolType::AutomationNla => "automation_nla",
        ToolType::Agent => "agent",
        ToolType::OpenApi => "openapi",
        ToolType::Mcp => "mcp",
    }
}
