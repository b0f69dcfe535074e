//! Pages on which agents are asked: who builds an agent gives it an address, and says who may open it.

use std::sync::Arc;

use lectern_agents::run;
use lectern_db::{self as db, Db, Tx, api_tokens::TokenGrant};
use lectern_derive::RequestBody;
use lectern_shared::{
    clock::Clock,
    ids::{AgentId, ApiTokenId, PublicationId},
    model::{
        Json,
        audit::{AuditAction, AuditDetails},
        publication::{Publication, PublicationAccess},
        user::ApiToken,
        workspace::{Role, RowOwner},
    },
    secrets::{Keyring, hex, sha256},
};
use secrecy::ExposeSecret;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    actor::{Actor, Permission, RequestOrigin},
    audit::AuditService,
    credentials::{AuthenticatedUser, Authenticator},
    edits::EditBase,
    tokens::{self, read_origins},
    workspaces::members::lock_asking,
};
use crate::{
    error::{ApiError, ApiErrorKind},
    fields::{FieldRule, JsonFields},
};

/// Requests a minute by those who have no account, when nothing else is said.
const RATE: i64 = 60;
/// Bytes of what nobody can guess of an address.
const SECRET: usize = 12;

/// How an agent's page is to be.
#[derive(RequestBody, ToSchema)]
#[schema(as = NewPublication, rename_all = "camelCase")]
pub(crate) struct NewPublication {
    /// The last part of the page's address: small letters, digits and `-`. With `link`, something that nobody can guess is added.
    #[schema(min_length = 1, max_length = 60, pattern = "^[a-z0-9][a-z0-9-]*$")]
    #[body(with = slug)]
    slug: String,
    /// Who may open it: `members` of the workspace, whoever has the `link`, or anybody (`public`).
    #[schema(value_type = String, pattern = "^(members|link|public)$")]
    access: PublicationAccess,
    /// What stands above it; the agent's name when left out.
    #[schema(value_type = Option<String>, max_length = 200)]
    #[body(default)]
    title: String,
    /// What is said before the first question.
    #[schema(value_type = Option<String>, max_length = 2_000)]
    #[body(default)]
    greeting: String,
    /// Questions that can be chosen, at most 6 of 200 characters each.
    #[schema(value_type = Option<Vec<String>>, max_items = 6)]
    #[body(with = questions, default)]
    questions: Vec<String>,
    /// The colour of its buttons, `#RRGGBB`; empty for the service's own.
    #[schema(value_type = Option<String>, max_length = 7, pattern = "^(#[0-9a-fA-F]{6})?$")]
    #[body(with = accent, default)]
    accent: String,
    /// The origins of pages that may show it in a frame, such as `https://www.example.com`; none when left out. Not with `members`, whom
    /// browsers do not make known in the frames of other sites.
    #[schema(value_type = Option<Vec<String>>, max_items = 20)]
    #[body(with = origins, default)]
    origins: Vec<String>,
    /// Questions a minute, at most, by all who have no account; what it was when left out, and 60 for a new page.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 4_294_967_295_i64)]
    rate_per_minute: Option<u32>,
}

#[expect(clippy::unnecessary_wraps, reason = "a reader gives nothing for what is missing")]
fn slug(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    let slug = fields.text(rule.name, rule.max_length);
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !fields.is_refused(rule.name) && (!slug.bytes().all(is_plain) || slug.starts_with('-')) {
        fields.refuse(rule.name, "must be small letters, digits and -, and not begin with -");
    }
    Some(slug)
}

