//! How a document is read, whoever reads it: with how far its ingestion is.

/// A SELECT of [documents](lectern_shared::model::document::Document) that are not deleted, perhaps with further columns and the joins that
/// these need, up to the end of its condition.
macro_rules! select_document {
    ($where:literal) => {
        select_document!("", "", $where)
    };
    ($columns:expr, $joins:literal, $where:literal) => {
        concat!(
            "SELECT d.id, d.workspace_id, d.created_by, d.type, d.name, d.description, d.url, d.metadata, d.splitter, d.from_page, d.to_page,
                    (d.authorization_sealed IS NOT NULL) AS has_authorization, d.revision, d.search_index, d.created_at, d.updated_at,
                    j.state, j.stage, j.progress, j.attempts, j.last_error, j.warnings, j.source, j.queued_at,
                    j.started_at, j.finished_at",
            $columns,
            " FROM documents d JOIN jobs j ON j.document_id = d.id AND j.kind = 'ingest' ",
            $joins,
            " WHERE d.deleted_at IS NULL AND ",
            $where
        )
    };
}
pub(crate) use select_document;
