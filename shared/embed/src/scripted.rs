//! An HTTP server on loopback that answers as a test says, and can also misbehave.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use url::Url;

/// What a server was asked.
#[derive(Clone, Debug)]
pub(super) struct ScriptedRequest {
    /// With the query.
    pub(super) path: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl ScriptedRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScriptedEnding {
    /// Whole.
    Whole,
    /// The connection is closed after so many bytes of the body.
    Cut(usize),
    /// After so many bytes of the body nothing comes, until the client goes away.
    Stall(usize),
    /// The body again and again.
    Endless,
}

/// What a server answers.
#[derive(Clone, Debug)]
pub(super) struct ScriptedReply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    length: bool,
    end: ScriptedEnding,
}

impl ScriptedReply {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), length: true, end: ScriptedEnding::Whole }
    }

    pub(super) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, body)
    }

    pub(super) fn json(body: &serde_json::Value) -> Self {
        Self::ok(body.to_string()).with("content-type", "application/json")
    }

    pub(super) fn redirect(to: &str) -> Self {
        Self::new(302, "").with("location", to)
    }

    pub(super) fn with(mut self, header: &'static str, value: &str) -> Self {
        self.headers.push((header, value.to_owned()));
        self
    }

    pub(super) fn cut(mut self, after: usize) -> Self {
        self.end = ScriptedEnding::Cut(after);
        self
    }

    pub(super) fn stall(mut self, after: usize) -> Self {
        self.end = ScriptedEnding::Stall(after);
        self
    }

    pub(super) fn endless(mut self) -> Self {
        self.end = ScriptedEnding::Endless;
        self.without_length()
    }

    /// Ended by the end of the connection.
    pub(super) fn without_length(mut self) -> Self {
        self.length = false;
        self
    }
}

/// A server; it ends with the test.
pub(super) struct ScriptedServer {
    pub(super) url: Url,
    seen: Arc<Mutex<Vec<ScriptedRequest>>>,
    gone: watch::Receiver<usize>,
}

impl ScriptedServer {
    pub(super) async fn start(
        answer: impl Fn(&ScriptedRequest) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let (seen, (left, gone)) = (Arc::new(Mutex::new(Vec::new())), watch::channel(0));
        let (requests, answer) = (Arc::clone(&seen), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (requests, answer, left) = (Arc::clone(&requests), Arc::clone(&answer), left.clone());
                tokio::spawn(async move {
                    // An error is the client going away, which some tests are about.
                    if converse(stream, &requests, &*answer).await.is_err() {
                        left.send_modify(|left| *left += 1);
                    }
                });
            }
        });
        Self { url, seen, gone }
    }

    /// What it was asked so far.
    pub(super) fn requests(&self) -> Vec<ScriptedRequest> {
        self.seen.lock().clone()
    }

    /// The requests whose path begins so.
    pub(super) fn requests_for(&self, path: &str) -> Vec<ScriptedRequest> {
        self.requests().into_iter().filter(|request| request.path.starts_with(path)).collect()
    }

    /// Waits until so many clients have left before their answer was whole.
    pub(super) async fn left_by(&self, clients: usize) {
        let mut gone = self.gone.clone();
        let left = gone.wait_for(|gone| *gone >= clients);
        tokio::time::timeout(Duration::from_secs(30), left).await.unwrap().unwrap();
    }
}

async fn converse(
    mut stream: TcpStream,
    requests: &Mutex<Vec<ScriptedRequest>>,
    answer: &(dyn Fn(&ScriptedRequest) -> ScriptedReply + Send + Sync),
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let request = loop {
        if let Some(request) = parse(&bytes) {
            break request;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    };
    let reply = answer(&request);
    requests.lock().push(request);
    let mut head = format!("HTTP/1.1 {} Test\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    if reply.length {
        head.extend(["content-length: ", &reply.body.len().to_string(), "\r\n"]);
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await?;
    match reply.end {
        ScriptedEnding::Whole => stream.write_all(&reply.body).await?,
        ScriptedEnding::Cut(after) => stream.write_all(&reply.body[..after]).await?,
        ScriptedEnding::Stall(after) => {
            stream.write_all(&reply.body[..after]).await?;
            stream.flush().await?;
            while stream.read(&mut [0; 64]).await? > 0 {}
            return Err(std::io::ErrorKind::ConnectionReset.into());
        }
        ScriptedEnding::Endless => loop {
            stream.write_all(&reply.body).await?;
        },
    }
    stream.shutdown().await
}

/// A request that has come whole.
fn parse(bytes: &[u8]) -> Option<ScriptedRequest> {
    let end = bytes.windows(4).position(|part| part == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, n)| n.parse().unwrap());
    let body = bytes.get(end + 4..end + 4 + length)?.to_vec();
    Some(ScriptedRequest { path, headers, body })
}
