//! Webhooks, and the events on their way to them. An event is written in the transaction that makes it true.

use std::time::Duration;

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, UserId, WebhookDeliveryId, WebhookId, WorkspaceId},
    model::{
        job::IngestionError,
        webhook::{DeliveryState, Webhook, WebhookAddress, WebhookDelivery, WebhookEvent},
    },
};
use serde_json::{Value, json};
use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::{Db, Result, Tx, execute, on};

/// How long deliveries that have ended are kept.
pub const KEPT_FOR: Duration = Duration::from_hours(30 * 24);

/// Deliveries of one webhook that [`due`] gives at once.
pub const OF_EACH: usize = 2;

/// Deliveries of one workspace that [`due`] gives at once.
pub const OF_WORKSPACE: usize = 4;

/// Adds a webhook.
pub async fn insert(tx: &mut Tx, webhook: &Webhook) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO webhooks (id, workspace_id, created_by, url, url_sealed, events, active, secret_sealed, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
        )
        .bind(webhook.id)
        .bind(webhook.owner.workspace_id)
        .bind(webhook.owner.creator())
        .bind(webhook.address.url.as_str())
        .bind(webhook.address.url_sealed.as_deref())
        .bind(&webhook.events)
        .bind(webhook.active)
        .bind(webhook.secret_sealed.as_slice())
        .bind(webhook.created_at)
        .bind(webhook.updated_at)
    )?;
    Ok(())
}

/// One of a workspace's webhooks.
pub async fn find(db: &Db, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Webhook>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM webhooks WHERE id = $1 AND workspace_id = $2")
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// [`find`] within a transaction; nobody else changes it until that ends.
pub async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: WebhookId) -> Result<Option<Webhook>> {
    Ok(on!(tx, |c| sqlx::query_as(
        "UPDATE webhooks SET updated_at = updated_at WHERE id = $1 AND workspace_id = $2 RETURNING *"
    )
    .bind(id)
    .bind(workspace)
    .fetch_optional(c))?)
}

/// Those of these webhooks that a workspace has.
pub async fn find_all(db: &Db, workspace: WorkspaceId, ids: &[Uuid]) -> Result<Vec<Webhook>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new("SELECT * FROM webhooks WHERE workspace_id = ");
        query.push_bind(workspace).push(" AND id IN (");
        let mut list = query.separated(", ");
        for id in ids {
            list.push_bind(*id);
        }
        query.push(")").build_query_as().fetch_all(c).await
    })?)
}

/// At most `limit` of a workspace's webhooks older than `before`, newest first.
pub async fn list(db: &Db, workspace: WorkspaceId, before: WebhookId, limit: u32) -> Result<Vec<Webhook>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT * FROM webhooks WHERE workspace_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
    )
    .bind(workspace)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// How many webhooks a workspace has.
pub async fn count(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64> {
    let count: i64 =
        on!(tx, |c| sqlx::query_scalar("SELECT COUNT(*) FROM webhooks WHERE workspace_id = $1")
            .bind(workspace)
            .fetch_one(c))?;
    Ok(count.unsigned_abs())
}

/// Makes a webhook what it is said to be.
pub async fn update(tx: &mut Tx, webhook: &Webhook) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE webhooks SET url = $3, url_sealed = $4, events = $5, active = $6, secret_sealed = $7, disabled = $8,
                                 vouched_by = $9, updated_at = $10
             WHERE id = $1 AND workspace_id = $2"
        )
        .bind(webhook.id)
        .bind(webhook.owner.workspace_id)
        .bind(webhook.address.url.as_str())
        .bind(webhook.address.url_sealed.as_deref())
        .bind(&webhook.events)
        .bind(webhook.active)
        .bind(webhook.secret_sealed.as_slice())
        .bind(webhook.disabled.as_deref())
        .bind(webhook.vouched_by)
        .bind(webhook.updated_at)
    )?;
    Ok(())
}

/// Deletes one of a workspace's webhooks, and what is on its way to it; false when there is none.
pub async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: WebhookId) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("DELETE FROM webhooks WHERE id = $1 AND workspace_id = $2").bind(id).bind(workspace)
    )?;
    Ok(rows == 1)
}

