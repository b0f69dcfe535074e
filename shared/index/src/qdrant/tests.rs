//! Qdrant's own: servers that are away or odd, and, when there is a real one, its collections. What every index must do is
//! in `contract_tests`.

mod graph;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lectern_shared::{
    clock::Timestamp,
    ids::{ClaimId, DocumentId, JobId},
    model::job::{JobClaim, JobKind},
};
use qdrant_client::qdrant::{CreateCollectionBuilder, Distance, VectorParamsBuilder};
use secrecy::SecretString;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use uuid::Uuid;

use super::{
    super::{IndexEntry, SpaceVector},
    client::{CallError, QdrantErrorKind},
    testing::{self, TestQdrant},
    *,
};

const KEY: &str = "a-very-secret-key";
const SPACE: Uuid = Uuid::from_u128(1);

fn config(port: u16) -> QdrantConfig {
    QdrantConfig {
        url: format!("http://127.0.0.1:{port}").parse().unwrap(),
        api_key: Some(SecretString::from(KEY)),
        timeout: Duration::from_secs(30),
    }
}

/// What the operator is told when the index cannot be opened.
async fn refusal(config: &QdrantConfig) -> String {
    let error = QdrantIndex::open(config, "instance", false).await.unwrap_err();
    assert!(matches!(error, IndexError::Engine(_) | IndexError::Refused(_)), "{error:?}");
    let text = error.to_string();
    assert!(!format!("{error:?} {text}").contains(KEY), "{error:?}");
    text
}

/// What a server does with a call.
#[derive(Clone, Copy)]
enum Answer {
    /// A gRPC status, with metadata.
    Status(u8, &'static str),
    /// The health check's answer.
    Version(&'static str),
}

/// A server that speaks as much HTTP/2 as it takes to answer gRPC calls: one after the other as they come, and the last
/// answer for good.
struct Scripted {
    port: u16,
    calls: Arc<AtomicUsize>,
}

impl Scripted {
    async fn start(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let calls = Arc::new(AtomicUsize::new(0));
        let (counter, answers) = (Arc::clone(&calls), Arc::<[Answer]>::from(answers));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Self::serve(stream, Arc::clone(&counter), Arc::clone(&answers)));
            }
        });
        Self { port, calls }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    async fn serve(mut stream: TcpStream, calls: Arc<AtomicUsize>, answers: Arc<[Answer]>) -> Option<()> {
        const SETTINGS: u8 = 4;
        const PING: u8 = 6;
        const END_STREAM: u8 = 1;
        stream.read_exact(&mut [0; 24]).await.ok()?;
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.ok()?;
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.ok()?;
            let number = |bytes: &[u8]| bytes.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
            let (kind, flags, id) = (head[3], head[4], number(&head[5..]));
            let mut payload = vec![0; usize::try_from(number(&head[..3])).unwrap()];
            stream.read_exact(&mut payload).await.ok()?;
            let reply = match kind {
                SETTINGS | PING if flags & 1 == 0 => {
                    frame(kind, 1, 0, if kind == PING { &payload } else { &[] })
                }
                // HEADERS and DATA that end a request.
                0 | 1 if flags & END_STREAM != 0 => {
                    let number = calls.fetch_add(1, Ordering::Relaxed);
                    answers[number.min(answers.len() - 1)].frames(id)
                }
                _ => continue,
            };
            stream.write_all(&reply).await.ok()?;
        }
    }
}

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[a, b, c, kind, flags], id.to_be_bytes().as_slice(), payload].concat()
}

/// A header field, written out.
fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

