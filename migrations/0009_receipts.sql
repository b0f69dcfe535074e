-- What is told of a deletion: what was removed, and when nothing was left. Numbers of index entries are added when these are removed.
CREATE TABLE deletion_receipts (
    document_id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    name TEXT NOT NULL,
    deleted_at BIGINT NOT NULL,
    deleted_by UUID NOT NULL,
    purged_at BIGINT,
    passages BIGINT NOT NULL,
    index_entries BIGINT NOT NULL,
    vectors BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    links BIGINT NOT NULL,
    remaining BIGINT NOT NULL
);
CREATE INDEX deletion_receipts_by_workspace ON deletion_receipts (workspace_id, document_id);
CREATE INDEX deletion_receipts_by_time ON deletion_receipts (deleted_at);

-- How many entries of it the index held when their removal began, for the receipt of its document; none before.
ALTER TABLE generations ADD COLUMN removed_entries BIGINT;
