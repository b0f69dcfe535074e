//! What agents were before they were changed.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, PromptId, UserId},
    model::agent::{AgentType, PromptConfig},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::view::{AgentView, LlmView, changed_example, example};
use crate::{
    auth::Caller,
    extract::{PathId, PathIds},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::agents::{AgentService, versions::AgentVersionDetails},
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(versions)).routes(routes!(restore))
}

/// What an agent is, or was before a change.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentVersion)]
#[serde(rename_all = "camelCase")]
struct AgentVersionView {
    /// Its number: `predict` takes it as `version`. Changes of links raise it too, so that some numbers are missing here; a missing one
    /// stands for the next one that is here.
    version: i64,
    /// Whether the agent is so now.
    is_current: bool,
    /// What it is called.
    name: String,
    /// Anything that its owner wants to say of it.
    description: String,
    /// How it talks with its model.
    #[schema(value_type = String)]
    r#type: AgentType,
    /// Its model, without the key.
    llm: LlmView,
    /// Whether it remembers the turns of a session.
    has_memory: bool,
    /// Whether what it finds is put into a better order.
    rerank: bool,
    /// The prompt that it uses, as it is or was; null for none.
    #[schema(required = true)]
    prompt: Option<VersionPromptView>,
    /// Who changed it then; null for what it is now.
    #[schema(value_type = Option<String>, required = true)]
    replaced_by: Option<UserId>,
    /// When that was; null for what it is now.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    replaced_at: Option<Timestamp>,
}

/// A prompt as an agent used it.
#[derive(Serialize, ToSchema)]
#[schema(as = VersionPrompt)]
struct VersionPromptView {
    /// Its id. It may have been changed or deleted since.
    #[schema(value_type = String)]
    id: PromptId,
    /// Whether it was erased when it was deleted: the version can be neither asked nor restored any more.
    #[serde(rename = "isErased")]
    is_erased: bool,
    /// What it was called; empty when it was erased, as all that follows.
    name: String,
    /// The text of the template.
    template: String,
    /// The names of the template's variables.
    input_variables: Vec<String>,
}

impl From<PromptConfig> for VersionPromptView {
    fn from(prompt: PromptConfig) -> Self {
        let is_erased = prompt.is_erased();
        let PromptConfig { id, name, template, input_variables } = prompt;
        Self { id, is_erased, name, template, input_variables }
    }
}

impl From<AgentVersionDetails> for AgentVersionView {
    fn from(details: AgentVersionDetails) -> Self {
        let AgentVersionDetails { version, config, replaced, .. } = details;
        Self {
            version,
            is_current: replaced.is_none(),
            name: config.name,
            description: config.description,
            r#type: config.r#type,
            llm: LlmView::new(config.llm, None),
            has_memory: config.has_memory,
            rerank: config.rerank,
            prompt: config.prompt.map(VersionPromptView::from),
            replaced_by: replaced.and_then(|(by, _)| by),
            replaced_at: replaced.map(|(_, at)| at),
        }
    }
}

fn version_example() -> Value {
    let agent = example();
    let mut version = json!({
        "version": 4, "isCurrent": false, "prompt": null,
        "replacedBy": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55", "replacedAt": "2026-01-31T08:20:41.125000+00:00",
    });
    for name in ["name", "description", "type", "hasMemory", "rerank"] {
        version[name] = agent[name].clone();
    }
    version["llm"] = changed_example()["llm"].clone();
    if let Some(llm) = version["llm"].as_object_mut() {
        llm.remove("api_key");
    }
    version
}

/// List the versions of an agent
///
/// Shows what an agent is and what it was before each change of it or of its prompt, the latest first. The last 100 changes are kept.
#[utoipa::path(
    get,
    path = "/agents/{id}/versions",
    tag = "Agents",
    operation_id = "listAgentVersions",
    params(("id" = String, Path, description = "The agent's id")),
    responses((
        status = 200,
        description = "What it is and was",
        body = inline(SuccessResponse<Vec<AgentVersionView>>),
        example = json!({"success": true, "data": [version_example()]}),
    )),
)]
#[handler]
async fn versions(
    State(agents): State<AgentService>,
    caller: Caller,
    PathId(id): PathId<AgentId>,
    paging: Paging,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (agents, actor) = (agents.clone(), caller.actor());
        async move {
            let versions = agents.versions(&actor, id, before, limit).await?;
            Ok(versions.into_iter().map(|version| (version.id, AgentVersionView::from(version))).collect())
        }
    })
    .await
}

/// Restore a version of an agent
///
/// Makes an agent what it was. What it is now is kept as a version too; its documents, tools and tags stay. If its prompt was changed since,
/// it gets a new one with the former text.
#[utoipa::path(
    post,
    path = "/agents/{id}/versions/{version}/restore",
    tag = "Agents",
    operation_id = "restoreAgentVersion",
    params(
        ("id" = String, Path, description = "The agent's id"),
        ("version" = i64, Path, description = "The number of the version"),
    ),
    responses((
        status = 200,
        description = "The agent as it is now",
        body = inline(SuccessResponse<AgentView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn restore(
    State(agents): State<AgentService>,
    caller: Caller,
    PathIds(id, version): PathIds<AgentId, i64>,
) -> ApiResult {
    Ok(data(AgentView::from(agents.restore(&caller.actor(), id, version).await?)))
}
