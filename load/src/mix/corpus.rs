//! Which documents there are, and which there must not be any more.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::random::SeededRandom;

/// Removed documents are remembered for so long: longer than any request may take.
const MEMORY: Duration = Duration::from_mins(5);

/// A document that can be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PublishedDocument {
    /// Its number in the library.
    pub(super) number: u64,
    /// Its id in the service.
    pub(super) id: String,
}

/// What may be said of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentVisibility {
    /// It has to be found.
    Published,
    /// It may be found, or not: it is being ingested or removed, or was removed after the question.
    Between,
    /// It must not be found.
    Removed,
}

#[derive(Debug)]
struct CorpusEntry {
    id: Option<String>,
    published: bool,
    leaving: bool,
    /// How often its metadata was changed.
    revision: u64,
    /// Its metadata is being changed.
    busy: bool,
}

#[derive(Default)]
struct CorpusState {
    next: u64,
    /// In the order of their numbers.
    there: BTreeMap<u64, CorpusEntry>,
    /// Those that can be searched, the oldest first.
    published: VecDeque<u64>,
    removed: VecDeque<(Instant, u64)>,
    when_removed: HashMap<u64, Instant>,
}

/// The documents of a run, shared by all tasks.
#[derive(Default)]
pub(super) struct Corpus(Mutex<CorpusState>);

impl Corpus {
    /// The number of a document that is about to be sent.
    pub(super) fn begin(&self) -> u64 {
        let mut inner = self.0.lock();
        let number = inner.next;
        inner.next += 1;
        let entry = CorpusEntry { id: None, published: false, leaving: false, revision: 0, busy: false };
        inner.there.insert(number, entry);
        number
    }

    /// The service has taken a document.
    pub(super) fn taken(&self, number: u64, id: &str) {
        if let Some(entry) = self.0.lock().there.get_mut(&number) {
            entry.id = Some(id.to_owned());
        }
    }

    /// The service did not take a document, or it is not known whether it did.
    pub(super) fn refused(&self, number: u64) {
        self.0.lock().there.remove(&number);
    }

    /// A document can be searched.
    pub(super) fn publish(&self, number: u64) {
        let mut inner = self.0.lock();
        if let Some(entry) = inner.there.get_mut(&number) {
            entry.published = true;
            inner.published.push_back(number);
        }
    }

    /// Any document that can be searched.
    pub(super) fn any(&self, random: &mut SeededRandom) -> Option<PublishedDocument> {
        let inner = self.0.lock();
        let number = *inner.published.get(random.below(inner.published.len()))?;
        let id = inner.there.get(&number)?.id.clone()?;
        Some(PublishedDocument { number, id })
    }

    /// Any document to change, and how often it was changed with this time. Nobody else gets it until it is
    /// [`changed`](Self::changed).
    pub(super) fn any_to_change(&self, random: &mut SeededRandom) -> Option<(PublishedDocument, u64)> {
        let chosen = self.any(random)?;
        let mut inner = self.0.lock();
        let entry = inner.there.get_mut(&chosen.number)?;
        if entry.busy || entry.leaving {
            return None;
        }
        entry.busy = true;
        entry.revision += 1;
        Some((chosen, entry.revision))
    }

    /// A document's change is over, whatever became of it.
    pub(super) fn changed(&self, number: u64) {
        if let Some(entry) = self.0.lock().there.get_mut(&number) {
            entry.busy = false;
        }
    }

    /// The oldest document, if there are more than `keep`. From now on it is between being there and not.
    pub(super) fn oldest(&self, keep: usize) -> Option<PublishedDocument> {
        let mut inner = self.0.lock();
        if inner.published.len() <= keep {
            return None;
        }
        // One that is being changed would be missed by whoever changes it.
        let idle = |number: &u64| inner.there.get(number).is_some_and(|entry| !entry.busy);
        let place = inner.published.iter().position(idle)?;
        let number = inner.published.remove(place)?;
        let entry = inner.there.get_mut(&number)?;
        entry.leaving = true;
        Some(PublishedDocument { number, id: entry.id.clone()? })
    }

