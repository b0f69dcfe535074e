//! Webhooks in a browser.

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_derive::{RequestBody, handler};
use lectern_shared::{
    clock::Timestamp,
    ids::{WebhookDeliveryId, WebhookId},
    model::webhook::{DeliveryState, Webhook, WebhookDelivery, WebhookEvent},
};
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::{
    PagePolicy,
    confirm::Confirmed,
    edits::{EditForm, ShownFields, was_made},
    frame::{Frame, SubmittedForm, Visitor},
    html,
    text::{counted, filters},
};
use crate::{
    error::ApiError,
    extract::{PathId, PathIds, parameter},
    response::ApiResult,
    services::{
        creation::{CreationOutcome, IdempotentRequest},
        webhooks::{NewWebhook, RevealedWebhook, WebhookChange, WebhookService},
    },
};

/// Deliveries of a page.
const DELIVERIES: u32 = 50;
/// Webhooks that are shown: a workspace has fewer.
const WEBHOOKS: u32 = 200;

/// The events that one can choose, and what they say.
const EVENTS: [(WebhookEvent, &str); 6] = [
    (WebhookEvent::DocumentSucceeded, "a document can be searched"),
    (WebhookEvent::DocumentFailed, "a document could not be read"),
    (WebhookEvent::DocumentDeleted, "a document was deleted"),
    (WebhookEvent::AgentFailed, "an agent could not answer"),
    (WebhookEvent::SourceFinished, "a run of a source came to its end, or asks"),
    (WebhookEvent::EvaluationFinished, "a run of an evaluation came to its end"),
];

