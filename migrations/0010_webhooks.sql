-- Where a workspace's events are told to, signed with a secret that both sides know.
CREATE TABLE webhooks (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id),
    created_by UUID,
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    active BOOLEAN NOT NULL,
    -- The secret, and for a while the one before it.
    secret_sealed BYTEA NOT NULL,
    -- Why it was switched off by itself.
    disabled TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX webhooks_by_workspace ON webhooks (workspace_id, id);

-- Events on their way: written in the transaction that makes them true, and forgotten some time after they have arrived.
CREATE TABLE webhook_deliveries (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    webhook_id UUID NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    -- When it is tried next, or may be by another process if the one that tries it now goes away.
    next_at BIGINT NOT NULL,
    last_status BIGINT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    ended_at BIGINT
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX webhook_deliveries_by_time ON webhook_deliveries (created_at);
