//! What matters of the addresses of a site's pages.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use url::Url;

/// What patterns are about: the path of an address, with its query.
pub(super) fn path_of(page: &Url) -> &str {
    page.as_str().get(page[..url::Position::BeforePath].len()..).unwrap_or_default()
}

/// The same as people read it, and write it in patterns.
pub(super) fn plain_path_of(page: &Url) -> Cow<'_, str> {
    percent_decode_str(path_of(page)).decode_utf8_lossy()
}

/// The last part of an address's path, which often is a file's name.
pub(super) fn last_segment(page: &Url) -> Option<String> {
    let name = page.path_segments()?.next_back().filter(|name| !name.is_empty())?;
    Some(percent_decode_str(name).decode_utf8_lossy().into_owned())
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
    }
}
