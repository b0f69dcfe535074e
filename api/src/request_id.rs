//! The id of a request, by which whoever asked and whoever reads the log speak of the same one.

use std::sync::Arc;

use axum::{extract::Request, http::HeaderName};
use uuid::Uuid;

/// The header that has it, in requests and in answers.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Longest caller-made id that is taken over.
const LONGEST: usize = 128;

/// The id of a request. It goes with every request.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

impl RequestId {
    /// The caller's own id, if it is a sane one; else a new one.
    pub(crate) fn of(request: &Request) -> Self {
        // The marks are those of UUIDs, of Base64, and of what balancers make (`Root=1-67891233-abcdef012345678912345678`).
        let sane = |id: &&str| {
            (1..=LONGEST).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/=+".contains(&byte))
        };
        let own = request.headers().get(HEADER).and_then(|value| value.to_str().ok()).filter(sane);
        Self(own.map_or_else(|| Uuid::now_v7().to_string().into(), Into::into))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}
