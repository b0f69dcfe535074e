//! The doorbell of several processes: rings wait in a queue of apalis-redis, and whichever idle worker takes one looks into
//! the database.
//!
//! Only pushing and fetching are taken from that library. What it does for jobs that must not get lost (leases, results,
//! redelivery) keeps the traces of every ring for ever, and ends its worker when Redis is away for a moment; a ring may get
//! lost, so it is forgotten as soon as it is heard, and whatever fails is tried again here. The library wakes nobody when
//! something is pushed: that is told on a channel besides.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use apalis_core::{task::builder::TaskBuilder, worker::context::WorkerContext};
use apalis_redis::{Config, RedisTask, queries};
use futures::{FutureExt, StreamExt};
use lectern_shared::{
    redis::Redis,
    retry::{JitterRange, RetryBackoff, jitter},
};
use parking_lot::Mutex;
use redis::{Script, aio::ConnectionManager};
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{Instant, timeout},
};

use super::{LocalDoorbell, local::OUTSTANDING};

/// The longest that one push, or the last one of a process, may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a worker looks for rings that it was not told of.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a worker says that it is there.
const REGISTER_EVERY: Duration = Duration::from_mins(10);
/// A worker that has not said so for this long is gone.
const GONE_AFTER: Duration = Duration::from_hours(1);
/// The pauses before Redis is tried again.
const PAUSES: RetryBackoff =
    RetryBackoff { first: Duration::from_millis(100), longest: Duration::from_secs(5) };

/// Why Redis could not be used.
#[derive(Debug, thiserror::Error)]
enum RingError {
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
    #[error(transparent)]
    Queue(#[from] apalis_redis::Error),
    #[error("the connection was closed")]
    Closed,
    #[error("no answer in time")]
    Timeout,
}

/// Rings for the workers of every process. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct RedisDoorbell {
    bell: Arc<RedisDoorbellState>,
    _ringer: Arc<RingSenderTask>,
}

#[derive(Debug)]
struct RedisDoorbellState {
    redis: Redis,
    queue: Config,
    channel: String,
    local: LocalDoorbell,
    /// Rings that are not sent yet.
    unsent: AtomicUsize,
    rung: Notify,
    /// Held while rings are being sent.
    sending: tokio::sync::Mutex<()>,
    trouble: OutageLog,
}

/// Ends the task that sends rings with the last handle to the doorbell.
#[derive(Debug)]
struct RingSenderTask(JoinHandle<()>);

impl Drop for RingSenderTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Says once that Redis went away, and once that it is back.
#[derive(Debug, Default)]
struct OutageLog(Mutex<bool>);

impl OutageLog {
    fn failed(&self, doing: &str, error: &RingError) {
        if std::mem::replace(&mut *self.0.lock(), true) {
            tracing::debug!(%error, doing, "Redis still fails");
        } else {
            tracing::warn!(%error, doing, "Redis fails; workers look for work by themselves until it is back");
        }
    }

    fn over(&self) {
        if std::mem::replace(&mut *self.0.lock(), false) {
            tracing::info!("Redis is back");
        }
    }
}

impl RedisDoorbell {
    /// A doorbell for the installation that `redis` belongs to; `local` hears it in this process.
    pub(super) fn new(redis: Redis, local: LocalDoorbell) -> Self {
        let name = format!("{}:doorbell", redis.prefix());
        let bell = Arc::new(RedisDoorbellState {
            channel: format!("{name}:rung"),
            queue: Config::default().queue(&name).batch_size(1).emit_events(false),
            redis,
            local,
            unsent: AtomicUsize::new(0),
            rung: Notify::new(),
            sending: tokio::sync::Mutex::new(()),
            trouble: OutageLog::default(),
        });
        let ringer = tokio::spawn({
            let bell = Arc::clone(&bell);
            async move {
                loop {
                    bell.rung.notified().await;
                    bell.send().await;
                }
            }
        });
        Self { bell, _ringer: Arc::new(RingSenderTask(ringer)) }
    }

    pub(super) fn ring(&self, times: usize) {
        if times > 0 {
            self.bell.unsent.fetch_add(times, Ordering::Relaxed);
            self.bell.rung.notify_one();
        }
    }

    pub(super) async fn flush(&self) {
        self.bell.send().await;
    }

    pub(super) async fn hear(&self, worker: &str) {
        let worker = WorkerContext::new(worker);
        let mut failures = 0_u32;
        loop {
            let began = Instant::now();
            let Err(error) = self.bell.hear(&worker).await;
            self.bell.trouble.failed("listening for rings", &error);
            if began.elapsed() > PAUSES.longest {
                failures = 0;
            }
            failures = failures.saturating_add(1);
            tokio::time::sleep(jitter(PAUSES.delay(failures), JitterRange::Half)).await;
        }
    }

    pub(super) async fn tidy(&self) {
        if let Err(error) = self.bell.tidy().await {
            self.bell.trouble.failed("tidying up", &error);
        }
    }
}

