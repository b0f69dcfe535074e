//! What a page of documents costs.

use sqlx::{AssertSqlSafe, PgConnection, PgPool, Row};
use uuid::Uuid;

use crate::{
    Db, collections,
    documents::{self, DocumentDetails, LIST_POSTGRES, LIST_SQLITE, files},
    locks,
    testing::{TestDb, at, both, commit, made_in, workspace},
    tests::{collections::collection, fairness::queue},
};

const PAGE: u64 = 50;

/// Fails unless SQLite goes along an index, in the order of what is asked for.
async fn assert_in_order(t: &TestDb, statement: &str, index: &str, range: &str) {
    let plan = t.query_plan(statement).await;
    let by_index = |step: &String| step.contains(index) && step.contains(range);
    let is_sorted = plan.iter().any(|step| step.contains("TEMP B-TREE"));
    assert!(plan.iter().any(by_index) && !is_sorted, "{plan:#?}");
}

/// Fails unless PostgreSQL goes past no row that is not on the page.
async fn assert_reads_a_page(pool: &PgPool, statement: &str, values: &[&str]) {
    let asked = values
        .iter()
        .enumerate()
        .fold(statement.to_owned(), |asked, (place, value)| asked.replace(&format!("${}", place + 1), value));
    let explain = format!("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) {asked}");
    let steps = sqlx::query(AssertSqlSafe(explain)).fetch_all(pool).await.unwrap();
    let plan: Vec<String> = steps.iter().map(|step| step.get(0)).collect();
    let read = |step: &String| {
        let number = |name| step.split(name).nth(1)?.split([' ', ')']).next()?.parse::<u64>().ok();
        Some(number("rows=")? * number("loops=")?)
    };
    let passed_over = plan.iter().any(|step| step.contains("Rows Removed"));
    assert!(plan.iter().filter_map(read).max() == Some(PAGE) && !passed_over, "{plan:#?}");
}

/// Fails unless PostgreSQL goes on with one plan for a statement that this connection has been asked by often. It tries five times first
/// how a plan for the values does.
async fn assert_has_one_plan(connection: &mut PgConnection, statement: &str) {
    let made =
        sqlx::query_as("SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE statement = $1");
    let (tries, others): (i64, i64) = made.bind(statement).fetch_one(connection).await.unwrap();
    assert!(tries <= 5 && others > 0, "{tries} plans, and {others} times the same: {statement}");
}

async fn analyze(pool: &PgPool, tables: &[&str]) {
    for table in tables {
        sqlx::query(AssertSqlSafe(format!("ANALYZE {table}"))).execute(pool).await.unwrap();
    }
}

/// A value in a statement's text.
fn quoted(id: &Uuid) -> String {
    format!("'{id}'")
}

#[tokio::test]
async fn a_page_goes_past_nothing_of_others_that_is_newer() {
    // Their other values: where the page begins or ends, and how much is on it.
    let (least, most, page) = (quoted(&Uuid::nil()), quoted(&Uuid::max()), PAGE.to_string());
    for t in &both().await {
        let list = match t.db {
            Db::Postgres { .. } => LIST_POSTGRES,
            Db::Sqlite { .. } => LIST_SQLITE,
        };
        let lists = [
            (list, vec![&most, &page]),
            (files::NEWEST, vec![&least, &most, &page]),
            (files::OLDEST, vec![&least, &most, &page]),
        ];
        let Db::Postgres { pool, .. } = &t.db else {
            for (list, _) in &lists {
                assert_in_order(t, list, "documents_by_workspace (", "(workspace_id,id)<(?,?)").await;
            }
            continue;
        };
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        queue(&t.db, owner, 100, 0).await;
        queue(&t.db, other, 2_000, 1).await;
        analyze(pool, &["documents", "jobs"]).await;
        let owner = quoted(owner.as_uuid());
        for (list, others) in &lists {
            let mut values = vec![owner.as_str()];
            values.extend(others.iter().copied().map(String::as_str));
            assert_reads_a_page(pool, list, &values).await;
        }
    }
}

