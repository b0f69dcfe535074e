//! Documents that are alike: made of the same bytes, or with the same text.

use lectern_shared::{
    ids::{DocumentId, WorkspaceId},
    model::document::DuplicateDocument,
};

use crate::{Db, Result, on};

/// Documents that are read at a time.
const MOST: i64 = 5_000;

macro_rules! select_duplicate {
    ($where:literal) => {
        concat!(
            "SELECT d.id, d.name, d.url, d.created_at, d.content_hash, d.source_sha256
             FROM documents d WHERE d.workspace_id = $1 AND d.deleted_at IS NULL AND ",
            $where
        )
    };
}

/// Documents of a workspace with a text that at least one other has too, those of one text together; of at most `groups` texts.
pub async fn with_same_text(db: &Db, workspace: WorkspaceId, groups: u32) -> Result<Vec<DuplicateDocument>> {
    Ok(on!(db, |c| sqlx::query_as(select_duplicate!(
        "d.content_hash IN (
             SELECT content_hash FROM documents
             WHERE workspace_id = $1 AND deleted_at IS NULL AND content_hash IS NOT NULL
             GROUP BY content_hash HAVING COUNT(*) > 1 ORDER BY content_hash LIMIT $2)
         ORDER BY d.content_hash, d.id LIMIT $3"
    ))
    .bind(workspace)
    .bind(i64::from(groups))
    .bind(MOST)
    .fetch_all(c))?)
}

/// Documents of a workspace that are made of bytes that at least one other is made of too, those of the same bytes together; of at most
/// `groups` files.
pub async fn with_same_bytes(db: &Db, workspace: WorkspaceId, groups: u32) -> Result<Vec<DuplicateDocument>> {
    Ok(on!(db, |c| sqlx::query_as(select_duplicate!(
        "d.source_sha256 IN (
             SELECT source_sha256 FROM documents
             WHERE workspace_id = $1 AND deleted_at IS NULL AND source_sha256 IS NOT NULL
             GROUP BY source_sha256 HAVING COUNT(*) > 1 ORDER BY source_sha256 LIMIT $2)
         ORDER BY d.source_sha256, d.id LIMIT $3"
    ))
    .bind(workspace)
    .bind(i64::from(groups))
    .bind(MOST)
    .fetch_all(c))?)
}

/// At most `limit` documents of a workspace that have the text, or the bytes, of one of them.
pub async fn like(
    db: &Db,
    workspace: WorkspaceId,
    id: DocumentId,
    limit: u32,
) -> Result<Vec<DuplicateDocument>> {
    Ok(on!(db, |c| sqlx::query_as(select_duplicate!(
        "d.id <> $2 AND d.id IN (
             SELECT o.id FROM documents o JOIN documents t ON o.content_hash = t.content_hash
             WHERE t.id = $2 AND t.workspace_id = $1 AND o.workspace_id = $1
             UNION
             SELECT o.id FROM documents o JOIN documents t ON o.source_sha256 = t.source_sha256
             WHERE t.id = $2 AND t.workspace_id = $1 AND o.workspace_id = $1)
         ORDER BY d.id LIMIT $3"
    ))
    .bind(workspace)
    .bind(id)
    .bind(i64::from(limit))
    .fetch_all(c))?)
}
