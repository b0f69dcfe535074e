//! How much each workspace stores, and may store: uploaded files, inline content, and passages with their vectors. What was deleted
//! counts until it is purged, so that nobody fills a disk by deleting.
//!
//! Not counted, because it is small beside these or soon gone: names, descriptions, addresses and metadata; where in a document a
//! passage stands; what the index keeps of it; vectors of an earlier model; and what an attempt that was given up has written.

use lectern_shared::ids::{DocumentId, GenerationId, WorkspaceId};
use uuid::Uuid;

use crate::{Db, Result, Tx, locks, on};

/// What a workspace may store is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "You store {used} bytes and may store {allowed} (files, texts, and the passages made of them), so there is no room for this. \
     Delete documents, or ask the operator for more"
)]
pub struct OverQuota {
    /// Bytes that are stored.
    pub used: u64,
    /// Bytes that may be stored.
    pub allowed: u64,
}

// The workspace is no condition of the last sum: an index has all generations that are being made, which are few, and another one
// all of the workspace's.
const USED: &str =
    "SELECT CAST(COALESCE((SELECT SUM(stored_bytes) FROM documents WHERE workspace_id = $1), 0)
            + COALESCE((SELECT SUM(stored_bytes) FROM generations
                        WHERE workspace_id = $1 AND document_id <> $2), 0)
            - COALESCE((SELECT SUM(CASE WHEN workspace_id = $1 AND document_id <> $2 THEN stored_bytes END)
                        FROM generations
                        WHERE state = 'staging' AND NOT EXISTS (
                            SELECT 1 FROM jobs WHERE jobs.document_id = generations.document_id
                              AND jobs.claim_id = generations.claim_id AND jobs.state = 'running')), 0)
         AS BIGINT)";

/// What is stored for a workspace, in bytes, apart from the generations of one document. A generation counts in full from its beginning,
/// so that several at once do not share the same room, and until its claim is lost: else each attempt of an outage would count besides
/// those before it.
async fn used(tx: &mut Tx, workspace: WorkspaceId, without: Option<DocumentId>) -> Result<u64> {
    let without = without.map_or(Uuid::nil(), |document| *document.as_uuid());
    let bytes: i64 = on!(tx, |c| sqlx::query_scalar(USED).bind(workspace).bind(without).fetch_one(c))?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// What a workspace may still store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemainingQuota {
    /// So many bytes, at least one.
    pub bytes: u64,
    /// What whoever stores more is told.
    pub over: OverQuota,
}

/// What a workspace may still store; none when nothing is set. The workspace's changes wait for each other from here to the
/// end of the transaction, so that two of them never use the same room.
///
/// # Errors
/// [`OverQuota`] within, when there is none left.
pub async fn left(
    tx: &mut Tx,
    workspace: WorkspaceId,
    allowed: Option<u64>,
) -> Result<std::result::Result<Option<RemainingQuota>, OverQuota>> {
    let Some(allowed) = allowed else { return Ok(Ok(None)) };
    locks::lock_workspace(tx, workspace).await?;
    let used = used(tx, workspace, None).await?;
    let over = OverQuota { used, allowed };
    let bytes = allowed.saturating_sub(used);
    Ok(if bytes == 0 { Err(over) } else { Ok(Some(RemainingQuota { bytes, over })) })
}

/// Whether a workspace may store `more` bytes, which the transaction then does. Whoever is over the quota may not even store what does not
/// count, such as a document by its address. The passages of a document take the place of those that it has: give it as `instead_of`.
///
/// # Errors
/// [`OverQuota`] within, when they may not.
pub async fn admit(
    tx: &mut Tx,
    workspace: WorkspaceId,
    more: u64,
    instead_of: Option<DocumentId>,
    allowed: Option<u64>,
) -> Result<std::result::Result<(), OverQuota>> {
    let Some(allowed) = allowed else { return Ok(Ok(())) };
    locks::lock_workspace(tx, workspace).await?;
    let used = used(tx, workspace, instead_of).await?;
    Ok(fit(used, more, allowed))
}

/// Whether a workspace may store `more` bytes as it is now, told without keeping anybody waiting. Whoever may is asked again by [`admit`].
///
/// # Errors
/// [`OverQuota`] within, when they may not.
pub async fn expect_room(
    db: &Db,
    workspace: WorkspaceId,
    more: u64,
    allowed: u64,
) -> Result<std::result::Result<(), OverQuota>> {
    let bytes: i64 = on!(db, |c| sqlx::query_scalar(USED).bind(workspace).bind(Uuid::nil()).fetch_one(c))?;
    Ok(fit(u64::try_from(bytes).unwrap_or(0), more, allowed))
}

fn fit(used: u64, more: u64, allowed: u64) -> std::result::Result<(), OverQuota> {
    let fits = used.checked_add(more).is_some_and(|total| total <= allowed);
    if fits { Ok(()) } else { Err(OverQuota { used, allowed }) }
}

/// What a workspace holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageTotals {
    /// Documents that are not deleted.
    pub documents: u64,
    /// Bytes, those of deleted documents included until they are purged.
    pub bytes: u64,
}

/// What a workspace holds.
pub async fn totals(db: &Db, workspace: WorkspaceId) -> Result<StorageTotals> {
    let (documents, bytes): (i64, i64) = on!(db, |c| {
        sqlx::query_as(
        "SELECT (SELECT COUNT(*) FROM documents WHERE workspace_id = $1 AND deleted_at IS NULL),
                CAST(COALESCE((SELECT SUM(stored_bytes) FROM documents WHERE workspace_id = $1), 0)
                   + COALESCE((SELECT SUM(stored_bytes) FROM generations WHERE workspace_id = $1), 0) AS BIGINT)"
    )
    .bind(workspace)
    .fetch_one(c)
    })?;
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    Ok(StorageTotals { documents: count(documents), bytes: count(bytes) })
}

/// How many documents a workspace has that are not deleted. The workspace's changes wait for each other from here to the end of the
/// transaction, so that two of them never take the same place.
pub async fn count_documents(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64> {
    locks::lock_workspace(tx, workspace).await?;
    let documents: i64 = on!(tx, |c| sqlx::query_scalar(
        "SELECT COUNT(*) FROM documents WHERE workspace_id = $1 AND deleted_at IS NULL"
    )
    .bind(workspace)
    .fetch_one(c))?;
    Ok(u64::try_from(documents).unwrap_or(0))
}

/// How many bytes the texts of a workspace's generation have together, with the words that were recognised on its pages.
pub async fn text_bytes(db: &Db, workspace: WorkspaceId, generation: GenerationId) -> Result<u64> {
    let bytes: i64 = on!(db, |c| sqlx::query_scalar(
        "SELECT CAST(COALESCE((SELECT SUM(OCTET_LENGTH(text)) FROM chunks
                               WHERE generation_id = $1 AND workspace_id = $2), 0)
                   + COALESCE((SELECT SUM(OCTET_LENGTH(words)) FROM pages
                               WHERE generation_id = $1 AND workspace_id = $2), 0) AS BIGINT)"
    )
    .bind(generation)
    .bind(workspace)
    .fetch_one(c))?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}
