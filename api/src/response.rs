//! Answers that are successes.

use axum::{
    Json,
    body::{Body, Bytes},
    extract::FromRequestParts,
    http::{HeaderValue, header, request::Parts},
    response::{IntoResponse, Response},
};
use futures::{Stream, StreamExt, stream};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    error::{ApiError, FieldError},
    extract::parameter,
};

/// What a handler returns.
pub(crate) type Answer<T = Response> = Result<T, ApiError>;

/// `{"success": true, "data": …}`.
pub(crate) fn data(data: impl Serialize) -> Response {
    Json(json!({"success": true, "data": data})).into_response()
}

/// Rows that a list without a limit reads at a time, unless they are large.
pub(crate) const PAGE: u32 = 200;

/// How a caller wants a list: all of it, or page by page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paging {
    limit: Option<u32>,
    cursor: Option<Uuid>,
}

impl<S: Sync> FromRequestParts<S> for Paging {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut wrong = Vec::new();
        let mut refuse = |path: &str, message: &str| {
            wrong.push(FieldError { path: path.to_owned(), message: message.to_owned() });
        };
        let mut paging = Self::default();
        if let Some(text) = parameter(&parts.uri, "limit") {
            match text.parse() {
                Ok(limit @ 1..=200) => paging.limit = Some(limit),
                Ok(_) | Err(_) => refuse("limit", "must be a number between 1 and 200"),
            }
        }
        if let Some(text) = parameter(&parts.uri, "cursor") {
            match Uuid::try_parse(&text) {
                Ok(cursor) => paging.cursor = Some(cursor),
                Err(_) => refuse("cursor", "must be the nextCursor of an earlier answer"),
            }
        }
        if wrong.is_empty() { Ok(paging) } else { Err(ApiError::invalid(wrong)) }
    }
}

/// A row of a list: what is shown, and the id by which lists are ordered.
pub(crate) type Row = (Uuid, Value);

/// Answers with a list, newest first. `fetch` reads at most so many rows older than an id. Without a limit every row is
/// sent, read page by page while the client takes them.
pub(crate) async fn list<F, R>(paging: Paging, fetch: F) -> Answer
where
    F: FnMut(Uuid, u32) -> R + Send + 'static,
    R: Future<Output = Result<Vec<Row>, ApiError>> + Send + 'static,
{
    list_by(PAGE, paging, fetch).await
}

/// [`list`], reading `page` rows at a time.
pub(crate) async fn list_by<F, R>(page: u32, paging: Paging, mut fetch: F) -> Answer
where
    F: FnMut(Uuid, u32) -> R + Send + 'static,
    R: Future<Output = Result<Vec<Row>, ApiError>> + Send + 'static,
{
    let start = paging.cursor.unwrap_or(Uuid::max());
    if let Some(limit) = paging.limit {
        let mut rows = fetch(start, limit + 1).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().filter(|_| more).map(|(id, _)| *id);
        let shown: Vec<Value> = rows.into_iter().map(|(_, value)| value).collect();
        let mut body = json!({"success": true, "data": shown});
        if let (Some(next), Some(body)) = (next, body.as_object_mut()) {
            body.insert("nextCursor".to_owned(), json!(next));
        }
        return Ok(Json(body).into_response());
    }
    // The first page is read before the answer begins, so that a store which is away is an ordinary error.
    let first = fetch(start, page).await?;
    let body = Body::from_stream(stream_rows(page, first, fetch));
    let mut response = body.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn stream_rows<F, R>(
    page: u32,
    first: Vec<Row>,
    fetch: F,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send
where
    F: FnMut(Uuid, u32) -> R + Send + 'static,
    R: Future<Output = Result<Vec<Row>, ApiError>> + Send + 'static,
{
    let pages = stream::unfold(Some((first, fetch)), move |state| async move {
        let (rows, mut fetch) = state?;
        let last = (rows.len() == page as usize).then(|| rows.last().map(|(id, _)| *id)).flatten();
        let next = match last {
            None => None,
            Some(before) => match fetch(before, page).await {
                Ok(rows) => Some((rows, fetch)),
                // The client sees a body that ends early, which no JSON reader takes for a whole one.
                Err(error) => return Some((Err(std::io::Error::other(error.code)), None)),
            },
        };
        Some((Ok(rows), next))
    });
    let mut empty = true;
    let body = pages.map(move |rows| {
        let mut text = String::new();
        for (_, row) in rows? {
            if !std::mem::take(&mut empty) {
                text.push(',');
            }
            text.push_str(&row.to_string());
        }
        Ok(Bytes::from(text))
    });
    let head = stream::once(async { Ok(Bytes::from_static(b"{\"success\":true,\"data\":[")) });
    let tail = stream::once(async { Ok(Bytes::from_static(b"]}")) });
    head.chain(body).chain(tail)
}
