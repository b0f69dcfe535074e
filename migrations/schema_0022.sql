-- What the steps 0001 to 0022 make of an empty database, at once. What each table and column is for stands with the step that added it. A
-- reference has the name that the steps gave it, from before its column was called as it is now.

CREATE TABLE singletons (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    owner UUID NOT NULL,
    held_until BIGINT NOT NULL
);

CREATE TABLE generations (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    document_id UUID NOT NULL,
    claim_id UUID NOT NULL,
    state TEXT NOT NULL,
    embedding_space UUID,
    chunks BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    purge_at BIGINT,
    removals BIGINT NOT NULL,
    stored_bytes BIGINT NOT NULL DEFAULT 0,
    engine TEXT,
    removed_entries BIGINT
);
CREATE INDEX generations_by_document ON generations (document_id);
CREATE INDEX generations_to_purge ON generations (purge_at) WHERE purge_at IS NOT NULL;
CREATE INDEX generations_staging ON generations (created_at) WHERE state = 'staging';
CREATE INDEX generations_without_vectors ON generations (created_at) WHERE state = 'active' AND embedding_space IS NULL;
CREATE INDEX generations_storage ON generations (workspace_id, document_id, stored_bytes);

CREATE TABLE chunks (
    generation_id UUID NOT NULL,
    ordinal BIGINT NOT NULL,
    workspace_id UUID NOT NULL,
    document_id UUID NOT NULL,
    chunk_id UUID NOT NULL,
    text_hash BYTEA NOT NULL,
    tokens BIGINT NOT NULL,
    place TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (generation_id, ordinal)
);
CREATE INDEX chunks_by_id ON chunks (generation_id, chunk_id);

CREATE TABLE index_segments (
    generation_id UUID NOT NULL,
    part BIGINT NOT NULL,
    workspace_id UUID NOT NULL,
    chunks BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (generation_id, part)
);

