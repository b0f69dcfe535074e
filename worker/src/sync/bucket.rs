//! The objects of a bucket. Every request goes through egress: the store's address is a user's.

use std::{
    collections::HashSet,
    error::Error as _,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;
use lectern_db::sync::items;
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
    path::{Error as PathError, Path},
};
use parking_lot::Mutex;
use url::Url;

use super::{
    context::{Enumeration, SyncContext},
    failure::RunFailure,
    item::{FoundItem, ItemValidators, StagedFile, StagingFailure, is_unreadable},
    objects::ListedObjects,
    record::{ItemState, RunRecorder, document_name},
    vanished::MoveRule,
};

/// A store that sends nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(20);
/// How often a request is made again, and for how long.
const RETRIES: usize = 2;
const RETRIED_FOR: Duration = Duration::from_secs(30);
/// Bytes of one answer that is a list: it names a thousand keys of at most 1,024 bytes.
const LIST_BYTES: u64 = 4 << 20;
/// Tags in it, of which an object has some twenty: the library keeps those that it does not know until it has read all.
const LIST_TAGS: usize = 50_000;
/// Objects that a run looks at: so many, and so many for each document that the source may have.
const OBJECTS: u64 = 100_000;
const OBJECTS_PER_DOCUMENT: u64 = 20;
/// Objects that a page of a list has on an average, at least; stores send a thousand.
const OBJECTS_PER_PAGE: u64 = 100;

/// Reads a bucket.
pub(super) async fn read(
    context: &SyncContext<'_>,
    config: &BucketConfig,
    recorder: &mut RunRecorder<'_>,
) -> Result<Enumeration, RunFailure> {
    let most = most_objects(recorder.most());
    let store = open(context, config, most / OBJECTS_PER_PAGE)?;
    let prefix = config.prefix.trim_matches('/');
    let prefix = Path::parse(prefix).map_err(|_| RunFailure::stop("The prefix cannot be part of a key"))?;
    let reader = BucketReader { context, config, store, prefix, most };
    let known = items::keys(&context.runtime.db, context.source.id).await?;
    let mut listed = ListedObjects::of(known.into_iter().collect(), recorder.most() as usize);
    let broken_off = reader.go_through(recorder, &mut listed).await?;
    // What is not listed may be there for all that, where not everything is.
    if broken_off.is_none() {
        recorder.vanish(listed.missing()).await?;
    }
    let (new, left_out) = listed.take_new();
    for object in &new {
        Box::pin(reader.look_at(recorder, object, listed.rule(object))).await?;
    }
    recorder.left_out += left_out;
    match broken_off {
        Some(why) => Err(RunFailure::stop(why)),
        None => {
            let reason = "The bucket does not have it any more.";
            Ok(Enumeration { unseen: Some(reason), is_complete: true, validators: None })
        }
    }
}

/// Objects, or entries of folders, that a run looks at for so many documents.
pub(super) fn most_objects(documents: u32) -> u64 {
    u64::from(documents) * OBJECTS_PER_DOCUMENT + OBJECTS
}

/// Reads the objects of a bucket.
struct BucketReader<'r> {
    context: &'r SyncContext<'r>,
    config: &'r BucketConfig,
    store: AmazonS3,
    prefix: Path,
    /// Objects that are looked at, at most.
    most: u64,
}

