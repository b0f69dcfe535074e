//! Lists of what is numbered within a document.

use axum::{extract::FromRequestParts, http::request::Parts};

use crate::{
    error::{ApiError, FieldError},
    extract::parameter,
};

/// Rows at a time, at most and when nothing is said.
const PAGE: u32 = 200;

/// Passages and pages are listed in the order of the source, from a number on.
pub(super) struct NumberPaging {
    pub(super) limit: u32,
    pub(super) from: i64,
}

impl<S: Sync> FromRequestParts<S> for NumberPaging {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut wrong = Vec::new();
        let mut refuse = |path: &str, message: String| {
            wrong.push(FieldError::new(path, &message));
        };
        let mut paging = Self { limit: PAGE, from: 0 };
        match parameter(&parts.uri, "limit").map(|text| text.parse()) {
            None => {}
            Some(Ok(limit @ 1..=PAGE)) => paging.limit = limit,
            Some(Ok(_) | Err(_)) => refuse("limit", format!("must be a number between 1 and {PAGE}")),
        }
        match parameter(&parts.uri, "cursor").map(|text| text.parse()) {
            None => {}
            Some(Ok(from @ 0..)) => paging.from = from,
            Some(Ok(_) | Err(_)) => {
                refuse("cursor", "must be the nextCursor of an earlier answer".to_owned());
            }
        }
        if wrong.is_empty() { Ok(paging) } else { Err(ApiError::invalid(wrong)) }
    }
}
