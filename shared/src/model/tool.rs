//! Tools and their links to agents.

use serde_json::{Map, Value};
use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{AgentId, AgentToolId, ToolId},
    model::{Json, text_enum, workspace::RowOwner},
};

text_enum! {
    /// What a tool does.
    ToolType {
        /// Searches the web.
        Search => "SEARCH",
        /// Computes with a computational knowledge engine.
        ComputeAlpha => "COMPUTE_ALPHA",
        /// Runs a hosted model.
        ModelHost => "MODELHOST",
        /// Runs actions that are described in words.
        AutomationNla => "AUTOMATION_NLA",
        /// Asks another agent.
        Agent => "AGENT",
        /// Calls the operations of an OpenAPI document.
        OpenApi => "OPENAPI",
        /// Calls the tools of a server of the Model Context Protocol.
        Mcp => "MCP",
    }
}

text_enum! {
    /// The service that a SEARCH tool asks.
    SearchProvider {
        /// An instance of `SearXNG`, somewhere.
        Searxng => "searxng",
        /// Brave Search.
        Brave => "brave",
        /// Tavily.
        Tavily => "tavily",
        /// Serper.
        Serper => "serper",
    }
}

impl SearchProvider {
    /// The most results that it gives at once.
    pub const fn most_results(self) -> u32 {
        match self {
            Self::Brave | Self::Tavily => 20,
            Self::Searxng | Self::Serper => 100,
        }
    }
}

/// Tools that an agent can have.
pub const TOOLS_OF_ONE: u32 = 64;

/// A tool.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Tool {
    /// Its id.
    pub id: ToolId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// What it does.
    pub r#type: ToolType,
    /// How its owner and models call it.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its configuration; null stands where a secret is, or the address of an OpenAPI document.
    pub metadata: Json<Map<String, Value>>,
    /// These parts of the configuration, by their JSON pointers, sealed.
    pub metadata_sealed: Option<Vec<u8>>,
    /// The agent that an AGENT tool asks. It may have been deleted since.
    pub calls_agent: Option<AgentId>,
    /// Its result is the answer.
    pub return_direct: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its owner last changed it.
    pub updated_at: Timestamp,
}

/// A link between an agent and a tool.
#[derive(Clone, Debug, FromRow)]
pub struct AgentTool {
    /// Its id.
    pub id: AgentToolId,
    /// The agent.
    pub agent_id: AgentId,
    /// The tool.
    pub tool_id: ToolId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// When they were linked.
    pub created_at: Timestamp,
}
