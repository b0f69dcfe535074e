-- Pages on which agents are asked, each of one agent. Those who may open it are named by `access`; who has no account asks by the token.
CREATE TABLE publications (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id),
    created_by UUID,
    agent_id UUID NOT NULL UNIQUE REFERENCES agents (id) ON DELETE CASCADE,
    slug TEXT NOT NULL UNIQUE,
    access TEXT NOT NULL,
    title TEXT NOT NULL,
    greeting TEXT NOT NULL,
    questions TEXT NOT NULL,
    accent TEXT NOT NULL,
    origins TEXT NOT NULL,
    token_id UUID,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX publications_by_workspace ON publications (workspace_id, id);

-- What people say of an answer: 1 or -1, and their words.
ALTER TABLE traces ADD COLUMN rating BIGINT;
ALTER TABLE traces ADD COLUMN feedback TEXT;
ALTER TABLE traces ADD COLUMN feedback_at BIGINT;

-- Lists of what failed or was stopped, and of one type, in a workspace that has many documents.
CREATE INDEX jobs_dead_of_workspace ON jobs (workspace_id, document_id) WHERE state = 'dead';
CREATE INDEX jobs_cancelled_of_workspace ON jobs (workspace_id, document_id) WHERE state = 'cancelled';
CREATE INDEX documents_by_type ON documents (workspace_id, type, id) WHERE deleted_at IS NULL;

-- Lists of documents by name. A beginning of it, since a key of an index may not be long.
CREATE INDEX documents_by_name ON documents (workspace_id, SUBSTR(name, 1, 200), id) WHERE deleted_at IS NULL;
