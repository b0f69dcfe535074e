//! The headers that credentials stand in.

use axum::http::{
    HeaderMap, HeaderName,
    header::{self, ToStrError},
};

use crate::error::ApiError;

/// The spelling that the interface was published with.
const AUTORIZATION: HeaderName = HeaderName::from_static("autorization");
/// The API token's header, and the spelling that proxies let through.
const TOKEN_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x_service_api_key"), HeaderName::from_static("x-service-api-key")];

/// The credential behind `Bearer`, in either spelling of the header. A proxy may use `Authorization` for itself, and none knows the other
/// one, so that is asked first.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut present = false;
    for name in [AUTORIZATION, header::AUTHORIZATION] {
        for value in headers.get_all(name) {
            present = true;
            let credential = value.to_str().ok().and_then(|value| value.split_once(' '));
            if let Some((_, credential)) =
                credential.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            {
                return Ok(Some(credential.trim()));
            }
        }
    }
    if present {
        Err(ApiError::unauthorized("The header must have the form `Bearer <token>`."))
    } else {
        Ok(None)
    }
}

/// What stands in the API token's own header, in either spelling.
///
/// # Errors
/// When it is no text.
pub(super) fn api_token(headers: &HeaderMap) -> Result<Option<&str>, ToStrError> {
    let value = TOKEN_HEADERS.iter().find_map(|name| headers.get(name));
    value.map(|value| value.to_str().map(str::trim)).transpose()
}

/// Whether what stands in the API token's own header has the scheme of the other one before it.
pub(super) fn is_bearer(value: &str) -> bool {
    value.split_once(' ').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
}

/// The credentials that a request carries, whether or not those are good for anything: what stands behind `Bearer`, and in the API
/// token's own header. A request with two may be authenticated by either, so it is counted for both.
pub(crate) fn presented_credentials(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let token = api_token(headers).ok().flatten();
    bearer(headers).ok().flatten().into_iter().chain(token).filter(|credential| !credential.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried_by(headers: &[(&'static str, &str)]) -> Vec<String> {
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        presented_credentials(&pairs.collect()).map(str::to_owned).collect()
    }

    #[test]
    fn a_credential_is_the_same_in_every_header_that_it_may_stand_in() {
        for (name, value) in [
            ("authorization", "Bearer lec_1"),
            ("autorization", "bearer  lec_1 "),
            ("x_service_api_key", "lec_1"),
            ("x-service-api-key", " lec_1"),
        ] {
            assert_eq!(carried_by(&[(name, value)]), ["lec_1"], "{name}");
        }
    }

    #[test]
    fn a_request_with_two_credentials_carries_both() {
        let both = [("authorization", "Bearer one"), ("x-service-api-key", "two")];
        assert_eq!(carried_by(&both), ["one", "two"]);
        let by_proxy = [("authorization", "Basic abc"), ("autorization", "Bearer one")];
        assert_eq!(carried_by(&by_proxy), ["one"]);
        let by_another = [("authorization", "Bearer the-proxys-own"), ("autorization", "Bearer one")];
        assert_eq!(carried_by(&by_another), ["one"]);
    }

    #[test]
    fn what_is_no_credential_is_not_carried() {
        assert!(carried_by(&[]).is_empty());
        assert!(carried_by(&[("authorization", "Basic abc"), ("x_service_api_key", " ")]).is_empty());
    }
}
