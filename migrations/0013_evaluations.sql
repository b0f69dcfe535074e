-- Sets of questions, each with what is to come of it.
CREATE TABLE evaluations (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL REFERENCES workspaces (id),
    created_by UUID,
    name TEXT NOT NULL,
    -- Who is asked, and whose documents are searched.
    agent_id UUID REFERENCES agents (id) ON DELETE SET NULL,
    collection_ids TEXT NOT NULL,
    -- The agent that says whether answers are right.
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
    -- How many cases there were, and how many of them are done.
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

-- What came of each case, as it was when it was done.
CREATE TABLE evaluation_results (
    run_id UUID NOT NULL REFERENCES evaluation_runs (id) ON DELETE CASCADE,
    case_id UUID NOT NULL,
    workspace_id UUID NOT NULL,
    question TEXT NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (run_id, case_id)
);

-- What agents were before they were changed.
CREATE TABLE agent_versions (
    id UUID NOT NULL PRIMARY KEY,
    workspace_id UUID NOT NULL,
    agent_id UUID NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    -- The last number that it had as it was.
    version BIGINT NOT NULL,
    config TEXT NOT NULL,
    llm_key_sealed BYTEA,
    -- Who changed it then, and when.
    replaced_by UUID,
    replaced_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX agent_versions_in_order ON agent_versions (agent_id, version);
