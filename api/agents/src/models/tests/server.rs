//! A server on this machine that answers byte by byte what it is told to.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) head: String,
    pub(super) body: Value,
}

impl Seen {
    /// The method, path and query.
    pub(super) fn target(&self) -> &str {
        self.head.lines().next().and_then(|line| line.strip_suffix(" HTTP/1.1")).unwrap()
    }

    /// The header of this name; it is written in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// What the server does with one connection.
pub(super) struct Reply {
    bytes: Vec<u8>,
    then: Then,
}

/// What follows the bytes.
enum Then {
    Close,
    /// Silence.
    Stall,
    /// These, again and again, for as long as they are taken.
    Repeat(Vec<u8>),
}

pub(super) struct Server {
    pub(super) base: Url,
    pub(super) seen: Arc<Mutex<Vec<Seen>>>,
    /// Bytes that were sent in all.
    pub(super) sent: Arc<AtomicUsize>,
}

impl Server {
    /// Answers one connection after another; later ones are closed at once.
    pub(super) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = Url::parse(&format!("http://{}/v1", listener.local_addr().unwrap())).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        tokio::spawn(async move {
            let mut held = Vec::new();
            for reply in replies {
                let (mut socket, _) = listener.accept().await.unwrap();
                let request = read_request(&mut socket).await;
                log.lock().push(request);
                let _ = socket.write_all(&reply.bytes).await;
                match reply.then {
                    Then::Close => {
                        let _ = socket.shutdown().await;
                    }
                    Then::Stall => held.push(socket),
                    Then::Repeat(bytes) => {
                        while socket.write_all(&bytes).await.is_ok() {
                            count.fetch_add(bytes.len(), Ordering::Relaxed);
                        }
                    }
                }
            }
            while let Ok((socket, _)) = listener.accept().await {
                drop(socket);
            }
        });
        Self { base, seen, sent }
    }

    pub(super) fn requests(&self) -> usize {
        self.seen.lock().len()
    }

    /// The request with this number, counted from nought.
    pub(super) fn request(&self, number: usize) -> Seen {
        self.seen.lock()[number].clone()
    }
}

async fn read_request(socket: &mut TcpStream) -> Seen {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = socket.read(&mut buffer).await.unwrap();
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_lowercase().strip_prefix("content-length:").map(|n| n.trim().to_owned())
                })
                .map_or(0, |n| n.parse::<usize>().unwrap());
            if body.len() >= length {
                return Seen {
                    head: head.to_owned(),
                    body: serde_json::from_str(body).unwrap_or(Value::Null),
                };
            }
        }
        assert!(count > 0, "the request broke off");
    }
}

pub(super) fn raw(status: &str, headers: &str, body: &str) -> Reply {
    let head =
        format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    Reply { bytes: (head + body).into_bytes(), then: Then::Close }
}

pub(super) fn sse(body: &str) -> Reply {
    raw("200 OK", "Content-Type: text/event-stream\r\n", body)
}

/// A stream that promises more than it sends.
pub(super) fn cut(body: &str, stall: bool) -> Reply {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000000\r\n\r\n";
    let then = if stall { Then::Stall } else { Then::Close };
    Reply { bytes: format!("{head}{body}").into_bytes(), then }
}

/// A body without end.
pub(super) fn endless(status: &str, beginning: &str, again: &str) -> Reply {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
    // Large pieces, so that a test is not spent in writing.
    let bytes = again.repeat((64 * 1024 / again.len()).max(1)).into_bytes();
    Reply { bytes: (head + beginning).into_bytes(), then: Then::Repeat(bytes) }
}

/// Bytes, and then silence.
pub(super) fn stalled(bytes: &str) -> Reply {
    Reply { bytes: bytes.as_bytes().to_vec(), then: Then::Stall }
}
