-- The inline text of a document in a table of its own: SQLite writes a row anew as a whole when one of its columns changes its length,
-- and reads through a long value to what stands behind it.
CREATE TABLE document_contents (
    document_id UUID NOT NULL PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    content TEXT NOT NULL
);
INSERT INTO document_contents (document_id, content) SELECT id, content FROM documents WHERE content IS NOT NULL;
