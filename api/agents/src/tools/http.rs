//! How a tool asks its service: through the guarded client, within the tool's time, bounded, and with failures in
//! words that say what a model or its user can do about them, and nothing of what the service wrote.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use lectern_shared::{
    compute::ComputePool,
    egress::{Egress, EgressError, EgressRequest, EgressResponse, RequestLimits},
};
use reqwest::{
    Method,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::ToolError;

/// Most bytes read of an answer.
pub(super) const MOST_BYTES: u64 = 1024 * 1024;
/// Most bytes read of the body of a failure.
const FAILURE: usize = 64 * 1024;
/// What is said of a service that redirects what is not only read. That it was not done has to be told, and what helps.
const MOVED: &str =
    "answered with a redirect, and what was sent is not sent on; set `base_url` to the new address";

/// A service that a tool asks.
#[derive(Clone)]
pub(super) struct ServiceClient {
    egress: Egress,
    compute: ComputePool,
    /// How sentences call it: `The search service`.
    subject: &'static str,
    /// The longest time for one call.
    timeout: Duration,
}

/// One question to a service.
pub(super) struct ServiceRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
    /// What the answer is wanted as.
    pub(super) accept: &'static str,
    /// Most bytes of the answer.
    pub(super) most: u64,
    /// What is to become of an answer with more.
    pub(super) excess: ExcessRule,
}

/// What becomes of an answer with more bytes than are read of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExcessRule {
    /// It cannot be understood in part, and has failed.
    Refused,
    /// Its beginning is the answer.
    LeftOut,
}

impl ServiceRequest {
    pub(super) fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
            accept: "application/json",
            most: MOST_BYTES,
            excess: ExcessRule::Refused,
        }
    }

    pub(super) fn get(url: Url) -> Self {
        Self::new(Method::GET, url)
    }

    pub(super) fn post(url: Url, body: &Value) -> Self {
        let mut ask = Self::new(Method::POST, url);
        ask.body = Some(body.to_string().into());
        ask.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        ask
    }

    pub(super) fn header(mut self, name: &'static str, value: HeaderValue) -> Self {
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// As it is sent, if there is time left.
    fn into_request(self, until: Instant) -> Result<EgressRequest, ToolError> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ToolError::Timeout);
        }
        let max_bytes = match self.excess {
            ExcessRule::Refused => self.most,
            // No more than that is read of it, whatever it claims to be.
            ExcessRule::LeftOut => u64::MAX,
        };
        let limits = RequestLimits { max_bytes, total_timeout: left, idle_timeout: left };
        let mut request = EgressRequest::new(self.method, self.url, limits);
        request.headers = self.headers;
        request.portable_headers.insert(ACCEPT, HeaderValue::from_static(self.accept));
        request.body = self.body;
        Ok(request)
    }
}

/// What a service answered.
pub(super) struct ServiceResponse {
    pub(super) status: u16,
    /// The media type without parameters, in lower case.
    pub(super) content_type: Option<String>,
    pub(super) body: Bytes,
    /// The body is the beginning of a longer one.
    pub(super) is_cut: bool,
    /// Where it came from, after redirects.
    pub(super) url: Url,
}

impl ServiceResponse {
    /// The body as text, if it says that it is plain text.
    pub(super) fn plain_text(&self) -> Option<String> {
        let plain = self.content_type.as_deref().is_none_or(|kind| kind == "text/plain");
        let text = String::from_utf8_lossy(&self.body);
        let text = text.trim();
        // A page without a type is still a page.
        (plain && !text.is_empty() && !text.starts_with('<')).then(|| text.to_owned())
    }
}

impl ServiceClient {
    pub(super) fn new(
        egress: Egress,
        compute: ComputePool,
        subject: &'static str,
        timeout: Duration,
    ) -> Self {
        Self { egress, compute, subject, timeout }
    }

    /// When a call that begins now ends at the latest.
    pub(super) fn until(&self, deadline: Instant) -> Instant {
        Instant::now().checked_add(self.timeout).map_or(deadline, |own| own.min(deadline))
    }

    /// Asks, and reads the answer, whatever its status: whole, unless the beginning of a long one is enough.
    pub(super) async fn send(
        &self,
        ask: ServiceRequest,
        until: Instant,
    ) -> Result<ServiceResponse, ToolError> {
        let most = usize::try_from(ask.most).unwrap_or(usize::MAX);
        let excess = ask.excess;
        let request = ask.into_request(until)?;
        let exchange = async {
            let response = self.egress.send(request).await?;
            let (status, content_type) = (response.status, response.content_type());
            let url = response.final_url.clone();
            let (body, is_cut) = match excess {
                ExcessRule::LeftOut if (200..300).contains(&status) => beginning(response, most).await?,
                ExcessRule::LeftOut | ExcessRule::Refused => (read(response).await?, false),
            };
            Ok(ServiceResponse { status, content_type, body, is_cut, url })
        };
        match timeout_at(until, exchange).await {
            Ok(answer) => answer.map_err(|error| self.explain(&error)),
            Err(_) => Err(ToolError::Timeout),
        }
    }

