//! Headers that users have the service send for them.

use reqwest::header::{HeaderName, HeaderValue};

/// What is said of a value that no header can carry.
pub(super) const WRONG_VALUE: &str = "must be a string that a header can carry";

/// What is wrong with the name of a header; none when it can be sent. `is_own` says which ones the service sets itself.
pub(super) fn name_problem(name: &str, is_own: impl Fn(&HeaderName) -> bool) -> Option<&'static str> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Err(_) => Some("is not the name of a header"),
        Ok(header) if is_own(&header) => Some("is set by the service itself"),
        Ok(_) => None,
    }
}

/// Whether a header can carry a text.
pub(super) fn is_value(text: &str) -> bool {
    HeaderValue::from_str(text).is_ok()
}
