//! A store of the release before there were workspaces.

use lectern_shared::{
    ids::{
        AgentDocumentId, AgentId, AgentToolId, ApiTokenId, DocumentId, GenerationId, PromptId, TagId, ToolId,
        TraceId, UserId, WorkspaceId,
    },
    model::workspace::{Member, Role, RowOwner, RunOwner},
};
use uuid::Uuid;

use super::leftovers::{columns_with, sweep};
use crate::{
    Db, DbError, Tx, accounts, agents, api_tokens, cached_answers, chunks, documents, execute, idempotency,
    index_segments, memory, migrate, on, prompts, tags,
    testing::{at, both, both_empty, claim, commit, made_in, run_in},
    tools, traces,
    workspaces::{self, leftovers, members},
};

/// The last version of the schema in which a row belonged to an account.
const BEFORE: i64 = 4;
/// Every column of bytes has them.
const BYTES: &[u8] = b"\x00bytes";

/// An account of that release with one row in each table: the ids of all.
#[derive(Clone, Copy, Debug)]
struct EarlierAccount {
    account: Uuid,
    document: Uuid,
    generation: Uuid,
    agent: Uuid,
    /// The id of each row that has one of its own in a table by itself.
    row: Uuid,
}

impl EarlierAccount {
    fn workspace(&self) -> WorkspaceId {
        self.account.into()
    }
}

/// An account's row; `$1` is its id.
const ACTIVE_USER: &str = "INSERT INTO users (id, email, email_key, name, password_hash, is_admin, token_version, search_epoch, fair_at,
                                              created_at, updated_at)
     VALUES ($1, 'Ada@example.com', 'ada@example.com', 'Ada', 'hash', TRUE, 3, 7, 1, 1000000, 2000000)";
const DELETED_USER: &str = "INSERT INTO users (id, email, email_key, name, password_hash, is_admin, token_version, search_epoch, fair_at,
                                               created_at, updated_at, deleted_at)
     VALUES ($1, '', 'deleted', '', '', FALSE, 3, 7, 0, 1000000, 2000000, 3000000)";

/// What an account owned: `$1` is the account, and then come the ids that are named.
type EarlierRows = &'static [(&'static str, &'static [fn(&EarlierAccount) -> Uuid])];

const DOCUMENT: fn(&EarlierAccount) -> Uuid = |ids| ids.document;
const GENERATION: fn(&EarlierAccount) -> Uuid = |ids| ids.generation;
const AGENT: fn(&EarlierAccount) -> Uuid = |ids| ids.agent;
const ROW: fn(&EarlierAccount) -> Uuid = |ids| ids.row;

