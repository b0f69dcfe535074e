//! What a page of documents costs.

use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use crate::{
    Db,
    documents::{self, files},
    testing::{at, both, workspace},
    tests::fairness::queue,
};

const PAGE: u64 = 50;

#[tokio::test]
async fn a_page_goes_past_nothing_of_others_that_is_newer() {
    // Their other values: where the page begins or ends, and how much is on it.
    let (least, most, page) = (format!("'{}'", Uuid::nil()), format!("'{}'", Uuid::max()), PAGE.to_string());
    let lists: [(&str, &[&String]); 3] = [
        (documents::LIST, &[&most, &page]),
        (files::NEWEST, &[&least, &most, &page]),
        (files::OLDEST, &[&least, &most, &page]),
    ];
    for t in &both().await {
        let Db::Postgres { pool, .. } = &t.db else {
            for (list, _) in lists {
                let plan = t.query_plan(list).await;
                let by_index = |step: &String| {
                    step.contains("documents_by_workspace (") && step.contains("(workspace_id,id)<(?,?)")
                };
                let is_sorted = plan.iter().any(|step| step.contains("TEMP B-TREE"));
                assert!(plan.iter().any(by_index) && !is_sorted, "{plan:#?}");
            }
            continue;
        };
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        queue(&t.db, owner, 100, 0).await;
        queue(&t.db, other, 2_000, 1).await;
        for table in ["documents", "jobs"] {
            sqlx::query(AssertSqlSafe(format!("ANALYZE {table}"))).execute(pool).await.unwrap();
        }
        for (list, values) in lists {
            let asked = list.replace("$1", &format!("'{}'", owner.as_uuid()));
            let asked = values
                .iter()
                .enumerate()
                .fold(asked, |asked, (place, value)| asked.replace(&format!("${}", place + 2), value));
            let explain = format!("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) {asked}");
            let steps = sqlx::query(AssertSqlSafe(explain)).fetch_all(pool).await.unwrap();
            let plan: Vec<String> = steps.iter().map(|step| step.get(0)).collect();
            let read = |step: &String| {
                let number = |name| step.split(name).nth(1)?.split([' ', ')']).next()?.parse::<u64>().ok();
                Some(number("rows=")? * number("loops=")?)
            };
            assert_eq!(plan.iter().filter_map(read).max(), Some(PAGE), "{plan:#?}");
        }
    }
}