    /// Asks, and waits for the head of the answer only, whatever its status. A redirect is an answer too.
    pub(super) async fn begin(
        &self,
        ask: ServiceRequest,
        until: Instant,
    ) -> Result<EgressResponse, ToolError> {
        let mut request = ask.into_request(until)?;
        request.follow_redirects = false;
        match timeout_at(until, self.egress.send(request)).await {
            Ok(answer) => answer.map_err(|error| self.explain(&error)),
            Err(_) => Err(ToolError::Timeout),
        }
    }

    /// Without the host: a redirect or a document can name one that the tool's owner has never heard of.
    pub(super) fn explain(&self, error: &EgressError) -> ToolError {
        let what = match error {
            EgressError::Timeout { .. } => return ToolError::Timeout,
            EgressError::InvalidUrl { .. } => "is at an address that cannot be asked",
            // In the same words, so that nobody maps the operator's network by them.
            EgressError::RefusedAddress { .. }
            | EgressError::OtherSite { .. }
            | EgressError::Dns { .. }
            | EgressError::Connect { .. } => {
                "could not be reached: it does not answer, or it is not at an address that is open to users"
            }
            EgressError::Tls { .. } => "could not be reached securely; its certificate may be invalid",
            EgressError::TooLarge { .. } => "gave an answer that is too large",
            EgressError::ContentNotSentOn { .. } => MOVED,
            EgressError::TooManyRedirects { .. } | EgressError::RefusedRedirect { .. } => {
                "answered with a redirect that was not followed"
            }
            EgressError::Decode | EgressError::Protocol { .. } => "gave an answer that could not be read",
            EgressError::Setup { .. } => "could not be asked",
        };
        self.failed(what)
    }

    /// A sentence about this service.
    pub(super) fn failed(&self, what: &str) -> ToolError {
        ToolError::Failed(format!("{} {what}.", self.subject))
    }

    /// The answer, if its status says that it is what was asked for.
    pub(super) fn accept(&self, answer: ServiceResponse) -> Result<ServiceResponse, ToolError> {
        if (200..300).contains(&answer.status) { Ok(answer) } else { Err(self.refused(answer.status)) }
    }

    /// That the service answered with this status, which is no success.
    pub(super) fn refused(&self, status: u16) -> ToolError {
        let what = match status {
            401 | 403 => "rejected the credentials of this tool".to_owned(),
            402 | 432 | 433 => "wants its account to be paid or its plan's limit to be raised".to_owned(),
            429 => "has been asked too often; try again later".to_owned(),
            500..=599 => format!("failed (status {status}); try again later"),
            _ => format!("refused the request (status {status})"),
        };
        self.failed(&what)
    }

    /// That the service answered with something that its protocol does not know.
    pub(super) fn malformed_answer(&self) -> ToolError {
        self.failed("answered with something that cannot be understood")
    }

    /// The body of a successful answer as JSON.
    pub(super) async fn json(&self, answer: ServiceResponse) -> Result<Value, ToolError> {
        let body = self.accept(answer)?.body;
        parse(&self.compute, body).await.ok_or_else(|| self.malformed_answer())
    }

    /// Where heavy work is done.
    pub(super) fn compute(&self) -> &ComputePool {
        &self.compute
    }
}

/// The whole body of a success. Of a failure, the beginning, as far as it comes: what matters is that it is one.
async fn read(mut response: EgressResponse) -> Result<Bytes, EgressError> {
    if (200..300).contains(&response.status) {
        return response.bytes().await;
    }
    let mut body = BytesMut::new();
    while body.len() < FAILURE {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Err(error @ EgressError::Timeout { .. }) => return Err(error),
            Ok(None) | Err(_) => break,
        }
    }
    body.truncate(FAILURE);
    Ok(body.freeze())
}

/// So many bytes of a body at most, and whether there were more. What comes after them is not waited for.
async fn beginning(mut response: EgressResponse, most: usize) -> Result<(Bytes, bool), EgressError> {
    let mut body = BytesMut::new();
    while body.len() <= most {
        let Some(chunk) = response.chunk().await? else { return Ok((body.freeze(), false)) };
        body.extend_from_slice(&chunk);
    }
    body.truncate(most);
    Ok((body.freeze(), true))
}

/// A body as JSON, if it is.
pub(super) async fn parse(compute: &ComputePool, body: Bytes) -> Option<Value> {
    compute.parse(body, |body| serde_json::from_slice(body).ok()).await
}

/// A body as JSON without white space, if it is JSON; numbers stay as they are written.
pub(super) async fn compact(compute: &ComputePool, body: Bytes) -> Option<String> {
    let work = move || {
        let text = std::str::from_utf8(&body).ok()?;
        serde_json::from_str::<IgnoredAny>(text).ok()?;
        let (mut quoted, mut escaped) = (false, false);
        let kept = text.chars().filter(|c| {
            let keep = quoted || !c.is_ascii_whitespace();
            match c {
                '"' if !escaped => quoted = !quoted,
                _ => {}
            }
            escaped = *c == '\\' && !escaped;
            keep
        });
        Some(kept.collect())
    };
    compute.run(work).await.ok().flatten()
}

/// `path`, which begins with `/`, behind the path of `base`.
pub(super) fn join(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_query(None);
    url.set_fragment(None);
    let whole = format!("{}{path}", base.path().trim_end_matches('/'));
    url.set_path(&whole);
    url
}
