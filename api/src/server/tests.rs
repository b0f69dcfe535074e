//! The server by itself, with times that a test can wait for.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use axum::{body::Bytes, extract::Request, http::StatusCode, response::IntoResponse};
use futures::{FutureExt, stream};
use lectern_shared::config::rate::parse_rate;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
};

use super::*;

const SOON: Duration = Duration::from_millis(300);
const DEADLINE: Duration = Duration::from_secs(30);

fn terms() -> ServerOptions {
    ServerOptions {
        trusted: Arc::default(),
        of_one: 10,
        all: 100,
        idle: DEADLINE,
        headers_within: DEADLINE,
        read_within: DEADLINE,
        refusals: RefusalPacer::new(None, Clock::system()),
    }
}

/// Tells when it is dropped.
struct Told(Arc<Notify>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

struct Server {
    addr: SocketAddr,
    /// Told when an endless answer is given up.
    over: Arc<Notify>,
    shutdown: Shutdown,
}

impl Server {
    /// Answers `/endless` without an end, refuses `/wrong`, and answers everything else with `here`.
    fn start(terms: ServerOptions) -> Self {
        let (shutdown, over) = (Shutdown::new(), Arc::<Notify>::default());
        let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let addr = listener.local_addr().unwrap();
        let (stopping, told) = (shutdown.clone(), Arc::clone(&over));
        let app = Router::new().fallback(async move |request: Request| match request.uri().path() {
            "/endless" => {
                let body = stream::unfold(Told(told), async |told| {
                    Some((Ok::<_, io::Error>(Bytes::from_static(&[b'x'; 16 << 10])), told))
                });
                Body::from_stream(body).into_response()
            }
            "/wrong" => (StatusCode::BAD_REQUEST, "wrong").into_response(),
            _ => "here".into_response(),
        });
        tokio::spawn(async move { serve(app, listener, terms, &stopping).await });
        Self { addr, over, shutdown }
    }

    async fn sent(&self, request: &str) -> TcpStream {
        self.sent_from(1, request).await
    }

    /// What is sent from an address whose last number is this.
    async fn sent_from(&self, address: u8, request: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::new(127, 0, 0, address), 0).into()).unwrap();
        let mut client = socket.connect(self.addr).await.unwrap();
        // A connection that is not wanted may be closed before.
        let _ = client.write_all(request.as_bytes()).await;
        client
    }

    /// Whether a request of an ordinary client is answered.
    async fn answers(&self) -> bool {
        self.answers_to(1).await
    }

    async fn answers_to(&self, address: u8) -> bool {
        let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let mut client = self.sent_from(address, request).await;
        let mut answer = String::new();
        let read = tokio::time::timeout(DEADLINE, client.read_to_string(&mut answer)).await.unwrap();
        read.is_ok() && answer.ends_with("here")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.begin();
    }
}

