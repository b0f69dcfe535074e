//! Stopping. A first signal asks everything to drain; a second one, or the end of the grace time, aborts.

use std::{future::Future, time::Duration};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a drain may take before it becomes an abort.
pub const GRACE: Duration = Duration::from_secs(20);

/// The two stages of stopping, and the tasks that are waited for. Cheap to clone; clones share the state.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    soft: CancellationToken,
    hard: CancellationToken,
    tasks: TaskTracker,
}

impl Shutdown {
    /// Nothing is stopping yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when new work must no longer be taken.
    pub fn soft(&self) -> &CancellationToken {
        &self.soft
    }

    /// Cancelled when work in hand must be dropped.
    pub fn hard(&self) -> &CancellationToken {
        &self.hard
    }

    /// Runs `task` in the background; stopping waits for it.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Asks everything to drain.
    pub fn begin(&self) {
        self.soft.cancel();
    }

    /// Drops whatever is still running.
    pub fn abort(&self) {
        self.soft.cancel();
        self.hard.cancel();
    }

    /// Begins the shutdown at the first SIGTERM or SIGINT and aborts at the second.
    ///
    /// # Errors
    /// When the operating system refuses the signal handlers.
    pub fn listen(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let shutdown = self.clone();
        tokio::spawn(async move {
            let mut next = async || {
                tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
            };
            next().await;
            tracing::info!("stopping: no new work is taken; a second signal aborts");
            shutdown.begin();
            next().await;
            tracing::warn!("aborting");
            shutdown.abort();
        });
        Ok(())
    }

    /// Waits until the shutdown has begun and every task has ended, at most [`GRACE`] after its begin; whatever
    /// still runs then is aborted and given a moment to unwind. True when everything ended by itself.
    pub async fn finished(&self) -> bool {
        self.soft.cancelled().await;
        self.tasks.close();
        let drained = tokio::select! {
            () = self.tasks.wait() => true,
            () = self.hard.cancelled() => false,
            () = tokio::time::sleep(GRACE) => false,
        };
        if !drained {
            self.hard.cancel();
            let _ = tokio::time::timeout(Duration::from_secs(2), self.tasks.wait()).await;
        }
        drained
    }
}
