-- A row belongs to a workspace, and people are members of it. Every account has a personal workspace whose id is the account's, so
-- that no row changes. What belongs to accounts is in the file of each database, which comes before this one.
CREATE TABLE members (
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    joined_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
);
CREATE INDEX members_by_user ON members (user_id, workspace_id);
INSERT INTO members (workspace_id, user_id, role, joined_at)
SELECT id, id, 'owner', created_at FROM users WHERE deleted_at IS NULL;

-- The token is found by its hash, and works once: its row goes. email_key is set when only that account may accept.
CREATE TABLE invitations (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    email TEXT,
    email_key TEXT,
    token_hash BYTEA NOT NULL UNIQUE,
    created_by UUID NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX invitations_by_workspace ON invitations (workspace_id, id);

-- Who did what to what, from where. Rows are added and, with their workspace, removed; never changed.
CREATE TABLE audit_events (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    at BIGINT NOT NULL,
    user_id UUID NOT NULL,
    token_id UUID,
    action TEXT NOT NULL,
    target_kind TEXT NOT NULL,
    target_id TEXT NOT NULL,
    address TEXT,
    request_id TEXT
);
CREATE INDEX audit_events_by_workspace ON audit_events (workspace_id, id);
CREATE INDEX audit_events_by_time ON audit_events (at);

-- What a workspace has used of its models, by month: the first moment of it, in UTC.
CREATE TABLE workspace_usage (
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    month BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    cost_micros BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, month)
);

ALTER TABLE api_tokens RENAME COLUMN user_id TO workspace_id;
ALTER TABLE documents RENAME COLUMN user_id TO workspace_id;
ALTER TABLE generations RENAME COLUMN user_id TO workspace_id;
ALTER TABLE chunks RENAME COLUMN user_id TO workspace_id;
ALTER TABLE index_segments RENAME COLUMN user_id TO workspace_id;
ALTER TABLE jobs RENAME COLUMN user_id TO workspace_id;
ALTER TABLE prompts RENAME COLUMN user_id TO workspace_id;
ALTER TABLE tags RENAME COLUMN user_id TO workspace_id;
ALTER TABLE agents RENAME COLUMN user_id TO workspace_id;
ALTER TABLE agent_tags RENAME COLUMN user_id TO workspace_id;
ALTER TABLE agent_documents RENAME COLUMN user_id TO workspace_id;
ALTER TABLE tools RENAME COLUMN user_id TO workspace_id;
ALTER TABLE agent_tools RENAME COLUMN user_id TO workspace_id;
ALTER TABLE agent_memory RENAME COLUMN user_id TO workspace_id;
ALTER TABLE traces RENAME COLUMN user_id TO workspace_id;
ALTER TABLE cached_answers RENAME COLUMN user_id TO workspace_id;

-- Who made it. Null in rows from before there were workspaces: then it was the account whose id the workspace has. To write it there
-- would rewrite every document.
ALTER TABLE api_tokens ADD COLUMN created_by UUID;
ALTER TABLE documents ADD COLUMN created_by UUID;
ALTER TABLE prompts ADD COLUMN created_by UUID;
ALTER TABLE tags ADD COLUMN created_by UUID;
ALTER TABLE agents ADD COLUMN created_by UUID;
ALTER TABLE agent_documents ADD COLUMN created_by UUID;
ALTER TABLE tools ADD COLUMN created_by UUID;
ALTER TABLE agent_tools ADD COLUMN created_by UUID;
ALTER TABLE agent_memory ADD COLUMN created_by UUID;
ALTER TABLE traces ADD COLUMN created_by UUID;

-- The token that asked, if it is in the hands of many: what they ask is nobody else's, not even its maker's.
ALTER TABLE agent_memory ADD COLUMN token_id UUID;
ALTER TABLE traces ADD COLUMN token_id UUID;

-- What an API token may do. A token from before has no role, and may do what its maker may.
ALTER TABLE api_tokens ADD COLUMN role TEXT;
ALTER TABLE api_tokens ADD COLUMN agent_id UUID;
ALTER TABLE api_tokens ADD COLUMN origins TEXT;
ALTER TABLE api_tokens ADD COLUMN expires_at BIGINT;
ALTER TABLE api_tokens ADD COLUMN rate_per_minute BIGINT;
CREATE INDEX api_tokens_of_pages ON api_tokens (id) WHERE origins IS NOT NULL;

-- Named sets of documents. defaults is JSON: the splitter, the metadata and the language of what is added.
CREATE TABLE collections (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id),
    created_by UUID,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    defaults TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX collections_by_workspace ON collections (workspace_id, id);

CREATE TABLE collection_documents (
    collection_id UUID NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    document_id UUID NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    workspace_id UUID NOT NULL,
    PRIMARY KEY (collection_id, document_id)
);
CREATE INDEX collection_documents_by_document ON collection_documents (document_id);

CREATE TABLE agent_collections (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id),
    created_by UUID,
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    collection_id UUID NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    UNIQUE (agent_id, collection_id)
);
CREATE INDEX agent_collections_by_workspace ON agent_collections (workspace_id, id);
CREATE INDEX agent_collections_by_collection ON agent_collections (collection_id);

-- Accounts at other providers of identity, by the issuer's own name for them.
CREATE TABLE user_identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX user_identities_by_user ON user_identities (user_id);

DROP INDEX api_tokens_by_user;
DROP INDEX documents_by_user;
DROP INDEX jobs_by_user;
DROP INDEX prompts_by_user;
DROP INDEX tags_by_user;
DROP INDEX agents_by_user;
DROP INDEX agent_documents_by_user;
DROP INDEX tools_by_user;
DROP INDEX agent_tools_by_user;
DROP INDEX traces_by_user;
CREATE INDEX api_tokens_by_workspace ON api_tokens (workspace_id, id);
CREATE INDEX documents_by_workspace ON documents (workspace_id, id) WHERE deleted_at IS NULL;
CREATE INDEX jobs_by_workspace ON jobs (workspace_id, id);
CREATE INDEX prompts_by_workspace ON prompts (workspace_id, id);
CREATE INDEX tags_by_workspace ON tags (workspace_id, id);
CREATE INDEX agents_by_workspace ON agents (workspace_id, id);
CREATE INDEX agent_documents_by_workspace ON agent_documents (workspace_id, id);
CREATE INDEX tools_by_workspace ON tools (workspace_id, id);
CREATE INDEX agent_tools_by_workspace ON agent_tools (workspace_id, id);
CREATE INDEX traces_by_workspace ON traces (workspace_id, id);
