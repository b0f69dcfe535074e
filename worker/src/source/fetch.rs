//! Getting a source: what is inline is at hand; an upload comes from the blob store and everything else through the egress
//! client into a temporary file, so that its size does not matter to memory.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use lectern_shared::{
    blobs::{BlobError, BlobStore},
    config::ServiceLimits,
    disposition::file_name,
    egress::{Egress, EgressRequest, EgressResponse, RequestLimits},
    media_type,
    model::document::{DocumentSource, SourceAuthorization, SourceState, addresses},
    retry::retry_after,
    secrets::{CiphertextLocation, Keyring},
};
use parking_lot::Mutex;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_DISPOSITION, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
};
use secrecy::ExposeSecret;
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt},
    time::{Instant, timeout},
};
use url::Url;

use super::load::{DownloadedFile, FetchedSource};
use crate::{failure::IngestFailure, lease::ProgressReporter};

/// A server that sends nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(20);
/// Bytes that are taken from the blob store at a time.
const PIECE: usize = 64 << 10;

/// The time that a document's source may take to be fetched: all its addresses, and all that is asked of each, draw on it. A limit
/// for each address alone would let a list of slow ones keep a worker for hours.
pub(crate) struct FetchBudget {
    all: Duration,
    left: Mutex<Duration>,
}

impl FetchBudget {
    pub(crate) fn new(all: Duration) -> Self {
        Self { all, left: Mutex::new(all) }
    }

    /// Fetches something in the time that is left, which `fetch` keeps to.
    pub(super) async fn spend<T, F>(&self, fetch: impl FnOnce(Duration) -> F) -> Result<T, IngestFailure>
    where
        F: Future<Output = Result<T, IngestFailure>>,
    {
        let left = *self.left.lock();
        if left.is_zero() {
            let message = format!(
                "The document's addresses took more than {} s together. Split it into several documents.",
                self.all.as_secs()
            );
            return Err(IngestFailure::passing("timeout", message));
        }
        let began = Instant::now();
        let fetched = fetch(left).await;
        *self.left.lock() = left.saturating_sub(began.elapsed());
        fetched
    }
}

/// By what a source is known the next time.
#[derive(Debug, Default)]
pub(super) struct CacheValidators {
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) sha256: Option<String>,
}

/// What an address answered.
pub(super) enum FetchOutcome {
    /// It has not changed.
    NotModified,
    /// Its bytes, and what they are known by, as far as the server says.
    New { download: Box<DownloadedFile>, validators: CacheValidators },
}

/// Gets what a document's text is read from.
#[derive(Clone, Copy)]
pub(crate) struct SourceFetcher<'a> {
    pub(crate) blobs: &'a BlobStore,
    pub(crate) egress: &'a Egress,
    pub(crate) keyring: &'a Keyring,
    pub(crate) limits: &'a ServiceLimits,
    pub(crate) source: &'a DocumentSource,
    pub(crate) progress: &'a ProgressReporter,
}

