//! Requests to a server of models (embeddings, rerank scores): what its answers mean, and when to ask again.

use std::time::Duration;

use bytes::Bytes;
use lectern_shared::{
    compute::ComputeStopped,
    egress,
    retry::{RetryBackoff, retry_after},
};
use reqwest::{
    StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout_at},
};
use url::Url;

use crate::{EmbedError, RerankError, retry};

/// The most bytes of an error's text that are looked at.
const MAX_ERROR: usize = 16 * 1024;
/// So many times in a row a server may answer 500: after that it is what it was sent that it fails at, such as a text that is too long
/// for it. What is overloaded or away says so by other numbers.
const MAX_FAULTS: u32 = 3;
/// How servers name, in an error, that waiting does not help.
const NO_QUOTA: &[u8] = b"insufficient_quota";

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerRetryPolicy {
    /// Longest time to connect.
    pub(super) connect: Duration,
    /// Longest time without a byte: a model may have to be loaded first, and a full batch be computed on slow machines.
    pub(super) silence: Duration,
    /// Between tries.
    pub(super) pauses: RetryBackoff,
    /// The longest pause that a server may ask for.
    pub(super) longest_wait: Duration,
    /// One request with passages, all its tries together.
    pub(super) passages: Duration,
    /// A question, all tries together: somebody waits.
    pub(super) question: Duration,
    /// The first word, by which the dimension is learned.
    pub(super) opening: Duration,
}

impl Default for ServerRetryPolicy {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_mins(2),
            pauses: RetryBackoff { first: Duration::from_millis(500), longest: Duration::from_secs(20) },
            longest_wait: Duration::from_mins(1),
            passages: Duration::from_mins(5),
            question: Duration::from_secs(15),
            opening: Duration::from_secs(30),
        }
    }
}

/// What differs between servers: where they are asked, and which settings say so.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerEndpoint {
    /// The last part of the address's path.
    pub(super) path: &'static str,
    /// Before the names of its settings.
    pub(super) settings: &'static str,
}

/// Why a server did not serve, in words for the operator, without secrets and without what was sent.
#[derive(Debug)]
pub(super) enum ModelServerError {
    /// It is away, too slow, or asked too often.
    Away(String),
    /// It will fail again until the operator changes something.
    Refused(String),
    /// A computation panicked, or the process is ending.
    Stopped(ComputeStopped),
}