    /// The service has said that a document is removed.
    pub(super) fn removed(&self, number: u64) {
        let now = Instant::now();
        let mut inner = self.0.lock();
        inner.there.remove(&number);
        inner.removed.push_back((now, number));
        inner.when_removed.insert(number, now);
        while let Some((when, number)) = inner.removed.front().copied()
            && now.duration_since(when) > MEMORY
        {
            inner.removed.pop_front();
            inner.when_removed.remove(&number);
        }
    }

    /// What an answer to a question of the time `asked` may say of a document.
    pub(super) fn standing(&self, number: u64, asked: Instant) -> DocumentVisibility {
        let inner = self.0.lock();
        match inner.there.get(&number) {
            Some(entry) if entry.published && !entry.leaving => DocumentVisibility::Published,
            Some(_) => DocumentVisibility::Between,
            None => match inner.when_removed.get(&number) {
                Some(when) if *when > asked => DocumentVisibility::Between,
                // Never sent, refused, or removed long ago.
                _ => DocumentVisibility::Removed,
            },
        }
    }

    /// How many documents the service has taken that cannot be searched yet.
    pub(super) fn unfinished(&self) -> usize {
        let inner = self.0.lock();
        inner.there.values().filter(|entry| entry.id.is_some() && !entry.published).count()
    }

    /// How many documents can be searched.
    pub(super) fn len(&self) -> usize {
        self.0.lock().published.len()
    }

    /// The ids of all that is there, and its numbers.
    pub(super) fn all(&self) -> Vec<PublishedDocument> {
        let inner = self.0.lock();
        let ids = inner.there.iter().filter_map(|(number, entry)| Some((*number, entry.id.clone()?)));
        ids.map(|(number, id)| PublishedDocument { number, id }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(count: u64) -> Corpus {
        let corpus = Corpus::default();
        for _ in 0..count {
            let number = corpus.begin();
            corpus.taken(number, &format!("id-{number}"));
            corpus.publish(number);
        }
        corpus
    }

    #[test]
    fn a_document_must_be_found_from_its_publication_to_its_removal() {
        let corpus = corpus(0);
        let asked = Instant::now();
        let number = corpus.begin();
        assert_eq!(corpus.standing(number, asked), DocumentVisibility::Between);
        corpus.taken(number, "id");
        assert_eq!(corpus.unfinished(), 1);
        corpus.publish(number);
        assert_eq!(corpus.standing(number, asked), DocumentVisibility::Published);
        assert_eq!(corpus.oldest(0).unwrap().id, "id");
        assert_eq!(corpus.standing(number, asked), DocumentVisibility::Between);
        corpus.removed(number);
        assert_eq!((corpus.len(), corpus.unfinished()), (0, 0));
        // Whoever asked before may have found it; whoever asks now must not.
        assert_eq!(corpus.standing(number, asked), DocumentVisibility::Between);
        assert_eq!(corpus.standing(number, Instant::now()), DocumentVisibility::Removed);
    }

    #[test]
    fn the_oldest_goes_first_and_only_when_there_are_too_many() {
        let corpus = corpus(3);
        assert_eq!(corpus.oldest(3), None);
        assert_eq!(corpus.oldest(2).unwrap().number, 0);
        assert_eq!(corpus.oldest(2), None);
        assert_eq!(corpus.oldest(0).unwrap().number, 1);
    }

    #[test]
    fn a_document_that_is_being_changed_is_left_to_whoever_changes_it() {
        let corpus = corpus(1);
        let mut random = SeededRandom::new(1);
        let (chosen, revision) = corpus.any_to_change(&mut random).unwrap();
        assert_eq!((chosen.number, revision), (0, 1));
        assert_eq!(corpus.any_to_change(&mut random), None);
        assert_eq!(corpus.oldest(0), None);
        corpus.changed(0);
        assert_eq!(corpus.any_to_change(&mut random).unwrap().1, 2);
    }

    #[test]
    fn what_was_never_there_must_not_be_found() {
        let corpus = corpus(1);
        assert_eq!(corpus.standing(9, Instant::now()), DocumentVisibility::Removed);
        let number = corpus.begin();
        corpus.refused(number);
        assert_eq!(corpus.standing(number, Instant::now()), DocumentVisibility::Removed);
    }
}
