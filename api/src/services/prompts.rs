//! Prompts. What they have in common is that the template and its variables agree.

mod readers;

use std::fmt::Write;

use lectern_agents::prompt::PromptTemplate;
use lectern_db::{self as db, Db, choices::NamedChoices};
use lectern_derive::RequestBody;
use lectern_shared::{
    clock::Clock,
    ids::PromptId,
    model::{
        Json,
        audit::{AuditAction, AuditDetails},
        prompt::Prompt,
    },
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    actor::{Actor, Permission},
    agents::versions::AgentHistory,
    audit::AuditService,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
    edits::EditBase,
};
use crate::error::{ApiError, FieldError};

/// Names that a message lists, at most.
const LISTED: usize = 10;

/// A new prompt. Its template and its variables have to agree: each variable that the template uses is declared, and each that
/// is declared is used.
#[derive(RequestBody, ToSchema)]
#[body(after = readers::check_new)]
pub(crate) struct NewPrompt {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    pub(crate) name: String,
    /// The text. `{name}` stands for a variable's value, `{{` for `{` and `}}` for `}`. Python's other forms, such as `{}`,
    /// `{0}`, `{a.b}`, `{a[0]}`, `{a!r}` and `{a:>3}`, are refused.
    #[schema(min_length = 1, max_length = 100_000, pattern = r"\S")]
    #[body(with = readers::template)]
    pub(crate) template: String,
    /// The names of the variables, each once: Unicode letters, digits and `_`, not beginning with a digit, at most 100
    /// characters each.
    #[schema(max_items = 100)]
    #[body(with = readers::variables)]
    pub(crate) input_variables: Vec<String>,
}

/// What is to be different about a prompt. What is left out stays as it is.
#[derive(RequestBody, ToSchema)]
#[body(change, after = readers::check_change)]
pub(crate) struct PromptChange {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", nullable = false)]
    pub(crate) name: Option<String>,
    /// The text. It has to agree with the variables as they are afterwards.
    #[schema(min_length = 1, max_length = 100_000, pattern = r"\S", nullable = false)]
    #[body(with = readers::template)]
    pub(crate) template: Option<String>,
    /// The names of the variables, all of them: they take the place of the earlier ones, and have to agree with the template
    /// as it is afterwards.
    #[schema(max_items = 100, nullable = false)]
    #[body(with = readers::variables)]
    pub(crate) input_variables: Option<Vec<String>>,
}

impl PromptChange {
    /// The prompt with this change.
    ///
    /// # Errors
    /// When its template and its variables would not agree. The field that is named is one of those that were given.
    fn apply(self, before: &Prompt) -> Result<Prompt, ApiError> {
        let path = if self.input_variables.is_some() { "input_variables" } else { "template" };
        let after = Prompt {
            name: self.name.unwrap_or_else(|| before.name.clone()),
            template: self.template.unwrap_or_else(|| before.template.clone()),
            input_variables: self.input_variables.map_or_else(|| before.input_variables.clone(), Json),
            ..before.clone()
        };
        let template = PromptTemplate::parse(&after.template).map_err(|error| {
            tracing::error!(prompt = %before.id, %error, "a stored template cannot be read");
            ApiError::internal()
        })?;
        let problems = problems(path, &template, &after.input_variables.0);
        if problems.is_empty() { Ok(after) } else { Err(ApiError::invalid(problems)) }
    }
}

/// What becomes of a deleted prompt in the earlier versions of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormerTexts {
    /// They keep what it said, so that they can be asked and restored.
    Kept,
    /// They keep nothing of it but that there was one.
    Erased,
}

/// Prompts. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PromptService {
    db: Db,
    clock: Clock,
    creations: IdempotencyStore,
    history: AgentHistory,
    audit: AuditService,
}

fn unknown() -> ApiError {
    ApiError::not_found("prompt")
}

