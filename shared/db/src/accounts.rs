//! Accounts. Each has a workspace of its own, whose id is the account's, and is its owner.

use std::fmt;

use lectern_shared::{
    clock::Timestamp,
    ids::{UserId, WorkspaceId},
    model::{
        Json,
        user::User,
        workspace::{Role, Workspace, WorkspaceQuotas},
    },
};
use sqlx::QueryBuilder;

use crate::{Db, Result, Tx, execute, on, silence, workspaces};

/// A new account's row.
pub struct NewUser<'a> {
    /// Its id.
    pub id: UserId,
    /// The e-mail as written, trimmed.
    pub email: &'a str,
    /// The e-mail folded by [`lectern_shared::model::user::email_key`].
    pub email_key: &'a str,
    /// How its owner is called.
    pub name: &'a str,
    /// The password's hash, in PHC form.
    pub password_hash: &'a str,
    /// May use the operator's endpoints.
    pub is_admin: bool,
}

/// Without the password's hash.
impl fmt::Debug for NewUser<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewUser").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Adds an account and its own workspace. [`DbError::Duplicate`](crate::DbError::Duplicate) when the e-mail is taken.
pub async fn insert(tx: &mut Tx, user: &NewUser<'_>, now: Timestamp) -> Result<User> {
    let added: User = on!(tx, |c| {
        sqlx::query_as(
            "INSERT INTO users (id, email, email_key, name, password_hash, is_admin, token_version, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $7) RETURNING *",
        )
        .bind(user.id)
        .bind(user.email)
        .bind(user.email_key)
        .bind(user.name)
        .bind(user.password_hash)
        .bind(user.is_admin)
        .bind(now)
        .fetch_one(c)
    })?;
    let own = Workspace {
        id: added.id.into(),
        name: added.name.clone(),
        is_personal: true,
        quotas: None,
        created_at: now,
        updated_at: now,
    };
    workspaces::insert(tx, &own).await?;
    workspaces::members::put(tx, own.id, added.id, Role::Owner, now).await?;
    Ok(added)
}

/// An active account and its password's hash.
#[derive(sqlx::FromRow)]
pub struct UserCredentials {
    /// The account.
    #[sqlx(flatten)]
    pub user: User,
    /// The password's hash, in PHC form.
    pub password_hash: String,
}

/// Without the password's hash.
impl fmt::Debug for UserCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The active account with this folded e-mail.
pub async fn find_by_email(db: &Db, email_key: &str) -> Result<Option<UserCredentials>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM users WHERE email_key = $1 AND deleted_at IS NULL")
        .bind(email_key)
        .fetch_optional(c))?)
}

/// What decides about a sign-in.
#[derive(sqlx::FromRow)]
pub struct SignIn {
    /// The account, and what its password has to fit.
    #[sqlx(flatten)]
    pub credentials: UserCredentials,
    /// When the account was last noted to have been signed in to from there.
    pub seen_there_at: Option<Timestamp>,
}

/// The active account with this folded e-mail, and whether it was signed in to from an address with this hash before. One question
/// for both: a second one would take its time for accounts alone that exist.
pub async fn find_for_sign_in(db: &Db, email_key: &str, address_hash: &[u8]) -> Result<Option<SignIn>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT users.*, (SELECT seen_at FROM known_addresses
                          WHERE user_id = users.id AND address_hash = $2) AS seen_there_at
         FROM users WHERE email_key = $1 AND deleted_at IS NULL"
    )
    .bind(email_key)
    .bind(address_hash)
    .fetch_optional(c))?)
}

/// What an account may do somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct AccountMembership {
    /// The account.
    pub user_id: UserId,
    /// Its token version.
    pub token_version: i64,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// What it may do there.
    pub role: Role,
}

/// What these accounts may do, those of them that are active, in those of these workspaces that they are members of.
pub async fn memberships(
    db: &Db,
    ids: &[UserId],
    workspaces: &[WorkspaceId],
) -> Result<Vec<AccountMembership>> {
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(
            "SELECT u.id AS user_id, u.token_version, m.workspace_id, m.role
             FROM users u JOIN members m ON m.user_id = u.id JOIN workspaces w ON w.id = m.workspace_id
             WHERE u.deleted_at IS NULL AND w.deleted_at IS NULL AND u.id IN (",
        );
        let mut listed = query.separated(", ");
        for id in ids {
            listed.push_bind(*id);
        }
        query.push(") AND w.id IN (");
        let mut listed = query.separated(", ");
        for id in workspaces {
            listed.push_bind(*id);
        }
        query.push(")").build_query_as().fetch_all(c).await
    })?)
}

