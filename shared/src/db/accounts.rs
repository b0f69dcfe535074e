//! Accounts and API tokens.

pub mod leftovers;

use std::fmt;

use sqlx::QueryBuilder;

use crate::{
    clock::Timestamp,
    db::{Db, Result, Tx, commit::pg_identity, documents, execute, on, silence},
    ids::{ApiTokenId, UserId},
    model::user::{ApiToken, User},
};

/// A new account's row.
pub struct NewUser<'a> {
    /// Its id.
    pub id: UserId,
    /// The e-mail as written, trimmed.
    pub email: &'a str,
    /// The e-mail folded by [`crate::model::user::email_key`].
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

/// Adds an account. [`DbError::Duplicate`](crate::db::DbError::Duplicate) when the e-mail is taken.
pub async fn insert(tx: &mut Tx, user: &NewUser<'_>, now: Timestamp) -> Result<User> {
    Ok(on!(tx, |c| {
        sqlx::query_as(
        "INSERT INTO users (id, email, email_key, name, password_hash, is_admin, token_version, search_epoch, fair_at,
                            created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, 0, 0, 0, $7, $7)
         RETURNING *"
    )
    .bind(user.id)
    .bind(user.email)
    .bind(user.email_key)
    .bind(user.name)
    .bind(user.password_hash)
    .bind(user.is_admin)
    .bind(now)
    .fetch_one(c)
    })?)
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

/// Those of these accounts that are active, each with its token version.
pub async fn token_versions(db: &Db, ids: &[UserId]) -> Result<Vec<(UserId, i64)>> {
    Ok(on!(db, |c| async {
        let mut query =
            QueryBuilder::new("SELECT id, token_version FROM users WHERE deleted_at IS NULL AND id IN (");
        let mut listed = query.separated(", ");
        for id in ids {
            listed.push_bind(*id);
        }
        query.push(")").build_query_as().fetch_all(c).await
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

/// Makes an account one that may use the operator's endpoints, or takes that away; none when there is no such account.
pub async fn set_admin(tx: &mut Tx, id: UserId, is_admin: bool) -> Result<Option<User>> {
    Ok(on!(tx, |c| {
        sqlx::query_as("UPDATE users SET is_admin = $2 WHERE id = $1 AND deleted_at IS NULL RETURNING *")
            .bind(id)
            .bind(is_admin)
            .fetch_optional(c)
    })?)
}

/// Ends an account: no credential of its opens anything any more, and nothing is added to it. What it owns is left for [`delete`],
/// which comes in a transaction after this one: it has to wait for whatever is being added, and while the account is open that may
/// never cease.
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
    Ok(())
}

/// What the e-mail of a deleted account is known by: unique, and nothing that an e-mail could be.
fn deleted_key(id: UserId) -> String {
    format!("deleted {id}")
}

/// Deletes an account and everything that it owns. The row stays, empty of what tells who it was, until nothing points to
/// it; its e-mail can sign up again. Documents become tombstones, whose generations may be purged from `now` on. What a request
/// adds that had begun before is for [`leftovers::purge`].
pub async fn delete(tx: &mut Tx, id: UserId, now: Timestamp) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "UPDATE users SET deleted_at = COALESCE(deleted_at, $2), email = '', email_key = $3, name = '',
                              password_hash = '', token_version = token_version + 1,
                              search_epoch = search_epoch + 1
             WHERE id = $1"
        )
        .bind(id)
        .bind(now)
        .bind(deleted_key(id))
    )?;
    documents::delete_all(tx, id, now).await?;
    leftovers::remove_owned(tx, id).await
}