CREATE TABLE embedding_spaces (
    id UUID NOT NULL PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL,
    dimensions BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE vectors (
    space_id UUID NOT NULL,
    document_id UUID NOT NULL,
    text_hash BYTEA NOT NULL,
    generation_id UUID NOT NULL,
    vector BYTEA NOT NULL,
    PRIMARY KEY (space_id, document_id, text_hash)
);
CREATE INDEX vectors_by_document ON vectors (document_id);

CREATE TABLE jobs (
    id UUID NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    workspace_id UUID NOT NULL,
    document_id UUID NOT NULL,
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    max_attempts BIGINT NOT NULL,
    run_at BIGINT NOT NULL,
    fair_at BIGINT NOT NULL,
    claim_id UUID,
    claimed_revision BIGINT,
    lease_until BIGINT,
    worker TEXT,
    stage TEXT,
    progress TEXT,
    warnings TEXT NOT NULL,
    source TEXT,
    last_error TEXT,
    from_stored BOOLEAN NOT NULL,
    trace_parent TEXT,
    queued_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    outage_at BIGINT,
    former_state TEXT,
    former_error TEXT,
    UNIQUE (document_id, kind)
);
CREATE INDEX jobs_queued ON jobs (fair_at, id) WHERE state = 'queued';
CREATE INDEX jobs_running ON jobs (lease_until) WHERE state = 'running';
CREATE INDEX jobs_dead ON jobs (finished_at, id) WHERE state = 'dead';
CREATE INDEX jobs_cancelled ON jobs (finished_at, id) WHERE state = 'cancelled';
CREATE INDEX jobs_line ON jobs (workspace_id, fair_at, id) WHERE state = 'queued' AND fair_at < 9223372036854775807;
CREATE INDEX jobs_waiting ON jobs (fair_at, run_at) WHERE state = 'queued' AND fair_at = 9223372036854775807;
CREATE INDEX jobs_held ON jobs (workspace_id, fair_at) WHERE state = 'running';
CREATE INDEX jobs_by_workspace ON jobs (workspace_id, id);
CREATE INDEX jobs_dead_of_workspace ON jobs (workspace_id, document_id) WHERE state = 'dead';
CREATE INDEX jobs_cancelled_of_workspace ON jobs (workspace_id, document_id) WHERE state = 'cancelled';

CREATE TABLE queue_head (
    id BIGINT NOT NULL PRIMARY KEY,
    fair_at BIGINT NOT NULL
);

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

CREATE TABLE workspaces (
    id UUID NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    is_personal BOOLEAN NOT NULL,
    search_epoch BIGINT NOT NULL,
    fair_at BIGINT NOT NULL,
    quotas TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    purged_epoch BIGINT NOT NULL DEFAULT 0,
    stored_at_most BIGINT,
    documents_at_most BIGINT
);
CREATE INDEX workspaces_deleted ON workspaces (id) WHERE deleted_at IS NOT NULL;

CREATE TABLE api_tokens (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL CONSTRAINT api_tokens_user_id_fkey REFERENCES workspaces (id),
    description TEXT NOT NULL,
    token_hash BYTEA NOT NULL UNIQUE,
    token_sealed BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    created_by UUID,
    role TEXT,
    agent_id UUID,
    origins TEXT,
    expires_at BIGINT,
    rate_per_minute BIGINT
);
CREATE INDEX api_tokens_of_pages ON api_tokens (id) WHERE origins IS NOT NULL;
CREATE INDEX api_tokens_by_workspace ON api_tokens (workspace_id, id);

CREATE TABLE documents (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL CONSTRAINT documents_user_id_fkey REFERENCES workspaces (id),
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    url TEXT NOT NULL,
    metadata TEXT,
    splitter TEXT,
    from_page BIGINT,
    to_page BIGINT,
    authorization_sealed BYTEA,
    blob_key TEXT,
    source_sha256 BYTEA,
    source_bytes BIGINT,
    source_name TEXT,
    source_mime TEXT,
    source_state TEXT,
    revision BIGINT NOT NULL,
    active_generation UUID,
    search_index TEXT,
    languages TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    stored_bytes BIGINT NOT NULL DEFAULT 0,
    created_by UUID,
    content_hash TEXT,
    changed_epoch BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX documents_deleted ON documents (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX documents_storage ON documents (workspace_id, id, stored_bytes);
CREATE INDEX documents_by_workspace ON documents (workspace_id, id) WHERE deleted_at IS NULL;
CREATE INDEX documents_by_type ON documents (workspace_id, type, id) WHERE deleted_at IS NULL;
CREATE INDEX documents_by_name ON documents (workspace_id, SUBSTR(name, 1, 200), id) WHERE deleted_at IS NULL;
CREATE INDEX documents_by_text ON documents (workspace_id, content_hash) WHERE content_hash IS NOT NULL;
CREATE INDEX documents_by_bytes ON documents (workspace_id, source_sha256) WHERE source_sha256 IS NOT NULL;
CREATE INDEX documents_changed ON documents (workspace_id, changed_epoch);

CREATE TABLE prompts (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL CONSTRAINT prompts_user_id_fkey REFERENCES workspaces (id),
    name TEXT NOT NULL,
    template TEXT NOT NULL,
    input_variables TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    created_by UUID
);
CREATE INDEX prompts_by_workspace ON prompts (workspace_id, id);

CREATE TABLE tags (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL CONSTRAINT tags_user_id_fkey REFERENCES workspaces (id),
    name TEXT NOT NULL,
    color TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    created_by UUID
);
CREATE INDEX tags_by_workspace ON tags (workspace_id, id);

CREATE TABLE agents (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL CONSTRAINT agents_user_id_fkey REFERENCES workspaces (id),
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    llm TEXT NOT NULL,
    llm_key_sealed BYTEA,
    has_memory BOOLEAN NOT NULL,
    prompt_id UUID REFERENCES prompts (id) ON DELETE SET NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    created_by UUID,
    rerank BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX agents_by_prompt ON agents (prompt_id);
CREATE INDEX agents_by_workspace ON agents (workspace_id, id);

CREATE TABLE agent_tags (
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    tag_id UUID NOT NULL REFERENCES tags (id) ON DELETE CASCADE,
    workspace_id UUID NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (agent_id, tag_id)
);
CREATE INDEX agent_tags_by_tag ON agent_tags (tag_id);

CREATE TABLE agent_documents (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL CONSTRAINT agent_documents_user_id_fkey REFERENCES workspaces (id),
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    document_id UUID NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    created_by UUID,
    UNIQUE (agent_id, document_id)
);
CREATE INDEX agent_documents_by_document ON agent_documents (document_id);
CREATE INDEX agent_documents_by_workspace ON agent_documents (workspace_id, id);

CREATE TABLE tools (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL CONSTRAINT tools_user_id_fkey REFERENCES workspaces (id),
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    metadata TEXT NOT NULL,
    metadata_sealed BYTEA,
    calls_agent UUID,
    return_direct BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    created_by UUID
);
CREATE INDEX tools_by_workspace ON tools (workspace_id, id);

CREATE TABLE agent_tools (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL CONSTRAINT agent_tools_user_id_fkey REFERENCES workspaces (id),
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    tool_id UUID NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    created_by UUID,
    UNIQUE (agent_id, tool_id)
);
CREATE INDEX agent_tools_by_tool ON agent_tools (tool_id);
CREATE INDEX agent_tools_by_workspace ON agent_tools (workspace_id, id);

CREATE TABLE agent_memory (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL CONSTRAINT agent_memory_user_id_fkey REFERENCES workspaces (id),
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    session TEXT NOT NULL,
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    tokens BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by UUID,
    token_id UUID
);
CREATE INDEX agent_memory_by_session ON agent_memory (agent_id, session, id);

CREATE TABLE traces (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL CONSTRAINT traces_user_id_fkey REFERENCES workspaces (id),
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    session TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    complete BOOLEAN NOT NULL,
    body TEXT NOT NULL,
    record TEXT,
    created_by UUID,
    token_id UUID,
    rating BIGINT,
    feedback TEXT,
    feedback_at BIGINT
);
CREATE INDEX traces_by_agent ON traces (agent_id, id);
CREATE INDEX traces_expiring ON traces (expires_at);
CREATE INDEX traces_by_workspace ON traces (workspace_id, id);

CREATE TABLE cached_answers (
    workspace_id UUID NOT NULL CONSTRAINT cached_answers_user_id_fkey REFERENCES workspaces (id),
    answer_key BYTEA NOT NULL,
    trace_id UUID NOT NULL REFERENCES traces (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, answer_key)
);
CREATE INDEX cached_answers_by_trace ON cached_answers (trace_id);

CREATE TABLE idempotency (
    user_id UUID NOT NULL REFERENCES workspaces (id),
    request_key TEXT NOT NULL,
    answer_sealed BYTEA NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, request_key)
);
CREATE INDEX idempotency_expiring ON idempotency (expires_at);

CREATE TABLE known_addresses (
    user_id UUID NOT NULL REFERENCES workspaces (id),
    address_hash BYTEA NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, address_hash)
);
CREATE INDEX known_addresses_by_time ON known_addresses (seen_at);

CREATE TABLE members (
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    joined_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
);
CREATE INDEX members_by_user ON members (user_id, workspace_id);

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

CREATE TABLE workspace_usage (
    workspace_id UUID NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    month BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    cost_micros BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, month)
);

CREATE TABLE collections (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id),
    created_by UUID,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    defaults TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    metadata TEXT
);
CREATE INDEX collections_by_workspace ON collections (workspace_id, id);

