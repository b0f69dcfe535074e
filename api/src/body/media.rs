//! What a body is sent as: its media type, and how its bytes are written.

use axum::http::{HeaderMap, header};
use lectern_shared::media_type;

use crate::error::{ApiError, ApiErrorKind};

/// How a body may be compressed. Whatever else is said to be its encoding is a mistake that changes no byte of it.
const COMPRESSED: [&str; 7] = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"];

/// Refuses a body of another type than `is_read` knows, which is given without parameters and in lower case; and one that is compressed.
///
/// # Errors
/// 415. With `wanted` when it is of another type.
pub(crate) fn check(
    headers: &HeaderMap,
    is_read: impl FnOnce(&str) -> bool,
    wanted: &str,
) -> Result<(), ApiError> {
    let is_wanted = media_type::essence(content_type(headers)).is_some_and(|essence| is_read(&essence));
    if !is_wanted {
        return Err(unsupported(wanted));
    }
    // What is inside would have to be bounded too, and nobody needs it for bodies as small as these.
    let is_encoded = headers.get_all(header::CONTENT_ENCODING).iter().any(|codings| {
        let codings = String::from_utf8_lossy(codings.as_bytes());
        let mut codings = codings.split(',').map(str::trim);
        codings.any(|coding| COMPRESSED.iter().any(|compressed| coding.eq_ignore_ascii_case(compressed)))
    });
    if is_encoded {
        return Err(unsupported("Send the body without Content-Encoding: it is read as it comes."));
    }
    Ok(())
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn unsupported(message: &str) -> ApiError {
    ApiError::new(ApiErrorKind::UnsupportedType, "unsupported_media_type", message)
}
