//! Tools.

mod metadata;
mod place;

use std::sync::Arc;

use lectern_agents::tools::secrets;
use lectern_db::{self as db, Db, Tx};
use lectern_derive::RequestBody;
use lectern_shared::{
    clock::Clock,
    ids::{AgentId, ToolId, WorkspaceId},
    model::{
        Json,
        audit::AuditAction,
        tool::{Tool, ToolType},
    },
    secrets::Keyring,
};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use self::metadata::ToolMetadata;
use super::{
    actor::{Actor, Permission},
    audit::AuditService,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
    edits::EditBase,
};
use crate::error::ApiError;

/// A new tool.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
#[body(first(r#type))]
pub(crate) struct NewTool {
    /// Its name, also what models call it by.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    name: String,
    /// One of `SEARCH`, `COMPUTE_ALPHA`, `MODELHOST`, `AUTOMATION_NLA`, `AGENT`, `OPENAPI`, `MCP`.
    #[schema(value_type = String, pattern = "^(SEARCH|COMPUTE_ALPHA|MODELHOST|AUTOMATION_NLA|AGENT|OPENAPI|MCP)$")]
    r#type: ToolType,
    /// What it is for, in words that a model reads.
    #[schema(value_type = Option<String>, max_length = 10_000)]
    #[body(default)]
    description: String,
    /// Its configuration. `SEARCH`: `provider` (`searxng` with `base_url`; `brave`, `tavily` or `serper` with `api_key`).
    /// `COMPUTE_ALPHA`: `app_id`. `MODELHOST`: `api_key`, and `model` or `version`. `AUTOMATION_NLA`: `automation_nla_api_key`.
    /// `AGENT`: `agentId`, one of your agents. `OPENAPI`: `openApiUrl`, and if need be `headers` and `operations`, the only
    /// operations that may be called. `MCP`: `url`, and if need be `headers`, or `server`, the name of a program that the operator
    /// has set up; and `tools`, the only tools of the server that may be called. All: `base_url`, another host that speaks the same protocol, and `timeout`, seconds from
    /// 1 to 120. Any other key is kept. At most 64 KiB.
    #[schema(value_type = Object)]
    #[body(with = metadata::of_new)]
    metadata: ToolMetadata,
    /// Makes its result the agent's answer, as it is. False when left out.
    #[schema(value_type = Option<bool>)]
    #[body(default)]
    return_direct: bool,
}

/// A change of a tool. What is left out stays as it is.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
#[body(change)]
pub(crate) struct ToolChange {
    /// A new name.
    #[schema(nullable = false, min_length = 1, max_length = 1_000, pattern = r"\S")]
    name: Option<String>,
    /// A new description; null empties it.
    #[schema(max_length = 10_000)]
    description: Option<String>,
    /// The whole new configuration. A secret that comes back masked stays as it is, for the same provider and host.
    // Masks may stand for stored secrets in it: it is checked with them.
    #[schema(value_type = Option<Object>, nullable = false)]
    metadata: Option<Map<String, Value>>,
    /// Whether its result is the agent's answer.
    #[schema(nullable = false)]
    return_direct: Option<bool>,
}

/// A tool, and what may be shown of its secrets.
#[derive(Clone)]
pub(crate) struct ToolDetails {
    pub(crate) tool: Tool,
    /// Its whole configuration; every secret is masked.
    pub(crate) masked_metadata: Map<String, Value>,
}

/// Tools. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ToolService {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
    creations: IdempotencyStore,
    audit: AuditService,
    /// The programs that MCP tools may use.
    mcp_servers: Arc<[String]>,
}

fn unknown() -> ApiError {
    ApiError::not_found("tool")
}

/// An agent that could ask itself would never end.
pub(crate) fn circle(path: &str) -> ApiError {
    ApiError::invalid_field(path, "would let an agent ask itself, by way of others or at once")
}

/// The workspace's agent that a tool is to ask.
async fn called_agent(
    tx: &mut Tx,
    workspace: WorkspaceId,
    agent: Option<Result<AgentId, ()>>,
) -> Result<Option<AgentId>, ApiError> {
    let unknown = || ApiError::not_found("agent");
    match agent {
        None => Ok(None),
        Some(agent) => {
            let agent = agent.map_err(|()| unknown())?;
            if db::tools::owns_agent(tx, workspace, agent).await? { Ok(Some(agent)) } else { Err(unknown()) }
        }
    }
}

/// The secrets of a configuration, each under its place there.
fn secrets_of(mut metadata: Map<String, Value>) -> Map<String, Value> {
    let mut found = Map::new();
    secrets::visit_secrets(&mut metadata, &mut |at, value| drop(found.insert(at.to_owned(), value.take())));
    found
}

