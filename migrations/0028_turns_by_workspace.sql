-- The turns of somebody's sessions in a workspace, for the export of what is kept of them.
CREATE INDEX agent_memory_by_workspace ON agent_memory (workspace_id, id);
