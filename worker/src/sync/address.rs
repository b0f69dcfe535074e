//! What matters of the addresses of a site's pages.

use std::borrow::Cow;

use lectern_shared::file_name::extension;
use percent_encoding::percent_decode_str;
use url::Url;

/// Codes of the signs that part an address. One that is encoded parts nothing, and is no such sign to patterns either.
const PARTING: [&str; 6] = ["23", "26", "2F", "2f", "3F", "3f"];

/// What patterns are about: the path of an address, with its query.
pub(super) fn path_of(page: &Url) -> &str {
    page.as_str().get(page[..url::Position::BeforePath].len()..).unwrap_or_default()
}

/// The same as people read it, and write it in patterns.
pub(super) fn plain_path_of(page: &Url) -> Cow<'_, str> {
    let path = path_of(page);
    if !path.contains('%') {
        return path.into();
    }
    let kept = PARTING
        .iter()
        .fold(path.to_owned(), |path, code| path.replace(&format!("%{code}"), &format!("%25{code}")));
    percent_decode_str(&kept).decode_utf8_lossy().into_owned().into()
}

/// The last part of an address's path, which often is a file's name.
pub(super) fn last_segment(page: &Url) -> Option<String> {
    let name = page.path_segments()?.next_back().filter(|name| !name.is_empty())?;
    Some(percent_decode_str(name).decode_utf8_lossy().into_owned())
}

/// Whether an address ends as that of a file with one of these ends does.
pub(super) fn ends_as(page: &Url, ends: &[&str]) -> bool {
    extension(page.path()).is_some_and(|end| ends.contains(&end.as_str()))
}

/// Whether two addresses are of one site: `www.` and encryption make no difference.
pub(super) fn is_same_site(a: &Url, b: &Url) -> bool {
    let host = |url: &Url| url.host_str().map(|host| host.strip_prefix("www.").unwrap_or(host).to_owned());
    let port = |url: &Url| url.port();
    matches!(a.scheme(), "http" | "https") && host(a).is_some() && host(a) == host(b) && port(a) == port(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_site_is_told_from_another() {
        let url = |text: &str| Url::parse(text).unwrap();
        for (a, b, is_same) in [
            ("https://a.example/x", "http://www.a.example/y", true),
            ("https://a.example", "https://b.a.example", false),
            ("https://a.example", "https://a.example:8443", false),
            ("ftp://a.example", "https://a.example", false),
        ] {
            assert_eq!(is_same_site(&url(a), &url(b)), is_same, "{a} {b}");
        }
        assert_eq!(path_of(&url("https://a.example/docs/one?utm=x")), "/docs/one?utm=x");
        let page = url("https://a.example/über uns/é?q=ä");
        assert_eq!(path_of(&page), "/%C3%BCber%20uns/%C3%A9?q=%C3%A4");
        assert_eq!(plain_path_of(&page), "/über uns/é?q=ä");
        // An encoded question mark begins no query: what leaves out all queries does not mean it.
        let page = url("https://a.example/Why%3F/a%2fb%2A%25?q=a%26b%20c");
        assert_eq!(plain_path_of(&page), "/Why%3F/a%2fb*%?q=a%26b c");
    }
}
