//! What PostgreSQL's planner knows.

use std::time::Duration;

use crate::{
    Db, statistics,
    testing::{at, both, document, workspace},
};

#[tokio::test]
async fn a_table_that_is_being_filled_is_looked_at_before_the_databases_own_upkeep_comes() {
    for t in &both().await {
        let Db::Postgres { pool, .. } = &t.db else {
            assert_eq!(statistics::keep_up(&t.db).await.unwrap(), 0, "{}: it has none", t.name);
            continue;
        };
        let owner = workspace(&t.db, at(0)).await;
        for number in 0..60 {
            document(&t.db, owner, &number.to_string(), at(0)).await;
        }
        let known = async || {
            let known: f32 =
                sqlx::query_scalar("SELECT reltuples FROM pg_class WHERE oid = 'documents'::regclass")
                    .fetch_one(pool)
                    .await
                    .unwrap();
            known
        };
        // The server counts a moment later.
        let looked_at = async {
            while known().await < 60.0 {
                statistics::keep_up(&t.db).await.unwrap();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), looked_at).await.expect("the table is looked at");
    }
}