const ROWS: EarlierRows = &[
    (
        "INSERT INTO documents (id, user_id, type, name, description, url, revision, active_generation, languages, created_at,
                                updated_at, content, stored_bytes)
         VALUES ($2, $1, 'TXT', 'kept', '', '', 1, $3, '[]', 1000000, 1000000, 'text', 4)",
        &[DOCUMENT, GENERATION],
    ),
    (
        "INSERT INTO jobs (id, kind, user_id, document_id, state, attempts, max_attempts, run_at, fair_at, warnings, queued_at,
                           from_stored)
         VALUES ($2, 'ingest', $1, $3, 'queued', 0, 2, 1000000, 3, '[]', 1000000, FALSE)",
        &[ROW, DOCUMENT],
    ),
    (
        "INSERT INTO generations (id, user_id, document_id, claim_id, state, chunks, created_at, removals, stored_bytes)
         VALUES ($3, $1, $2, $4, 'active', 1, 1000000, 0, 4)",
        &[DOCUMENT, GENERATION, ROW],
    ),
    (
        "INSERT INTO prompts (id, user_id, name, template, input_variables, created_at, updated_at)
         VALUES ($2, $1, 'kept', 'template', '[]', 1000000, 1000000)",
        &[ROW],
    ),
    (
        "INSERT INTO agents (id, user_id, type, name, description, llm, has_memory, prompt_id, version, created_at, updated_at)
         VALUES ($2, $1, 'REACT', 'kept', '', '{\"model\":\"m\",\"provider\":\"p\"}', TRUE, $3, 5, 1000000, 1000000)",
        &[AGENT, ROW],
    ),
    (
        "INSERT INTO tags (id, user_id, name, color, created_at, updated_at) VALUES ($2, $1, 'kept', '#000000', 0, 0)",
        &[ROW],
    ),
    (
        "INSERT INTO tools (id, user_id, type, name, description, metadata, return_direct, created_at, updated_at)
         VALUES ($2, $1, 'SEARCH', 'kept', '', '{}', FALSE, 0, 0)",
        &[ROW],
    ),
    ("INSERT INTO agent_tags (agent_id, tag_id, user_id, position) VALUES ($2, $3, $1, 0)", &[AGENT, ROW]),
    (
        "INSERT INTO agent_tools (id, user_id, agent_id, tool_id, created_at) VALUES ($3, $1, $2, $3, 0)",
        &[AGENT, ROW],
    ),
    (
        "INSERT INTO agent_documents (id, user_id, agent_id, document_id, created_at) VALUES ($4, $1, $2, $3, 0)",
        &[AGENT, DOCUMENT, ROW],
    ),
    (
        "INSERT INTO agent_memory (id, user_id, agent_id, session, question, answer, tokens, created_at)
         VALUES ($3, $1, $2, 's', 'question', 'answer', 1, 0)",
        &[AGENT, ROW],
    ),
    (
        "INSERT INTO traces (id, user_id, agent_id, session, created_at, expires_at, complete, body)
         VALUES ($3, $1, $2, 's', 1000000, 1800000000000000, TRUE, '{}')",
        &[AGENT, ROW],
    ),
];

/// As [`ROWS`], with bytes at the end.
const ROWS_WITH_BYTES: EarlierRows = &[
    (
        "INSERT INTO api_tokens (id, user_id, description, token_hash, token_sealed, created_at)
         VALUES ($2, $1, 'kept', $3, $3, 1000000)",
        &[ROW],
    ),
    (
        "INSERT INTO chunks (generation_id, ordinal, user_id, document_id, chunk_id, text_hash, tokens, place, text)
         VALUES ($2, 0, $1, $3, $2, $4, 1, '{\"charStart\":0,\"charEnd\":4}', 'text')",
        &[GENERATION, DOCUMENT],
    ),
    (
        "INSERT INTO index_segments (generation_id, part, user_id, chunks, data) VALUES ($2, 0, $1, 1, $3)",
        &[GENERATION],
    ),
    ("INSERT INTO cached_answers (user_id, answer_key, trace_id, created_at) VALUES ($1, $3, $2, 1000000)", &[ROW]),
    (
        "INSERT INTO idempotency (user_id, request_key, answer_sealed, expires_at) VALUES ($1, 'key', $2, 1800000000000000)",
        &[],
    ),
    ("INSERT INTO known_addresses (user_id, address_hash, seen_at) VALUES ($1, $2, 1000000)", &[]),
];

async fn add(tx: &mut Tx, rows: EarlierRows, ids: &EarlierAccount, bytes: Option<&'static [u8]>) {
    for &(statement, named) in rows {
        let added = execute!(tx, {
            let mut query = sqlx::query(statement).bind(ids.account);
            for id in named {
                query = query.bind(id(ids));
            }
            if let Some(bytes) = bytes {
                query = query.bind(bytes);
            }
            query
        });
        assert_eq!(added.unwrap(), 1, "{statement}");
    }
}