macro_rules! select_receivers {
    ($lock:literal) => {
        concat!(
            "SELECT id FROM webhooks WHERE workspace_id = $1 AND active AND events LIKE $2 ORDER BY id ",
            $lock
        )
    };
}

/// Has an event told to every webhook of a workspace that wants it.
pub async fn emit(
    tx: &mut Tx,
    workspace: WorkspaceId,
    event: WebhookEvent,
    data: &Value,
    now: Timestamp,
) -> Result<()> {
    // As it stands in the JSON of the list.
    let wanted = format!("%\"{event}\"%");
    let statement = match tx {
        // One that is being deleted is waited for: what points to it would be refused, and take with it what is to be told.
        Tx::Postgres(_) => select_receivers!("FOR KEY SHARE"),
        Tx::Sqlite(_) => select_receivers!(""),
    };
    let receivers: Vec<WebhookId> =
        on!(tx, |c| sqlx::query_scalar(statement).bind(workspace).bind(wanted).fetch_all(c))?;
    for receiver in receivers {
        deliver(tx, workspace, receiver, event, data, now).await?;
    }
    Ok(())
}

/// Has an event told to one webhook, and returns the delivery.
pub async fn deliver(
    tx: &mut Tx,
    workspace: WorkspaceId,
    webhook: WebhookId,
    event: WebhookEvent,
    data: &Value,
    now: Timestamp,
) -> Result<WebhookDelivery> {
    let body = json!({"type": event, "timestamp": now, "data": data}).to_string();
    Ok(on!(tx, |c| {
        sqlx::query_as(
        "INSERT INTO webhook_deliveries (id, workspace_id, webhook_id, event, body, state, attempts, next_at, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $7) RETURNING *"
    )
    .bind(WebhookDeliveryId::generate())
    .bind(workspace)
    .bind(webhook)
    .bind(event)
    .bind(body.as_str())
    .bind(DeliveryState::Pending)
    .bind(now)
    .fetch_one(c)
    })?)
}

/// How many tests wait for a webhook. It must be [locked](lock).
pub async fn waiting_tests(tx: &mut Tx, webhook: WebhookId) -> Result<u64> {
    let count: i64 = on!(tx, |c| sqlx::query_scalar(
        "SELECT COUNT(*) FROM webhook_deliveries
         WHERE webhook_id = $1 AND event = 'webhook.test' AND state = 'pending'"
    )
    .bind(webhook)
    .fetch_one(c))?;
    Ok(count.unsigned_abs())
}