CREATE TABLE collection_documents (
    collection_id UUID NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    document_id UUID NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    workspace_id UUID NOT NULL,
    batch_id UUID,
    PRIMARY KEY (collection_id, document_id)
);
CREATE INDEX collection_documents_by_document ON collection_documents (document_id);
CREATE INDEX collection_documents_by_batch ON collection_documents (batch_id) WHERE batch_id IS NOT NULL;

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

CREATE TABLE user_identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX user_identities_by_user ON user_identities (user_id);

CREATE TABLE pages (
    generation_id UUID NOT NULL,
    number BIGINT NOT NULL,
    workspace_id UUID NOT NULL,
    width REAL NOT NULL,
    height REAL NOT NULL,
    chars BIGINT NOT NULL,
    words TEXT,
    PRIMARY KEY (generation_id, number)
);

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

CREATE TABLE deletion_receipts (
    document_id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    name TEXT NOT NULL,
    deleted_at BIGINT NOT NULL,
    deleted_by UUID NOT NULL,
    purged_at BIGINT,
    passages BIGINT NOT NULL,
    index_entries BIGINT NOT NULL,
    vectors BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    links BIGINT NOT NULL,
    remaining BIGINT NOT NULL
);
CREATE INDEX deletion_receipts_by_workspace ON deletion_receipts (workspace_id, document_id);
CREATE INDEX deletion_receipts_by_time ON deletion_receipts (deleted_at);

