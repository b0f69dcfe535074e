//! What an agent was before it was changed, and the way back.

use askama::Template;
use axum::{extract::State, http::StatusCode};
use lectern_derive::handler;
use lectern_shared::{clock::Timestamp, ids::AgentId, model::agent::PromptConfig};
use uuid::Uuid;

use crate::{
    dashboard::{
        PagePolicy,
        confirm::NoFields,
        frame::{Frame, SubmittedForm, Visitor},
        html,
        text::filters,
    },
    extract::{PathId, PathIds},
    response::ApiResult,
    services::agents::{AgentService, versions::AgentVersionDetails},
};

/// Versions that are shown: more than are kept.
const VERSIONS: u32 = 200;

#[derive(Template)]
#[template(path = "agent_versions.html")]
struct VersionsPage {
    frame: Frame,
    id: AgentId,
    name: String,
    rows: Vec<VersionRow>,
}

struct VersionRow {
    version: i64,
    name: String,
    model: String,
    prompt: Option<PromptConfig>,
    /// What is different from the version before it, in words.
    changes: String,
    /// When it was changed; none for what it is now.
    replaced_at: Option<Timestamp>,
}

impl VersionRow {
    /// Whether the agent can be made what it was.
    fn can_be_restored(&self) -> bool {
        let is_erased = self.prompt.as_ref().is_some_and(PromptConfig::is_erased);
        self.replaced_at.is_some() && !is_erased
    }
}

/// In what a version differs from the one before.
fn changes(this: &AgentVersionDetails, before: Option<&AgentVersionDetails>) -> String {
    let Some(before) = before else { return "the earliest that is kept".to_owned() };
    let (this, before) = (&this.config, &before.config);
    let parts = [
        (this.name != before.name, "its name"),
        (this.description != before.description, "its description"),
        (this.r#type != before.r#type, "how it talks"),
        (this.llm != before.llm, "its model"),
        (this.has_memory != before.has_memory, "whether it remembers"),
        (this.rerank != before.rerank, "whether it reranks"),
        (this.prompt != before.prompt, "its prompt"),
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|(differs, _)| *differs).map(|(_, what)| what).collect();
    if parts.is_empty() { "its key".to_owned() } else { parts.join(", ") }
}

/// Shows what it is and was.
#[handler]
pub(super) async fn show(
    State(agents): State<AgentService>,
    visitor: Visitor,
    PathId(id): PathId<AgentId>,
) -> ApiResult {
    let versions = agents.versions(&visitor.actor(), id, Uuid::max(), VERSIONS).await?;
    let befores = versions.iter().skip(1).map(Some).chain([None]);
    let row = |(this, before): (&AgentVersionDetails, Option<&AgentVersionDetails>)| VersionRow {
        version: this.version,
        name: this.config.name.clone(),
        model: format!("{}/{}", this.config.llm.provider, this.config.llm.model),
        prompt: this.config.prompt.clone(),
        changes: changes(this, before),
        replaced_at: this.replaced.map(|(_, at)| at),
    };
    let rows: Vec<VersionRow> = versions.iter().zip(befores).map(row).collect();
    let name = rows.first().map(|row| row.name.clone()).unwrap_or_default();
    html(&PagePolicy::Own, StatusCode::OK, &VersionsPage { frame: visitor.frame, id, name, rows })
}

/// Makes it what it was.
#[handler]
pub(super) async fn restore(
    State(agents): State<AgentService>,
    PathIds(id, version): PathIds<AgentId, i64>,
    SubmittedForm { visitor, .. }: SubmittedForm<NoFields>,
) -> ApiResult {
    agents.restore(&visitor.actor(), id, version).await?;
    Ok(visitor.go(&format!("agents/{id}/versions?said=saved")))
}
