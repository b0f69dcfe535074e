//! Calls to the server: each bounded in time, tried again where that can help, and failing in words for the operator. What
//! the client library says of an error is not shown: it carries the response's metadata, and sometimes the key.

use std::{fmt, future::Future, time::Duration};

use lectern_shared::{
    config::QdrantConfig,
    retry::{JitterRange, RetryBackoff, jitter},
};
use parking_lot::RwLock;
use qdrant_client::{Qdrant, QdrantError};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use super::super::IndexError;

/// Connections to the server. A call that meets a broken one takes the next.
const CONNECTIONS: usize = 3;
/// The shortest time in which a write is given up.
const WRITE_BUDGET: Duration = Duration::from_secs(20);
/// The pauses between two tries.
const PAUSES: RetryBackoff =
    RetryBackoff { first: Duration::from_millis(100), longest: Duration::from_secs(3) };
/// Of a message of the server's this many characters are repeated.
const MESSAGE_CHARS: usize = 300;

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QdrantErrorKind {
    /// There is no connection, or it broke.
    Unreachable,
    /// There was no answer in time.
    Slow,
    /// The server could not do it now; it may have said for how long.
    Busy(Option<Duration>),
    /// The collection does not exist.
    Missing,
    /// Asking again would be answered alike.
    Refused,
}

impl QdrantErrorKind {
    /// Whether the same call may succeed a little later.
    const fn is_passing(self) -> bool {
        matches!(self, Self::Unreachable | Self::Slow | Self::Busy(_))
    }
}

/// Why a call failed, without anything secret.
#[derive(Clone, Debug)]
pub(super) struct QdrantFailure {
    pub(super) kind: QdrantErrorKind,
    text: String,
}

impl QdrantFailure {
    /// An answer that is not one.
    pub(super) fn refused(text: impl Into<String>) -> Self {
        Self { kind: QdrantErrorKind::Refused, text: text.into() }
    }

    /// The server took a write and has not finished it in time.
    pub(super) fn unfinished() -> Self {
        Self { kind: QdrantErrorKind::Slow, text: "Qdrant did not finish a write in time".to_owned() }
    }
}

impl From<QdrantFailure> for IndexError {
    fn from(failure: QdrantFailure) -> Self {
        if failure.kind.is_passing() { Self::Engine(failure.text) } else { Self::Refused(failure.text) }
    }
}

/// How long to go on trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QdrantRetryPolicy {
    /// Somebody waits: only a broken connection is replaced.
    Read,
    /// Another process may just be making what is asked about; it is waited for as long as one request may take.
    Settle,
    /// Until the budget of a write is used up.
    Write,
}

/// The server.
pub(super) struct QdrantClient {
    /// Its connections. They are made anew when the server did not answer: the other end may be gone without a word.
    connections: RwLock<QdrantConnections>,
    build: Box<dyn Fn() -> Result<Qdrant, QdrantError> + Send + Sync>,
    /// Its address as it is shown.
    address: String,
    key: Option<SecretString>,
    timeout: Duration,
    /// The longest that a [`QdrantRetryPolicy::Write`] call takes.
    pub(super) longest_write: Duration,
}

struct QdrantConnections {
    qdrant: Qdrant,
    since: Instant,
}

impl fmt::Debug for QdrantClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

impl QdrantClient {
    /// Nothing is connected yet.
    pub(super) fn new(config: &QdrantConfig) -> Result<Self, QdrantFailure> {
        let address = shown(&config.url);
        if !config.url.username().is_empty() || config.url.password().is_some() {
            return Err(QdrantFailure::refused(format!(
                "the address of Qdrant, {address}, must not contain a name or a password: a key belongs into QDRANT_API_KEY"
            )));
        }
        let key = config.api_key.as_ref();
        // The library would repeat a key that it cannot send.
        if key.is_some_and(|key| !key.expose_secret().bytes().all(|byte| (b' '..=b'~').contains(&byte))) {
            return Err(QdrantFailure::refused(
                "QDRANT_API_KEY contains characters that no key can have, such as a line break",
            ));
        }
        lectern_shared::tls::install();
        let connect = {
            let config = config.clone();
            move || {
                let key = config.api_key.as_ref().map(|key| key.expose_secret().to_owned());
                let mut builder = Qdrant::from_url(config.url.as_str())
                    .api_key(key)
                    .timeout(config.timeout)
                    .connect_timeout(config.timeout)
                    .skip_compatibility_check();
                builder.set_pool_size(CONNECTIONS);
                builder.build()
            }
        };
        let unusable = |error| {
            QdrantFailure::refused(format!("the address of Qdrant, {address}, cannot be used: {error}"))
        };
        let connections = QdrantConnections { qdrant: connect().map_err(unusable)?, since: Instant::now() };
        Ok(Self {
            connections: RwLock::new(connections),
            build: Box::new(connect),
            address,
            key: config.api_key.clone(),
            timeout: config.timeout,
            longest_write: config.timeout.max(WRITE_BUDGET),
        })
    }

