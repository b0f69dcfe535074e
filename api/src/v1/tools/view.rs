//! How tools look from outside.

use lectern_shared::{
    clock::Timestamp,
    ids::{ToolId, UserId},
    model::tool::ToolType,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::services::tools::ToolDetails;

/// A tool.
#[derive(Serialize, ToSchema)]
#[schema(as = Tool)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolView {
    /// Its id.
    #[schema(value_type = String)]
    id: ToolId,
    /// Its owner's id.
    #[schema(value_type = String)]
    user_id: UserId,
    /// Its name.
    name: String,
    /// One of `SEARCH`, `COMPUTE_ALPHA`, `MODELHOST`, `AUTOMATION_NLA`, `AGENT`, `OPENAPI`, `MCP`.
    #[schema(value_type = String)]
    r#type: ToolType,
    /// What it is for.
    description: String,
    /// Its configuration. Secrets are masked: the values of keys that end in `key`, `token`, `secret` or `password`, in
    /// whichever case, of `app_id`, and all under `headers`.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    /// Its result is the agent's answer, as it is.
    return_direct: bool,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When you last changed it.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<ToolDetails> for ToolView {
    fn from(details: ToolDetails) -> Self {
        let ToolDetails { tool, masked_metadata } = details;
        Self {
            id: tool.id,
            user_id: tool.owner.creator(),
            name: tool.name,
            r#type: tool.r#type,
            description: tool.description,
            metadata: masked_metadata,
            return_direct: tool.return_direct,
            created_at: tool.created_at,
            updated_at: tool.updated_at,
        }
    }
}

pub(super) fn example() -> Value {
    json!({
        "id": "019a8f44-7d10-7b52-9c1e-52d6a1f0b3e7",
        "userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "name": "web",
        "type": "SEARCH",
        "description": "Searches the web for what the documents do not say.",
        "metadata": {"provider": "brave", "api_key": "BSA…x7Qd"},
        "returnDirect": false,
        "createdAt": "2026-01-31T08:09:00.000000+00:00",
        "updatedAt": "2026-01-31T08:09:00.000000+00:00",
    })
}
