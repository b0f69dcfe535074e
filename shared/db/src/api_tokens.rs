//! API tokens.

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, ApiTokenId, WorkspaceId},
    model::{
        Json,
        user::{ApiToken, User},
        workspace::{Role, WorkspaceQuotas},
    },
};
use sqlx::QueryBuilder;

use crate::{Db, Result, Tx, documents::browse::and_has, execute, on};

/// Adds an API token, sealed and hashed by the caller.
pub async fn insert(tx: &mut Tx, token: &ApiToken, token_hash: &[u8]) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO api_tokens (id, workspace_id, created_by, description, token_hash, token_sealed, role, agent_id, origins,
                                     expires_at, rate_per_minute, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
        )
        .bind(token.id)
        .bind(token.owner.workspace_id)
        .bind(token.owner.creator())
        .bind(token.description.as_str())
        .bind(token_hash)
        .bind(token.token_sealed.as_slice())
        .bind(token.role)
        .bind(token.agent_id)
        .bind(&token.origins)
        .bind(token.expires_at)
        .bind(token.rate_per_minute)
        .bind(token.created_at)
    )?;
    Ok(())
}

/// How many API tokens a workspace has, besides those of published pages, which name no origin.
pub async fn count(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64> {
    let count: i64 = on!(tx, |c| sqlx::query_scalar(
        "SELECT COUNT(*) FROM api_tokens WHERE workspace_id = $1 AND (origins IS NULL OR origins <> '[]')"
    )
    .bind(workspace)
    .fetch_one(c))?;
    Ok(count.unsigned_abs())
}

/// At most `limit` of a workspace's API tokens older than `before`, newest first. Their descriptions have `name` somewhere, in whichever
/// case.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    name: &str,
    before: ApiTokenId,
    limit: u32,
) -> Result<Vec<ApiToken>> {
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new("SELECT * FROM api_tokens WHERE workspace_id = ");
        query.push_bind(workspace).push(" AND id < ").push_bind(before);
        and_has(&mut query, "description", name);
        query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(limit));
        query.build_query_as().fetch_all(c).await
    })?)
}

/// One of a workspace's API tokens.
pub async fn find(db: &Db, workspace: WorkspaceId, id: ApiTokenId) -> Result<Option<ApiToken>> {
    Ok(on!(db, |c| sqlx::query_as("SELECT * FROM api_tokens WHERE id = $1 AND workspace_id = $2")
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// What an API token opens: all that decides about a request that it comes with.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct TokenGrant {
    /// The token.
    pub token_id: ApiTokenId,
    /// When it last opened a request.
    pub last_used_at: Option<Timestamp>,
    /// The workspace that it opens.
    pub workspace_id: WorkspaceId,
    /// What it may do; none for as much as its maker.
    pub token_role: Option<Role>,
    /// What its maker may do there.
    pub maker_role: Role,
    /// The one agent that it may ask, if it is bound to one.
    pub agent_id: Option<AgentId>,
    /// The origins of the pages that may use it, if it is for some alone.
    pub origins: Option<Json<Vec<String>>>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// Requests a minute.
    pub rate_per_minute: Option<i64>,
    /// What the workspace may hold and use.
    pub quotas: Option<Json<WorkspaceQuotas>>,
    /// The workspace's [search epoch](crate::documents::search_epoch).
    pub search_epoch: i64,
    /// No less than what the workspace [stores](crate::storage::admit), in bytes, if that is known.
    pub stored_at_most: Option<i64>,
    /// Its maker.
    #[sqlx(flatten)]
    pub user: User,
}

/// Tokens whose makers are active members of workspaces that are there.
macro_rules! select_open {
    ($columns:literal, $where:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM api_tokens t
              JOIN users ON users.id = COALESCE(t.created_by, t.workspace_id)
              JOIN members m ON m.workspace_id = t.workspace_id AND m.user_id = users.id
              JOIN workspaces w ON w.id = t.workspace_id
             WHERE users.deleted_at IS NULL AND w.deleted_at IS NULL AND ",
            $where
        )
    };
}

/// What the API token with this hash opens at this moment.
pub async fn find_grant(db: &Db, token_hash: &[u8], now: Timestamp) -> Result<Option<TokenGrant>> {
    Ok(on!(db, |c| {
        sqlx::query_as(select_open!(
        "t.id AS token_id, t.last_used_at, t.workspace_id, t.role AS token_role, m.role AS maker_role, t.agent_id,
         t.origins, t.expires_at, t.rate_per_minute, w.quotas, w.search_epoch, w.stored_at_most, users.*",
        "t.token_hash = $1 AND (t.expires_at IS NULL OR t.expires_at > $2)"
    ))
    .bind(token_hash)
    .bind(now)
    .fetch_optional(c)
    })?)
}

/// What one of a workspace's API tokens opens at this moment, by its id.
pub async fn find_grant_of(
    db: &Db,
    workspace: WorkspaceId,
    id: ApiTokenId,
    now: Timestamp,
) -> Result<Option<TokenGrant>> {
    Ok(on!(db, |c| {
        sqlx::query_as(select_open!(
        "t.id AS token_id, t.last_used_at, t.workspace_id, t.role AS token_role, m.role AS maker_role, t.agent_id,
         t.origins, t.expires_at, t.rate_per_minute, w.quotas, w.search_epoch, w.stored_at_most, users.*",
        "t.id = $1 AND t.workspace_id = $3 AND (t.expires_at IS NULL OR t.expires_at > $2)"
    ))
    .bind(id)
    .bind(now)
    .bind(workspace)
    .fetch_optional(c)
    })?)
}

/// What an API token may do at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct TokenInForce {
    /// The token.
    pub id: ApiTokenId,
    /// What it may do; none for as much as its maker.
    pub token_role: Option<Role>,
    /// What its maker may do.
    pub maker_role: Role,
}

