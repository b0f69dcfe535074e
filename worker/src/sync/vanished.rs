//! What is not where it was: something new is the same thing, moved, if it has the same bytes, or the source says so.

use std::{cmp::Reverse, collections::HashMap};

use lectern_shared::model::sync::SyncItem;

/// Which of the things that are not where they were something new is that has the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveRule {
    /// Of several the one whose path ends most alike.
    Likest,
    /// The only one; of several, none.
    OnlyOne,
    /// None: there are others like it.
    Never,
}

/// Things of a source that are not where they were. Each is found again once at most. Those whose documents somebody deleted here are among
/// them, so that these stay deleted wherever they are.
#[derive(Default)]
pub(super) struct VanishedItems {
    /// By the hash of their bytes.
    alike: HashMap<String, Vec<SyncItem>>,
    /// How many of these are so large; none where nobody knows, since the document is deleted.
    sizes: HashMap<Option<i64>, usize>,
    /// Those of which the source says where they are now, by that; none where it says so of several.
    told: HashMap<String, Option<SyncItem>>,
}

impl VanishedItems {
    /// Adds one, if it is known what it held.
    pub(super) fn add(&mut self, item: SyncItem) {
        if let Some(sha256) = item.sha256.clone() {
            *self.sizes.entry(item.bytes).or_default() += 1;
            self.alike.entry(sha256).or_default().push(in_short(item));
        }
    }

    /// Adds one of which the source says that it is there now, whatever it holds by then.
    pub(super) fn add_told(&mut self, key: &str, item: SyncItem) {
        self.told.entry(key.to_owned()).and_modify(|told| *told = None).or_insert(Some(in_short(item)));
    }

    /// Has the one of which the source says that it is there now be expected elsewhere.
    pub(super) fn tell_on(&mut self, key: &str, to: &str) {
        if let Some(item) = self.take_told(key) {
            self.add_told(to, item);
        }
    }

    /// Takes the one of which the source says that it is there now.
    pub(super) fn take_told(&mut self, key: &str) -> Option<SyncItem> {
        self.told.remove(key).flatten()
    }

    /// Whether the source says of one that it is there now.
    pub(super) fn is_told(&self, key: &str) -> bool {
        self.told.get(key).is_some_and(Option::is_some)
    }

    /// Forgets all but those of which the source says where they are.
    pub(super) fn forget_alike(&mut self) {
        self.alike.clear();
        self.sizes.clear();
    }

    /// Whether something new may be one of them, of which it may be known how many bytes it has.
    pub(super) fn may_have(&self, key: &str, bytes: Option<u64>) -> bool {
        let is_as_large = |bytes: u64| {
            let sizes = [None, i64::try_from(bytes).ok()];
            sizes.iter().any(|size| self.sizes.contains_key(size))
        };
        self.is_told(key) || bytes.map_or(!self.sizes.is_empty(), is_as_large)
    }

    /// Takes the one that something new with these bytes is. Of several that held the same it is the one whose path ends most like the
    /// new one's; of these one that has a document, and then the first, so that it does not matter in which order they were added.
    pub(super) fn take(&mut self, sha256: &str, key: &str, rule: MoveRule) -> Option<SyncItem> {
        let alike = self.alike.get_mut(sha256)?;
        let is_clear = match rule {
            MoveRule::Likest => true,
            // Of those without a document it does not matter which one it is.
            MoveRule::OnlyOne => alike.len() == 1 || alike.iter().all(|item| !item.is_alive),
            MoveRule::Never => false,
        };
        if !is_clear {
            return None;
        }
        let places = alike.iter().enumerate();
        let (place, _) =
            places.max_by(|(_, one), (_, other)| likeness(one, key).cmp(&likeness(other, key)))?;
        let taken = alike.swap_remove(place);
        if alike.is_empty() {
            self.alike.remove(sha256);
        }
        if let Some(count) = self.sizes.get_mut(&taken.bytes) {
            *count -= 1;
            if *count == 0 {
                self.sizes.remove(&taken.bytes);
            }
        }
        Some(taken)
    }
}

