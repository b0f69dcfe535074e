-- What clients keep with a collection of their own: a JSON object.
ALTER TABLE collections ADD COLUMN metadata TEXT;
-- The last batch that put the document there, whose id tells when.
ALTER TABLE collection_documents ADD COLUMN batch_id UUID;
CREATE INDEX collection_documents_by_batch ON collection_documents (batch_id) WHERE batch_id IS NOT NULL;
-- The link of a citation names a passage by its id. Those of a generation stand together, so that adding them writes few pages.
CREATE INDEX chunks_by_id ON chunks (generation_id, chunk_id);
