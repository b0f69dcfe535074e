-- No less than what the workspace stores, in bytes: the last sum, with everything that was admitted since. None when it is to be summed up.
ALTER TABLE workspaces ADD COLUMN stored_at_most BIGINT;
