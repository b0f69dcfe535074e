//! Prompts and tools, which agents are built with.

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_derive::{RequestBody, handler};
use lectern_shared::{
    ids::{PromptId, ToolId},
    model::{prompt::Prompt, tool::ToolType},
};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    PagePolicy,
    choices::{ListPlace, told_apart},
    confirm::{Confirmed, ConfirmedForm},
    edits::{EditForm, ShownFields, was_made},
    frame::{Frame, SubmittedForm, Visitor},
    html,
};
use crate::{
    extract::PathId,
    response::ApiResult,
    services::{
        actor::Permission,
        prompts::{FormerTexts, NewPrompt, PromptChange, PromptService},
        tools::{NewTool, ToolChange, ToolDetails, ToolService},
    },
};

/// Prompts or tools of a page.
const ROWS: u32 = 50;

#[derive(Template)]
#[template(path = "prompts.html")]
struct PromptsPage {
    frame: Frame,
    prompts: Vec<PromptCard>,
    place: ListPlace,
    /// The query of the next page, if there is one.
    next: Option<String>,
}

struct PromptCard {
    /// Its name, as it is told from others where it is chosen.
    title: String,
    /// What its form is made from.
    seen: String,
    id: PromptId,
    name: String,
    template: String,
    variables: String,
}

#[derive(Template)]
#[template(path = "tools.html")]
struct ToolsPage {
    frame: Frame,
    tools: Vec<ToolCard>,
    place: ListPlace,
    /// The query of the next page, if there is one.
    next: Option<String>,
    kinds: Vec<ToolKind>,
}

/// A type of tool that can be made.
struct ToolKind {
    name: &'static str,
    /// What it does.
    words: &'static str,
    /// Settings with which one is made.
    sample: &'static str,
}