impl SourceFetcher<'_> {
    /// Gets an upload.
    pub(super) async fn upload(&self) -> Result<FetchedSource, IngestFailure> {
        let Some(key) = &self.source.blob_key else {
            return Err(IngestFailure::Internal("the document is no upload".to_owned()));
        };
        let stored = timeout(self.limits.fetch_timeout, self.stored(key)).await;
        stored.unwrap_or_else(|_| Err(silent()))
    }

    async fn stored(&self, key: &str) -> Result<FetchedSource, IngestFailure> {
        let mut reader = self.blobs.get(key).await.map_err(blob_failure)?;
        let limit = self.limits.source_bytes;
        let mut file = temporary_file().await?;
        let mut piece = vec![0; PIECE];
        let mut bytes = 0_u64;
        loop {
            let read = timeout(SILENCE, reader.read(&mut piece)).await.map_err(|_| silent())?;
            let read = match read.map_err(|error| blob_failure(error.into()))? {
                0 => break,
                read => read,
            };
            bytes += read as u64;
            if bytes > limit {
                let message = format!("The file has more than {limit} bytes, the most that is ingested.");
                return Err(IngestFailure::permanent("too_large", message));
            }
            file.write_all(piece.get(..read).unwrap_or_default()).await?;
            self.progress.at(bytes, None, "bytes");
        }
        file.flush().await?;
        file.rewind().await?;
        let stored_type = self.source.source_mime.as_deref();
        Ok(FetchedSource::Download(Box::new(DownloadedFile {
            file,
            bytes,
            content_type: stored_type.and_then(media_type::essence),
            charset: stored_type.and_then(media_type::charset),
            // What a source was made into is still where it was found.
            url: Url::parse(&self.source.url).ok(),
            name: self.source.source_name.clone(),
        })))
    }

    /// Gets what is at one of a document's addresses in the time that is given, unless it is what was read the last time.
    pub(super) async fn fetch(
        &self,
        url: Url,
        known: Option<&SourceState>,
        within: Duration,
    ) -> Result<FetchOutcome, IngestFailure> {
        let mut request = EgressRequest::get(
            url,
            RequestLimits {
                max_bytes: self.limits.source_bytes,
                total_timeout: within,
                idle_timeout: SILENCE,
            },
        );
        // Few documents are under way at a time.
        request.takes_brotli = true;
        request.portable_headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        if is_own_origin(self.source, &request.url) {
            request.headers = self.credentials()?;
        }
        if let Some(known) = known {
            for (name, value) in [(IF_NONE_MATCH, &known.etag), (IF_MODIFIED_SINCE, &known.last_modified)] {
                if let Some(value) = value.as_ref().and_then(|value| HeaderValue::from_str(value).ok()) {
                    request.headers.insert(name, value);
                }
            }
        }
        let asked_whether_changed =
            request.headers.contains_key(IF_NONE_MATCH) || request.headers.contains_key(IF_MODIFIED_SINCE);
        let response = self.egress.send(request).await?;
        if response.status == 304 && asked_whether_changed {
            return Ok(FetchOutcome::NotModified);
        }
        let host = response.final_url.host_str().unwrap_or("the server");
        check_status(host, response.status, &response.headers)?;
        let (content_type, charset, final_url) =
            (response.content_type(), response.charset(), response.final_url.clone());
        let validators = CacheValidators {
            etag: response.etag().map(str::to_owned),
            last_modified: response.last_modified().map(str::to_owned),
            sha256: None,
        };
        let name =
            response.headers.get(CONTENT_DISPOSITION).and_then(|value| file_name(value.to_str().ok()?));
        let total =
            response.headers.get(reqwest::header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
        let (file, bytes) = save(response, total, self.progress).await?;
        let download = DownloadedFile { file, bytes, content_type, charset, url: Some(final_url), name };
        Ok(FetchOutcome::New { download: Box::new(download), validators })
    }

    /// The headers that open the source.
    fn credentials(&self) -> Result<HeaderMap, IngestFailure> {
        let Some(sealed) = &self.source.authorization_sealed else { return Ok(HeaderMap::new()) };
        let place = CiphertextLocation::document_authorization(self.source.id.as_uuid());
        let json = self.keyring.decrypt_text(place, sealed).map_err(|error| {
            IngestFailure::Internal(format!("the stored authorization cannot be read: {error}"))
        })?;
        let authorization: SourceAuthorization =
            serde_json::from_str(json.expose_secret()).map_err(|_| {
                IngestFailure::Internal("the stored authorization cannot be understood".to_owned())
            })?;
        authorization_headers(authorization)
    }
}

/// The headers that let a request in.
pub(crate) fn authorization_headers(authorization: SourceAuthorization) -> Result<HeaderMap, IngestFailure> {
    let mut headers = HeaderMap::new();
    let refused = |_| {
        let message = "The authorization holds characters that a header cannot carry.";
        IngestFailure::permanent("invalid_authorization", message)
    };
    let mut add = |name: HeaderName, value: &str| {
        let mut value = HeaderValue::from_str(value).map_err(refused)?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok::<_, IngestFailure>(())
    };
    match authorization {
        SourceAuthorization::Bearer { token } => add(AUTHORIZATION, &format!("Bearer {token}"))?,
        SourceAuthorization::Basic { username, password } => {
            let pair = BASE64_STANDARD.encode(format!("{username}:{password}"));
            add(AUTHORIZATION, &format!("Basic {pair}"))?;
        }
        SourceAuthorization::Headers { headers } => {
            for (name, value) in headers {
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
                    IngestFailure::permanent(
                        "invalid_authorization",
                        "The authorization holds a wrong header name.",
                    )
                })?;
                add(name, &value)?;
            }
        }
    }
    Ok(headers)
}

