//! Agents that are deleted, and what their runs have left.

use lectern_shared::ids::{AgentId, WorkspaceId};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{agent, remember, turns};
use crate::{
    Db, DbErrorKind, accounts, agents, execute, on,
    testing::{account_of, at, both, commit, run_in, workspace},
    tests::{leftovers::add_everything, traces as trace_tests},
    traces,
    workspaces::leftovers,
};

/// Every column that refers to agents, after its table's name.
async fn references(db: &Db) -> Vec<(String, String)> {
    let columns = match db {
        Db::Postgres { .. } => {
            "SELECT CAST(c.conrelid::regclass AS TEXT), CAST(a.attname AS TEXT) FROM pg_constraint c
             JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
             WHERE c.contype = 'f' AND c.confrelid = CAST('agents' AS regclass)"
        }
        Db::Sqlite { .. } => {
            "SELECT m.name, f.\"from\" FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f
             WHERE m.type = 'table' AND f.\"table\" = 'agents'"
        }
    };
    let mut columns: Vec<(String, String)> = on!(db, |c| sqlx::query_as(columns).fetch_all(c)).unwrap();
    columns.sort();
    columns
}

/// Those of all such columns that name an agent.
async fn columns_with(db: &Db, agent: AgentId) -> Vec<(String, String)> {
    let mut having = Vec::new();
    for (table, column) in references(db).await {
        let count: i64 = on!(db, |c| sqlx::query_scalar(AssertSqlSafe(format!(
            "SELECT COUNT(*) FROM {table} WHERE {column} = $1"
        )))
        .bind(agent)
        .fetch_one(c))
        .unwrap();
        if count > 0 {
            having.push((table, column));
        }
    }
    having
}

/// How many traces there are of an agent.
async fn traces_of(db: &Db, agent: AgentId) -> i64 {
    on!(db, |c| sqlx::query_scalar("SELECT COUNT(*) FROM traces WHERE agent_id = $1")
        .bind(agent)
        .fetch_one(c))
    .unwrap()
}

/// Whether an agent has a row, wherever it is.
async fn is_there(db: &Db, agent: AgentId) -> bool {
    let rows: i64 =
        on!(db, |c| sqlx::query_scalar("SELECT COUNT(*) FROM agents WHERE id = $1").bind(agent).fetch_one(c))
            .unwrap();
    rows == 1
}

/// Adds so many traces of an agent.
async fn asked(db: &Db, workspace: WorkspaceId, agent: AgentId, times: u32) {
    let mut tx = db.begin().await.unwrap();
    for _ in 0..times {
        let trace = trace_tests::kept(agent);
        traces::insert(&mut tx, run_in(workspace), &trace, None, at(100)).await.unwrap();
    }
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn nothing_that_hangs_on_a_deleted_agent_stays_but_what_its_runs_have_left() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        commit!(t.db, |tx| accounts::delete(tx, account_of(owner), at(1)));
        let mut tx = t.db.begin().await.unwrap();
        add_everything(&mut tx, owner).await;
        let referring = "UPDATE evaluations SET agent_id = (SELECT id FROM agents WHERE workspace_id = $1),
                                                judge_id = (SELECT id FROM agents WHERE workspace_id = $1)
                         WHERE workspace_id = $1";
        execute!(tx, sqlx::query(referring).bind(owner)).unwrap();
        tx.commit().await.unwrap();
        let agent: AgentId =
            on!(t.db, |c| sqlx::query_scalar("SELECT id FROM agents WHERE workspace_id = $1")
                .bind(owner)
                .fetch_one(c))
            .unwrap();
        assert_eq!(
            columns_with(&t.db, agent).await,
            references(&t.db).await,
            "{}: a new table has no row here, and perhaps nobody removes its rows",
            t.name
        );

        assert!(commit!(t.db, |tx| agents::delete(tx, owner, agent)), "{}", t.name);
        let left = ["agent_memory", "traces"].map(|table| (table.to_owned(), "agent_id".to_owned()));
        assert_eq!(columns_with(&t.db, agent).await, left, "{}", t.name);
        commit!(t.db, |tx| agents::forget(tx, agent));
        assert_eq!(columns_with(&t.db, agent).await, [], "{}", t.name);
        assert!(!is_there(&t.db, agent).await, "{}", t.name);
    }
}