impl BucketReader<'_> {
    /// Goes through the list, and looks at what need not wait for its end. Returns why it was not gone through to that, if it was not.
    async fn go_through(
        &self,
        recorder: &mut RunRecorder<'_>,
        listed: &mut ListedObjects,
    ) -> Result<Option<String>, RunFailure> {
        let mut objects = self.store.list(Some(&self.prefix));
        let (mut looked_at, most) = (0, self.most);
        while let Some(object) = objects.next().await {
            let object = match object {
                Ok(object) => object,
                Err(error) => return Ok(Some(words(&error))),
            };
            looked_at += 1;
            if looked_at > most {
                return Ok(Some(format!(
                    "The bucket has more than the {most} objects that a run looks at; a longer prefix makes them fewer"
                )));
            }
            // Folders are written as empty objects.
            let is_empty = object.size == 0 || is_unreadable(object.location.as_ref());
            if is_empty || !self.config.filter.admits(self.path(&object)) {
                continue;
            }
            if let Some(object) = listed.admit(object) {
                Box::pin(self.look_at(recorder, &object, MoveRule::Never)).await?;
            }
        }
        Ok(None)
    }

    /// The key of an object behind the prefix.
    fn path<'o>(&self, object: &'o ObjectMeta) -> &'o str {
        let key = object.location.as_ref();
        key.strip_prefix(self.prefix.as_ref()).unwrap_or(key).trim_start_matches('/')
    }

    async fn look_at(
        &self,
        recorder: &mut RunRecorder<'_>,
        object: &ObjectMeta,
        moves: MoveRule,
    ) -> Result<(), RunFailure> {
        let key = object.location.as_ref();
        let ItemState::Open(known) = recorder.look(key, Some(object.size)).await? else { return Ok(()) };
        let tag = object.e_tag.clone().unwrap_or_else(|| format!("{} {}", object.last_modified, object.size));
        if let Some(current) = recorder.current(known.as_ref())
            && (current.etag.as_ref() == Some(&tag) || !current.is_alive)
        {
            return recorder.unchanged(current).await;
        }
        let most = self.context.runtime.settings.limits.source_bytes;
        if object.size > most {
            let reason = format!("It has {} bytes, and {most} may be fetched.", object.size);
            return recorder.failed(key, &reason, known.as_ref()).await;
        }
        let got = match self.store.get(&object.location).await {
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
            name: document_name(Some(self.path(object)), key),
            url: None,
            file_name: object.location.filename().map(str::to_owned),
            content_type: content_type.as_deref(),
            charset: None,
            staged,
            validators: ItemValidators { etag: Some(&tag), ..ItemValidators::default() },
            moves,
        };
        recorder.found(known, item).await
    }
}

fn open(context: &SyncContext<'_>, config: &BucketConfig, most_pages: u64) -> Result<AmazonS3, RunFailure> {
    let limits = &context.runtime.settings.limits;
    let limits = RequestLimits {
        max_bytes: limits.source_bytes,
        total_timeout: limits.fetch_timeout,
        idle_timeout: SILENCE,
    };
    let connector = EgressConnector(EgressService {
        egress: context.runtime.egress.clone(),
        limits,
        pages: Arc::new(ListPages::new(most_pages)),
    });
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
        Error::InvalidPath {
            source: PathError::EmptySegment { path } | PathError::BadSegment { path, .. },
        } => format!(
            "The bucket has the key {path:?}, which cannot be read, since a part of it is empty, \".\" or \"..\", or has a control \
             character. Choose a prefix without such keys."
        ),
        error => {
            let mut cause = error.source();
            while let Some(error) = cause {
                if let Some(error) = error.downcast_ref::<EgressError>() {
                    return format!("The store could not be asked: {error}.");
                }
                if let Some(failure) = error.downcast_ref::<ListFailure>() {
                    return failure.to_string();
                }
                cause = error.source();
            }
            "The store does not answer as one should.".to_owned()
        }
    }
}

/// Why a list is not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum ListFailure {
    #[error("A page of the store's list has more than {} tags.", LIST_TAGS)]
    Tags,
    #[error("The store's list leads back to a page that was read already.")]
    Circle,
    #[error("The store's list has more than {0} pages; a longer prefix makes them fewer.")]
    Pages(u64),
}

/// The pages of the list that a run reads.
#[derive(Debug)]
struct ListPages {
    most: u64,
    /// Of the tokens that they were asked for with; they may be long.
    hashes: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

impl ListPages {
    fn new(most: u64) -> Self {
        Self { most, hashes: Mutex::default(), hasher: RandomState::new() }
    }

