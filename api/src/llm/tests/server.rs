//! A server on this machine that answers byte by byte what it is told to.

use std::sync::Arc;

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

/// What the server does with one connection: bytes to send, and whether it then stays silent instead of closing.
pub(super) struct Reply {
    pub(super) bytes: Vec<u8>,
    pub(super) stall: bool,
}

pub(super) struct Server {
    pub(super) base: Url,
    pub(super) seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Answers one connection after another; later ones are closed at once.
    pub(super) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = Url::parse(&format!("http://{}/v1", listener.local_addr().unwrap())).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        tokio::spawn(async move {
            let mut held = Vec::new();
            for reply in replies {
                let (mut socket, _) = listener.accept().await.unwrap();
                let request = read_request(&mut socket).await;
                log.lock().push(request);
                let _ = socket.write_all(&reply.bytes).await;
                if reply.stall {
                    held.push(socket);
                } else {
                    let _ = socket.shutdown().await;
                }
            }
            while let Ok((socket, _)) = listener.accept().await {
                drop(socket);
            }
        });
        Self { base, seen }
    }

    pub(super) fn requests(&self) -> usize {
        self.seen.lock().len()
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
    Reply { bytes: (head + body).into_bytes(), stall: false }
}

pub(super) fn sse(body: &str) -> Reply {
    raw("200 OK", "Content-Type: text/event-stream\r\n", body)
}

/// A stream that promises more than it sends.
pub(super) fn cut(body: &str, stall: bool) -> Reply {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000000\r\n\r\n";
    Reply { bytes: format!("{head}{body}").into_bytes(), stall }
}
