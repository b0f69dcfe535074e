//! Webhooks.

use axum::extract::State;
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{WebhookDeliveryId, WebhookId, WorkspaceId},
    model::webhook::{DeliveryState, WebhookDelivery, WebhookEvent},
};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    extract::{PathId, PathIds, ValidJson},
    idempotency::{BareCreateRequest, CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::{
        edits::EditBase,
        webhooks::{NewWebhook, RevealedWebhook, WebhookChange, WebhookService},
    },
    v1::users::NullBody,
};

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(find, change, remove))
        .routes(routes!(rotate))
        .routes(routes!(test))
        .routes(routes!(deliveries))
        .routes(routes!(replay))
}

/// Where a workspace's events are told to.
#[derive(Serialize, ToSchema)]
#[schema(as = Webhook)]
#[serde(rename_all = "camelCase")]
struct WebhookView {
    /// Its id.
    #[schema(value_type = String)]
    id: WebhookId,
    /// The workspace that it belongs to.
    #[schema(value_type = String)]
    workspace_id: WorkspaceId,
    /// The receiver.
    url: String,
    /// What is told to it.
    #[schema(value_type = Vec<String>)]
    events: Vec<WebhookEvent>,
    /// Whether anything is told to it.
    active: bool,
    /// Why it was switched off by itself; null when it was not.
    #[schema(required = true)]
    disabled: Option<String>,
    /// What its events are signed with, `whsec_…`; only in the answer that makes it, and null from then on.
    #[schema(required = true)]
    secret: Option<String>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<RevealedWebhook> for WebhookView {
    fn from(RevealedWebhook { webhook, url, secret }: RevealedWebhook) -> Self {
        Self {
            id: webhook.id,
            workspace_id: webhook.owner.workspace_id,
            url,
            events: webhook.events.0,
            active: webhook.active,
            disabled: webhook.disabled,
            secret: secret.map(|secret| secret.expose_secret().to_owned()),
            created_at: webhook.created_at,
            updated_at: webhook.updated_at,
        }
    }
}

/// An event on its way to a receiver.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
#[serde(rename_all = "camelCase")]
struct DeliveryView {
    /// Its id; the receiver gets it as `webhook-id`, with `msg_` before it, and knows a repetition by it.
    #[schema(value_type = String)]
    id: WebhookDeliveryId,
    /// The workspace that it belongs to.
    #[schema(value_type = String)]
    workspace_id: WorkspaceId,
    /// What it tells.
    #[schema(value_type = String)]
    event: WebhookEvent,
    /// Where it stands: `pending`, `delivered` or `failed`.
    #[schema(value_type = String)]
    state: DeliveryState,
    /// How often it was tried.
    attempts: i64,
    /// When it is tried next; null when it has ended.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    next_at: Option<Timestamp>,
    /// The status of the last answer.
    #[schema(required = true)]
    status: Option<i64>,
    /// What went wrong the last time.
    #[schema(required = true)]
    error: Option<String>,
    /// What is sent.
    #[schema(value_type = Object)]
    body: Value,
    /// When the event happened.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When the event happened, or when it was taken or given up.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// When it was taken, or given up.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    ended_at: Option<Timestamp>,
}

impl From<WebhookDelivery> for DeliveryView {
    fn from(delivery: WebhookDelivery) -> Self {
        let is_pending = delivery.state == DeliveryState::Pending;
        let updated_at = delivery.updated_at();
        Self {
            id: delivery.id,
            workspace_id: delivery.workspace_id,
            event: delivery.event,
            state: delivery.state,
            attempts: delivery.attempts,
            next_at: Some(delivery.next_at).filter(|_| is_pending),
            status: delivery.last_status,
            error: delivery.last_error,
            body: serde_json::from_str(&delivery.body).unwrap_or_default(),
            created_at: delivery.created_at,
            updated_at,
            ended_at: delivery.ended_at,
        }
    }
}

fn example() -> Value {
    json!({
        "id": "019a8f70-2b3c-7d4e-8f5a-6b7c8d9e0f12",
        "workspaceId": "019a8f3e-0a1b-7c2d-8e3f-4a5b6c7d8e9f",
        "url": "https://example.com/lectern",
        "events": ["document.succeeded", "document.failed"],
        "active": true,
        "disabled": null,
        "secret": null,
        "createdAt": "2026-01-31T08:20:00.000000+00:00",
        "updatedAt": "2026-01-31T08:20:00.000000+00:00",
    })
}

fn revealed_example() -> Value {
    let mut webhook = example();
    webhook["secret"] = json!("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=");
    webhook
}

fn delivery_example() -> Value {
    json!({
        "id": "019a8f71-3c4d-7e5f-8a6b-7c8d9e0f1a23",
        "workspaceId": "019a8f3e-0a1b-7c2d-8e3f-4a5b6c7d8e9f",
        "event": "document.succeeded",
        "state": "delivered",
        "attempts": 1,
        "nextAt": null,
        "status": 200,
        "error": null,
        "body": {
            "type": "document.succeeded",
            "timestamp": "2026-01-31T08:20:00.000000+00:00",
            "data": {"documentId": "019a8f4a-3c55-7d90-b1f2-6e8a0c9d4b37", "name": "Handbook"},
        },
        "createdAt": "2026-01-31T08:20:00.000000+00:00",
        "updatedAt": "2026-01-31T08:20:01.000000+00:00",
        "endedAt": "2026-01-31T08:20:01.000000+00:00",
    })
}

/// Create a webhook
///
/// Has events of the workspace told to an address, as [Standard Webhooks](https://www.standardwebhooks.com) has it: a POST with
/// `{"type", "timestamp", "data"}`, signed with the secret of this answer, which is shown once. What the receiver does not take (with a status of
/// 200 to 299, within 15 seconds) is sent again after 5 seconds, 5 and 30 minutes, and 2, 5, 10, 14, 20 and 24 hours. It may come twice: `webhook-id` is the
/// same then. 410 switches the webhook off.
#[utoipa::path(
    post,
    path = "/webhooks",
    tag = "Webhooks",
    operation_id = "createWebhook",
    request_body(
        content = NewWebhook,
        example = json!({"url": "https://example.com/lectern", "events": ["document.succeeded", "document.failed"]}),
    ),
    responses(
        (
            status = 200,
            description = "The new webhook, with its secret",
            body = inline(SuccessResponse<WebhookView>),
            example = json!({"success": true, "data": revealed_example()}),
        ),
        (status = 409, description = "The workspace has as many webhooks as it may (`too_many_webhooks`)"),
    ),
)]
#[handler]
async fn create(
    State(webhooks): State<WebhookService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewWebhook>,
) -> ApiResult {
    let show = json_encoder(|made: &RevealedWebhook| Ok(WebhookView::from(made.clone())));
    webhooks.create(&caller.actor(), body, once, show).await.map(creation_response)
}

