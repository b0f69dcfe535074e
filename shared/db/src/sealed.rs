//! What is stored encrypted, in every table: for the operator who changes the key. Nothing else of a row is read or written, so
//! that no time of a change rises. And what earlier versions stored plainly. These statements are not bound to an owner.

use lectern_shared::{
    ids::{ToolId, UserId, WebhookId},
    model::tool::Tool,
    secrets::CiphertextLocation,
};
use uuid::Uuid;

use crate::{Db, Result, Tx, execute, on};

/// A column of ciphertexts in a table whose rows have an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedColumn {
    /// The values of API tokens.
    ApiToken,
    /// What opens the sources of documents.
    DocumentAuthorization,
    /// Agents' own keys of their providers.
    AgentKey,
    /// The keys that agents had before they were changed.
    AgentVersionKey,
    /// The secrets of tools' configurations.
    ToolMetadata,
    /// What the events of webhooks are signed with.
    WebhookSecret,
    /// Where the events of webhooks are told to.
    WebhookUrl,
    /// What opens the sources that documents are kept in step with.
    SourceSecret,
}

impl SealedColumn {
    /// Every one of them.
    pub const ALL: [Self; 8] = [
        Self::ApiToken,
        Self::DocumentAuthorization,
        Self::AgentKey,
        Self::AgentVersionKey,
        Self::ToolMetadata,
        Self::WebhookSecret,
        Self::WebhookUrl,
        Self::SourceSecret,
    ];

    /// What the ciphertext of a row is bound to.
    pub const fn place(self, row: &Uuid) -> CiphertextLocation<'_> {
        match self {
            Self::ApiToken => CiphertextLocation::api_token(row),
            Self::DocumentAuthorization => CiphertextLocation::document_authorization(row),
            Self::AgentKey => CiphertextLocation::agent_key(row),
            Self::AgentVersionKey => CiphertextLocation::agent_version_key(row),
            Self::ToolMetadata => CiphertextLocation::tool_metadata(row),
            Self::WebhookSecret => CiphertextLocation::webhook_secret(row),
            Self::WebhookUrl => CiphertextLocation::webhook_url(row),
            Self::SourceSecret => CiphertextLocation::source_secret(row),
        }
    }
}

/// The statement that a macro makes of the table and the column where a [`SealedColumn`] is.
macro_rules! of_column {
    ($column:expr, $statement:ident) => {
        match $column {
            SealedColumn::ApiToken => $statement!("api_tokens", "token_sealed"),
            SealedColumn::DocumentAuthorization => $statement!("documents", "authorization_sealed"),
            SealedColumn::AgentKey => $statement!("agents", "llm_key_sealed"),
            SealedColumn::AgentVersionKey => $statement!("agent_versions", "llm_key_sealed"),
            SealedColumn::ToolMetadata => $statement!("tools", "metadata_sealed"),
            SealedColumn::WebhookSecret => $statement!("webhooks", "secret_sealed"),
            SealedColumn::WebhookUrl => $statement!("webhooks", "url_sealed"),
            SealedColumn::SourceSecret => $statement!("sources", "secret_sealed"),
        }
    };
}

/// How many secrets are encrypted under which key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct KeyUsage {
    /// In all.
    pub total: i64,
    /// Under the first key asked for.
    pub current: i64,
    /// Under the second.
    pub previous: i64,
}

macro_rules! usage {
    ($table:literal, $column:literal) => {
        concat!(
            "SELECT COUNT(*) AS total, COUNT(CASE WHEN SUBSTR(",
            $column,
            ", 2, 4) = $1 THEN 1 END) AS current, COUNT(CASE WHEN SUBSTR(",
            $column,
            ", 2, 4) = $2 THEN 1 END) AS previous FROM ",
            $table,
            " WHERE ",
            $column,
            " IS NOT NULL"
        )
    };
}

/// Counts what is encrypted in a column, by the key's id that each secret carries.
pub async fn usage(db: &Db, column: SealedColumn, current: [u8; 4], previous: [u8; 4]) -> Result<KeyUsage> {
    let statement = of_column!(column, usage);
    Ok(on!(db, |c| sqlx::query_as(statement).bind(current.to_vec()).bind(previous.to_vec()).fetch_one(c))?)
}

/// The ciphertext of a row.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct SealedValue {
    /// The row's id.
    pub id: Uuid,
    /// The ciphertext.
    pub sealed: Vec<u8>,
}

macro_rules! outdated {
    ($table:literal, $column:literal) => {
        concat!(
            "SELECT id, ",
            $column,
            " AS sealed FROM ",
            $table,
            " WHERE id > $1 AND (length(",
            $column,
            // SQLite takes no part of nothing.
            ") = 0 OR substr(",
            $column,
            ", 1, length($2)) <> $2) ORDER BY id LIMIT $3"
        )
    };
}

