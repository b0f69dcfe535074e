//! The memory that what is cached for searches may take together.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Of this part of the whole the lists of what can be searched take one at most. The rest is the index's, and so is what the lists
/// do not take.
const LISTS: u64 = 4;

/// A number of bytes that the embedded index and the lists of searchable documents share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CacheBudget {
    whole: u64,
    /// What the lists take now.
    lists: Arc<AtomicU64>,
}

impl CacheBudget {
    /// So many bytes.
    pub fn new(whole: u64) -> Self {
        Self { whole, lists: Arc::default() }
    }

    /// What the index may take now.
    pub fn for_index(&self) -> u64 {
        self.whole.saturating_sub(self.lists.load(Ordering::Relaxed))
    }

    /// The most that the lists may take together.
    pub fn for_lists(&self) -> u64 {
        self.whole / LISTS
    }

    /// Lists take so many bytes more.
    pub fn reserve(&self, bytes: u64) {
        self.lists.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Lists take so many bytes less.
    pub fn release(&self, bytes: u64) {
        self.lists.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What the lists take now.
    pub fn taken(&self) -> u64 {
        self.lists.load(Ordering::Relaxed)
    }
}
