//! Whose pages browsers let call the API.

use url::{Host, Url};

use super::parse::ParseResult;
use crate::address::quoted;

/// The origins of other sites' pages that may call the API from a browser.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CorsOrigins {
    /// None: only pages of the service itself.
    #[default]
    None,
    /// Every one.
    Any,
    /// These, written as browsers write them in the `Origin` header.
    Exactly(Vec<String>),
}

/// `*`, or origins separated by commas; nothing is none.
pub(super) fn origins(text: &str) -> ParseResult<CorsOrigins> {
    match text.trim() {
        "" => Ok(CorsOrigins::None),
        "*" => Ok(CorsOrigins::Any),
        text => text
            .split(',')
            .map(|text| origin(text.trim()))
            .collect::<ParseResult<_>>()
            .map(CorsOrigins::Exactly),
    }
}

/// One origin as a browser writes it: lower case, internationalised names in their ASCII form, no default port.
fn origin(text: &str) -> ParseResult<String> {
    let wrong = || {
        format!(
            "must be * alone, or origins such as https://app.example.com or http://localhost:3000, without a path; {} is none",
            quoted(text)
        )
    };
    let (_, authority) = text.split_once("://").ok_or_else(wrong)?;
    // The parser is lenient: it takes a user's name, a path, an empty port and wildcards, none of which an origin has.
    if authority.is_empty() || authority.ends_with(':') || authority.contains(['/', '\\', '?', '#', '@', '*'])
    {
        return Err(wrong());
    }
    let url = Url::parse(text).map_err(|_| wrong())?;
    let origin = url.origin();
    if origin.is_tuple() {
        return Ok(origin.ascii_serialization());
    }
    // The pages of extensions and of applications in a web view have schemes of their own.
    let host = url.host().filter(|host| !matches!(host, Host::Domain(""))).ok_or_else(wrong)?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    Ok(format!("{}://{}{port}", url.scheme(), host.to_string().to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_origin_there_is_none_and_a_star_is_all() {
        assert_eq!(origins(""), Ok(CorsOrigins::None));
        assert_eq!(origins(" * "), Ok(CorsOrigins::Any));
    }

    #[test]
    fn origins_are_kept_as_browsers_write_them() {
        let text = "HTTPS://App.Example.com:443, http://localhost:3000,https://bücher.example,http://[::1]:8080,\
                    chrome-extension://abcdef,capacitor://localhost";
        let expected = [
            "https://app.example.com",
            "http://localhost:3000",
            "https://xn--bcher-kva.example",
            "http://[::1]:8080",
            "chrome-extension://abcdef",
            "capacitor://localhost",
        ];
        assert_eq!(origins(text), Ok(CorsOrigins::Exactly(expected.map(str::to_owned).to_vec())));
    }

    #[test]
    fn what_is_no_origin_is_refused_and_quoted() {
        for wrong in [
            "example.com",
            "https://",
            "https://example.com/",
            "https://example.com/app",
            "https://example.com?x",
            "https://user@example.com",
            "https://example.com:",
            "https://example.com:99999",
            "https://*.example.com",
            "data:text/plain",
            "null",
            "https://a.example,,https://b.example",
            "*,https://a.example",
        ] {
            let problem = origins(wrong).expect_err(wrong);
            assert!(problem.contains("https://app.example.com"), "{problem}");
        }
    }
}
