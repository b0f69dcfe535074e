//! What is left of deleted accounts and workspaces.

mod racing;

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, UserId, WorkspaceId},
    model::{job::JobKind, page::PageInfo},
};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{agents, traces as trace_tests};
use crate::{
    Db, Tx, accounts, chunks, documents, execute, generations, index_segments, jobs, known_addresses, on,
    pages,
    testing::{account_of, at, both, commit, plain, published, run_in, workspace},
    traces,
    workspaces::{self, leftovers},
};

/// Every column that says whose its table's rows are, after the table's name.
async fn owner_columns(db: &Db) -> Vec<(String, String)> {
    let columns = match db {
        Db::Postgres { .. } => {
            "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT) FROM information_schema.columns
             WHERE column_name IN ('user_id', 'workspace_id') AND table_schema = current_schema()"
        }
        Db::Sqlite { .. } => {
            "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c
             WHERE m.type = 'table' AND c.name IN ('user_id', 'workspace_id')"
        }
    };
    let mut columns: Vec<(String, String)> = on!(db, |c| sqlx::query_as(columns).fetch_all(c)).unwrap();
    columns.sort();
    columns
}

/// Those of all such columns that have a workspace's id, or that of the account whose own it is.
pub(super) async fn columns_with(db: &Db, workspace: WorkspaceId) -> Vec<(String, String)> {
    let mut having = Vec::new();
    for (table, column) in owner_columns(db).await {
        let count: i64 = on!(db, |c| sqlx::query_scalar(AssertSqlSafe(format!(
            "SELECT COUNT(*) FROM {table} WHERE {column} = $1"
        )))
        .bind(workspace)
        .fetch_one(c))
        .unwrap();
        if count > 0 {
            having.push((table, column));
        }
    }
    having
}

