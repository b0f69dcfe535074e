-- References to a table follow its new name, and no row of what refers to it is read.
ALTER TABLE users RENAME TO workspaces;
ALTER TABLE workspaces RENAME CONSTRAINT users_pkey TO workspaces_pkey;
ALTER TABLE workspaces RENAME CONSTRAINT users_email_key_key TO workspaces_email_key_key;
ALTER INDEX users_deleted RENAME TO workspaces_deleted;
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

ALTER TABLE workspaces
    DROP COLUMN email, DROP COLUMN email_key, DROP COLUMN password_hash, DROP COLUMN is_admin, DROP COLUMN token_version;
ALTER TABLE workspaces ADD COLUMN is_personal BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE workspaces ALTER COLUMN is_personal DROP DEFAULT;
ALTER TABLE workspaces ADD COLUMN quotas TEXT;
