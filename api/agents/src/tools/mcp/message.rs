//! What goes between a client and a server of the protocol: JSON-RPC messages. What a server sends is read part by part, so
//! that one part that is not as it should be does not spoil the rest, and a result stays text until somebody knows what to
//! look for in it: as a tree it could take a hundred times as much memory.

use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    super::{ToolError, text},
    raw::{self, RawItems, RawPart},
};

/// The revision in which every request stands for itself.
pub(super) const STATELESS_VERSION: &str = "2026-07-28";
/// The revisions that begin with a handshake, the newest first.
pub(super) const HANDSHAKE_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Most messages that are read of one text.
const MESSAGES: usize = 256;
/// Longest id of a message, in bytes.
const ID: usize = 1_024;
/// Longest message of a server's error that is told, in characters.
const MESSAGE: usize = 500;
/// The codes of JSON-RPC for a method that is not there, and for arguments that are not right.
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;

/// How a server wants to be spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum McpRevision {
    /// Every request says all that the server has to know of its client.
    Stateless,
    /// A handshake comes first, and what follows belongs to it.
    Handshake,
}

/// What is asked of a server.
#[derive(Clone, Debug)]
pub(super) struct McpRequest {
    pub(super) method: &'static str,
    pub(super) params: Map<String, Value>,
    /// Arguments that the server wants in headers too.
    pub(super) promoted: HeaderMap,
}

impl McpRequest {
    pub(super) fn new(method: &'static str) -> Self {
        Self { method, params: Map::new(), promoted: HeaderMap::new() }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }

    /// The handshake's first message.
    pub(super) fn initialize() -> Self {
        Self::new("initialize")
            .with("protocolVersion", HANDSHAKE_VERSIONS[0])
            .with("capabilities", json!({}))
            .with("clientInfo", client_info())
    }

    /// As it is sent.
    pub(super) fn message(&self, id: u64, revision: McpRevision) -> Value {
        let mut params = self.params.clone();
        if revision == McpRevision::Stateless {
            params.insert("_meta".to_owned(), client_context());
        }
        json!({"jsonrpc": "2.0", "id": id, "method": self.method, "params": params})
    }
}

fn client_info() -> Value {
    json!({"name": "Lectern", "version": env!("CARGO_PKG_VERSION")})
}

fn client_context() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A message that wants no answer.
pub(super) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// The version that a handshake has agreed on, if it is one of those that are spoken here.
pub(super) fn agreed_version(result: &RawValue) -> Option<&'static str> {
    let version = raw::object::<ServerVersions<'_>>(result)?.agreed.text()?;
    HANDSHAKE_VERSIONS.into_iter().find(|known| *known == version)
}

/// Whether a server that was discovered can be asked without a handshake.
pub(super) fn is_stateless(discovered: &RawValue) -> bool {
    let versions = raw::object::<ServerVersions<'_>>(discovered).and_then(|said| said.supported.items());
    versions.is_some_and(|versions| versions.any_text(STATELESS_VERSION))
}

/// The versions in an answer to the first request, in either revision.
#[derive(Deserialize)]
struct ServerVersions<'a> {
    #[serde(borrow, default, rename = "protocolVersion")]
    agreed: RawPart<'a>,
    #[serde(borrow, default, rename = "supportedVersions")]
    supported: RawPart<'a>,
}

/// A server's own error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    /// In the server's words, in one line.
    pub(super) message: String,
}

impl RpcError {
    /// Whether the server does not know what it was asked for, or wants it asked otherwise.
    pub(super) fn is_about_request(&self) -> bool {
        matches!(self.code, METHOD_NOT_FOUND | INVALID_PARAMS)
    }
}

/// What came of a request: its result, as text, or the server's error.
pub(super) type RpcOutcome = Result<Box<RawValue>, RpcError>;

/// What a server sends.
#[derive(Clone, Debug)]
pub(super) enum ServerMessage {
    /// The answer to a request.
    Answer {
        /// The request's.
        id: Value,
        /// What came of it.
        outcome: RpcOutcome,
    },
    /// It asks something of its client.
    Request {
        /// Ties the answer to it.
        id: Value,
        /// What it wants.
        method: String,
    },
    /// It tells something.
    Notification {
        /// What.
        method: String,
    },
}

impl ServerMessage {
    /// The messages in a JSON text, of which an old revision sends several at once. What is none is passed over.
    ///
    /// None when the text is not JSON.
    pub(super) fn all(body: &[u8]) -> Option<Vec<Self>> {
        let body: &RawValue = serde_json::from_slice(body).ok()?;
        let messages = match RawPart::from(body).items() {
            Some(RawItems(several)) => several.into_iter().take(MESSAGES).filter_map(Self::read).collect(),
            None => Self::read(body).into_iter().collect(),
        };
        Some(messages)
    }

    fn read(message: &RawValue) -> Option<Self> {
        let message: RawMessage<'_> = raw::object(message)?;
        let id = message.id.0.filter(|id| id.get().len() <= ID);
        let id: Value = id.and_then(|id| serde_json::from_str(id.get()).ok()).unwrap_or_default();
        if let Some(method) = message.method.text() {
            return Some(if id.is_null() {
                Self::Notification { method }
            } else {
                Self::Request { id, method }
            });
        }
        if let Some(result) = message.result.0 {
            return Some(Self::Answer { id, outcome: Ok(result.to_owned()) });
        }
        let error: RawError<'_> = raw::object(message.error.0?)?;
        let code = error.code.0.and_then(|code| code.get().parse().ok()).unwrap_or_default();
        let message = text::line(&error.message.text().unwrap_or_default(), MESSAGE);
        Some(Self::Answer { id, outcome: Err(RpcError { code, message }) })
    }

    /// Whether it says that the list of tools is another one now.
    pub(super) fn changes_tools(&self) -> bool {
        matches!(self, Self::Notification { method } if method == "notifications/tools/list_changed")
    }
}

/// A message before anything is known of it.
#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow, default)]
    id: RawPart<'a>,
    #[serde(borrow, default)]
    method: RawPart<'a>,
    #[serde(borrow, default)]
    result: RawPart<'a>,
    #[serde(borrow, default)]
    error: RawPart<'a>,
}

#[derive(Deserialize)]
struct RawError<'a> {
    #[serde(borrow, default)]
    code: RawPart<'a>,
    #[serde(borrow, default)]
    message: RawPart<'a>,
}

/// What a server is told that asks something of its client: that it is still there, and nothing else.
pub(super) fn reply(id: &Value, method: &str) -> Value {
    if method == "ping" {
        return json!({"jsonrpc": "2.0", "id": id, "result": {}});
    }
    let error = json!({"code": METHOD_NOT_FOUND, "message": "This client answers no such request."});
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum McpFailure {
    /// The server says so.
    Refused(RpcError),
    /// The server refused it with this HTTP status.
    Status(u16),
    /// The server took it as something that wants no answer.
    Unanswered,
    /// Anything else.
    Other(ToolError),
}

impl From<ToolError> for McpFailure {
    fn from(error: ToolError) -> Self {
        Self::Other(error)
    }
}