/// List webhooks
///
/// Shows the webhooks of the workspace, newest first, without their secrets.
#[utoipa::path(
    get,
    path = "/webhooks",
    tag = "Webhooks",
    operation_id = "listWebhooks",
    responses((
        status = 200,
        description = "The webhooks",
        body = inline(SuccessResponse<Vec<WebhookView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
#[handler]
async fn index(State(webhooks): State<WebhookService>, caller: Caller, paging: Paging) -> ApiResult {
    list(paging, move |before, limit| {
        let (webhooks, actor) = (webhooks.clone(), caller.actor());
        async move {
            let webhooks = webhooks.list(&actor, before, limit).await?;
            let row = |found: RevealedWebhook| (*found.webhook.id.as_uuid(), WebhookView::from(found));
            Ok(webhooks.into_iter().map(row).collect())
        }
    })
    .await
}

/// Get a webhook
///
/// Shows one webhook, without its secret.
#[utoipa::path(
    get,
    path = "/webhooks/{id}",
    tag = "Webhooks",
    operation_id = "getWebhook",
    params(("id" = String, Path, description = "The webhook's id")),
    responses((
        status = 200,
        description = "The webhook",
        body = inline(SuccessResponse<WebhookView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn find(
    State(webhooks): State<WebhookService>,
    caller: Caller,
    PathId(id): PathId<WebhookId>,
) -> ApiResult {
    Ok(data(WebhookView::from(webhooks.find(&caller.actor(), id).await?)))
}

/// Change a webhook
///
/// Changes what is sent, what there is of it. Switched on again, it gets what is still on its way to it.
#[utoipa::path(
    patch,
    path = "/webhooks/{id}",
    tag = "Webhooks",
    operation_id = "changeWebhook",
    params(("id" = String, Path, description = "The webhook's id")),
    request_body(content = WebhookChange, example = json!({"active": false})),
    responses((
        status = 200,
        description = "The webhook as it is now",
        body = inline(SuccessResponse<WebhookView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn change(
    State(webhooks): State<WebhookService>,
    caller: Caller,
    PathId(id): PathId<WebhookId>,
    ValidJson(body): ValidJson<WebhookChange>,
) -> ApiResult {
    Ok(data(WebhookView::from(webhooks.change(&caller.actor(), id, body, EditBase::Present).await?)))
}

/// Delete a webhook
///
/// Deletes a webhook with what is on its way to it.
#[utoipa::path(
    delete,
    path = "/webhooks/{id}",
    tag = "Webhooks",
    operation_id = "deleteWebhook",
    params(("id" = String, Path, description = "The webhook's id")),
    responses((
        status = 200,
        description = "It is deleted",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn remove(
    State(webhooks): State<WebhookService>,
    caller: Caller,
    PathId(id): PathId<WebhookId>,
) -> ApiResult {
    webhooks.delete(&caller.actor(), id).await?;
    Ok(data(NullBody))
}

/// Give a webhook a new secret
///
/// Makes a new secret, and shows it once. For a day events are signed with the one before it too, so that the receiver can change its own meanwhile.
#[utoipa::path(
    post,
    path = "/webhooks/{id}/rotate",
    tag = "Webhooks",
    operation_id = "rotateWebhookSecret",
    params(("id" = String, Path, description = "The webhook's id")),
    responses((
        status = 200,
        description = "The webhook, with its new secret",
        body = inline(SuccessResponse<WebhookView>),
        example = json!({"success": true, "data": revealed_example()}),
    )),
)]
#[handler]
async fn rotate(
    State(webhooks): State<WebhookService>,
    caller: Caller,
    PathId(id): PathId<WebhookId>,
    BareCreateRequest(once): BareCreateRequest,
) -> ApiResult {
    let show = json_encoder(|made: &RevealedWebhook| Ok(WebhookView::from(made.clone())));
    webhooks.rotate(&caller.actor(), id, once, show).await.map(creation_response)
}

/// Try a webhook
///
/// Has an event `webhook.test` told to it. Look at its deliveries for what came of it.
#[utoipa::path(
    post,
    path = "/webhooks/{id}/test",
    tag = "Webhooks",
    operation_id = "testWebhook",
    params(("id" = String, Path, description = "The webhook's id")),
    responses(
        (
            status = 200,
            description = "The delivery, on its way",
            body = inline(SuccessResponse<DeliveryView>),
            example = json!({"success": true, "data": delivery_example()}),
        ),
        (status = 409, description = "As many tests as may wait for the webhook already (`too_many_tests`)"),
    ),
)]
#[handler]
async fn test(
    State(webhooks): State<WebhookService>,
    caller: Caller,
    PathId(id): PathId<WebhookId>,
    BareCreateRequest(once): BareCreateRequest,
) -> ApiResult {
    let show = json_encoder(|made: &WebhookDelivery| Ok(DeliveryView::from(made.clone())));
    webhooks.test(&caller.actor(), id, once, show).await.map(creation_response)
}

/// List the deliveries to a webhook
///
/// Shows what was told to a webhook, and what is on its way to it, newest first. Deliveries are kept for 30 days.
#[utoipa::path(
    get,
    path = "/webhooks/{id}/deliveries",
    tag = "Webhooks",
    operation_id = "listWebhookDeliveries",
    params(("id" = String, Path, description = "The webhook's id")),
    responses((
        status = 200,
        description = "The deliveries",
        body = inline(SuccessResponse<Vec<DeliveryView>>),
        example = json!({"success": true, "data": [delivery_example()]}),
    )),
)]
#[handler]
async fn deliveries(
    State(webhooks): State<WebhookService>,
    caller: Caller,
    paging: Paging,
    PathId(id): PathId<WebhookId>,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (webhooks, actor) = (webhooks.clone(), caller.actor());
        async move {
            let deliveries = webhooks.deliveries(&actor, id, before, limit).await?;
            let row = |delivery: WebhookDelivery| (*delivery.id.as_uuid(), DeliveryView::from(delivery));
            Ok(deliveries.into_iter().map(row).collect())
        }
    })
    .await
}

/// Replay a delivery
///
/// Sends an event again, with the same id and content, and with all attempts before it.
#[utoipa::path(
    post,
    path = "/webhooks/{id}/deliveries/{deliveryId}/replay",
    tag = "Webhooks",
    operation_id = "replayWebhookDelivery",
    params(
        ("id" = String, Path, description = "The webhook's id"),
        ("deliveryId" = String, Path, description = "The delivery's id"),
    ),
    responses((
        status = 200,
        description = "The delivery, on its way",
        body = inline(SuccessResponse<DeliveryView>),
        example = json!({"success": true, "data": delivery_example()}),
    )),
)]
#[handler]
async fn replay(
    State(webhooks): State<WebhookService>,
    caller: Caller,
    PathIds(id, delivery): PathIds<WebhookId, WebhookDeliveryId>,
) -> ApiResult {
    Ok(data(DeliveryView::from(webhooks.replay(&caller.actor(), id, delivery).await?)))
}