/// An active account with rows everywhere, and a deleted one of which a document is left.
async fn fill(db: &Db) -> [EarlierAccount; 2] {
    let accounts = std::array::from_fn(|_| {
        let [account, document, generation, agent, row] = std::array::from_fn(|_| Uuid::now_v7());
        EarlierAccount { account, document, generation, agent, row }
    });
    let [active, deleted] = &accounts;
    let mut tx = db.begin().await.unwrap();
    add(&mut tx, &[(ACTIVE_USER, &[])], active, None).await;
    add(&mut tx, ROWS, active, None).await;
    add(&mut tx, ROWS_WITH_BYTES, active, Some(BYTES)).await;
    add(&mut tx, &[(DELETED_USER, &[])], deleted, None).await;
    add(&mut tx, &ROWS[..1], deleted, None).await;
    let tombstone = "UPDATE documents SET deleted_at = 3000000, active_generation = NULL WHERE id = $1";
    execute!(tx, sqlx::query(tombstone).bind(deleted.document)).unwrap();
    tx.commit().await.unwrap();
    accounts
}

/// What is to be found of an account, by the functions that answer requests.
async fn assert_everything_is_found(db: &Db, ids: &EarlierAccount, on: &str) {
    let workspace = ids.workspace();
    let made = made_in(workspace);
    let found = |owner: RowOwner| {
        assert_eq!((owner.workspace_id, owner.creator()), (made.workspace_id, made.creator()), "{on}");
    };
    let document = documents::find(db, workspace, ids.document.into()).await.unwrap().unwrap();
    found(document.owner);
    assert_eq!(document.name, "kept", "{on}");
    let content = documents::content::find(db, workspace, ids.document.into()).await.unwrap();
    assert_eq!(content.as_deref(), Some("text"), "{on}");
    let active = documents::active(db, workspace).await.unwrap();
    assert_eq!(active.iter().map(|one| one.id).collect::<Vec<_>>(), [DocumentId::from(ids.document)], "{on}");
    assert_eq!(documents::search_epoch(db, workspace).await.unwrap(), 7, "{on}");
    let generation = GenerationId::from(ids.generation);
    let passages = chunks::fetch(db, workspace, &[(generation, 0)]).await.unwrap();
    assert_eq!(passages.iter().map(|one| &*one.chunk.text).collect::<Vec<_>>(), ["text"], "{on}");
    let segments = index_segments::sizes(db, workspace, &[generation]).await.unwrap();
    assert_eq!(segments, [(generation, i64::try_from(BYTES.len()).unwrap())], "{on}");

    let agent = AgentId::from(ids.agent);
    let read = agents::find(db, workspace, agent).await.unwrap().unwrap();
    found(read.owner);
    assert_eq!((read.version, read.prompt_id), (5, Some(PromptId::from(ids.row))), "{on}");
    assert_eq!(*agents::links(db, workspace, agent).await.unwrap().documents, [ids.document.into()], "{on}");
    found(agents::find_link(db, workspace, AgentDocumentId::from(ids.row)).await.unwrap().unwrap().owner);
    found(prompts::find(db, workspace, ids.row.into()).await.unwrap().unwrap().owner);
    found(tags::find(db, workspace, TagId::from(ids.row)).await.unwrap().unwrap().owner);
    let tagged = tags::of_agents(db, workspace, &[agent]).await.unwrap();
    assert_eq!(tagged[&agent].len(), 1, "{on}");
    found(tools::find(db, workspace, ToolId::from(ids.row)).await.unwrap().unwrap().owner);
    assert_eq!(tools::of_agent(db, workspace, agent).await.unwrap().len(), 1, "{on}");
    found(tools::find_link(db, workspace, AgentToolId::from(ids.row)).await.unwrap().unwrap().owner);

    assert_eq!(memory::latest(db, run_in(workspace), agent, "s", 9).await.unwrap().len(), 1, "{on}");
    let trace = TraceId::from(ids.row);
    for of in [None, Some(run_in(workspace))] {
        assert!(traces::find(db, workspace, of, trace, at(0)).await.unwrap().is_some(), "{on}");
    }
    let stranger = Some(RunOwner { user: UserId::generate(), ..run_in(workspace) });
    assert!(traces::find(db, workspace, stranger, trace, at(0)).await.unwrap().is_none(), "{on}");
    let since = lectern_shared::clock::Timestamp::from_micros(0);
    let answer = cached_answers::find(db, workspace, BYTES, since, at(0)).await.unwrap();
    assert_eq!(answer, Some(trace), "{on}");
    let kept = idempotency::find(db, made.creator(), "key", at(0)).await.unwrap();
    assert_eq!(kept.as_deref(), Some(BYTES), "{on}");
}

