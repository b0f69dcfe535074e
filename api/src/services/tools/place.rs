//! Where a tool leads, as the audit log may tell it.

use lectern_shared::{
    address,
    model::tool::{Tool, ToolType},
};
use serde_json::Value;

/// The parts of a configuration that say where a tool leads, by their names.
fn parts(tool: &Tool) -> Vec<(&'static str, &str)> {
    let names: &[&'static str] = match tool.r#type {
        ToolType::Search => &["provider", "base_url"],
        ToolType::ComputeAlpha | ToolType::ModelHost | ToolType::AutomationNla => &["base_url"],
        ToolType::Agent => &["agentId"],
        ToolType::OpenApi => &["openApiUrl", "base_url"],
        ToolType::Mcp => &["server", "url", "base_url"],
    };
    let part = |name: &&'static str| Some((*name, tool.metadata.0.get(*name).and_then(Value::as_str)?));
    names.iter().filter_map(part).collect()
}

/// What a tool leads to, of addresses what holds no key; none where its type says it.
pub(super) fn told(tool: &Tool) -> Option<String> {
    let shown = |(name, text): (&str, &str)| match name {
        "provider" | "agentId" | "server" => Some(text.to_owned()),
        _ => address::origin(text),
    };
    let shown: Vec<String> = parts(tool).into_iter().filter_map(shown).collect();
    (!shown.is_empty()).then(|| shown.join(" "))
}

/// Whether a tool leads elsewhere than before.
pub(super) fn is_another(before: &Tool, after: &Tool) -> bool {
    parts(before) != parts(after)
}
