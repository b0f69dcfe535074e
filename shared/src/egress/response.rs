//! The answer to an outbound request. Its body is read piece by piece and counted after decompression, so that neither
//! an endless body nor a few kilobytes that unpack to gigabytes take more than the limit.

use std::fmt;

use bytes::{Bytes, BytesMut};
use reqwest::header::{self, HeaderMap, HeaderName};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::{
    after,
    body::ResponseBody,
    error::{EgressError, host_of},
    request::RequestLimits,
};
use crate::media_type;

/// Reserved at most from a size that only the server claims.
const MAX_RESERVED: u64 = 64 * 1024;

/// A response whose head has arrived; the body is still to be read.
pub struct EgressResponse {
    /// The URL that answered, after redirects.
    pub final_url: Url,
    /// The HTTP status code.
    pub status: u16,
    /// The headers as sent; a `Content-Length` counts the compressed bytes.
    pub headers: HeaderMap,
    body: ResponseBody,
    /// What the server claims to send.
    claimed: u64,
    limits: RequestLimits,
    deadline: Instant,
    received: u64,
}

impl EgressResponse {
    pub(super) fn new(
        response: reqwest::Response,
        final_url: Url,
        takes_brotli: bool,
        limits: RequestLimits,
        deadline: Instant,
    ) -> Result<Self, EgressError> {
        let claimed = response.content_length().unwrap_or(0);
        // Only where the body is what was asked for: a 404 with a huge page is still a 404.
        if response.status().is_success() && claimed > limits.max_bytes {
            return Err(EgressError::TooLarge { limit: limits.max_bytes });
        }
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        Ok(Self {
            final_url,
            status,
            headers,
            body: ResponseBody::new(response, takes_brotli),
            claimed,
            limits,
            deadline,
            received: 0,
        })
    }

    /// The next piece of the decompressed body, none at its end.
    ///
    /// # Errors
    /// [`EgressError::TooLarge`] when this piece exceeds the limit, [`EgressError::Timeout`] after silence or past the
    /// total time, [`EgressError::Decode`] when it cannot be decompressed, [`EgressError::Protocol`] when the
    /// connection breaks.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        // One read can unpack into thousands of pieces without ever waiting; other tasks get their turn between them.
        tokio::task::consume_budget().await;
        let now = Instant::now();
        let until = self.deadline.min(after(now, self.limits.idle_timeout));
        if now >= self.deadline {
            return Err(self.timeout());
        }
        let host = self.final_url.host_str().unwrap_or_default();
        match timeout_at(until, self.body.next(host)).await {
            Err(_) => Err(self.timeout()),
            Ok(Err(error)) => Err(error),
            Ok(Ok(None)) => Ok(None),
            Ok(Ok(Some(chunk))) => {
                self.received = self.received.saturating_add(chunk.len() as u64);
                if self.received > self.limits.max_bytes {
                    return Err(EgressError::TooLarge { limit: self.limits.max_bytes });
                }
                Ok(Some(chunk))
            }
        }
    }

    /// The whole decompressed body in memory.
    ///
    /// # Errors
    /// As [`EgressResponse::chunk`].
    pub async fn bytes(mut self) -> Result<Bytes, EgressError> {
        let claimed = self.claimed.min(self.limits.max_bytes).min(MAX_RESERVED);
        let mut whole = BytesMut::with_capacity(usize::try_from(claimed).unwrap_or(0));
        while let Some(chunk) = self.chunk().await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    /// The media type without parameters, in lower case: `text/html`.
    pub fn content_type(&self) -> Option<String> {
        media_type::essence(self.text(&header::CONTENT_TYPE)?)
    }

    /// The character set that the media type names, in lower case: `utf-8`.
    pub fn charset(&self) -> Option<String> {
        media_type::charset(self.text(&header::CONTENT_TYPE)?)
    }

    /// The entity tag, quotes included, as `If-None-Match` wants it back.
    pub fn etag(&self) -> Option<&str> {
        self.text(&header::ETAG)
    }

    /// The date of the last change as the server wrote it, as `If-Modified-Since` wants it back.
    pub fn last_modified(&self) -> Option<&str> {
        self.text(&header::LAST_MODIFIED)
    }

    fn text(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
    }

    fn timeout(&self) -> EgressError {
        EgressError::Timeout { host: host_of(&self.final_url) }
    }
}

/// Without headers and query, which may be secret.
impl fmt::Debug for EgressResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("host", &self.final_url.host_str())
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}