/// Who may do what with it.
async fn assert_the_account_owns_its_workspace(db: &Db, ids: &EarlierAccount, on: &str) {
    let (account, workspace) = (UserId::from(ids.account), ids.workspace());
    let user = accounts::find_for_sign_in(db, "ada@example.com", BYTES).await.unwrap().unwrap();
    assert!(user.seen_there_at.is_some(), "{on}");
    let user = user.credentials;
    assert_eq!((user.user.id, user.password_hash.as_str()), (account, "hash"), "{on}");
    assert_eq!((user.user.is_admin, user.user.token_version), (true, 3), "{on}");
    let joined = workspaces::find_joined(db, account, workspace).await.unwrap().unwrap();
    assert_eq!((&*joined.workspace.name, joined.workspace.is_personal), ("Ada", true), "{on}");
    assert_eq!(joined.role, Role::Owner, "{on}");
    let members = members::list(db, workspace, "", Uuid::max().into(), 9).await.unwrap();
    let owner = Member {
        user_id: account,
        email: "Ada@example.com".to_owned(),
        name: "Ada".to_owned(),
        role: Role::Owner,
        joined_at: lectern_shared::clock::Timestamp::from_micros(1_000_000),
    };
    assert_eq!(members, [owner], "{on}");

    let grant = api_tokens::find_grant(db, BYTES, at(0)).await.unwrap().unwrap();
    assert_eq!((grant.user.id, grant.workspace_id), (account, workspace), "{on}");
    assert_eq!((grant.token_role, grant.maker_role), (None, Role::Owner), "{on}");
    assert_eq!((grant.agent_id, grant.expires_at, grant.rate_per_minute), (None, None, None), "{on}");
    assert!(grant.origins.is_none(), "{on}");
    let token = api_tokens::find(db, workspace, ApiTokenId::from(ids.row)).await.unwrap().unwrap();
    assert_eq!(token.owner.creator(), account, "{on}");
}

/// Whether rows that belong to nobody are refused.
async fn assert_rows_of_nobody_are_refused(db: &Db, account: Uuid, on: &str) {
    for statement in [
        "INSERT INTO documents (id, workspace_id, type, name, description, url, revision, created_at, updated_at)
         VALUES ($2, $2, 'TXT', '', '', '', 0, 0, 0)",
        "INSERT INTO tags (id, workspace_id, name, color, created_at, updated_at) VALUES ($2, $2, '', '', 0, 0)",
        "INSERT INTO collections (id, workspace_id, name, description, created_at, updated_at) VALUES ($2, $2, '', '', 0, 0)",
        "INSERT INTO members (workspace_id, user_id, role, joined_at) VALUES ($1, $2, 'owner', 0)",
        "INSERT INTO members (workspace_id, user_id, role, joined_at) VALUES ($2, $1, 'owner', 0)",
        "INSERT INTO known_addresses (user_id, address_hash, seen_at) SELECT $2, address_hash, 0 FROM known_addresses WHERE user_id = $1",
    ] {
        let mut tx = db.begin().await.unwrap();
        let nobody = WorkspaceId::generate();
        // Every statement names both.
        let orphan = execute!(
            tx,
            sqlx::query(statement).bind(account).bind(nobody)
        );
        assert!(matches!(orphan, Err(DbError::Failed(_))), "{on}: {statement}: {orphan:?}");
    }
}

