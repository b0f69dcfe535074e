-- Which run a conversation remembers a turn of; none for a turn from before this was noted.
ALTER TABLE agent_memory ADD COLUMN trace_id UUID;
-- What somebody asked: an account, or an API token that many hold, which says no more of who that was. The columns stand behind the long texts of a
-- row, which SQLite would read through to find them.
CREATE INDEX traces_by_asker ON traces (workspace_id, (COALESCE(token_id, created_by, workspace_id)), id);
CREATE INDEX agent_memory_by_asker ON agent_memory (workspace_id, (COALESCE(token_id, created_by, workspace_id)), id);
