//! What a caller asks for, and how much of an answer it is ready to take.

use std::{fmt, time::Duration};

use bytes::Bytes;
use reqwest::{
    Method,
    header::{ACCEPT_ENCODING, HeaderMap, HeaderName},
};
use url::Url;

/// How much a request may take, from the first lookup to the last byte of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Most bytes of body, counted after decompression.
    pub max_bytes: u64,
    /// Longest time for everything: lookups, connections, redirects and body.
    pub total_timeout: Duration,
    /// Longest time without a byte from the server.
    pub idle_timeout: Duration,
}

/// One outbound request.
#[derive(Clone)]
pub struct EgressRequest {
    /// The method.
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// What the caller sends to this origin, credentials included. Dropped, whole and for good, at a redirect to
    /// another origin. Everything that a user's data put there belongs here. Headers that are the connection's own
    /// business (`Host`, `Content-Length`, `Connection`, `Accept-Encoding` and the like) are ignored.
    pub headers: HeaderMap,
    /// What this service says of itself wherever a redirect leads (`Accept`, `Accept-Language`): never a value that
    /// came from a user. [`EgressRequest::headers`] win over these.
    pub portable_headers: HeaderMap,
    /// The body, sent again with every redirect within the origin but 303, which asks for what came of it.
    pub body: Option<Bytes>,
    /// What the answer may take.
    pub limits: RequestLimits,
    /// Whether redirects are followed; otherwise they are returned like any other response.
    pub follow_redirects: bool,
    /// Whether the answer may be compressed by brotli. Unpacking one takes up to 16 MiB for as long as it is read, and a server can
    /// make that last: only for what few read at a time.
    pub takes_brotli: bool,
}

impl EgressRequest {
    /// A request without headers or body that follows redirects.
    pub fn new(method: Method, url: Url, limits: RequestLimits) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            portable_headers: HeaderMap::new(),
            body: None,
            limits,
            follow_redirects: true,
            takes_brotli: false,
        }
    }

    /// A GET that follows redirects.
    pub fn get(url: Url, limits: RequestLimits) -> Self {
        Self::new(Method::GET, url, limits)
    }
}

/// Without headers, body and query, which may be secret: requests end up in logs.
impl fmt::Debug for EgressRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("host", &self.url.host_str())
            .field("path", &self.url.path())
            .field("limits", &self.limits)
            .field("follow_redirects", &self.follow_redirects)
            .finish_non_exhaustive()
    }
}

/// Headers about the connection, which only the client may set. A `Content-Length` or `Transfer-Encoding` from outside could smuggle a
/// second request into the connection, and a `Host` could address another site behind the same front.
const CONNECTION_HEADERS: [&str; 12] = [
    "connection",
    "content-length",
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

/// Whether a header is about the connection, so that nobody but the client may set it.
pub fn is_connection_header(name: &HeaderName) -> bool {
    CONNECTION_HEADERS.contains(&name.as_str())
}

/// Removes what only the client may set and marks the rest as secret, so that no log prints it.
pub(super) fn sanitise(headers: &mut HeaderMap) {
    for name in CONNECTION_HEADERS {
        headers.remove(name);
    }
    // Another one would bring bodies that nobody here can read.
    headers.remove(ACCEPT_ENCODING);
    for value in headers.values_mut() {
        value.set_sensitive(true);
    }
}
