//! Accounts and their API tokens.

use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{AgentId, ApiTokenId, UserId},
    model::{
        Json,
        workspace::{Role, RowOwner},
    },
};

/// An account.
#[derive(Clone, Debug, FromRow)]
pub struct User {
    /// Its id.
    pub id: UserId,
    /// The e-mail as its owner wrote it, trimmed.
    pub email: String,
    /// How its owner is called.
    pub name: String,
    /// May use the operator's endpoints.
    pub is_admin: bool,
    /// Raised to end every JSON web token given out before.
    pub token_version: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its owner last changed it.
    pub updated_at: Timestamp,
    /// When it was deleted; none for an active account.
    pub deleted_at: Option<Timestamp>,
}

/// An API token. The value itself is stored sealed and found by its hash.
#[derive(Clone, Debug, FromRow)]
pub struct ApiToken {
    /// Its id.
    pub id: ApiTokenId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// What its maker wrote to remember it by.
    pub description: String,
    /// What it may do, at most; none for as much as its maker.
    pub role: Option<Role>,
    /// The one agent that it may ask.
    pub agent_id: Option<AgentId>,
    /// The origins of the pages that may use it.
    pub origins: Option<Json<Vec<String>>>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// Requests a minute.
    pub rate_per_minute: Option<i64>,
    /// The sealed value.
    pub token_sealed: Vec<u8>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last opened a request, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// E-mails are compared by this: trimmed and lower-case.
pub fn email_key(email: &str) -> String {
    email.trim().to_lowercase()
}
