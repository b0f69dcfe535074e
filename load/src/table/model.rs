//! A language model that says the same to everybody, on loopback: what a predict takes besides it is measured with it.

use std::{io, net::Ipv4Addr};

use axum::{
    Router,
    body::{Body, Bytes},
    http::header,
    response::IntoResponse,
    serve::ListenerExt as _,
};
use futures::stream;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

/// What it says, a word at a time.
const ANSWER: &str = "The sources say when the bridge was opened and who keeps the lighthouse [1].";

/// A server of the `OpenAI` chat completions protocol, which always streams. It ends when it is dropped.
pub(super) struct MockModelServer {
    /// What an agent has as its `base_url`.
    pub(super) base_url: Url,
    _server: AbortOnDropHandle<()>,
}

impl MockModelServer {
    /// Starts it on a free port.
    pub(super) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let base_url = format!("http://{}/v1/", listener.local_addr()?);
        let base_url = Url::parse(&base_url).map_err(io::Error::other)?;
        // Small pieces would otherwise wait 40 ms for the other side's acknowledgement.
        let listener = listener.tap_io(|connection| {
            // Without it the answer is slow, and its own time, which is subtracted, too.
            let _ = connection.set_nodelay(true);
        });
        let router = Router::new().fallback(async || {
            let events = stream::iter(events().into_iter().map(Ok::<_, io::Error>));
            ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
        });
        let server = tokio::spawn(async move {
            // It serves until it is dropped.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { base_url, _server: AbortOnDropHandle::new(server) })
    }
}

fn events() -> Vec<Bytes> {
    let chunk = |delta: serde_json::Value, finish: Option<&str>| {
        json!({
            "id": "load", "object": "chat.completion.chunk", "created": 0, "model": "load",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        })
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    events.extend(ANSWER.split_inclusive(' ').map(|word| chunk(json!({"content": word}), None)));
    events.push(chunk(json!({}), Some("stop")));
    events.push(json!({
        "id": "load", "object": "chat.completion.chunk", "created": 0, "model": "load", "choices": [],
        "usage": {"prompt_tokens": 900, "completion_tokens": 15, "total_tokens": 915},
    }));
    let mut lines: Vec<Bytes> = events.iter().map(|event| format!("data: {event}\n\n").into()).collect();
    lines.push("data: [DONE]\n\n".into());
    lines
}
