-- Documents with the same text, or made of the same bytes, are named.
CREATE INDEX documents_by_text ON documents (workspace_id, content_hash) WHERE content_hash IS NOT NULL;
CREATE INDEX documents_by_bytes ON documents (workspace_id, source_sha256) WHERE source_sha256 IS NOT NULL;
