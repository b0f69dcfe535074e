//! One read of the database for all who ask for the same meanwhile. What many requests at once need of the same row, as whose a token is
//! that a whole page of streams is opened with, is read twice instead of once for each: by the one that was first, and once more for those
//! who came while that read was under way.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Reads that are shared between those who ask for the same key. Cheap to clone; clones share them.
///
/// Whoever asks is never answered by a read that began before: what was gone when it asked is gone in the answer. Failures are shared
/// too, so that those who wait do not wait for one time-out after the other.
pub(crate) struct CoalescedReads<K, V>(Arc<Mutex<HashMap<K, Weak<LastRead<V>>>>>);

/// When the last read of a key began, and what it found. It is held by whoever reads.
type LastRead<V> = tokio::sync::Mutex<Option<(Instant, V)>>;

impl<K, V> Clone for CoalescedReads<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, V> Default for CoalescedReads<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash, V: Clone> CoalescedReads<K, V> {
    /// What `read` finds, or what another read found that began after this was called. A read ends with whoever began it; the next one
    /// begins anew then.
    pub(crate) async fn share(&self, key: K, read: impl Future<Output = V>) -> V {
        let asked = Instant::now();
        let shared = self.of(key);
        let mut last = shared.lock().await;
        if let Some((_, found)) = last.as_ref().filter(|(began, _)| *began > asked) {
            return found.clone();
        }
        let began = Instant::now();
        let found = read.await;
        // Nobody else has it, so nobody waits.
        if Arc::strong_count(&shared) > 1 {
            *last = Some((began, found.clone()));
        }
        found
    }

    fn of(&self, key: K) -> Arc<LastRead<V>> {
        let mut reads = self.0.lock();
        if let Some(shared) = reads.get(&key).and_then(Weak::upgrade) {
            return shared;
        }
        // Only what somebody asks for at the moment is remembered; looked through as seldom as the map grows.
        if reads.len() == reads.capacity() {
            reads.retain(|_, shared| shared.strong_count() > 0);
        }
        let shared = Arc::default();
        reads.insert(key, Arc::downgrade(&shared));
        shared
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::ready,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures::{future::join_all, poll};
    use tokio::sync::Semaphore;

    use super::*;

    /// Reads that are counted, each of which ends when it may.
    struct Rows {
        reads: CoalescedReads<&'static str, usize>,
        begun: AtomicUsize,
        may_end: Semaphore,
    }

    impl Rows {
        fn new() -> Self {
            Self { reads: CoalescedReads::default(), begun: AtomicUsize::new(0), may_end: Semaphore::new(0) }
        }

        async fn ask(&self, key: &'static str) -> usize {
            let read = async {
                let number = self.begun.fetch_add(1, Ordering::SeqCst);
                self.may_end.acquire().await.expect("it is never closed").forget();
                number
            };
            self.reads.share(key, read).await
        }

        fn begun(&self) -> usize {
            self.begun.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn those_who_come_during_a_read_share_the_next_one() {
        let rows = Rows::new();
        let mut asking: Vec<_> = (0..50).map(|_| Box::pin(rows.ask("a"))).collect();
        for one in &mut asking {
            assert!(poll!(one).is_pending());
        }
        assert_eq!(rows.begun(), 1);
        rows.may_end.add_permits(50);
        let answers = join_all(asking).await;
        // What the first one reads began before the others asked.
        assert_eq!((answers[0], &answers[1..]), (0, [1; 49].as_slice()));
        assert_eq!(rows.begun(), 2);
    }

    #[tokio::test]
    async fn each_key_is_read_for_itself() {
        let rows = Rows::new();
        let mut first = Box::pin(rows.ask("a"));
        let mut other = Box::pin(rows.ask("b"));
        assert!(poll!(&mut first).is_pending() && poll!(&mut other).is_pending());
        assert_eq!(rows.begun(), 2);
        rows.may_end.add_permits(2);
        assert_eq!((first.await, other.await), (0, 1));
    }

    #[tokio::test]
    async fn whoever_goes_away_while_it_reads_leaves_the_read_to_the_next() {
        let rows = Rows::new();
        let mut gone = Box::pin(rows.ask("a"));
        let mut staying = Box::pin(rows.ask("a"));
        assert!(poll!(&mut gone).is_pending() && poll!(&mut staying).is_pending());
        drop(gone);
        rows.may_end.add_permits(1);
        assert_eq!((staying.await, rows.begun()), (1, 2));
    }

    #[tokio::test]
    async fn what_nobody_asks_for_is_forgotten() {
        let reads = CoalescedReads::default();
        for key in 0..1_000 {
            reads.share(key, ready(())).await;
        }
        assert!(reads.0.lock().len() < 100, "{}", reads.0.lock().len());
    }
}
