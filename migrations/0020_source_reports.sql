-- Documents that somebody deleted here, which a run leaves away.
ALTER TABLE source_runs ADD COLUMN deleted_here BIGINT NOT NULL DEFAULT 0;
-- What a run went past, with a reason each.
ALTER TABLE source_runs ADD COLUMN skipped BIGINT NOT NULL DEFAULT 0;
-- What is to be known of a run that came to its end.
ALTER TABLE source_runs ADD COLUMN warning TEXT;
