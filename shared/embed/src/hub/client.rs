//! Requests to a hub: redirects, what its statuses mean, and when to ask again.

use std::time::Duration;

use lectern_shared::{
    egress,
    retry::{RetryBackoff, retry_after},
};
use reqwest::{
    StatusCode,
    header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION},
};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use url::Url;

use super::{HubError, ModelId, error::HubFailure};
use crate::retry;

/// Redirects followed for one request.
const MAX_REDIRECTS: usize = 8;
/// The largest answer that is not a file, in bytes.
const MAX_JSON: usize = 8 * 1024 * 1024;
/// What went wrong, in the hub's own words, when it says so.
const ERROR_CODE: &str = "x-error-code";

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct HubRetryPolicy {
    /// Longest time to connect.
    pub(super) connect: Duration,
    /// Longest time without a byte.
    pub(super) silence: Duration,
    /// Between tries.
    pub(super) pauses: RetryBackoff,
    /// A host to which no connection can be made is given up after so long.
    pub(super) unreachable: Duration,
    /// Any other failure is, when nothing has come for so long.
    pub(super) no_progress: Duration,
}

impl Default for HubRetryPolicy {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            pauses: RetryBackoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) },
            unreachable: Duration::from_secs(20),
            no_progress: Duration::from_mins(5),
        }
    }
}

/// The way to one hub.
pub(super) struct HubClient {
    address: Url,
    authorization: Option<HeaderValue>,
    http: reqwest::Client,
    patience: HubRetryPolicy,
}

impl HubClient {
    pub(super) fn new(
        address: Url,
        token: Option<SecretString>,
        patience: HubRetryPolicy,
    ) -> Result<Self, HubError> {
        if !matches!(address.scheme(), "http" | "https") || address.host().is_none() {
            return Err(HubError::Settings(
                "the model hub's address begins with https:// or http:// and a host",
            ));
        }
        if !address.username().is_empty() || address.password().is_some() {
            return Err(HubError::Settings("the model hub's address may not hold a password; set HF_TOKEN"));
        }
        let authorization = token.map(|token| bearer(&token)).transpose()?;
        let http = egress::operator_client(patience.connect, patience.silence)
            .map_err(|_| HubError::Settings("the HTTP client for the model hub cannot be set up"))?;
        Ok(Self { address, authorization, http, patience })
    }

    pub(super) fn tries(&self) -> RequestRetries {
        RequestRetries { patience: self.patience, since: Instant::now(), failures: 0 }
    }

    /// The hub's name for messages.
    pub(super) fn host(&self) -> String {
        host(&self.address)
    }

    /// An address of the hub; each segment is escaped.
    pub(super) fn url<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.address.clone();
        url.set_query(None);
        url.set_fragment(None);
        // An address with a host always has a path.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Asks for JSON until it comes, and returns it with the address of the next page.
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        model: &ModelId,
        url: &Url,
    ) -> Result<(T, Option<Url>), HubError> {
        let mut tries = self.tries();
        let (body, next) = loop {
            match self.small(model, url).await {
                Ok(answer) => break answer,
                Err(failure) => tries.again(failure).await?,
            }
        };
        let parsed = serde_json::from_slice(&body)
            .map_err(|_| self.not_a_hub("its answer is not what it should be"))?;
        Ok((parsed, next))
    }

    async fn small(&self, model: &ModelId, url: &Url) -> Result<(Vec<u8>, Option<Url>), HubFailure> {
        let mut response = self.get(model, url.clone(), HeaderMap::new()).await?;
        let next = next_page(response.headers(), response.url());
        if next.as_ref().is_some_and(|next| next.origin() != self.address.origin()) {
            return Err(self.not_a_hub("its list goes on at another host").into());
        }
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| broken(&self.address, &error))? {
            if body.len() + part.len() > MAX_JSON {
                return Err(self.not_a_hub("its answer does not end").into());
            }
            body.extend_from_slice(&part);
        }
        Ok((body, next))
    }

    /// One GET, redirects followed. The token goes to the hub alone: after a redirect to another origin it is not sent any
    /// more. Returns answers of success, and 416 (no such range).
    pub(super) async fn get(
        &self,
        model: &ModelId,
        mut url: Url,
        mut headers: HeaderMap,
    ) -> Result<reqwest::Response, HubFailure> {
        // Sizes and hashes are those of the file itself.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(token) = &self.authorization {
            headers.insert(AUTHORIZATION, token.clone());
        }
        for _ in 0..=MAX_REDIRECTS {
            let sent = self.http.get(url.clone()).headers(headers.clone()).send().await;
            let response = sent.map_err(|error| broken(&url, &error))?;
            let status = response.status();
            if status.is_success() || status == StatusCode::RANGE_NOT_SATISFIABLE {
                return Ok(response);
            }
            if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Err(self.failed(model, &url, &response));
            }
            let next = response
                .headers()
                .get(LOCATION)
                .and_then(|location| url.join(std::str::from_utf8(location.as_bytes()).ok()?).ok())
                .ok_or_else(|| self.not_a_hub("it redirects to nowhere"))?;
            if !may_follow(&self.address, &next) {
                return Err(self.not_a_hub("it redirects to an address that is not https").into());
            }
            if next.origin() != url.origin() {
                headers.remove(AUTHORIZATION);
            }
            url = next;
        }
        Err(self.not_a_hub("it redirects without end").into())
    }

    pub(super) fn not_a_hub(&self, problem: impl Into<String>) -> HubError {
        HubError::NotAHub { host: self.host(), problem: problem.into() }
    }

    /// What an answer means that is neither success nor redirect.
    fn failed(&self, model: &ModelId, url: &Url, response: &reqwest::Response) -> HubFailure {
        let (status, headers) = (response.status(), response.headers());
        let host = host(url);
        let problem = format!("it answers {}", status.as_u16());
        if retry::is_passing(status) {
            let after = retry_after(headers);
            return HubFailure { error: HubError::Away { host, problem }, after, unreachable: false };
        }
        // Another host keeps the files behind addresses that are good for a while; the hub gives a fresh one.
        if url.origin() != self.address.origin() {
            return HubError::Away { host, problem }.into();
        }
        let code = headers.get(ERROR_CODE).and_then(|code| code.to_str().ok()).unwrap_or_default();
        let model = model.clone();
        let error = match (status.as_u16(), code) {
            (401 | 403, "GatedRepo") => HubError::Refused {
                model,
                host,
                problem: "it is given out after an agreement only: accept it on the model's page, then set HF_TOKEN to a token of that account",
            },
            (404, "RevisionNotFound") => {
                HubError::NotFound { model, host, problem: "it has no such revision" }
            }
            (401 | 404, "RepoNotFound") | (401, _) if self.authorization.is_none() => HubError::NotFound {
                model,
                host,
                problem: "there is no such model, or it is private or gated: check its name, and set HF_TOKEN when it needs one",
            },
            (401, _) => HubError::Refused { model, host, problem: "the token in HF_TOKEN is not accepted" },
            (403, _) => HubError::Refused {
                model,
                host,
                problem: "access is forbidden; HF_TOKEN has to be a token that may read it",
            },
            (404 | 410, _) => {
                HubError::NotFound { model, host, problem: "there is no such model, revision or file" }
            }
            _ => HubError::NotAHub { host, problem },
        };
        error.into()
    }
}