    /// The server, by the connections that there are now.
    pub(super) fn qdrant(&self) -> Qdrant {
        self.connections.read().qdrant.clone()
    }

    /// Connects anew for the calls that follow, unless others have since `began`.
    fn reconnect(&self, began: Instant) {
        let mut connections = self.connections.write();
        if connections.since <= began
            && let Ok(qdrant) = (self.build)()
        {
            *connections = QdrantConnections { qdrant, since: Instant::now() };
        }
    }

    /// Calls until it succeeds, cannot succeed, or took too long.
    pub(super) async fn call<T, F>(
        &self,
        what: &'static str,
        patience: QdrantRetryPolicy,
        mut request: impl FnMut() -> F + Send,
    ) -> Result<T, QdrantFailure>
    where
        F: Future<Output = Result<T, CallError>> + Send,
    {
        let end = Instant::now()
            + match patience {
                QdrantRetryPolicy::Read | QdrantRetryPolicy::Settle => self.timeout,
                QdrantRetryPolicy::Write => self.longest_write,
            };
        let mut tries = 0_usize;
        let mut before: Option<QdrantFailure> = None;
        loop {
            let began = Instant::now();
            let this = began + self.timeout;
            // On the heap, since the library's futures are large.
            let failure = match timeout_at(this.min(end), Box::pin(request())).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(CallError::Failure(failure))) => failure,
                Ok(Err(CallError::Qdrant(error))) => self.classify_error(what, &error),
                // A try that had not the whole time says less than the one before it.
                Err(_) => match before.take().filter(|_| this > end) {
                    Some(before) => return Err(before),
                    None => self.slow(),
                },
            };
            if failure.kind == QdrantErrorKind::Slow {
                self.reconnect(began);
            }
            tries += 1;
            tracing::debug!(what, tries, kind = ?failure.kind, error = failure.text, "a call to Qdrant failed");
            let pause = PAUSES.delay(u32::try_from(tries).unwrap_or(u32::MAX));
            let wait = match (patience, failure.kind) {
                (QdrantRetryPolicy::Read | QdrantRetryPolicy::Settle, QdrantErrorKind::Unreachable)
                    if tries < CONNECTIONS =>
                {
                    Duration::ZERO
                }
                (
                    QdrantRetryPolicy::Settle | QdrantRetryPolicy::Write,
                    QdrantErrorKind::Busy(Some(asked)),
                ) => asked.max(pause),
                (QdrantRetryPolicy::Settle, QdrantErrorKind::Busy(None)) => jitter(pause, JitterRange::Half),
                (QdrantRetryPolicy::Write, kind) if kind.is_passing() => jitter(pause, JitterRange::Half),
                _ => return Err(failure),
            };
            if Instant::now() + wait >= end {
                return Err(failure);
            }
            before = Some(failure);
            sleep(wait).await;
        }
    }

    fn slow(&self) -> QdrantFailure {
        let timeout = humantime::format_duration(self.timeout);
        QdrantFailure {
            kind: QdrantErrorKind::Slow,
            text: format!("Qdrant at {} did not answer within {timeout}", self.address),
        }
    }

    /// Says what an error means.
    fn classify_error(&self, what: &str, error: &QdrantError) -> QdrantFailure {
        let address = &self.address;
        let (status, retry_after) = match error {
            QdrantError::ResponseError { status } => (status, None),
            QdrantError::ResourceExhaustedError { status, retry_after_seconds } => {
                (status, Some(Duration::from_secs(*retry_after_seconds)))
            }
            other => {
                let text = format!(
                    "Qdrant at {address} cannot be asked for {what}: {}",
                    self.clean(&other.to_string())
                );
                return QdrantFailure { kind: QdrantErrorKind::Refused, text };
            }
        };
        let message = status.message();
        let code = GrpcCode::of(i32::from(status.code()));
        let cause = std::error::Error::source(status);
        if code == GrpcCode::Slow || message.contains("Timeout expired") {
            return self.slow();
        }
        // A status with a cause was made here, not by the server.
        if cause.is_some() || message.starts_with("Failed to connect to") {
            let text = format!("Qdrant at {address} cannot be reached{}", reason(message, cause));
            return QdrantFailure { kind: QdrantErrorKind::Unreachable, text };
        }
        let message = self.clean(message);
        let (kind, text) = match code {
            GrpcCode::Exhausted => (
                QdrantErrorKind::Busy(retry_after),
                format!("Qdrant at {address} has too much to do: {message}"),
            ),
            GrpcCode::Internal => {
                (QdrantErrorKind::Busy(None), format!("Qdrant at {address} failed at {what}: {message}"))
            }
            GrpcCode::NotFound => (
                QdrantErrorKind::Missing,
                format!("Qdrant at {address} does not know what it is asked for: {message}"),
            ),
            GrpcCode::Denied => (
                QdrantErrorKind::Refused,
                format!(
                    "Qdrant at {address} refuses the key: set QDRANT_API_KEY to one that may read and write every collection"
                ),
            ),
            GrpcCode::Slow | GrpcCode::Other => {
                (QdrantErrorKind::Refused, format!("Qdrant at {address} refused {what}: {message}"))
            }
        };
        QdrantFailure { kind, text }
    }

    /// A message in one line, not too long, and without the key.
    fn clean(&self, message: &str) -> String {
        let line =
            message.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let line = line.collect::<Vec<_>>().join(" ");
        let line = match self.key.as_ref().map(ExposeSecret::expose_secret).filter(|key| !key.is_empty()) {
            Some(key) => line.replace(key, "[key]"),
            None => line,
        };
        line.chars().take(MESSAGE_CHARS).collect()
    }
}

