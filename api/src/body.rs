//! JSON bodies, read into memory of which there is only so much: what has arrived of all of them together is bounded, and what
//! strangers send has a small part for itself.

mod form;
pub(crate) mod json;
pub(crate) mod media;

use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    body::{Body, HttpBody},
    extract::{ConnectInfo, Request},
};
use futures::StreamExt;
use lectern_shared::{compute::ComputeStopped, config::ServiceLimits};
use serde_json::Value;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::{error::Elapsed, timeout},
};

use self::json::ValueBounds;
use crate::{
    auth::in_force::RequestCredential,
    client_address::network,
    error::{ApiError, ApiErrorKind},
    fields::SenderTrust,
    shares::{PoolLimits, ResourcePool, ResourceShare},
};

/// Longest silence while a body is sent.
pub(crate) const BODY_SILENCE: Duration = Duration::from_secs(20);
/// The longest that a JSON body may take in all: each holds a connection.
const BODY_WITHIN: Duration = Duration::from_mins(2);
/// A body that takes longer may end after the credential by which it began: that is looked at from then on.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Far more than a sign-up with the longest name and password has.
const OF_STRANGERS: u64 = 16 << 10;
/// The share of the memory that is for what strangers send: enough for hundreds of them at once, and too little to keep those
/// who are known from sending.
const STRANGERS_PART: u64 = 8;
/// A body that is not all there after this time, or waits to be parsed still, gives way when there is no more memory. Others are
/// parsed long before.
const STALE: Duration = Duration::from_secs(5);
/// Memory is taken in blocks, which fit where one of them was before: nothing is left between them when they are given back.
const BLOCK: usize = 16 << 10;
/// The first blocks of a body are smaller, so that one that has hardly begun has hardly any memory.
const SMALLEST_BLOCK: usize = 1 << 10;
/// Larger bodies are parsed a few at a time: as values, they can be forty times as large.
const LARGE: usize = 64 << 10;
/// How many of those.
const LARGE_AT_ONCE: usize = 2;
/// The longest that one of them waits for its turn.
const PARSED_WITHIN: Duration = Duration::from_secs(10);
/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// When a body that found no memory may be sent again, in seconds.
const AGAIN: u64 = 1;

/// The memory for bodies. Cheap to clone; clones share it.
#[derive(Clone)]
pub(crate) struct BodyReader {
    limit: u64,
    known: ResourcePool,
    strangers: ResourcePool,
    parsing: Arc<Semaphore>,
}

/// A body that was read. It counts until this is dropped.
pub(crate) struct JsonBody {
    pub(crate) value: Value,
    _turn: Option<OwnedSemaphorePermit>,
    _share: ResourceShare,
}

impl BodyReader {
    pub(crate) fn new(limits: &ServiceLimits) -> Self {
        // The largest body that is allowed must be possible, whatever is set.
        let room = |memory: u64, body: u64| {
            let whole = usize::try_from(memory.max(body)).unwrap_or(usize::MAX).saturating_add(BLOCK);
            ResourcePool::new(PoolLimits { whole, of_one: usize::MAX, stale: STALE })
        };
        let strangers = limits.body_memory / STRANGERS_PART;
        Self {
            limit: limits.body_bytes,
            known: room(limits.body_memory - strangers, limits.body_bytes),
            strangers: room(strangers, OF_STRANGERS),
            parsing: Arc::new(Semaphore::new(LARGE_AT_ONCE)),
        }
    }

    /// The JSON body of a request.
    ///
    /// # Errors
    /// When it is none, too large or too slow, or when there is no memory for it or no turn to parse it.
    pub(crate) async fn read(&self, request: Request, sender: SenderTrust) -> Result<JsonBody, ApiError> {
        self.read_as(request, sender, |body| body).await
    }

