//! What was learnt about tools from outside, for a while.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use lectern_shared::{clock::Timestamp, ids::ToolId, model::tool::Tool};
use lru::LruCache;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Tools that are remembered.
const ENTRIES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(31);
/// For how long. A service that offers something new is noticed after that.
const KEPT: Duration = Duration::from_mins(5);

/// A bounded memory by tool. A tool that its owner changes is another one.
pub(super) struct ToolCache<T>(Mutex<LruCache<ToolCacheKey, (Instant, Arc<T>)>>);

type ToolCacheKey = (ToolId, Timestamp);

impl<T> ToolCache<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(LruCache::new(ENTRIES)))
    }

    pub(super) fn get(&self, tool: &Tool) -> Option<Arc<T>> {
        let mut entries = self.0.lock();
        let key = (tool.id, tool.updated_at);
        let (since, value) = entries.get(&key)?;
        if since.elapsed() < KEPT {
            return Some(Arc::clone(value));
        }
        entries.pop(&key);
        None
    }

    pub(super) fn put(&self, tool: &Tool, value: T) -> Arc<T> {
        let value = Arc::new(value);
        self.0.lock().put((tool.id, tool.updated_at), (Instant::now(), Arc::clone(&value)));
        value
    }
}
