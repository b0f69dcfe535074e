//! What people take along of what is kept of them: the account, its workspaces, and of each what they made tokens for, said and asked there.

use lectern_agents::run::RunRecorder;
use lectern_db::{
    self as db, Db,
    memory::KeptTurn,
    traces::{StoredTrace, TraceFilter},
};
use lectern_shared::{
    clock::Clock,
    config::rate::RequestRate,
    ids::{UserId, WorkspaceId},
    model::{
        Json,
        audit::AuditAction,
        user::{ApiToken, User},
        workspace::{JoinedWorkspace, Role, RunOwner},
    },
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{actor::Actor, audit::AuditService, traces::question_of};
use crate::{
    error::ApiError,
    limits::{LimitKey, RateLimiter},
};

/// Exports that an account may begin in a minute.
const PER_MINUTE: u32 = 10;
/// API tokens that are read at a time.
const TOKENS: u32 = 50;
/// Turns of conversations, or traces, that are read at a time. They may have a megabyte each, and whoever reads slowly has all of them held.
const ANSWERS: u32 = 5;

/// Some lines of an export, each a JSON object, and from where it goes on.
pub(crate) struct ExportPart {
    pub(crate) lines: String,
    pub(crate) next: ExportPlace,
}

/// How far the export of an account has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExportPlace {
    user: UserId,
    step: ExportStep,
}

/// What comes next in an export.
#[derive(Clone, Copy, Debug)]
enum ExportStep {
    /// The newest of the account's workspaces that is older than this one.
    Before(WorkspaceId),
    /// The newest rows of this kind in a workspace that are older than an id.
    Within(WorkspaceId, RowKind, Uuid),
}

/// What is exported of a workspace, in this order.
#[derive(Clone, Copy, Debug)]
enum RowKind {
    Tokens,
    Turns,
    Traces,
}

/// Exports of what is kept of an account. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ExportService {
    db: Db,
    clock: Clock,
    limits: RateLimiter,
    /// An answer may be read before its trace and its turn are stored.
    recorder: RunRecorder,
    audit: AuditService,
}

impl ExportService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        limits: RateLimiter,
        recorder: RunRecorder,
        audit: AuditService,
    ) -> Self {
        Self { db, clock, limits, recorder, audit }
    }

    /// Begins the export of one's own account, with the account itself.
    ///
    /// # Errors
    /// 403 for API tokens, each of which is for one workspace; 429 when too many were begun of late.
    pub(crate) async fn begin(&self, actor: &Actor) -> Result<ExportPart, ApiError> {
        let user = actor.signed_in()?;
        let key = LimitKey::account(&format!("export of {user}"));
        let too_often = |wait| {
            ApiError::too_many("rate_limited", "Too many exports. Wait before you begin another one.", wait)
        };
        let rate = RequestRate::per_minute(PER_MINUTE);
        self.limits.admit_at(rate, &[key], self.clock.now()).await.map_err(too_often)?;
        let found = db::accounts::find(&self.db, user).await?;
        let account = found.ok_or_else(|| ApiError::not_found("account"))?;
        let identities = db::identities::of_user(&self.db, user).await?;
        // On a full disk what is there can still be read.
        let mut tx = self.db.begin_essential().await?;
        let at_home = actor.clone().within(user.into(), Role::Owner);
        self.audit.note(&mut tx, &at_home, AuditAction::Exported, "user", user).await?;
        tx.commit().await?;
        let step = ExportStep::Before(Uuid::max().into());
        Ok(ExportPart { lines: account_line(&account, &identities), next: ExportPlace { user, step } })
    }

    /// The next lines of an export; none when it is at its end.
    pub(crate) async fn go_on(&self, place: ExportPlace) -> Result<Option<ExportPart>, ApiError> {
        let ExportPlace { user, mut step } = place;
        loop {
            let found = match step {
                ExportStep::Before(workspace) => self.workspace(user, workspace).await?,
                ExportStep::Within(workspace, kind, before) => {
                    Some(self.rows(user, workspace, kind, before).await?)
                }
            };
            let Some((lines, next)) = found else { return Ok(None) };
            if !lines.is_empty() {
                return Ok(Some(ExportPart { lines, next: ExportPlace { user, step: next } }));
            }
            step = next;
        }
    }

    /// The next workspace that the account is a member of.
    async fn workspace(
        &self,
        user: UserId,
        before: WorkspaceId,
    ) -> Result<Option<(String, ExportStep)>, ApiError> {
        let found = db::workspaces::list_joined(&self.db, user, before, 1).await?;
        let first = |joined: JoinedWorkspace| {
            let next = ExportStep::Within(joined.workspace.id, RowKind::Tokens, Uuid::max());
            (workspace_line(&joined), next)
        };
        Ok(found.into_iter().next().map(first))
    }

    /// The next rows of a workspace, and what comes behind them.
    async fn rows(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        kind: RowKind,
        before: Uuid,
    ) -> Result<(String, ExportStep), ApiError> {
        // Whoever has left meanwhile reads nothing there any more.
        if db::workspaces::find_joined(&self.db, user, workspace).await?.is_none() {
            return Ok((String::new(), ExportStep::Before(workspace)));
        }
        self.recorder.settled(workspace).await;
        // What came by a token that many hold is nobody's own.
        let owner = RunOwner { workspace_id: workspace, user, token: None };
        let (lines, last) = match kind {
            RowKind::Tokens => self.tokens(owner, before).await?,
            RowKind::Turns => self.turns(owner, before).await?,
            RowKind::Traces => self.traces(owner, before).await?,
        };
        let next = match (last, kind) {
            (Some(last), kind) => ExportStep::Within(workspace, kind, last),
            (None, RowKind::Tokens) => ExportStep::Within(workspace, RowKind::Turns, Uuid::max()),
            (None, RowKind::Turns) => ExportStep::Within(workspace, RowKind::Traces, Uuid::max()),
            (None, RowKind::Traces) => ExportStep::Before(workspace),
        };
        Ok((lines, next))
    }

    /// Some API tokens that somebody made in a workspace, and the last that was looked at. Those of published pages are the pages'.
    async fn tokens(&self, owner: RunOwner, before: Uuid) -> Result<(String, Option<Uuid>), ApiError> {
        let tokens = db::api_tokens::list(&self.db, owner.workspace_id, "", before.into(), TOKENS).await?;
        let last = tokens.last().map(|token| *token.id.as_uuid());
        let mut lines = String::new();
        for token in &tokens {
            let is_of_page = token.origins.as_ref().is_some_and(|Json(origins)| origins.is_empty());
            if token.owner.creator() == owner.user && !is_of_page {
                lines.push_str(&token_line(token));
            }
        }
        Ok((lines, last))
    }

    /// Some turns of somebody's sessions in a workspace, and the last of them.
    async fn turns(&self, owner: RunOwner, before: Uuid) -> Result<(String, Option<Uuid>), ApiError> {
        let turns = db::memory::list(&self.db, owner, before, ANSWERS).await?;
        let last = turns.last().map(|turn| turn.id);
        Ok((turns.iter().map(|turn| turn_line(owner.workspace_id, turn)).collect(), last))
    }

    /// Some traces of what somebody asked in a workspace, and the last of them.
    async fn traces(&self, owner: RunOwner, before: Uuid) -> Result<(String, Option<Uuid>), ApiError> {
        let workspace = owner.workspace_id;
        let (filter, now) = (TraceFilter::default(), self.clock.now());
        let traces =
            db::traces::list(&self.db, workspace, Some(owner), &filter, now, before.into(), ANSWERS).await?;
        let last = traces.last().map(|trace| *trace.id.as_uuid());
        Ok((traces.iter().map(|trace| trace_line(workspace, trace)).collect(), last))
    }
}