/// Adds a row to each table that points to a workspace or its account, as requests do that had begun before it was deleted.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) async fn add_everything(tx: &mut Tx, workspace: WorkspaceId) -> DocumentId {
    let [agent, thing, document] = std::array::from_fn(|_| Uuid::now_v7());
    for (statement, id) in [
        (
            "INSERT INTO webhooks (id, workspace_id, url, events, active, secret_sealed, created_at, updated_at)
             VALUES ($2, $1, '', '[]', TRUE, '', 0, 0)",
            thing,
        ),
        (
            "INSERT INTO sources (id, workspace_id, name, type, config, delete_limit, created_at, updated_at)
             VALUES ($2, $1, '', 'site', '{}', 20, 0, 0)",
            thing,
        ),
        (
            "INSERT INTO evaluations (id, workspace_id, name, collection_ids, created_at, updated_at) VALUES ($2, $1, '', '[]', 0, 0)",
            thing,
        ),
        (
            "INSERT INTO deletion_receipts (document_id, workspace_id, name, deleted_at, deleted_by, passages, index_entries, vectors,
                                            bytes, links, remaining)
             VALUES ($2, $1, '', 0, $1, 0, 0, 0, 0, 0, 0)",
            thing,
        ),
        (
            "INSERT INTO agents (id, workspace_id, type, name, description, llm, has_memory, version, created_at, updated_at)
             VALUES ($2, $1, 'REACT', '', '', '{}', TRUE, 1, 0, 0)",
            agent,
        ),
        (
            "INSERT INTO documents (id, workspace_id, type, name, description, url, revision, created_at, updated_at)
             VALUES ($2, $1, 'TXT', '', '', '', 0, 0, 0)",
            document,
        ),
        ("INSERT INTO tags (id, workspace_id, name, color, created_at, updated_at) VALUES ($2, $1, '', '', 0, 0)", thing),
        (
            "INSERT INTO prompts (id, workspace_id, name, template, input_variables, created_at, updated_at)
             VALUES ($2, $1, '', '', '[]', 0, 0)",
            thing,
        ),
        (
            "INSERT INTO tools (id, workspace_id, type, name, description, metadata, return_direct, created_at, updated_at)
             VALUES ($2, $1, 'SEARCH', '', '', '{}', FALSE, 0, 0)",
            thing,
        ),
        (
            "INSERT INTO collections (id, workspace_id, name, description, created_at, updated_at)
             VALUES ($2, $1, '', '', 0, 0)",
            thing,
        ),
        (
            "INSERT INTO audit_events (id, workspace_id, at, user_id, action, target_kind, target_id)
             VALUES ($2, $1, 0, $1, 'deleted', '', '')",
            thing,
        ),
    ] {
        execute!(tx, sqlx::query(statement).bind(workspace).bind(id)).unwrap();
    }
    for (statement, other) in [
        ("INSERT INTO agent_tags (agent_id, tag_id, workspace_id, position) VALUES ($2, $3, $1, 0)", thing),
        (
            "INSERT INTO agent_tools (id, workspace_id, agent_id, tool_id, created_at) VALUES ($3, $1, $2, $3, 0)",
            thing,
        ),
        (
            "INSERT INTO agent_documents (id, workspace_id, agent_id, document_id, created_at) VALUES ($3, $1, $2, $3, 0)",
            document,
        ),
        (
            "INSERT INTO agent_collections (id, workspace_id, agent_id, collection_id, created_at) VALUES ($3, $1, $2, $3, 0)",
            thing,
        ),
        (
            "INSERT INTO agent_memory (id, workspace_id, agent_id, session, question, answer, tokens, created_at)
             VALUES ($3, $1, $2, '', '', '', 0, 0)",
            thing,
        ),
        (
            "INSERT INTO traces (id, workspace_id, agent_id, created_at, expires_at, complete, body)
             VALUES ($3, $1, $2, 0, 0, TRUE, '{}')",
            thing,
        ),
        (
            "INSERT INTO webhook_deliveries (id, workspace_id, webhook_id, event, body, state, attempts, next_at, created_at)
             VALUES ($2, $1, $3, 'webhook.test', '{}', 'pending', 0, 0, 0)",
            thing,
        ),
        (
            "INSERT INTO source_runs (id, workspace_id, source_id, state, dry_run, is_full, attempts, added, changed, unchanged, gone,
                                      failed, bytes, created_at)
             VALUES ($2, $1, $3, 'queued', FALSE, FALSE, 0, 0, 0, 0, 0, 0, 0, 0)",
            thing,
        ),
        (
            "INSERT INTO source_run_items (id, run_id, item_key, workspace_id, outcome, document_id)
             VALUES ($2, $2, 'key', $1, 'added', $3)",
            document,
        ),
        (
            "INSERT INTO evaluation_cases (id, workspace_id, evaluation_id, question, expect, created_at, updated_at)
             VALUES ($2, $1, $3, '', '[]', 0, 0)",
            thing,
        ),
        (
            "INSERT INTO evaluation_runs (id, workspace_id, evaluation_id, state, config, attempts, cases, done, created_at)
             VALUES ($2, $1, $3, 'queued', '{}', 0, 0, 0, 0)",
            thing,
        ),
        (
            "INSERT INTO evaluation_results (run_id, case_id, workspace_id, question, result) VALUES ($2, $3, $1, '', '{}')",
            thing,
        ),
        (
            "INSERT INTO agent_versions (id, workspace_id, agent_id, version, config, replaced_at) VALUES ($3, $1, $2, 1, '{}', 0)",
            thing,
        ),
        (
            "INSERT INTO publications (id, workspace_id, agent_id, slug, access, title, greeting, questions, accent, origins,
                                       created_at, updated_at)
             VALUES ($3, $1, $2, 'slug', 'public', '', '', '[]', '', '[]', 0, 0)",
            thing,
        ),
    ] {
        execute!(tx, sqlx::query(statement).bind(workspace).bind(agent).bind(other)).unwrap();
    }
    for statement in [
        "INSERT INTO cached_answers (workspace_id, trace_id, answer_key, created_at) VALUES ($1, $2, $3, 0)",
        "INSERT INTO invitations (id, workspace_id, role, token_hash, created_by, created_at, expires_at)
         VALUES ($2, $1, 'asker', $3, $1, 0, 0)",
        "INSERT INTO api_tokens (id, workspace_id, description, token_hash, token_sealed, created_at)
         VALUES ($2, $1, '', $3, $3, 0)",
    ] {
        execute!(tx, sqlx::query(statement).bind(workspace).bind(thing).bind(&b"bytes"[..])).unwrap();
    }
    for statement in [
        "INSERT INTO idempotency (user_id, request_key, answer_sealed, expires_at) VALUES ($1, 'key', $2, 0)",
        "INSERT INTO known_addresses (user_id, address_hash, seen_at) VALUES ($1, $2, 0)",
    ] {
        execute!(tx, sqlx::query(statement).bind(workspace).bind(&b"bytes"[..])).unwrap();
    }
    let statement = "INSERT INTO source_items (source_id, item_key, document_id, workspace_id) VALUES ($2, 'key', $3, $1)";
    execute!(tx, sqlx::query(statement).bind(workspace).bind(thing).bind(document)).unwrap();
    let statement =
        "INSERT INTO collection_documents (collection_id, document_id, workspace_id) VALUES ($2, $3, $1)";
    execute!(tx, sqlx::query(statement).bind(workspace).bind(thing).bind(document)).unwrap();
    for statement in [
        "INSERT INTO members (workspace_id, user_id, role, joined_at) VALUES ($1, $1, 'owner', 0)",
        "INSERT INTO workspace_usage (workspace_id, month, tokens, cost_micros) VALUES ($1, 0, 1, 1)",
        "INSERT INTO user_identities (issuer, subject, user_id, created_at) VALUES ('', '', $1, 0)",
    ] {
        execute!(tx, sqlx::query(statement).bind(workspace)).unwrap();
    }
    document.into()
}