impl RedisDoorbellState {
    /// Sends every ring that waits; when Redis does not take them, the worker of this process hears them at least.
    async fn send(&self) {
        let _one_at_a_time = self.sending.lock().await;
        let rings = self.unsent.swap(0, Ordering::Relaxed);
        if rings == 0 {
            return;
        }
        match timeout(PATIENCE, self.push(rings)).await.unwrap_or(Err(RingError::Timeout)) {
            Ok(()) => self.trouble.over(),
            Err(error) => {
                self.trouble.failed("ringing", &error);
                self.local.ring(rings);
            }
        }
    }

    /// Puts rings into the queue, no more than may wait in it: with several thousand the library's own script fails.
    async fn push(&self, times: usize) -> Result<(), RingError> {
        let mut connection = self.redis.connection();
        let (later, now): (usize, usize) = redis::pipe()
            .zcard(self.queue.scheduled_jobs_set())
            .llen(self.queue.active_jobs_list())
            .query_async(&mut connection)
            .await?;
        let room = OUTSTANDING.saturating_sub(later + now);
        let rings: Vec<RedisTask> =
            (0..times.min(room)).map(|_| TaskBuilder::new(Vec::new()).build()).collect();
        if !rings.is_empty() {
            queries::push_tasks(&mut connection, &self.queue, &rings).await?;
        }
        redis::cmd("PUBLISH").arg(&self.channel).arg(rings.len()).exec_async(&mut connection).await?;
        Ok(())
    }

    /// Takes rings while a worker of this process is idle; a busy one leaves them to others.
    async fn hear(&self, worker: &WorkerContext) -> Result<std::convert::Infallible, RingError> {
        let mut rung = self.redis.subscribe(&self.channel).await?.into_on_message();
        let mut connection = self.redis.connection();
        let mut registered: Option<Instant> = None;
        loop {
            self.local.wait_until_idle().await;
            if registered.is_none_or(|at| at.elapsed() > REGISTER_EVERY) {
                self.register(worker, &mut connection).await?;
                registered = Some(Instant::now());
            }
            // What was told until now is seen by the fetch below.
            while let Some(told) = rung.next().now_or_never() {
                told.ok_or(RingError::Closed)?;
            }
            let taken = queries::fetch_next(&mut connection, worker, &self.queue).await?;
            self.trouble.over();
            if taken.is_empty() {
                match timeout(jitter(LOOK_EVERY, JitterRange::Fifth), rung.next()).await {
                    Ok(None) => return Err(RingError::Closed),
                    Ok(Some(_)) | Err(_) => continue,
                }
            }
            self.local.ring(taken.len());
            self.forget(worker, &taken, &mut connection).await?;
        }
    }

    /// The library fetches for registered workers only, and its own way of registering cannot be called from outside.
    async fn register(
        &self,
        worker: &WorkerContext,
        connection: &mut ConnectionManager,
    ) -> Result<(), RingError> {
        static REGISTER: LazyLock<Script> =
            LazyLock::new(|| Script::new("redis.call('ZADD', KEYS[1], redis.call('TIME')[1], ARGV[1])"));
        REGISTER.key(self.queue.workers_set()).arg(worker.name()).invoke_async::<()>(connection).await?;
        Ok(())
    }

    /// A ring that was heard has done its work.
    async fn forget(
        &self,
        worker: &WorkerContext,
        taken: &[RedisTask],
        connection: &mut ConnectionManager,
    ) -> Result<(), RingError> {
        let mut pipe = redis::pipe();
        for id in taken.iter().filter_map(|ring| ring.task_id()).map(ToString::to_string) {
            pipe.srem(self.queue.inflight_set_for(worker), &id).ignore();
            pipe.hdel(self.queue.job_data_hash(), &id).ignore();
            pipe.del(format!("{}:{id}", self.queue.job_meta_hash())).ignore();
        }
        Ok(pipe.exec_async(connection).await?)
    }

    /// Removes rings that were taken and not forgotten, and workers that are gone.
    async fn tidy(&self) -> Result<(), RingError> {
        static TIDY: LazyLock<Script> = LazyLock::new(|| {
            Script::new(
                r"
                if redis.call('LLEN', KEYS[1]) == 0 and redis.call('ZCARD', KEYS[2]) == 0 then
                    for _, id in ipairs(redis.call('HKEYS', KEYS[3])) do
                        redis.call('DEL', ARGV[1] .. ':' .. id)
                    end
                    redis.call('DEL', KEYS[3], KEYS[5])
                end
                local gone = redis.call('TIME')[1] - ARGV[3]
                for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], 0, gone)) do
                    redis.call('DEL', ARGV[2] .. ':' .. worker)
                    redis.call('ZREM', KEYS[4], worker)
                end",
            )
        });
        TIDY.key(self.queue.active_jobs_list())
            .key(self.queue.scheduled_jobs_set())
            .key(self.queue.job_data_hash())
            .key(self.queue.workers_set())
            .key(self.queue.signal_list())
            .arg(self.queue.job_meta_hash())
            .arg(self.queue.inflight_jobs_set())
            .arg(GONE_AFTER.as_secs())
            .invoke_async::<()>(&mut self.redis.connection())
            .await?;
        Ok(())
    }
}

#[cfg(test)]
#[path = "redis_tests.rs"]
mod tests;
