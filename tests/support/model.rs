//! A language model that says what a test has written: a server of the OpenAI chat completions protocol on loopback,
//! streaming only, well and badly behaved.

use std::{collections::VecDeque, io, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::stream;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    loopback::{Gate, Listening, Record, Seen},
    web::header_map,
};

/// The key that [`Model::llm`] gives to agents.
pub const API_KEY: &str = "sk-test-5d1c0f7a9be34b0c";
/// What every answer reports as used.
pub const INPUT_TOKENS: u64 = 31;
/// What every answer reports as written.
pub const OUTPUT_TOKENS: u64 = 17;

#[derive(Default)]
struct Shared {
    queue: Mutex<VecDeque<Reply>>,
    otherwise: Mutex<Option<Reply>>,
    seen: Record<Seen>,
    abandoned: Record<()>,
}

/// The server. It stops when it is dropped.
pub struct Model {
    shared: Arc<Shared>,
    listening: Listening,
}

impl Model {
    /// Starts a model with nothing to say: a request without a scripted reply is refused (400).
    pub async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let router = Router::new().fallback({
            let shared = Arc::clone(&shared);
            move |request: Request| async move { answer(shared, Seen::read(request).await).await }
        });
        Self { shared, listening: Listening::start(router).await }
    }

    /// A model whose first answers are these.
    pub async fn scripted(replies: impl IntoIterator<Item = Reply>) -> Self {
        let model = Self::start().await;
        replies.into_iter().for_each(|reply| model.reply(reply));
        model
    }

    /// What an agent has as its `base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1/", self.listening.address())
    }

    /// The `llm` of an agent that is to use this model.
    pub fn llm(&self, model: &str) -> Value {
        json!({
            "provider": "openai-compatible", "model": model, "base_url": self.base_url(), "api_key": API_KEY,
        })
    }

    /// Adds a reply to those that are waiting; each answers one request.
    pub fn reply(&self, reply: Reply) {
        self.shared.queue.lock().push_back(reply);
    }

    /// What it answers when no reply is waiting.
    pub fn always(&self, reply: Reply) {
        *self.shared.otherwise.lock() = Some(reply);
    }

    /// How many scripted replies nobody has asked for.
    pub fn unused_replies(&self) -> usize {
        self.shared.queue.lock().len()
    }

    /// The requests so far with their headers, oldest first.
    pub fn requests(&self) -> Vec<Seen> {
        self.shared.seen.all()
    }

    /// The bodies of the requests so far, oldest first.
    pub fn bodies(&self) -> Vec<Value> {
        self.requests().iter().map(body_of).collect()
    }

    /// Waits until at least `count` requests have come, and returns their bodies.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Value> {
        let what = format!("{count} requests to the model");
        self.shared.seen.wait_for(&what, count, |_| true).await.iter().map(body_of).collect()
    }

    /// Waits until at least `count` callers went away before their answer's end.
    pub async fn wait_until_abandoned(&self, count: usize) {
        self.shared.abandoned.wait_for("a caller of the model to go away", count, |()| true).await;
    }
}

/// One answer of the model.
#[derive(Clone)]
pub struct Reply(Kind);

#[derive(Clone)]
enum Kind {
    Stream(Script),
    Whole { status: StatusCode, headers: Vec<(String, String)>, content_type: &'static str, body: String },
    Hang,
    Ask(Arc<dyn Fn(&Value) -> Reply + Send + Sync>),
}

#[derive(Clone)]
struct Script {
    parts: Vec<Part>,
    finish_reason: Option<String>,
    ending: Ending,
}

#[derive(Clone)]
enum Part {
    /// The `delta` of a chunk's only choice.
    Delta(Value),
    /// The `choices` of a chunk.
    Choices(Value),
    /// Bytes as they are.
    Raw(String),
    Wait(Gate),
}

#[derive(Clone, Copy)]
enum Ending {
    Done,
    /// The stream ends cleanly, without `[DONE]` and without the usage before it.
    WithoutDone,
    /// The connection breaks.
    Cut,
    /// Nothing more comes, and the connection stays open.
    Silence,
}

impl Reply {
    /// This text, a word a chunk, ended as a model ends when it has said everything.
    pub fn text(text: &str) -> Self {
        Self::chunks(text.split_inclusive(' '))
    }

    /// This text, in exactly these chunks.
    pub fn chunks<'a>(chunks: impl IntoIterator<Item = &'a str>) -> Self {
        let parts = chunks.into_iter().map(content).collect();
        Self(Kind::Stream(Script { parts, finish_reason: Some("stop".to_owned()), ending: Ending::Done }))
    }

