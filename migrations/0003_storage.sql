-- What each user stores, in bytes. Of a document: its uploaded file, or its inline content. Of a generation: the text of its
-- passages, and their vectors. Rows count until they are purged, since until then they take room. Both indexes hold all that a
-- sum needs.
ALTER TABLE documents ADD COLUMN stored_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE generations ADD COLUMN stored_bytes BIGINT NOT NULL DEFAULT 0;

UPDATE documents SET stored_bytes = COALESCE(source_bytes, 0) + COALESCE(OCTET_LENGTH(content), 0)
WHERE source_bytes IS NOT NULL OR content IS NOT NULL;
-- About what a passage has; to count exactly, all passages would have to be read. The next ingestion does.
UPDATE generations SET stored_bytes = chunks * 2000 WHERE chunks > 0;

-- With the id before the size: without it, and before PostgreSQL has statistics, one document of a user's is looked for among all of
-- the user's by this index.
CREATE INDEX documents_storage ON documents (user_id, id, stored_bytes);
CREATE INDEX generations_storage ON generations (user_id, document_id, stored_bytes);
