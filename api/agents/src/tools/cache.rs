//! What was learnt about tools from outside, for a while.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use lectern_shared::{clock::Timestamp, ids::ToolId, model::tool::Tool};
use lru::LruCache;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::ToolFunction;

/// Tools that are remembered, and most bytes that what is known of them may hold.
const ENTRIES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);
const BYTES: usize = 32 * 1024 * 1024;
/// For how long. A service that offers something new is noticed after that.
const KEPT: Duration = Duration::from_mins(5);
/// About what one value of a JSON tree takes beside its text, in bytes.
const VALUE: usize = 100;

/// A bounded memory by tool. A tool that its owner changes is another one.
pub(super) struct ToolCache<T> {
    entries: Mutex<CacheEntries<T>>,
    kept: Duration,
}

type ToolCacheKey = (ToolId, Timestamp);

struct CacheEntries<T> {
    all: LruCache<ToolCacheKey, CacheEntry<T>>,
    /// What all of them hold.
    bytes: usize,
}

struct CacheEntry<T> {
    since: Instant,
    bytes: usize,
    value: Arc<T>,
}

impl<T> CacheEntries<T> {
    fn pop(&mut self, key: &ToolCacheKey) {
        let gone = self.all.pop(key);
        self.bytes -= gone.map_or(0, |entry| entry.bytes);
    }

    fn push(&mut self, key: ToolCacheKey, entry: CacheEntry<T>) {
        self.bytes += entry.bytes;
        let gone = self.all.push(key, entry);
        self.bytes -= gone.map_or(0, |(_, entry)| entry.bytes);
        while self.bytes > BYTES {
            let Some((_, oldest)) = self.all.pop_lru() else { return };
            self.bytes -= oldest.bytes;
        }
    }
}

impl<T> ToolCache<T> {
    pub(super) fn new() -> Self {
        Self::keeping(KEPT)
    }

    /// One that remembers for so long.
    pub(super) fn keeping(kept: Duration) -> Self {
        Self { entries: Mutex::new(CacheEntries { all: LruCache::new(ENTRIES), bytes: 0 }), kept }
    }

    pub(super) fn get(&self, tool: &Tool) -> Option<Arc<T>> {
        let mut entries = self.entries.lock();
        let key = (tool.id, tool.updated_at);
        let entry = entries.all.get(&key)?;
        if entry.since.elapsed() < self.kept {
            return Some(Arc::clone(&entry.value));
        }
        entries.pop(&key);
        None
    }

    pub(super) fn forget(&self, tool: &Tool) {
        self.entries.lock().pop(&(tool.id, tool.updated_at));
    }

    /// Remembers something that holds so many bytes.
    pub(super) fn put(&self, tool: &Tool, value: T, bytes: usize) -> Arc<T> {
        let value = Arc::new(value);
        let entry = CacheEntry { since: Instant::now(), bytes, value: Arc::clone(&value) };
        self.entries.lock().push((tool.id, tool.updated_at), entry);
        value
    }
}

/// About how many bytes functions hold.
pub(super) fn held(functions: &[ToolFunction]) -> usize {
    let of = |function: &ToolFunction| {
        let spec = &function.spec;
        spec.name.len() + spec.description.len() + tree(&spec.parameters)
    };
    functions.iter().map(of).sum()
}

fn tree(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(tree).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + tree(value)).sum(),
    };
    VALUE + inside
}

#[cfg(test)]
mod tests {
    use lectern_shared::model::tool::ToolType;
    use serde_json::json;

    use super::{super::tests::stored, *};

    fn tools(count: usize) -> Vec<Tool> {
        (0..count).map(|_| stored(ToolType::Mcp, "My tool", json!({}))).collect()
    }

    #[test]
    fn many_small_tools_do_not_drive_each_other_out() {
        let (cache, tools) = (ToolCache::new(), tools(100));
        for tool in &tools {
            cache.put(tool, (), 1_000);
        }
        assert!(tools.iter().all(|tool| cache.get(tool).is_some()));
    }

    #[test]
    fn large_ones_drive_out_what_was_not_used_and_the_count_of_bytes_is_right() {
        let (cache, tools) = (ToolCache::new(), tools(10));
        for tool in &tools {
            cache.put(tool, (), BYTES / 4);
            assert!(cache.get(&tools[0]).is_some(), "it is used all the time");
        }
        let left = |cache: &ToolCache<()>| tools.iter().filter(|tool| cache.get(tool).is_some()).count();
        assert_eq!(left(&cache), 4);
        cache.put(&tools[0], (), 10);
        cache.put(&tools[0], (), 10);
        for tool in &tools[1..] {
            cache.forget(tool);
        }
        assert_eq!((left(&cache), cache.entries.lock().bytes), (1, 10));
        cache.put(&tools[1], (), BYTES + 1);
        assert!(cache.get(&tools[1]).is_none());
    }
}