/// [`emit`], of documents whose ingestion has ended: well, or with this error.
pub async fn emit_ingestion(
    tx: &mut Tx,
    workspace: WorkspaceId,
    documents: &[DocumentId],
    error: Option<&IngestionError>,
    now: Timestamp,
) -> Result<()> {
    let any: Option<i64> = on!(tx, |c| sqlx::query_scalar(
        "SELECT CAST(1 AS BIGINT) FROM webhooks WHERE workspace_id = $1 AND active LIMIT 1"
    )
    .bind(workspace)
    .fetch_optional(c))?;
    if any.is_none() {
        return Ok(());
    }
    for document in documents {
        let name: Option<String> = on!(tx, |c| sqlx::query_scalar(
            "SELECT name FROM documents WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(document)
        .fetch_optional(c))?;
        let Some(name) = name else { continue };
        let (event, data) = match error {
            None => (WebhookEvent::DocumentSucceeded, json!({"documentId": document, "name": name})),
            Some(IngestionError { code, message, .. }) => (
                WebhookEvent::DocumentFailed,
                json!({"documentId": document, "name": name, "error": {"code": code, "message": message}}),
            ),
        };
        emit(tx, workspace, event, &data, now).await?;
    }
    Ok(())
}

/// A delivery that is to be tried now, and what it takes.
#[derive(Debug, sqlx::FromRow)]
pub struct DueDelivery {
    /// The delivery.
    #[sqlx(flatten)]
    pub delivery: WebhookDelivery,
    /// The receiver.
    #[sqlx(flatten)]
    pub address: WebhookAddress,
    /// What it is signed with, sealed.
    pub secret_sealed: Vec<u8>,
}

/// One of the next deliveries to each of the webhooks that something waits for. SQLite has no `LATERAL`, so each is a subquery of its own.
macro_rules! next_of_each {
    ($which:literal, $skipped:literal) => {
        concat!(
            "SELECT (SELECT p.id FROM webhook_deliveries p
                     WHERE p.webhook_id = w.id AND p.state = 'pending' AND p.next_at <= $1",
            $which,
            " ORDER BY p.next_at, p.id LIMIT 1 OFFSET ",
            $skipped,
            ") FROM waiting CROSS JOIN webhooks w WHERE w.id = waiting.webhook_id AND "
        )
    };
}

/// Goes from webhook to webhook, so it takes as long as there are webhooks that something waits for, however much that is. To one that is
/// not active only tests are sent. Of each workspace few are looked at, so that what waits for receivers that hang hides nobody else's.
/// `CROSS JOIN` tells SQLite, which cannot know how few there are on its left, where to begin.
pub(crate) const DUE: &str = concat!(
    "WITH RECURSIVE waiting (webhook_id) AS (
         SELECT (SELECT webhook_id FROM webhook_deliveries WHERE state = 'pending' ORDER BY webhook_id, next_at, id LIMIT 1)
         UNION ALL
         SELECT (SELECT p.webhook_id FROM webhook_deliveries p
                 WHERE p.state = 'pending' AND p.webhook_id > waiting.webhook_id
                 ORDER BY p.webhook_id, p.next_at, p.id LIMIT 1)
         FROM waiting WHERE waiting.webhook_id IS NOT NULL),
     next (id) AS (",
    next_of_each!("", "0"),
    "w.active UNION ALL ",
    next_of_each!("", "1"),
    "w.active UNION ALL ",
    next_of_each!(" AND p.event = 'webhook.test'", "0"),
    "NOT w.active UNION ALL ",
    next_of_each!(" AND p.event = 'webhook.test'", "1"),
    "NOT w.active),
     ranked (id, next_at, place) AS (
         SELECT d.id, d.next_at, ROW_NUMBER() OVER (PARTITION BY d.workspace_id ORDER BY d.next_at, d.id)
         FROM next CROSS JOIN webhook_deliveries d WHERE d.id = next.id),
     taken (id) AS (SELECT id FROM ranked WHERE place <= $3 ORDER BY next_at, id LIMIT $2)
     SELECT d.*, w.url, w.url_sealed, w.secret_sealed
     FROM taken CROSS JOIN webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE d.id = taken.id
     ORDER BY d.next_at, d.id"
);

/// At most `limit` deliveries that are due, of each webhook at most [`OF_EACH`] and of each workspace at most [`OF_WORKSPACE`], those
/// that wait longest first.
pub async fn due(db: &Db, now: Timestamp, limit: u32) -> Result<Vec<DueDelivery>> {
    let of_workspace = i64::try_from(OF_WORKSPACE).unwrap_or(i64::MAX);
    Ok(on!(db, |c| sqlx::query_as(DUE).bind(now).bind(i64::from(limit)).bind(of_workspace).fetch_all(c))?)
}

/// Takes a delivery up, so that no other process tries it until `again_at`, when this one must have gone away. False when another
/// has it, or it has ended.
pub async fn claim(tx: &mut Tx, delivery: &WebhookDelivery, again_at: Timestamp) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE webhook_deliveries SET attempts = attempts + 1, next_at = $4
             WHERE id = $1 AND state = 'pending' AND attempts = $2 AND next_at = $3"
        )
        .bind(delivery.id)
        .bind(delivery.attempts)
        .bind(delivery.next_at)
        .bind(again_at)
    )?;
    Ok(rows == 1)
}

/// How an attempt at a delivery ended.
#[derive(Clone, Debug)]
pub struct AttemptResult<'a> {
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: Option<&'a str>,
    /// When it is tried again; none when it has ended.
    pub retry_at: Option<Timestamp>,
}

