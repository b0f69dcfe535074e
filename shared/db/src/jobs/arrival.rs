//! New documents on their way into the line.

use lectern_shared::clock::Timestamp;

use super::line::{LockedWorkspace, take_number};
use crate::{
    Result, Tx,
    commit::pg_identity,
    documents::{self, NewDocumentRow, bind_document, insert_document},
    silence,
    storage::StorageDemand,
};

/// Adds the document and takes a number for it. Of both the workspace is `$2`.
const STORE_AND_NUMBER: &str = concat!(
    "WITH inline AS (INSERT INTO document_contents (document_id, content) SELECT $1, $14 WHERE $14 IS NOT NULL),
          made AS (",
    insert_document!(),
    ") ",
    take_number!(("$2", "$15", "$16", "1"), "fair_at, ", pg_identity!())
);

/// Adds a document, as [`documents::insert`] does, which this transaction [queues](super::enqueue_new) next, with the same demand. PostgreSQL
/// takes the number for it in the same round trip, if there is room by the last sum: others of its workspace wait from here on.
pub async fn store_new(
    tx: &mut Tx,
    document: &NewDocumentRow<'_>,
    demand: StorageDemand,
    now: Timestamp,
) -> Result<()> {
    let workspace = document.owner.workspace_id;
    match tx {
        Tx::Postgres(tx) => {
            let store = bind_document!(sqlx::query_as(STORE_AND_NUMBER), document, now);
            let store = store.bind(demand.added()).bind(demand.room());
            let numbered: Option<LockedWorkspace> =
                silence::answered(store.fetch_optional(&mut **tx)).await?;
            if let Some(locked) = numbered {
                let number = locked.note(tx, workspace);
                tx.note_numbered(workspace, number);
            }
            Ok(())
        }
        Tx::Sqlite(_) => documents::insert(tx, document, now).await,
    }
}
