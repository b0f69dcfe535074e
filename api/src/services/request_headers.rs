//! Headers that users have the service send for them.

use reqwest::header::{HeaderName, HeaderValue};

/// Headers that the service sets itself, or that are about the connection.
pub(super) const OWN_HEADERS: [&str; 13] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What is said of a value that no header can carry.
pub(super) const WRONG_VALUE: &str = "must be a string that a header can carry";

/// What is wrong with the name of a header; none when it can be sent. `is_own` says which ones the service sets itself.
pub(super) fn name_problem(name: &str, is_own: impl Fn(&str) -> bool) -> Option<&'static str> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Err(_) => Some("is not the name of a header"),
        Ok(header) if is_own(header.as_str()) => Some("is set by the service itself"),
        Ok(_) => None,
    }
}

/// Whether a header can carry a text.
pub(super) fn is_value(text: &str) -> bool {
    HeaderValue::from_str(text).is_ok()
}
