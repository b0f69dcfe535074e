//! Waking workers.

use lectern_shared::redis::Redis;

use super::{LocalBackend, LocalDoorbell, RedisDoorbell};

/// Says that there is work; never which. A ring may get lost: workers also look by themselves. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Doorbell {
    local: LocalDoorbell,
    remote: Option<RedisDoorbell>,
}

impl Doorbell {
    /// Within this process.
    pub fn local() -> Self {
        Self { local: LocalDoorbell::default(), remote: None }
    }

    /// Through Redis, for the workers of every process.
    pub fn redis(redis: Redis) -> Self {
        let local = LocalDoorbell::default();
        Self { remote: Some(RedisDoorbell::new(redis, local.clone())), local }
    }

    /// Wakes up to `times` workers. Never waits and never fails.
    pub fn ring(&self, times: usize) {
        match &self.remote {
            Some(remote) => remote.ring(times),
            None => self.local.ring(times),
        }
    }

    /// The end that this process's worker hears; there is one, so a second call gets none.
    pub fn listen(&self) -> Option<LocalBackend> {
        self.local.listen()
    }

    /// Passes the rings of other processes on to this one's worker, for as long as it is polled. `worker` is a name that no
    /// other process has. Without a remote end there is nothing to pass on, and it never returns.
    pub async fn hear(&self, worker: &str) {
        match &self.remote {
            Some(remote) => remote.hear(worker).await,
            None => std::future::pending().await,
        }
    }

    /// Sends what was rung and is not sent yet; takes a second at most. For the end of a process.
    pub async fn flush(&self) {
        if let Some(remote) = &self.remote {
            remote.flush().await;
        }
    }

    /// Removes what processes that died left behind. To be called now and then, by one process.
    pub async fn tidy(&self) {
        if let Some(remote) = &self.remote {
            remote.tidy().await;
        }
    }
}
