//! What claims, and questions about one job, cost PostgreSQL while many are queued.

use sqlx::{AssertSqlSafe, PgPool, Row};

use crate::{
    Db,
    documents::{self, browse},
    jobs,
    testing::{at, both, workspace},
    tests::fairness::queue,
};

/// As many jobs as no claim may go through.
const MANY: usize = 500;

/// Has a statement done, and fails if a step of it goes through the line instead of to one job by this index.
async fn assert_goes_to_a_job(pool: &PgPool, statement: &str, index: &str, values: &[&str]) {
    let asked = values
        .iter()
        .enumerate()
        .fold(statement.to_owned(), |asked, (place, value)| asked.replace(&format!("${}", place + 1), value));
    let explain = format!("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) {asked}");
    let steps = sqlx::query(AssertSqlSafe(explain)).fetch_all(pool).await.unwrap();
    let plan: Vec<String> = steps.iter().map(|step| step.get(0)).collect();
    let read = |step: &String| {
        let number = |name| step.split(name).nth(1)?.split([' ', ')', '.']).next()?.parse::<u64>().ok();
        Some(number("rows=")? * number("loops=")?)
    };
    assert!(plan.iter().filter_map(read).all(|rows| rows <= 1), "{plan:#?}");
    // Whoever goes through an index may show nothing of it but what was found.
    assert!(plan.iter().any(|step| step.contains(&format!("using {index} on jobs"))), "{plan:#?}");
}

#[tokio::test]
async fn nothing_goes_through_the_line_that_came_since_postgresql_counted() {
    const CLAIM: &str = "CAST('019a8f44-7d20-7b61-a0c5-2f8e6d914b37' AS UUID)";
    for t in &both().await {
        let Db::Postgres { pool, .. } = &t.db else { continue };
        let owner = workspace(&t.db, at(0)).await;
        queue(&t.db, owner, MANY, 0).await;
        // As it knows the table as a rule: all is done.
        for statement in ["UPDATE jobs SET state = 'done'", "ANALYZE jobs"] {
            sqlx::query(statement).execute(pool).await.unwrap();
        }
        let queued = queue(&t.db, owner, MANY, 0).await;
        let (later, of) = ("8000000000000000", format!("'{}'", owner.as_uuid()));
        let claims = format!("ARRAY[{CLAIM}]");
        let values: [&str; 5] = [later, &claims, later, "'worker'", "1"];
        assert_goes_to_a_job(pool, jobs::TAKE_UNDISPUTED, "jobs_pkey", &values).await;
        for take in jobs::TAKE {
            assert_goes_to_a_job(pool, take, "jobs_pkey", &[later, CLAIM, later, "'worker'", &of]).await;
        }
        let last = queued.last().map(|last| format!("'{}'", last.as_uuid())).unwrap();
        for (statement, third) in [(browse::JOBS_BEFORE, "1"), (browse::JOB_DUE_AT, "")] {
            assert_goes_to_a_job(pool, statement, "jobs_document_id_kind_key", &[&last, &of, third]).await;
        }
        let values = [last.as_str(), "'[]'"];
        assert_goes_to_a_job(pool, documents::SET_FROM_STORED, "jobs_document_id_kind_key", &values).await;
    }
}
