//! Images that were drawn, the latest used of them.

use std::sync::Arc;

use bytes::Bytes;
use lectern_parse::protocol::ImageFormat;
use lectern_shared::model::page::PageBox;
use lru::LruCache;
use parking_lot::Mutex;

/// What an entry takes besides its image, roughly, in bytes.
const ENTRY: u64 = 512;

/// A page as it was drawn. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct DrawnPage {
    pub(crate) format: ImageFormat,
    pub(crate) image: Bytes,
    /// What is marked, in points.
    pub(crate) boxes: Arc<[PageBox]>,
}

impl DrawnPage {
    fn bytes(&self) -> u64 {
        ENTRY + (self.image.len() + size_of_val::<[PageBox]>(&self.boxes)) as u64
    }
}

/// Drawn pages within so many bytes. Cheap to clone; clones share the same.
#[derive(Clone)]
pub(super) struct DrawingCache {
    drawn: Arc<Mutex<DrawnPages>>,
    most: u64,
}

struct DrawnPages {
    by_tag: LruCache<String, DrawnPage>,
    bytes: u64,
}

impl DrawingCache {
    pub(super) fn new(most: u64) -> Self {
        let drawn = DrawnPages { by_tag: LruCache::unbounded(), bytes: 0 };
        Self { drawn: Arc::new(Mutex::new(drawn)), most }
    }

    pub(super) fn get(&self, tag: &str) -> Option<DrawnPage> {
        self.drawn.lock().by_tag.get(tag).cloned()
    }

    pub(super) fn put(&self, tag: String, page: DrawnPage) {
        let bytes = page.bytes();
        if bytes > self.most {
            return;
        }
        let mut drawn = self.drawn.lock();
        drawn.bytes += bytes;
        if let Some(former) = drawn.by_tag.put(tag, page) {
            drawn.bytes -= former.bytes();
        }
        while drawn.bytes > self.most {
            let Some((_, oldest)) = drawn.by_tag.pop_lru() else { break };
            drawn.bytes -= oldest.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(bytes: usize) -> DrawnPage {
        DrawnPage { format: ImageFormat::Png, image: vec![0; bytes].into(), boxes: Arc::new([]) }
    }

    #[test]
    fn what_was_not_looked_at_for_longest_goes_first_and_what_is_too_large_is_not_kept() {
        let cache = DrawingCache::new(4_000);
        for name in ["a", "b"] {
            cache.put(name.to_owned(), page(1_000));
        }
        assert!(cache.get("a").is_some());
        cache.put("c".to_owned(), page(1_000));
        assert!(cache.get("b").is_none() && cache.get("a").is_some() && cache.get("c").is_some());
        cache.put("large".to_owned(), page(5_000));
        assert!(cache.get("large").is_none() && cache.get("a").is_some());
        // The same again takes no more.
        for _ in 0..10 {
            cache.put("a".to_owned(), page(1_000));
        }
        assert!(cache.get("c").is_some());
    }
}
