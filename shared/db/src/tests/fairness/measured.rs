//! How many claims a second the database gives. What the slots of a worker get of them is measured where they ask, in the crate of the queue.

use std::time::Instant;

use lectern_shared::ids::ClaimId;

use super::queue;
use crate::{
    Tx, execute, jobs, on,
    testing::{LEASE, TestDb, at, both, claim, workspace},
};

/// How jobs are taken.
#[derive(Clone, Copy)]
enum ClaimWay {
    /// One in a transaction, as before places counted documents.
    Former,
    /// So many in a transaction.
    InTurn(u32),
}

/// Claims as they were before places counted documents.
async fn former_claim(tx: &mut Tx) -> bool {
    let lock = if matches!(tx, Tx::Postgres(_)) { "FOR UPDATE SKIP LOCKED" } else { "" };
    let statement = format!(
        "UPDATE jobs SET state = 'running', claim_id = $2, lease_until = $3, worker = 'worker', attempts = attempts + 1,
                claimed_revision = COALESCE(
                    (SELECT revision FROM documents WHERE documents.id = jobs.document_id), 0),
                started_at = $1, finished_at = NULL, stage = NULL, progress = NULL
         WHERE id = (SELECT id FROM jobs WHERE state = 'queued' AND run_at <= $1 ORDER BY fair_at, id LIMIT 1 {lock})
           AND state = 'queued' AND run_at <= $1 RETURNING id"
    );
    let taken: Option<uuid::Uuid> = on!(tx, |c| sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
        .bind(at(1))
        .bind(ClaimId::generate())
        .bind(at(1).plus(LEASE))
        .fetch_optional(c))
    .unwrap();
    taken.is_some()
}

/// Takes jobs in one transaction; how many.
async fn take(tx: &mut Tx, way: ClaimWay) -> u32 {
    match way {
        ClaimWay::Former => u32::from(former_claim(tx).await),
        ClaimWay::InTurn(most) => {
            let most = usize::try_from(most).unwrap();
            let taken = jobs::claim(tx, "worker", at(1), at(1).plus(LEASE), most).await.unwrap();
            u32::try_from(taken.claims.len()).unwrap()
        }
    }
}

async fn claims_a_second(t: &TestDb, way: ClaimWay) -> f64 {
    const CLAIMS: u32 = 2_000;
    let mut taken = 0;
    let began = Instant::now();
    while taken < CLAIMS {
        assert!(jobs::due(&t.db, at(1)).await.unwrap().any());
        let mut tx = t.db.begin_relaxed().await.unwrap();
        let more = take(&mut tx, way).await;
        assert!(more > 0, "{}", t.name);
        taken += more;
        // Three slots go on.
        execute!(
            tx,
            sqlx::query(
                "UPDATE jobs SET state = 'done' WHERE state = 'running' AND id NOT IN (
                     SELECT id FROM jobs WHERE state = 'running' ORDER BY lease_until DESC, id DESC LIMIT 3)"
            )
        )
        .unwrap();
        tx.commit().await.unwrap();
    }
    f64::from(taken) / began.elapsed().as_secs_f64()
}

/// Claims while one of two workspaces has all slots but one, and everything that this workspace has queued is before what the other has.
async fn claims_a_second_past_a_backlog(t: &TestDb) -> f64 {
    const CLAIMS: u32 = 500;
    let (slow, quick) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
    queue(&t.db, slow, 20_000, 0).await;
    for _ in 0..3 {
        claim(&t.db, at(1)).await.unwrap();
    }
    let mut tx = t.db.begin().await.unwrap();
    execute!(tx, sqlx::query("UPDATE queue_head SET fair_at = 30000")).unwrap();
    tx.commit().await.unwrap();
    queue(&t.db, quick, 20_000, 0).await;
    let began = Instant::now();
    for _ in 0..CLAIMS {
        let mut tx = t.db.begin_relaxed().await.unwrap();
        let next = jobs::claim(&mut tx, "worker", at(1), at(1).plus(LEASE), 1).await.unwrap();
        let next = next.claims.first().unwrap();
        assert_eq!(next.workspace_id, quick, "{}", t.name);
        execute!(tx, sqlx::query("UPDATE jobs SET state = 'done' WHERE id = $1").bind(next.id)).unwrap();
        tx.commit().await.unwrap();
    }
    f64::from(CLAIMS) / began.elapsed().as_secs_f64()
}

#[tokio::test]
#[ignore = "a measurement: it prints"]
async fn claims_with_twenty_thousand_queued_are_measured() {
    for workspaces in [1, 10] {
        for t in &both().await {
            for _ in 0..workspaces {
                let owner = workspace(&t.db, at(0)).await;
                queue(&t.db, owner, 20_000 / workspaces, 0).await;
            }
            for round in 0..2 {
                let former = claims_a_second(t, ClaimWay::Former).await;
                let one = claims_a_second(t, ClaimWay::InTurn(1)).await;
                let eight = claims_a_second(t, ClaimWay::InTurn(8)).await;
                println!(
                    "{} {workspaces} workspaces, round {round}: before {former:.0}/s, now one by one {one:.0}/s, eight together {eight:.0}/s",
                    t.name
                );
            }
        }
    }
    for t in &both().await {
        let past = claims_a_second_past_a_backlog(t).await;
        println!("{} past the backlog of a workspace who is passed over: {past:.0}/s", t.name);
    }
}
