//! The objects of a bucket. Every request goes through egress: the store's address is a user's.

use std::{error::Error as _, time::Duration};

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;
use lectern_shared::{
    blobs::bucket_address,
    egress::{Egress, EgressError, EgressRequest, RequestLimits},
    model::sync::BucketConfig,
};
use object_store::{
    ClientOptions, Error, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
        HttpService,
    },
    path::Path,
};
use url::Url;

use super::{
    item::{FoundItem, ItemValidators, StagedFile, StagingFailure, is_unreadable},
    record::{ItemState, RunRecorder, document_name},
    run::{Enumeration, RunFailure, SyncContext},
};

/// A store that sends nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(20);
/// How often a request is made again, and for how long.
const RETRIES: usize = 2;
const RETRIED_FOR: Duration = Duration::from_secs(30);
/// Bytes of one answer that is a list.
const LIST_BYTES: u64 = 16 << 20;

/// Reads a bucket.
pub(super) async fn read(
    context: &SyncContext<'_>,
    config: &BucketConfig,
    recorder: &mut RunRecorder<'_>,
) -> Result<Enumeration, RunFailure> {
    let store = open(context, config)?;
    let prefix = config.prefix.trim_matches('/');
    let prefix = Path::parse(prefix).map_err(|_| RunFailure::stop("The prefix cannot be part of a key"))?;
    let mut objects = store.list(Some(&prefix));
    let mut is_complete = true;
    while let Some(object) = objects.next().await {
        let object = object.map_err(|error| RunFailure::stop(words(&error)))?;
        let key = object.location.as_ref();
        let path = key.strip_prefix(prefix.as_ref()).unwrap_or(key).trim_start_matches('/');
        // Folders are written as empty objects.
        if object.size == 0 || is_unreadable(key) || !config.filter.admits(path) {
            continue;
        }
        if !recorder.has_room() {
            is_complete = false;
            break;
        }
        look_at(context, &store, recorder, &object, path).await?;
    }
    Ok(Enumeration {
        unseen: is_complete.then_some("The bucket does not have it any more."),
        validators: None,
    })
}

async fn look_at(
    context: &SyncContext<'_>,
    store: &AmazonS3,
    recorder: &mut RunRecorder<'_>,
    object: &ObjectMeta,
    path: &str,
) -> Result<(), RunFailure> {
    let key = object.location.as_ref();
    let ItemState::Open(known) = recorder.look(key).await? else { return Ok(()) };
    let tag = object.e_tag.clone().unwrap_or_else(|| format!("{} {}", object.last_modified, object.size));
    if let Some(current) = recorder.current(known.as_ref())
        && (current.etag.as_ref() == Some(&tag) || !current.is_alive)
    {
        return recorder.unchanged(current).await;
    }
    let most = context.runtime.settings.limits.source_bytes;
    if object.size > most {
        let reason = format!("It has {} bytes, and {most} may be fetched.", object.size);
        return recorder.failed(key, &reason, known.as_ref()).await;
    }
    let got = match store.get(&object.location).await {
        Ok(got) => got,
        Err(error) => return recorder.failed(key, &words(&error), known.as_ref()).await,
    };
    let content_type =
        got.attributes.get(&object_store::Attribute::ContentType).map(|value| value.as_ref().to_owned());
    let content_type =
        content_type.and_then(|full| Some(full.split(';').next()?.trim().to_ascii_lowercase()));
    let staged = match StagedFile::of(got.into_stream()).await {
        Ok(staged) => staged,
        Err(StagingFailure::Source(error)) => {
            return recorder.failed(key, &words(&error), known.as_ref()).await;
        }
        Err(StagingFailure::Here(failure)) => return Err(failure),
    };
    let item = FoundItem {
        key,
        name: document_name(Some(path), key),
        url: None,
        file_name: object.location.filename().map(str::to_owned),
        content_type: content_type.as_deref(),
        charset: None,
        staged,
        validators: ItemValidators { etag: Some(&tag), ..ItemValidators::default() },
    };
    recorder.found(known, item).await
}

fn open(context: &SyncContext<'_>, config: &BucketConfig) -> Result<AmazonS3, RunFailure> {
    let limits = &context.runtime.settings.limits;
    let limits = RequestLimits {
        max_bytes: limits.source_bytes.max(LIST_BYTES),
        total_timeout: limits.fetch_timeout,
        idle_timeout: SILENCE,
    };
    let connector = EgressConnector(EgressService { egress: context.runtime.egress.clone(), limits });
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&config.bucket)
        .with_region(&config.region)
        .with_virtual_hosted_style_request(!config.path_style)
        .with_http_connector(connector)
        .with_retry(RetryConfig {
            max_retries: RETRIES,
            retry_timeout: RETRIED_FOR,
            ..RetryConfig::default()
        });
    if let Some(endpoint) = &config.endpoint {
        let address = Url::parse(endpoint).ok();
        let address =
            address.and_then(|endpoint| bucket_address(&endpoint, &config.bucket, config.path_style));
        let wrong = "The bucket cannot be part of this endpoint's host name; have it named in the path";
        builder = builder.with_endpoint(address.ok_or_else(|| RunFailure::stop(wrong))?);
    }
    builder = match (&config.access_key_id, &context.secret.secret_access_key) {
        (Some(id), Some(secret)) => builder.with_access_key_id(id).with_secret_access_key(secret),
        // Credentials of the machine are never asked for.
        _ => builder.with_skip_signature(true),
    };
    builder.build().map_err(|_| RunFailure::stop("What is said of the bucket makes no address"))
}

/// What people are told of a failure of the store.
fn words(error: &Error) -> String {
    match error {
        Error::NotFound { .. } => "The store has no such bucket or object.".to_owned(),
        Error::Unauthenticated { .. } | Error::PermissionDenied { .. } => {
            "The store refuses access with these keys.".to_owned()
        }
        error => {
            let mut cause = error.source();
            while let Some(error) = cause {
                if let Some(error) = error.downcast_ref::<EgressError>() {
                    return format!("The store could not be asked: {error}.");
                }
                cause = error.source();
            }
            "The store does not answer as one should.".to_owned()
        }
    }
}

/// Makes the library's clients in our way.
#[derive(Debug)]
struct EgressConnector(EgressService);

impl HttpConnector for EgressConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

/// Requests of the library, through egress.
#[derive(Clone, Debug)]
struct EgressService {
    egress: Egress,
    limits: RequestLimits,
}

#[async_trait]
impl HttpService for EgressService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let unreadable = |error| HttpError::new(HttpErrorKind::Unknown, error);
        let url = Url::parse(&parts.uri.to_string()).map_err(unreadable)?;
        let request = EgressRequest {
            headers: parts.headers,
            body: body.as_bytes().cloned(),
            // A signature is good for one address.
            follow_redirects: false,
            ..EgressRequest::new(parts.method, url, self.limits)
        };
        let response = self.egress.send(request).await.map_err(failed)?;
        let mut answer = hyper::Response::builder().status(response.status);
        if let Some(headers) = answer.headers_mut() {
            *headers = response.headers.clone();
        }
        let pieces = stream::try_unfold(response, |mut response| async {
            let piece = response.chunk().await.map_err(failed)?;
            Ok(piece.map(|piece| (piece, response)))
        });
        let body = StreamBody::new(pieces.map_ok(Frame::data));
        answer
            .body(HttpResponseBody::new(body))
            .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))
    }
}

fn failed(error: EgressError) -> HttpError {
    let kind = match &error {
        EgressError::Connect { .. } => HttpErrorKind::Connect,
        EgressError::Timeout { .. } => HttpErrorKind::Timeout,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}