/// What a call returns when it fails.
pub(super) enum CallError {
    Qdrant(QdrantError),
    Failure(QdrantFailure),
}

impl From<QdrantError> for CallError {
    fn from(error: QdrantError) -> Self {
        Self::Qdrant(error)
    }
}

impl From<QdrantFailure> for CallError {
    fn from(failure: QdrantFailure) -> Self {
        Self::Failure(failure)
    }
}

/// The gRPC status codes, as far as they differ here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GrpcCode {
    Slow,
    Exhausted,
    Internal,
    NotFound,
    Denied,
    Other,
}

impl GrpcCode {
    /// By the number that the gRPC specification gives it.
    const fn of(number: i32) -> Self {
        match number {
            4 => Self::Slow,
            8 => Self::Exhausted,
            // CANCELLED, UNKNOWN, ABORTED, INTERNAL, UNAVAILABLE
            1 | 2 | 10 | 13 | 14 => Self::Internal,
            5 => Self::NotFound,
            7 | 16 => Self::Denied,
            _ => Self::Other,
        }
    }
}

/// What broke a connection, as far as it can be told from the library's texts.
fn reason(message: &str, mut cause: Option<&(dyn std::error::Error + 'static)>) -> &'static str {
    const NOT_GRPC: &str = ": it does not go on with the connection; is this the gRPC port, usually 6334?";
    let mut all = message.to_owned();
    while let Some(error) = cause {
        all.push_str(&error.to_string());
        cause = error.source();
    }
    let all = all.to_ascii_lowercase();
    let known = [
        ("refused", ": the connection was refused"),
        ("dns error", ": its name cannot be resolved"),
        ("lookup", ": its name cannot be resolved"),
        ("certificate", ": its certificate is not trusted"),
        ("timed out", ": there was no answer in time"),
        ("deadline", ": there was no answer in time"),
        ("h2 protocol", NOT_GRPC),
        ("connection closed", NOT_GRPC),
        ("connection reset", NOT_GRPC),
        ("broken pipe", NOT_GRPC),
        ("corruptmessage", ": it does not speak TLS; begin its address with http://"),
        ("invalidcontenttype", ": it does not speak TLS; begin its address with http://"),
    ];
    known.iter().find(|(sign, _)| all.contains(sign)).map_or("", |(_, reason)| reason)
}

/// An address without anything secret.
fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}://{host}:{port}", url.scheme())
}