    /// Takes note of a page; an error when it may not be read.
    fn admit(&self, token: &str, page: &[u8]) -> Result<(), ListFailure> {
        if page.split(|byte| *byte == b'<').skip(1).count() > LIST_TAGS {
            return Err(ListFailure::Tags);
        }
        let mut hashes = self.hashes.lock();
        if !hashes.insert(self.hasher.hash_one(token)) {
            return Err(ListFailure::Circle);
        }
        if hashes.len() as u64 > self.most { Err(ListFailure::Pages(self.most)) } else { Ok(()) }
    }
}

/// With which token an address asks for a page of a list, an empty one for the first; none when it asks for something else.
fn page_token(url: &Url) -> Option<String> {
    let value =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    value("list-type")?;
    Some(value("continuation-token").unwrap_or_default())
}

/// What an answer may take.
fn limits_of(most: RequestLimits, is_list: bool) -> RequestLimits {
    // A list is read into memory, an object is not.
    if is_list { RequestLimits { max_bytes: LIST_BYTES, ..most } } else { most }
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
    pages: Arc<ListPages>,
}

#[async_trait]
impl HttpService for EgressService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let unreadable = |error| HttpError::new(HttpErrorKind::Unknown, error);
        let url = Url::parse(&parts.uri.to_string()).map_err(unreadable)?;
        let token = page_token(&url);
        let limits = limits_of(self.limits, token.is_some());
        let request = EgressRequest {
            headers: parts.headers,
            body: body.as_bytes().cloned(),
            // A signature is good for one address.
            follow_redirects: false,
            // An object that was put there compressed is sent so, whatever is asked for.
            takes_brotli: true,
            ..EgressRequest::new(parts.method, url, limits)
        };
        let response = self.egress.send(request).await.map_err(failed)?;
        let mut answer = hyper::Response::builder().status(response.status);
        if let Some(headers) = answer.headers_mut() {
            *headers = response.headers.clone();
        }
        let body = match token.filter(|_| (200..300).contains(&response.status)) {
            Some(token) => {
                let page = response.bytes().await.map_err(failed)?;
                let refused = |failure| HttpError::new(HttpErrorKind::Unknown, failure);
                self.pages.admit(&token, &page).map_err(refused)?;
                HttpResponseBody::from(page)
            }
            None => {
                let pieces = stream::try_unfold(response, |mut response| async {
                    let piece = response.chunk().await.map_err(failed)?;
                    Ok(piece.map(|piece| (piece, response)))
                });
                HttpResponseBody::new(StreamBody::new(pieces.map_ok(Frame::data)))
            }
        };
        answer.body(body).map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))
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

#[cfg(test)]
mod tests {
    use lectern_shared::egress::{EgressPolicy, parse_allow_list};
    use object_store::client::HttpRequestBody;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    fn address(query: &str) -> Url {
        Url::parse(&format!("https://b.example/{query}")).unwrap()
    }

    #[test]
    fn a_list_takes_less_than_an_object() {
        for (query, token) in [
            ("?list-type=2&prefix=a%2F", Some("")),
            ("?continuation-token=a%2Bb%3D&list-type=2", Some("a+b=")),
            ("list-type=2", None),
            ("a.txt?versionId=1", None),
        ] {
            assert_eq!(page_token(&address(query)).as_deref(), token, "{query}");
        }
        let second = Duration::from_secs(1);
        let most = RequestLimits { max_bytes: 100 << 20, total_timeout: second, idle_timeout: second };
        assert_eq!(limits_of(most, true).max_bytes, LIST_BYTES);
        assert_eq!(limits_of(most, false), most);
    }

    #[tokio::test]
    async fn an_object_that_was_put_there_compressed_by_brotli_is_read() {
        const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 9\r\n\r\n";
        const HELLO: [u8; 9] = [0x0b, 0x02, 0x80, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x03];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let store = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            assert!(socket.read(&mut [0; 4096]).await.unwrap() > 0);
            socket.write_all(&[HEAD, &HELLO].concat()).await.unwrap();
        });
        let allow = parse_allow_list("127.0.0.1").unwrap();
        let egress = Egress::new(EgressPolicy { allow, ..EgressPolicy::default() }).unwrap();
        let limits =
            RequestLimits { max_bytes: 100, total_timeout: Duration::from_mins(1), idle_timeout: SILENCE };
        let service = EgressService { egress, limits, pages: Arc::new(ListPages::new(1)) };
        let request = hyper::Request::get(format!("http://{store}/documents/a.txt"));
        let answer = service.call(request.body(HttpRequestBody::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.into_body().bytes().await.unwrap(), "hello");
        serving.await.unwrap();
    }

    #[test]
    fn lists_have_few_tags_and_lead_on() {
        let pages = ListPages::new(2);
        assert_eq!(pages.admit("", &b"<a/>".repeat(LIST_TAGS + 1)), Err(ListFailure::Tags));
        assert_eq!(pages.admit("", &b"<a/>".repeat(LIST_TAGS)), Ok(()));
        assert_eq!(pages.admit("x", b"<a/>"), Ok(()));
        assert_eq!(pages.admit("x", b"<a/>"), Err(ListFailure::Circle));
        assert_eq!(pages.admit("y", b"<a/>"), Err(ListFailure::Pages(2)));
    }

    #[test]
    fn what_is_wrong_with_a_list_is_told() {
        let error = HttpError::new(HttpErrorKind::Unknown, ListFailure::Circle);
        let error = Error::Generic { store: "S3", source: Box::new(error) };
        assert_eq!(words(&error), ListFailure::Circle.to_string());
        assert_eq!(most_objects(10_000), 300_000);
    }
}
