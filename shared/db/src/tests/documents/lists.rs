//! What a page of documents costs.

use sqlx::{AssertSqlSafe, Row};

use crate::{
    Db, documents,
    testing::{at, both, workspace},
    tests::fairness::queue,
};

#[tokio::test]
async fn a_page_goes_past_nothing_of_others_that_is_newer() {
    const PAGE: u64 = 50;
    for t in &both().await {
        let Db::Postgres { pool, .. } = &t.db else {
            let plan = t.query_plan(documents::LIST).await;
            let by_index = |step: &String| {
                step.contains("documents_by_workspace (workspace_id>? AND (workspace_id,id)<(?,?))")
            };
            assert!(
                plan.iter().any(by_index) && !plan.iter().any(|step| step.contains("TEMP B-TREE")),
                "{plan:#?}"
            );
            continue;
        };
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        queue(&t.db, owner, 100, 0).await;
        queue(&t.db, other, 2_000, 1).await;
        for table in ["documents", "jobs"] {
            sqlx::query(AssertSqlSafe(format!("ANALYZE {table}"))).execute(pool).await.unwrap();
        }
        let page = documents::LIST
            .replace("$1", &format!("'{}'", owner.as_uuid()))
            .replace("$2", &format!("'{}'", uuid::Uuid::max()))
            .replace("$3", &PAGE.to_string());
        let explain = format!("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) {page}");
        let steps = sqlx::query(AssertSqlSafe(explain)).fetch_all(pool).await.unwrap();
        let plan: Vec<String> = steps.iter().map(|step| step.get(0)).collect();
        let read = |step: &String| {
            let number = |name| step.split(name).nth(1)?.split([' ', ')']).next()?.parse::<u64>().ok();
            Some(number("rows=")? * number("loops=")?)
        };
        let most = plan.iter().filter_map(read).max();
        assert_eq!(most, Some(PAGE), "{plan:#?}");
    }
}
