//! A web server on loopback whose pages a test writes: the sources that documents are fetched from, well and badly
//! behaved ones. Two of them are two origins.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::{FutureExt, Stream, StreamExt, future::BoxFuture, stream};
use parking_lot::Mutex;

use super::loopback::{Gate, Listening, Record, Seen};

type Page = Arc<dyn Fn(Seen) -> BoxFuture<'static, Response> + Send + Sync>;

#[derive(Default)]
struct Shared {
    /// By path, or by path and query.
    pages: Mutex<HashMap<String, Page>>,
    seen: Record<Seen>,
}

/// The server. It stops when it is dropped.
pub struct Web {
    shared: Arc<Shared>,
    listening: Listening,
}

impl Web {
    /// Starts a server on which every path is 404 until it is given a page.
    pub async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let router = Router::new().fallback({
            let shared = Arc::clone(&shared);
            move |request: Request| async move {
                let seen = Seen::read(request).await;
                shared.seen.add(seen.clone());
                let page = {
                    let pages = shared.pages.lock();
                    pages.get(&seen.target).or_else(|| pages.get(seen.path())).cloned()
                };
                match page {
                    Some(page) => page(seen).await,
                    None => (StatusCode::NOT_FOUND, "no such page").into_response(),
                }
            }
        });
        Self { shared, listening: Listening::start(router).await }
    }

    /// The address of `path` on this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.listening.address())
    }

    /// Answers with these bytes. As all of these, it replaces the page that the path had, and returns its address.
    pub fn serve(&self, path: &str, content_type: &str, bytes: impl Into<Bytes>) -> String {
        let page = Content::new(content_type, bytes);
        self.answer_with(path, move |_| page.response())
    }

    /// Answers with these bytes and headers besides.
    pub fn serve_with_headers(
        &self,
        path: &str,
        content_type: &str,
        headers: &[(&str, &str)],
        bytes: impl Into<Bytes>,
    ) -> String {
        let page = Content::new(content_type, bytes);
        let headers = header_map(headers);
        self.answer_with(path, move |_| (headers.clone(), page.response()).into_response())
    }

    /// Answers with what `answer` makes of the request.
    pub fn answer_with(
        &self,
        path: &str,
        answer: impl Fn(&Seen) -> Response + Send + Sync + 'static,
    ) -> String {
        self.page(path, Arc::new(move |seen| std::future::ready(answer(&seen)).boxed()))
    }

    /// Answers with a bare status.
    pub fn status(&self, path: &str, status: u16) -> String {
        let status = StatusCode::from_u16(status).expect("a status");
        self.answer_with(path, move |_| (status, status.to_string()).into_response())
    }

    /// Answers 302 with `to` as the new location, which may be of another server.
    pub fn redirect(&self, path: &str, to: &str) -> String {
        let location = HeaderValue::from_str(to).expect("a location of visible characters");
        self.answer_with(path, move |_| {
            (StatusCode::FOUND, [(header::LOCATION, location.clone())]).into_response()
        })
    }

    /// Answers 301 with `to` as the new location.
    pub fn redirect_for_good(&self, path: &str, to: &str) -> String {
        let location = HeaderValue::from_str(to).expect("a location of visible characters");
        self.answer_with(path, move |_| {
            (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, location.clone())]).into_response()
        })
    }

    /// Accepts the request and never answers.
    pub fn hang(&self, path: &str) -> String {
        self.page(path, Arc::new(|_| std::future::pending().boxed()))
    }

    /// Answers with these bytes, each time only after a while.
    pub fn slow(&self, path: &str, content_type: &str, bytes: impl Into<Bytes>, after: Duration) -> String {
        let page = Content::new(content_type, bytes);
        let answer = move |_| {
            let page = page.clone();
            async move {
                tokio::time::sleep(after).await;
                page.response()
            }
            .boxed()
        };
        self.page(path, Arc::new(answer))
    }

    /// Answers at once and then sends one byte at a time, without end: there is always progress, and never a result.
    pub fn trickle(&self, path: &str, content_type: &str) -> String {
        self.stream(path, content_type, || {
            stream::repeat(()).then(|()| async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(Bytes::from_static(b"x"))
            })
        })
    }

    /// Sends as fast as the client reads, without end and without a length.
    pub fn endless(&self, path: &str, content_type: &str) -> String {
        static BLOCK: [u8; 64 * 1024] = [b'x'; 64 * 1024];
        self.stream(path, content_type, || stream::repeat_with(|| Ok(Bytes::from_static(&BLOCK))))
    }

    /// Sends `bytes` and breaks the connection before the body's end.
    pub fn cut_after(&self, path: &str, content_type: &str, bytes: impl Into<Bytes>) -> String {
        let bytes = bytes.into();
        self.stream(path, content_type, move || {
            stream::once(std::future::ready(Ok(bytes.clone()))).chain(stream::once(async {
                // Lets the server flush what came before.
                tokio::task::yield_now().await;
                Err(io::Error::other("the connection breaks here"))
            }))
        })
    }

    /// Answers the first `failures` requests with `status`, and later ones with the bytes.
    pub fn flaky(
        &self,
        path: &str,
        failures: usize,
        status: u16,
        content_type: &str,
        bytes: impl Into<Bytes>,
    ) -> String {
        let page = Content::new(content_type, bytes);
        let status = StatusCode::from_u16(status).expect("a status");
        let answered = AtomicUsize::new(0);
        self.answer_with(path, move |_| {
            if answered.fetch_add(1, Ordering::Relaxed) < failures {
                status.into_response()
            } else {
                page.response()
            }
        })
    }

    /// Answers with the bytes, but only once the gate is released.
    pub fn gate(&self, path: &str, content_type: &str, bytes: impl Into<Bytes>) -> (String, Gate) {
        let page = Content::new(content_type, bytes);
        let gate = Gate::default();
        let url = self.page(path, {
            let gate = gate.clone();
            Arc::new(move |_| {
                let (gate, page) = (gate.clone(), page.clone());
                async move {
                    gate.pass().await;
                    page.response()
                }
                .boxed()
            })
        });
        (url, gate)
    }

    /// How many requests came for `path`, whatever their query.
    pub fn hits(&self, path: &str) -> usize {
        self.requests(path).len()
    }

    /// The requests for `path`, oldest first.
    pub fn requests(&self, path: &str) -> Vec<Seen> {
        self.shared.seen.all().into_iter().filter(|seen| seen.path() == path).collect()
    }

    /// Waits until `path` was asked for at least `count` times, and returns these requests.
    pub async fn wait_for_hits(&self, path: &str, count: usize) -> Vec<Seen> {
        let what = format!("{count} requests for {path}");
        self.shared.seen.wait_for(&what, count, |seen| seen.path() == path).await
    }

    fn stream<S>(
        &self,
        path: &str,
        content_type: &str,
        body: impl Fn() -> S + Send + Sync + 'static,
    ) -> String
    where
        S: Stream<Item = io::Result<Bytes>> + Send + 'static,
    {
        let content_type = HeaderValue::from_str(content_type).expect("a content type");
        self.answer_with(path, move |_| {
            ([(header::CONTENT_TYPE, content_type.clone())], Body::from_stream(body())).into_response()
        })
    }

    fn page(&self, path: &str, page: Page) -> String {
        assert!(path.starts_with('/'), "{path:?} is not a path");
        self.shared.pages.lock().insert(path.to_owned(), page);
        self.url(path)
    }
}

/// A body and its type.
#[derive(Clone)]
struct Content {
    content_type: HeaderValue,
    bytes: Bytes,
}

impl Content {
    fn new(content_type: &str, bytes: impl Into<Bytes>) -> Self {
        let content_type = HeaderValue::from_str(content_type).expect("a content type");
        Self { content_type, bytes: bytes.into() }
    }

    fn response(&self) -> Response {
        ([(header::CONTENT_TYPE, self.content_type.clone())], self.bytes.clone()).into_response()
    }
}

/// Headers from literals.
pub fn header_map(headers: &[(&str, &str)]) -> HeaderMap {
    headers
        .iter()
        .map(|(name, value)| {
            let name: HeaderName = name.parse().expect("a header's name");
            (name, HeaderValue::from_str(value).expect("a header's value"))
        })
        .collect()
}