impl Answer {
    fn frames(self, id: u32) -> Vec<u8> {
        const HEADERS: u8 = 1;
        const STATUS_200: u8 = 0x88;
        let begin = [vec![STATUS_200], field("content-type", "application/grpc")].concat();
        match self {
            Self::Status(code, message) => {
                let status =
                    [field("grpc-status", &code.to_string()), field("grpc-message", message)].concat();
                frame(
                    HEADERS,
                    5,
                    id,
                    &[begin, status, field("x-internal", "metadata-of-the-server")].concat(),
                )
            }
            Self::Version(version) => {
                let message = [&[0x12, u8::try_from(version.len()).unwrap()], version.as_bytes()].concat();
                let length = u32::try_from(message.len()).unwrap().to_be_bytes();
                let body = [[0].as_slice(), &length, &message].concat();
                let end = frame(HEADERS, 5, id, &field("grpc-status", "0"));
                [frame(HEADERS, 4, id, &begin), frame(0, 0, id, &body), end].concat()
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_what_is_wrong() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let text = refusal(&config(port)).await;
    assert!(text.contains(&format!("http://127.0.0.1:{port} cannot be reached")), "{text}");
    assert!(text.contains("the connection was refused"), "{text}");
    let unknown = QdrantConfig { url: "http://qdrant.invalid:6334".parse().unwrap(), ..config(port) };
    let text = refusal(&unknown).await;
    assert!(text.contains("its name cannot be resolved"), "{text}");
}

#[tokio::test]
async fn a_server_that_speaks_something_else_is_told_apart() {
    // One that closes the connection, and one that waits for more.
    for patient in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
                open.extend(patient.then_some(stream));
            }
        });
        let text = refusal(&config(port)).await;
        assert!(text.contains("is this the gRPC port"), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let silent = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok(connection) = listener.accept().await {
            open.push(connection);
        }
    });
    let text = refusal(&QdrantConfig { timeout: Duration::from_millis(200), ..config(port) }).await;
    assert!(text.contains("did not answer within 200ms"), "{text}");
    silent.abort();
}

