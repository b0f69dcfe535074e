//! Where whoever asks reaches this service: what the links in its answers begin with.

use std::convert::Infallible;

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts, uri::Authority},
};
use lectern_runtime::Runtime;
use url::Url;

use crate::client_address::TrustedProxy;

const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Longest name of a host, with its port.
const LONGEST_HOST: usize = 261;

/// The address that links begin with: the operator's `LECTERN_PUBLIC_URL`, else the one that the request came to, so that a link
/// opens without any setting too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicAddress {
    /// Without a slash at its end; empty when nobody knows it.
    base: String,
}

impl PublicAddress {
    /// The operator's address, or else the one of a request with these headers. What proxies say in theirs is believed of trusted ones.
    pub(crate) fn of(public_url: Option<&Url>, headers: &HeaderMap, is_proxied: bool) -> Self {
        let base = public_url.map_or_else(
            || requested(headers, is_proxied).unwrap_or_default(),
            |url| url.as_str().trim_end_matches('/').to_owned(),
        );
        Self { base }
    }

    /// Whether it is reached by TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.base.starts_with("https://")
    }

    /// Its origin, as browsers write it.
    pub(crate) fn origin(&self) -> Option<String> {
        Url::parse(&self.base).ok().map(|url| url.origin().ascii_serialization())
    }

    /// A link to something of the service's, whose path begins with a slash.
    pub(crate) fn link(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

impl<S: Sync> FromRequestParts<S> for PublicAddress
where
    Runtime: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let runtime = Runtime::from_ref(state);
        let is_proxied = parts.extensions.get::<TrustedProxy>().is_some();
        Ok(Self::of(runtime.settings.public_url.as_ref(), &parts.headers, is_proxied))
    }
}

/// The address that a request came to.
fn requested(headers: &HeaderMap, is_proxied: bool) -> Option<String> {
    let forwarded = |name| last(headers, name).filter(|_| is_proxied);
    let host = forwarded(FORWARDED_HOST).filter(|host| is_host(host));
    let host = host.or_else(|| last(headers, header::HOST).filter(|host| is_host(host)))?;
    let is_secure = forwarded(FORWARDED_PROTO).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    Some(format!("{}://{host}", if is_secure { "https" } else { "http" }))
}

/// The last value of a header, which is the one that the nearest proxy added: those before it may be the client's own.
fn last(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let value = headers.get_all(name).iter().next_back().map(HeaderValue::to_str)?.ok()?;
    value.rsplit(',').next().map(str::trim)
}

/// Whether it is a host and perhaps a port, and nothing that would lead elsewhere or end the link.
fn is_host(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    text.len() <= LONGEST_HOST
        && text.bytes().all(is_plain)
        && text.parse::<Authority>().is_ok_and(|authority| !authority.host().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        pairs.iter().copied().map(pair).collect()
    }

    fn link(public_url: Option<&str>, pairs: &[(&'static str, &'static str)], is_proxied: bool) -> String {
        let url = public_url.map(|url| url.parse::<Url>().unwrap());
        PublicAddress::of(url.as_ref(), &headers(pairs), is_proxied).link("/cite/x")
    }

    #[test]
    fn the_operators_address_stands_before_whatever_a_request_says() {
        let forged = [("host", "evil.example"), ("x-forwarded-host", "evil.example")];
        for (set, expected) in [
            ("https://kb.example.com", "https://kb.example.com/cite/x"),
            ("https://kb.example.com/", "https://kb.example.com/cite/x"),
            ("http://intra.example:8443/kb/", "http://intra.example:8443/kb/cite/x"),
        ] {
            assert_eq!(link(Some(set), &forged, true), expected);
        }
    }

    #[test]
    fn without_a_setting_a_link_leads_where_the_request_came_to() {
        for (host, expected) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080/cite/x"),
            ("[::1]:8080", "http://[::1]:8080/cite/x"),
            ("kb_1.example.com", "http://kb_1.example.com/cite/x"),
        ] {
            assert_eq!(link(None, &[("host", host)], false), expected);
        }
    }

    #[test]
    fn what_is_no_host_is_not_repeated() {
        for host in [
            "",
            "a/b",
            "a@b.example",
            "a b",
            "a\"onclick",
            "a?b",
            "a#b",
            "javascript:alert(1)",
            "[::1",
            ":80",
        ] {
            assert_eq!(link(None, &[("host", host)], false), "/cite/x", "{host}");
        }
        assert_eq!(link(None, &[], false), "/cite/x");
    }

    #[test]
    fn what_a_proxy_says_is_believed_of_a_trusted_one_alone() {
        let said = [
            ("host", "10.0.0.5:8080"),
            ("x-forwarded-host", "kb.example.com"),
            ("x-forwarded-proto", "https"),
        ];
        assert_eq!(link(None, &said, true), "https://kb.example.com/cite/x");
        assert_eq!(link(None, &said, false), "http://10.0.0.5:8080/cite/x");
        let chained = [
            ("host", "10.0.0.5:8080"),
            ("x-forwarded-host", "evil.example, kb.example.com"),
            ("x-forwarded-proto", "gopher"),
        ];
        assert_eq!(
            link(None, &chained, true),
            "http://kb.example.com/cite/x",
            "a client wrote the first one"
        );
        let wrong = [("host", "10.0.0.5:8080"), ("x-forwarded-host", "evil.example/x?")];
        assert_eq!(link(None, &wrong, true), "http://10.0.0.5:8080/cite/x");
    }
}