/// What the sweeper does with what was deleted.
pub(super) async fn sweep(db: &Db, now: Timestamp) {
    for generation in generations::purgeable(db, now, 100).await.unwrap() {
        commit!(db, |tx| index_segments::delete(tx, generation.retired));
        while commit!(db, |tx| chunks::purge_some(tx, generation.retired)) {}
        while commit!(db, |tx| pages::purge_some(tx, generation.retired)) {}
        commit!(db, |tx| generations::delete(tx, generation.retired));
    }
    for document in documents::tombstones(db, now, 100).await.unwrap() {
        commit!(db, |tx| documents::drop_tombstone(tx, document, at(9)));
    }
}

/// Whether a workspace has a row; its account has one as long.
async fn is_there(db: &Db, workspace: WorkspaceId) -> bool {
    let [workspaces, users] =
        ["SELECT COUNT(*) FROM workspaces WHERE id = $1", "SELECT COUNT(*) FROM users WHERE id = $1"].map(
            |count| async move {
                let rows: i64 = on!(db, |c| sqlx::query_scalar(count).bind(workspace).fetch_one(c)).unwrap();
                rows
            },
        );
    let rows = workspaces.await;
    assert_eq!(rows, users.await);
    rows == 1
}

#[tokio::test]
async fn what_is_added_to_a_deleted_account_does_not_stay_and_in_the_end_nothing_can_be_added() {
    for t in &both().await {
        let (gone, kept) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (_, generation) = published(&t.db, gone, "d", &["text"], at(1)).await;
        commit!(t.db, |tx| index_segments::insert(tx, gone, generation, 0, 1, b"segment"));
        let page = PageInfo { number: 1, width: 595.0, height: 842.0, chars: 4, words: Vec::new() };
        commit!(t.db, |tx| pages::insert(tx, gone, generation, &[page]));
        commit!(t.db, |tx| accounts::delete(tx, account_of(gone), at(2)));

        let mut tx = t.db.begin().await.unwrap();
        let raced = add_everything(&mut tx, gone).await;
        known_addresses::remember(&mut tx, account_of(kept), b"home", at(0), 20).await.unwrap();
        tx.commit().await.unwrap();
        let all = owner_columns(&t.db).await;
        let with_rows = columns_with(&t.db, gone).await;
        assert_eq!(
            with_rows, all,
            "{}: a new table has no row here, and perhaps nobody removes its rows",
            t.name
        );
        let before = columns_with(&t.db, kept).await;

        assert!(!commit!(t.db, |tx| leftovers::purge(tx, gone, at(3), at(9))), "{}: not all is gone", t.name);
        assert!(documents::find(&t.db, gone, raced).await.unwrap().is_none(), "{}", t.name);
        sweep(&t.db, at(3)).await;
        assert_eq!(columns_with(&t.db, gone).await, [], "{}", t.name);

        assert!(!commit!(t.db, |tx| leftovers::purge(tx, gone, at(4), at(2))), "{}: too early", t.name);
        assert!(is_there(&t.db, gone).await, "{}", t.name);
        assert!(commit!(t.db, |tx| leftovers::purge(tx, gone, at(4), at(3))), "{}", t.name);
        assert!(!is_there(&t.db, gone).await, "{}", t.name);
        let mut tx = t.db.begin().await.unwrap();
        let late = execute!(
            tx,
            sqlx::query("INSERT INTO known_addresses (user_id, address_hash, seen_at) VALUES ($1, $2, 0)")
                .bind(gone)
                .bind(b"late".as_slice())
        );
        assert!(late.is_err(), "{}: what points to an account that is gone is refused", t.name);
        drop(tx);

        assert!(!commit!(t.db, |tx| leftovers::purge(tx, kept, at(4), at(9))), "{}", t.name);
        assert_eq!(columns_with(&t.db, kept).await, before, "{}: another's stays", t.name);
    }
}

