//! What many wait for news of, such as credentials and ingestions. One task looks for the news of all that is waited for, and only while
//! somebody waits: what is asked of the database does not grow with those who do.

use std::{collections::HashMap, hash::Hash, mem, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

/// The keys of which somebody waits for news. Cheap to clone; clones share them.
pub(crate) struct WatchList<K, N>(Arc<Mutex<WatchedKeys<K, N>>>);

struct WatchedKeys<K, N> {
    entries: HashMap<K, WatchedKey<N>>,
    /// Whether there is a task that looks for news.
    is_watched: bool,
}

struct WatchedKey<N> {
    holders: usize,
    news: watch::Sender<N>,
}

/// Somebody who waits for news of a key, until this is dropped.
pub(crate) struct NewsSubscription<K: Copy + Eq + Hash, N> {
    list: WatchList<K, N>,
    key: K,
    /// The last news of the key. Its sender is there for as long as this is.
    pub(crate) news: watch::Receiver<N>,
}

impl<K, N> Clone for WatchList<K, N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, N> Default for WatchList<K, N> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(WatchedKeys { entries: HashMap::new(), is_watched: false })))
    }
}

impl<K: Copy + Eq + Hash, N: Default> WatchList<K, N> {
    /// Waits for news of a key from now on. Where no task looks for them, `watch` has to begin one, which goes on for as long as there are
    /// [keys](WatchList::keys).
    pub(crate) fn subscribe(&self, key: K, watch: impl FnOnce()) -> NewsSubscription<K, N> {
        let mut watched = self.0.lock();
        let entry = watched
            .entries
            .entry(key)
            .or_insert_with(|| WatchedKey { holders: 0, news: watch::Sender::new(N::default()) });
        entry.holders += 1;
        let news = entry.news.subscribe();
        let is_watched = mem::replace(&mut watched.is_watched, true);
        drop(watched);
        if !is_watched {
            watch();
        }
        NewsSubscription { list: self.clone(), key, news }
    }

    /// What somebody waits for. None when nobody does: whoever looked for news ends then, and the next one who waits begins another.
    pub(crate) fn keys(&self) -> Option<Vec<K>> {
        let mut watched = self.0.lock();
        if watched.entries.is_empty() {
            watched.is_watched = false;
            return None;
        }
        Some(watched.entries.keys().copied().collect())
    }

    /// Tells these news to whoever still waits for them.
    pub(crate) fn tell(&self, news: impl IntoIterator<Item = (K, N)>) {
        let watched = self.0.lock();
        for (key, news) in news {
            if let Some(entry) = watched.entries.get(&key) {
                entry.news.send_replace(news);
            }
        }
    }
}

impl<K: Copy + Eq + Hash, N> Drop for NewsSubscription<K, N> {
    fn drop(&mut self) {
        let mut watched = self.list.0.lock();
        if let Some(entry) = watched.entries.get_mut(&self.key) {
            entry.holders -= 1;
            if entry.holders == 0 {
                watched.entries.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn one_task_is_begun_however_many_wait_and_another_one_once_nobody_did() {
        let (list, begun) = (WatchList::<&str, u32>::default(), Cell::new(0));
        let subscribe = |key| list.subscribe(key, || begun.set(begun.get() + 1));
        let first = subscribe("a");
        let others = [subscribe("a"), subscribe("b")];
        assert_eq!(begun.get(), 1);
        drop(first);
        let mut keys = list.keys().unwrap();
        keys.sort_unstable();
        assert_eq!(keys, ["a", "b"], "somebody waits for either still");
        drop(others);
        // The task has not seen yet that nobody waits, and sees whoever comes until then.
        let late = subscribe("c");
        assert_eq!((begun.get(), list.keys()), (1, Some(vec!["c"])));
        drop(late);
        assert_eq!(list.keys(), None);
        let _next = subscribe("a");
        assert_eq!(begun.get(), 2);
    }

    #[test]
    fn news_reach_everybody_who_waits_for_them_and_nobody_else() {
        let list = WatchList::<&str, u32>::default();
        let mut waiting = ["a", "a", "b"].map(|key| list.subscribe(key, || {}));
        list.tell([("a", 7), ("nobody's", 8)]);
        let told =
            waiting.each_mut().map(|one| (one.news.has_changed().unwrap(), *one.news.borrow_and_update()));
        assert_eq!(told, [(true, 7), (true, 7), (false, 0)]);
        list.tell([("a", 7)]);
        assert!(waiting[0].news.has_changed().unwrap(), "that it is the same is news too");
    }
}