/// Those of these API tokens that open something at this moment.
pub async fn in_force(db: &Db, ids: &[ApiTokenId], now: Timestamp) -> Result<Vec<TokenInForce>> {
    Ok(on!(db, |c| async {
        let mut query = QueryBuilder::new(select_open!(
            "t.id, t.role AS token_role, m.role AS maker_role",
            "(t.expires_at IS NULL OR t.expires_at > "
        ));
        query.push_bind(now).push(") AND t.id IN (");
        let mut listed = query.separated(", ");
        for id in ids {
            listed.push_bind(*id);
        }
        query.push(")").build_query_as().fetch_all(c).await
    })?)
}

/// Bytes of one token's origins that [`page_origins`] reads. Tokens from before an origin had to be short may have more.
const ORIGINS_OF_TOKEN: i64 = 16 * 1_024;
/// Bytes of one workspace's: nobody fills the memory of those who read all.
const ORIGINS_OF_WORKSPACE: i64 = 256 * 1_024;

/// The origins of the pages that may use API tokens: those of at most `limit` tokens, and of each workspace those of its newest ones.
pub async fn page_origins(db: &Db, now: Timestamp, limit: u32) -> Result<Vec<Json<Vec<String>>>> {
    Ok(on!(db, |c| {
        sqlx::query_scalar(
        "SELECT origins FROM api_tokens WHERE id IN (
             SELECT id FROM
                 (SELECT id, SUM(OCTET_LENGTH(origins)) OVER (PARTITION BY workspace_id ORDER BY id DESC) AS total
                  FROM api_tokens
                  WHERE origins IS NOT NULL AND origins <> '[]' AND OCTET_LENGTH(origins) <= $3
                    AND (expires_at IS NULL OR expires_at > $1)) AS newest
             WHERE total <= $4 ORDER BY id DESC LIMIT $2)"
    )
    .bind(now)
    .bind(i64::from(limit))
    .bind(ORIGINS_OF_TOKEN)
    .bind(ORIGINS_OF_WORKSPACE)
    .fetch_all(c)
    })?)
}

/// Notes that an API token was used.
pub async fn touch(tx: &mut Tx, id: ApiTokenId, now: Timestamp) -> Result<()> {
    execute!(tx, sqlx::query("UPDATE api_tokens SET last_used_at = $2 WHERE id = $1").bind(id).bind(now))?;
    Ok(())
}

/// Deletes one of a workspace's API tokens and returns it.
pub async fn delete(tx: &mut Tx, workspace: WorkspaceId, id: ApiTokenId) -> Result<Option<ApiToken>> {
    Ok(on!(tx, |c| sqlx::query_as("DELETE FROM api_tokens WHERE id = $1 AND workspace_id = $2 RETURNING *")
        .bind(id)
        .bind(workspace)
        .fetch_optional(c))?)
}

/// Deletes those of a workspace's API tokens that may ask one agent alone, and returns which they were.
pub async fn delete_bound(tx: &mut Tx, workspace: WorkspaceId, agent: AgentId) -> Result<Vec<ApiTokenId>> {
    Ok(on!(tx, |c| sqlx::query_scalar(
        "DELETE FROM api_tokens WHERE workspace_id = $1 AND agent_id = $2 RETURNING id"
    )
    .bind(workspace)
    .bind(agent)
    .fetch_all(c))?)
}