fn silent() -> IngestFailure {
    IngestFailure::Outage("the blob store does not answer in time".to_owned())
}

/// What an upload's owner is told when it cannot be read.
fn blob_failure(error: BlobError) -> IngestFailure {
    match error {
        BlobError::NotFound => {
            tracing::error!("an uploaded file is missing in the blob store");
            IngestFailure::permanent("not_found", "The uploaded file is not there any more. Upload it again.")
        }
        BlobError::Io(error) => match error.downcast::<BlobError>() {
            Ok(error) => blob_failure(error),
            Err(error) => IngestFailure::Internal(format!("the blob store failed: {error}")),
        },
        error @ (BlobError::Unavailable { .. } | BlobError::Foreign(_)) => {
            IngestFailure::Outage(error.to_string())
        }
        error @ BlobError::TooLarge { .. } => IngestFailure::Internal(error.to_string()),
    }
}

pub(crate) async fn temporary_file() -> Result<File, IngestFailure> {
    let file =
        tokio::task::spawn_blocking(tempfile::tempfile).await.map_err(|_| IngestFailure::Panicked)??;
    Ok(File::from_std(file))
}

async fn save(
    mut response: EgressResponse,
    total: Option<u64>,
    progress: &ProgressReporter,
) -> Result<(File, u64), IngestFailure> {
    let mut file = temporary_file().await?;
    let mut bytes = 0_u64;
    while let Some(part) = response.chunk().await? {
        file.write_all(&part).await?;
        bytes += part.len() as u64;
        progress.at(bytes, total, "bytes");
    }
    file.flush().await?;
    file.rewind().await?;
    Ok((file, bytes))
}

fn check_status(host: &str, status: u16, headers: &HeaderMap) -> Result<(), IngestFailure> {
    match status {
        200..=299 => Ok(()),
        404 | 410 => Err(IngestFailure::permanent(
            "not_found",
            format!("{host} answers that there is nothing at this address ({status}). Check the address."),
        )),
        401 | 403 | 407 => Err(IngestFailure::permanent(
            "forbidden",
            format!("{host} refuses access ({status}). Give credentials for it, or use a public address."),
        )),
        408 | 425 | 429 | 500..=599 => Err(IngestFailure::away(
            "unreachable",
            format!("{host} cannot answer now (status {status})."),
            retry_after(headers),
        )),
        _ => Err(IngestFailure::permanent(
            "unexpected_status",
            format!("{host} answers with status {status} instead of the document. Check the address."),
        )),
    }
}

/// Whether an address is of the origin that the document's authorization is meant for: that of its first address.
fn is_own_origin(source: &DocumentSource, url: &Url) -> bool {
    let first = addresses(source.r#type, &source.url).into_iter().next();
    first.and_then(|first| Url::parse(first).ok()).is_some_and(|first| first.origin() == url.origin())
}

#[cfg(test)]
mod tests {
    use reqwest::header::RETRY_AFTER;

    use super::*;

    #[test]
    fn what_a_server_says_of_when_to_come_back_is_handed_on() {
        let asked = |status: u16, seconds: &'static str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(seconds))]);
            check_status("a.example", status, &headers)
        };
        for status in [429, 503] {
            let Err(IngestFailure::Source { error, retry_after }) = asked(status, "120") else {
                panic!("{status} is no failure of the source")
            };
            assert_eq!((error.code.as_str(), error.retryable), ("unreachable", true), "{status}");
            assert_eq!(retry_after, Some(Duration::from_mins(2)), "{status}");
        }
        assert!(matches!(asked(500, "soon"), Err(IngestFailure::Source { retry_after: None, .. })));
        // There is nothing to wait for.
        assert!(matches!(asked(404, "120"), Err(IngestFailure::Document(error)) if !error.retryable));
        assert!(asked(200, "120").is_ok());
    }
}