    /// What `read` makes of the JSON body of a request. A large one is looked through, and given up, where it is parsed: off the async
    /// threads, and in its turn.
    ///
    /// # Errors
    /// As [`BodyReader::read`].
    pub(crate) async fn read_as<T: Send + 'static>(
        &self,
        request: Request,
        sender: SenderTrust,
        read: impl FnOnce(JsonBody) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let wanted = "Send the body as JSON, with Content-Type: application/json.";
        media::check(request.headers(), is_json, wanted)?;
        self.read_with(request, sender, parse_json, read).await
    }

    /// The fields of a form that a browser sends, as [`read_form`] makes them.
    ///
    /// # Errors
    /// As [`BodyReader::read`].
    pub(crate) async fn read_form(
        &self,
        request: Request,
        sender: SenderTrust,
    ) -> Result<JsonBody, ApiError> {
        let wanted = "Send the form as browsers do, with Content-Type: application/x-www-form-urlencoded.";
        media::check(request.headers(), |kind| kind == "application/x-www-form-urlencoded", wanted)?;
        self.read_with(request, sender, parse_form, |body| body).await
    }

    async fn read_with<T: Send + 'static>(
        &self,
        request: Request,
        sender: SenderTrust,
        parser: BodyParser,
        read: impl FnOnce(JsonBody) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let (shares, limit) = match sender {
            SenderTrust::Known => (&self.known, self.limit),
            SenderTrust::Stranger => (&self.strangers, self.limit.min(OF_STRANGERS)),
        };
        let client = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let share = shares.begin(client.map(|ConnectInfo(client)| network(client.ip())));
        let opened = request.extensions().get::<RequestCredential>().cloned();
        let gathered = gather_in_force(request.into_body(), limit, &share, opened).await?;
        if gathered.length <= LARGE {
            return parse(gathered, share, None, parser).map(read);
        }
        let turn = self.turn_to_parse(&share, PARSED_WITHIN).await?;
        // The memory is counted until the work ends, be there anybody left who waits for it or not.
        spawn_blocking(move || parse(gathered, share, Some(turn), parser).map(read))
            .await
            .map_err(|_| ComputeStopped)?
    }

    /// Waits until a large body may be parsed. Its memory may be given to others until then.
    async fn turn_to_parse(
        &self,
        share: &ResourceShare,
        within: Duration,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
        tokio::select! {
            biased;
            () = share.evicted() => Err(no_memory()),
            turn = timeout(within, Arc::clone(&self.parsing).acquire_owned()) => match turn {
                Ok(turn) => turn.map_err(|_| ApiError::internal()),
                Err(_) => Err(no_memory()),
            },
        }
    }
}

/// Parses a body, in the turn that it has if it needs one. From now on its memory is not given to others.
fn parse(
    gathered: BodyBuffer,
    share: ResourceShare,
    turn: Option<OwnedSemaphorePermit>,
    parser: BodyParser,
) -> Result<JsonBody, ApiError> {
    share.keep().map_err(|_| no_memory())?;
    let value = parser(&gathered.whole())?;
    Ok(JsonBody { value, _turn: turn, _share: share })
}

/// Makes a value of the bytes of a body.
type BodyParser = fn(&[u8]) -> Result<Value, ApiError>;

fn parse_json(bytes: &[u8]) -> Result<Value, ApiError> {
    // Some programs begin every text with a mark that says that it is in UTF-8.
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    json::parse(bytes).map_err(|error| {
        if bytes.trim_ascii().is_empty() {
            return ApiError::malformed("The body is empty.");
        }
        let (problem, line, column) = (ValueBounds::BODY.problem(&error), error.line(), error.column());
        ApiError::malformed(format!("The body {problem} (line {line}, column {column})."))
    })
}

fn parse_form(bytes: &[u8]) -> Result<Value, ApiError> {
    form::to_json(bytes).ok_or_else(|| {
        let message = format!("The form has more than {} inputs.", json::MAX_MEMBERS);
        ApiError::new(ApiErrorKind::Malformed, "malformed_form", message)
    })
}

