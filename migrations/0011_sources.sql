-- Places whose documents are kept in step with what is there: a site, a feed, a bucket, a folder.
CREATE TABLE sources (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id),
    created_by UUID,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    collection_id UUID REFERENCES collections (id) ON DELETE SET NULL,
    config TEXT NOT NULL,
    secret_sealed BYTEA,
    every_seconds BIGINT,
    -- In per cent of its documents.
    delete_limit BIGINT NOT NULL,
    next_run_at BIGINT,
    -- By what a feed itself is known, so that it is not sent again.
    etag TEXT,
    last_modified TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX sources_by_workspace ON sources (workspace_id, id);
CREATE INDEX sources_by_collection ON sources (collection_id) WHERE collection_id IS NOT NULL;
CREATE INDEX sources_due ON sources (next_run_at) WHERE next_run_at IS NOT NULL;

CREATE TABLE source_runs (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    source_id UUID NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    state TEXT NOT NULL,
    -- Who asked for it; none for the schedule.
    requested_by UUID,
    -- Who answered the question whether so many documents are to be deleted.
    confirmed_by UUID,
    dry_run BOOLEAN NOT NULL,
    is_full BOOLEAN NOT NULL,
    claim_id UUID,
    lease_until BIGINT,
    attempts BIGINT NOT NULL,
    added BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    unchanged BIGINT NOT NULL,
    gone BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    error TEXT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT
);
CREATE INDEX source_runs_by_source ON source_runs (source_id, id);
-- Runs of a source never overlap.
CREATE UNIQUE INDEX source_runs_active ON source_runs (source_id) WHERE state IN ('queued', 'running', 'waiting');
CREATE INDEX source_runs_due ON source_runs (created_at) WHERE state IN ('queued', 'running');
CREATE INDEX source_runs_by_time ON source_runs (created_at);

-- What is known of each thing that a document was made of.
CREATE TABLE source_items (
    source_id UUID NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    -- Its address, or its path.
    item_key TEXT NOT NULL,
    workspace_id UUID NOT NULL,
    document_id UUID NOT NULL,
    etag TEXT,
    last_modified TEXT,
    sha256 TEXT,
    -- Where a page links to, so that one which has not changed is gone past without being read.
    links TEXT,
    -- The run that saw it last.
    seen_run UUID,
    PRIMARY KEY (source_id, item_key)
);
CREATE INDEX source_items_by_document ON source_items (document_id);

-- What was found in a run, but for what has not changed.
CREATE TABLE source_run_items (
    id UUID NOT NULL,
    run_id UUID NOT NULL REFERENCES source_runs (id) ON DELETE CASCADE,
    item_key TEXT NOT NULL,
    workspace_id UUID NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT,
    document_id UUID,
    PRIMARY KEY (run_id, item_key)
);
CREATE INDEX source_run_items_in_order ON source_run_items (run_id, id);