#[tokio::test]
async fn what_an_account_had_is_in_the_workspace_with_its_id() {
    for t in &both_empty().await {
        migrate::run_to(&t.db, BEFORE).await.unwrap();
        let [active, deleted] = fill(&t.db).await;
        migrate::run(&t.db).await.unwrap();
        for _ in 0..2 {
            assert_everything_is_found(&t.db, &active, t.name).await;
            assert_the_account_owns_its_workspace(&t.db, &active, t.name).await;
            assert_rows_of_nobody_are_refused(&t.db, active.account, t.name).await;
            assert_eq!(
                leftovers::deleted(&t.db, Uuid::nil().into(), 9).await.unwrap(),
                [deleted.workspace()],
                "{}",
                t.name
            );
            // A second time nothing is changed.
            migrate::run(&t.db).await.unwrap();
        }
        let held = claim(&t.db, at(0)).await.unwrap();
        assert_eq!(
            (held.workspace_id, held.document_id),
            (active.workspace(), active.document.into()),
            "{}",
            t.name
        );
        assert!(commit!(t.db, |tx| workspaces::is_active(tx, active.workspace())), "{}", t.name);
    }
}

#[tokio::test]
async fn accounts_that_were_or_are_deleted_go_with_their_workspaces() {
    for t in &both_empty().await {
        migrate::run_to(&t.db, BEFORE).await.unwrap();
        let [active, deleted] = fill(&t.db).await;
        migrate::run(&t.db).await.unwrap();
        assert!(!commit!(t.db, |tx| workspaces::is_active(tx, deleted.workspace())), "{}", t.name);
        assert!(accounts::find(&t.db, deleted.account.into()).await.unwrap().is_none(), "{}", t.name);
        commit!(t.db, |tx| accounts::delete(tx, active.account.into(), at(1)));
        sweep(&t.db, at(2)).await;
        for ids in [active, deleted] {
            assert!(commit!(t.db, |tx| leftovers::purge(tx, ids.workspace(), at(2), at(9))), "{}", t.name);
            assert_eq!(columns_with(&t.db, ids.workspace()).await, [], "{}", t.name);
        }
        for table in ["SELECT COUNT(*) FROM users", "SELECT COUNT(*) FROM workspaces"] {
            let rows: i64 = on!(t.db, |c| sqlx::query_scalar(table).fetch_one(c)).unwrap();
            assert_eq!(rows, 0, "{}", t.name);
        }
    }
}

/// Every table's columns with their types, every index that has a name of ours with its columns, and every reference.
async fn schema(db: &Db) -> [Vec<String>; 3] {
    let questions = match db {
        Db::Postgres { .. } => [
            "SELECT CAST(concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default) AS TEXT)
             FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1",
            "SELECT CAST(indexdef AS TEXT) FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1",
            "SELECT CAST(concat_ws(' ', conrelid::regclass, a.attname, confrelid::regclass, confdeltype) AS TEXT)
             FROM pg_constraint JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = conkey[1]
             WHERE contype = 'f' ORDER BY 1",
        ],
        Db::Sqlite { .. } => [
            "SELECT m.name || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' ' || COALESCE(c.dflt_value, '')
             FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1",
            "SELECT m.name || ' ' || COALESCE(m.sql, '') FROM sqlite_master m WHERE m.type = 'index' ORDER BY 1",
            "SELECT m.name || ' ' || f.\"from\" || ' ' || f.\"table\" || ' ' || f.on_delete
             FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table' ORDER BY 1",
        ],
    };
    let mut answers: [Vec<String>; 3] = Default::default();
    for (answer, question) in answers.iter_mut().zip(questions) {
        *answer = on!(db, |c| sqlx::query_scalar(question).fetch_all(c)).unwrap();
    }
    answers
}

#[tokio::test]
async fn a_schema_that_was_upgraded_is_the_one_that_new_stores_have() {
    for (upgraded, fresh) in both_empty().await.iter().zip(&both().await) {
        migrate::run_to(&upgraded.db, BEFORE).await.unwrap();
        fill(&upgraded.db).await;
        migrate::run(&upgraded.db).await.unwrap();
        assert_eq!(schema(&upgraded.db).await, schema(&fresh.db).await, "{}", fresh.name);
    }
}

