-- No less than how many documents the workspace has: the last count, with everything that was made since. None when they are to be counted.
ALTER TABLE workspaces ADD COLUMN documents_at_most BIGINT;
