//! A web server on loopback that answers whole requests by a closure.

use std::{fmt, io, sync::Arc};

use lectern_shared::config::VideoSettings;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// One answer.
#[derive(Clone)]
pub(super) struct SiteReply {
    status: u16,
    headers: Vec<String>,
    body: String,
}

impl fmt::Debug for SiteReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.body)
    }
}

impl SiteReply {
    pub(super) fn text(body: &str) -> Self {
        Self { status: 200, headers: Vec::new(), body: body.to_owned() }
    }

    pub(super) fn html(body: &str) -> Self {
        Self::text(body).header("content-type: text/html; charset=utf-8")
    }

    pub(super) fn json(body: &Value) -> Self {
        Self::text(&body.to_string()).header("content-type: application/json")
    }

    pub(super) fn status(status: u16) -> Self {
        Self { status, ..Self::text("") }
    }

    pub(super) fn redirect(to: &str) -> Self {
        Self::status(302).header(&format!("location: {to}"))
    }

    pub(super) fn header(mut self, line: &str) -> Self {
        self.headers.push(line.to_owned());
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut headers = self.headers.join("\r\n");
        if !headers.is_empty() {
            headers.push_str("\r\n");
        }
        let length = self.body.len();
        let Self { status, body, .. } = self;
        format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
            .into()
    }
}

/// The server. It stops when it is dropped.
pub(super) struct FakeSite {
    base: String,
    requests: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
}

impl FakeSite {
    /// Answers with what `answer` makes of the request: its head and body as they came.
    pub(super) async fn start(answer: impl Fn(&str) -> SiteReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                tokio::spawn(async move {
                    // An error here is the client going away.
                    let _ = converse(stream, &seen, &*answer).await;
                });
            }
        });
        Self { base, requests, server }
    }

    /// `http://127.0.0.1:PORT`.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Settings that name this server as the site.
    pub(super) fn settings(&self) -> VideoSettings {
        VideoSettings { site: self.base.parse().unwrap(), client: None, proxy: None }
    }

    /// Every request so far.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

impl Drop for FakeSite {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn converse(
    mut stream: TcpStream,
    seen: &Mutex<Vec<String>>,
    answer: &(dyn Fn(&str) -> SiteReply + Send + Sync),
) -> io::Result<()> {
    let mut bytes = Vec::new();
    let request = loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                break text.into_owned();
            }
        }
    };
    seen.lock().push(request.clone());
    stream.write_all(&answer(&request).bytes()).await?;
    stream.shutdown().await
}