/// Whether an account is active, within a transaction. Asked after something was added that points to the account, it is so until
/// the transaction ends: either its deletion waits for this transaction and takes with it what was added, or this one has waited.
pub async fn is_active(tx: &mut Tx, id: UserId) -> Result<bool> {
    match tx {
        Tx::Postgres(tx) if tx.knows_active(id) => Ok(true),
        // The last question of many a transaction.
        Tx::Postgres(tx) => {
            let active =
                concat!("SELECT ", pg_identity!(), " FROM users WHERE id = $1 AND deleted_at IS NULL");
            let active = sqlx::query_as(active).bind(id);
            let identity = silence::answered(active.fetch_optional(&mut **tx)).await?;
            let is_active = identity.is_some();
            tx.note(identity);
            Ok(is_active)
        }
        Tx::Sqlite(tx) => {
            let active = sqlx::query_scalar("SELECT 1 FROM users WHERE id = $1 AND deleted_at IS NULL");
            let found: Option<i64> = active.bind(id).fetch_optional(&mut **tx).await?;
            Ok(found.is_some())
        }
    }
}

/// Ends every JSON web token given out before.
pub async fn end_sessions(tx: &mut Tx, id: UserId) -> Result<()> {
    execute!(tx, sqlx::query("UPDATE users SET token_version = token_version + 1 WHERE id = $1").bind(id))?;
    Ok(())
}

/// Adds an API token, sealed and hashed by the caller.
pub async fn insert_token(tx: &mut Tx, token: &ApiToken, token_hash: &[u8]) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO api_tokens (id, user_id, description, token_hash, token_sealed, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)"
        )
        .bind(token.id)
        .bind(token.user_id)
        .bind(token.description.as_str())
        .bind(token_hash)
        .bind(token.token_sealed.as_slice())
        .bind(token.created_at)
    )?;
    Ok(())
}

/// At most `limit` of a user's API tokens older than `before`, newest first.
pub async fn list_tokens(db: &Db, user: UserId, before: ApiTokenId, limit: u32) -> Result<Vec<ApiToken>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT * FROM api_tokens WHERE user_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
    )
    .bind(user)
    .bind(before)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// One of a user's API tokens.
pub async fn find_token(db: &Db, user: UserId, id: ApiTokenId) -> Result<Option<ApiToken>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM api_tokens WHERE id = $1 AND user_id = $2")
        .bind(id)
        .bind(user)
        .fetch_optional(c))?)
}

/// The API token with this hash, and its active owner.
#[derive(Debug, sqlx::FromRow)]
pub struct TokenOwner {
    /// The token.
    pub token_id: ApiTokenId,
    /// When it last opened a request.
    pub last_used_at: Option<Timestamp>,
    /// Its owner.
    #[sqlx(flatten)]
    pub user: User,
}

/// Who holds the API token with this hash.
pub async fn find_token_owner(db: &Db, token_hash: &[u8]) -> Result<Option<TokenOwner>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT api_tokens.id AS token_id, api_tokens.last_used_at, users.*
         FROM api_tokens JOIN users ON users.id = api_tokens.user_id
         WHERE api_tokens.token_hash = $1 AND users.deleted_at IS NULL"
    )
    .bind(token_hash)
    .fetch_optional(c))?)
}

/// Those of these API tokens that open something: they are there, and their owners are active.
pub async fn tokens_in_force(db: &Db, ids: &[ApiTokenId]) -> Result<Vec<ApiTokenId>> {
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(
            "SELECT api_tokens.id FROM api_tokens JOIN users ON users.id = api_tokens.user_id
             WHERE users.deleted_at IS NULL AND api_tokens.id IN (",
        );
        let mut listed = query.separated(", ");
        for id in ids {
            listed.push_bind(*id);
        }
        query.push(")").build_query_scalar().fetch_all(c).await
    })?)
}

/// Notes that an API token was used.
pub async fn touch_token(tx: &mut Tx, id: ApiTokenId, now: Timestamp) -> Result<()> {
    execute!(tx, sqlx::query("UPDATE api_tokens SET last_used_at = $2 WHERE id = $1").bind(id).bind(now))?;
    Ok(())
}

/// Deletes one of a user's API tokens and returns it.
pub async fn delete_token(tx: &mut Tx, user: UserId, id: ApiTokenId) -> Result<Option<ApiToken>> {
    Ok(on!(tx, |c| sqlx::query_as("DELETE FROM api_tokens WHERE id = $1 AND user_id = $2 RETURNING *")
        .bind(id)
        .bind(user)
        .fetch_optional(c))?)
}