#[tokio::test]
async fn an_account_that_was_closed_and_not_deleted_opens_nothing_and_is_deleted_later() {
    for t in &both().await {
        let (gone, kept) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let email = accounts::find(&t.db, account_of(gone)).await.unwrap().unwrap().email;
        let (document, _) = published(&t.db, gone, "d", &["text"], at(1)).await;
        commit!(t.db, |tx| accounts::close(tx, account_of(gone), at(2)));
        assert!(accounts::find(&t.db, account_of(gone)).await.unwrap().is_none(), "{}", t.name);
        assert!(!commit!(t.db, |tx| workspaces::is_active(tx, gone)), "{}", t.name);
        assert!(accounts::find(&t.db, account_of(kept)).await.unwrap().is_some(), "{}", t.name);

        assert!(
            !commit!(t.db, |tx| leftovers::purge(tx, gone, at(3), at(9))),
            "{}: documents are left",
            t.name
        );
        assert!(documents::find(&t.db, gone, document).await.unwrap().is_none(), "{}", t.name);
        sweep(&t.db, at(3)).await;
        let again = accounts::NewUser {
            id: UserId::generate(),
            email: &email,
            email_key: &email,
            name: "somebody else",
            password_hash: "hash",
            is_admin: false,
        };
        commit!(t.db, |tx| accounts::insert(tx, &again, at(4)));
        assert!(commit!(t.db, |tx| leftovers::purge(tx, gone, at(4), at(9))), "{}", t.name);
        assert!(!is_there(&t.db, gone).await, "{}", t.name);
    }
}

#[tokio::test]
async fn a_closed_account_with_many_documents_goes_some_of_them_at_a_time() {
    const DOCUMENTS: usize = 450;
    for t in &both().await {
        let (gone, kept) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (searchable, _) = published(&t.db, gone, "searchable", &["text"], at(1)).await;
        published(&t.db, kept, "kept", &["text"], at(1)).await;
        let before = columns_with(&t.db, kept).await;
        let mut tx = t.db.begin().await.unwrap();
        for _ in 1..DOCUMENTS {
            let document = plain(gone, "one");
            documents::insert(&mut tx, &document, at(1)).await.unwrap();
            jobs::enqueue(&mut tx, gone, document.id, JobKind::Ingest, 1, at(1)).await.unwrap();
        }
        tx.commit().await.unwrap();
        commit!(t.db, |tx| accounts::close(tx, account_of(gone), at(2)));

        let living = async || {
            let found: (i64, i64, i64) = on!(t.db, |c| sqlx::query_as(
                "SELECT (SELECT COUNT(*) FROM documents WHERE workspace_id = $1 AND deleted_at IS NULL),
                        (SELECT COUNT(*) FROM jobs WHERE workspace_id = $1 AND state <> 'cancelled'),
                        (SELECT COUNT(*) FROM document_contents
                         WHERE document_id IN (SELECT id FROM documents WHERE workspace_id = $1))"
            )
            .bind(gone)
            .fetch_one(c))
            .unwrap();
            found
        };
        for left in [250, 50, 0] {
            assert!(!commit!(t.db, |tx| leftovers::purge(tx, gone, at(3), at(9))), "{}", t.name);
            assert_eq!(living().await, (left, left, left), "{}", t.name);
        }
        assert!(documents::find(&t.db, gone, searchable).await.unwrap().is_none(), "{}", t.name);
        assert!(documents::active(&t.db, gone).await.unwrap().is_empty(), "{}", t.name);
        while !documents::tombstones(&t.db, at(3), 1).await.unwrap().is_empty()
            || !generations::purgeable(&t.db, at(3), 1).await.unwrap().is_empty()
        {
            sweep(&t.db, at(3)).await;
        }
        assert!(commit!(t.db, |tx| leftovers::purge(tx, gone, at(4), at(9))), "{}", t.name);
        assert!(!is_there(&t.db, gone).await, "{}", t.name);
        assert_eq!(columns_with(&t.db, kept).await, before, "{}: another's stays", t.name);
    }
}