impl PromptService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        creations: IdempotencyStore,
        history: AgentHistory,
        audit: AuditService,
    ) -> Self {
        Self { db, clock, creations, history, audit }
    }

    /// Makes a prompt.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewPrompt,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<Prompt>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let now = self.clock.now();
        let prompt = Prompt {
            id: PromptId::generate(),
            owner,
            name: new.name,
            template: new.template,
            input_variables: Json(new.input_variables),
            created_at: now,
            updated_at: now,
        };
        let mut tx = self.db.begin().await?;
        db::prompts::insert(&mut tx, &prompt).await?;
        self.creations.commit(tx, once, &prompt, tell).await
    }

    /// The prompts before an id whose names have something somewhere, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        name: &str,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<Prompt>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        Ok(db::prompts::list(&self.db, owner.workspace_id, name, before.into(), limit).await?)
    }

    /// The newest prompts whose names have something somewhere, to choose from.
    pub(crate) async fn choices(
        &self,
        actor: &Actor,
        name: &str,
        limit: u32,
    ) -> Result<NamedChoices<PromptId>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        Ok(db::choices::prompts(&self.db, owner.workspace_id, name, limit).await?)
    }

    /// One prompt.
    pub(crate) async fn find(&self, actor: &Actor, id: PromptId) -> Result<Prompt, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        db::prompts::find(&self.db, owner.workspace_id, id).await?.ok_or_else(unknown)
    }

    /// Changes a prompt, which is as it is returned afterwards.
    ///
    /// # Errors
    /// When its template and its variables would not agree, and when it is not what the change begins from.
    pub(crate) async fn change(
        &self,
        actor: &Actor,
        id: PromptId,
        change: PromptChange,
        base: EditBase,
    ) -> Result<Prompt, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let mut tx = self.db.begin().await?;
        // Locked before it is checked: of two who change one half each, the second one sees what the first one did.
        let before = db::prompts::lock(&mut tx, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        base.check(before.updated_at)?;
        let mut after = change.apply(&before)?;
        if after != before {
            after.updated_at = self.clock.now();
            self.history.keep_all_with(&mut tx, actor, owner.workspace_id, id).await?;
            db::prompts::update(&mut tx, &after).await?;
            tx.commit().await?;
        }
        Ok(after)
    }

    /// Deletes a prompt; the agents that used it have none from then on. What it said can be erased from their earlier versions too, also when it
    /// was deleted before.
    ///
    /// # Errors
    /// Not found, when it is not there, and no version has anything of it that is to be erased.
    pub(crate) async fn delete(
        &self,
        actor: &Actor,
        id: PromptId,
        former: FormerTexts,
    ) -> Result<(), ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let mut tx = self.db.begin_essential().await?;
        let is_there = db::prompts::lock(&mut tx, workspace, id).await?.is_some();
        if is_there {
            self.history.keep_all_with(&mut tx, actor, workspace, id).await?;
            db::prompts::delete(&mut tx, workspace, id).await?;
        }
        let erased = match former {
            FormerTexts::Kept => None,
            FormerTexts::Erased => Some(db::agent_versions::erase_prompt(&mut tx, workspace, id).await?),
        };
        if !is_there && erased.unwrap_or_default() == 0 {
            return Err(unknown());
        }
        let details = AuditDetails::default().with("versions", erased);
        self.audit.note_with(&mut tx, actor, AuditAction::Deleted, "prompt", id, details).await?;
        Ok(tx.commit().await?)
    }
}

/// In what a template and its variables differ, as it is said of one of the two fields.
fn problems(path: &str, template: &PromptTemplate, variables: &[String]) -> Vec<FieldError> {
    let Some(found) = template.disagreement(variables) else { return Vec::new() };
    let (undeclared, unused) = match path {
        "template" => (
            "uses variables that input_variables does not name",
            "must use every variable that input_variables names; it lacks",
        ),
        _ => (
            "must name every variable of the template; it lacks",
            "names variables that the template does not use",
        ),
    };
    [(undeclared, found.undeclared), (unused, found.unused)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| FieldError::new(path, &format!("{what}: {}", several(&names))))
        .collect()
}

fn several(names: &[String]) -> String {
    let mut text = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = names.len().checked_sub(LISTED) {
        // Writing to a string cannot fail.
        let _ = write!(text, " and {more} more");
    }
    text
}
