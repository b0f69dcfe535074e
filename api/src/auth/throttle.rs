//! Attempts to sign in are counted, per account and per address. And what requests are counted by: the credentials that they
//! carry, whether or not those are good for anything.

use axum::http::HeaderMap;
use lectern_shared::{
    clock::Timestamp,
    limits::{Attempt, Guess, Limits, RetryAfter},
};

use super::{TOKEN_HEADERS, bearer};
use crate::error::ApiError;

/// Counts attempts to sign in.
#[derive(Clone)]
pub(crate) struct Throttle(Limits);

impl Throttle {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(limits)
    }

    /// Begins an attempt. It counts at once, so that many at a time do not slip through together.
    ///
    /// # Errors
    /// 429 when there were too many failures.
    pub(crate) async fn begin(&self, guess: Guess, now: Timestamp) -> Result<Attempt, ApiError> {
        self.0.begin(guess, now).await.map_err(refusal)
    }
}

fn refusal(wait: RetryAfter) -> ApiError {
    ApiError::too_many("too_many_attempts", "Too many failed sign-ins. Wait before you try again.", wait)
}

/// The credentials that a request carries: what stands behind `Bearer`, and in the API token's own header. A request with two
/// may be authenticated by either, so it is counted for both.
pub(crate) fn carried(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let token = TOKEN_HEADERS.iter().find_map(|name| headers.get(name));
    let token = token.and_then(|value| value.to_str().ok()).map(str::trim);
    bearer(headers).ok().flatten().into_iter().chain(token).filter(|credential| !credential.is_empty())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn carried_by(headers: &[(&'static str, &str)]) -> Vec<String> {
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        carried(&pairs.collect()).map(str::to_owned).collect()
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
    }

    #[test]
    fn what_is_no_credential_is_not_carried() {
        assert!(carried_by(&[]).is_empty());
        assert!(carried_by(&[("authorization", "Basic abc"), ("x_service_api_key", " ")]).is_empty());
    }
}
