//! Files that are part of the program, as browsers get them.

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use lectern_shared::secrets::{hex, sha256};

use crate::source_file::is_known;

/// Something that stays the same for as long as the process runs.
#[derive(Clone)]
pub(crate) struct StaticFile {
    content_type: HeaderValue,
    bytes: Bytes,
    /// Of the content, so that every process of a cluster gives the same.
    etag: HeaderValue,
}

impl StaticFile {
    pub(crate) fn new(content_type: &str, bytes: Bytes) -> Self {
        // Half of the digest is unique enough.
        let etag = format!("\"{}\"", hex(sha256(&bytes).get(..16).unwrap_or_default()));
        let unknown = HeaderValue::from_static("application/octet-stream");
        Self {
            content_type: HeaderValue::from_str(content_type).unwrap_or(unknown),
            // Hexadecimal digits in quotes are a valid header.
            etag: HeaderValue::from_str(&etag).unwrap_or_else(|_| HeaderValue::from_static("\"\"")),
            bytes,
        }
    }

    /// The content, unless the client says that it has it.
    pub(crate) fn answer(&self, headers: &HeaderMap) -> Response {
        // Kept, but asked for again each time: the next version has other content at the same path.
        let caching = [
            (header::ETAG, self.etag.clone()),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        ];
        if self.is_known(headers) {
            return (StatusCode::NOT_MODIFIED, caching).into_response();
        }
        let mut response = (caching, self.bytes.clone()).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, self.content_type.clone());
        response
    }

    fn is_known(&self, headers: &HeaderMap) -> bool {
        self.etag.to_str().is_ok_and(|tag| is_known(headers, tag))
    }
}