    /// Calls of functions, each a name and its arguments, which come in two pieces as from a real model.
    pub fn tool_calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let parts = calls.into_iter().enumerate().flat_map(|(index, (name, arguments))| {
            let arguments = arguments.to_string();
            let middle = arguments.floor_char_boundary(arguments.len() / 2);
            let call = |call: Value| Part::Delta(json!({ "tool_calls": [call] }));
            let piece = |piece: &str| call(json!({ "index": index, "function": { "arguments": piece } }));
            let id = format!("call_{index}");
            let function = json!({ "name": name, "arguments": "" });
            [
                call(json!({ "index": index, "id": id, "type": "function", "function": function })),
                piece(&arguments[..middle]),
                piece(&arguments[middle..]),
            ]
        });
        Self(Kind::Stream(Script {
            parts: parts.collect(),
            finish_reason: Some("tool_calls".to_owned()),
            ending: Ending::Done,
        }))
    }

    /// `before`, then nothing until the gate is released, then `after`.
    pub fn gated(before: &str, gate: &Gate, after: &str) -> Self {
        Self::chunks([]).with_parts([content(before), Part::Wait(gate.clone()), content(after)])
    }

    /// `text`, then the connection breaks.
    pub fn cut_after(text: &str) -> Self {
        Self::text(text).ending(None, Ending::Cut)
    }

    /// `text` and a finish reason, then a clean end without `[DONE]`.
    pub fn without_done(text: &str) -> Self {
        Self::text(text).ending(Some("stop"), Ending::WithoutDone)
    }

    /// `text`, then a clean end with neither a finish reason nor `[DONE]`.
    pub fn unfinished(text: &str) -> Self {
        Self::text(text).ending(None, Ending::WithoutDone)
    }

    /// `text`, then silence on an open connection.
    pub fn silent_after(text: &str) -> Self {
        Self::text(text).ending(None, Ending::Silence)
    }

    /// Not even the headers of an answer.
    pub fn hang() -> Self {
        Self(Kind::Hang)
    }

    /// A stream without any choice, ended with `[DONE]`.
    pub fn empty_choices() -> Self {
        Self::chunks([]).with_parts([Part::Choices(json!([]))]).ending(None, Ending::Done)
    }

    /// These bytes as an event stream, and nothing else.
    pub fn raw_stream(stream: &str) -> Self {
        Self::chunks([]).with_parts([Part::Raw(stream.to_owned())]).ending(None, Ending::WithoutDone)
    }

    /// A page of a proxy, with status 200.
    pub fn html() -> Self {
        Self(Kind::Whole {
            status: StatusCode::OK,
            headers: Vec::new(),
            content_type: "text/html",
            body: "<!doctype html><html><body><h1>It works!</h1></body></html>".to_owned(),
        })
    }

    /// A refusal.
    pub fn status(status: u16, body: &Value) -> Self {
        Self::status_with_headers(status, &[], body)
    }

    /// A refusal with headers, such as `retry-after`.
    pub fn status_with_headers(status: u16, headers: &[(&str, &str)], body: &Value) -> Self {
        Self(Kind::Whole {
            status: StatusCode::from_u16(status).expect("a status"),
            headers: headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
            content_type: "application/json",
            body: body.to_string(),
        })
    }

    /// What `reply` makes of the request's body.
    pub fn to_request(reply: impl Fn(&Value) -> Self + Send + Sync + 'static) -> Self {
        Self(Kind::Ask(Arc::new(reply)))
    }

    /// The same with another finish reason, such as `length`.
    #[must_use]
    pub fn finished_by(mut self, reason: &str) -> Self {
        if let Kind::Stream(script) = &mut self.0 {
            script.finish_reason = Some(reason.to_owned());
        }
        self
    }

    fn with_parts(mut self, parts: impl IntoIterator<Item = Part>) -> Self {
        if let Kind::Stream(script) = &mut self.0 {
            script.parts.extend(parts);
        }
        self
    }

    fn ending(mut self, finish_reason: Option<&str>, ending: Ending) -> Self {
        if let Kind::Stream(script) = &mut self.0 {
            script.finish_reason = finish_reason.map(str::to_owned);
            script.ending = ending;
        }
        self
    }
}

fn content(text: &str) -> Part {
    Part::Delta(json!({ "content": text }))
}

fn body_of(seen: &Seen) -> Value {
    serde_json::from_slice(&seen.body).unwrap_or(Value::Null)
}

