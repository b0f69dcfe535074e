//! Answers that are successes.

use axum::{
    Json,
    body::{Body, Bytes},
    extract::FromRequestParts,
    http::{HeaderValue, header, request::Parts},
    response::{IntoResponse, Response},
};
use futures::{Stream, stream};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    error::{ApiError, FieldError},
    extract::parameter,
    openapi::SuccessResponse,
};

/// What a handler returns.
pub(crate) type ApiResult<T = Response> = Result<T, ApiError>;

/// `{"success": true, "data": …}`.
pub(crate) fn data(data: impl Serialize) -> Response {
    Json(SuccessResponse { success: true, data }).into_response()
}

/// Rows that a list reads at a time, unless they are large.
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
            wrong.push(FieldError::new(path, message));
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

impl Paging {
    /// The id that comes behind all rows that are wanted.
    pub(crate) fn before(&self) -> Uuid {
        self.cursor.unwrap_or(Uuid::max())
    }
}

/// A row of a list: the id by which lists are ordered, and what is shown.
pub(crate) type ListRow<T> = (Uuid, T);

/// Answers with a list, newest first. `fetch` reads at most so many rows older than an id. Rows are sent page by page while the
/// client takes them, however many they are.
pub(crate) async fn list<F, R, T>(paging: Paging, fetch: F) -> ApiResult
where
    F: FnMut(Uuid, u32) -> R + Send + 'static,
    R: Future<Output = Result<Vec<ListRow<T>>, ApiError>> + Send + 'static,
    T: Serialize + Send + 'static,
{
    list_by(PAGE, paging, fetch).await
}

/// [`list`], reading no more than `page` rows at a time, and one.
pub(crate) async fn list_by<F, R, T>(page: u32, paging: Paging, fetch: F) -> ApiResult
where
    F: FnMut(Uuid, u32) -> R + Send + 'static,
    R: Future<Output = Result<Vec<ListRow<T>>, ApiError>> + Send + 'static,
    T: Serialize + Send + 'static,
{
    list_until(page, paging, None, fetch).await
}

