//! The line in which texts wait to be embedded. A workspace has one turn at a time: documents are ingested with the same model, and others
//! search. Its turns go round its members, so that what one sends in parallel waits for itself.

use std::{collections::HashMap, sync::Arc, time::Duration};

use lectern_shared::ids::{UserId, WorkspaceId};
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::turns::{FairPermit, FairSemaphore, PermitError, SemaphoreLimits};

/// Workspaces whose texts are embedded at once.
const AT_ONCE: usize = 8;

/// How much may wait, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineLimits {
    /// Requests of one account that may wait behind the one that has its turn.
    pub(super) waiting: usize,
    /// Bytes of a workspace's texts that wait or are embedded. A request that comes alone may have more.
    pub(super) of_workspace: usize,
    /// The same, of all workspaces: twice as many, so that none can have all of them.
    pub(super) of_all: usize,
    /// How long a request waits at most. Clients go on waiting: they send in parallel what would take them as long one by one.
    pub(super) patience: Duration,
}

impl LineLimits {
    pub(super) const USUAL: Self =
        Self { waiting: 64, of_workspace: 64 << 20, of_all: 128 << 20, patience: Duration::from_mins(5) };
}

/// The line. Cheap to clone; clones share it.
#[derive(Clone)]
pub(super) struct EmbeddingLine {
    limits: LineLimits,
    members: FairSemaphore<(WorkspaceId, UserId)>,
    workspaces: FairSemaphore<WorkspaceId>,
    held: Arc<Mutex<HeldTexts>>,
}

/// Bytes of texts that wait or are embedded.
#[derive(Default)]
struct HeldTexts {
    of_all: usize,
    of_workspaces: HashMap<WorkspaceId, usize>,
}

/// A turn, until this is dropped.
pub(super) struct EmbeddingTurn {
    _of_member: FairPermit,
    _of_workspace: FairPermit,
    _room: TextRoom,
}

/// Room for texts, until this is dropped.
struct TextRoom {
    held: Arc<Mutex<HeldTexts>>,
    workspace: WorkspaceId,
    bytes: usize,
}

impl EmbeddingLine {
    pub(super) fn new(limits: LineLimits) -> Self {
        let LineLimits { waiting, patience, .. } = limits;
        let of_members = SemaphoreLimits { at_once: usize::MAX, reserved: 0, of_one: 1, waiting, patience };
        // Of each member one alone stands here.
        let of_workspaces = SemaphoreLimits { at_once: AT_ONCE, waiting: usize::MAX, ..of_members };
        Self {
            limits,
            members: FairSemaphore::new(of_members),
            workspaces: FairSemaphore::new(of_workspaces),
            held: Arc::default(),
        }
    }

    /// Waits for a turn at texts of so many bytes.
    ///
    /// # Errors
    /// When too much waits already, or when it takes too long.
    pub(super) async fn turn(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        bytes: usize,
    ) -> Result<EmbeddingTurn, PermitError> {
        let room = self.room(workspace, bytes).ok_or(PermitError::QueueFull)?;
        let turns = async {
            let of_member = self.members.acquire((workspace, user)).await?;
            let of_workspace = self.workspaces.acquire(workspace).await?;
            Ok::<_, PermitError>((of_member, of_workspace))
        };
        let turns = timeout(self.limits.patience, turns).await;
        let (of_member, of_workspace) = turns.unwrap_or(Err(PermitError::Late))?;
        Ok(EmbeddingTurn { _of_member: of_member, _of_workspace: of_workspace, _room: room })
    }

    /// Room for texts of so many bytes; none when there is too little.
    fn room(&self, workspace: WorkspaceId, bytes: usize) -> Option<TextRoom> {
        let fits = |held: usize, most: usize| held == 0 || held.saturating_add(bytes) <= most;
        let mut held = self.held.lock();
        let own = held.of_workspaces.get(&workspace).copied().unwrap_or_default();
        if !fits(own, self.limits.of_workspace) || !fits(held.of_all, self.limits.of_all) {
            return None;
        }
        held.of_all += bytes;
        held.of_workspaces.insert(workspace, own + bytes);
        drop(held);
        Some(TextRoom { held: Arc::clone(&self.held), workspace, bytes })
    }
}

impl Drop for TextRoom {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        held.of_all = held.of_all.saturating_sub(self.bytes);
        let own = held.of_workspaces.get(&self.workspace).copied().unwrap_or_default();
        match own.saturating_sub(self.bytes) {
            0 => held.of_workspaces.remove(&self.workspace),
            left => held.of_workspaces.insert(self.workspace, left),
        };
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, poll};

    use super::*;

    fn ids() -> (WorkspaceId, [UserId; 2]) {
        let users = [UserId::generate(), UserId::generate()];
        (users[0].into(), users)
    }

    #[tokio::test]
    async fn what_one_sends_in_parallel_waits_and_another_member_has_the_next_turn() {
        let line = EmbeddingLine::new(LineLimits::USUAL);
        let (workspace, [ada, grace]) = ids();
        let first = line.turn(workspace, ada, 1).await.ok().unwrap();
        let mut flood: Vec<_> =
            (0..LineLimits::USUAL.waiting).map(|_| Box::pin(line.turn(workspace, ada, 1))).collect();
        for waiting in &mut flood {
            assert!(poll!(waiting).is_pending());
        }
        assert_eq!(line.turn(workspace, ada, 1).await.err(), Some(PermitError::QueueFull));
        let mut other = Box::pin(line.turn(workspace, grace, 1));
        assert!(poll!(&mut other).is_pending());
        drop(first);
        assert!(poll!(&mut flood[0]).is_pending());
        let turn = other.now_or_never().expect("the other's turn").ok().unwrap();
        assert!(poll!(&mut flood[0]).is_pending());
        drop(turn);
        for waiting in flood {
            assert!(waiting.await.is_ok(), "all of them have their turns");
        }
        assert!(line.held.lock().of_workspaces.is_empty() && line.held.lock().of_all == 0);
    }

    #[tokio::test]
    async fn texts_that_wait_have_so_many_bytes_and_large_ones_of_one_leave_room_for_others() {
        let limits = LineLimits { of_workspace: 10, of_all: 20, ..LineLimits::USUAL };
        let line = EmbeddingLine::new(limits);
        let (workspace, [ada, grace]) = ids();
        let alone = line.turn(workspace, ada, 15).await.ok().unwrap();
        assert_eq!(line.turn(workspace, grace, 1).await.err(), Some(PermitError::QueueFull));
        let (other, [eve, _]) = ids();
        assert!(line.turn(other, eve, 5).await.is_ok());
        assert_eq!(line.turn(other, eve, 6).await.err(), Some(PermitError::QueueFull), "of all");
        drop(alone);
        assert!(line.turn(workspace, grace, 1).await.is_ok());
    }

    #[tokio::test]
    async fn nobody_waits_for_ever() {
        let line = EmbeddingLine::new(LineLimits { patience: Duration::ZERO, ..LineLimits::USUAL });
        let (workspace, [ada, grace]) = ids();
        let turn = line.turn(workspace, ada, 1).await.ok().unwrap();
        assert_eq!(line.turn(workspace, grace, 1).await.err(), Some(PermitError::Late));
        drop(turn);
        assert!(line.turn(workspace, grace, 1).await.is_ok());
    }
}