#[tokio::test]
async fn a_workspace_whose_agents_were_asked_often_goes_some_of_it_at_a_time() {
    const RUNS: i64 = 1_200;
    for t in &both().await {
        for is_closed in [false, true] {
            let gone = workspace(&t.db, at(0)).await;
            let agent = agents::agent(&t.db, gone, at(0)).await;
            let mut tx = t.db.begin().await.unwrap();
            for _ in 0..RUNS {
                let trace = trace_tests::kept(agent);
                traces::insert(&mut tx, run_in(gone), &trace, None, at(100)).await.unwrap();
            }
            tx.commit().await.unwrap();
            // Traces, and what lets somebody in.
            let left = async || {
                let counts: (i64, i64) = on!(t.db, |c| sqlx::query_as(
                    "SELECT (SELECT COUNT(*) FROM traces WHERE workspace_id = $1),
                            (SELECT COUNT(*) FROM members WHERE workspace_id = $1)"
                )
                .bind(gone)
                .fetch_one(c))
                .unwrap();
                counts
            };
            assert!(!commit!(t.db, |tx| leftovers::purge_some_runs(tx, gone)), "{}", t.name);
            assert_eq!(left().await, (RUNS, 1), "{}: it is not deleted", t.name);
            // Where the process comes no further than closing it, the sweeper does all of the rest.
            if is_closed {
                commit!(t.db, |tx| accounts::close(tx, account_of(gone), at(2)));
                assert!(!commit!(t.db, |tx| leftovers::purge(tx, gone, at(3), at(9))), "{}", t.name);
            } else {
                commit!(t.db, |tx| accounts::delete(tx, account_of(gone), at(2)));
            }
            let (traces, members) = left().await;
            assert!((1..RUNS).contains(&traces) && members == 0, "{}: {traces}, {members}", t.name);
            while commit!(t.db, |tx| leftovers::purge_some_runs(tx, gone)) {}
            assert_eq!(left().await, (0, 0), "{}", t.name);
            assert!(commit!(t.db, |tx| leftovers::purge(tx, gone, at(3), at(9))), "{}", t.name);
            assert!(!is_there(&t.db, gone).await, "{}", t.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_account_is_closed_while_something_is_being_added_to_it() {
    for t in both().await.iter().filter(|t| t.name == "PostgreSQL") {
        let gone = workspace(&t.db, at(0)).await;
        let mut adding = t.db.begin().await.unwrap();
        known_addresses::remember(&mut adding, account_of(gone), b"home", at(1), 20).await.unwrap();
        // It does not wait, or a stream of additions would keep it waiting for ever.
        commit!(t.db, |tx| accounts::close(tx, account_of(gone), at(1)));
        assert!(!workspaces::is_active(&mut adding, gone).await.unwrap(), "and those who are adding notice");
    }
}

#[tokio::test]
async fn deleted_accounts_are_listed_page_by_page_and_no_others() {
    for t in &both().await {
        let mut gone = Vec::new();
        for _ in 0..3 {
            let id = workspace(&t.db, at(0)).await;
            workspace(&t.db, at(0)).await;
            commit!(t.db, |tx| accounts::delete(tx, account_of(id), at(1)));
            gone.push(id);
        }
        let beginning = WorkspaceId::from(Uuid::nil());
        assert_eq!(leftovers::deleted(&t.db, beginning, 2).await.unwrap(), gone[..2], "{}", t.name);
        assert_eq!(leftovers::deleted(&t.db, gone[1], 2).await.unwrap(), gone[2..], "{}", t.name);
    }
}
