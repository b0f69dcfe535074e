//! Browsers carry their sign-in in a cookie, which no script can read. A layer turns it into the headers that every other client
//! sends, so that all that comes after knows one way alone; and it lets nothing be changed but from this service's own pages.

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use lectern_shared::ids::WorkspaceId;

use super::{
    cookies::CookieNames,
    elsewhere,
    frame::{PAGE_WORKSPACE, wants_json, wants_page},
    is_page,
};
use crate::{
    auth::{PageWorkspace, WORKSPACE, headers::presented_credentials},
    client_address::TrustedProxy,
    error::{ApiError, ApiErrorKind},
    extract::parameter,
    public_address::PublicAddress,
    state::AppState,
};

/// Where browsers tell which site a request comes from. Pages cannot set it.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Lets browsers in by their cookie.
pub(crate) async fn admit(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_page = is_page(path);
    let is_nowhere = !is_page && is_nowhere(&request);
    if !is_page && !is_nowhere && !is_api(path) {
        return next.run(request).await;
    }
    let is_proxied = request.extensions().get::<TrustedProxy>().is_some();
    let headers = request.headers();
    let address = PublicAddress::of(state.runtime.settings.public_url.as_ref(), headers, is_proxied);
    let (session, workspace) = CookieNames::at(&address).read(headers);
    // Whoever says in a header who they are is known by it, whatever their browser adds.
    let session = session.filter(|_| presented_credentials(headers).next().is_none());
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if (is_page || session.is_some()) && !is_safe && !is_from_here(headers, &address) {
        let message = "This was sent by a page of another site, so nothing was done. Go to the page here, and try again.";
        return ApiError::new(ApiErrorKind::Forbidden, "cross_origin", message).into_response();
    }
    let of_page = session.filter(|_| !is_safe).and_then(|_| parameter(request.uri(), PAGE_WORKSPACE));
    let of_page: Option<WorkspaceId> = of_page.and_then(|id| id.parse().ok());
    let bearer = session.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok());
    let workspace = workspace.and_then(|id| HeaderValue::from_str(id).ok());
    if let Some(mut bearer) = bearer {
        bearer.set_sensitive(true);
        if let Some(of_page) = of_page {
            request.extensions_mut().insert(PageWorkspace(of_page));
        }
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, bearer);
        if let Some(workspace) = workspace
            && !headers.contains_key(WORKSPACE)
        {
            headers.insert(WORKSPACE, workspace);
        }
        if (is_page || is_nowhere) && !wants_json(request.headers()) {
            return elsewhere::answer(&state, request, next).await;
        }
    }
    next.run(request).await
}

/// Whether a person goes to an address at which there is nothing, which is told on a page too.
fn is_nowhere(request: &Request) -> bool {
    *request.method() == Method::GET
        && request.extensions().get::<MatchedPath>().is_none()
        && wants_page(request.headers())
}

fn is_api(path: &str) -> bool {
    path.strip_prefix("/api/v1").is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a page of this service sends a request, by what its browser says. One that says nothing of it is no browser of today.
fn is_from_here(headers: &HeaderMap, address: &PublicAddress) -> bool {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(&SITE) {
        // `none` is the person at the browser, and no page.
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text(&header::ORIGIN) else { return false };
    let host = text(&header::HOST).unwrap_or_default();
    let is_own_host = origin.split_once("://").is_some_and(|(_, named)| !host.is_empty() && named == host);
    is_own_host || address.origin().is_some_and(|own| own == origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        pairs.iter().copied().map(pair).collect()
    }

    fn address(url: &str) -> PublicAddress {
        PublicAddress::of(Some(&url.parse().unwrap()), &HeaderMap::new(), false)
    }

    #[test]
    fn a_change_is_taken_from_own_pages_alone() {
        let public = address("https://kb.example/lectern");
        for (sent, taken) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "https://kb.example")], false),
            (&[("origin", "https://kb.example")], true),
            (&[("origin", "http://kb.example"), ("host", "10.0.0.1")], false),
            (&[("origin", "http://10.0.0.1:8080"), ("host", "10.0.0.1:8080")], true),
            (&[("origin", "https://evil.example"), ("host", "kb.example")], false),
            (&[("origin", "null"), ("host", "kb.example")], false),
            (&[("origin", "https://"), ("host", "")], false),
            (&[], false),
        ] {
            assert_eq!(is_from_here(&headers(sent), &public), taken, "{sent:?}");
        }
    }
}