async fn answer(shared: Arc<Shared>, seen: Seen) -> Response {
    let request = body_of(&seen);
    let refusal = if seen.path() != "/v1/chat/completions" {
        Some((404, "there is no such endpoint"))
    } else if request["stream"] != true {
        Some((400, "this model only streams"))
    } else {
        None
    };
    shared.seen.add(seen);
    let mut reply = match refusal {
        Some((status, message)) => refuse(status, message),
        None => next_reply(&shared),
    };
    let mut caller = Caller { shared, served: false };
    loop {
        reply = match reply.0 {
            Kind::Ask(ask) => ask(&request),
            Kind::Hang => {
                let never: std::convert::Infallible = std::future::pending().await;
                match never {}
            }
            Kind::Whole { status, headers, content_type, body } => {
                caller.is_served();
                let headers: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
                let content_type = [(header::CONTENT_TYPE, content_type)];
                return (status, content_type, header_map(&headers), body).into_response();
            }
            Kind::Stream(script) => {
                let body = Body::from_stream(stream_of(script.into_steps(&request), caller));
                return ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response();
            }
        }
    }
}

fn next_reply(shared: &Shared) -> Reply {
    let scripted = shared.queue.lock().pop_front();
    let reply = scripted.or_else(|| shared.otherwise.lock().clone());
    reply.unwrap_or_else(|| refuse(400, "no reply is scripted for this request"))
}

fn refuse(status: u16, message: &str) -> Reply {
    Reply::status(status, &json!({ "error": { "message": message, "type": "invalid_request_error" } }))
}

/// Notes it when the caller goes away before it has been served.
struct Caller {
    shared: Arc<Shared>,
    served: bool,
}

impl Caller {
    fn is_served(&mut self) {
        self.served = true;
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if !self.served {
            self.shared.abandoned.add(());
        }
    }
}

/// What a stream does next.
enum Step {
    Send(String),
    Wait(Gate),
    Break,
    Silence,
}

impl Script {
    fn into_steps(self, request: &Value) -> VecDeque<Step> {
        let with_usage = request["stream_options"]["include_usage"] == true;
        let chunk = |choices: &Value, usage: Value| {
            let mut chunk = json!({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000,
                "model": request["model"], "choices": choices,
            });
            if with_usage {
                chunk["usage"] = usage;
            }
            Step::Send(format!("data: {chunk}\n\n"))
        };
        let choice = |delta: Value, finish_reason: Option<String>| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
            chunk(&json!([choice]), Value::Null)
        };
        let mut steps = VecDeque::new();
        if !self.parts.iter().any(|part| matches!(part, Part::Choices(_) | Part::Raw(_))) {
            steps.push_back(choice(json!({ "role": "assistant", "content": "" }), None));
        }
        steps.extend(self.parts.into_iter().map(|part| match part {
            Part::Delta(delta) => choice(delta, None),
            Part::Choices(choices) => chunk(&choices, Value::Null),
            Part::Raw(bytes) => Step::Send(bytes),
            Part::Wait(gate) => Step::Wait(gate),
        }));
        if self.finish_reason.is_some() {
            steps.push_back(choice(json!({}), self.finish_reason));
        }
        match self.ending {
            Ending::Done => {
                if with_usage {
                    let total = INPUT_TOKENS + OUTPUT_TOKENS;
                    let usage = json!({
                        "prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS, "total_tokens": total,
                    });
                    steps.push_back(chunk(&json!([]), usage));
                }
                steps.push_back(Step::Send("data: [DONE]\n\n".to_owned()));
            }
            Ending::WithoutDone => {}
            Ending::Cut => steps.push_back(Step::Break),
            Ending::Silence => steps.push_back(Step::Silence),
        }
        steps
    }
}

fn stream_of(steps: VecDeque<Step>, caller: Caller) -> impl futures::Stream<Item = io::Result<Bytes>> + Send {
    stream::unfold((steps, caller), |(mut steps, mut caller)| async move {
        loop {
            // Lets the server flush what came before, so that each chunk arrives on its own and none is lost to a break.
            tokio::task::yield_now().await;
            match steps.pop_front() {
                Some(Step::Send(bytes)) => {
                    // A caller may hang up on `[DONE]` without reading the stream to its end.
                    if steps.is_empty() {
                        caller.is_served();
                    }
                    return Some((Ok(bytes.into()), (steps, caller)));
                }
                Some(Step::Wait(gate)) => gate.pass().await,
                Some(Step::Silence) => std::future::pending().await,
                Some(Step::Break) => {
                    caller.is_served();
                    return Some((Err(io::Error::other("the connection breaks here")), (steps, caller)));
                }
                None => {
                    caller.is_served();
                    return None;
                }
            }
        }
    })
}