#[tokio::test]
async fn nothing_secret_is_repeated_to_the_operator() {
    let key = QdrantConfig { api_key: Some(SecretString::from(format!("{KEY}\n"))), ..config(1) };
    let text = refusal(&key).await;
    assert!(text.contains("QDRANT_API_KEY contains"), "{text}");
    let url = QdrantConfig { url: format!("http://me:{KEY}@127.0.0.1:1").parse().unwrap(), ..config(1) };
    let text = refusal(&url).await;
    assert!(text.contains("must not contain a name or a password"), "{text}");
    assert!(!format!("{:?}", config(1)).contains(KEY));

    let version = Answer::Version("1.18.3");
    for (code, message, said) in [
        (16, "the key a-very-secret-key is wrong", "refuses the key"),
        (7, "no access with a-very-secret-key", "refuses the key"),
        (3, "a-very-secret-key is no key", "[key] is no key"),
        (13, "it broke", "failed at a collection: it broke"),
        (14, "it is starting", "failed at a collection: it is starting"),
    ] {
        let server = Scripted::start(&[version, Answer::Status(code, message)]).await;
        let text = refusal(&QdrantConfig { timeout: Duration::from_secs(3), ..config(server.port) }).await;
        assert!(text.contains(said), "{text}");
        assert!(!text.contains("metadata-of-the-server"), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_is_too_old_is_refused() {
    let server = Scripted::start(&[Answer::Version("1.17.1")]).await;
    let text = refusal(&config(server.port)).await;
    assert!(text.contains("\"1.17.1\" cannot be used: install version 1.18.1"), "{text}");
}

/// Asks a scripted server something as if it were a write.
async fn write(server: &Scripted, longest: Duration) -> Result<(), QdrantFailure> {
    let mut client = QdrantClient::new(&config(server.port)).unwrap();
    client.longest_write = longest;
    let request = || async { Ok::<_, CallError>(client.qdrant().health_check().await?) };
    client.call("a write", QdrantRetryPolicy::Write, request).await.map(|_| ())
}

#[tokio::test]
async fn a_write_is_tried_again_until_the_server_can_take_it() {
    let (away, busy) = (Answer::Status(14, "starting"), Answer::Status(8, "too many"));
    let server = Scripted::start(&[away, away, away, busy, busy, Answer::Version("1")]).await;
    write(&server, Duration::from_mins(1)).await.unwrap();
    assert_eq!(server.calls(), 6);
}

#[tokio::test]
async fn a_write_that_was_refused_is_not_tried_again() {
    for code in [3, 5, 6, 7, 9, 16] {
        let server = Scripted::start(&[Answer::Status(code, "no")]).await;
        let failure = write(&server, Duration::from_mins(1)).await.unwrap_err();
        assert_eq!(failure.kind, if code == 5 { QdrantErrorKind::Missing } else { QdrantErrorKind::Refused });
        assert_eq!(server.calls(), 1, "{code}");
    }
}

#[tokio::test]
async fn a_write_is_given_up_in_the_end() {
    let server = Scripted::start(&[Answer::Status(14, "starting")]).await;
    let failure = write(&server, Duration::from_millis(300)).await.unwrap_err();
    assert_eq!(failure.kind, QdrantErrorKind::Busy(None), "also when the last try is cut short");
    assert!(server.calls() > 2);
}

// From here on with a real server, if there is one.

fn claim() -> JobClaim {
    JobClaim {
        id: JobId::generate(),
        kind: JobKind::Ingest,
        workspace_id: WorkspaceId::generate(),
        document_id: DocumentId::generate(),
        claim_id: ClaimId::generate(),
        claimed_revision: 1,
        attempts: 1,
        max_attempts: 5,
        queued_at: Timestamp::from_micros(0),
        outage_at: None,
        from_stored: false,
        trace_parent: None,
    }
}

fn entries(count: usize) -> Vec<IndexEntry> {
    vec![IndexEntry { text: "an apple".to_owned(), vector: Some(vec![0.6, 0.8]) }; count]
}

async fn add(index: &QdrantIndex, claim: &JobClaim, generation: GenerationId, count: usize) -> u64 {
    let target = IndexTarget { claim, generation, space: Some((SPACE, 2)) };
    let mut writer = index.writer(target).unwrap();
    writer.add(entries(count)).await.unwrap();
    writer.finish().await.unwrap().entries
}

fn query(workspace: WorkspaceId, generation: GenerationId) -> IndexQuery {
    IndexQuery {
        workspace,
        generations: vec![generation],
        others: Vec::new(),
        languages: Vec::new(),
        text: "apple".to_owned(),
        vectors: vec![SpaceVector { space: SPACE, vector: vec![0.6, 0.8] }],
        depth: 1_000,
    }
}

/// What another installation is told.
async fn refusal_of(t: &TestQdrant, instance: &str) -> String {
    QdrantIndex::open_as(&t.config, instance, &t.prefix, false).await.unwrap_err().to_string()
}

#[tokio::test]
async fn what_is_written_twice_is_there_once() {
    let Some(t) = testing::index().await else { return };
    let (claim, generation) = (claim(), GenerationId::generate());
    for _ in 0..2 {
        assert_eq!(add(&t.index, &claim, generation, 300).await, 300);
        // In both collections.
        assert_eq!(t.index.count(claim.workspace_id, generation).await.unwrap(), 600);
        let found = t.reopen().await.search(query(claim.workspace_id, generation)).await.unwrap();
        assert_eq!((found.lexical.len(), found.dense[0].len()), (300, 300));
    }
}

#[tokio::test]
async fn a_generation_counts_the_entries_that_are_in_both_collections() {
    let Some(t) = testing::index().await else { return };
    let (claim, generation) = (claim(), GenerationId::generate());
    add(&t.index, &claim, generation, 5).await;
    let dense = t.index.inner.names.dense(SPACE);
    t.index.inner.remove(&dense, points::of_generation(claim.workspace_id, generation)).await.unwrap();
    let writer = t.index.writer(IndexTarget { claim: &claim, generation, space: Some((SPACE, 2)) }).unwrap();
    assert_eq!(writer.finish().await.unwrap().entries, 0);
    assert_eq!(t.index.count(claim.workspace_id, generation).await.unwrap(), 5);
}

#[tokio::test]
async fn documents_that_are_written_at_the_same_time_have_their_own_counts() {
    let Some(t) = testing::index().await else { return };
    let claim = claim();
    let one = async |count: usize| {
        let generation = GenerationId::generate();
        (add(&t.index, &claim, generation, count).await, generation)
    };
    let written = futures::future::join_all((1..20).map(one)).await;
    for (count, (added, generation)) in (1..20).zip(written) {
        assert_eq!(added, count);
        assert_eq!(t.index.count(claim.workspace_id, generation).await.unwrap(), 2 * count);
    }
}

#[tokio::test]
async fn every_generation_that_has_entries_is_told_whichever_collection_they_are_in() {
    let Some(t) = testing::index().await else { return };
    let claim = claim();
    let mut expected = std::collections::BTreeSet::new();
    for count in [1_100, 1, 3] {
        let generation = GenerationId::generate();
        add(&t.index, &claim, generation, count).await;
        expected.insert((claim.workspace_id, generation));
    }
    // A crash may leave vectors without their words.
    let (_, half) = *expected.last().unwrap();
    let words = &t.index.inner.names.lexical;
    t.index.inner.remove(words, points::of_generation(claim.workspace_id, half)).await.unwrap();
    let (mut held, mut cursor, mut pages) = (std::collections::BTreeSet::new(), None, 0);
    loop {
        let page = t.index.held(cursor).await.unwrap();
        held.extend(page.generations);
        pages += 1;
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(held, expected);
    assert!(pages >= 4, "{pages}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_start_at_the_same_time_share_the_collections() {
    let Some(t) = testing::index().await else { return };
    // None of these exists yet.
    let prefix = format!("{}_together", t.prefix);
    let (claim, prefix) = (claim(), prefix.as_str());
    let one = async |_| {
        let index = QdrantIndex::open_as(&t.config, &t.instance, prefix, false).await.unwrap();
        let generation = GenerationId::generate();
        assert_eq!(add(&index, &claim, generation, 3).await, 3);
        let found = index.search(query(claim.workspace_id, generation)).await.unwrap();
        assert_eq!((found.lexical.len(), found.dense[0].len()), (3, 3));
        index
    };
    let indexes = futures::future::join_all((0..16).map(one)).await;
    for name in collections::list(&indexes[0].inner.client, &indexes[0].inner.names).await.unwrap() {
        let info = t.qdrant().collection_info(name).await.unwrap().result.unwrap();
        assert_eq!(info.payload_schema.len(), 3, "{info:?}");
        assert_eq!(info.points_count, Some(48));
    }
}

#[tokio::test]
async fn the_collections_of_another_installation_are_refused() {
    let Some(t) = testing::index().await else { return };
    let text = refusal_of(&t, "another").await;
    assert!(text.contains("belongs to another installation"), "{text}");
    // Those of embedding spaces, too.
    add(&t.index, &claim(), GenerationId::generate(), 1).await;
    t.qdrant().delete_collection(t.index.inner.names.lexical.as_str()).await.unwrap();
    let other = QdrantIndex::open_as(&t.config, "another", &t.prefix, false).await.unwrap();
    let claim = claim();
    let target = IndexTarget { claim: &claim, generation: GenerationId::generate(), space: Some((SPACE, 2)) };
    let written = other.writer(target).unwrap().add(entries(1)).await.unwrap_err().to_string();
    assert!(written.contains("belongs to another installation"), "{written}");
    let found = other.search(query(claim.workspace_id, target.generation)).await.unwrap_err().to_string();
    assert!(found.contains("belongs to another installation"), "{found}");
}

#[tokio::test]
async fn a_collection_that_somebody_else_made_is_refused() {
    let Some(t) = testing::index().await else { return };
    let name = t.index.inner.names.lexical.as_str();
    t.qdrant().delete_collection(name).await.unwrap();
    let theirs =
        CreateCollectionBuilder::new(name).vectors_config(VectorParamsBuilder::new(3, Distance::Cosine));
    t.qdrant().create_collection(theirs).await.unwrap();
    let text = refusal_of(&t, &t.instance).await;
    assert!(text.contains("is not one that this service made"), "{text}");
}

#[tokio::test]
async fn vectors_of_another_dimension_than_their_space_are_refused() {
    let Some(t) = testing::index().await else { return };
    let claim = claim();
    add(&t.index, &claim, GenerationId::generate(), 1).await;
    let target = IndexTarget { claim: &claim, generation: GenerationId::generate(), space: Some((SPACE, 3)) };
    let entry = IndexEntry { text: "text".to_owned(), vector: Some(vec![0.0, 0.0, 1.0]) };
    let text = t.index.writer(target).unwrap().add(vec![entry]).await.unwrap_err().to_string();
    assert!(text.contains("is for vectors of 2 numbers, and these have 3"), "{text}");
}

#[tokio::test]
async fn collections_that_somebody_deleted_are_missed() {
    let Some(t) = testing::index().await else { return };
    let (claim, generation) = (claim(), GenerationId::generate());
    add(&t.index, &claim, generation, 2).await;
    let names = &t.index.inner.names;
    t.qdrant().delete_collection(names.dense(SPACE)).await.unwrap();
    // Words are still found, and the next attempt to write makes the collection again.
    for _ in 0..2 {
        let found = t.index.search(query(claim.workspace_id, generation)).await.unwrap();
        assert_eq!((found.lexical.len(), found.dense[0].len()), (2, 0));
    }
    assert_eq!(add(&t.index, &claim, generation, 2).await, 2);
    t.qdrant().delete_collection(names.dense(SPACE)).await.unwrap();
    let target = IndexTarget { claim: &claim, generation, space: Some((SPACE, 2)) };
    t.index.writer(target).unwrap().add(entries(2)).await.unwrap_err();
    assert_eq!(add(&t.index, &claim, generation, 2).await, 2);

    t.qdrant().delete_collection(names.lexical.as_str()).await.unwrap();
    let search = t.index.search(query(claim.workspace_id, generation)).await.unwrap_err();
    let ping = t.index.ping().await.unwrap_err();
    let written = t.index.writer(target).unwrap().add(entries(1)).await.unwrap_err();
    for error in [search, ping, written] {
        assert!(error.to_string().contains("is gone"), "{error}");
    }
    t.index.remove(RetiredGeneration::assumed(claim.workspace_id, generation)).await.unwrap();
    assert_eq!(t.index.count(claim.workspace_id, generation).await.unwrap(), 0);
    // No start makes an empty one in place of what was searched, unless it is told to.
    let start = QdrantIndex::open_as(&t.config, &t.instance, &t.prefix, true).await.unwrap_err();
    assert!(start.to_string().contains("lectern reindex"), "{start}");
    t.reopen().await.ping().await.unwrap();
}

#[tokio::test]
async fn a_key_that_the_server_does_not_know_is_refused() {
    // A server without a key takes any.
    let Some(t) = testing::index().await.filter(|t| t.config.api_key.is_some()) else { return };
    for wrong in [Some(SecretString::from(KEY)), None] {
        let config = QdrantConfig { api_key: wrong, ..t.config.clone() };
        let text =
            QdrantIndex::open_as(&config, &t.instance, &t.prefix, false).await.unwrap_err().to_string();
        assert!(text.contains("set QDRANT_API_KEY") && !text.contains(KEY), "{text}");
    }
}
