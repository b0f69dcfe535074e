//! Stopping. A first signal asks everything to drain; a second one, or the end of the grace time, aborts.

use std::{future::Future, pin::pin, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a drain may take before it becomes an abort.
pub const GRACE: Duration = Duration::from_secs(20);
/// How long tasks that are aborted have to hand back what they hold, and as long again what is closed after them.
const UNWIND: Duration = Duration::from_secs(1);

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainEnd {
    /// Everything had ended by itself.
    Complete,
    /// Everything was aborted.
    Aborted,
    /// [`GRACE`] was over.
    OutOfTime,
}

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

    /// Runs `task` in the background; stopping waits for it. A moment after everything is aborted it is dropped, whatever it waits for.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let hard = self.hard.clone();
        self.tasks.spawn(async move {
            let dropped = async {
                hard.cancelled().await;
                sleep(UNWIND).await;
            };
            tokio::select! { () = task => {}, () = dropped => {} }
        });
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

    /// Waits until the shutdown has begun and every task has ended, and then does what is left to do, such as to close what they used: at
    /// most [`GRACE`] after its begin, and no longer than until everything is aborted. What still runs then is given a moment to unwind.
    pub async fn finished(&self, closing: impl Future<Output = ()>) -> DrainEnd {
        self.soft.cancelled().await;
        self.tasks.close();
        let mut ending = pin!(async {
            self.tasks.wait().await;
            closing.await;
        });
        let end = tokio::select! {
            () = &mut ending => DrainEnd::Complete,
            () = self.hard.cancelled() => DrainEnd::Aborted,
            () = sleep(GRACE) => DrainEnd::OutOfTime,
        };
        if end == DrainEnd::OutOfTime {
            tracing::warn!("the time to stop is over: what still runs is aborted");
        }
        if end != DrainEnd::Complete {
            self.hard.cancel();
            // A server that is away must not keep the process: neither tasks nor connections that wait for its answer.
            let _ = timeout(UNWIND * 2, ending).await;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn what_ends_by_itself_is_waited_for_and_what_is_left_comes_after_it() {
        let shutdown = Shutdown::new();
        let (ended, mut has_ended) = tokio::sync::oneshot::channel();
        let soft = shutdown.soft().clone();
        shutdown.spawn(async move {
            soft.cancelled().await;
            let _ = ended.send(());
        });
        shutdown.begin();
        let closing = async { assert_eq!(has_ended.try_recv(), Ok(())) };
        assert_eq!(shutdown.finished(closing).await, DrainEnd::Complete);
    }

    #[tokio::test]
    async fn an_abort_waits_neither_for_tasks_nor_for_what_is_left_to_do() {
        for is_stuck in [true, false] {
            let shutdown = Shutdown::new();
            if is_stuck {
                shutdown.spawn(pending());
            }
            shutdown.begin();
            let aborting = async { shutdown.abort() };
            let closing = async { if is_stuck { ready(()).await } else { pending().await } };
            let ended = async { tokio::join!(shutdown.finished(closing), aborting) };
            let (end, ()) = timeout(GRACE * 3, ended).await.unwrap();
            assert_eq!(end, DrainEnd::Aborted);
        }
    }
}