impl From<ComputeStopped> for ModelServerError {
    fn from(stopped: ComputeStopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl From<ModelServerError> for EmbedError {
    fn from(error: ModelServerError) -> Self {
        match error {
            ModelServerError::Away(problem) => Self::Away(problem),
            ModelServerError::Refused(problem) => Self::Refused(problem),
            ModelServerError::Stopped(stopped) => Self::Stopped(stopped),
        }
    }
}

impl From<ModelServerError> for RerankError {
    fn from(error: ModelServerError) -> Self {
        match error {
            ModelServerError::Away(problem) => Self::Away(problem),
            ModelServerError::Refused(problem) => Self::Refused(problem),
            ModelServerError::Stopped(stopped) => Self::Stopped(stopped),
        }
    }
}

/// Why there is no answer to be read.
#[derive(Debug)]
pub(super) enum RequestRejection {
    /// The server does not take what it was sent, or fails at it again and again: perhaps too many texts, or one too long.
    Content(StatusCode),
    /// Anything else.
    Failed(ModelServerError),
}

/// How one try ended without an answer.
enum AttemptError {
    Passing {
        problem: String,
        after: Option<Duration>,
        /// It failed by itself, without saying that another try helps.
        is_fault: bool,
    },
    End(RequestRejection),
}

/// The way to one server.
pub(super) struct ModelServer {
    endpoint: ServerEndpoint,
    url: Url,
    headers: HeaderMap,
    http: reqwest::Client,
    patience: ServerRetryPolicy,
}

impl ModelServer {
    pub(super) fn new(
        endpoint: ServerEndpoint,
        base: &Url,
        key: Option<&SecretString>,
        patience: ServerRetryPolicy,
    ) -> Result<Self, ModelServerError> {
        let refused = |problem: &str| ModelServerError::Refused(problem.to_owned());
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            return Err(refused("its address begins with https:// or http:// and a host"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(refused("its address may not hold a password; set the key on its own"));
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret().trim()))
                .map_err(|_| refused("its key holds characters that a key cannot have"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let http = egress::operator_client(patience.connect, patience.silence)
            .map_err(|_| refused("the HTTP client for it cannot be set up"))?;
        Ok(Self { endpoint, url: address(base, endpoint.path), headers, http, patience })
    }

    pub(super) fn patience(&self) -> &ServerRetryPolicy {
        &self.patience
    }

    /// Who is asked, for messages.
    fn host(&self) -> String {
        host(&self.url)
    }

    /// Where it is, without what may be secret: host, port and path.
    pub(super) fn place(&self) -> String {
        let path = self.url.path();
        let before = path.strip_suffix(self.endpoint.path).and_then(|path| path.strip_suffix('/'));
        format!("{}{}", self.host(), before.unwrap_or(path))
    }

    pub(super) fn away(&self, problem: impl std::fmt::Display) -> ModelServerError {
        ModelServerError::Away(format!("{}: {problem}", self.host()))
    }

    pub(super) fn refused(&self, problem: impl std::fmt::Display) -> ModelServerError {
        ModelServerError::Refused(format!("{}: {problem}", self.host()))
    }

    /// Sends a request until there is an answer of success, of at most so many bytes, or until the time is over. Each try takes one of
    /// the `slots`, if there are any; waiting for it does not count, and nobody else waits for the pauses between the tries.
    pub(super) async fn ask(
        &self,
        body: Bytes,
        max_answer: usize,
        within: Duration,
        slots: Option<&Semaphore>,
    ) -> Result<Vec<u8>, RequestRejection> {
        let mut deadline = Instant::now() + within;
        let (mut failures, mut faults) = (0, 0);
        let mut last = None;
        loop {
            let waiting = Instant::now();
            let slot = taken(slots).await?;
            deadline += waiting.elapsed();
            let tried = timeout_at(deadline, self.try_once(body.clone(), max_answer)).await;
            drop(slot);
            let Ok(tried) = tried else {
                // What went wrong before says more than the clock.
                let problem = last.unwrap_or_else(|| "it does not answer in time".to_owned());
                return Err(RequestRejection::Failed(self.away(problem)));
            };
            let (problem, after, is_fault) = match tried {
                Ok(answer) => return Ok(answer),
                Err(AttemptError::End(rejected)) => return Err(rejected),
                Err(AttemptError::Passing { problem, after, is_fault }) => (problem, after, is_fault),
            };
            failures += 1;
            faults = if is_fault { faults + 1 } else { 0 };
            if faults == MAX_FAULTS {
                return Err(RequestRejection::Content(StatusCode::INTERNAL_SERVER_ERROR));
            }
            let pause = retry::pause(self.patience.pauses, failures, after);
            let too_long = after.is_some_and(|after| after > self.patience.longest_wait);
            if too_long || Instant::now() + pause >= deadline {
                let problem = match after {
                    Some(after) => format!("{problem} and asks to come back in {} s", after.as_secs()),
                    None => problem,
                };
                return Err(RequestRejection::Failed(self.away(problem)));
            }
            tracing::debug!(host = self.host(), problem, "a server of models is asked again");
            last = Some(problem);
            tokio::time::sleep(pause).await;
        }
    }

    async fn try_once(&self, body: Bytes, max_answer: usize) -> Result<Vec<u8>, AttemptError> {
        let request = self.http.post(self.url.clone()).headers(self.headers.clone()).body(body);
        let mut response = request.send().await.map_err(|error| passing(retry::reason(&error)))?;
        let status = response.status();
        if status.is_success() {
            let (answer, whole) = read(&mut response, max_answer).await?;
            return if whole {
                Ok(answer)
            } else {
                Err(AttemptError::End(RequestRejection::Failed(
                    self.away(format!("it answers with more than {max_answer} bytes")),
                )))
            };
        }
        if retry::is_passing(status) {
            let after = retry_after(response.headers());
            if status == StatusCode::TOO_MANY_REQUESTS {
                // Looked at, and not shown: it may repeat the key or the texts.
                let (text, _) = read(&mut response, MAX_ERROR).await.unwrap_or_default();
                if text.windows(NO_QUOTA.len()).any(|part| part == NO_QUOTA) {
                    let error = self.refused("the account's quota is used up (429)");
                    return Err(AttemptError::End(RequestRejection::Failed(error)));
                }
            }
            let is_fault = status == StatusCode::INTERNAL_SERVER_ERROR && after.is_none();
            let problem = format!("it answers {}", status.as_u16());
            return Err(AttemptError::Passing { problem, after, is_fault });
        }
        Err(AttemptError::End(self.rejected(status)))
    }

    fn rejected(&self, status: StatusCode) -> RequestRejection {
        let settings = self.endpoint.settings;
        let problem = match status.as_u16() {
            400 | 413 | 422 => return RequestRejection::Content(status),
            401 => format!("its key is not accepted (401): {settings}_API_KEY"),
            403 => format!("its key may not use this model (403): {settings}_API_KEY"),
            404 | 405 | 410 => format!(
                "there is no such address or model ({}): {settings}_URL, {settings}_MODEL",
                status.as_u16()
            ),
            300..=399 => format!(
                "it redirects ({}), which is not followed: set {settings}_URL to where it leads",
                status.as_u16()
            ),
            other => format!("it answers {other}"),
        };
        RequestRejection::Failed(self.refused(problem))
    }
}

/// A body up to a size, and whether that is all of it.
async fn read(response: &mut reqwest::Response, max: usize) -> Result<(Vec<u8>, bool), AttemptError> {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
    let mut body = Vec::with_capacity(announced.unwrap_or(0).min(max));
    if announced.is_some_and(|length| length > max) {
        return Ok((body, false));
    }
    while let Some(part) = response.chunk().await.map_err(|error| passing(retry::reason(&error)))? {
        if body.len() + part.len() > max {
            return Ok((body, false));
        }
        body.extend_from_slice(&part);
    }
    Ok((body, true))
}

fn passing(problem: &str) -> AttemptError {
    AttemptError::Passing { problem: problem.to_owned(), after: None, is_fault: false }
}

/// One of the slots, once there is one.
async fn taken(slots: Option<&Semaphore>) -> Result<Option<SemaphorePermit<'_>>, RequestRejection> {
    let Some(slots) = slots else { return Ok(None) };
    let slot = slots.acquire().await;
    slot.map(Some).map_err(|_| RequestRejection::Failed(ComputeStopped.into()))
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The address that is asked: the path of the set one, and `end`, unless it is named already.
fn address(base: &Url, end: &str) -> Url {
    let mut url = base.clone();
    url.set_fragment(None);
    let named = url.path().trim_end_matches('/').rsplit('/').next() == Some(end);
    // An address with a host always has a path.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty();
        if !named {
            path.push(end);
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDPOINT: ServerEndpoint = ServerEndpoint { path: "embeddings", settings: "LECTERN_EMBEDDING" };

    #[test]
    fn the_address_may_be_written_with_or_without_its_end() {
        for (base, address, place) in [
            ("https://api.example.com/v1", "https://api.example.com/v1/embeddings", "api.example.com/v1"),
            ("https://api.example.com/v1/", "https://api.example.com/v1/embeddings", "api.example.com/v1"),
            ("http://localhost:8080", "http://localhost:8080/embeddings", "localhost:8080"),
            (
                "https://x.example.com/a/embeddings/?api-version=1",
                "https://x.example.com/a/embeddings?api-version=1",
                "x.example.com/a",
            ),
        ] {
            let server =
                ModelServer::new(ENDPOINT, &base.parse().unwrap(), None, ServerRetryPolicy::default())
                    .unwrap();
            assert_eq!((server.url.as_str(), server.place().as_str()), (address, place));
        }
    }

    #[test]
    fn an_address_with_a_password_and_a_key_with_a_line_are_refused_without_being_shown() {
        let with = "https://me:hunter2@api.example.com".parse().unwrap();
        let error = ModelServer::new(ENDPOINT, &with, None, ServerRetryPolicy::default()).err().unwrap();
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        let key = SecretString::from("hunter2\nx");
        let error = ModelServer::new(
            ENDPOINT,
            &"https://api.example.com".parse().unwrap(),
            Some(&key),
            ServerRetryPolicy::default(),
        )
        .err();
        assert!(!format!("{:?}", error.unwrap()).contains("hunter2"));
    }
}