/// The tries of one request.
pub(super) struct RequestRetries {
    patience: HubRetryPolicy,
    since: Instant,
    failures: u32,
}

impl RequestRetries {
    /// Something came: the patience begins anew.
    pub(super) fn progressed(&mut self) {
        (self.since, self.failures) = (Instant::now(), 0);
    }

    /// Waits until the request may be sent again.
    ///
    /// # Errors
    /// The failure, when it is none that passes or nothing has come for too long.
    pub(super) async fn again(&mut self, failure: HubFailure) -> Result<(), HubError> {
        let HubError::Away { host, problem } = failure.error else { return Err(failure.error) };
        self.failures += 1;
        let pause = retry::pause(self.patience.pauses, self.failures, failure.after);
        let patience =
            if failure.unreachable { self.patience.unreachable } else { self.patience.no_progress };
        if self.since.elapsed().saturating_add(pause) > patience {
            let problem = match failure.after {
                Some(after) => format!("{problem} and asks to come back in {} s", after.as_secs()),
                None => problem,
            };
            return Err(HubError::Away { host, problem });
        }
        tracing::info!(host, problem, pause_ms = pause.as_millis(), "the model hub is asked again");
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

/// The connection failed.
pub(super) fn broken(url: &Url, error: &reqwest::Error) -> HubFailure {
    let away = HubError::Away { host: host(url), problem: retry::reason(error).to_owned() };
    HubFailure { error: away, after: None, unreachable: error.is_connect() }
}

fn bearer(token: &SecretString) -> Result<HeaderValue, HubError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret().trim()))
        .map_err(|_| HubError::Settings("HF_TOKEN holds characters that a token cannot have"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// `Link: <address>; rel="next"`.
fn next_page(headers: &HeaderMap, base: &Url) -> Option<Url> {
    let links = headers.get_all(reqwest::header::LINK).iter().filter_map(|value| value.to_str().ok());
    links.flat_map(|links| links.split(',')).find_map(|link| {
        let (address, relation) = link.trim().strip_prefix('<')?.split_once('>')?;
        relation.contains("rel=\"next\"").then(|| base.join(address).ok()).flatten()
    })
}

/// A hub that is asked over https does not lead away from it.
fn may_follow(hub: &Url, next: &Url) -> bool {
    match next.scheme() {
        "https" => true,
        "http" => hub.scheme() == "http",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_keeps_to_https_unless_the_hub_itself_has_none() {
        let follows = |hub: &str, next: &str| may_follow(&hub.parse().unwrap(), &next.parse().unwrap());
        assert!(follows("https://hub.example.com", "https://files.example.com/x"));
        assert!(!follows("https://hub.example.com", "http://files.example.com/x"));
        assert!(follows("http://hub.internal", "http://files.internal/x"));
        assert!(follows("http://hub.internal", "https://files.example.com/x"));
        assert!(!follows("http://hub.internal", "file:///etc/passwd"));
    }

    #[test]
    fn a_mirror_may_have_a_path_and_segments_are_escaped() {
        let client = |address: &str| {
            HubClient::new(address.parse().unwrap(), None, HubRetryPolicy::default()).unwrap()
        };
        let url = client("https://mirror.example.com/hub/?x#y").url(["a", "refs/pr/1"]);
        assert_eq!(url.as_str(), "https://mirror.example.com/hub/a/refs%2Fpr%2F1");
        assert_eq!(client("https://huggingface.co").url(["a"]).as_str(), "https://huggingface.co/a");
    }

    #[test]
    fn the_next_page_is_read_from_the_links() {
        let base: Url = "https://hub.example.com/api/x".parse().unwrap();
        let links = r#"</api/x?cursor=1>; rel="prev", </api/x?cursor=3>; rel="next""#;
        let headers = [(reqwest::header::LINK, links.parse().unwrap())].into_iter().collect();
        assert_eq!(next_page(&headers, &base).unwrap().as_str(), "https://hub.example.com/api/x?cursor=3");
        assert_eq!(next_page(&HeaderMap::new(), &base), None);
    }
}
