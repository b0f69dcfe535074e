//! What is told of a deletion.

use sqlx::FromRow;

use crate::{
    clock::Timestamp,
    ids::{DocumentId, UserId},
};

/// What was removed of a deleted document, and when nothing of it was left.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct DeletionReceipt {
    /// The document that was.
    pub document_id: DocumentId,
    /// How it was called.
    pub name: String,
    /// When it was deleted: nothing finds it from then on.
    pub deleted_at: Timestamp,
    /// Who deleted it.
    pub deleted_by: UserId,
    /// When nothing of it was left; none before.
    pub purged_at: Option<Timestamp>,
    /// Passages, those of replaced versions that were still stored included.
    pub passages: i64,
    /// Entries of the search index, counted when their removal began.
    pub index_entries: i64,
    /// Vectors of passages.
    pub vectors: i64,
    /// Bytes that were stored of it.
    pub bytes: i64,
    /// Links to agents and collections.
    pub links: i64,
    /// What of it was found when it was looked for at the end.
    pub remaining: i64,
}