impl From<ToolType> for ToolKind {
    fn from(kind: ToolType) -> Self {
        let (words, sample) = match kind {
            ToolType::Search => (
                "searches the web, by searxng, brave, tavily or serper",
                r#"{"provider": "searxng", "base_url": "https://search.example.com"}"#,
            ),
            ToolType::ComputeAlpha => ("computes, and knows facts", r#"{"app_id": "XXXX-XXXXXXXXXX"}"#),
            ToolType::ModelHost => {
                ("runs a model at its host", r#"{"api_key": "your-key", "model": "owner/name"}"#)
            }
            ToolType::AutomationNla => (
                "runs actions that are described in plain words",
                r#"{"automation_nla_api_key": "your-key", "base_url": "https://actions.example.com"}"#,
            ),
            ToolType::Agent => (
                "asks another agent; its id is the last part of the address of its page",
                r#"{"agentId": "the id"}"#,
            ),
            ToolType::OpenApi => (
                "calls an interface as its OpenAPI document says",
                r#"{"openApiUrl": "https://api.example.com/openapi.json"}"#,
            ),
            ToolType::Mcp => {
                ("calls the tools of an MCP server", r#"{"url": "https://mcp.example.com/mcp"}"#)
            }
        };
        Self { name: kind.as_str(), words, sample }
    }
}

struct ToolCard {
    /// Its name, as it is told from others where it is chosen.
    title: String,
    /// What its form is made from.
    seen: String,
    id: ToolId,
    name: String,
    kind: &'static str,
    description: String,
    /// Its settings; every secret is masked.
    metadata: String,
}

/// Behind what a list begins with the one that has this id.
fn behind(id: &Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128().saturating_add(1))
}

fn settings(metadata: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(metadata).unwrap_or_default()
}

/// What the form of a prompt shows.
fn shown_prompt(prompt: &Prompt) -> ShownFields {
    ShownFields::of(prompt.updated_at)
        .text("name", "Name", &prompt.name)
        .text("template", "Text", &prompt.template)
        .lines("input_variables", "Variables", &prompt.input_variables.0.join("\n"))
}

/// What the form of a tool shows.
fn shown_tool(details: &ToolDetails) -> ShownFields {
    ShownFields::of(details.tool.updated_at)
        .text("name", "Name", &details.tool.name)
        .text("description", "What the model is told of it", &details.tool.description)
        .object("metadata", "Settings", &settings(&details.masked_metadata))
}

/// Shows the prompts, the newest first.
#[handler]
pub(super) async fn prompts(State(prompts): State<PromptService>, visitor: Visitor, uri: Uri) -> ApiResult {
    let place = ListPlace::of(&uri);
    let mut found = prompts.list(&visitor.actor(), &place.name, place.before(), ROWS + 1).await?;
    let has_more = found.len() > ROWS as usize;
    found.truncate(ROWS as usize);
    let next = place.next(found.last().map(|last| *last.id.as_uuid()).filter(|_| has_more));
    let card = |(prompt, title): (Prompt, String)| PromptCard {
        title,
        seen: shown_prompt(&prompt).seen(),
        id: prompt.id,
        name: prompt.name,
        template: prompt.template,
        variables: prompt.input_variables.0.join("\n"),
    };
    let titles = told_apart(found.iter().map(|prompt| (prompt.id, prompt.name.clone())));
    let titles = titles.into_iter().map(|(_, title)| title);
    let prompts = found.into_iter().zip(titles).map(card).collect();
    html(&PagePolicy::Own, StatusCode::OK, &PromptsPage { frame: visitor.frame, prompts, place, next })
}

/// Writes one.
#[handler]
pub(super) async fn create_prompt(
    State(prompts): State<PromptService>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewPrompt>,
) -> ApiResult {
    prompts.create(&visitor.actor(), body, once, |_| Ok(Vec::new())).await?;
    Ok(visitor.go("prompts?said=added"))
}

/// Changes one.
#[handler]
pub(super) async fn change_prompt(
    State(prompts): State<PromptService>,
    PathId(id): PathId<PromptId>,
    EditForm { visitor, body, edit }: EditForm<PromptChange>,
) -> ApiResult {
    let actor = visitor.actor();
    if was_made(prompts.change(&actor, id, body, edit.base()).await)? {
        return Ok(visitor.go("prompts?said=saved"));
    }
    let shows = shown_prompt(&prompts.find(&actor, id).await?);
    edit.outdated(visitor, &shows, None, &format!("prompts?after={}", behind(id.as_uuid())))
}

/// How a prompt is deleted.
#[derive(RequestBody, ToSchema)]
pub(super) struct PromptDeletion {
    /// What it says goes from the earlier versions of agents too.
    #[schema(value_type = Option<bool>)]
    #[body(default)]
    erase: bool,
}

/// Deletes one.
#[handler]
pub(super) async fn delete_prompt(
    State(prompts): State<PromptService>,
    PathId(id): PathId<PromptId>,
    ConfirmedForm(SubmittedForm { visitor, body, .. }): ConfirmedForm<PromptDeletion>,
) -> ApiResult {
    let former = if body.erase { FormerTexts::Erased } else { FormerTexts::Kept };
    prompts.delete(&visitor.actor(), id, former).await?;
    Ok(visitor.go("prompts?said=removed"))
}

/// Shows the tools, the newest first.
#[handler]
pub(super) async fn tools(State(tools): State<ToolService>, visitor: Visitor, uri: Uri) -> ApiResult {
    let actor = visitor.actor();
    actor.may(Permission::BuildAgents)?;
    let place = ListPlace::of(&uri);
    let mut found = tools.list(&actor, &place.name, place.before(), ROWS + 1).await?;
    let has_more = found.len() > ROWS as usize;
    found.truncate(ROWS as usize);
    let next = place.next(found.last().map(|last| *last.tool.id.as_uuid()).filter(|_| has_more));
    let titles = told_apart(found.iter().map(|details| (details.tool.id, details.tool.name.clone())));
    let titles = titles.into_iter().map(|(_, title)| title);
    let card = |(details, title): (ToolDetails, String)| ToolCard {
        title,
        seen: shown_tool(&details).seen(),
        id: details.tool.id,
        name: details.tool.name,
        kind: details.tool.r#type.as_str(),
        description: details.tool.description,
        metadata: settings(&details.masked_metadata),
    };
    let tools = found.into_iter().zip(titles).map(card).collect();
    let kinds = ToolType::ALL.iter().copied().map(ToolKind::from).collect();
    html(&PagePolicy::Own, StatusCode::OK, &ToolsPage { frame: visitor.frame, tools, place, next, kinds })
}

/// Makes one.
#[handler]
pub(super) async fn create_tool(
    State(tools): State<ToolService>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewTool>,
) -> ApiResult {
    tools.create(&visitor.actor(), body, once, |_| Ok(Vec::new())).await?;
    Ok(visitor.go("tools?said=added"))
}

/// Changes one.
#[handler]
pub(super) async fn change_tool(
    State(tools): State<ToolService>,
    PathId(id): PathId<ToolId>,
    EditForm { visitor, body, edit }: EditForm<ToolChange>,
) -> ApiResult {
    let actor = visitor.actor();
    if was_made(tools.change(&actor, id, body, edit.base()).await)? {
        return Ok(visitor.go("tools?said=saved"));
    }
    let shows = shown_tool(&tools.find(&actor, id).await?);
    edit.outdated(visitor, &shows, None, &format!("tools?after={}", behind(id.as_uuid())))
}

/// Deletes one.
#[handler]
pub(super) async fn delete_tool(
    State(tools): State<ToolService>,
    PathId(id): PathId<ToolId>,
    Confirmed(visitor): Confirmed,
) -> ApiResult {
    tools.delete(&visitor.actor(), id).await?;
    Ok(visitor.go("tools?said=removed"))
}
