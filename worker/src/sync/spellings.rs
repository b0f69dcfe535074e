//! Pages that say that they are other ones. What such a page says counts only where there is a page at the address that it names: many a
//! site sends whoever asks for that address back, has nothing there, or lets nobody in.

use std::collections::HashMap;

use url::Url;

use super::address::is_same_site;

/// Bytes of the addresses that are remembered.
const ROOM: usize = 16 << 20;
/// Addresses that are gone through from a page to what it says that it is.
const STEPS: usize = 20;

/// A page that says that it is another one.
pub(super) struct NamedPage {
    pub(super) page: Url,
    /// What it says that it is.
    pub(super) canonical: Url,
    /// Links that led there.
    pub(super) depth: u32,
}

/// What is known of addresses that are no documents of their own.
pub(super) struct PageSpellings {
    /// Where each leads instead: it redirects there, or says that it is that one; none where there is nothing.
    instead: HashMap<Url, Option<Url>>,
    named: Vec<NamedPage>,
    /// Whether those that were put off have been taken: from then on each page is what it is.
    is_settled: bool,
    /// Whether there was no room for where some address leads.
    has_forgotten: bool,
    room: usize,
}

impl PageSpellings {
    pub(super) fn new() -> Self {
        Self {
            instead: HashMap::new(),
            named: Vec::new(),
            is_settled: false,
            has_forgotten: false,
            room: ROOM,
        }
    }

    /// Notes that nothing is to be had at an address, or what it redirects to.
    pub(super) fn leads(&mut self, address: &Url, to: Option<&Url>) {
        if self.takes(address, to) {
            self.instead.insert(address.clone(), to.cloned());
        } else {
            self.has_forgotten = true;
        }
    }

    /// Puts a page off that says that it is another one; false when that does not count any more. Of too many, the rest is not believed: a page
    /// that is there twice is no loss.
    pub(super) fn put_off(&mut self, page: &Url, canonical: &Url, depth: u32) -> bool {
        if self.is_settled || !self.takes(page, Some(canonical)) {
            return false;
        }
        self.instead.insert(page.clone(), Some(canonical.clone()));
        self.named.push(NamedPage { page: page.clone(), canonical: canonical.clone(), depth });
        true
    }

    /// Those that were put off, the shortest addresses first: of those without another one, one is to stand for all.
    pub(super) fn take_named(&mut self) -> Vec<NamedPage> {
        self.is_settled = true;
        let mut named = std::mem::take(&mut self.named);
        named.sort_by_cached_key(|named| (named.page.as_str().len(), named.page.clone()));
        named
    }

    /// Whether nothing else stands for a page that was put off: what it says that it is leads back to it, or there is nothing. From then on it
    /// stands for itself.
    pub(super) fn is_alone(&mut self, named: &NamedPage) -> bool {
        let mut at = &named.canonical;
        for _ in 0..STEPS {
            match self.instead.get(at) {
                // It is a page, unless what it is was forgotten.
                None => return self.has_forgotten,
                Some(Some(next)) if *next != named.page => at = next,
                Some(_) => {
                    let end = at.clone();
                    self.instead.remove(&named.page);
                    self.instead.insert(end, Some(named.page.clone()));
                    return true;
                }
            }
        }
        false
    }

    fn takes(&mut self, address: &Url, to: Option<&Url>) -> bool {
        let bytes = 2 * (address.as_str().len() + to.map_or(0, |to| to.as_str().len()));
        let left = self.room.checked_sub(bytes);
        self.room = left.unwrap_or(self.room);
        left.is_some()
    }
}

/// Whether a page's own name for itself differs from where it was found by no more than what is not part of it: its query, a slash at
/// the end. Other names are not believed, since many sites call all their pages like the first.
pub(super) fn is_other_spelling(canonical: &Url, page: &Url) -> bool {
    let path = |url: &Url| url.path().trim_end_matches('/').to_owned();
    canonical != page && is_same_site(canonical, page) && path(canonical) == path(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::parse("https://a.example").unwrap().join(path).unwrap()
    }

    /// The pages that stand for themselves, of those that say that they are others, where addresses lead elsewhere, or to nothing.
    fn alone(named: &[(&str, &str)], instead: &[(&str, Option<&str>)]) -> Vec<String> {
        let mut spellings = PageSpellings::new();
        for (page, canonical) in named {
            assert!(spellings.put_off(&url(page), &url(canonical), 0));
        }
        for (address, to) in instead {
            spellings.leads(&url(address), to.map(url).as_ref());
        }
        let mut named = spellings.take_named();
        named.retain(|named| spellings.is_alone(named));
        named
            .iter()
            .map(|named| named.page.path().to_owned() + named.page.query().unwrap_or_default())
            .collect()
    }

    #[test]
    fn only_what_nothing_else_stands_for_is_alone() {
        assert!(alone(&[("/a?x", "/a")], &[]).is_empty(), "there is a page at the other address");
        assert_eq!(alone(&[("/a/", "/a")], &[("/a", Some("/a/"))]), ["/a/"], "it leads back");
        assert_eq!(alone(&[("/a/", "/a")], &[("/a", None)]), ["/a/"], "there is nothing");
        assert!(alone(&[("/a/", "/a")], &[("/a", Some("/b"))]).is_empty(), "it leads to another page");
        assert_eq!(alone(&[("/a/", "/a"), ("/a", "/a/")], &[]), ["/a"], "each says that it is the other");
        let all = [("/a/?x", "/a"), ("/a/", "/a"), ("/a/?y", "/a")];
        assert_eq!(alone(&all, &[("/a", None)]), ["/a/"], "one of them stands for all");
        assert_eq!(alone(&all, &[("/a", Some("/a/"))]), ["/a/"]);
        assert!(alone(&[("/a?x", "/a?y"), ("/a?y", "/a")], &[]).is_empty(), "one after the other");
        assert_eq!(alone(&[("/a?x", "/a?y"), ("/a?y", "/a")], &[("/a", None)]), ["/ax"]);
    }

    #[test]
    fn names_that_differ_in_more_than_their_spelling_are_not_believed() {
        let page = url("/docs/one?utm=x");
        assert!(is_other_spelling(&url("/docs/one"), &page));
        assert!(is_other_spelling(&url("/docs/one/"), &page));
        assert!(!is_other_spelling(&url("/"), &page));
        assert!(!is_other_spelling(&page, &page));
    }

    #[test]
    fn what_is_remembered_has_bounds() {
        let mut spellings = PageSpellings::new();
        assert!(spellings.put_off(&url("/c/"), &url("/c"), 0));
        let long = url(&format!("/{}", "x".repeat(ROOM / 2)));
        assert!(!spellings.put_off(&long, &url("/"), 0) && spellings.put_off(&url("/a"), &url("/a/"), 0));
        let named = spellings.take_named();
        assert_eq!(named.iter().map(|named| named.page.path()).collect::<Vec<_>>(), ["/a", "/c/"]);
        assert!(named.iter().all(|named| !spellings.is_alone(named)));
        spellings.leads(&long, None);
        assert!(named.iter().all(|named| spellings.is_alone(named)), "there may be nothing at the others");
        assert!(!spellings.put_off(&url("/b"), &url("/b/"), 0), "by then it is known what is where");
    }
}