fn questions(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Vec<String>> {
    const LONGEST: usize = 200;
    let texts = fields.texts(rule.name, rule.max_items, "texts")?;
    let questions: Vec<String> = texts.into_iter().map(|text| text.trim().to_owned()).collect();
    if questions.iter().any(|question| question.is_empty() || question.chars().count() > LONGEST) {
        fields.refuse(rule.name, format!("must be texts of 1 to {LONGEST} characters"));
    }
    Some(questions)
}

fn accent(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    let accent = fields.optional_text(rule.name, rule.max_length)?;
    let is_colour = accent
        .strip_prefix('#')
        .is_some_and(|digits| digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if !is_colour && !accent.is_empty() {
        fields.refuse(rule.name, "must be a colour such as #0a58ca");
    }
    Some(accent)
}

/// Reads origins; unlike those of a token, there may be none.
fn origins(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Vec<String>> {
    match fields.get(rule.name) {
        Some(Value::Array(origins)) if origins.is_empty() => Some(Vec::new()),
        Some(_) | None => read_origins(fields, rule),
    }
}

/// A page that somebody opens.
pub(crate) struct OpenPublication {
    pub(crate) page: Publication,
    /// By what those ask who have no account; none where members alone may open it, who ask for themselves.
    grant: Option<TokenGrant>,
}

impl OpenPublication {
    /// Whether people need no account for it.
    pub(crate) fn takes_guests(&self) -> bool {
        self.grant.is_some()
    }
}

/// Published agents. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PublicationService {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
    authenticator: Authenticator,
    audit: AuditService,
}

/// The last part of a page's address, with what nobody can guess of it where a link opens the page.
fn resulting_slug(before: Option<&Publication>, new: &NewPublication) -> String {
    match new.access {
        PublicationAccess::Members | PublicationAccess::Public => new.slug.clone(),
        PublicationAccess::Link => {
            // The link that people have stays good.
            let kept = before.filter(|before| {
                let chosen = before.slug.len().saturating_sub(2 * SECRET + 1);
                before.access == PublicationAccess::Link
                    && before.slug.get(..chosen) == Some(new.slug.as_str())
            });
            kept.map_or_else(
                || format!("{}-{}", new.slug, hex(&rand::random::<[u8; SECRET]>())),
                |before| before.slug.clone(),
            )
        }
    }
}

fn unknown_agent() -> ApiError {
    ApiError::not_found("agent")
}

impl PublicationService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        keyring: Arc<Keyring>,
        authenticator: Authenticator,
        audit: AuditService,
    ) -> Self {
        Self { db, clock, keyring, authenticator, audit }
    }

    /// The page of an agent, if it has one.
    pub(crate) async fn find(&self, actor: &Actor, agent: AgentId) -> Result<Option<Publication>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        db::agents::find(&self.db, owner.workspace_id, agent).await?.ok_or_else(unknown_agent)?;
        Ok(db::publications::find(&self.db, owner.workspace_id, agent).await?)
    }

    /// Gives an agent a page, in the place of the one that it has.
    ///
    /// # Errors
    /// A conflict when the address is another page's, when the agent cannot be asked on a page, and when its page is not what the
    /// change begins from.
    pub(crate) async fn put(
        &self,
        actor: &Actor,
        agent: AgentId,
        new: NewPublication,
        base: EditBase,
    ) -> Result<Publication, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        // It gives others a way in, as a token does.
        actor.may_handle_tokens()?;
        if new.access == PublicationAccess::Members && !new.origins.is_empty() {
            let message = "must be left out where members alone may open the page";
            return Err(ApiError::invalid_field("origins", message));
        }
        self.refuse_what_needs_values(owner, agent).await?;
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        // A member who is removed at this moment leaves no page behind.
        lock_asking(&mut tx, actor, owner.workspace_id).await?;
        if !db::tools::owns_agent(&mut tx, owner.workspace_id, agent).await? {
            return Err(unknown_agent());
        }
        let before = db::publications::find_in(&mut tx, owner.workspace_id, agent).await?;
        base.check(before.as_ref().map_or(EditBase::NEVER, |before| before.updated_at))?;
        let slug = resulting_slug(before.as_ref(), &new);
        let token_id = self.replace_guest_token(&mut tx, owner, agent, before.as_ref(), &slug, &new).await?;
        let page = Publication {
            id: before.as_ref().map_or_else(PublicationId::generate, |before| before.id),
            owner,
            agent_id: agent,
            slug,
            access: new.access,
            title: new.title,
            greeting: new.greeting,
            questions: Json(new.questions),
            accent: new.accent,
            origins: Json(new.origins),
            token_id,
            created_at: before.as_ref().map_or(now, |before| before.created_at),
            updated_at: now,
        };
        if !db::publications::put(&mut tx, &page).await? {
            let message = "Another page has this address. Choose another one.";
            return Err(ApiError::new(ApiErrorKind::Conflict, "slug_taken", message));
        }
        let details = AuditDetails::change(before.map(|before| before.access), Some(page.access));
        self.audit.note_with(&mut tx, actor, AuditAction::Published, "agent", agent, details).await?;
        tx.commit().await?;
        Ok(page)
    }

    /// Deletes the token with which guests of a page ask, and makes another one where its access still lets guests in.
    async fn replace_guest_token(
        &self,
        tx: &mut Tx,
        owner: RowOwner,
        agent: AgentId,
        before: Option<&Publication>,
        slug: &str,
        new: &NewPublication,
    ) -> Result<Option<ApiTokenId>, ApiError> {
        let former = match before.and_then(|before| before.token_id) {
            Some(token) => db::api_tokens::delete(tx, owner.workspace_id, token).await?,
            None => None,
        };
        match new.access {
            PublicationAccess::Members => Ok(None),
            PublicationAccess::Link | PublicationAccess::Public => {
                let rate_before = former.and_then(|token| token.rate_per_minute);
                let rate = new.rate_per_minute.map(i64::from).or(rate_before).unwrap_or(RATE);
                let (token, hash) = self.guest_token(owner, agent, slug, rate)?;
                db::api_tokens::insert(tx, &token, &hash).await?;
                Ok(Some(token.id))
            }
        }
    }

    /// Refuses an agent whose prompt takes values besides the question: a published page does not ask for them, and could only fail.
    async fn refuse_what_needs_values(&self, owner: RowOwner, agent: AgentId) -> Result<(), ApiError> {
        let found = db::agents::find(&self.db, owner.workspace_id, agent).await?.ok_or_else(unknown_agent)?;
        let needed = run::needed_values(&self.db, found.into()).await?;
        if needed.is_empty() {
            return Ok(());
        }
        let message = format!(
            "The agent's prompt takes values that a published page does not ask for ({}), so that it cannot be asked on one. Take them out of its prompt, or give it another one.",
            needed.join(", ")
        );
        Err(ApiError::new(ApiErrorKind::Conflict, "needs_values", message))
    }

    /// A token that asks one agent and is in nobody's hands, its maker's included: its value is not kept.
    fn guest_token(
        &self,
        owner: RowOwner,
        agent: AgentId,
        slug: &str,
        rate: i64,
    ) -> Result<(ApiToken, [u8; 32]), ApiError> {
        let (id, value) = (ApiTokenId::generate(), tokens::random_token(tokens::PREFIX));
        let token_sealed = self.keyring.encrypt(tokens::place(&id), b"")?;
        let token = ApiToken {
            id,
            owner,
            description: format!("Page ask/{slug}"),
            role: Some(Role::Asker),
            agent_id: Some(agent),
            origins: Some(Json(Vec::new())),
            expires_at: None,
            rate_per_minute: Some(rate),
            token_sealed,
            created_at: self.clock.now(),
            last_used_at: None,
        };
        Ok((token, sha256(value.expose_secret().as_bytes())))
    }

    /// Takes an agent's page away; whoever has it open can ask nothing more on it.
    ///
    /// # Errors
    /// Not found, when it has none.
    pub(crate) async fn delete(&self, actor: &Actor, agent: AgentId) -> Result<(), ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let mut tx = self.db.begin_essential().await?;
        // Whoever replaces the page at this moment is done first, or finds none.
        db::locks::lock_workspace(&mut tx, owner.workspace_id).await?;
        let page = db::publications::delete(&mut tx, owner.workspace_id, agent).await?;
        let page = page.ok_or_else(|| ApiError::not_found("publication"))?;
        if let Some(token) = page.token_id {
            db::api_tokens::delete(&mut tx, owner.workspace_id, token).await?;
        }
        let details = AuditDetails::change(Some(page.access), None);
        self.audit.note_with(&mut tx, actor, AuditAction::Unpublished, "agent", agent, details).await?;
        Ok(tx.commit().await?)
    }

    /// The page with this address, for whoever opens it; none when there is no such page, or not any more.
    pub(crate) async fn open(&self, slug: &str) -> Result<Option<OpenPublication>, ApiError> {
        // PostgreSQL takes no text with a NUL, and no page has such an address.
        if slug.contains('\0') {
            return Ok(None);
        }
        let Some(page) = db::publications::find_by_slug(&self.db, slug).await? else { return Ok(None) };
        if page.access == PublicationAccess::Members {
            return Ok(Some(OpenPublication { page, grant: None }));
        }
        let grant = self.grant_of(&page).await?;
        Ok(grant.map(|grant| OpenPublication { page, grant: Some(grant) }))
    }

    /// Whether a page answers: one that takes people without an account does so as long as its token and the membership of whoever
    /// made it are there.
    pub(crate) async fn is_answering(&self, page: &Publication) -> Result<bool, ApiError> {
        Ok(page.access == PublicationAccess::Members || self.grant_of(page).await?.is_some())
    }

    /// How many questions a minute those may ask together who have no account; none where members alone ask, and when the page's token
    /// is gone.
    pub(crate) async fn rate_per_minute(&self, page: &Publication) -> Result<Option<i64>, ApiError> {
        let Some(token) = page.token_id else { return Ok(None) };
        let token = db::api_tokens::find(&self.db, page.owner.workspace_id, token).await?;
        Ok(token.and_then(|token| token.rate_per_minute))
    }

    async fn grant_of(&self, page: &Publication) -> Result<Option<TokenGrant>, ApiError> {
        let Some(token) = page.token_id else { return Ok(None) };
        let (workspace, now) = (page.owner.workspace_id, self.clock.now());
        Ok(db::api_tokens::find_grant_of(&self.db, workspace, token, now).await?)
    }

    /// What a page's agent is called; none when it is gone at this moment.
    pub(crate) async fn agent_name(&self, page: &Publication) -> Result<Option<String>, ApiError> {
        let agent = db::agents::find(&self.db, page.owner.workspace_id, page.agent_id).await?;
        Ok(agent.map(|agent| agent.name))
    }

    /// Who asks on a page without an account; none on one where members ask for themselves.
    ///
    /// # Errors
    /// 429 when those without an account ask too often.
    pub(crate) async fn guest(
        &self,
        open: OpenPublication,
        origin: RequestOrigin,
    ) -> Result<Option<AuthenticatedUser>, ApiError> {
        match open.grant {
            Some(grant) => self.authenticator.by_page(grant, origin).await.map(Some),
            None => Ok(None),
        }
    }
}
