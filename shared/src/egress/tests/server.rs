//! A scripted HTTP server on loopback that can also misbehave: stall, trickle, never end.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What a test server answers before it closes the connection.
pub(super) enum Reply {
    /// These bytes.
    Whole(Vec<u8>),
    /// These bytes, then the others again and again.
    Endless(Vec<u8>, Vec<u8>),
    /// These bytes, then one byte each 20 ms.
    Trickle(Vec<u8>),
    /// These bytes, then nothing, with the connection open.
    Stall(Vec<u8>),
}

pub(super) fn ok(body: &str) -> Reply {
    Reply::Whole(
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
            .into(),
    )
}

pub(super) fn redirect(status: u16, location: &str) -> Reply {
    Reply::Whole(
        format!(
            "HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
        .into(),
    )
}

pub(super) fn head(headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\nconnection: close\r\n\r\n").into()
}

/// A server's socket before it has answers, so that servers can name each other.
pub(super) async fn bind(address: &str) -> (TcpListener, String) {
    let listener = TcpListener::bind((address, 0)).await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    (listener, base)
}

/// Answers by the request line (`GET /path HTTP/1.1`); returns what it was sent, whole.
pub(super) fn serve(
    listener: TcpListener,
    answer: impl Fn(&str) -> Reply + Send + Sync + 'static,
) -> Arc<Mutex<Vec<String>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requests = Arc::clone(&seen);
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (answer, requests) = (Arc::clone(&answer), Arc::clone(&requests));
            tokio::spawn(async move {
                // An error here is the client going away, which several tests are about.
                let _ = converse(stream, &requests, &*answer).await;
            });
        }
    });
    seen
}

async fn converse(
    mut stream: TcpStream,
    requests: &Mutex<Vec<String>>,
    answer: &(dyn Fn(&str) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !complete(&request) {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let line = request.lines().next().unwrap_or_default().to_owned();
    requests.lock().push(request.to_lowercase());
    match answer(&line) {
        Reply::Whole(bytes) => stream.write_all(&bytes).await?,
        Reply::Endless(head, again) => {
            stream.write_all(&head).await?;
            loop {
                stream.write_all(&again).await?;
            }
        }
        Reply::Trickle(head) => {
            stream.write_all(&head).await?;
            loop {
                stream.write_all(b"x").await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Reply::Stall(bytes) => {
            stream.write_all(&bytes).await?;
            std::future::pending::<()>().await;
        }
    }
    stream.shutdown().await
}

fn complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        // Not HTTP (a TLS handshake begins with 0x16): answer at once.
        return request.first() == Some(&0x16);
    };
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    body.len() >= length.unwrap_or(0)
}