fn is_json(kind: &str) -> bool {
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// Reads a body of at most `limit` bytes, as long as its share is not given to others, and the credential in force by which it began.
async fn gather_in_force(
    body: Body,
    limit: u64,
    share: &ResourceShare,
    opened: Option<RequestCredential>,
) -> Result<BodyBuffer, ApiError> {
    let mut gathering = pin!(gather(body, limit, BODY_WITHIN, share));
    let at_once = timeout(AT_ONCE, &mut gathering).await;
    match (at_once, opened) {
        (Ok(gathered), _) => gathered,
        (Err(_), Some(opened)) => opened.while_in_force(gathering).await,
        (Err(_), None) => gathering.await,
    }
}

/// Reads a body of at most `limit` bytes, within this time, as long as its share is not given to others.
async fn gather(
    body: Body,
    limit: u64,
    within: Duration,
    share: &ResourceShare,
) -> Result<BodyBuffer, ApiError> {
    // One that says so itself is not read at all.
    if body.size_hint().lower() > limit {
        return Err(too_large(limit));
    }
    let read = async {
        let mut gathered = BodyBuffer::default();
        let mut body = body.into_data_stream();
        while let Some(part) = timeout(BODY_SILENCE, body.next()).await? {
            let Ok(part) = part else {
                return Ok(Err(ApiError::malformed("The body ended before it was complete.")));
            };
            if (gathered.length + part.len()) as u64 > limit {
                return Ok(Err(too_large(limit)));
            }
            if !gathered.add(&part, share) {
                return Ok(Err(no_memory()));
            }
        }
        Ok(Ok(gathered))
    };
    let late = |_: Elapsed| ApiError::new(ApiErrorKind::TooSlow, "timeout", "The body came too slowly.");
    tokio::select! {
        biased;
        () = share.evicted() => Err(no_memory()),
        read = timeout(within, read) => read.and_then(|read| read).map_err(late)?,
    }
}

fn too_large(limit: u64) -> ApiError {
    let message = format!("The body may have at most {limit} bytes.");
    ApiError::new(ApiErrorKind::TooLarge, "too_large", message)
}

fn no_memory() -> ApiError {
    let message = "The service is being sent more at this moment than it has memory for; try again shortly.";
    let error = ApiError::new(ApiErrorKind::Unavailable, "too_many_bodies", message);
    ApiError { retry_after: Some(AGAIN), ..error }
}

/// What has arrived of a body.
#[derive(Default)]
struct BodyBuffer {
    blocks: Vec<Vec<u8>>,
    length: usize,
}

impl BodyBuffer {
    /// Adds a part, in memory of this share; not, when there is none left.
    fn add(&mut self, mut part: &[u8], share: &ResourceShare) -> bool {
        while !part.is_empty() {
            match self.blocks.last_mut() {
                Some(block) if block.len() < block.capacity() => {
                    let (now, later) = part.split_at(part.len().min(block.capacity() - block.len()));
                    block.extend_from_slice(now);
                    self.length += now.len();
                    part = later;
                }
                Some(_) | None => {
                    let size = self.length.max(part.len()).clamp(SMALLEST_BLOCK, BLOCK);
                    if share.grow(size).is_err() {
                        return false;
                    }
                    self.blocks.push(Vec::with_capacity(size));
                }
            }
        }
        true
    }

    fn whole(mut self) -> Vec<u8> {
        match self.blocks.len() {
            0 | 1 => self.blocks.pop().unwrap_or_default(),
            _ => self.blocks.concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Bytes, http::header};
    use futures::stream;

    use super::*;

    fn share(whole: usize, stale: Duration) -> (ResourcePool, ResourceShare) {
        let shares = ResourcePool::new(PoolLimits { whole, of_one: usize::MAX, stale });
        let share = shares.begin(Some([192, 0, 2, 1].into()));
        (shares, share)
    }

    /// A body of this much that is never complete.
    fn unfinished(length: usize) -> Body {
        let beginning = stream::iter([Ok::<_, std::io::Error>(Bytes::from(vec![b' '; length]))]);
        Body::from_stream(beginning.chain(stream::pending()))
    }

    #[tokio::test]
    async fn a_body_that_never_ends_is_given_up_although_it_is_never_silent() {
        let byte_by_byte = stream::unfold((), async |()| {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Some((Ok::<_, std::io::Error>(" "), ()))
        });
        let (_all, share) = share(usize::MAX, STALE);
        let body = Body::from_stream(byte_by_byte);
        let read = gather(body, u64::MAX, Duration::from_millis(50), &share).await;
        assert_eq!(read.err().unwrap().kind, ApiErrorKind::TooSlow);
    }

    #[test]
    fn json_that_is_beyond_a_limit_is_not_said_to_be_none() {
        let refused = |text: &str| parse_json(text.as_bytes()).err().map(|error| error.message);
        let deep = |depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(refused(&deep(json::MAX_DEPTH)), None);
        for (text, words) in [
            (deep(json::MAX_DEPTH + 1), "is nested more than 127 deep"),
            ("{\"a\": 1e999}".to_owned(), "has a number that is too large"),
            (" \n".to_owned(), "is empty"),
            (String::new(), "is empty"),
            ("{\"a\": 1".to_owned(), "is not valid JSON"),
        ] {
            let message = refused(&text).unwrap();
            assert!(message.contains(words), "{text}: {message}");
        }
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        let (_all, share) = share(usize::MAX, STALE);
        let read = async |limit| gather(Body::from("12345"), limit, BODY_WITHIN, &share).await;
        assert_eq!(read(5).await.ok().unwrap().whole(), b"12345");
        assert_eq!(read(4).await.err().unwrap().kind, ApiErrorKind::TooLarge);
    }

    #[tokio::test]
    async fn a_body_of_many_parts_is_read_as_it_was_sent() {
        let parts: Vec<Vec<u8>> = (1..=200).map(|length: u8| vec![length; 3 * usize::from(length)]).collect();
        let sent = parts.concat();
        let (_all, share) = share(usize::MAX, STALE);
        let body = Body::from_stream(stream::iter(parts.into_iter().map(Ok::<_, std::io::Error>)));
        let gathered = gather(body, u64::MAX, BODY_WITHIN, &share).await.ok().unwrap();
        let memory: usize = gathered.blocks.iter().map(Vec::capacity).sum();
        assert!(memory < sent.len() + BLOCK, "{memory} bytes of memory for {}", sent.len());
        assert_eq!(gathered.whole(), sent);
    }

    /// Of which no large one is parsed, until there are turns.
    fn bodies(whole: usize) -> BodyReader {
        let shares = || ResourcePool::new(PoolLimits { whole, of_one: usize::MAX, stale: Duration::ZERO });
        BodyReader {
            limit: u64::MAX,
            known: shares(),
            strangers: shares(),
            parsing: Arc::new(Semaphore::new(0)),
        }
    }

    /// A whole request with a text of this length.
    fn request(length: usize) -> Request {
        let client = ConnectInfo(SocketAddr::from(([192, 0, 2, 1], 7)));
        let body = Body::from(Value::from("x".repeat(length)).to_string());
        let request = axum::http::Request::builder().header(header::CONTENT_TYPE, "application/json");
        request.extension(client).body(body).unwrap()
    }

    #[tokio::test]
    async fn a_finished_body_that_waits_to_be_parsed_gives_way_too() {
        let bodies = bodies(2 * LARGE + BLOCK);
        let mut waiting = Box::pin(bodies.read(request(2 * LARGE), SenderTrust::Known));
        assert!(futures::poll!(&mut waiting).is_pending());
        let small = bodies.read(request(LARGE / 2), SenderTrust::Known).await;
        assert_eq!(small.ok().unwrap().value.as_str().map(str::len), Some(LARGE / 2));
        let refused = waiting.await.err().unwrap();
        assert_eq!((refused.kind.status(), refused.code), (503, "too_many_bodies"));
    }

    #[tokio::test]
    async fn a_large_body_waits_for_its_turn_and_not_for_ever() {
        let bodies = bodies(usize::MAX);
        let share = bodies.known.begin(None);
        let refused = bodies.turn_to_parse(&share, Duration::ZERO).await.err().unwrap();
        assert_eq!((refused.code, refused.retry_after), ("too_many_bodies", Some(1)));

        let mut waiting = Box::pin(bodies.read(request(2 * LARGE), SenderTrust::Known));
        assert!(futures::poll!(&mut waiting).is_pending());
        bodies.parsing.add_permits(1);
        let read = waiting.await.ok().unwrap();
        assert_eq!(read.value.as_str().map(str::len), Some(2 * LARGE));
        assert_eq!(bodies.parsing.available_permits(), 0, "it is there for as long as the value");
        drop(read);
        assert_eq!(bodies.parsing.available_permits(), 1);
    }

    #[tokio::test]
    async fn a_body_that_is_parsed_keeps_its_memory_until_it_is_done_with() {
        let bodies = bodies(LARGE);
        let read = bodies.read(request(LARGE / 2), SenderTrust::Known).await.ok().unwrap();
        let next = async || bodies.read(request(LARGE / 2 + BLOCK), SenderTrust::Known).await;
        assert_eq!(next().await.err().unwrap().code, "too_many_bodies");
        drop(read);
        assert!(next().await.is_ok());
    }

    #[tokio::test]
    async fn a_body_for_which_there_is_no_memory_is_refused_until_another_gives_way() {
        let (shares, first) = share(100 << 10, Duration::ZERO);
        let mut holding = Box::pin(gather(unfinished(64 << 10), u64::MAX, BODY_WITHIN, &first));
        assert!(futures::poll!(&mut holding).is_pending());

        let refused =
            gather(Body::from(vec![b' '; 200 << 10]), u64::MAX, BODY_WITHIN, &shares.begin(None)).await;
        let refused = refused.err().unwrap();
        assert_eq!(
            (refused.kind.status(), refused.code, refused.retry_after),
            (503, "too_many_bodies", Some(1))
        );
        let first = holding.await.err().unwrap();
        assert_eq!((first.kind.status(), first.code), (503, "too_many_bodies"), "it gave way");

        let read = gather(Body::from(vec![b' '; 64 << 10]), u64::MAX, BODY_WITHIN, &shares.begin(None)).await;
        assert_eq!(read.ok().unwrap().length, 64 << 10);
    }
}