/// At most `limit` ciphertexts of a column that do not begin with `head`, of rows behind `after`, in the order of their ids.
pub async fn outdated(
    db: &Db,
    column: SealedColumn,
    head: &[u8],
    after: Uuid,
    limit: u32,
) -> Result<Vec<SealedValue>> {
    let statement = of_column!(column, outdated);
    Ok(on!(db, |c| sqlx::query_as(statement).bind(after).bind(head).bind(i64::from(limit)).fetch_all(c))?)
}

macro_rules! replace {
    ($table:literal, $column:literal) => {
        concat!("UPDATE ", $table, " SET ", $column, " = $3 WHERE id = $1 AND ", $column, " = $2")
    };
}

/// Writes `anew` in place of a ciphertext; false when it is not that any more, because it was written or deleted meanwhile.
pub async fn replace(tx: &mut Tx, column: SealedColumn, old: &SealedValue, anew: &[u8]) -> Result<bool> {
    let statement = of_column!(column, replace);
    let rows = execute!(tx, sqlx::query(statement).bind(old.id).bind(old.sealed.as_slice()).bind(anew))?;
    Ok(rows == 1)
}

/// An address of a webhook that is stored as it is, in a row that was last changed before addresses were sealed.
#[derive(Clone, sqlx::FromRow)]
pub struct PlainAddress {
    /// The webhook.
    pub id: WebhookId,
    /// The address.
    pub url: String,
}

/// At most `limit` addresses that are not sealed, of webhooks behind `after`, in the order of their ids.
pub async fn plain_addresses(db: &Db, after: WebhookId, limit: u32) -> Result<Vec<PlainAddress>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT id, url FROM webhooks WHERE url <> '' AND id > $1 ORDER BY id LIMIT $2"
    )
    .bind(after)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Writes a ciphertext in place of an address; false when that is not there any more, because it was changed, sealed or deleted meanwhile.
pub async fn seal_address(tx: &mut Tx, plain: &PlainAddress, sealed: &[u8]) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("UPDATE webhooks SET url = '', url_sealed = $3 WHERE id = $1 AND url = $2")
            .bind(plain.id)
            .bind(plain.url.as_str())
            .bind(sealed)
    )?;
    Ok(rows == 1)
}

/// At most `limit` tools behind `after` that have the address of an OpenAPI document, sealed or not, in the order of their ids.
pub async fn tools_with_addresses(db: &Db, after: ToolId, limit: u32) -> Result<Vec<Tool>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT * FROM tools WHERE id > $1 AND metadata LIKE '%\"openApiUrl\"%' ORDER BY id LIMIT $2"
    )
    .bind(after)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// Writes how a configuration is stored, which says the same; false when the tool is not what it was before any more.
pub async fn replace_configuration(tx: &mut Tx, before: &Tool, after: &Tool) -> Result<bool> {
    // What stands for no ciphertext, since nothing equals NULL.
    let none: &[u8] = &[];
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE tools SET metadata = $2, metadata_sealed = $3
             WHERE id = $1 AND updated_at = $4 AND COALESCE(metadata_sealed, $5) = $6"
        )
        .bind(before.id)
        .bind(&after.metadata)
        .bind(after.metadata_sealed.as_deref())
        .bind(before.updated_at)
        .bind(none)
        .bind(before.metadata_sealed.as_deref().unwrap_or(none))
    )?;
    Ok(rows == 1)
}

/// An answer that is kept.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct SealedAnswer {
    /// Whom it was given.
    pub user_id: UserId,
    /// The key of the request.
    pub request_key: String,
    /// The ciphertext.
    pub sealed: Vec<u8>,
}

/// [`outdated`] of kept answers, in the order of their users and keys.
pub async fn outdated_answers(
    db: &Db,
    head: &[u8],
    (user, key): (UserId, &str),
    limit: u32,
) -> Result<Vec<SealedAnswer>> {
    Ok(on!(db, |c| sqlx::query_as(
        "SELECT user_id, request_key, answer_sealed AS sealed FROM idempotency
         WHERE (user_id > $1 OR (user_id = $1 AND request_key > $2))
           AND (length(answer_sealed) = 0 OR substr(answer_sealed, 1, length($3)) <> $3)
         ORDER BY user_id, request_key LIMIT $4"
    )
    .bind(user)
    .bind(key)
    .bind(head)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}

/// [`replace`] of a kept answer.
pub async fn replace_answer(tx: &mut Tx, old: &SealedAnswer, anew: &[u8]) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "UPDATE idempotency SET answer_sealed = $4
             WHERE user_id = $1 AND request_key = $2 AND answer_sealed = $3"
        )
        .bind(old.user_id)
        .bind(old.request_key.as_str())
        .bind(old.sealed.as_slice())
        .bind(anew)
    )?;
    Ok(rows == 1)
}
