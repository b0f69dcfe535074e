-- The address of a webhook, encrypted, since its path or query may be a key; `url` is empty then. Rows that were last changed before have it there
-- still.
ALTER TABLE webhooks ADD COLUMN url_sealed BYTEA;
