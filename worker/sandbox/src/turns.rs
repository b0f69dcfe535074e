//! Turns at work that keeps a core busy. More documents are under way than there are cores, since each waits for servers most of the time.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use lectern_shared::ids::WorkspaceId;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A bounded number of turns. A workspace may have all of them while nobody else wants one; else the next goes to whoever has the fewest, and
/// of these to whoever has waited longest. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct WorkTurns {
    queue: Arc<Mutex<TurnQueue>>,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct WorkTurn {
    queue: Arc<Mutex<TurnQueue>>,
    workspace: Option<WorkspaceId>,
}

#[derive(Debug)]
struct TurnQueue {
    free: usize,
    /// Turns of each workspace that has any; of those who are none together.
    taken: HashMap<Option<WorkspaceId>, usize>,
    /// Those who wait, the longest first.
    waiting: VecDeque<WaitingTurn>,
}

#[derive(Debug)]
struct WaitingTurn {
    workspace: Option<WorkspaceId>,
    turn: oneshot::Sender<WorkTurn>,
}

impl WorkTurns {
    /// So many turns at once, and one at least.
    pub fn new(at_once: usize) -> Self {
        let queue = TurnQueue { free: at_once.max(1), taken: HashMap::new(), waiting: VecDeque::new() };
        Self { queue: Arc::new(Mutex::new(queue)) }
    }

    /// Waits for a turn. Whoever stops waiting leaves the line.
    pub async fn take(&self, workspace: Option<WorkspaceId>) -> WorkTurn {
        loop {
            let waiting = {
                let mut queue = self.queue.lock();
                if queue.free > 0 {
                    return queue.grant(workspace, &self.queue);
                }
                let (turn, waiting) = oneshot::channel();
                queue.waiting.push_back(WaitingTurn { workspace, turn });
                waiting
            };
            // Nobody gives up a place in the line without a turn; if so, it is taken anew.
            if let Ok(turn) = waiting.await {
                return turn;
            }
        }
    }
}

impl TurnQueue {
    fn grant(&mut self, workspace: Option<WorkspaceId>, queue: &Arc<Mutex<Self>>) -> WorkTurn {
        self.free -= 1;
        *self.taken.entry(workspace).or_default() += 1;
        WorkTurn { queue: Arc::clone(queue), workspace }
    }

    /// Ends a turn of this workspace's.
    fn release(&mut self, workspace: Option<WorkspaceId>) {
        self.free += 1;
        if let Some(taken) = self.taken.get_mut(&workspace) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(&workspace);
            }
        }
    }

    /// Whose turn is next.
    fn next(&mut self) -> Option<WaitingTurn> {
        self.waiting.retain(|waiting| !waiting.turn.is_closed());
        let taken = |waiting: &WaitingTurn| self.taken.get(&waiting.workspace).copied().unwrap_or(0);
        // The first of several that have as few.
        let (next, _) = self.waiting.iter().enumerate().min_by_key(|(_, waiting)| taken(waiting))?;
        self.waiting.remove(next)
    }
}

impl Drop for WorkTurn {
    fn drop(&mut self) {
        let granted = {
            let mut queue = self.queue.lock();
            queue.release(self.workspace);
            queue.next().map(|next| (queue.grant(next.workspace, &self.queue), next.turn))
        };
        if let Some((turn, waiting)) = granted {
            // Whoever stopped waiting at this moment gives the turn on, as it is dropped here, without the lock.
            let _ = waiting.send(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt as _;

    use super::*;

    fn workspace() -> WorkspaceId {
        WorkspaceId::from(uuid::Uuid::now_v7())
    }

    #[tokio::test]
    async fn one_alone_has_all_turns_and_whoever_comes_has_the_next() {
        let (turns, one, other) = (WorkTurns::new(2), Some(workspace()), Some(workspace()));
        let first = turns.take(one).now_or_never().unwrap();
        let second = turns.take(one).now_or_never().unwrap();
        let mut more: Vec<_> = (0..100).map(|_| Box::pin(turns.take(one))).collect();
        assert!(more.iter_mut().all(|turn| turn.now_or_never().is_none()));
        let mut newcomer = pin!(turns.take(other));
        assert!((&mut newcomer).now_or_never().is_none());
        drop(first);
        assert!(more[0].as_mut().now_or_never().is_none(), "others are before it");
        let newcomer = newcomer.now_or_never().expect("the turn that was given up");
        drop(second);
        let third = more.remove(0).now_or_never().expect("the longest of its own line");
        drop(newcomer);
        assert!(more.remove(0).now_or_never().is_some(), "nobody else waits");
        drop(third);
    }

    #[tokio::test]
    async fn whoever_stops_waiting_is_passed_over() {
        let (turns, one) = (WorkTurns::new(1), Some(workspace()));
        let first = turns.take(one).now_or_never().unwrap();
        let mut gone = Box::pin(turns.take(Some(workspace())));
        let mut next = pin!(turns.take(one));
        assert!(gone.as_mut().now_or_never().is_none());
        assert!((&mut next).now_or_never().is_none());
        drop(gone);
        drop(first);
        drop(next.now_or_never().expect("the turn"));

        // A turn that was granted and never seen is free again, too.
        let first = turns.take(one).now_or_never().unwrap();
        let mut gone = Box::pin(turns.take(one));
        assert!(gone.as_mut().now_or_never().is_none());
        drop(first);
        drop(gone);
        assert!(turns.take(None).now_or_never().is_some());
    }
}
