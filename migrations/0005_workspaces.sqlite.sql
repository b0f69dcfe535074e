-- References to a table follow its new name. A column that is unique cannot be dropped, so the table is made again without what
-- belongs to accounts; nothing is referenced meanwhile, since foreign keys are off.
ALTER TABLE users RENAME TO workspaces;
CREATE TABLE users (
    id UUID NOT NULL PRIMARY KEY,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    is_admin BOOLEAN NOT NULL,
    token_version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);
INSERT INTO users (id, email, email_key, name, password_hash, is_admin, token_version, created_at, updated_at, deleted_at)
SELECT id, email, email_key, name, password_hash, is_admin, token_version, created_at, updated_at, deleted_at FROM workspaces;

CREATE TABLE narrow_workspaces (
    id UUID NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    is_personal BOOLEAN NOT NULL,
    search_epoch BIGINT NOT NULL,
    fair_at BIGINT NOT NULL,
    quotas TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);
INSERT INTO narrow_workspaces (id, name, is_personal, search_epoch, fair_at, created_at, updated_at, deleted_at)
SELECT id, name, TRUE, search_epoch, fair_at, created_at, updated_at, deleted_at FROM workspaces;
DROP TABLE workspaces;
ALTER TABLE narrow_workspaces RENAME TO workspaces;
-- Deleted ones, of which something may be left. Until now the index was on accounts.
CREATE INDEX workspaces_deleted ON workspaces (id) WHERE deleted_at IS NOT NULL;
