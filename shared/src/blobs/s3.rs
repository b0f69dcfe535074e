//! Blobs in a bucket of an S3-compatible store.
//!
//! Under the prefix lie the marker and `documents/<document>/<name>`. Everything goes through the operator's HTTP client, so
//! that neither a proxy nor a redirect that nobody set decides where signed requests go; nothing is read from the environment.

use std::{io, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, Error, ObjectStore, ObjectStoreExt, PutMode, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
    client::{HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService},
    path::Path,
};
use secrecy::ExposeSecret;
use tokio_util::io::StreamReader;

use super::{
    BlobError, BlobMeter, BlobReader, LISTED, ListedBlob, MARKER, S3Location, bucket_address, read_marker,
    upload::BlobUpload,
};
use crate::{clock::Timestamp, egress, ids::DocumentId};

/// How long the store may take.
#[derive(Clone, Debug)]
pub(super) struct S3Timeouts {
    /// For a connection.
    pub(super) connect: Duration,
    /// Until an answer begins after much was sent or much is to be done, and between two pieces of an answer.
    pub(super) silence: Duration,
    /// No request is tried again after this long.
    pub(super) retry: Duration,
    /// Until an answer begins, besides the time for what is sent; and for reading and writing the marker.
    pub(super) small: Duration,
}

impl Default for S3Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            silence: Duration::from_mins(1),
            retry: Duration::from_secs(30),
            small: Duration::from_secs(10),
        }
    }
}

/// How often a request is tried again, and the longest pause before that.
const RETRIES: usize = 3;
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The slowest line to a store, in bytes a second.
const SLOWEST: u32 = 160 << 10;
/// The role of an instance is asked for at an address next door, which answers at once or is not there.
const METADATA: Duration = Duration::from_secs(1);
const METADATA_HOST: &str = "169.254.169.254";

/// A bucket of blobs.
pub(super) struct S3Bucket {
    store: AmazonS3,
    prefix: Path,
    place: String,
    patience: S3Timeouts,
}