fn line(object: &Value) -> String {
    format!("{object}\n")
}

fn account_line(account: &User, identities: &[(String, String)]) -> String {
    let identity = |(issuer, subject): &(String, String)| json!({"issuer": issuer, "subject": subject});
    let identities: Vec<Value> = identities.iter().map(identity).collect();
    line(&json!({
        "type": "account",
        "id": account.id,
        "email": account.email,
        "name": account.name,
        "isAdmin": account.is_admin,
        "identities": identities,
        "createdAt": account.created_at,
        "updatedAt": account.updated_at,
    }))
}

fn workspace_line(joined: &JoinedWorkspace) -> String {
    line(&json!({
        "type": "workspace",
        "id": joined.workspace.id,
        "name": joined.workspace.name,
        "personal": joined.workspace.is_personal,
        "role": joined.role,
        "createdAt": joined.workspace.created_at,
    }))
}

/// A token without its value, which opens what it is for.
fn token_line(token: &ApiToken) -> String {
    let origins = token.origins.as_ref().map(|Json(origins)| origins);
    line(&json!({
        "type": "apiToken",
        "id": token.id,
        "workspaceId": token.owner.workspace_id,
        "description": token.description,
        "role": token.role.unwrap_or(Role::Owner),
        "agentId": token.agent_id,
        "origins": origins,
        "expiresAt": token.expires_at,
        "ratePerMinute": token.rate_per_minute,
        "createdAt": token.created_at,
        "lastUsedAt": token.last_used_at,
    }))
}

fn turn_line(workspace: WorkspaceId, turn: &KeptTurn) -> String {
    line(&json!({
        "type": "turn",
        "workspaceId": workspace,
        "agentId": turn.agent_id,
        "session": turn.session,
        "question": turn.question,
        "answer": turn.answer,
        "createdAt": turn.created_at,
    }))
}

fn trace_line(workspace: WorkspaceId, stored: &StoredTrace) -> String {
    let Json(trace) = &stored.body;
    let feedback = stored.rating.zip(stored.feedback_at);
    let feedback = feedback.map(|(rating, at)| json!({"rating": rating, "text": stored.feedback, "at": at}));
    line(&json!({
        "type": "trace",
        "id": stored.id,
        "workspaceId": workspace,
        "agentId": stored.agent_id,
        "session": stored.session,
        "question": question_of(trace),
        "createdAt": stored.created_at,
        "complete": stored.complete,
        "trace": trace,
        "feedback": feedback,
    }))
}
