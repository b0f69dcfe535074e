//! How much each workspace stores, and may store: uploaded files, inline content, and passages with their vectors. What was deleted
//! counts until it is purged, so that nobody fills a disk by deleting.
//!
//! Not counted, because it is small beside these or soon gone: names, descriptions, addresses and metadata; where in a document a
//! passage stands; what the index keeps of it; vectors of an earlier model; and what an attempt that was given up has written.

use lectern_shared::ids::{DocumentId, GenerationId, WorkspaceId};

use crate::{Db, Result, Tx, execute, locks, on};

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

/// The generations that do not count any more: their claim is lost, and they wait to be purged.
macro_rules! given_up {
    () => {
        "state = 'staging' AND NOT EXISTS (
             SELECT 1 FROM jobs WHERE jobs.document_id = generations.document_id
               AND jobs.claim_id = generations.claim_id AND jobs.state = 'running')"
    };
}

/// What is stored for the workspace $1, summed up. The workspace is no condition of the last sum: an index has all generations that are
/// being made, which are few, and another one all of the workspace's.
macro_rules! used {
    () => {
        concat!(
            "CAST(COALESCE((SELECT SUM(stored_bytes) FROM documents WHERE workspace_id = $1), 0)
                + COALESCE((SELECT SUM(stored_bytes) FROM generations WHERE workspace_id = $1), 0)
                - COALESCE((SELECT SUM(CASE WHEN workspace_id = $1 THEN stored_bytes END) FROM generations WHERE ",
            given_up!(),
            "), 0) AS BIGINT)"
        )
    };
}

/// What is stored for a workspace, in bytes. A generation counts in full from its beginning, so that several at once do not share the
/// same room, and until its claim is lost: else each attempt of an outage would count besides those before it.
async fn used(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64> {
    let bytes: i64 =
        on!(tx, |c| sqlx::query_scalar(concat!("SELECT ", used!())).bind(workspace).fetch_one(c))?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// How much of that are the generations of one document.
async fn used_by_generations(tx: &mut Tx, workspace: WorkspaceId, document: DocumentId) -> Result<u64> {
    let bytes: i64 = on!(tx, |c| sqlx::query_scalar(concat!(
        "SELECT CAST(COALESCE(SUM(stored_bytes), 0) AS BIGINT) FROM generations
         WHERE workspace_id = $1 AND document_id = $2 AND NOT (",
        given_up!(),
        ")"
    ))
    .bind(workspace)
    .bind(document)
    .fetch_one(c))?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// What is stored for a workspace, told without keeping anybody waiting. The sum, which takes the longer the more there is, is done only
/// where less is not enough: where `more` bytes may not fit. Nothing is asked where they fit by `at_most`, which was read before.
async fn used_or_more(
    db: &Db,
    workspace: WorkspaceId,
    more: u64,
    allowed: u64,
    at_most: Option<i64>,
) -> Result<u64> {
    let room = room_before(more, allowed);
    if let Some(at_most) = at_most.filter(|at_most| *at_most <= room) {
        return Ok(u64::try_from(at_most).unwrap_or(0));
    }
    let bytes: i64 = on!(db, |c| sqlx::query_scalar(concat!(
        "SELECT CASE WHEN stored_at_most <= $2 THEN stored_at_most ELSE ",
        used!(),
        " END FROM workspaces WHERE id = $1"
    ))
    .bind(workspace)
    .bind(room)
    .fetch_optional(c))?
    .unwrap_or(0);
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// The most that may be stored already where `more` bytes are to fit; negative when they never do.
fn room_before(more: u64, allowed: u64) -> i64 {
    allowed.checked_sub(more).map_or(-1, |room| i64::try_from(room).unwrap_or(i64::MAX))
}

/// Bytes that a workspace is to store more, and how many it may store altogether.
#[derive(Debug, Clone, Copy, Default)]
pub struct StorageDemand {
    /// So many more.
    pub more: u64,
    /// As many as there are when nothing is set.
    pub allowed: Option<u64>,
}

impl StorageDemand {
    /// What it adds to `workspaces.stored_at_most`.
    pub(crate) fn added(self) -> i64 {
        i64::try_from(self.more).unwrap_or(i64::MAX)
    }

    /// The most that may be stored already where it is to fit; none when nothing is set.
    pub(crate) fn room(self) -> Option<i64> {
        self.allowed.map(|allowed| room_before(self.more, allowed))
    }
}

/// What a workspace may still store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemainingQuota {
    /// So many bytes, at least one.
    pub bytes: u64,
    /// What whoever stores more is told.
    pub over: OverQuota,
}

/// What a workspace may still store, or enough for what is wanted; none when nothing is set. It keeps nobody waiting, and asks nothing where
/// `at_most`, the workspace's `stored_at_most` of a moment ago, tells enough: whoever then stores something is asked again by [`admit`].
///
/// # Errors
/// [`OverQuota`] within, when there is none left.
pub async fn left(
    db: &Db,
    workspace: WorkspaceId,
    wanted: StorageDemand,
    at_most: Option<i64>,
) -> Result<std::result::Result<Option<RemainingQuota>, OverQuota>> {
    let StorageDemand { more, allowed: Some(allowed) } = wanted else { return Ok(Ok(None)) };
    let used = used_or_more(db, workspace, more, allowed, at_most).await?;
    let over = OverQuota { used, allowed };
    let bytes = allowed.saturating_sub(used);
    Ok(if bytes == 0 { Err(over) } else { Ok(Some(RemainingQuota { bytes, over })) })
}

/// Whether a workspace may store `more` bytes, which the transaction then does. Whoever is over the quota may not even store what does not
/// count, such as a document by its address. The passages of a document take the place of those that it has: give it as `instead_of`.
///
/// The workspace's changes wait for each other from here to the end of the transaction, so that two of them never use the same room.
/// What is stored is not summed up each time: `workspaces.stored_at_most` is the last sum with everything that was admitted since, and what
/// was removed since is not taken off. Only when that leaves no room the sum is done again. Whatever is stored without being admitted makes
/// that number wrong: [`forget_sums`], and [`crate::jobs::GenerationPublication::was_unlimited`].
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
    let demand = StorageDemand { more, allowed: Some(allowed) };
    let within = execute!(
        tx,
        sqlx::query(
            "UPDATE workspaces SET stored_at_most = stored_at_most + $2 WHERE id = $1 AND stored_at_most <= $3"
        )
        .bind(workspace)
        .bind(demand.added())
        .bind(demand.room())
    )?;
    if within == 1 {
        if let Tx::Postgres(tx) = tx {
            tx.note_locked(workspace);
        }
        return Ok(Ok(()));
    }
    locks::lock_workspace(tx, workspace).await?;
    let used = used(tx, workspace).await?;
    let replaced = match instead_of {
        Some(document) => used_by_generations(tx, workspace, document).await?,
        None => 0,
    };
    let fits = fit(used.saturating_sub(replaced), more, allowed);
    if fits.is_ok() {
        note_sum(tx, workspace, used.saturating_add(more)).await?;
    }
    Ok(fits)
}

/// [`admit`] by the sum, of bytes that the transaction has stored already: the sum has them. A transaction that stores first and is admitted
/// with its place in line, which is the last thing it does, keeps the others of its workspace waiting for the shortest time; what it has
/// stored no sum of theirs has, and it is added to the number once it has its turn.
///
/// # Errors
/// [`OverQuota`] within, when they may not stay.
pub(crate) async fn admit_stored(
    tx: &mut Tx,
    workspace: WorkspaceId,
    demand: StorageDemand,
) -> Result<std::result::Result<(), OverQuota>> {
    let StorageDemand { more, allowed: Some(allowed) } = demand else { return Ok(Ok(())) };
    locks::lock_workspace(tx, workspace).await?;
    let used = used(tx, workspace).await?;
    let fits = fit(used.saturating_sub(more), more, allowed);
    if fits.is_ok() {
        note_sum(tx, workspace, used).await?;
    }
    Ok(fits)
}

/// Notes what is stored for a workspace that is locked, just summed up.
async fn note_sum(tx: &mut Tx, workspace: WorkspaceId, bytes: u64) -> Result<()> {
    execute!(
        tx,
        sqlx::query("UPDATE workspaces SET stored_at_most = $2 WHERE id = $1")
            .bind(workspace)
            .bind(i64::try_from(bytes).unwrap_or(i64::MAX))
    )?;
    Ok(())
}

/// Has every workspace's storage summed up again when it is asked for the next time: something may have been stored without being
/// admitted, where nothing limits it.
pub async fn forget_sums(tx: &mut Tx) -> Result<()> {
    execute!(
        tx,
        sqlx::query("UPDATE workspaces SET stored_at_most = NULL WHERE stored_at_most IS NOT NULL")
    )?;
    Ok(())
}

/// Whether a workspace may store something as it is now, told as by [`left`]. Whoever may is asked again by [`admit`].
///
/// # Errors
/// [`OverQuota`] within, when they may not.
pub async fn expect_room(
    db: &Db,
    workspace: WorkspaceId,
    demand: StorageDemand,
    at_most: Option<i64>,
) -> Result<std::result::Result<(), OverQuota>> {
    let StorageDemand { more, allowed: Some(allowed) } = demand else { return Ok(Ok(())) };
    Ok(fit(used_or_more(db, workspace, more, allowed, at_most).await?, more, allowed))
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

/// How many documents a workspace has that are not deleted, or no less than that where it may have another one besides. The workspace's
/// changes wait for each other from here to the end of the transaction, so that two of them never take the same place.
///
/// They are not counted each time: `workspaces.documents_at_most` is the last count with every document that was
/// [queued](crate::jobs::enqueue_new) since, whoever knew of a quota, and what was deleted since is not taken off.
pub async fn count_documents(tx: &mut Tx, workspace: WorkspaceId, allowed: u64) -> Result<u64> {
    locks::lock_workspace(tx, workspace).await?;
    let at_most: Option<Option<i64>> =
        on!(tx, |c| sqlx::query_scalar("SELECT documents_at_most FROM workspaces WHERE id = $1")
            .bind(workspace)
            .fetch_optional(c))?;
    let at_most = at_most.flatten().and_then(|at_most| u64::try_from(at_most).ok());
    if let Some(at_most) = at_most.filter(|at_most| *at_most < allowed) {
        return Ok(at_most);
    }
    let documents: i64 = on!(tx, |c| sqlx::query_scalar(
        "SELECT COUNT(*) FROM documents WHERE workspace_id = $1 AND deleted_at IS NULL"
    )
    .bind(workspace)
    .fetch_one(c))?;
    execute!(
        tx,
        sqlx::query("UPDATE workspaces SET documents_at_most = $2 WHERE id = $1")
            .bind(workspace)
            .bind(documents)
    )?;
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