/// An active account, and its role in a workspace that was asked for with it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct AccountInWorkspace {
    /// The account.
    #[sqlx(flatten)]
    pub user: User,
    /// Its role there; none when it is no member, or there is no such workspace.
    pub role: Option<Role>,
    /// What the workspace may hold and use.
    pub quotas: Option<Json<WorkspaceQuotas>>,
    /// The workspace's [search epoch](crate::documents::search_epoch).
    pub search_epoch: Option<i64>,
    /// No less than what the workspace [stores](crate::storage::admit), in bytes, if that is known.
    pub stored_at_most: Option<i64>,
}

/// The active account with this id, and its role in a workspace.
pub async fn find_in_workspace(
    db: &Db,
    id: UserId,
    workspace: WorkspaceId,
) -> Result<Option<AccountInWorkspace>> {
    Ok(on!(db, |c| {
        sqlx::query_as(
        "SELECT users.*, here.role, here.quotas, here.search_epoch, here.stored_at_most
         FROM users LEFT JOIN (SELECT m.user_id, m.role, w.quotas, w.search_epoch, w.stored_at_most
                               FROM members m JOIN workspaces w ON w.id = m.workspace_id
                               WHERE m.workspace_id = $2 AND w.deleted_at IS NULL) AS here ON here.user_id = users.id
         WHERE users.id = $1 AND users.deleted_at IS NULL"
    )
    .bind(id)
    .bind(workspace)
    .fetch_optional(c)
    })?)
}

/// The active account with this id, and its password's hash.
pub async fn find_credentials(db: &Db, id: UserId) -> Result<Option<UserCredentials>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM users WHERE id = $1 AND deleted_at IS NULL")
        .bind(id)
        .fetch_optional(c))?)
}

/// The active account with this id.
pub async fn find(db: &Db, id: UserId) -> Result<Option<User>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM users WHERE id = $1 AND deleted_at IS NULL")
        .bind(id)
        .fetch_optional(c))?)
}

/// Changes an account's name or password; a new password ends every JSON web token given out before.
pub async fn update(
    tx: &mut Tx,
    id: UserId,
    name: Option<&str>,
    password_hash: Option<&str>,
    now: Timestamp,
) -> Result<Option<User>> {
    Ok(on!(tx, |c| sqlx::query_as(
        "UPDATE users SET name = COALESCE($2, name),
                          password_hash = COALESCE($3, password_hash),
                          token_version = token_version + CASE WHEN $3 IS NULL THEN 0 ELSE 1 END,
                          updated_at = CASE WHEN $3 IS NULL AND COALESCE($2, name) = name THEN updated_at
                                            ELSE $4 END
         WHERE id = $1 AND deleted_at IS NULL RETURNING *"
    )
    .bind(id)
    .bind(name)
    .bind(password_hash)
    .bind(now)
    .fetch_optional(c))?)
}

/// Gives an account another e-mail, folded as in [`NewUser`]; none when there is no such account.
/// [`DbError::Duplicate`](crate::DbError::Duplicate) when another one has it. No credential ends.
pub async fn set_email(
    tx: &mut Tx,
    id: UserId,
    email: &str,
    email_key: &str,
    now: Timestamp,
) -> Result<Option<User>> {
    Ok(on!(tx, |c| sqlx::query_as(
        "UPDATE users SET email = $2, email_key = $3,
                          updated_at = CASE WHEN email = $2 THEN updated_at ELSE $4 END
         WHERE id = $1 AND deleted_at IS NULL RETURNING *"
    )
    .bind(id)
    .bind(email)
    .bind(email_key)
    .bind(now)
    .fetch_optional(c))?)
}