#[derive(Template)]
#[template(path = "webhooks.html")]
struct WebhooksPage {
    frame: Frame,
    webhooks: Vec<RevealedWebhook>,
    events: [(WebhookEvent, &'static str); 6],
    /// A new webhook's secret, which is shown once.
    secret: Option<String>,
}

#[derive(Template)]
#[template(path = "webhook.html")]
struct WebhookPage {
    frame: Frame,
    /// What its form is made from.
    seen: String,
    webhook: Webhook,
    url: String,
    /// The events, what they say, and whether they are chosen.
    events: Vec<(WebhookEvent, &'static str, bool)>,
    deliveries: Vec<DeliveryRow>,
    is_busy: bool,
    next: Option<WebhookDeliveryId>,
    secret: Option<String>,
}

struct DeliveryRow {
    id: WebhookDeliveryId,
    event: WebhookEvent,
    word: &'static str,
    tone: &'static str,
    detail: String,
    /// When it is tried again.
    next_at: Option<Timestamp>,
    body: String,
    created_at: Timestamp,
}

impl From<WebhookDelivery> for DeliveryRow {
    fn from(delivery: WebhookDelivery) -> Self {
        let (word, tone) = match delivery.state {
            DeliveryState::Pending => ("On its way", "busy"),
            DeliveryState::Delivered => ("Delivered", "good"),
            DeliveryState::Failed => ("Given up", "bad"),
        };
        let tries = counted(delivery.attempts.unsigned_abs(), "try", "tries");
        let is_waiting = delivery.state == DeliveryState::Pending && delivery.attempts > 0;
        let detail = [Some(tries).filter(|_| delivery.attempts > 0), delivery.last_error];
        Self {
            id: delivery.id,
            event: delivery.event,
            word,
            tone,
            detail: detail.into_iter().flatten().collect::<Vec<_>>().join(", "),
            next_at: is_waiting.then_some(delivery.next_at),
            body: delivery.body,
            created_at: delivery.created_at,
        }
    }
}

/// Shows the webhooks.
#[handler]
pub(super) async fn list(State(webhooks): State<WebhookService>, visitor: Visitor) -> ApiResult {
    let found = webhooks.list(&visitor.actor(), Uuid::max(), WEBHOOKS).await?;
    let page = WebhooksPage { frame: visitor.frame, webhooks: found, events: EVENTS, secret: None };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// What is noted of a new secret: itself, since it is shown.
#[expect(clippy::unnecessary_wraps, reason = "it stands for what can fail")]
fn secret_of(made: &RevealedWebhook) -> Result<Vec<u8>, ApiError> {
    let secret = made.secret.as_ref().map(|secret| secret.expose_secret().as_bytes().to_vec());
    Ok(secret.unwrap_or_default())
}

fn secret_in(made: CreationOutcome) -> String {
    let (CreationOutcome::Now(secret) | CreationOutcome::Before(secret)) = made;
    String::from_utf8_lossy(&secret).into_owned()
}

/// Makes one, and shows its secret.
#[handler]
pub(super) async fn create(
    State(webhooks): State<WebhookService>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewWebhook>,
) -> ApiResult {
    let actor = visitor.actor();
    let made = webhooks.create(&actor, body, once, secret_of).await?;
    let found = webhooks.list(&actor, Uuid::max(), WEBHOOKS).await?;
    let secret = Some(secret_in(made));
    let page = WebhooksPage { frame: visitor.frame, webhooks: found, events: EVENTS, secret };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Shows one, and what was told to it.
#[handler]
pub(super) async fn show(
    State(webhooks): State<WebhookService>,
    visitor: Visitor,
    uri: Uri,
    PathId(id): PathId<WebhookId>,
) -> ApiResult {
    let before = parameter(&uri, "after").and_then(|after| after.parse().ok()).unwrap_or_else(Uuid::max);
    page(&webhooks, visitor, id, before, None).await
}

/// What the form of a webhook shows.
fn shown(RevealedWebhook { webhook, url, .. }: &RevealedWebhook) -> ShownFields {
    let events = EVENTS.into_iter().filter(|(event, _)| webhook.events.0.contains(event));
    let events: Vec<&str> = events.map(|(event, _)| event.as_str()).collect();
    ShownFields::of(webhook.updated_at)
        .text("url", "Address", url)
        .choice("events", "It is told when", &events.join("\n"), &[])
        .switch("active", "It is on", webhook.active)
}

async fn page(
    webhooks: &WebhookService,
    visitor: Visitor,
    id: WebhookId,
    before: Uuid,
    secret: Option<String>,
) -> ApiResult {
    let actor = visitor.actor();
    let revealed = webhooks.find(&actor, id).await?;
    let seen = shown(&revealed).seen();
    let RevealedWebhook { webhook, url, .. } = revealed;
    let mut found = webhooks.deliveries(&actor, id, before, DELIVERIES + 1).await?;
    let has_more = found.len() > DELIVERIES as usize;
    found.truncate(DELIVERIES as usize);
    let chosen =
        |(event, words): (WebhookEvent, &'static str)| (event, words, webhook.events.0.contains(&event));
    let page = WebhookPage {
        events: EVENTS.into_iter().map(chosen).collect(),
        is_busy: found.iter().any(|delivery| delivery.state == DeliveryState::Pending),
        next: found.last().map(|last| last.id).filter(|_| has_more),
        deliveries: found.into_iter().map(DeliveryRow::from).collect(),
        secret,
        seen,
        webhook,
        url,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Changes one.
#[handler]
pub(super) async fn change(
    State(webhooks): State<WebhookService>,
    PathId(id): PathId<WebhookId>,
    EditForm { visitor, body, edit }: EditForm<WebhookChange>,
) -> ApiResult {
    let actor = visitor.actor();
    if was_made(webhooks.change(&actor, id, body, edit.base()).await)? {
        return Ok(visitor.go(&format!("webhooks/{id}?said=saved")));
    }
    let shows = shown(&webhooks.find(&actor, id).await?);
    edit.outdated(visitor, &shows, None, &format!("webhooks/{id}"))
}

/// A form that asks for a new secret, of which nothing else is to be said.
#[derive(RequestBody)]
#[body(change)]
pub(super) struct SecretRotation {}

/// Gives one a new secret, and shows it.
#[handler]
pub(super) async fn rotate(
    State(webhooks): State<WebhookService>,
    PathId(id): PathId<WebhookId>,
    SubmittedForm { visitor, once, .. }: SubmittedForm<SecretRotation>,
) -> ApiResult {
    let made = webhooks.rotate(&visitor.actor(), id, once, secret_of).await?;
    page(&webhooks, visitor, id, Uuid::max(), Some(secret_in(made))).await
}

/// Has a test event told to one.
#[handler]
pub(super) async fn test(
    State(webhooks): State<WebhookService>,
    visitor: Visitor,
    PathId(id): PathId<WebhookId>,
) -> ApiResult {
    let actor = visitor.actor();
    // Each press of the button is a test of its own.
    let once = IdempotentRequest::new(&actor, None, "", &[]);
    webhooks.test(&actor, id, once, |_| Ok(Vec::new())).await?;
    Ok(visitor.go(&format!("webhooks/{id}?said=sent")))
}

/// Has a delivery tried anew.
#[handler]
pub(super) async fn replay(
    State(webhooks): State<WebhookService>,
    visitor: Visitor,
    PathIds(id, delivery): PathIds<WebhookId, WebhookDeliveryId>,
) -> ApiResult {
    webhooks.replay(&visitor.actor(), id, delivery).await?;
    Ok(visitor.go(&format!("webhooks/{id}?said=sent")))
}

/// Deletes one.
#[handler]
pub(super) async fn delete(
    State(webhooks): State<WebhookService>,
    PathId(id): PathId<WebhookId>,
    Confirmed(visitor): Confirmed,
) -> ApiResult {
    webhooks.delete(&visitor.actor(), id).await?;
    Ok(visitor.go("webhooks?said=removed"))
}
