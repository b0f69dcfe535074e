//! Who draws next. Each workspace has a line of its own and half of the places at most, so that whoever looks at pages that take
//! long keeps nobody else waiting.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use lectern_shared::ids::WorkspaceId;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{error::ApiError, limits::RetryAfter};

/// Pages of one workspace that are waited for, at most.
const WAITING: usize = 32;
/// Lines that are kept although nobody may stand in them.
const KEPT: usize = 1_000;

/// The line of one workspace.
struct WorkspaceLine {
    drawing: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// A place at which a page is drawn, until it is dropped.
pub(super) struct DrawingPlace {
    _drawing: OwnedSemaphorePermit,
    _waiting: OwnedSemaphorePermit,
    _line: Arc<WorkspaceLine>,
}

/// The lines of all workspaces. Cheap to clone; clones share the same.
#[derive(Clone)]
pub(super) struct DrawingLine {
    lines: Arc<Mutex<HashMap<WorkspaceId, Weak<WorkspaceLine>>>>,
    of_one: usize,
}

impl DrawingLine {
    /// Where so many pages are drawn at once.
    pub(super) fn new(parallel: usize) -> Self {
        Self { lines: Arc::default(), of_one: (parallel / 2).max(1) }
    }

    /// Waits until the workspace may draw.
    ///
    /// # Errors
    /// When too many of its pages are waited for already.
    pub(super) async fn wait(&self, workspace: WorkspaceId) -> Result<DrawingPlace, ApiError> {
        let line = self.line_of(workspace);
        let busy = |_| {
            let message = "Too many pages of this workspace are being drawn; ask again in a moment.";
            ApiError::too_many("too_many_page_images", message, RetryAfter::from_secs(2))
        };
        let waiting = line.waiting.clone().try_acquire_owned().map_err(busy)?;
        // It is never closed.
        let drawing = line.drawing.clone().acquire_owned().await.map_err(|_| ApiError::internal())?;
        Ok(DrawingPlace { _drawing: drawing, _waiting: waiting, _line: line })
    }

    fn line_of(&self, workspace: WorkspaceId) -> Arc<WorkspaceLine> {
        let mut lines = self.lines.lock();
        if let Some(line) = lines.get(&workspace).and_then(Weak::upgrade) {
            return line;
        }
        if lines.len() >= KEPT {
            lines.retain(|_, line| line.strong_count() > 0);
        }
        let line = Arc::new(WorkspaceLine {
            drawing: Arc::new(Semaphore::new(self.of_one)),
            waiting: Arc::new(Semaphore::new(self.of_one + WAITING)),
        });
        lines.insert(workspace, Arc::downgrade(&line));
        line
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_workspace_that_draws_much_waits_for_itself_and_not_for_ever() {
        let line = DrawingLine::new(2);
        let (one, other) = (WorkspaceId::generate(), WorkspaceId::generate());
        let first = line.wait(one).await.unwrap();
        let mut second = Box::pin(line.wait(one));
        assert!((&mut second).now_or_never().is_none());
        assert!(line.wait(other).now_or_never().unwrap().is_ok(), "another does not wait");
        let mut crowd: Vec<_> = (0..WAITING).map(|_| Box::pin(line.wait(one))).collect();
        let refused = crowd.iter_mut().find_map(|wait| wait.as_mut().now_or_never());
        assert_eq!(refused.unwrap().err().unwrap().code, "too_many_page_images");
        drop(crowd);
        drop(first);
        assert!(second.now_or_never().unwrap().is_ok());
    }
}
