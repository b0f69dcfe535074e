//! Webhooks: where a workspace's events are told to.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use lectern_db::{self as db, Db, Tx};
use lectern_derive::RequestBody;
use lectern_shared::{
    address,
    clock::Clock,
    egress::Egress,
    ids::{WebhookDeliveryId, WebhookId},
    model::{
        Json,
        audit::{AuditAction, AuditDetails},
        webhook::{Webhook, WebhookAddress, WebhookDelivery, WebhookEvent, WebhookSecrets},
    },
    secrets::{CiphertextLocation, Keyring},
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use std::time::Duration;
use url::Url;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    actor::{Actor, Permission},
    audit::AuditService,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
    edits::EditBase,
    workspaces::members::lock_asking,
};
use crate::{
    error::{ApiError, ApiErrorKind, FieldError},
    fields::{FieldRule, JsonFields},
};

/// Webhooks of one workspace.
const MOST: u64 = 20;
/// Tests that may wait for one webhook.
const MOST_TESTS: u64 = 10;
/// Random bytes of a secret.
const SECRET: usize = 32;
/// How long events are signed with an earlier secret too.
const EARLIER_FOR: Duration = Duration::from_hours(24);

/// A new webhook.
#[derive(RequestBody, ToSchema)]
pub(crate) struct NewWebhook {
    /// The receiver: a public http or https address without credentials.
    #[schema(min_length = 1, max_length = 2_000)]
    #[body(with = address)]
    url: String,
    /// What is told to it: `document.succeeded`, `document.failed`, `document.deleted`, `agent.failed`, `source.finished`,
    /// `evaluation.finished`.
    #[schema(value_type = Vec<String>, max_items = 10)]
    #[body(with = events)]
    events: Vec<WebhookEvent>,
    /// Whether anything is told to it. True when left out.
    #[schema(value_type = Option<bool>)]
    #[body(default = true)]
    active: bool,
}

/// What is to be different about a webhook. What is left out stays as it is.
#[derive(RequestBody, ToSchema)]
#[body(change)]
pub(crate) struct WebhookChange {
    /// The receiver.
    #[schema(min_length = 1, max_length = 2_000, nullable = false)]
    #[body(with = address)]
    url: Option<String>,
    /// What is told to it.
    #[schema(value_type = Option<Vec<String>>, max_items = 10, nullable = false)]
    #[body(with = events)]
    events: Option<Vec<WebhookEvent>>,
    /// Whether anything is told to it. What it was switched off for is forgotten when it is switched on.
    #[schema(nullable = false)]
    active: Option<bool>,
}

#[expect(clippy::unnecessary_wraps, reason = "a reader gives nothing for what is missing")]
fn address(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    let url = fields.text(rule.name, rule.max_length);
    if !fields.is_refused(rule.name) && Url::parse(&url).is_err() {
        fields.refuse(rule.name, "must be an http or https address");
    }
    Some(url)
}

fn events(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Vec<WebhookEvent>> {
    if fields.get(rule.name).is_none() {
        fields.refuse(rule.name, format_args!("is required: a list of some of {}", choices()));
        return None;
    }
    let texts = fields.texts(rule.name, rule.max_items, "events")?;
    let mut events: Vec<WebhookEvent> = Vec::with_capacity(texts.len());
    for text in texts {
        match text.parse::<WebhookEvent>().ok().filter(|event| WebhookEvent::CHOICES.contains(event)) {
            Some(event) if events.contains(&event) => {}
            Some(event) => events.push(event),
            None => {
                fields.refuse(rule.name, format_args!("must be a list of some of {}", choices()));
                return Some(events);
            }
        }
    }
    if events.is_empty() {
        fields.refuse(rule.name, "must name at least one event");
    }
    Some(events)
}

/// The events that one can ask for.
fn choices() -> String {
    WebhookEvent::CHOICES.map(WebhookEvent::as_str).join(", ")
}

/// A webhook with its address, and its secret where that is shown, which is once.
#[derive(Clone)]
pub(crate) struct RevealedWebhook {
    pub(crate) webhook: Webhook,
    /// Empty when it cannot be read.
    pub(crate) url: String,
    pub(crate) secret: Option<SecretString>,
}

/// Webhooks. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WebhookService {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
    egress: Egress,
    creations: IdempotencyStore,
    audit: AuditService,
}

fn unknown() -> ApiError {
    ApiError::not_found("webhook")
}

fn new_secret() -> String {
    format!("whsec_{}", STANDARD.encode(rand::random::<[u8; SECRET]>()))
}

