//! Where a redirect leads and what goes along. A loop of our own because the client's keeps custom headers across
//! origins, and because every hop has to be checked before anything is sent.

use bytes::Bytes;
use reqwest::{
    Method, StatusCode,
    header::{self, HeaderMap, HeaderName},
};
use url::Url;

use super::{
    error::EgressError,
    request::{EgressRequest, sanitise},
};

/// Headers that say something about the body or the wanted representation: no credentials.
const HARMLESS: [HeaderName; 10] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::PRAGMA,
    header::RANGE,
    header::USER_AGENT,
];

/// Headers that describe a body, which go with it.
const OF_THE_BODY: [HeaderName; 4] =
    [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::CONTENT_LANGUAGE, header::CONTENT_LOCATION];

/// One request of a chain of redirects.
#[derive(Clone)]
pub(super) struct RedirectHop {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) body: Option<Bytes>,
    pub(super) takes_brotli: bool,
    headers: HeaderMap,
    portable: HeaderMap,
}

impl RedirectHop {
    pub(super) fn first(request: EgressRequest) -> Self {
        let EgressRequest { method, url, mut headers, mut portable_headers, body, takes_brotli, .. } =
            request;
        sanitise(&mut headers);
        sanitise(&mut portable_headers);
        Self { method, url, body, takes_brotli, headers, portable: portable_headers }
    }

    /// Everything to send with this hop.
    pub(super) fn outgoing_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        for name in self.portable.keys().filter(|name| !self.headers.contains_key(*name)) {
            for value in self.portable.get_all(name) {
                headers.append(name, value.clone());
            }
        }
        headers
    }

    /// The next hop, or none when the response is not a redirect.
    ///
    /// # Errors
    /// [`EgressError::ContentNotSentOn`] for a body that would go to another origin, and for a POST that would arrive as a GET;
    /// [`EgressError::RefusedRedirect`] for a target that is no URL, and for credentials that would go from `https` to `http`.
    pub(super) fn redirected(
        &self,
        status: StatusCode,
        response: &HeaderMap,
    ) -> Result<Option<Self>, EgressError> {
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let Some(location) = response.get(header::LOCATION) else {
            return Ok(None);
        };
        // Not ASCII in practice: many servers send UTF-8, which the URL parser escapes.
        let location = String::from_utf8_lossy(location.as_bytes());
        let url = self.url.join(&location).map_err(|_| EgressError::RefusedRedirect {
            reason: "it leads to something that is not a URL",
        })?;

        if loses_post(status, &self.method) {
            return Err(EgressError::ContentNotSentOn {
                reason: "the request would be sent on without its content; use the new address directly",
            });
        }
        let mut next = Self { url, ..self.clone() };
        if becomes_get(status, &self.method) {
            next.method = Method::GET;
            next.body = None;
            for name in OF_THE_BODY {
                next.headers.remove(name);
            }
        }
        if next.url.origin() != self.url.origin() {
            if next.body.is_some() {
                return Err(EgressError::ContentNotSentOn {
                    reason: "it would send the request's content to another site; use the new address directly",
                });
            }
            let downgrade = self.url.scheme() == "https" && next.url.scheme() == "http";
            if downgrade && self.carries_credentials() {
                return Err(EgressError::RefusedRedirect {
                    reason: "it leads from https to http, and the request carries credentials",
                });
            }
            next.headers.clear();
        }
        Ok(Some(next))
    }

    fn carries_credentials(&self) -> bool {
        self.headers.keys().any(|name| !HARMLESS.contains(name))
    }
}

/// 303 says that the request was taken, and where what came of it is read.
fn becomes_get(status: StatusCode, method: &Method) -> bool {
    status == StatusCode::SEE_OTHER && *method != Method::GET && *method != Method::HEAD
}