/// Everything up to the end of the connection, which has to come.
async fn to_the_end(client: &mut TcpStream) -> Vec<u8> {
    let mut read = Vec::new();
    // A reset is an end too.
    let _ = tokio::time::timeout(DEADLINE, client.read_to_end(&mut read)).await.expect("the connection ends");
    read
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_connection() {
    let server = Server::start(ServerOptions { read_within: SOON, ..terms() });
    let client = server.sent("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
    tokio::time::timeout(DEADLINE, server.over.notified()).await.expect("the answer is given up");
    assert!(server.answers().await);
    drop(client);
}

#[tokio::test]
async fn a_connection_without_a_whole_request_ends_before_the_first_and_after_it() {
    let server = Server::start(ServerOptions { headers_within: SOON, ..terms() });
    assert_eq!(to_the_end(&mut server.sent("").await).await, b"");
    assert_eq!(to_the_end(&mut server.sent("GET / HTTP/1.1\r\nHost").await).await, b"");
    let answer = to_the_end(&mut server.sent("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await).await;
    assert!(answer.ends_with(b"here"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let server = Server::start(terms());
    let request =
        format!("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Large: {}\r\n\r\n", "x".repeat(INPUT));
    let answer = to_the_end(&mut server.sent(&request).await).await;
    assert!(answer.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn one_address_has_only_so_many_connections() {
    let server = Server::start(ServerOptions { of_one: 3, ..terms() });
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(server.sent("").await);
    }
    assert!(!server.answers().await, "a fourth one");
    drop(held);
    while !server.answers().await {}
}

#[tokio::test]
async fn a_trusted_proxy_has_any_number_of_connections() {
    let trusted = Arc::new(["127.0.0.0/8".parse().unwrap()]);
    let server = Server::start(ServerOptions { of_one: 3, trusted, ..terms() });
    let mut held = Vec::new();
    for _ in 0..20 {
        held.push(server.sent("").await);
    }
    assert!(server.answers().await);
}

#[tokio::test]
async fn when_there_are_as_many_connections_as_there_may_be_those_of_whoever_has_most_give_way() {
    let server = Server::start(ServerOptions { all: 5, ..terms() });
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(server.sent("").await);
    }
    assert!(!server.answers().await, "one more of the same client");

    assert!(server.answers_to(2).await);
    assert_eq!(to_the_end(&mut held[0]).await, b"", "the oldest one had to go");
}

/// Reads until this has come.
async fn read_until(client: &mut TcpStream, what: &[u8]) {
    let mut read = Vec::new();
    let reading = async {
        while !read.windows(what.len()).any(|part| part == what) {
            assert!(client.read_buf(&mut read).await.unwrap() > 0, "it ended before");
        }
    };
    tokio::time::timeout(DEADLINE, reading).await.expect("the rest of an answer");
}

/// Reads more than the system would still have of a connection that has ended.
async fn read_on(client: &mut TcpStream) {
    let mut piece = vec![0; 64 << 10];
    let reading = async {
        let mut read = 0;
        while read < 16 << 20 {
            let bytes = client.read(&mut piece).await.unwrap();
            assert!(bytes > 0, "it has ended");
            read += bytes;
        }
    };
    tokio::time::timeout(DEADLINE, reading).await.expect("more of an answer");
}

#[tokio::test]
async fn when_everybody_has_one_connection_those_without_a_request_give_way_and_no_other() {
    let server = Server::start(ServerOptions { all: 3, idle: Duration::ZERO, ..terms() });
    let mut reading = server.sent_from(2, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
    read_until(&mut reading, b"xxx").await;
    let mut silent = server.sent_from(3, "GET / HTTP/1.1\r\nHost").await;
    let mut answered = server.sent_from(4, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    read_until(&mut answered, b"here").await;

    let mut next = server.sent_from(5, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
    read_until(&mut next, b"xxx").await;
    assert_eq!(to_the_end(&mut silent).await, b"", "the one that was idle for longest");
    let mut last = server.sent_from(6, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
    read_until(&mut last, b"xxx").await;
    assert_eq!(to_the_end(&mut answered).await, b"", "one between two requests");

    assert!(!server.answers_to(7).await, "all of them are answered something");
    for streaming in [&mut reading, &mut next, &mut last] {
        read_on(streaming).await;
    }
}

#[tokio::test]
async fn a_connection_that_was_idle_for_a_moment_does_not_give_way() {
    let server = Server::start(ServerOptions { all: 1, ..terms() });
    let mut held = server.sent_from(2, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    read_until(&mut held, b"here").await;
    assert!(!server.answers_to(3).await);
    held.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    read_until(&mut held, b"here").await;
}

const WRONG: &str = "GET /wrong HTTP/1.1\r\nHost: x\r\n\r\n";

#[tokio::test]
async fn whoever_is_refused_too_often_waits_for_it_and_for_nothing_else_and_nobody_else_does() {
    let refusals =
        RefusalPacer::holding_for(DEADLINE * 10, parse_rate("1/h burst 1").unwrap(), Clock::system());
    let server = Server::start(ServerOptions { refusals, ..terms() });
    read_until(&mut server.sent(WRONG).await, b"wrong").await;
    let mut held = server.sent(WRONG).await;
    assert!(server.answers().await, "what is right is answered at once");
    read_until(&mut server.sent_from(2, WRONG).await, b"wrong").await;
    assert!(held.read_u8().now_or_never().is_none(), "it was to be held back");

    server.shutdown.begin();
    assert!(
        to_the_end(&mut held).await.ends_with(b"wrong"),
        "a shutdown waits for nothing that could be sent"
    );
}
