//! Servers that go away under load.

use std::time::Duration;

use super::{assert_all_searchable, post_steadily, wait_until_idle, wait_until_tidy};
use crate::support::{
    client::Client,
    db::PostgresServer,
    redis::RedisServer,
    service::{Mode, Service},
};

/// The most warnings that one process may write in a minute of an outage: about one a retry.
const WARNINGS_A_MINUTE: usize = 60;

fn warnings(logs: &str) -> usize {
    logs.lines().filter(|line| line.contains(r#""level":"WARN""#)).count()
}

/// Runs `trouble` while documents are posted, and returns what was posted.
pub(super) async fn under_load(
    client: &Client,
    trouble: impl AsyncFnOnce(),
) -> (super::Accepted, Vec<String>) {
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let poster = tokio::spawn(post_steadily(client.clone(), Duration::from_millis(40), stopped));
    tokio::time::sleep(Duration::from_secs(2)).await;
    trouble().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stop.send_replace(true);
    poster.await.expect("the poster does not panic")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh"]
async fn redis_may_be_emptied_frozen_and_away() {
    let mut redis = RedisServer::start().await;
    let service = Service::in_mode(Mode::Cluster).redis_url(&redis.url()).workers(2).start().await;
    let client = service.signed_up("ada@example.com").await;
    let (accepted, errors) = under_load(&client, async || {
        for _ in 0..5 {
            redis.flush().await;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        for _ in 0..3 {
            redis.pause(Duration::from_secs(1)).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        redis.stop().await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        redis.start_again().await;
        tokio::time::sleep(Duration::from_secs(6)).await;
    })
    .await;
    // Redis is never needed.
    assert_eq!(errors, Vec::<String>::new());
    wait_until_idle(&client).await;
    assert_all_searchable(&client, &accepted).await;
    eprintln!("Redis: {} documents accepted, none refused", accepted.len());
    for worker in 0..service.worker_count() {
        let logs = service.worker_logs(worker);
        eprintln!("worker {worker}: {} warnings", warnings(&logs));
        assert!(warnings(&logs) < 2 * WARNINGS_A_MINUTE, "{logs}");
        assert!(logs.contains("Redis is back"), "{logs}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh"]
async fn postgresql_may_be_restarted_and_crash() {
    let mut postgres = PostgresServer::start().await;
    let service = Service::in_mode(Mode::Cluster)
        .database_url(&postgres.url())
        .workers(2)
        .env("LECTERN_JOB_LEASE", "5s")
        .env("LECTERN_INDEX_GRACE", "1s")
        .start()
        .await;
    let client = service.signed_up("ada@example.com").await;
    let (accepted, errors) = under_load(&client, async || {
        for _ in 0..4 {
            postgres.restart().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
        postgres.crash().await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        postgres.start_again().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
    })
    .await;
    wait_until_idle(&client).await;
    assert_all_searchable(&client, &accepted).await;
    eprintln!("PostgreSQL: {} documents accepted, {} refused with an error", accepted.len(), errors.len());
    for error in &errors {
        assert!(error.starts_with("503"), "a caller was told {error}");
    }
    for worker in 0..service.worker_count() {
        let logs = service.worker_logs(worker);
        eprintln!("worker {worker}: {} warnings", warnings(&logs));
        assert!(warnings(&logs) < 4 * WARNINGS_A_MINUTE, "{logs}");
    }
    wait_until_tidy(&postgres.url()).await;
}
