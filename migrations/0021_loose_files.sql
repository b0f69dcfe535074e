-- Files in the blob store that no document names, and when each is removed: new versions of documents' files that are on their way, and those
-- that they took the place of.
CREATE TABLE loose_files (
    blob_key TEXT NOT NULL PRIMARY KEY,
    purge_at BIGINT NOT NULL
);
CREATE INDEX loose_files_due ON loose_files (purge_at);