/// Makes an account one that may use the operator's endpoints, or takes that away; none when there is no such account.
pub async fn set_admin(tx: &mut Tx, id: UserId, is_admin: bool) -> Result<Option<User>> {
    Ok(on!(tx, |c| {
        sqlx::query_as("UPDATE users SET is_admin = $2 WHERE id = $1 AND deleted_at IS NULL RETURNING *")
            .bind(id)
            .bind(is_admin)
            .fetch_optional(c)
    })?)
}

/// Ends an account: no credential of its opens anything any more, and nothing is added to its workspace. What that owns is left for
/// [`delete`], which comes in a transaction after this one: it has to wait for whatever is being added, and while the account is
/// open that may never cease.
pub async fn close(tx: &mut Tx, id: UserId, now: Timestamp) -> Result<()> {
    // Nothing that a foreign key could name is changed, so PostgreSQL lets those who are adding go on meanwhile.
    execute!(
        tx,
        sqlx::query(
            "UPDATE users SET deleted_at = $2, token_version = token_version + 1
             WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(now)
    )?;
    workspaces::close(tx, id.into(), now).await
}

/// What the e-mail of a deleted account is known by: unique, and nothing that an e-mail could be.
fn deleted_key(id: UserId) -> String {
    format!("deleted {id}")
}

/// What an account owns outside of any workspace.
const OWNED: [&str; 6] = [
    "DELETE FROM idempotency WHERE user_id = $1",
    "DELETE FROM known_addresses WHERE user_id = $1",
    "DELETE FROM user_identities WHERE user_id = $1",
    "DELETE FROM api_tokens WHERE created_by = $1",
    "DELETE FROM invitations WHERE created_by = $1",
    "DELETE FROM members WHERE user_id = $1",
];

/// Deletes an account with its own workspace and everything in that, and takes it out of all others, where what it made stays. The row
/// stays, empty of what tells who it was, until nothing points to it; its e-mail can sign up again. What a request
/// adds that had begun before is for [`workspaces::leftovers::purge`].
pub async fn delete(tx: &mut Tx, id: UserId, now: Timestamp) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE users SET deleted_at = COALESCE(deleted_at, $2), email = '', email_key = $3, name = '',
                              password_hash = '', token_version = token_version + 1
             WHERE id = $1"
        )
        .bind(id)
        .bind(now)
        .bind(deleted_key(id))
    )?;
    // This waits for whoever is adding something, which then goes too.
    workspaces::delete(tx, id.into(), now).await?;
    remove_owned(tx, id).await
}

/// Removes what an account owns outside of any workspace.
pub(super) async fn remove_owned(tx: &mut Tx, id: UserId) -> Result<()> {
    for statement in OWNED {
        execute!(tx, sqlx::query(statement).bind(id))?;
    }
    Ok(())
}

/// Whether the account that this workspace belonged to was [closed](close), and is not [deleted](delete).
pub(super) async fn is_half_deleted(tx: &mut Tx, workspace: WorkspaceId) -> Result<bool> {
    let id = UserId::from(*workspace.as_uuid());
    let key: Option<String> = on!(tx, |c| {
        sqlx::query_scalar("SELECT email_key FROM users WHERE id = $1 AND deleted_at IS NOT NULL")
            .bind(id)
            .fetch_optional(c)
    })?;
    Ok(key.is_some_and(|key| key != deleted_key(id)))
}

/// Makes whoever deletes an account wait until this transaction ends. Of SQLite's there is one at a time anyway.
pub(super) async fn lock(tx: &mut Tx, id: UserId) -> Result<()> {
    if let Tx::Postgres(tx) = tx {
        let lock = sqlx::query("SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE").bind(id);
        silence::answered(lock.fetch_optional(&mut **tx)).await?;
    }
    Ok(())
}

/// Forgets a deleted account whose workspace is gone.
pub(super) async fn forget(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    execute!(tx, sqlx::query("DELETE FROM users WHERE id = $1 AND deleted_at IS NOT NULL").bind(workspace))?;
    Ok(())
}

/// Ends every JSON web token given out before.
pub async fn end_sessions(tx: &mut Tx, id: UserId) -> Result<()> {
    execute!(tx, sqlx::query("UPDATE users SET token_version = token_version + 1 WHERE id = $1").bind(id))?;
    Ok(())
}