impl WebhookService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        keyring: Arc<Keyring>,
        egress: Egress,
        creations: IdempotencyStore,
        audit: AuditService,
    ) -> Self {
        Self { db, clock, keyring, egress, creations, audit }
    }

    /// Makes a webhook.
    ///
    /// # Errors
    /// When its address is refused, or the workspace has as many as it may.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewWebhook,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<RevealedWebhook>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        self.check_address(&new.url)?;
        let (id, now) = (WebhookId::generate(), self.clock.now());
        let secret = new_secret();
        let webhook = Webhook {
            id,
            owner,
            address: WebhookAddress::seal(&self.keyring, id, &new.url)?,
            events: Json(new.events),
            active: new.active,
            secret_sealed: self.seal(id, &WebhookSecrets::new(secret.clone()))?,
            disabled: None,
            vouched_by: None,
            created_at: now,
            updated_at: now,
        };
        let mut tx = self.db.begin().await?;
        // A member who is removed at this moment leaves no webhook behind.
        lock_asking(&mut tx, actor, owner.workspace_id).await?;
        if db::webhooks::count(&mut tx, owner.workspace_id).await? >= MOST {
            let message = format!("A workspace may have at most {MOST} webhooks.");
            return Err(ApiError::new(ApiErrorKind::Conflict, "too_many_webhooks", message));
        }
        db::webhooks::insert(&mut tx, &webhook).await?;
        let details = AuditDetails::change(None, address::origin(&new.url));
        self.audit.note_with(&mut tx, actor, AuditAction::WebhookCreated, "webhook", id, details).await?;
        let made = RevealedWebhook { webhook, url: new.url, secret: Some(secret.into()) };
        self.creations.commit(tx, once, &made, tell).await
    }

    /// The webhooks before an id, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<RevealedWebhook>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let found = db::webhooks::list(&self.db, owner.workspace_id, before.into(), limit).await?;
        Ok(found.into_iter().map(|webhook| self.revealed(webhook, None)).collect())
    }

    /// One webhook.
    pub(crate) async fn find(&self, actor: &Actor, id: WebhookId) -> Result<RevealedWebhook, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let webhook = db::webhooks::find(&self.db, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        Ok(self.revealed(webhook, None))
    }

    /// Changes a webhook, which is as it is returned afterwards.
    ///
    /// # Errors
    /// When its address is refused, and when it is not what the change begins from.
    pub(crate) async fn change(
        &self,
        actor: &Actor,
        id: WebhookId,
        change: WebhookChange,
        base: EditBase,
    ) -> Result<RevealedWebhook, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        if let Some(url) = &change.url {
            self.check_address(url)?;
        }
        let mut tx = self.db.begin().await?;
        if change.url.is_some() || change.active.is_some() {
            // Nor one that it has answered for at this moment.
            lock_asking(&mut tx, actor, owner.workspace_id).await?;
        }
        let mut webhook = db::webhooks::lock(&mut tx, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        base.check(webhook.updated_at)?;
        let before = self.address(&webhook);
        if let Some(url) = change.url.filter(|url| *url != before) {
            let details = AuditDetails::moved(address::origin(&before), address::origin(&url));
            webhook.address = WebhookAddress::seal(&self.keyring, id, &url)?;
            webhook.vouched_by = Some(actor.user);
            self.audit.note_with(&mut tx, actor, AuditAction::AddressChanged, "webhook", id, details).await?;
        }
        webhook.address = webhook.address.sealed(&self.keyring, id)?;
        webhook.events = change.events.map_or(webhook.events, Json);
        if let Some(active) = change.active {
            self.switch(&mut tx, actor, &mut webhook, active).await?;
        }
        webhook.updated_at = self.clock.now();
        db::webhooks::update(&mut tx, &webhook).await?;
        tx.commit().await?;
        Ok(self.revealed(webhook, None))
    }

    /// Switches a webhook on or off, which is noted if it was not so.
    async fn switch(
        &self,
        tx: &mut Tx,
        actor: &Actor,
        webhook: &mut Webhook,
        active: bool,
    ) -> Result<(), ApiError> {
        if webhook.active == active {
            return Ok(());
        }
        webhook.active = active;
        let action = if active {
            webhook.disabled = None;
            webhook.vouched_by = Some(actor.user);
            AuditAction::WebhookEnabled
        } else {
            AuditAction::WebhookDisabled
        };
        Ok(self.audit.note(tx, actor, action, "webhook", webhook.id).await?)
    }

    /// Deletes a webhook, and what is on its way to it.
    pub(crate) async fn delete(&self, actor: &Actor, id: WebhookId) -> Result<(), ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let mut tx = self.db.begin_essential().await?;
        db::locks::lock_workspace(&mut tx, owner.workspace_id).await?;
        if !db::webhooks::delete(&mut tx, owner.workspace_id, id).await? {
            return Err(unknown());
        }
        self.audit.note(&mut tx, actor, AuditAction::Deleted, "webhook", id).await?;
        Ok(tx.commit().await?)
    }

    /// Gives a webhook a new secret. Events are signed with each earlier one too, for a day after it was replaced.
    pub(crate) async fn rotate(
        &self,
        actor: &Actor,
        id: WebhookId,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<RevealedWebhook>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        db::locks::lock_workspace(&mut tx, owner.workspace_id).await?;
        let mut webhook = db::webhooks::lock(&mut tx, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        let secret = new_secret();
        let secrets = match self.open(&webhook) {
            Ok(before) => before.renewed(secret.clone(), now, now.plus(EARLIER_FOR)),
            // One that cannot be read signs nothing, and is not missed.
            Err(_) => WebhookSecrets::new(secret.clone()),
        };
        webhook.address = webhook.address.sealed(&self.keyring, id)?;
        webhook.secret_sealed = self.seal(id, &secrets)?;
        webhook.updated_at = now;
        db::webhooks::update(&mut tx, &webhook).await?;
        self.audit.note(&mut tx, actor, AuditAction::SecretChanged, "webhook", id).await?;
        let made = self.revealed(webhook, Some(secret.into()));
        self.creations.commit(tx, once, &made, tell).await
    }

    /// Has a test event told to a webhook, be it active or not.
    ///
    /// # Errors
    /// When as many tests as may wait for it already.
    pub(crate) async fn test(
        &self,
        actor: &Actor,
        id: WebhookId,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<WebhookDelivery>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let mut tx = self.db.begin().await?;
        db::webhooks::lock(&mut tx, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        if db::webhooks::waiting_tests(&mut tx, id).await? >= MOST_TESTS {
            let message = format!(
                "{MOST_TESTS} tests wait for this webhook. Look at its deliveries for what its receiver answers."
            );
            return Err(ApiError::new(ApiErrorKind::Conflict, "too_many_tests", message));
        }
        let (data, now) = (json!({"webhookId": id}), self.clock.now());
        let event = WebhookEvent::Test;
        let delivery = db::webhooks::deliver(&mut tx, owner.workspace_id, id, event, &data, now).await?;
        self.creations.commit(tx, once, &delivery, tell).await
    }

    /// The deliveries to a webhook before an id, newest first.
    pub(crate) async fn deliveries(
        &self,
        actor: &Actor,
        id: WebhookId,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<WebhookDelivery>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        self.find(actor, id).await?;
        Ok(db::webhooks::deliveries(&self.db, owner.workspace_id, id, before.into(), limit).await?)
    }

    /// Has a delivery tried anew, with the same id and content, and returns it.
    pub(crate) async fn replay(
        &self,
        actor: &Actor,
        webhook: WebhookId,
        id: WebhookDeliveryId,
    ) -> Result<WebhookDelivery, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let mut tx = self.db.begin().await?;
        let now = self.clock.now();
        let replayed = db::webhooks::replay(&mut tx, owner.workspace_id, webhook, id, now).await?;
        let replayed = replayed.ok_or_else(|| ApiError::not_found("delivery"))?;
        tx.commit().await?;
        Ok(replayed)
    }

    /// Whether requests may be sent there, as far as the address alone tells.
    fn check_address(&self, url: &str) -> Result<(), ApiError> {
        let checked = Url::parse(url).map_err(|_| "must be an http or https address".to_owned());
        let checked = checked.and_then(|url| self.egress.check_url(&url).map_err(|error| error.to_string()));
        checked.map_err(|message| ApiError::invalid(vec![FieldError::new("url", &message)]))
    }

    fn revealed(&self, webhook: Webhook, secret: Option<SecretString>) -> RevealedWebhook {
        RevealedWebhook { url: self.address(&webhook), webhook, secret }
    }

    /// The address of a webhook. One that cannot be read is shown as none, so that another can be set.
    fn address(&self, webhook: &Webhook) -> String {
        webhook.address.open(&self.keyring, webhook.id).unwrap_or_else(|error| {
            tracing::error!(%error, webhook = %webhook.id, "the address of a webhook cannot be read");
            String::new()
        })
    }

    fn seal(&self, id: WebhookId, secrets: &WebhookSecrets) -> Result<Vec<u8>, ApiError> {
        let text = serde_json::to_vec(secrets).map_err(|_| ApiError::internal())?;
        Ok(self.keyring.encrypt(CiphertextLocation::webhook_secret(id.as_uuid()), &text)?)
    }

    fn open(&self, webhook: &Webhook) -> Result<WebhookSecrets, ApiError> {
        let place = CiphertextLocation::webhook_secret(webhook.id.as_uuid());
        let text = self.keyring.decrypt_text(place, &webhook.secret_sealed)?;
        serde_json::from_str(text.expose_secret()).map_err(|_| ApiError::internal())
    }
}
