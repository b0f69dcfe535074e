//! How many uploads go on at once. Each holds room in the blob store for a file that may come to nothing, and memory for what is
//! on its way, so that their number bounds both.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use lectern_shared::ids::WorkspaceId;
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::error::{ApiError, ApiErrorKind};

/// How long an upload waits for its turn: less than proxies and clients wait for theirs.
const PATIENCE: Duration = Duration::from_secs(20);
/// When one that did not get its turn may try again, in seconds.
const AGAIN: u64 = 10;

/// The turns of uploads. Cheap to clone; clones share them.
#[derive(Clone)]
pub(crate) struct UploadSlots {
    all: Arc<Semaphore>,
    /// At most half of all are one workspace's, so that nobody keeps everybody else waiting.
    of_one: usize,
    workspaces: Arc<Mutex<HashMap<WorkspaceId, Weak<Semaphore>>>>,
    patience: Duration,
}

/// A turn. It ends when this is dropped.
pub(crate) struct UploadSlot {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl UploadSlots {
    /// So many uploads at once, one at least.
    pub(crate) fn new(count: usize) -> Self {
        let all = Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        Self { all, of_one: count.div_ceil(2).max(1), workspaces: Arc::default(), patience: PATIENCE }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// When it takes too long.
    pub(crate) async fn take(&self, workspace: WorkspaceId) -> Result<UploadSlot, ApiError> {
        let turn = async {
            // In this order: whoever waits for the workspace's own turn holds none of the others'.
            let own = self.of_workspace(workspace).acquire_owned().await.ok()?;
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(UploadSlot { _own: own, _all: all })
        };
        timeout(self.patience, turn).await.ok().flatten().ok_or_else(|| {
            let message = "Too many uploads are going on at this moment; try again shortly.";
            ApiError {
                retry_after: Some(AGAIN),
                ..ApiError::new(ApiErrorKind::Unavailable, "too_many_uploads", message)
            }
        })
    }

    fn of_workspace(&self, workspace: WorkspaceId) -> Arc<Semaphore> {
        let mut workspaces = self.workspaces.lock();
        if let Some(own) = workspaces.get(&workspace).and_then(Weak::upgrade) {
            return own;
        }
        // Nobody who has no upload is remembered.
        workspaces.retain(|_, own| own.strong_count() > 0);
        let own = Arc::new(Semaphore::new(self.of_one));
        workspaces.insert(workspace, Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn impatient(count: usize) -> UploadSlots {
        UploadSlots { patience: Duration::ZERO, ..UploadSlots::new(count) }
    }

    #[tokio::test]
    async fn one_user_has_half_of_the_turns_and_all_workspaces_have_no_more_than_there_are() {
        let slots = impatient(3);
        let [ada, grace] = [WorkspaceId::generate(), WorkspaceId::generate()];
        let first = slots.take(ada).await;
        let _second = slots.take(ada).await.ok().unwrap();
        let refused = slots.take(ada).await.err().unwrap();
        assert_eq!(
            (refused.kind.status(), refused.code, refused.retry_after),
            (503, "too_many_uploads", Some(10))
        );
        let _third = slots.take(grace).await.ok().unwrap();
        assert!(slots.take(grace).await.is_err(), "all three are taken");
        drop(first);
        assert!(slots.take(grace).await.is_ok());
    }

    #[tokio::test]
    async fn with_a_single_turn_everybody_has_it_in_turn() {
        let slots = impatient(1);
        for _ in 0..3 {
            let slot = slots.take(WorkspaceId::generate()).await.ok().unwrap();
            assert!(slots.take(WorkspaceId::generate()).await.is_err());
            drop(slot);
        }
        assert!(slots.workspaces.lock().len() <= 2, "those who are gone are forgotten");
    }

    #[tokio::test]
    async fn whoever_waits_gets_the_next_turn() {
        let slots = UploadSlots::new(1);
        let slot = slots.take(WorkspaceId::generate()).await.ok().unwrap();
        let mut waiting = Box::pin(slots.take(WorkspaceId::generate()));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(slot);
        assert!(waiting.await.is_ok());
    }
}
