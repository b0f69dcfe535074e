//! Where a tool leads, as the audit log may tell it.

use lectern_shared::{
    address,
    model::{audit::AuditDetails, tool::ToolType},
};
use serde_json::{Map, Value};

/// The parts of a configuration that say where a tool leads, by their names.
fn parts(r#type: ToolType, metadata: &Map<String, Value>) -> Vec<(&'static str, &str)> {
    let names: &[&'static str] = match r#type {
        ToolType::Search => &["provider", "base_url"],
        ToolType::ComputeAlpha | ToolType::ModelHost | ToolType::AutomationNla => &["base_url"],
        ToolType::Agent => &["agentId"],
        ToolType::OpenApi => &["openApiUrl", "base_url"],
        ToolType::Mcp => &["server", "url", "base_url"],
    };
    let part = |name: &&'static str| Some((*name, metadata.get(*name).and_then(Value::as_str)?));
    names.iter().filter_map(part).collect()
}

/// What a tool leads to, of addresses what holds no key; none where its type says it.
fn told(r#type: ToolType, metadata: &Map<String, Value>) -> Option<String> {
    let shown = |(name, text): (&str, &str)| match name {
        "provider" | "agentId" | "server" => Some(text.to_owned()),
        _ => address::origin(text),
    };
    let shown: Vec<String> = parts(r#type, metadata).into_iter().filter_map(shown).collect();
    (!shown.is_empty()).then(|| shown.join(" "))
}

/// Where a new tool of this whole configuration leads.
pub(super) fn first(r#type: ToolType, metadata: &Map<String, Value>) -> AuditDetails {
    AuditDetails::change(None, told(r#type, metadata))
}

/// Where a tool led and leads, if another configuration has it lead elsewhere.
pub(super) fn moved(
    r#type: ToolType,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Option<AuditDetails> {
    let is_another = parts(r#type, before) != parts(r#type, after);
    is_another.then(|| AuditDetails::moved(told(r#type, before), told(r#type, after)))
}