/// 301 and 302 say that nothing was done here. Browsers send a POST on as a GET all the same, which succeeds at most addresses
/// and writes nothing: whoever asked would take it for done.
fn loses_post(status: StatusCode, method: &Method) -> bool {
    matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND) && *method == Method::POST
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::request::RequestLimits, *};

    const LIMITS: RequestLimits = RequestLimits {
        max_bytes: 1,
        total_timeout: Duration::from_secs(1),
        idle_timeout: Duration::from_secs(1),
    };

    fn hop(
        method: Method,
        url: &str,
        headers: &[(&'static str, &'static str)],
        body: Option<&'static str>,
    ) -> RedirectHop {
        let mut request = EgressRequest::new(method, url.parse().unwrap(), LIMITS);
        for (name, value) in headers {
            request.headers.insert(*name, value.parse().unwrap());
        }
        request.portable_headers.insert(header::ACCEPT, "text/html".parse().unwrap());
        request.body = body.map(Bytes::from);
        RedirectHop::first(request)
    }

    fn redirect(
        hop: &RedirectHop,
        status: u16,
        location: &'static str,
    ) -> Result<Option<RedirectHop>, EgressError> {
        let headers = [(header::LOCATION, location.parse().unwrap())].into_iter().collect();
        hop.redirected(StatusCode::from_u16(status).unwrap(), &headers)
    }

    #[test]
    fn a_method_changes_only_where_what_came_of_the_request_is_read() {
        let cases = [
            (303, Method::POST, Method::GET, false),
            (303, Method::PUT, Method::GET, false),
            (303, Method::HEAD, Method::HEAD, true),
            (301, Method::PUT, Method::PUT, true),
            (302, Method::DELETE, Method::DELETE, true),
            (307, Method::POST, Method::POST, true),
            (308, Method::POST, Method::POST, true),
        ];
        for (status, method, expected, keeps_body) in cases {
            let first =
                hop(method.clone(), "https://a.example/x", &[("content-type", "text/plain")], Some("b"));
            let next = redirect(&first, status, "/y").unwrap().unwrap();
            assert_eq!(next.method, expected, "{status} {method}");
            assert_eq!(next.body.is_some(), keeps_body, "{status} {method}");
            assert_eq!(next.outgoing_headers().contains_key("content-type"), keeps_body, "{status} {method}");
        }
    }

    #[test]
    fn what_is_written_is_not_sent_on_as_a_question() {
        for status in [301, 302] {
            for body in [Some("b"), None] {
                let refused = redirect(&hop(Method::POST, "https://a.example/x", &[], body), status, "/y");
                assert!(matches!(refused, Err(EgressError::ContentNotSentOn { .. })), "{status}");
            }
            let read = hop(Method::GET, "https://a.example/x", &[], None);
            assert_eq!(redirect(&read, status, "/y").unwrap().unwrap().method, Method::GET);
        }
    }

    #[test]
    fn every_difference_in_scheme_host_or_port_drops_the_callers_headers() {
        let first = hop(
            Method::GET,
            "http://a.example/x",
            &[("authorization", "Bearer s"), ("x-api-key", "s")],
            None,
        );
        for location in
            ["https://a.example/x", "http://b.example/", "//b.a.example/", "http://a.example:8080/x"]
        {
            let next = redirect(&first, 302, location).unwrap().unwrap();
            let sent = next.outgoing_headers();
            assert_eq!(sent.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"], "{location}");
            let back = redirect(&next, 302, "http://a.example/x").unwrap().unwrap();
            assert!(!back.outgoing_headers().contains_key("authorization"), "{location}");
        }
        for location in ["/y", "y?z", "http://a.example:80/y", "http://A.example/y"] {
            let next = redirect(&first, 302, location).unwrap().unwrap();
            assert!(next.outgoing_headers().contains_key("x-api-key"), "{location}");
        }
    }

    #[test]
    fn a_body_does_not_go_to_another_origin() {
        let first = hop(Method::POST, "https://a.example/x", &[], Some("secret"));
        assert!(matches!(
            redirect(&first, 307, "https://b.example/"),
            Err(EgressError::ContentNotSentOn { .. })
        ));
        assert!(redirect(&first, 303, "https://b.example/").unwrap().unwrap().body.is_none());
    }

    #[test]
    fn credentials_do_not_follow_from_https_to_http() {
        let with_key = hop(Method::GET, "https://a.example/x", &[("x-api-key", "s")], None);
        assert!(matches!(
            redirect(&with_key, 302, "http://a.example/"),
            Err(EgressError::RefusedRedirect { .. })
        ));
        let without = hop(Method::GET, "https://a.example/x", &[("if-none-match", "\"e\"")], None);
        assert!(redirect(&without, 302, "http://a.example/").unwrap().is_some());
    }

    #[test]
    fn what_is_not_a_redirect_stays_a_response() {
        let first = hop(Method::GET, "https://a.example/x", &[], None);
        assert!(redirect(&first, 304, "/y").unwrap().is_none());
        assert!(redirect(&first, 200, "/y").unwrap().is_none());
        assert!(first.redirected(StatusCode::FOUND, &HeaderMap::new()).unwrap().is_none());
    }

    #[test]
    fn what_leads_to_no_url_is_refused() {
        let first = hop(Method::GET, "https://a.example/x", &[], None);
        for location in ["http://[", "http://", "https://a b/"] {
            let refused = redirect(&first, 302, location);
            assert!(matches!(refused, Err(EgressError::RefusedRedirect { .. })), "{location}");
        }
    }

    #[test]
    fn headers_of_the_connection_cannot_be_set_from_outside() {
        let headers = [
            ("host", "b"),
            ("content-length", "0"),
            ("transfer-encoding", "chunked"),
            ("keep-alive", "timeout=1"),
            ("accept-encoding", "zstd"),
            ("x-own", "1"),
        ];
        let sent = hop(Method::GET, "https://a.example/x", &headers, None).outgoing_headers();
        let mut names: Vec<_> = sent.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "x-own"]);
        assert!(sent["x-own"].is_sensitive());
    }
}