/// What is known of something, without what may be long and does not tell whether something else is the same.
fn in_short(item: SyncItem) -> SyncItem {
    SyncItem { etag: None, last_modified: None, links: None, ..item }
}

/// How well something goes with a path: the more, the greater.
fn likeness<'i>(item: &'i SyncItem, key: &str) -> (usize, bool, Reverse<&'i str>) {
    (common_end(&item.item_key, key), item.is_alive, Reverse(item.item_key.as_str()))
}

/// How many parts two paths have in common at their ends.
fn common_end(one: &str, other: &str) -> usize {
    one.rsplit('/').zip(other.rsplit('/')).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use lectern_shared::{ids::DocumentId, model::Json};

    use super::*;

    fn item(key: &str, sha256: Option<&str>) -> SyncItem {
        SyncItem {
            item_key: key.to_owned(),
            document_id: DocumentId::generate(),
            name: None,
            etag: None,
            last_modified: None,
            sha256: sha256.map(str::to_owned),
            links: None,
            entry_id: None,
            seen_run: None,
            is_alive: true,
            bytes: Some(1),
        }
    }

    fn vanished(items: &[(&str, Option<&str>)]) -> VanishedItems {
        let mut vanished = VanishedItems::default();
        for (key, sha256) in items {
            vanished.add(item(key, *sha256));
        }
        vanished
    }

    #[test]
    fn each_is_found_again_once_and_only_by_what_it_held() {
        let mut vanished = vanished(&[("a.txt", Some("a")), ("unknown.txt", None)]);
        let mut take = |sha256| vanished.take(sha256, "new.txt", MoveRule::Likest).map(|item| item.item_key);
        assert_eq!(take("b"), None);
        assert_eq!(take("a").as_deref(), Some("a.txt"));
        assert_eq!(take("a"), None);
        assert!(!vanished.may_have("new.txt", None));
    }

    #[test]
    fn what_is_not_as_large_as_any_of_them_is_none_of_them() {
        let mut vanished = vanished(&[("a.txt", Some("a")), ("b.txt", Some("b"))]);
        assert!(vanished.may_have("new.txt", Some(1)) && !vanished.may_have("new.txt", Some(2)));
        assert!(vanished.take("a", "new.txt", MoveRule::Likest).is_some());
        assert!(vanished.may_have("new.txt", Some(1)), "there is another one");
        assert!(vanished.take("b", "new.txt", MoveRule::Likest).is_some());
        assert!(!vanished.may_have("new.txt", Some(1)) && !vanished.may_have("new.txt", None));
        // Of what somebody deleted it is not known how large it was.
        vanished.add(SyncItem { is_alive: false, bytes: None, ..item("c.txt", Some("c")) });
        assert!(vanished.may_have("new.txt", Some(2)));
        vanished.forget_alike();
        assert!(!vanished.may_have("new.txt", Some(2)));
    }

    #[test]
    fn what_may_be_long_is_not_remembered() {
        let long = || SyncItem {
            etag: Some("1".to_owned()),
            last_modified: Some("1".to_owned()),
            links: Some(Json(vec!["https://a.example".to_owned()])),
            ..item("old", Some("a"))
        };
        let mut vanished = VanishedItems::default();
        vanished.add(long());
        vanished.add_told("new", long());
        for kept in [vanished.take("a", "new", MoveRule::Likest), vanished.take_told("new")] {
            let kept = kept.expect("it was added");
            assert!(kept.etag.is_none() && kept.last_modified.is_none() && kept.links.is_none());
        }
    }

    #[test]
    fn what_the_source_tells_is_found_by_its_new_place_alone() {
        let mut vanished = VanishedItems::default();
        vanished.add_told("new", item("old", None));
        assert!(vanished.may_have("new", None) && !vanished.may_have("other", None));
        assert!(vanished.take_told("other").is_none());
        assert_eq!(vanished.take_told("new").map(|item| item.item_key).as_deref(), Some("old"));
        assert!(vanished.take_told("new").is_none() && !vanished.may_have("new", None));
        vanished.add(item("gone", Some("a")));
        assert!(vanished.may_have("new", None));
        vanished.forget_alike();
        assert!(!vanished.may_have("new", None));
    }

    #[test]
    fn what_the_source_tells_on_is_found_where_it_is_in_the_end_and_of_several_there_none() {
        let mut vanished = VanishedItems::default();
        for number in ["1", "2", "3", "4"] {
            vanished.add_told(number, item(number, None));
        }
        vanished.tell_on("unknown", "new");
        vanished.tell_on("1", "between");
        vanished.tell_on("between", "new");
        assert!(!vanished.may_have("between", None));
        assert_eq!(vanished.take_told("new").map(|item| item.item_key).as_deref(), Some("1"));
        for number in ["2", "3", "4"] {
            vanished.tell_on(number, "home");
        }
        assert!(!vanished.may_have("home", None) && vanished.take_told("home").is_none());
    }

    #[test]
    fn of_several_alike_the_one_with_the_likest_path_is_taken_in_whatever_order_they_come() {
        let mut items = [("c/x.txt", Some("a")), ("b/x.txt", Some("a")), ("b/deep/y.txt", Some("a"))];
        for _ in 0..items.len() {
            items.rotate_left(1);
            let mut vanished = vanished(&items);
            let mut take = |key| vanished.take("a", key, MoveRule::Likest).map(|item| item.item_key);
            assert_eq!(take("new/deep/y.txt").as_deref(), Some("b/deep/y.txt"), "{items:?}");
            assert_eq!(take("z/x.txt").as_deref(), Some("b/x.txt"), "{items:?}");
            assert_eq!(take("other.txt").as_deref(), Some("c/x.txt"), "{items:?}");
            assert_eq!(take("other.txt"), None, "{items:?}");
        }
    }

    #[test]
    fn what_has_a_document_comes_before_what_somebody_deleted_unless_the_path_says_otherwise() {
        let mut vanished = VanishedItems::default();
        vanished.add(SyncItem { is_alive: false, ..item("a/x.txt", Some("a")) });
        vanished.add(SyncItem { is_alive: false, ..item("a/y.txt", Some("a")) });
        vanished.add(item("b/z.txt", Some("a")));
        let mut take = |key| vanished.take("a", key, MoveRule::Likest).map(|item| item.item_key);
        assert_eq!(take("new/y.txt").as_deref(), Some("a/y.txt"));
        assert_eq!(take("new/other.txt").as_deref(), Some("b/z.txt"));
        assert_eq!(take("new/another.txt").as_deref(), Some("a/x.txt"));
    }

    #[test]
    fn where_only_one_may_be_it_none_of_several_is_and_nothing_where_there_are_others_like_it() {
        let items = [("x.txt", Some("a")), ("y.txt", Some("b")), ("z.txt", Some("b"))];
        let mut vanished = vanished(&items);
        let mut take = |sha256, rule| vanished.take(sha256, "new/y.txt", rule).map(|item| item.item_key);
        assert_eq!(take("a", MoveRule::Never), None);
        assert_eq!(take("a", MoveRule::OnlyOne).as_deref(), Some("x.txt"));
        assert_eq!(take("b", MoveRule::OnlyOne), None);
        for key in ["c.txt", "d.txt"] {
            vanished.add(SyncItem { is_alive: false, ..item(key, Some("c")) });
        }
        let taken = vanished.take("c", "new.txt", MoveRule::OnlyOne).map(|item| item.item_key);
        assert_eq!(taken.as_deref(), Some("c.txt"), "both are to stay away");
    }
}
