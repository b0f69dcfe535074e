//! Tags.

use sqlx::FromRow;

use crate::{clock::Timestamp, ids::TagId, model::workspace::RowOwner};

/// A label for agents.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Tag {
    /// Its id.
    pub id: TagId,
    /// Whose it is.
    #[sqlx(flatten)]
    pub owner: RowOwner,
    /// How its owner calls it.
    pub name: String,
    /// Its color as `#RRGGBB`, in the case in which it was given.
    pub color: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its owner last changed it.
    pub updated_at: Timestamp,
}
