//! Blobs in a bucket.

use secrecy::SecretString;
use tokio::{io::AsyncWriteExt, net::TcpListener};
use url::Url;

use super::{
    super::{s3::S3Timeouts, upload},
    server::{KEY_ID, SECRET},
    *,
};

fn location(place: &Place) -> S3Location {
    place.server.as_ref().unwrap().location()
}

fn patience() -> S3Timeouts {
    let short = Duration::from_millis(200);
    S3Timeouts { connect: short, silence: short, retry: short, small: Duration::from_secs(20) }
}

/// What the caller is told when a store of its own cannot be used.
async fn unavailable(location: &S3Location, patience: &S3Timeouts) -> String {
    let bucket = S3Bucket::open(location, patience).unwrap();
    let blobs = BlobStore { store: BlobBackend::S3(Arc::new(bucket)) };
    let document = DocumentId::generate();
    let key = format!("{document}/{}", "0".repeat(32));
    let errors = [
        blobs.ping().await.unwrap_err(),
        blobs.owner().await.unwrap_err(),
        blobs.claim("here").await.unwrap_err(),
        blobs.put(document, parts(&[b"x"]), 100).await.unwrap_err(),
        blobs.get(&key).await.map(drop).unwrap_err(),
        blobs.remove_document(document).await.unwrap_err(),
    ];
    for error in &errors {
        assert!(matches!(error, BlobError::Unavailable { .. }), "{error:?}");
        let shown = format!("{error} {error:?}");
        for secret in [SECRET, KEY_ID, "ignature=", "5167a7ure", "<", "?", "http"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
    let [first, ..] = errors;
    first.to_string()
}

#[tokio::test]
async fn a_small_blob_is_one_request_and_a_long_one_goes_in_even_parts_few_at_a_time() {
    let place = Place::s3().await;
    let server = place.server.as_ref().unwrap();
    let document = DocumentId::generate();
    let small = place.blobs.put(document, long(8), u64::MAX).await.unwrap();
    let [asked] = server.asked().try_into().unwrap();
    assert_eq!(
        (asked.what, asked.bytes),
        (format!("PUT /documents/lectern/blobs/documents/{}", small.key), 8 << 20)
    );

    place.blobs.put(document, long(60), u64::MAX).await.unwrap();
    let asked = server.asked();
    let mut sizes: Vec<_> =
        asked.iter().filter(|asked| asked.query.contains("partNumber")).map(|asked| asked.bytes).collect();
    sizes.sort_unstable();
    let part = upload::PART as u64;
    assert_eq!(sizes, [part / 2, part, part, part, part, part, part, part]);
    assert!(asked.iter().all(|asked| asked.together <= upload::IN_FLIGHT), "{asked:?}");
}

#[tokio::test]
async fn a_failing_store_in_the_middle_of_an_upload_fails_it_and_the_parts_are_given_up() {
    let place = Place::s3().await;
    let server = place.server.as_ref().unwrap();
    server.refuse(|request| {
        request.uri().query().is_some_and(|query| query.contains("partNumber=2")).then_some((400, "Odd"))
    });
    let error = place.blobs.put(DocumentId::generate(), long(30), u64::MAX).await.unwrap_err();
    assert!(
        error.to_string().ends_with("s3://documents/lectern/blobs: it refuses the request (400 Odd)"),
        "{error}"
    );
    // That happens in the background, since a store that is away would be waited for.
    place.is_cleared().await;
    let asked = server.asked();
    assert!(asked.iter().any(|asked| asked.what.starts_with("DELETE ") && asked.query.contains("uploadId")));
}

#[tokio::test]
async fn wrong_credentials_are_said_to_be_refused() {
    let place = Place::s3().await;
    let mut wrong = location(&place);
    wrong.secret_access_key = Some(SecretString::from("another secret"));
    let message = unavailable(&wrong, &patience()).await;
    assert!(message.contains("s3://documents/lectern/blobs: it refuses access (403 "), "{message}");
}

#[tokio::test]
async fn a_bucket_that_does_not_exist_is_no_empty_store() {
    let place = Place::s3().await;
    place.server.as_ref().unwrap().refuse(|_| Some((404, "NoSuchBucket")));
    let message = unavailable(&location(&place), &patience()).await;
    assert!(message.ends_with("there is no such bucket (404 NoSuchBucket)"), "{message}");
}

#[tokio::test]
async fn a_bucket_in_another_region_is_told_from_a_broken_one() {
    let place = Place::s3().await;
    place.server.as_ref().unwrap().refuse(|_| Some((301, "PermanentRedirect")));
    let message = unavailable(&location(&place), &patience()).await;
    assert!(message.contains("region"), "{message}");
}

#[tokio::test]
async fn an_overloaded_store_is_asked_again() {
    let place = Place::s3().await;
    let server = place.server.as_ref().unwrap();
    server.refuse(|_| Some((503, "SlowDown")));
    let message = unavailable(&location(&place), &patience()).await;
    assert!(message.ends_with("it failed (503 SlowDown)"), "{message}");
    assert!(server.asked().len() > 6, "each of the six requests was sent once");
}

#[tokio::test]
async fn a_store_that_is_away_is_given_up() {
    let place = Place::s3().await;
    let mut away = location(&place);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    away.endpoint = Some(Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap());
    // It takes connections and says nothing.
    let message = unavailable(&away, &patience()).await;
    assert!(message.ends_with("it does not answer in time"), "{message}");
    // What is small does not wait as long as what is large may take.
    let small =
        S3Timeouts { silence: Duration::from_hours(1), small: Duration::from_millis(200), ..patience() };
    let message = unavailable(&away, &small).await;
    assert!(message.ends_with("it does not answer in time"), "{message}");
    drop(listener);
    let message = unavailable(&away, &patience()).await;
    assert!(message.ends_with("it cannot be reached"), "{message}");
}

#[tokio::test]
async fn a_blob_that_breaks_off_does_not_look_whole() {
    let place = Place::s3().await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    // One answer, of which half comes, and then there is no store any more.
    let store = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        drop(listener);
        let mut request = vec![0; 1 << 16];
        assert_ne!(socket.read(&mut request).await.unwrap(), 0);
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nETag: \"x\"\r\nLast-Modified: Tue, 01 Jul 2025 10:00:00 GMT\r\n\r\n";
        socket.write_all(format!("{head}half").as_bytes()).await.unwrap();
    });
    let endpoint = Some(Url::parse(&format!("http://{address}")).unwrap());
    let bucket = S3Bucket::open(&S3Location { endpoint, ..location(&place) }, &patience()).unwrap();
    let blobs = BlobStore { store: BlobBackend::S3(Arc::new(bucket)) };
    let key = format!("{}/{}", DocumentId::generate(), "0".repeat(32));
    let mut reader = blobs.get(&key).await.unwrap();
    store.await.unwrap();
    let mut bytes = Vec::new();
    let error = reader.read_to_end(&mut bytes).await.unwrap_err();
    assert_eq!(bytes, b"half");
    let message = error.to_string();
    assert!(message.contains("s3://documents/lectern/blobs: ") && !message.contains("http"), "{message}");
}

