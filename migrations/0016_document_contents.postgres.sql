-- A column that is dropped keeps its room; one that is empty does not.
UPDATE documents SET content = NULL WHERE content IS NOT NULL;
ALTER TABLE documents DROP COLUMN content;
