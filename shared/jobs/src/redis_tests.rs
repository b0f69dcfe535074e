//! The doorbell over a real Redis server.

use std::future::poll_fn;

use apalis_core::backend::Backend;
use lectern_shared::redis::testing::{away, fresh};

use super::*;
use crate::{Doorbell, LocalBackend};

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(30);

async fn within_deadline<T>(work: impl Future<Output = T>) -> T {
    timeout(DEADLINE, work).await.expect("it takes too long")
}

/// How many rings wait, and how many are remembered at all.
async fn waiting(redis: &Redis) -> (usize, usize) {
    let queue = Config::default().queue(format!("{}:doorbell", redis.prefix()));
    let (later, now, remembered): (usize, usize, usize) = ::redis::pipe()
        .zcard(queue.scheduled_jobs_set())
        .llen(queue.active_jobs_list())
        .hlen(queue.job_data_hash())
        .query_async(&mut redis.connection())
        .await
        .unwrap();
    (later + now, remembered)
}

async fn wait_until_none_waits(redis: &Redis) {
    within_deadline(async {
        while waiting(redis).await != (0, 0) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A process with a worker that is always idle.
fn idle_process(redis: &Redis, name: &str) -> Vec<JoinHandle<()>> {
    let doorbell = Doorbell::redis(redis.clone());
    let mut backend = doorbell.listen().unwrap();
    let name = name.to_owned();
    vec![
        tokio::spawn(async move { while next_ring(&mut backend).await {} }),
        tokio::spawn(async move { doorbell.hear(&name).await }),
    ]
}

async fn next_ring(backend: &mut LocalBackend) -> bool {
    let worker = WorkerContext::new("test");
    poll_fn(|cx| backend.poll_next(cx, &worker)).await.is_some()
}

#[tokio::test]
async fn a_ring_is_heard_by_an_idle_worker_of_another_process_and_leaves_nothing_behind() {
    let redis = fresh();
    let _there = idle_process(&redis, "there");
    let here = Doorbell::redis(redis.clone());
    for _ in 0..5 {
        here.ring(3);
        here.flush().await;
        wait_until_none_waits(&redis).await;
    }
}

#[tokio::test]
async fn a_busy_worker_leaves_rings_to_others() {
    let redis = fresh();
    let busy = Doorbell::redis(redis.clone());
    let mut backend = busy.listen().unwrap();
    // It heard its own first ring, and has not asked for another.
    next_ring(&mut backend).await;
    let listening = {
        let busy = busy.clone();
        tokio::spawn(async move { busy.hear("busy").await })
    };
    busy.ring(1);
    busy.flush().await;
    assert_eq!(waiting(&redis).await.0, 1);
    let _idle = idle_process(&redis, "idle");
    wait_until_none_waits(&redis).await;
    listening.abort();
}

#[tokio::test]
async fn any_number_of_rings_neither_grows_without_end_nor_wedges_the_queue() {
    let redis = fresh();
    let here = Doorbell::redis(redis.clone());
    for _ in 0..20 {
        here.ring(1_000);
        here.flush().await;
    }
    let (rings, _) = waiting(&redis).await;
    assert_eq!(rings, OUTSTANDING);
    let _there = idle_process(&redis, "there");
    wait_until_none_waits(&redis).await;
}

#[tokio::test]
async fn rings_are_heard_again_after_redis_lost_everything() {
    let redis = fresh();
    let _there = idle_process(&redis, "there");
    let here = Doorbell::redis(redis.clone());
    here.ring(1);
    here.flush().await;
    wait_until_none_waits(&redis).await;
    let mut connection = redis.connection();
    let keys: Vec<String> =
        ::redis::cmd("KEYS").arg(format!("{}*", redis.prefix())).query_async(&mut connection).await.unwrap();
    ::redis::cmd("DEL").arg(keys).exec_async(&mut connection).await.unwrap();
    here.ring(1);
    here.flush().await;
    wait_until_none_waits(&redis).await;
}

#[tokio::test]
async fn without_redis_the_worker_of_the_same_process_hears_a_ring() {
    let doorbell = Doorbell::redis(away());
    let mut backend = doorbell.listen().unwrap();
    // Its own first one.
    next_ring(&mut backend).await;
    doorbell.ring(1);
    within_deadline(doorbell.flush()).await;
    assert!(next_ring(&mut backend).now_or_never().is_some());
}

#[tokio::test]
async fn what_a_dead_process_left_behind_is_removed() {
    let redis = fresh();
    let here = Doorbell::redis(redis.clone());
    here.ring(2);
    here.flush().await;
    let queue = Config::default().queue(format!("{}:doorbell", redis.prefix())).batch_size(2);
    let mut connection = redis.connection();
    // It took the rings, and died before it could forget them.
    ::redis::cmd("ZADD")
        .arg(queue.workers_set())
        .arg(1)
        .arg("dead")
        .exec_async(&mut connection)
        .await
        .unwrap();
    let dead = WorkerContext::new("dead");
    assert_eq!(queries::fetch_next(&mut connection, &dead, &queue).await.unwrap().len(), 2);
    assert_eq!(waiting(&redis).await, (0, 2));
    here.tidy().await;
    let left: Vec<String> =
        ::redis::cmd("KEYS").arg(format!("{}*", redis.prefix())).query_async(&mut connection).await.unwrap();
    assert_eq!(left, Vec::<String>::new());
}
