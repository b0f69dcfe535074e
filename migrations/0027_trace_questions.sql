-- What was asked, by its beginning, for whoever looks for an answer by its question. Answers from before have none.
ALTER TABLE traces ADD COLUMN question TEXT;
-- Beside the ids, so that nothing else of an answer is read for that: each may have megabytes.
DROP INDEX traces_by_workspace;
CREATE INDEX traces_by_workspace ON traces (workspace_id, id, question);