#[tokio::test]
async fn a_page_is_not_planned_anew_for_each_request() {
    for t in &both().await {
        let Db::Postgres { pool, .. } = &t.db else { continue };
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let mut sets = Vec::new();
        for (workspace, count) in [(owner, 100), (other, 2_000)] {
            let set = collection(&t.db, made_in(workspace), "set").await;
            let queued = queue(&t.db, workspace, count, 0).await;
            let mut tx = t.db.begin().await.unwrap();
            locks::lock_workspace(&mut tx, workspace).await.unwrap();
            collections::add_documents(&mut tx, workspace, set, &queued).await.unwrap();
            tx.commit().await.unwrap();
            sets.push(set);
        }
        analyze(pool, &["documents", "jobs", "collection_documents"]).await;
        let mut connection = pool.acquire().await.unwrap();
        for (workspace, set) in [owner, other].into_iter().zip(sets) {
            for _ in 0..6 {
                let all = sqlx::query(LIST_POSTGRES).bind(workspace).bind(Uuid::max()).bind(50_i64);
                assert_eq!(all.fetch_all(&mut *connection).await.unwrap().len(), 50);
                let set = sqlx::query(collections::LIST_POSTGRES).bind(workspace).bind(Uuid::max()).bind(set);
                assert_eq!(set.bind(50_i64).fetch_all(&mut *connection).await.unwrap().len(), 50);
            }
        }
        assert_has_one_plan(&mut connection, LIST_POSTGRES).await;
        assert_has_one_plan(&mut connection, collections::LIST_POSTGRES).await;
    }
}

#[tokio::test]
async fn a_page_of_a_collection_goes_past_nothing_that_is_not_in_it() {
    let (least, most, page) = (quoted(&Uuid::nil()), quoted(&Uuid::max()), PAGE.to_string());
    for t in &both().await {
        let Db::Postgres { pool, .. } = &t.db else {
            let lists = [collections::LIST_SQLITE, collections::files::NEWEST, collections::files::OLDEST];
            for list in lists {
                let range = "(collection_id,document_id)<(?,?)";
                assert_in_order(t, list, "sqlite_autoindex_collection_documents_1", range).await;
            }
            continue;
        };
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let mut sets = Vec::new();
        for (workspace, count) in [(owner, 100), (other, 2_000), (owner, 1_000)] {
            let set = collection(&t.db, made_in(workspace), "set").await;
            let queued = queue(&t.db, workspace, count, 0).await;
            let mut tx = t.db.begin().await.unwrap();
            locks::lock_workspace(&mut tx, workspace).await.unwrap();
            collections::add_documents(&mut tx, workspace, set, &queued).await.unwrap();
            tx.commit().await.unwrap();
            sets.push(set);
        }
        analyze(pool, &["documents", "jobs", "collection_documents"]).await;
        let (owner, set) = (quoted(owner.as_uuid()), quoted(sets[0].as_uuid()));
        let values: [&str; 4] = [&owner, &most, &set, &page];
        assert_reads_a_page(pool, collections::LIST_POSTGRES, &values).await;
        for list in [collections::files::NEWEST, collections::files::OLDEST] {
            let values: [&str; 8] = [&owner, &set, &least, &most, "NULL", "NULL", "NULL", &page];
            assert_reads_a_page(pool, list, &values).await;
        }
    }
}

#[tokio::test]
async fn a_page_says_in_which_collections_each_document_is() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let queued = queue(&t.db, owner, 3, 0).await;
        let first = collection(&t.db, made_in(owner), "first").await;
        let second = collection(&t.db, made_in(owner), "second").await;
        for (set, documents) in [(second, &queued[..1]), (first, &queued[..2])] {
            let mut tx = t.db.begin().await.unwrap();
            locks::lock_workspace(&mut tx, owner).await.unwrap();
            collections::add_documents(&mut tx, owner, set, documents).await.unwrap();
            tx.commit().await.unwrap();
        }
        let shown = |page: Vec<DocumentDetails>| -> Vec<_> {
            page.into_iter().map(|details| (details.document.id, details.collections)).collect()
        };
        let end = Uuid::max().into();
        let all = documents::list(&t.db, owner, end, 10).await.unwrap();
        let expected = [(queued[2], vec![]), (queued[1], vec![first]), (queued[0], vec![first, second])];
        assert_eq!(shown(all), expected, "{}: the oldest collections first", t.name);
        let in_first = collections::list_documents(&t.db, owner, first, end, 10).await.unwrap();
        assert_eq!(shown(in_first), expected[1..], "{}: others too", t.name);
        let other = workspace(&t.db, at(0)).await;
        for (id, collections) in &expected {
            let found = commit!(t.db, |tx| documents::find_collected(tx, owner, *id)).unwrap();
            assert_eq!((found.document.id, &found.collections), (*id, collections), "{}: read alone", t.name);
            let strangers = commit!(t.db, |tx| documents::find_collected(tx, other, *id));
            assert!(strangers.is_none(), "{}", t.name);
            let (whole, _) = documents::find_with_content(&t.db, owner, *id).await.unwrap().unwrap();
            assert_eq!((whole.document.id, &whole.collections), (*id, collections), "{}: read whole", t.name);
            let strangers = documents::find_with_content(&t.db, other, *id).await.unwrap();
            assert!(strangers.is_none(), "{}", t.name);
        }
    }
}
