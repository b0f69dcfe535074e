//! Stores what runs leave behind, traces and what their models used, while their answers are on the way. Who reads it in the same process
//! afterwards asks [`RunRecorder::settled`] first, and so finds what the answer told of.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use lectern_shared::ids::WorkspaceId;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Notify, Semaphore},
    task::JoinHandle,
};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// Runs whose records are being written at once: each has its trace in memory. A run that finds no place waits before it answers.
const AT_ONCE: usize = 64;

/// Writes the records of runs in the background. Cheap to clone; clones share the state.
#[derive(Clone)]
pub struct RunRecorder(Arc<RecorderState>);

struct RecorderState {
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    pending: Mutex<PendingRecords>,
    /// Told whenever records were written, or given up.
    written: Notify,
}

/// What is being written: whose, by the order in which it was begun.
#[derive(Default)]
struct PendingRecords {
    begun: u64,
    workspaces: BTreeMap<u64, WorkspaceId>,
}

/// Records that are being written until this goes.
struct PendingRecord {
    state: Arc<RecorderState>,
    number: u64,
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        self.state.pending.lock().workspaces.remove(&self.number);
        self.state.written.notify_waiters();
    }
}

impl Default for RunRecorder {
    fn default() -> Self {
        Self(Arc::new(RecorderState {
            places: Arc::new(Semaphore::new(AT_ONCE)),
            tasks: TaskTracker::new(),
            pending: Mutex::default(),
            written: Notify::new(),
        }))
    }
}

impl RunRecorder {
    /// Has `write` done, whatever becomes of the caller. Returns once that is under way: at once, unless too much else is.
    pub(super) async fn record(
        &self,
        workspace: WorkspaceId,
        write: impl Future<Output = ()> + Send + 'static,
    ) {
        let pending = self.begin(workspace);
        // Never closed.
        let place = Arc::clone(&self.0.places).acquire_owned().await;
        let written = async move {
            write.await;
            drop((pending, place));
        };
        self.0.tasks.spawn(written.in_current_span());
    }

    /// The same for a little that needs no place: it may be part of what has one, or be left by a caller that is dropped.
    pub(super) fn record_little(
        &self,
        runtime: &Handle,
        workspace: WorkspaceId,
        write: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let pending = self.begin(workspace);
        let written = async move {
            write.await;
            drop(pending);
        };
        self.0.tasks.spawn_on(written.in_current_span(), runtime)
    }

    fn begin(&self, workspace: WorkspaceId) -> PendingRecord {
        let mut pending = self.0.pending.lock();
        let number = pending.begun;
        pending.begun += 1;
        pending.workspaces.insert(number, workspace);
        PendingRecord { state: Arc::clone(&self.0), number }
    }

    /// Waits until all that was left behind so far in a workspace is written, or given up. What other processes write is not known here.
    pub async fn settled(&self, workspace: WorkspaceId) {
        let before = self.0.pending.lock().begun;
        loop {
            let mut written = std::pin::pin!(self.0.written.notified());
            written.as_mut().enable();
            let is_pending = self.0.pending.lock().workspaces.range(..before).any(|(_, of)| *of == workspace);
            if !is_pending {
                return;
            }
            written.await;
        }
    }

    /// Waits until everything is written: nothing more may be recorded.
    pub async fn finish(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    /// Records something that is written when the sender is used.
    async fn slow(recorder: &RunRecorder, workspace: WorkspaceId) -> oneshot::Sender<()> {
        let (done, waiting) = oneshot::channel();
        recorder.record(workspace, async { drop(waiting.await) }).await;
        done
    }

    #[tokio::test]
    async fn whoever_reads_waits_for_what_was_left_before_in_the_same_workspace_alone() {
        let recorder = RunRecorder::default();
        let [mine, other] = [(); 2].map(|()| WorkspaceId::generate());
        recorder.settled(mine).await;
        let first = slow(&recorder, mine).await;
        recorder.settled(other).await;
        let mut settled = std::pin::pin!(recorder.settled(mine));
        assert!(settled.as_mut().now_or_never().is_none());
        // What comes later is not waited for.
        let _later = slow(&recorder, mine).await;
        first.send(()).unwrap();
        settled.await;
        assert!(recorder.settled(mine).now_or_never().is_none(), "the later one is not written yet");
    }

    #[tokio::test]
    async fn an_answer_waits_when_too_much_is_being_written() {
        let recorder = RunRecorder::default();
        let workspace = WorkspaceId::generate();
        let mut going_on = Vec::new();
        for _ in 0..AT_ONCE {
            going_on.push(slow(&recorder, workspace).await);
        }
        let mut next = std::pin::pin!(slow(&recorder, workspace));
        assert!(next.as_mut().now_or_never().is_none());
        drop(going_on.pop());
        let next = next.await;
        drop((next, going_on));
        recorder.finish().await;
        assert!(recorder.settled(workspace).now_or_never().is_some());
    }
}
