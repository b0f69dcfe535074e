//! The pages of a site that a run has come across, within bounds of memory.

use std::collections::{HashSet, VecDeque};

use url::Url;

/// Addresses that are to be visited, for each document that there may be.
pub(super) const LISTED_EACH: usize = 10;
/// The same, however few documents there may be.
const LEAST: usize = 500;
/// Bytes of the addresses that a run remembers, so that it comes to none twice, however few documents there may be.
const SEEN_BYTES: usize = 32 << 20;
/// The same, for each document that there may be.
const SEEN_BYTES_EACH: usize = 256;
/// What an address takes besides its letters.
const AROUND_ADDRESS: usize = 64;

/// The pages that a run has come across. However many links a site has, the memory for it is bounded.
pub(super) struct Frontier {
    /// Those that are to be visited, with the number of links that led there.
    pub(super) pages: VecDeque<(Url, u32)>,
    /// All that ever were.
    seen: HashSet<String>,
    /// Pages that are to be visited at once, at most.
    most: usize,
    /// Bytes that more addresses may take.
    room: usize,
}

impl Frontier {
    /// Where so many documents may be found.
    pub(super) fn for_documents(documents: usize) -> Self {
        Self {
            pages: VecDeque::new(),
            seen: HashSet::new(),
            most: documents.saturating_mul(LISTED_EACH).max(LEAST),
            room: documents.saturating_mul(SEEN_BYTES_EACH).max(SEEN_BYTES),
        }
    }

    pub(super) fn has_seen(&self, page: &Url) -> bool {
        self.seen.contains(page.as_str())
    }

    /// Takes up a page that was not seen before; false when there is no room for it.
    pub(super) fn push(&mut self, page: Url, depth: u32) -> bool {
        let left = self.room.checked_sub(page.as_str().len() + AROUND_ADDRESS);
        let Some(left) = left.filter(|_| self.pages.len() < self.most) else { return false };
        self.room = left;
        self.seen.insert(page.to_string());
        self.pages.push_back((page, depth));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_site_without_end_takes_of_memory_has_one() {
        const LONG: usize = 8_000;
        let page =
            |number: usize| Url::parse(&format!("https://a.example/{number}/{}", "x".repeat(LONG))).unwrap();
        let mut frontier = Frontier::for_documents(10);
        // Each is visited at once, so that none waits.
        let taken = (0..10_000).take_while(|&number| {
            let is_taken = frontier.push(page(number), 1);
            frontier.pages.clear();
            is_taken
        });
        let taken = taken.count();
        assert!((SEEN_BYTES / LONG / 2..SEEN_BYTES / LONG).contains(&taken), "{taken}");
        assert!(frontier.has_seen(&page(0)) && !frontier.has_seen(&page(taken)));
        assert!(!frontier.push(page(taken + 1), 1), "there is none for others either");

        // Where there may be many documents there is room for as many addresses as are usual.
        let mut frontier = Frontier::for_documents(1_000_000);
        assert_eq!(frontier.room, 256_000_000);
        assert!(frontier.push(page(0), 1) && frontier.has_seen(&page(0)));
    }

    #[test]
    fn only_so_many_pages_wait_to_be_visited() {
        let mut frontier = Frontier::for_documents(100);
        let page = |number: usize| Url::parse(&format!("https://a.example/{number}")).unwrap();
        assert!((0..1_000).all(|number| frontier.push(page(number), 1)));
        assert!(!frontier.push(page(1_000), 1));
        frontier.pages.pop_front();
        assert!(frontier.push(page(1_000), 1));
    }
}
