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

/// Gives a document, which the transaction has found to be the workspace's, other inline content, or none.
pub async fn set(tx: &mut Tx, id: DocumentId, content: Option<&str>) -> Result<()> {
    let bytes = i64::try_from(content.map_or(0, str::len)).unwrap_or(i64::MAX);
    let stored = "UPDATE documents SET stored_bytes = COALESCE(source_bytes, 0) + $2 WHERE id = $1";
    execute!(tx, sqlx::query(stored).bind(id).bind(bytes))?;
    match content {
        Some(content) => write(tx, id, content).await,
        None => forget(tx, id).await,
    }
}

/// Writes the inline content of a document, whose row says how long it is.
async fn write(tx: &mut Tx, id: DocumentId, content: &str) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO document_contents (document_id, content) VALUES ($1, $2)
             ON CONFLICT (document_id) DO UPDATE SET content = excluded.content"
        )
        .bind(id)
        .bind(content)
    )?;
    Ok(())
}

/// Removes the inline content of a document, which the transaction has found to be the workspace's.
pub(super) async fn forget(tx: &mut Tx, id: DocumentId) -> Result<()> {
    execute!(tx, sqlx::query("DELETE FROM document_contents WHERE document_id = $1").bind(id))?;
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