#[tokio::test]
async fn what_many_runs_of_a_deleted_agent_have_left_goes_some_of_it_at_a_time() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (gone, kept) = (agent(&t.db, owner, at(0)).await, agent(&t.db, owner, at(0)).await);
        asked(&t.db, owner, gone, 450).await;
        asked(&t.db, owner, kept, 1).await;
        for _ in 0..3 {
            remember(&t.db, owner, gone, "s").await;
        }
        for agent in [gone, kept] {
            assert!(!commit!(t.db, |tx| agents::forget_some_runs(tx, agent)), "{}", t.name);
            commit!(t.db, |tx| agents::forget(tx, agent));
        }
        assert_eq!(traces_of(&t.db, gone).await, 450, "{}: it is not deleted", t.name);
        assert!(is_there(&t.db, gone).await, "{}", t.name);

        assert!(commit!(t.db, |tx| agents::delete(tx, owner, gone)), "{}", t.name);
        assert!(agents::find(&t.db, owner, gone).await.unwrap().is_none(), "{}: nobody finds it", t.name);
        assert!(agents::brief(&t.db, owner, gone, None).await.unwrap().is_none(), "{}: or asks it", t.name);
        for (more, traces) in [(true, 250), (true, 50), (false, 0), (false, 0)] {
            assert_eq!(commit!(t.db, |tx| agents::forget_some_runs(tx, gone)), more, "{}", t.name);
            assert_eq!(traces_of(&t.db, gone).await, traces, "{}", t.name);
        }
        assert_eq!(turns(&t.db, gone, "s").await, 0, "{}", t.name);
        commit!(t.db, |tx| agents::forget(tx, gone));
        assert!(!is_there(&t.db, gone).await, "{}", t.name);
        assert_eq!(traces_of(&t.db, kept).await, 1, "{}: another's stays", t.name);
    }
}

#[tokio::test]
async fn what_a_run_would_leave_of_an_agent_that_is_gone_is_told_from_a_failure() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (gone, kept) = (agent(&t.db, owner, at(0)).await, agent(&t.db, owner, at(0)).await);
        assert!(commit!(t.db, |tx| agents::delete(tx, owner, gone)), "{}", t.name);
        commit!(t.db, |tx| agents::forget(tx, gone));
        let late = trace_tests::kept(gone);
        let alone = traces::insert_relaxed(&t.db, run_in(owner), &late, None, at(100)).await.unwrap_err();
        let mut tx = t.db.begin_relaxed().await.unwrap();
        let with_more = traces::insert(&mut tx, run_in(owner), &late, None, at(100)).await.unwrap_err();
        drop(tx);
        for error in [alone, with_more] {
            assert!(error.is_orphan(), "{}: {error}", t.name);
            assert_eq!(error.kind(), DbErrorKind::Fault, "{}: {error}", t.name);
        }
        let twice = trace_tests::kept(kept);
        commit!(t.db, |tx| traces::insert(tx, run_in(owner), &twice, None, at(100)));
        let mut tx = t.db.begin().await.unwrap();
        let error = traces::insert(&mut tx, run_in(owner), &twice, None, at(100)).await.unwrap_err();
        assert!(!error.is_orphan(), "{}: {error}", t.name);
    }
}

#[tokio::test]
async fn what_a_killed_process_has_left_of_a_deleted_agent_goes_with_the_deleted_workspaces() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let beginning = WorkspaceId::from(Uuid::nil());
        for _ in 0..2 {
            let gone = agent(&t.db, owner, at(0)).await;
            asked(&t.db, owner, gone, 450).await;
            remember(&t.db, owner, gone, "s").await;
            assert!(commit!(t.db, |tx| agents::delete(tx, owner, gone)), "{}", t.name);
            let deleted = leftovers::deleted(&t.db, beginning, 9).await.unwrap();
            let [deleted] = deleted[..] else { panic!("{}: {deleted:?}", t.name) };
            while commit!(t.db, |tx| leftovers::purge_some_runs(tx, deleted)) {}
            assert_eq!((traces_of(&t.db, gone).await, turns(&t.db, gone, "s").await), (0, 0), "{}", t.name);
            assert!(
                !commit!(t.db, |tx| leftovers::purge(tx, deleted, at(9), at(9_999))),
                "{}: the workspace stays for the next one",
                t.name
            );
            assert!(!is_there(&t.db, gone).await, "{}", t.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn those_who_delete_the_same_traces_do_not_wait_for_each_other() {
    for t in both().await.iter().filter(|t| t.name == "PostgreSQL") {
        let owner = workspace(&t.db, at(0)).await;
        let gone = agent(&t.db, owner, at(0)).await;
        asked(&t.db, owner, gone, 250).await;
        assert!(commit!(t.db, |tx| agents::delete(tx, owner, gone)));
        let mut first = t.db.begin().await.unwrap();
        assert!(agents::forget_some_runs(&mut first, gone).await.unwrap());
        let mut second = t.db.begin().await.unwrap();
        assert!(!agents::forget_some_runs(&mut second, gone).await.unwrap(), "the rest of them");
        assert_eq!(
            traces::expire(&mut second, at(200), 1_000).await.unwrap(),
            0,
            "the first one's are left to it"
        );
        second.commit().await.unwrap();
        first.commit().await.unwrap();
        assert_eq!(traces_of(&t.db, gone).await, 0);
    }
}
