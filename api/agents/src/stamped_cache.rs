//! What a process remembers of rows, in a bounded number of bytes, each with the stamp of the moment at which it was read.

use std::{hash::Hash, num::NonZeroUsize, sync::Arc};

use lectern_shared::cache_budget::CacheBudget;
use lru::LruCache;

/// Rows of which something is remembered.
const ENTRIES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);

/// What was used last, by whose it is. `S` is the stamp: what differs once something else would be read.
pub(crate) struct StampedCache<K: Hash + Eq, S, V: ?Sized> {
    entries: LruCache<K, StampedEntry<S, V>>,
    /// What they take together.
    bytes: u64,
    /// The most bytes.
    capacity: u64,
    /// The most bytes of one entry: without it, what is one workspace's could make the process forget everybody else's.
    largest: u64,
    budget: CacheBudget,
}

struct StampedEntry<S, V: ?Sized> {
    stamp: S,
    value: Arc<V>,
    bytes: u64,
}

impl<K: Hash + Eq, S: Copy, V: ?Sized> StampedCache<K, S, V> {
    /// At most `capacity` bytes, and a part of one in `share` of a single entry's.
    pub(crate) fn new(budget: &CacheBudget, capacity: u64, share: u64) -> Self {
        Self {
            entries: LruCache::new(ENTRIES),
            bytes: 0,
            capacity,
            largest: capacity / share,
            budget: budget.clone(),
        }
    }

    /// The most bytes of one entry.
    pub(crate) fn largest(&self) -> u64 {
        self.largest
    }

    /// What is remembered under a key, and its stamp.
    pub(crate) fn get(&mut self, key: &K) -> Option<(S, Arc<V>)> {
        self.entries.get(key).map(|entry| (entry.stamp, Arc::clone(&entry.value)))
    }

    /// Remembers this under a key instead of what it was, if it is not too large. What was used least recently makes room.
    pub(crate) fn put(&mut self, key: K, stamp: S, value: Arc<V>, bytes: u64) {
        if let Some(former) = self.entries.pop(&key) {
            self.forgotten(&former);
        }
        if bytes > self.largest {
            return;
        }
        self.bytes += bytes;
        self.budget.reserve(bytes);
        if let Some((_, evicted)) = self.entries.push(key, StampedEntry { stamp, value, bytes }) {
            self.forgotten(&evicted);
        }
        while self.bytes > self.capacity {
            let Some((_, evicted)) = self.entries.pop_lru() else { break };
            self.forgotten(&evicted);
        }
    }

    fn forgotten(&mut self, entry: &StampedEntry<S, V>) {
        self.bytes -= entry.bytes;
        self.budget.release(entry.bytes);
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::ids::WorkspaceId;

    use super::*;

    #[test]
    fn what_was_used_least_recently_makes_room_and_what_is_too_large_is_not_remembered() {
        let budget = CacheBudget::new(1_000);
        let mut remembered = StampedCache::new(&budget, 100, 2);
        let [a, b, c, large] = [(); 4].map(|()| WorkspaceId::generate());
        for workspace in [a, b] {
            remembered.put(workspace, 1, Arc::new("known"), 40);
        }
        assert_eq!((budget.taken(), budget.for_index()), (80, 920));
        remembered.put(large, 1, Arc::new("too large"), 51);
        assert!(
            remembered.get(&large).is_none() && remembered.get(&b).is_some() && remembered.get(&a).is_some()
        );
        remembered.put(c, 1, Arc::new("known"), 40);
        assert!(remembered.get(&b).is_none(), "a was used after it");
        assert_eq!(remembered.get(&a).map(|(epoch, value)| (epoch, *value)), Some((1, "known")));
        assert_eq!(budget.taken(), 80);
        // What takes the place of something gives its bytes back, even when it is too large itself.
        remembered.put(a, 2, Arc::new("smaller"), 10);
        assert_eq!((remembered.get(&a).map(|(epoch, _)| epoch), budget.taken()), (Some(2), 50));
        remembered.put(a, 3, Arc::new("too large"), 99);
        assert_eq!((remembered.get(&a).is_none(), budget.taken()), (true, 40));
    }

    #[test]
    fn no_more_entries_are_remembered_than_there_are_places_for() {
        let budget = CacheBudget::new(1 << 20);
        let mut remembered = StampedCache::new(&budget, 1 << 20, 2);
        for _ in 0..ENTRIES.get() + 10 {
            remembered.put(WorkspaceId::generate(), 1, Arc::new(()), 3);
        }
        assert_eq!(budget.taken(), 3 * ENTRIES.get() as u64);
    }
}