/// [`list_by`], of what is not gone through to its end: `end` is the cursor behind all that is.
pub(crate) async fn list_until<F, R, T>(page: u32, paging: Paging, end: Option<Uuid>, fetch: F) -> ApiResult
where
    F: FnMut(Uuid, u32) -> R + Send + 'static,
    R: Future<Output = Result<Vec<ListRow<T>>, ApiError>> + Send + 'static,
    T: Serialize + Send + 'static,
{
    let mut rest = ListReader { fetch, page, before: paging.before(), left: paging.limit, end };
    // The first page is read before the answer begins, so that a store which is away is an ordinary error.
    let first = rest.next().await?;
    let mut response = match first.then {
        // All of it is there.
        PageContinuation::End(_) => Body::from(text(first, true)?),
        PageContinuation::More => Body::from_stream(stream_pages(first, rest)),
    }
    .into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// What is still to be read of a list.
struct ListReader<F> {
    fetch: F,
    page: u32,
    /// The last row that was read.
    before: Uuid,
    /// Rows that may still be sent, if there is a limit.
    left: Option<u32>,
    /// The cursor behind the last row that is there, where there may be others behind it.
    end: Option<Uuid>,
}

/// Some rows of a list.
struct ListPage<T> {
    rows: Vec<ListRow<T>>,
    then: PageContinuation,
}

/// What follows a page.
enum PageContinuation {
    /// Perhaps more rows.
    More,
    /// The end of the answer, and the cursor of the next one when there is more than the limit.
    End(Option<Uuid>),
}

impl<F, R, T> ListReader<F>
where
    F: FnMut(Uuid, u32) -> R + Send + 'static,
    R: Future<Output = Result<Vec<ListRow<T>>, ApiError>> + Send + 'static,
    T: Serialize + Send + 'static,
{
    async fn next(&mut self) -> Result<ListPage<T>, ApiError> {
        // One row more than may be sent tells that there are more.
        let asked = match self.left {
            Some(left) if left <= self.page => left + 1,
            Some(_) | None => self.page,
        };
        let mut rows = (self.fetch)(self.before, asked).await?;
        let is_all = rows.len() < asked as usize;
        if let Some(left) = self.left {
            rows.truncate(left as usize);
        }
        self.before = rows.last().map_or(self.before, |(id, _)| *id);
        let then = match self.left {
            _ if is_all => PageContinuation::End(self.end),
            Some(left) if left <= self.page => PageContinuation::End(Some(self.before)),
            Some(_) | None => PageContinuation::More,
        };
        self.left = self.left.map(|left| left.saturating_sub(self.page));
        Ok(ListPage { rows, then })
    }
}

fn stream_pages<F, R, T>(
    first: ListPage<T>,
    rest: ListReader<F>,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send
where
    F: FnMut(Uuid, u32) -> R + Send + 'static,
    R: Future<Output = Result<Vec<ListRow<T>>, ApiError>> + Send + 'static,
    T: Serialize + Send + 'static,
{
    // The client sees a body that ends early, which no JSON reader takes for a whole one.
    let broken = |error: ApiError| std::io::Error::other(error.code);
    stream::unfold(Some((Some(first), rest)), move |state| async move {
        let (first, mut rest) = state?;
        let begins = first.is_some();
        let page = match first {
            Some(first) => first,
            None => match rest.next().await {
                Ok(page) => page,
                Err(error) => return Some((Err(broken(error)), None)),
            },
        };
        let goes_on = matches!(page.then, PageContinuation::More).then_some((None, rest));
        match text(page, begins) {
            Ok(text) => Some((Ok(text), goes_on)),
            Err(error) => Some((Err(broken(error)), None)),
        }
    })
}

/// A page's part of the answer. One that does not begin it follows rows.
fn text<T: Serialize>(ListPage { rows, then }: ListPage<T>, begins: bool) -> Result<Bytes, ApiError> {
    let mut text = Vec::new();
    if begins {
        text.extend_from_slice(b"{\"success\":true,\"data\":[");
    }
    for (at, (id, row)) in rows.iter().enumerate() {
        if !begins || at > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut text, row).map_err(|error| {
            tracing::error!(%error, %id, "a row of a list cannot be shown");
            ApiError::internal()
        })?;
    }
    match then {
        PageContinuation::More => {}
        PageContinuation::End(None) => text.extend_from_slice(b"]}"),
        PageContinuation::End(Some(next)) => {
            text.extend_from_slice(format!("],\"nextCursor\":\"{next}\"}}").as_bytes());
        }
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use serde_json::json;

    use super::*;

    /// The body of a list of so many rows, and the most rows that were read at a time.
    async fn body(page: u32, rows: u32, limit: Option<u32>, cursor: Option<u32>) -> (String, u32) {
        let most = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&most);
        let fetch = move |before: Uuid, limit: u32| {
            seen.fetch_max(limit, Ordering::Relaxed);
            let older = (1..=rows).rev().filter(move |id| Uuid::from_u128((*id).into()) < before);
            let row = |id: u32| (Uuid::from_u128(id.into()), json!({"row": id}));
            let found = older.take(limit as usize).map(row).collect();
            async { Ok(found) }
        };
        let cursor = cursor.map(|id| Uuid::from_u128(id.into()));
        let response = list_by(page, Paging { limit, cursor }, fetch).await.unwrap();
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (String::from_utf8(bytes.to_vec()).unwrap(), most.load(Ordering::Relaxed))
    }

    /// What the answer is to be, however it is read.
    fn expected(rows: u32, limit: Option<u32>, cursor: Option<u32>) -> String {
        let older = (1..=rows).rev().filter(|id| cursor.is_none_or(|cursor| *id < cursor));
        let mut shown: Vec<u32> = older.collect();
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        let more = shown.len() > limit;
        shown.truncate(limit);
        let data: Vec<_> = shown.iter().map(|id| json!({"row": id})).collect();
        let mut body = json!({"success": true, "data": data});
        if more {
            body["nextCursor"] = json!(shown.last().map(|id| Uuid::from_u128((*id).into())));
        }
        body.to_string()
    }

    #[tokio::test]
    async fn a_list_is_the_same_however_many_rows_are_read_at_a_time() {
        for page in [1, 2, 3, 10, 200] {
            for rows in [0, 1, 2, 3, 4, 6, 9, 10, 11, 40] {
                for limit in
                    [None, Some(1), Some(2), Some(3), Some(4), Some(9), Some(10), Some(40), Some(200)]
                {
                    for cursor in [None, Some(1), Some(4), Some(1_000)] {
                        let (body, most) = body(page, rows, limit, cursor).await;
                        let what = format!("{rows} rows, {page} at a time, {limit:?} after {cursor:?}");
                        assert_eq!(body, expected(rows, limit, cursor), "{what}");
                        assert!(most <= page + 1, "{what}: {most} were read at a time");
                    }
                }
            }
        }
    }

    #[tokio::test]
    async fn a_list_that_is_not_gone_through_to_its_end_says_where_it_goes_on() {
        let end = Uuid::from_u128(5);
        let fetch = |before: Uuid, limit: u32| {
            let there = (5..10).rev().map(Uuid::from_u128).filter(move |id| *id < before);
            let found = there.take(limit as usize).map(|id| (id, json!(id))).collect();
            async { Ok(found) }
        };
        for (limit, next) in [(None, end), (Some(9), end), (Some(5), end), (Some(2), Uuid::from_u128(8))] {
            let paging = Paging { limit, cursor: None };
            let response = list_until(3, paging, Some(end), fetch).await.unwrap();
            let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            let body: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(body["nextCursor"], json!(next), "{limit:?}");
        }
    }

    #[tokio::test]
    async fn what_fails_later_ends_the_body_and_what_fails_at_once_is_an_error() {
        for (fails_at, limit) in [(2, None), (2, Some(9)), (1, None), (1, Some(9))] {
            let mut reads = 0;
            let fetch = move |_: Uuid, limit: u32| {
                reads += 1;
                let rows = (0..limit).map(|id| (Uuid::from_u128(id.into()), json!(id))).collect();
                let end = if reads < fails_at { Ok(rows) } else { Err(ApiError::internal()) };
                async { end }
            };
            let answer = list_by(3, Paging { limit, cursor: None }, fetch).await;
            match answer {
                Err(_) => assert_eq!(fails_at, 1),
                Ok(response) => {
                    assert_eq!(fails_at, 2);
                    assert!(axum::body::to_bytes(response.into_body(), usize::MAX).await.is_err());
                }
            }
        }
    }
}
