//! A scripted HTTP server on loopback, and tools that know it.

use std::{sync::Arc, time::Duration};

use lectern_shared::{
    clock::Timestamp,
    compute::ComputePool,
    config::McpProgram,
    egress::{Egress, EgressPolicy, parse_allow_list},
    ids::{ToolId, UserId, WorkspaceId},
    model::{
        Json,
        tool::{Tool as Stored, ToolType},
        workspace::RowOwner,
    },
    secrets::Keyring,
};
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::{Map, Value};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, watch},
    time::{Instant, timeout},
};

use super::super::{OpenedTool, ToolError, ToolFunction, Toolbox, secrets};

/// A secret that must never be seen anywhere but where it belongs.
pub(super) const KEY: &str = "key-0123456789abcdef";

/// A request as a server saw it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// `GET /path?query`.
    pub(super) line: String,
    /// The rest of the head, as it was sent.
    pub(super) head: String,
    pub(super) body: String,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// What a server answers.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// A status, a media type and a body.
    Body(u16, &'static str, Vec<u8>),
    /// The same with status 200 and one more line of the head.
    Headed(&'static str, &'static str, Vec<u8>),
    /// A redirect.
    To(u16, String),
    /// These bytes, and the end.
    Raw(&'static str),
    /// Nothing, with the connection open.
    Stall,
    /// Another one, when this is told.
    When(Arc<Notify>, Box<Reply>),
}

pub(super) fn json(value: &Value) -> Reply {
    Reply::Body(200, "application/json", value.to_string().into())
}

pub(super) fn text(status: u16, body: &str) -> Reply {
    Reply::Body(status, "text/plain; charset=utf-8", body.into())
}

pub(super) struct Site {
    pub(super) base: String,
    seen: watch::Receiver<Vec<Seen>>,
}

impl Site {
    pub(super) async fn new(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1", answer).await
    }

    /// Listens on this address and answers each request on a connection of its own.
    pub(super) async fn at(address: &str, answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (log, seen) = watch::channel(Vec::new());
        let (log, answer) = (Arc::new(log), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                tokio::spawn(async move {
                    // An error is the client going away, which some tests are about.
                    let _ = converse(stream, &log, &*answer).await;
                });
            }
        });
        Self { base, seen }
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }

    /// Waits for a request.
    pub(super) async fn wait(&self, wanted: impl Fn(&Seen) -> bool) -> Seen {
        let mut seen = self.seen.clone();
        let all = timeout(Duration::from_secs(30), seen.wait_for(|seen| seen.iter().any(&wanted))).await;
        let all = all.unwrap_or_else(|_| panic!("it never came; {:?} did", self.lines())).unwrap();
        all.iter().find(|seen| wanted(seen)).unwrap().clone()
    }
}

async fn converse(
    mut stream: TcpStream,
    log: &watch::Sender<Vec<Seen>>,
    answer: &(dyn Fn(&Seen) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let seen = loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
        if let Some(seen) = read(&bytes) {
            break seen;
        }
    };
    log.send_modify(|log| log.push(seen.clone()));
    let mut reply = answer(&seen);
    while let Reply::When(told, later) = reply {
        told.notified().await;
        reply = *later;
    }
    match reply {
        Reply::When(..) => {}
        Reply::Body(status, kind, body) => {
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await?;
            if !seen.line.starts_with("HEAD ") {
                stream.write_all(&body).await?;
            }
        }
        Reply::Headed(line, kind, body) => {
            let head = format!(
                "HTTP/1.1 200 X\r\n{line}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&body).await?;
        }
        Reply::To(status, location) => {
            let head = format!(
                "HTTP/1.1 {status} X\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await?;
        }
        Reply::Raw(bytes) => stream.write_all(bytes.as_bytes()).await?,
        Reply::Stall => {
            // Until the client goes away.
            while stream.read(&mut [0; 64]).await? > 0 {}
        }
    }
    stream.shutdown().await
}

fn read(bytes: &[u8]) -> Option<Seen> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let (line, head) = head.split_once("\r\n").unwrap_or((head, ""));
    let line = line.trim_end_matches(" HTTP/1.1").to_owned();
    let seen = Seen { line, head: head.to_owned(), body: body.to_owned() };
    let length = seen.header("content-length").map_or(0, |length| length.parse().unwrap());
    (body.len() >= length).then_some(seen)
}

fn keyring() -> Arc<Keyring> {
    Arc::new(Keyring::new(&SecretString::from("k".repeat(32)), None).unwrap())
}

/// A toolbox that may reach these networks besides the public internet.
pub(super) fn toolbox(allow: &str) -> Toolbox {
    toolbox_with(allow, Vec::new())
}

/// The same with programs of the operator's.
pub(super) fn toolbox_with(allow: &str, programs: Vec<McpProgram>) -> Toolbox {
    let policy = EgressPolicy { allow: parse_allow_list(allow).unwrap(), ..EgressPolicy::default() };
    Toolbox::with(keyring(), Egress::new(policy).unwrap(), ComputePool::new(2), programs)
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => panic!("{value} is no object"),
    }
}

/// A tool as it is stored.
pub(in super::super) fn stored(r#type: ToolType, name: &str, metadata: Value) -> Stored {
    let id = ToolId::generate();
    let (open, sealed) = secrets::seal(&keyring(), &id, object(metadata)).unwrap();
    Stored {
        id,
        owner: RowOwner::new(WorkspaceId::generate(), UserId::generate()),
        r#type,
        name: name.to_owned(),
        description: String::new(),
        metadata: Json(open),
        metadata_sealed: sealed,
        calls_agent: None,
        return_direct: false,
        created_at: Timestamp::from_micros(0),
        updated_at: Timestamp::from_micros(0),
    }
}

pub(super) fn soon() -> Instant {
    Instant::now() + Duration::from_mins(1)
}

pub(super) async fn open(r#type: ToolType, metadata: Value) -> OpenedTool {
    toolbox("127.0.0.0/8").open(&stored(r#type, "My tool", metadata), soon()).await
}

pub(super) async fn call(
    opened: &OpenedTool,
    function: usize,
    arguments: Value,
) -> Result<String, ToolError> {
    opened.tool.call(function, object(arguments), soon()).await
}

/// Opens a tool and calls its first function.
pub(super) async fn ask(r#type: ToolType, metadata: Value, arguments: Value) -> Result<String, ToolError> {
    call(&open(r#type, metadata).await, 0, arguments).await
}

pub(super) fn function<'a>(opened: &'a OpenedTool, name: &str) -> (usize, &'a ToolFunction) {
    let functions = opened.tool.functions();
    let names: Vec<_> = functions.iter().map(|function| &function.spec.name).collect();
    let at = functions.iter().position(|function| function.spec.name == name);
    let at = at.unwrap_or_else(|| panic!("{name} is not among {names:?}"));
    (at, &functions[at])
}

pub(super) fn failure(sentence: &str) -> ToolError {
    ToolError::Failed(sentence.to_owned())
}

/// Something that more than one task writes.
pub(super) type Shared<T> = Arc<Mutex<T>>;
