-- The search epoch of its workspace at which something of a document last changed that searches depend on: whoever knows what was searchable at
-- an earlier one reads no others.
ALTER TABLE documents ADD COLUMN changed_epoch BIGINT NOT NULL DEFAULT 0;
CREATE INDEX documents_changed ON documents (workspace_id, changed_epoch);

-- The highest of these among the workspace's documents whose rows are gone: whoever knows what was searchable before it reads everything.
ALTER TABLE workspaces ADD COLUMN purged_epoch BIGINT NOT NULL DEFAULT 0;