impl ToolService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        keyring: Arc<Keyring>,
        creations: IdempotencyStore,
        audit: AuditService,
        mcp_servers: Arc<[String]>,
    ) -> Self {
        Self { db, clock, keyring, creations, audit, mcp_servers }
    }

    /// Makes a tool.
    ///
    /// # Errors
    /// Not found, when the agent that it is to ask is not the owner's.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewTool,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<ToolDetails>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        self.check_server(new.r#type, &new.metadata.all)?;
        let id = ToolId::generate();
        let mut tx = self.db.begin().await?;
        let calls_agent = called_agent(&mut tx, owner.workspace_id, new.metadata.agent).await?;
        let details = place::first(new.r#type, &new.metadata.all).with("type", Some(new.r#type));
        let has_secrets = !secrets_of(new.metadata.all.clone()).is_empty();
        let (open, sealed) = secrets::seal(&self.keyring, &id, new.metadata.all)?;
        let now = self.clock.now();
        let tool = Tool {
            id,
            owner,
            r#type: new.r#type,
            name: new.name,
            description: new.description,
            metadata: Json(open),
            metadata_sealed: sealed,
            calls_agent,
            return_direct: new.return_direct,
            created_at: now,
            updated_at: now,
        };
        db::tools::insert(&mut tx, &tool).await?;
        self.audit.note_with(&mut tx, actor, AuditAction::ToolCreated, "tool", id, details).await?;
        if has_secrets {
            self.audit.note(&mut tx, actor, AuditAction::SecretChanged, "tool", id).await?;
        }
        let details = self.details(tool)?;
        self.creations.commit(tx, once, &details, tell).await
    }

    /// The tools before an id whose names have something somewhere, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        name: &str,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<ToolDetails>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let tools = db::tools::list(&self.db, owner.workspace_id, name, before.into(), limit).await?;
        tools.into_iter().map(|tool| self.details(tool)).collect()
    }

    /// One tool.
    pub(crate) async fn find(&self, actor: &Actor, id: ToolId) -> Result<ToolDetails, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let tool = db::tools::find(&self.db, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        self.details(tool)
    }

    /// Changes a tool, which is as it is returned afterwards. A secret that comes back as its mask is kept.
    ///
    /// # Errors
    /// When the new configuration is not right for the tool's type, when a secret that is kept would go to somebody else, when an agent
    /// could come to ask itself, and when the tool is not what the change begins from.
    pub(crate) async fn change(
        &self,
        actor: &Actor,
        id: ToolId,
        change: ToolChange,
        base: EditBase,
    ) -> Result<ToolDetails, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let workspace = owner.workspace_id;
        let mut tx = self.db.begin().await?;
        let before = db::tools::lock(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        base.check(before.updated_at)?;
        let mut tool = before.clone();
        let (mut has_new_secrets, mut moved) = (false, None);
        if let Some(mut changed) = change.metadata {
            let stored = secrets::reveal(&self.keyring, &tool)?;
            let kept = metadata::restore_masked(&mut changed, &stored);
            let ToolMetadata { all, agent } = metadata::check_alone(tool.r#type, &changed)?;
            metadata::check_kept_secrets(tool.r#type, &stored, &all, kept)?;
            self.check_server(tool.r#type, &all)?;
            tool.calls_agent = called_agent(&mut tx, workspace, agent).await?;
            if let Some(called) = tool.calls_agent
                && db::tools::would_circle(&mut tx, workspace, id, called).await?
            {
                return Err(circle("metadata.agentId"));
            }
            // Sealed once more it would not be what it was.
            if all != stored {
                moved = place::moved(tool.r#type, &stored, &all);
                has_new_secrets = secrets_of(all.clone()) != secrets_of(stored);
                let (open, sealed) = secrets::seal(&self.keyring, &id, all)?;
                (tool.metadata, tool.metadata_sealed) = (Json(open), sealed);
            }
        }
        tool.name = change.name.unwrap_or(tool.name);
        tool.description = change.description.unwrap_or(tool.description);
        tool.return_direct = change.return_direct.unwrap_or(tool.return_direct);
        if tool != before {
            self.seal_address(&mut tool)?;
            tool.updated_at = self.clock.now();
            db::tools::update(&mut tx, &tool).await?;
            if let Some(details) = moved {
                self.audit
                    .note_with(&mut tx, actor, AuditAction::AddressChanged, "tool", id, details)
                    .await?;
            }
            if has_new_secrets {
                self.audit.note(&mut tx, actor, AuditAction::SecretChanged, "tool", id).await?;
            }
            tx.commit().await?;
        }
        self.details(tool)
    }

    /// Deletes a tool; its links go with it.
    pub(crate) async fn delete(&self, actor: &Actor, id: ToolId) -> Result<(), ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let mut tx = self.db.begin_essential().await?;
        if !db::tools::delete(&mut tx, owner.workspace_id, id).await? {
            return Err(unknown());
        }
        self.audit.note(&mut tx, actor, AuditAction::Deleted, "tool", id).await?;
        Ok(tx.commit().await?)
    }

    fn check_server(&self, r#type: ToolType, metadata: &Map<String, Value>) -> Result<(), ApiError> {
        match r#type {
            ToolType::Mcp => metadata::check_server(metadata, &self.mcp_servers),
            ToolType::Search
            | ToolType::ComputeAlpha
            | ToolType::ModelHost
            | ToolType::AutomationNla
            | ToolType::Agent
            | ToolType::OpenApi => Ok(()),
        }
    }

    /// Seals the address of a tool that was last changed before addresses were sealed.
    fn seal_address(&self, tool: &mut Tool) -> Result<(), ApiError> {
        if secrets::is_address_open(&tool.metadata.0) {
            let whole = secrets::reveal(&self.keyring, tool)?;
            let (open, sealed) = secrets::seal(&self.keyring, &tool.id, whole)?;
            (tool.metadata, tool.metadata_sealed) = (Json(open), sealed);
        }
        Ok(())
    }

    fn details(&self, tool: Tool) -> Result<ToolDetails, ApiError> {
        let masked_metadata = metadata::show(secrets::reveal(&self.keyring, &tool)?);
        Ok(ToolDetails { tool, masked_metadata })
    }
}