impl S3Bucket {
    pub(super) fn open(location: &S3Location, patience: &S3Timeouts) -> Result<Self, BlobError> {
        let place = location.to_string();
        let wrong = |why: &str| BlobError::Unavailable { what: format!("{place}: {why}") };
        let prefix =
            Path::parse(&location.prefix).map_err(|_| wrong("the prefix cannot be part of a key"))?;
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&location.bucket)
            .with_virtual_hosted_style_request(!location.path_style)
            // Not every store can delete many objects in one request, and a document has few.
            .with_disable_bulk_delete(true)
            .with_http_connector(S3Connector(patience.clone()))
            // They tell the connector which client is wanted, no more.
            .with_client_options(ClientOptions::new().with_allow_http(false))
            .with_retry(RetryConfig {
                max_retries: RETRIES,
                retry_timeout: patience.retry,
                backoff: BackoffConfig { max_backoff: LONGEST_PAUSE, ..BackoffConfig::default() },
            });
        if let Some(region) = &location.region {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = &location.endpoint {
            let address =
                bucket_address(endpoint, &location.bucket, location.path_style).ok_or_else(|| {
                    wrong("the bucket cannot be part of this endpoint's host name; name it in the path")
                })?;
            builder = builder.with_endpoint(address);
        }
        if let (Some(id), Some(secret)) = (&location.access_key_id, &location.secret_access_key) {
            builder = builder.with_access_key_id(id).with_secret_access_key(secret.expose_secret());
            if let Some(token) = &location.session_token {
                builder = builder.with_token(token.expose_secret());
            }
        }
        let store = builder.build().map_err(|_| wrong("the settings do not make a client"))?;
        Ok(Self { store, prefix, place, patience: patience.clone() })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) async fn owner(&self) -> Result<Option<String>, BlobError> {
        let read = async {
            let marker = self.open_object(&self.prefix.clone().join(MARKER)).await?;
            read_marker(marker).await.map_err(BlobError::from_reading)
        };
        match self.in_time(read).await {
            Ok(owner) => Ok(Some(owner)),
            Err(BlobError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the marker unless there is one.
    pub(super) async fn mark(&self, instance: &str) -> Result<(), BlobError> {
        let path = self.prefix.clone().join(MARKER);
        let write = async {
            let text = Bytes::copy_from_slice(instance.as_bytes());
            match self.store.put_opts(&path, text.clone().into(), PutMode::Create.into()).await {
                Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
                // Such a store cannot let the first one win; the last one wins, and reads its own mark back.
                Err(error) if failure(&error).status == Some(501) => {
                    self.store.put(&path, text.into()).await.map(drop)
                }
                Err(error) => Err(error),
            }
            .map_err(|error| self.error(&error))
        };
        self.in_time(write).await
    }

    pub(super) async fn put<E: Into<io::Error>>(
        &self,
        document: DocumentId,
        name: &str,
        body: impl Stream<Item = Result<Bytes, E>> + Unpin,
        meter: &mut BlobMeter,
    ) -> Result<(), BlobError> {
        let path = self.folder(document).join(name);
        let mut upload = BlobUpload::new(self.store.clone(), path, |error| self.error(error));
        match upload.run(body, meter).await {
            Ok(()) => {
                upload.keep();
                Ok(())
            }
            Err(error) => {
                let cleared = upload.abandon();
                // A store that is away would only be waited for once more.
                if let (Some(cleared), false) = (cleared, matches!(error, BlobError::Unavailable { .. })) {
                    let _ = cleared.await;
                }
                Err(error)
            }
        }
    }

    pub(super) async fn get(&self, document: DocumentId, name: &str) -> Result<BlobReader, BlobError> {
        self.open_object(&self.folder(document).join(name)).await
    }

    pub(super) async fn size(&self, document: DocumentId, name: &str) -> Result<Option<u64>, BlobError> {
        let head = self.store.head(&self.folder(document).join(name)).await;
        match head.map_err(|error| self.error(&error)) {
            Ok(object) => Ok(Some(object.size)),
            Err(BlobError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn remove(&self, document: DocumentId, name: &str) -> Result<(), BlobError> {
        let removed = self.store.delete(&self.folder(document).join(name)).await;
        match removed.map_err(|error| self.error(&error)) {
            Ok(()) | Err(BlobError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn list<E: From<BlobError>>(
        &self,
        mut visit: impl AsyncFnMut(Vec<ListedBlob>) -> Result<(), E>,
    ) -> Result<(), E> {
        let folder = self.prefix.clone().join("documents");
        let mut objects = self.store.list(Some(&folder));
        let mut found = Vec::new();
        while let Some(object) = objects.try_next().await.map_err(|error| self.error(&error))? {
            let mut parts = object.location.parts().skip(folder.parts().count());
            let (Some(id), Some(name), None) = (parts.next(), parts.next(), parts.next()) else { continue };
            let Ok(document) = id.as_ref().parse::<DocumentId>() else { continue };
            found.push(ListedBlob {
                key: format!("{document}/{}", name.as_ref()),
                document,
                bytes: object.size,
                modified: Timestamp::from_micros(object.last_modified.timestamp_micros()),
            });
            if found.len() == LISTED {
                visit(std::mem::take(&mut found)).await?;
            }
        }
        if found.is_empty() { Ok(()) } else { visit(found).await }
    }

    pub(super) async fn remove_document(&self, document: DocumentId) -> Result<(), BlobError> {
        let mut found = self.store.list(Some(&self.folder(document)));
        while let Some(object) = found.try_next().await.map_err(|error| self.error(&error))? {
            match self.store.delete(&object.location).await.map_err(|error| self.error(&error)) {
                Ok(()) | Err(BlobError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn open_object(&self, path: &Path) -> Result<BlobReader, BlobError> {
        let object = self.store.get(path).await.map_err(|error| self.error(&error))?;
        let place = self.place.clone();
        let stream = object.into_stream().map_err(move |error| io::Error::other(explain(&place, &error)));
        Ok(Box::new(StreamReader::new(stream)))
    }

    fn folder(&self, document: DocumentId) -> Path {
        self.prefix.clone().join("documents").join(document.to_string())
    }

    fn error(&self, error: &Error) -> BlobError {
        explain(&self.place, error)
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, BlobError>>) -> Result<T, BlobError> {
        match tokio::time::timeout(self.patience.small, work).await {
            Ok(end) => end,
            Err(_) => {
                Err(BlobError::Unavailable { what: format!("{}: it does not answer in time", self.place) })
            }
        }
    }
}

/// Makes the library's clients in our way.
#[derive(Debug)]
struct S3Connector(S3Timeouts);

impl HttpConnector for S3Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // Plain HTTP is asked for where credentials come from the machine itself, and only there.
        let metadata =
            options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let (connect, silence) =
            if metadata { (METADATA, METADATA) } else { (self.0.connect, self.0.silence) };
        egress::operator_client(connect, silence)
            .map(|client| HttpClient::new(TimedHttpService { client, patience: self.0.clone() }))
            .map_err(|error| Error::Generic { store: "S3", source: Box::new(error) })
    }
}

/// Requests whose answer has to begin in a time that what they send is worth: a connection that is dead without a word costs the
/// few who get it one try, not a minute.
#[derive(Debug)]
struct TimedHttpService {
    client: reqwest::Client,
    patience: S3Timeouts,
}

impl TimedHttpService {
    fn limit(&self, request: &HttpRequest) -> Duration {
        if request.method() == reqwest::Method::POST {
            // The store puts the parts together before it answers.
            return self.patience.silence;
        }
        let bytes = u32::try_from(request.body().content_length()).unwrap_or(u32::MAX);
        self.patience.small + Duration::from_secs(1) * bytes / SLOWEST
    }
}

#[async_trait]
impl HttpService for TimedHttpService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let limit = self.limit(&request);
        tokio::time::timeout(limit, self.client.call(request))
            .await
            .unwrap_or_else(|late| Err(HttpError::new(HttpErrorKind::Timeout, late)))
    }
}

impl BlobError {
    /// What a reader of ours failed with.
    fn from_reading(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => error,
            Err(error) => Self::Io(error),
        }
    }
}

/// What is worth knowing about a failed request.
#[derive(Debug, Default, PartialEq, Eq)]
struct S3Failure {
    status: Option<u16>,
    /// S3's own name for the error. Letters and digits only.
    code: Option<String>,
}

/// The library keeps status and answer in a private type, so that they are taken from its text.
fn failure(error: &Error) -> S3Failure {
    let text = error.to_string();
    let status = text
        .split_once("status code: ")
        .and_then(|(_, rest)| rest.get(..3))
        .and_then(|digits| digits.parse().ok());
    let code = text
        .split_once("<Code>")
        .and_then(|(_, rest)| rest.split_once("</Code>"))
        .map(|(code, _)| code.trim())
        .filter(|code| code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .map(str::to_owned);
    S3Failure { status, code }
}

/// Why a request failed, in a few words of our own: the library's text has addresses with queries and whole answers in it.
fn explain(place: &str, error: &Error) -> BlobError {
    let failure = failure(error);
    if matches!(error, Error::NotFound { .. }) && failure.code.as_deref() != Some("NoSuchBucket") {
        return BlobError::NotFound;
    }
    let credentials = error.to_string().contains(METADATA_HOST);
    let why = match (transport(error), failure.status) {
        _ if credentials => {
            "no access key is set, and this machine has no role that could stand in for one".to_owned()
        }
        (Some(HttpErrorKind::Connect), _) => "it cannot be reached".to_owned(),
        (Some(HttpErrorKind::Timeout), _) => "it does not answer in time".to_owned(),
        (Some(HttpErrorKind::Request | HttpErrorKind::Interrupted), _) => "the connection broke".to_owned(),
        (Some(HttpErrorKind::Decode), _) => "its answer makes no sense".to_owned(),
        (Some(_), _) => "the request failed".to_owned(),
        (None, Some(status)) => {
            let what = match status {
                300..=399 => "it sends requests elsewhere: check the endpoint, and the bucket's region",
                401 | 403 => "it refuses access",
                404 => "there is no such bucket",
                429 | 500..=599 => "it failed",
                _ => "it refuses the request",
            };
            let code = failure.code.map(|code| format!(" {code}")).unwrap_or_default();
            format!("{what} ({status}{code})")
        }
        (None, None) if error.to_string().contains("redirect") => {
            "it sends requests elsewhere: check the endpoint, and the bucket's region".to_owned()
        }
        (None, None) => match failure.code {
            Some(code) => format!("it failed ({code})"),
            None => "its answer makes no sense".to_owned(),
        },
    };
    BlobError::Unavailable { what: format!("{place}: {why}") }
}

fn transport(error: &Error) -> Option<HttpErrorKind> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(http) = error.downcast_ref::<object_store::client::HttpError>() {
            return Some(http.kind());
        }
        cause = error.source();
    }
    None
}
