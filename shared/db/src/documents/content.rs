//! Inline content: the text that a document was made of when it came with the request. A table of its own has it, so that whatever else
//! is written or read of a document costs the same with a text of any length.

use lectern_shared::ids::{DocumentId, WorkspaceId};

use crate::{Db, Result, Tx, execute, on};

/// The inline content of one of a workspace's documents; none when it has none, or there is no such document.
pub async fn find(db: &Db, workspace: WorkspaceId, id: DocumentId) -> Result<Option<String>> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT c.content FROM documents d JOIN document_contents c ON c.document_id = d.id
         WHERE d.id = $1 AND d.workspace_id = $2 AND d.deleted_at IS NULL"
    )
    .bind(id)
    .bind(workspace)
    .fetch_optional(c))?)
}

/// What is done to give the document $1 the content $2, or none, as parts that may come in any order.
macro_rules! give {
    (length) => {
        "UPDATE documents SET stored_bytes = COALESCE(source_bytes, 0) + COALESCE(OCTET_LENGTH(CAST($2 AS TEXT)), 0) WHERE id = $1"
    };
    (nothing) => {
        "DELETE FROM document_contents WHERE document_id = $1 AND $2 IS NULL"
    };
    (text) => {
        "INSERT INTO document_contents (document_id, content) SELECT $1, $2 WHERE $2 IS NOT NULL
         ON CONFLICT (document_id) DO UPDATE SET content = excluded.content"
    };
}

/// Gives a document, which the transaction has found to be the workspace's, other inline content, or none.
pub async fn set(tx: &mut Tx, id: DocumentId, content: Option<&str>) -> Result<()> {
    // In one round trip.
    let statement = match tx {
        Tx::Postgres(_) => {
            concat!("WITH counted AS (", give!(length), "), emptied AS (", give!(nothing), ") ", give!(text))
        }
        Tx::Sqlite(_) => concat!(give!(length), "; ", give!(nothing), "; ", give!(text)),
    };
    execute!(tx, sqlx::query(statement).bind(id).bind(content))?;
    Ok(())
}

/// Removes the inline content of all documents of a workspace.
pub(super) async fn forget_all(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM document_contents WHERE document_id IN (SELECT id FROM documents WHERE workspace_id = $1)"
        )
        .bind(workspace)
    )?;
    Ok(())
}