#[tokio::test]
async fn a_store_without_conditional_writes_can_be_taken() {
    let place = Place::s3().await;
    place
        .server
        .as_ref()
        .unwrap()
        .refuse(|request| request.headers().contains_key("if-none-match").then_some((501, "NotImplemented")));
    place.blobs.claim("here").await.unwrap();
    assert_eq!(place.blobs.owner().await.unwrap().as_deref(), Some("here"));
    assert!(matches!(place.blobs.claim("there").await, Err(BlobError::Foreign(_))));
}

#[tokio::test]
async fn a_mark_that_came_in_between_is_not_written_over() {
    let place = Place::s3().await;
    place.blobs.claim("here").await.unwrap();
    let BlobBackend::S3(bucket) = &place.blobs.store else { unreachable!() };
    // As if there had been none a moment ago.
    bucket.mark("there").await.unwrap();
    assert_eq!(place.blobs.owner().await.unwrap().as_deref(), Some("here"));
}

#[tokio::test]
async fn two_prefixes_of_a_bucket_are_two_stores() {
    let place = Place::s3().await;
    place.blobs.claim("here").await.unwrap();
    for prefix in ["", "lectern", "lectern/blobs2"] {
        let other = S3Location { prefix: prefix.to_owned(), ..location(&place) };
        let other = BlobStore::open(&BlobLocation::S3(other)).await.unwrap();
        assert_eq!(other.owner().await.unwrap(), None, "{prefix}");
        other.claim(&format!("for {prefix:?}")).await.unwrap();
    }
    assert_eq!(place.blobs.owner().await.unwrap().as_deref(), Some("here"));
}

#[tokio::test]
async fn the_bucket_can_be_part_of_the_host_name_but_not_of_an_address() {
    let place = Place::s3().await;
    let s3 = S3Location { path_style: false, ..location(&place) };
    let error = BlobStore::open(&BlobLocation::S3(s3)).await.unwrap_err();
    assert!(error.to_string().contains("host name"), "{error}");
    let named = S3Location {
        path_style: false,
        endpoint: Some(Url::parse("http://localhost:1").unwrap()),
        ..location(&place)
    };
    BlobStore::open(&BlobLocation::S3(named)).await.unwrap();
}