/// Notes how an attempt ended: `attempt` is its number, and nothing is noted when another one has begun since.
pub async fn finish(
    tx: &mut Tx,
    id: WebhookDeliveryId,
    attempt: i64,
    result: &AttemptResult<'_>,
    now: Timestamp,
) -> Result<()> {
    let state = match (result.error, result.retry_at) {
        (None, _) => DeliveryState::Delivered,
        (Some(_), Some(_)) => DeliveryState::Pending,
        (Some(_), None) => DeliveryState::Failed,
    };
    execute!(
        tx,
        sqlx::query(
            "UPDATE webhook_deliveries SET state = $3, last_status = $4, last_error = $5, next_at = COALESCE($6, next_at), ended_at = $7
             WHERE id = $1 AND attempts = $2 AND state = 'pending'"
        )
        .bind(id)
        .bind(attempt)
        .bind(state)
        .bind(result.status.map(i64::from))
        .bind(result.error)
        .bind(result.retry_at)
        .bind((state != DeliveryState::Pending).then_some(now))
    )?;
    Ok(())
}

/// Switches a webhook off whose receiver is still at this address, and says why. One whose address was encrypted anew meanwhile stays as it
/// is, until its receiver is asked again.
pub async fn disable(
    tx: &mut Tx,
    id: WebhookId,
    address: &WebhookAddress,
    why: &str,
    now: Timestamp,
) -> Result<()> {
    // What stands for no ciphertext, since nothing equals NULL.
    let none: &[u8] = &[];
    execute!(
        tx,
        sqlx::query(
            "UPDATE webhooks SET active = FALSE, disabled = $5, updated_at = $6
             WHERE id = $1 AND url = $2 AND COALESCE(url_sealed, $4) = $3"
        )
        .bind(id)
        .bind(address.url.as_str())
        .bind(address.url_sealed.as_deref().unwrap_or(none))
        .bind(none)
        .bind(why)
        .bind(now)
    )?;
    Ok(())
}

/// Switches off the webhooks that a member answers for, and says why; which they are.
pub(crate) async fn disable_of_member(
    tx: &mut Tx,
    workspace: WorkspaceId,
    user: UserId,
    why: &str,
    now: Timestamp,
) -> Result<Vec<WebhookId>> {
    Ok(on!(tx, |c| {
        sqlx::query_scalar(
        "UPDATE webhooks SET active = FALSE, disabled = $3, updated_at = $4
         WHERE workspace_id = $1 AND COALESCE(vouched_by, created_by, workspace_id) = $2 AND active RETURNING id"
    )
    .bind(workspace)
    .bind(user)
    .bind(why)
    .bind(now)
    .fetch_all(c)
    })?)
}

/// At most `limit` of a webhook's deliveries older than `before`, newest first.
pub async fn deliveries(
    db: &Db,
    workspace: WorkspaceId,
    webhook: WebhookId,
    before: WebhookDeliveryId,
    limit: u32,
) -> Result<Vec<WebhookDelivery>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT * FROM webhook_deliveries WHERE workspace_id = $1 AND webhook_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
    )
    .bind(workspace)
    .bind(webhook)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c)
    })?)
}

/// Has a delivery tried anew from now on, as if it never was, and returns it; none when the webhook has no such delivery.
pub async fn replay(
    tx: &mut Tx,
    workspace: WorkspaceId,
    webhook: WebhookId,
    id: WebhookDeliveryId,
    now: Timestamp,
) -> Result<Option<WebhookDelivery>> {
    Ok(on!(tx, |c| {
        sqlx::query_as(
        "UPDATE webhook_deliveries SET state = 'pending', attempts = 0, next_at = $4, ended_at = NULL, last_status = NULL,
                                       last_error = NULL
         WHERE id = $1 AND webhook_id = $2 AND workspace_id = $3 RETURNING *"
    )
    .bind(id)
    .bind(webhook)
    .bind(workspace)
    .bind(now)
    .fetch_optional(c)
    })?)
}

/// Forgets deliveries that happened long ago; at most `limit`.
pub async fn expire(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<u64> {
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM webhook_deliveries WHERE id IN (
                 SELECT id FROM webhook_deliveries WHERE created_at < $1 ORDER BY created_at LIMIT $2)"
        )
        .bind(now.minus(KEPT_FOR))
        .bind(i64::from(limit))
    )
}
