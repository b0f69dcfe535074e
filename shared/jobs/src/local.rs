//! The doorbell within one process, and the apalis backend that listens to it.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use apalis_core::{
    backend::{Backend, BackendConfig, finalize::Ephemeral},
    task::Task,
    worker::context::WorkerContext,
};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, Sleep},
};
use tower::layer::util::Identity;

/// Rings that may wait to be heard; more are dropped, since as many slots of workers are about to look already. Each that waits when
/// nothing is due any more still has somebody look in vain, beside whatever comes next.
pub(super) const OUTSTANDING: usize = 100;
/// A worker looks for work by itself after a pause between this and the next.
const POLL_FROM: Duration = Duration::from_secs(2);
const POLL_TO: Duration = Duration::from_secs(5);

/// One wake-up. It says nothing about the work.
#[derive(Clone, Copy, Debug)]
pub struct DoorbellRing;

/// Rings for a [`LocalBackend`]. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct LocalDoorbell {
    sender: mpsc::Sender<()>,
    receiver: Arc<Mutex<Option<mpsc::Receiver<()>>>>,
    /// Whether a worker of this process waits for a ring at this moment.
    idle: Arc<watch::Sender<bool>>,
}

impl Default for LocalDoorbell {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(OUTSTANDING);
        let idle = Arc::new(watch::Sender::new(false));
        Self { sender, receiver: Arc::new(Mutex::new(Some(receiver))), idle }
    }
}

impl LocalDoorbell {
    /// Wakes up to `times` workers.
    pub(super) fn ring(&self, times: usize) {
        // Whoever hears this has something to do; it says so itself when it has not.
        self.idle.send_replace(false);
        for _ in 0..times {
            if self.sender.try_send(()).is_err() {
                break;
            }
        }
    }

    /// The end that hears the rings; there is one, so a second call gets none.
    pub(super) fn listen(&self) -> Option<LocalBackend> {
        let receiver = self.receiver.lock().take()?;
        let poll = Box::pin(tokio::time::sleep(Duration::ZERO));
        Some(LocalBackend { receiver, poll, idle: Arc::clone(&self.idle) })
    }

    /// Waits until a worker of this process has nothing to do.
    pub(super) async fn wait_until_idle(&self) {
        // It cannot fail: the sender lives as long as this does.
        let _ = self.idle.subscribe().wait_for(|idle| *idle).await;
    }
}

/// Hears rings, and rings by itself every few seconds so that no work waits for a ring that got lost. The first time is
/// at once: there may be work from before the start.
#[derive(Debug)]
pub struct LocalBackend {
    receiver: mpsc::Receiver<()>,
    poll: Pin<Box<Sleep>>,
    idle: Arc<watch::Sender<bool>>,
}

impl Backend for LocalBackend {
    type Task = Task<DoorbellRing>;
    type Error = Infallible;

    fn poll_ready(&mut self, _: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Option<Result<Task<DoorbellRing>, Infallible>>> {
        // The channel cannot close while this process can still ring.
        if let Poll::Ready(Some(())) = self.receiver.poll_recv(cx) {
            self.idle.send_replace(false);
            return Poll::Ready(Some(Ok(Task::new(DoorbellRing))));
        }
        if self.poll.as_mut().poll(cx).is_ready() {
            self.idle.send_replace(false);
            let pause = POLL_FROM + POLL_TO.saturating_sub(POLL_FROM).mul_f64(rand::random());
            self.poll.as_mut().reset(Instant::now() + pause);
            return Poll::Ready(Some(Ok(Task::new(DoorbellRing))));
        }
        // It is asked only when there is a free place.
        self.idle.send_replace(true);
        Poll::Pending
    }

    fn poll_close(&mut self, _: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
}

impl BackendConfig for LocalBackend {
    type Args = DoorbellRing;
    type Id = uuid::Uuid;
    type Kind = Ephemeral;
    type Config = ();
    type Layer = Identity;

    fn config(&self) -> &() {
        &()
    }

    fn middleware(&mut self, _: &mut WorkerContext) -> Identity {
        Identity::new()
    }
}
