//! The objects of a bucket's list that are new. They wait until the list has come to its end: only then is it known what it does not name
//! any more, and each of them may be that, moved.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
};

use object_store::ObjectMeta;

use super::vanished::MoveRule;

/// Objects whose looks are remembered, at most. In a bucket of more it is not clear what was moved.
const LOOKS: usize = 1 << 18;

/// What a bucket's list has named so far.
pub(super) struct ListedObjects {
    /// The keys of what is known and was not named yet.
    missing: HashSet<String>,
    /// Whether nothing was known before.
    is_first: bool,
    /// New objects, in the list's order.
    new: Vec<ObjectMeta>,
    /// How many of them wait, at most.
    most: usize,
    /// How many more there are.
    left_out: u64,
    /// Of how all of them look, and of how several do.
    looks: HashSet<u64>,
    shared: HashSet<u64>,
    hasher: RandomState,
}

impl ListedObjects {
    /// Of a bucket of which these keys are known, and so many documents may be made. As many more wait as are known, since each of them may
    /// be one of these.
    pub(super) fn of(known: HashSet<String>, documents: usize) -> Self {
        Self {
            is_first: known.is_empty(),
            most: documents.saturating_add(known.len()),
            missing: known,
            new: Vec::new(),
            left_out: 0,
            looks: HashSet::new(),
            shared: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Takes an object in that the list names, and gives it back if it need not wait.
    pub(super) fn admit(&mut self, object: ObjectMeta) -> Option<ObjectMeta> {
        if self.is_first {
            return Some(object);
        }
        let look = self.look(&object);
        if self.is_countless() {
            self.shared.clear();
        } else if !self.looks.insert(look) {
            self.shared.insert(look);
        }
        if self.missing.remove(object.location.as_ref()) {
            return Some(object);
        }
        if self.new.len() < self.most {
            self.new.push(object);
        } else {
            self.left_out += 1;
        }
        None
    }

    /// What is known and was not named, if there is something new that it may be.
    pub(super) fn missing(&mut self) -> Vec<String> {
        if self.new.is_empty() { Vec::new() } else { self.missing.drain().collect() }
    }

    /// The new objects, and how many more there are.
    pub(super) fn take_new(&mut self) -> (Vec<ObjectMeta>, u64) {
        (std::mem::take(&mut self.new), self.left_out)
    }

    /// What an object may be: of several that look alike it is not clear which one was moved, and which are copies.
    pub(super) fn rule(&self, object: &ObjectMeta) -> MoveRule {
        let is_unclear = self.is_countless() || self.shared.contains(&self.look(object));
        if is_unclear { MoveRule::Never } else { MoveRule::OnlyOne }
    }

    /// Whether the list is too long to know of all that it names how it looks.
    fn is_countless(&self) -> bool {
        self.looks.len() >= LOOKS
    }

    /// By what the list tells objects apart, but for their keys: their entity tags, or where it has none, their sizes.
    fn look(&self, object: &ObjectMeta) -> u64 {
        self.hasher.hash_one((object.e_tag.as_deref(), object.size))
    }
}

#[cfg(test)]
mod tests {
    use object_store::path::Path;

    use super::*;

    fn object(key: &str, tag: Option<&str>, size: u64) -> ObjectMeta {
        ObjectMeta {
            location: Path::from(key),
            last_modified: "2026-01-01T00:00:00Z".parse().unwrap(),
            size,
            e_tag: tag.map(str::to_owned),
            version: None,
        }
    }

    fn listed(known: &[&str], documents: usize, objects: &[ObjectMeta]) -> (ListedObjects, Vec<String>) {
        let mut listed = ListedObjects::of(known.iter().map(|key| (*key).to_owned()).collect(), documents);
        let looked_at: Vec<_> = objects.iter().filter_map(|object| listed.admit(object.clone())).collect();
        (listed, looked_at.iter().map(|object| object.location.to_string()).collect())
    }

    fn keys(listed: &mut ListedObjects) -> (Vec<String>, u64) {
        let (new, left_out) = listed.take_new();
        (new.iter().map(|object| object.location.to_string()).collect(), left_out)
    }

    #[test]
    fn only_what_is_new_waits_and_not_the_first_time() {
        let objects = ["a", "b", "c", "d", "e"].map(|key| object(key, Some(key), 1));
        let (mut first, looked_at) = listed(&[], 1, &objects);
        assert_eq!((looked_at.len(), keys(&mut first)), (5, (Vec::new(), 0)));

        let (mut again, looked_at) = listed(&["c", "gone"], 1, &objects);
        assert_eq!(looked_at, ["c"]);
        assert_eq!(again.missing(), ["gone"]);
        assert_eq!(keys(&mut again), (["a", "b", "d"].map(str::to_owned).to_vec(), 1));

        let (mut nothing_new, _) = listed(&["a", "b", "c", "d", "e", "gone"], 1, &objects);
        assert!(nothing_new.missing().is_empty());
    }

    #[test]
    fn what_looks_like_another_object_was_not_moved() {
        let objects = [
            object("old", Some("1"), 7),
            object("copy", Some("1"), 7),
            object("own", Some("2"), 7),
            object("twin", Some("3"), 7),
            object("untagged", None, 7),
            object("other", None, 8),
            object("size", None, 8),
            object("twins", Some("3"), 7),
        ];
        let (listed, _) = listed(&["old"], 10, &objects);
        let moved = objects.iter().filter(|object| listed.rule(object) == MoveRule::OnlyOne);
        let moved: Vec<_> = moved.map(|object| object.location.as_ref()).collect();
        assert_eq!(moved, ["own", "untagged"]);
    }

    #[test]
    fn of_a_bucket_without_end_no_more_is_remembered_and_nothing_was_moved() {
        let mut listed = ListedObjects::of(HashSet::from(["old".to_owned()]), 1);
        let first = object("first", Some("1"), 0);
        listed.admit(first.clone());
        assert_eq!(listed.rule(&first), MoveRule::OnlyOne);
        for size in 1..2 * LOOKS as u64 {
            listed.admit(object("other", None, size));
        }
        assert_eq!((listed.looks.len(), listed.new.len()), (LOOKS, 2));
        assert_eq!(listed.rule(&first), MoveRule::Never);
    }
}
