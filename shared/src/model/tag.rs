//! Tags.

use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{TagId, UserId},
};

/// A label for agents.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Tag {
    /// Its id.
    pub id: TagId,
    /// Its owner.
    pub user_id: UserId,
    /// What it says.
    pub name: String,
    /// Its colour, `#RRGGBB`.
    pub color: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its owner last changed it.
    pub updated_at: Timestamp,
}