CREATE TABLE webhooks (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id),
    created_by UUID,
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    active BOOLEAN NOT NULL,
    secret_sealed BYTEA NOT NULL,
    disabled TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX webhooks_by_workspace ON webhooks (workspace_id, id);

CREATE TABLE webhook_deliveries (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    webhook_id UUID NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    last_status BIGINT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    ended_at BIGINT
);
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX webhook_deliveries_by_time ON webhook_deliveries (created_at);
CREATE INDEX webhook_deliveries_next ON webhook_deliveries (webhook_id, next_at, id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_tests ON webhook_deliveries (webhook_id, event, next_at, id)
    WHERE state = 'pending' AND event = 'webhook.test';

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
    delete_limit BIGINT NOT NULL,
    next_run_at BIGINT,
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
    requested_by UUID,
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
    finished_at BIGINT,
    deleted_here BIGINT NOT NULL DEFAULT 0,
    skipped BIGINT NOT NULL DEFAULT 0,
    warning TEXT
);
CREATE INDEX source_runs_by_source ON source_runs (source_id, id);
CREATE UNIQUE INDEX source_runs_active ON source_runs (source_id) WHERE state IN ('queued', 'running', 'waiting');
CREATE INDEX source_runs_due ON source_runs (created_at) WHERE state IN ('queued', 'running');
CREATE INDEX source_runs_by_time ON source_runs (created_at);

CREATE TABLE source_items (
    source_id UUID NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    item_key TEXT NOT NULL,
    workspace_id UUID NOT NULL,
    document_id UUID NOT NULL,
    etag TEXT,
    last_modified TEXT,
    sha256 TEXT,
    links TEXT,
    seen_run UUID,
    name TEXT,
    PRIMARY KEY (source_id, item_key)
);
CREATE INDEX source_items_by_document ON source_items (document_id);

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

CREATE TABLE evaluations (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id),
    created_by UUID,
    name TEXT NOT NULL,
    agent_id UUID REFERENCES agents (id) ON DELETE SET NULL,
    collection_ids TEXT NOT NULL,
    judge_id UUID REFERENCES agents (id) ON DELETE SET NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX evaluations_by_workspace ON evaluations (workspace_id, id);
CREATE INDEX evaluations_by_agent ON evaluations (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX evaluations_by_judge ON evaluations (judge_id) WHERE judge_id IS NOT NULL;

CREATE TABLE evaluation_cases (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    evaluation_id UUID NOT NULL REFERENCES evaluations (id) ON DELETE CASCADE,
    question TEXT NOT NULL,
    expect TEXT NOT NULL,
    note TEXT,
    created_by UUID,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX evaluation_cases_in_order ON evaluation_cases (evaluation_id, id);

CREATE TABLE evaluation_runs (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    evaluation_id UUID NOT NULL REFERENCES evaluations (id) ON DELETE CASCADE,
    requested_by UUID,
    state TEXT NOT NULL,
    config TEXT NOT NULL,
    claim_id UUID,
    lease_until BIGINT,
    attempts BIGINT NOT NULL,
    cases BIGINT NOT NULL,
    done BIGINT NOT NULL,
    metrics TEXT,
    error TEXT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT
);
CREATE INDEX evaluation_runs_in_order ON evaluation_runs (evaluation_id, id);
CREATE INDEX evaluation_runs_by_workspace ON evaluation_runs (workspace_id, id);
CREATE INDEX evaluation_runs_due ON evaluation_runs (created_at) WHERE state IN ('queued', 'running');

CREATE TABLE evaluation_results (
    run_id UUID NOT NULL REFERENCES evaluation_runs (id) ON DELETE CASCADE,
    case_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    question TEXT NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (run_id, case_id)
);

CREATE TABLE agent_versions (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    config TEXT NOT NULL,
    llm_key_sealed BYTEA,
    replaced_by UUID,
    replaced_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX agent_versions_in_order ON agent_versions (agent_id, version);

CREATE TABLE document_contents (
    document_id UUID NOT NULL PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
    content TEXT NOT NULL
);

CREATE TABLE loose_files (
    blob_key TEXT NOT NULL PRIMARY KEY,
    purge_at BIGINT NOT NULL
);
CREATE INDEX loose_files_due ON loose_files (purge_at);

INSERT INTO queue_head (id, fair_at) VALUES (1, 1);
