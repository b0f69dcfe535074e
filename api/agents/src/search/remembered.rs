//! What a process remembers of its workspaces, in a bounded number of bytes.

use std::{num::NonZeroUsize, sync::Arc};

use lectern_shared::{cache_budget::CacheBudget, ids::WorkspaceId};
use lru::LruCache;

/// Workspaces of whom something is remembered.
const USERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);

/// What was used last, each with the epoch at which it was read.
pub(super) struct WorkspaceCache<V> {
    workspaces: LruCache<WorkspaceId, WorkspaceCacheEntry<V>>,
    /// What they take together.
    bytes: u64,
    /// The most bytes.
    capacity: u64,
    /// The most bytes of one workspace: without it, the documents of one could make the process forget everybody else's.
    largest: u64,
    budget: CacheBudget,
}

struct WorkspaceCacheEntry<V> {
    epoch: i64,
    value: Arc<V>,
    bytes: u64,
}

impl<V> WorkspaceCache<V> {
    /// At most `capacity` bytes, and a part of one in `share` of a single workspace's.
    pub(super) fn new(budget: &CacheBudget, capacity: u64, share: u64) -> Self {
        Self {
            workspaces: LruCache::new(USERS),
            bytes: 0,
            capacity,
            largest: capacity / share,
            budget: budget.clone(),
        }
    }

    /// The most bytes of one workspace.
    pub(super) fn largest(&self) -> u64 {
        self.largest
    }

    /// What is remembered of a workspace, and of which epoch it is.
    pub(super) fn get(&mut self, workspace: WorkspaceId) -> Option<(i64, Arc<V>)> {
        self.workspaces.get(&workspace).map(|entry| (entry.epoch, Arc::clone(&entry.value)))
    }

    /// Remembers this of a workspace instead of what it was, if it is not too large. What was used least recently makes room.
    pub(super) fn put(&mut self, workspace: WorkspaceId, epoch: i64, value: Arc<V>, bytes: u64) {
        if let Some(former) = self.workspaces.pop(&workspace) {
            self.forgotten(&former);
        }
        if bytes > self.largest {
            return;
        }
        self.bytes += bytes;
        self.budget.reserve(bytes);
        if let Some((_, evicted)) =
            self.workspaces.push(workspace, WorkspaceCacheEntry { epoch, value, bytes })
        {
            self.forgotten(&evicted);
        }
        while self.bytes > self.capacity {
            let Some((_, evicted)) = self.workspaces.pop_lru() else { break };
            self.forgotten(&evicted);
        }
    }

    fn forgotten(&mut self, entry: &WorkspaceCacheEntry<V>) {
        self.bytes -= entry.bytes;
        self.budget.release(entry.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_least_recently_makes_room_and_what_is_too_large_is_not_remembered() {
        let budget = CacheBudget::new(1_000);
        let mut remembered = WorkspaceCache::new(&budget, 100, 2);
        let [a, b, c, large] = [(); 4].map(|()| WorkspaceId::generate());
        for workspace in [a, b] {
            remembered.put(workspace, 1, Arc::new("known"), 40);
        }
        assert_eq!((budget.taken(), budget.for_index()), (80, 920));
        remembered.put(large, 1, Arc::new("too large"), 51);
        assert!(
            remembered.get(large).is_none() && remembered.get(b).is_some() && remembered.get(a).is_some()
        );
        remembered.put(c, 1, Arc::new("known"), 40);
        assert!(remembered.get(b).is_none(), "a was used after it");
        assert_eq!(remembered.get(a).map(|(epoch, value)| (epoch, *value)), Some((1, "known")));
        assert_eq!(budget.taken(), 80);
        // What takes the place of something gives its bytes back, even when it is too large itself.
        remembered.put(a, 2, Arc::new("smaller"), 10);
        assert_eq!((remembered.get(a).map(|(epoch, _)| epoch), budget.taken()), (Some(2), 50));
        remembered.put(a, 3, Arc::new("too large"), 99);
        assert_eq!((remembered.get(a).is_none(), budget.taken()), (true, 40));
    }

    #[test]
    fn no_more_users_are_remembered_than_there_are_places_for() {
        let budget = CacheBudget::new(1 << 20);
        let mut remembered = WorkspaceCache::new(&budget, 1 << 20, 2);
        for _ in 0..USERS.get() + 10 {
            remembered.put(WorkspaceId::generate(), 1, Arc::new(()), 3);
        }
        assert_eq!(budget.taken(), 3 * USERS.get() as u64);
    }
}
