-- SHA-256 of the text that is searchable, in hexadecimal, as it stands in search_index too.
ALTER TABLE documents ADD COLUMN content_hash TEXT;
UPDATE documents SET content_hash = (CAST(search_index AS JSON)) ->> 'contentHash' WHERE search_index IS NOT NULL;