/// What the steps have written, what they are noted by, and on PostgreSQL the constraints with their names.
async fn notes(db: &Db) -> [Vec<String>; 3] {
    let heads: Vec<(i64, i64)> =
        on!(db, |c| sqlx::query_as("SELECT id, fair_at FROM queue_head").fetch_all(c)).unwrap();
    let history = "SELECT version, description, success, checksum FROM _sqlx_migrations ORDER BY version";
    let history: Vec<(i64, String, bool, Vec<u8>)> =
        on!(db, |c| sqlx::query_as(history).fetch_all(c)).unwrap();
    let constraints = match db {
        Db::Postgres { pool, .. } => sqlx::query_scalar(
            "SELECT CAST(concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS TEXT)
             FROM pg_constraint WHERE contype IN ('p', 'u', 'f') AND conrelid IN
                 (SELECT CAST(tablename AS regclass) FROM pg_tables WHERE schemaname = current_schema()) ORDER BY 1",
        )
        .fetch_all(pool)
        .await
        .unwrap(),
        Db::Sqlite { .. } => Vec::new(),
    };
    let heads = heads.iter().map(|head| format!("{head:?}")).collect();
    let history = history.iter().map(|step| format!("{step:?}")).collect();
    [heads, history, constraints]
}

#[tokio::test]
async fn a_new_store_gets_at_once_what_the_steps_make_one_after_the_other() {
    for (stepped, fresh) in both_empty().await.iter().zip(&both_empty().await) {
        migrate::run_to(&stepped.db, migrate::version()).await.unwrap();
        migrate::run(&fresh.db).await.unwrap();
        assert_eq!(schema(&stepped.db).await, schema(&fresh.db).await, "{}", fresh.name);
        assert_eq!(notes(&stepped.db).await, notes(&fresh.db).await, "{}", fresh.name);
    }
}

#[tokio::test]
async fn a_store_that_was_left_on_the_way_goes_on_from_there() {
    for (left, fresh) in both_empty().await.iter().zip(&both().await) {
        migrate::run_to(&left.db, 1).await.unwrap();
        migrate::run(&left.db).await.unwrap();
        assert_eq!(schema(&left.db).await, schema(&fresh.db).await, "{}", fresh.name);
        assert_eq!(notes(&left.db).await, notes(&fresh.db).await, "{}", fresh.name);
    }
}

/// The names of columns, of indexes that the migrations name, and what refers to what.
async fn names(db: &Db) -> [Vec<String>; 3] {
    let questions = match db {
        Db::Postgres { .. } => [
            "SELECT CAST(concat_ws(' ', table_name, column_name) AS TEXT) FROM information_schema.columns
             WHERE table_schema = current_schema()",
            "SELECT CAST(concat_ws(' ', tablename, indexname) AS TEXT) FROM pg_indexes
             WHERE schemaname = current_schema() AND indexname NOT IN (SELECT conname FROM pg_constraint)",
            "SELECT CAST(concat_ws(' ', conrelid::regclass, a.attname, confrelid::regclass) AS TEXT)
             FROM pg_constraint JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = conkey[1] WHERE contype = 'f'",
        ],
        Db::Sqlite { .. } => [
            "SELECT m.name || ' ' || c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'",
            "SELECT tbl_name || ' ' || name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
            "SELECT m.name || ' ' || f.\"from\" || ' ' || f.\"table\"
             FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table'",
        ],
    };
    let mut answers: [Vec<String>; 3] = Default::default();
    for (answer, question) in answers.iter_mut().zip(questions) {
        *answer = on!(db, |c| sqlx::query_scalar(question).fetch_all(c)).unwrap();
        answer.sort();
    }
    answers
}

#[tokio::test]
async fn both_databases_have_the_same_columns_indexes_and_references() {
    let [sqlite, postgres] = <[_; 2]>::try_from(both().await).ok().unwrap();
    let (sqlite, postgres) = (names(&sqlite.db).await, names(&postgres.db).await);
    assert_eq!(sqlite, postgres);
    let [_, _, references] = sqlite;
    for reference in
        ["documents workspace_id workspaces", "members user_id users", "user_identities user_id users"]
    {
        assert!(references.iter().any(|one| one == reference), "{reference}: {references:?}");
    }
}
