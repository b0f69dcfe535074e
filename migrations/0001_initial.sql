-- One set of statements for PostgreSQL and SQLite. Ids are UUIDv7 and times are microseconds since 1970; both are made
-- by the service, never by the database. JSON is TEXT. BIGINT for every integer.

CREATE TABLE singletons (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    owner UUID NOT NULL,
    held_until BIGINT NOT NULL
);

-- email_key is the e-mail folded by the service; a deleted account's is replaced, so that the address can sign up again.
CREATE TABLE users (
    id UUID NOT NULL PRIMARY KEY,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    is_admin BOOLEAN NOT NULL,
    token_version BIGINT NOT NULL,
    search_epoch BIGINT NOT NULL,
    fair_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);

CREATE TABLE api_tokens (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id),
    description TEXT NOT NULL,
    token_hash BYTEA NOT NULL UNIQUE,
    token_sealed BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT
);
CREATE INDEX api_tokens_by_user ON api_tokens (user_id, id);

-- A tombstoned document (deleted_at set) stays until the last of its generations is purged; no query shows it. An upload
-- begins as one whose deleted_at is still to come, so that what is left of it is purged unless it is completed.
CREATE TABLE documents (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id),
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
    content TEXT
);
CREATE INDEX documents_by_user ON documents (user_id, id) WHERE deleted_at IS NULL;
CREATE INDEX documents_deleted ON documents (deleted_at) WHERE deleted_at IS NOT NULL;

-- No foreign keys below a document: rows of an abandoned generation outlive the document until they are purged.
CREATE TABLE generations (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL,
    document_id UUID NOT NULL,
    claim_id UUID NOT NULL,
    state TEXT NOT NULL,
    embedding_space UUID,
    chunks BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    purge_at BIGINT,
    removals BIGINT NOT NULL
);
CREATE INDEX generations_by_document ON generations (document_id);
CREATE INDEX generations_to_purge ON generations (purge_at) WHERE purge_at IS NOT NULL;
CREATE INDEX generations_staging ON generations (created_at) WHERE state = 'staging';
CREATE INDEX generations_without_vectors ON generations (created_at) WHERE state = 'active' AND embedding_space IS NULL;

CREATE TABLE chunks (
    generation_id UUID NOT NULL,
    ordinal BIGINT NOT NULL,
    user_id UUID NOT NULL,
    document_id UUID NOT NULL,
    chunk_id UUID NOT NULL,
    text_hash BYTEA NOT NULL,
    tokens BIGINT NOT NULL,
    place TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (generation_id, ordinal)
);

-- The embedded search index: immutable blobs, a few per generation.
CREATE TABLE index_segments (
    generation_id UUID NOT NULL,
    part BIGINT NOT NULL,
    user_id UUID NOT NULL,
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

-- What was embedded of a document, by the hash of the text that was given to the model. generation_id is the last
-- generation that used the vector.
CREATE TABLE vectors (
    space_id UUID NOT NULL,
    document_id UUID NOT NULL,
    text_hash BYTEA NOT NULL,
    generation_id UUID NOT NULL,
    vector BYTEA NOT NULL,
    PRIMARY KEY (space_id, document_id, text_hash)
);
CREATE INDEX vectors_by_document ON vectors (document_id);

-- One row a document and kind of work, queued again by upsert.
CREATE TABLE jobs (
    id UUID NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    user_id UUID NOT NULL,
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
    UNIQUE (document_id, kind)
);
CREATE INDEX jobs_queued ON jobs (fair_at, id) WHERE state = 'queued';
CREATE INDEX jobs_running ON jobs (lease_until) WHERE state = 'running';
CREATE INDEX jobs_dead ON jobs (finished_at, id) WHERE state = 'dead';
CREATE INDEX jobs_cancelled ON jobs (finished_at, id) WHERE state = 'cancelled';
CREATE INDEX jobs_by_user ON jobs (user_id, id);

CREATE TABLE prompts (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    template TEXT NOT NULL,
    input_variables TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX prompts_by_user ON prompts (user_id, id);

CREATE TABLE tags (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    color TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX tags_by_user ON tags (user_id, id);

CREATE TABLE agents (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id),
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    llm TEXT NOT NULL,
    llm_key_sealed BYTEA,
    has_memory BOOLEAN NOT NULL,
    prompt_id UUID REFERENCES prompts (id) ON DELETE SET NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX agents_by_user ON agents (user_id, id);
CREATE INDEX agents_by_prompt ON agents (prompt_id);

CREATE TABLE agent_tags (
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    tag_id UUID NOT NULL REFERENCES tags (id) ON DELETE CASCADE,
    user_id UUID NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (agent_id, tag_id)
);
CREATE INDEX agent_tags_by_tag ON agent_tags (tag_id);

CREATE TABLE agent_documents (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id),
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    document_id UUID NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    UNIQUE (agent_id, document_id)
);
CREATE INDEX agent_documents_by_user ON agent_documents (user_id, id);
CREATE INDEX agent_documents_by_document ON agent_documents (document_id);

-- calls_agent is the agent of an AGENT tool; it may be gone, which a call says.
CREATE TABLE tools (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id),
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    metadata TEXT NOT NULL,
    metadata_sealed BYTEA,
    calls_agent UUID,
    return_direct BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX tools_by_user ON tools (user_id, id);

CREATE TABLE agent_tools (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id),
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    tool_id UUID NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    UNIQUE (agent_id, tool_id)
);
CREATE INDEX agent_tools_by_user ON agent_tools (user_id, id);
CREATE INDEX agent_tools_by_tool ON agent_tools (tool_id);

CREATE TABLE agent_memory (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id),
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    session TEXT NOT NULL,
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    tokens BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX agent_memory_by_session ON agent_memory (agent_id, session, id);

CREATE TABLE traces (
    id UUID NOT NULL PRIMARY KEY,
    user_id UUID NOT NULL REFERENCES users (id),
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    session TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    complete BOOLEAN NOT NULL,
    body TEXT NOT NULL,
    record TEXT
);
CREATE INDEX traces_by_user ON traces (user_id, id);
CREATE INDEX traces_by_agent ON traces (agent_id, id);
CREATE INDEX traces_expiring ON traces (expires_at);

-- Answers that callers let be given again: the trace of the run that is repeated. The key is a hash of all that it was made from.
CREATE TABLE cached_answers (
    user_id UUID NOT NULL REFERENCES users (id),
    answer_key BYTEA NOT NULL,
    trace_id UUID NOT NULL REFERENCES traces (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, answer_key)
);
CREATE INDEX cached_answers_by_trace ON cached_answers (trace_id);

-- What was asked is sealed with the answer: the hash of a request that holds a password tells the password.
CREATE TABLE idempotency (
    user_id UUID NOT NULL REFERENCES users (id),
    request_key TEXT NOT NULL,
    answer_sealed BYTEA NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, request_key)
);
CREATE INDEX idempotency_expiring ON idempotency (expires_at);
