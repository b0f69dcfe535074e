//! From where messages are taken. A page of a stranger's can make a browser send some here, by a name of the stranger's that
//! leads to this address (DNS rebinding), or across origins.

use std::net::IpAddr;

use axum::http::{HeaderMap, header, uri::Authority};
use lectern_shared::config::CorsOrigins;
use url::Url;

use crate::{
    error::{ApiError, ApiErrorKind},
    state::AppState,
};

/// Refuses messages that were sent by a page that may not, or to a name which is none of the service's. Pages say where they are
/// from with whatever they post, also to a name that was made to lead here; programs do not, and may use any name.
pub(super) async fn check(state: &AppState, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let is_allowed = match &state.runtime.settings.cors_origins {
        CorsOrigins::Any => true,
        CorsOrigins::Exactly(allowed) => allowed.iter().any(|known| known == origin),
        CorsOrigins::None => false,
    };
    let public = state.runtime.settings.public_url.as_ref();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    // A token for pages is held to its own origins when it is looked at.
    if is_allowed || is_own_origin(origin, host, public) || state.services.origins.allows(origin).await {
        return Ok(());
    }
    if !is_own_host(host, public) {
        let message = "The service is not known by this name. LECTERN_PUBLIC_URL says by which it is.";
        return Err(ApiError::new(ApiErrorKind::Forbidden, "host_refused", message));
    }
    let message = "Pages of this origin may not call the service. LECTERN_CORS_ORIGINS says which may.";
    Err(ApiError::new(ApiErrorKind::Forbidden, "origin_refused", message))
}

/// Whether the service can be meant by this host. Only a name with a dot can be made to lead here by whoever it belongs to: an
/// address leads where it says, and a single word is looked up on the spot.
fn is_own_host(host: &str, public: Option<&Url>) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_matches(['[', ']']);
    name.parse::<IpAddr>().is_ok()
        || !name.contains('.')
        || public.and_then(Url::host_str).is_some_and(|public| public.eq_ignore_ascii_case(name))
}

/// Whether a page is one of the service itself.
fn is_own_origin(origin: &str, host: &str, public: Option<&Url>) -> bool {
    let is_there = origin.split_once("://").is_some_and(|(_, place)| place.eq_ignore_ascii_case(host));
    is_there && is_own_host(host, public)
        || public.is_some_and(|public| public.origin().ascii_serialization() == origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public() -> Url {
        "https://lectern.example.com/here".parse().unwrap()
    }

    #[test]
    fn a_name_that_a_stranger_can_own_is_refused_unless_it_is_the_public_one() {
        let public = public();
        for host in
            ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "192.0.2.7", "lectern:8080"]
        {
            assert!(is_own_host(host, None) && is_own_host(host, Some(&public)), "{host}");
        }
        for host in ["lectern.example.com", "LECTERN.example.com:443"] {
            assert!(is_own_host(host, Some(&public)) && !is_own_host(host, None), "{host}");
        }
        for host in ["evil.example", "lectern.example.com.evil.example", "127.0.0.1.evil.example", "", "a b"]
        {
            assert!(!is_own_host(host, Some(&public)), "{host}");
        }
    }

    #[test]
    fn pages_of_the_service_are_known_by_its_address() {
        let public = public();
        assert!(is_own_origin("https://lectern.example.com", "10.0.0.1:8080", Some(&public)));
        assert!(is_own_origin("http://localhost:8080", "localhost:8080", None));
        for origin in ["http://lectern.example.com", "null", "https://evil.example", "http://localhost:9090"]
        {
            assert!(!is_own_origin(origin, "localhost:8080", Some(&public)), "{origin}");
        }
        assert!(
            !is_own_origin("http://evil.example", "evil.example", Some(&public)),
            "it was made to lead here"
        );
    }
}
