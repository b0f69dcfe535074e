//! What filters were found to say of a set of documents. A page or a program searches the whole workspace with the same few of them again and
//! again, and until a document changes none has to be held against each document a second time. What is found of a part of the documents
//! alone, such as an agent's, is not remembered.

use std::sync::Arc;

use lectern_shared::secrets::sha256;
use parking_lot::Mutex;

use super::MetadataFilter;

/// Filters of which this is remembered for one set.
const REMEMBERED: usize = 4;

/// The SHA-256 of a filter, which may be long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilterDigest([u8; 32]);

impl FilterDigest {
    /// None of a filter that cannot be written, of which then nothing is remembered.
    pub(super) fn of(filter: &MetadataFilter) -> Option<Self> {
        serde_json::to_vec(filter).ok().map(|filter| Self(sha256(&filter)))
    }
}

/// For each document of a set whether it meets a filter, for those filters that were asked for last.
#[derive(Debug, Default)]
pub(super) struct JudgedFilters {
    /// The one that was asked for last stands last.
    latest: Mutex<Vec<(FilterDigest, Arc<[bool]>)>>,
}

impl JudgedFilters {
    /// The bytes that all of them take for so many documents.
    pub(super) const fn bytes(documents: usize) -> usize {
        REMEMBERED * (documents + size_of::<(FilterDigest, Arc<[bool]>)>() + 2 * size_of::<usize>())
    }

    /// What is remembered of a filter.
    pub(super) fn get(&self, filter: FilterDigest) -> Option<Arc<[bool]>> {
        let mut latest = self.latest.lock();
        let place = latest.iter().position(|(known, _)| *known == filter)?;
        latest[place..].rotate_left(1);
        latest.last().map(|(_, met)| Arc::clone(met))
    }

    /// Remembers this instead of what was asked for the longest time ago.
    pub(super) fn put(&self, filter: FilterDigest, met: Arc<[bool]>) {
        let mut latest = self.latest.lock();
        // Another search may have found out the same meanwhile.
        latest.retain(|(known, _)| *known != filter);
        if latest.len() == REMEMBERED {
            latest.remove(0);
        }
        latest.push((filter, met));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::search::{MetadataCondition, MetadataTest};

    fn digest(number: usize) -> FilterDigest {
        let test = MetadataTest::AnyOf(vec![json!(number)]);
        let filter = MetadataFilter::Condition(MetadataCondition { key: "number".to_owned(), test });
        FilterDigest::of(&filter).unwrap()
    }

    #[test]
    fn of_each_filter_is_told_what_it_says_and_the_last_ones_stay() {
        let judged = JudgedFilters::default();
        for number in 0..REMEMBERED {
            judged.put(digest(number), [number == 2].into());
        }
        assert_eq!(judged.get(digest(2)).as_deref(), Some(&[true][..]));
        assert_eq!(judged.get(digest(0)).as_deref(), Some(&[false][..]), "now it is the last one");
        judged.put(digest(REMEMBERED), [false].into());
        judged.put(digest(REMEMBERED), [true].into());
        assert!(judged.get(digest(1)).is_none(), "it was asked for the longest time ago");
        assert!([0, 2, 3].iter().all(|kept| judged.get(digest(*kept)).is_some()));
        assert_eq!(judged.get(digest(REMEMBERED)).as_deref(), Some(&[true][..]));
    }
}
