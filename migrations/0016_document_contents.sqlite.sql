ALTER TABLE documents DROP COLUMN content;
