//! Webhooks of a store from before those of people who leave were switched off.

use lectern_shared::ids::WebhookId;
use uuid::Uuid;

use crate::{
    Tx, execute, migrate,
    testing::{both_empty, commit},
    webhooks,
};

/// The last version of the schema that left them on.
const BEFORE: i64 = 29;
/// Its account is `$1`.
const USER: &str = "INSERT INTO users (id, email, email_key, name, password_hash, is_admin, token_version, created_at, updated_at, deleted_at)
     VALUES ($1, $2, $2, 'somebody', 'hash', FALSE, 0, 0, 0, $3)";
const WORKSPACE: &str =
    "INSERT INTO workspaces (id, name, is_personal, search_epoch, fair_at, created_at, updated_at)
     VALUES ($1, 'Team', FALSE, 0, 0, 0, 0)";
const MEMBER: &str = "INSERT INTO members (workspace_id, user_id, role, joined_at) VALUES ($1, $2, $3, 0)";
const WEBHOOK: &str = "INSERT INTO webhooks (id, workspace_id, created_by, vouched_by, url, events, active, secret_sealed, created_at, updated_at)
     VALUES ($1, $2, $3, $4, 'https://a.example', '[]', $5, $6, 0, 7)";

/// Adds an account that has this role in a workspace, or none, and is deleted or not.
async fn person(
    tx: &mut Tx,
    workspace: Uuid,
    role: Option<&str>,
    deleted_at: Option<i64>,
) -> crate::Result<Uuid> {
    let id = Uuid::now_v7();
    execute!(tx, sqlx::query(USER).bind(id).bind(id.to_string()).bind(deleted_at))?;
    if let Some(role) = role {
        execute!(tx, sqlx::query(MEMBER).bind(workspace).bind(id).bind(role))?;
    }
    Ok(id)
}

/// Adds a webhook that one made and another, if there is one, has answered for since.
async fn added(
    tx: &mut Tx,
    workspace: Uuid,
    maker: Option<Uuid>,
    voucher: Option<Uuid>,
    active: bool,
) -> crate::Result<WebhookId> {
    let id = Uuid::now_v7();
    let sealed: &[u8] = b"sealed";
    execute!(
        tx,
        sqlx::query(WEBHOOK).bind(id).bind(workspace).bind(maker).bind(voucher).bind(active).bind(sealed)
    )?;
    Ok(id.into())
}

#[tokio::test]
async fn webhooks_that_nobody_with_the_right_answers_for_are_switched_off_by_an_upgrade() {
    const LEFT: &str = "Whoever set it up is a member no more.";
    const LOWERED: &str = "Whoever set it up builds here no more.";
    for t in &both_empty().await {
        migrate::run_to(&t.db, BEFORE).await.unwrap();
        let team = Uuid::now_v7();
        let cases = commit!(t.db, |tx| async {
            execute!(tx, sqlx::query(WORKSPACE).bind(team))?;
            let owner = Some(person(tx, team, Some("owner"), None).await?);
            let builder = Some(person(tx, team, Some("builder"), None).await?);
            let editor = Some(person(tx, team, Some("editor"), None).await?);
            let left = Some(person(tx, team, None, None).await?);
            let deleted = Some(person(tx, team, Some("owner"), Some(1)).await?);
            Ok::<_, crate::DbError>([
                (added(tx, team, owner, None, true).await?, true, None),
                (added(tx, team, builder, None, true).await?, true, None),
                (added(tx, team, editor, None, true).await?, false, Some(LOWERED)),
                (added(tx, team, left, None, true).await?, false, Some(LEFT)),
                (added(tx, team, deleted, None, true).await?, false, Some(LEFT)),
                (added(tx, team, left, builder, true).await?, true, None),
                (added(tx, team, builder, left, true).await?, false, Some(LEFT)),
                (added(tx, team, left, None, false).await?, false, None),
            ])
        });
        migrate::run(&t.db).await.unwrap();
        for (number, (id, active, why)) in cases.into_iter().enumerate() {
            let webhook = webhooks::find(&t.db, team.into(), id).await.unwrap().unwrap();
            assert_eq!(webhook.active, active, "{}, {number}", t.name);
            let said = webhook.disabled.as_deref().and_then(|said| said.split_inclusive('.').next());
            assert_eq!(said, why, "{}, {number}", t.name);
            let has_changed = webhook.updated_at.as_micros() != 7;
            assert_eq!(has_changed, why.is_some(), "{}, {number}", t.name);
        }
    }
}
