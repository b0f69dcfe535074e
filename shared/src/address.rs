//! Addresses as messages and logs show them. People write passwords before the host and keys into the query, so that neither is shown. And
//! which addresses hold a key, that whoever reads an answer is not to have.

use url::Url;

/// What stands for something that is not shown.
const HIDDEN: &str = "…";

/// An address without its user name and password, the values of its query, and its fragment.
pub fn shown(url: &Url) -> String {
    let mut bare = url.clone();
    // Addresses without a host have no place for them.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare.set_query(None);
    bare.set_fragment(None);
    let Some(query) = url.query() else { return bare.into() };
    let name = |pair: &str| match pair.split_once('=') {
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None => HIDDEN.to_owned(),
    };
    let names: Vec<String> = query.split('&').map(name).collect();
    format!("{bare}?{}", names.join("&"))
}

/// The scheme, host and port of an address on the web, where nothing of it may be shown that could be a key: paths hold some, too.
pub fn origin(address: &str) -> Option<String> {
    let origin = Url::parse(address).ok()?.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}

/// A text that was to be an address, or to have some, without what [`shown`] leaves out; none when what stands before an `@` may be a
/// password.
pub fn shown_text(text: &str) -> Option<String> {
    if text.contains('@') {
        return None;
    }
    Some(match text.find(['?', '#']) {
        Some(end) => format!("{}{HIDDEN}", &text[..=end]),
        None => text.to_owned(),
    })
}

/// One of several texts, as the message that refuses it names it.
pub fn quoted(text: &str) -> String {
    shown_text(text).map_or_else(|| "one of them".to_owned(), |text| format!("{text:?}"))
}

/// How names of parameters end whose values open something for whoever has them: what stores sign links with, and what sites let people in by.
const KEY_ENDS: [&str; 12] = [
    "token",
    "signature",
    "secret",
    "password",
    "passwd",
    "apikey",
    "accesskey",
    "authkey",
    "resourcekey",
    "credential",
    "sessionid",
    "sessid",
];

/// Such names that are too short to be the end of another one.
const KEYS: [&str; 6] = ["auth", "jwt", "key", "pass", "pwd", "sig"];

/// Whether the query of an address holds what opens something for whoever has the address, as that of a signed link does.
pub fn holds_key(url: &Url) -> bool {
    url.query_pairs().any(|(name, value)| !value.is_empty() && names_key(&name))
}

fn names_key(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    KEYS.contains(&letters.as_str()) || KEY_ENDS.iter().any(|end| letters.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_that_may_hold_a_key_anywhere_its_host_is_told() {
        for (address, expected) in [
            ("https://ada:secret@hooks.example/T0/secret?key=secret#secret", Some("https://hooks.example")),
            ("HTTP://Box.example:8080", Some("http://box.example:8080")),
            ("mailto:ada@example.com", None),
            ("hooks.example", None),
        ] {
            assert_eq!(origin(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn an_address_is_shown_without_what_may_be_a_secret() {
        for (address, expected) in [
            ("https://a.example/b/c", "https://a.example/b/c"),
            ("https://me:hunter2@a.example:8443/b", "https://a.example:8443/b"),
            ("https://hunter2@a.example", "https://a.example/"),
            ("https://a.example/b?key=hunter2&page=2", "https://a.example/b?key=…&page=…"),
            ("https://a.example/b?hunter2", "https://a.example/b?…"),
            ("https://a.example/b?key=a=hunter2#hunter2", "https://a.example/b?key=…"),
            ("data:text/plain,x#hunter2", "data:text/plain,x"),
        ] {
            assert_eq!(shown(&Url::parse(address).unwrap()), expected);
        }
    }

    #[test]
    fn a_text_that_is_no_address_is_shown_as_far_as_it_can_hold_no_secret() {
        for (text, expected) in [
            ("qdrant:6334", Some("qdrant:6334")),
            ("ftp://a.example/b?key=hunter2&page=2", Some("ftp://a.example/b?…")),
            ("a.example#hunter2", Some("a.example#…")),
            ("me:hunter2@a.example", None),
            ("https://me:hunter/2?x@a.example", None),
        ] {
            assert_eq!(shown_text(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn an_address_with_a_key_in_its_query_is_told_from_any_other() {
        for (address, expected) in [
            ("https://b.s3.example/r.pdf?X-Amz-Date=20261128T000000Z&X-Amz-Signature=5f0c", true),
            ("https://a.example/r.pdf?sv=2024-11-04&se=2026-11-28&sig=Zm9v", true),
            ("https://drive.example/file?resourcekey=0-abc", true),
            ("https://a.example/b?page=2&access_token=hunter2", true),
            ("https://a.example/b?API-KEY=hunter2", true),
            ("https://a.example/b?jwt=hunter2#page=2", true),
            ("https://a.example/b?token=", false),
            ("https://a.example/watch?v=abc-DEF_123&t=83s", false),
            ("https://a.example/wiki?title=Token&keyword=signature", false),
            ("https://a.example/monkey/token", false),
        ] {
            assert_eq!(holds_key(&Url::parse(address).unwrap()), expected, "{address}");
        }
    }
}
