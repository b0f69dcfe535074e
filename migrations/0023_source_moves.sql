-- Documents whose things a run has found elsewhere than they were.
ALTER TABLE source_runs ADD COLUMN moved BIGINT NOT NULL DEFAULT 0;
