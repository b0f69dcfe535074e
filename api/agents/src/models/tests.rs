//! The client against a server on this machine.

mod anthropic;
mod cohere;
mod gemini;
mod limits;
mod openai;
mod server;
mod transport;

use std::time::Duration;

use lectern_shared::{
    compute::ComputePool,
    egress::{Egress, EgressPolicy, parse_allow_list},
};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

use self::server::{Reply, Server, sse};
use super::*;

const KEY: &str = "sk-secret-0123456789";

impl Server {
    fn config(&self, model: &str) -> ChatModelConfig {
        self.of(ModelProvider::OpenAiCompatible, model)
    }

    /// A model of any provider; the path of the base URL is `/v1`.
    fn of(&self, provider: ModelProvider, model: &str) -> ChatModelConfig {
        ChatModelConfig {
            provider,
            model: model.to_owned(),
            base_url: Some(self.base.clone()),
            api_key: Some(SecretString::from(KEY)),
            egress: egress("127.0.0.1"),
            silence: DEFAULT_SILENCE,
            compute: ComputePool::new(1),
            refusals: RefusalMemory::default(),
        }
    }

    /// The server under another path.
    fn at(&self, path: &str) -> Url {
        self.base.join(path).unwrap()
    }
}

fn egress(allow: &str) -> Egress {
    let allow = parse_allow_list(allow).unwrap();
    Egress::new(EgressPolicy { allow, ..EgressPolicy::default() }).unwrap()
}

fn frame(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn frames(values: &[Value]) -> String {
    values.iter().map(frame).collect()
}

/// The frames as OpenAI sends them: text, parts of calls, and the reason at the end.
fn text(text: &str) -> String {
    frame(&json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]}))
}

fn calls(parts: &Value) -> String {
    frame(&json!({"choices": [{"index": 0, "delta": {"tool_calls": parts}}]}))
}

fn finish(reason: &str) -> String {
    frame(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

const DONE: &str = "data: [DONE]\n\n";

fn hello() -> Reply {
    sse(&[text("Hello"), finish("stop"), DONE.to_owned()].concat())
}

fn question() -> ChatRequest {
    ChatRequest { messages: vec![ChatMessage::User("Hi, how are you?".to_owned())], ..ChatRequest::default() }
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into(), signature: None }
}

/// A conversation with everything in it: instructions, a turn with two calls at once, what they brought, and settings.
fn conversation() -> ChatRequest {
    let calls = vec![call("c1", "search", r#"{"q": "x"}"#), call("c2", "add", "not json")];
    let tool = |id: &str, name: &str, content: &str| ChatMessage::Tool {
        call_id: id.into(),
        name: name.into(),
        content: content.into(),
    };
    ChatRequest {
        messages: vec![
            ChatMessage::System("Be kind.".into()),
            ChatMessage::User("Hi".into()),
            ChatMessage::Assistant { text: "Let me see.".into(), tool_calls: calls },
            tool("c1", "search", "nothing"),
            tool("c2", "add", "3"),
            ChatMessage::User("And?".into()),
        ],
        temperature: Some(0.5),
        max_tokens: Some(99),
        tools: vec![ToolSpec {
            name: "search".into(),
            description: "Searches.".into(),
            parameters: json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}),
        }],
        stop: ["Observation:", "", "B", "C", "D", "E", "F"].map(ToOwned::to_owned).to_vec(),
    }
}

async fn ask(config: ChatModelConfig, request: &ChatRequest) -> (Result<ChatOutcome, ChatError>, String) {
    let mut streamed = String::new();
    let model = HttpModel::new(config).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let answer = model.chat(request, deadline, &mut Heard(&mut streamed)).await;
    (answer, streamed)
}

/// What the provider's answer amounts to.
async fn answer_of(provider: ModelProvider, reply: Reply) -> ChatOutcome {
    let server = Server::start(vec![reply]).await;
    let (answer, streamed) = ask(server.of(provider, "m"), &question()).await;
    let answer = answer.unwrap();
    assert_eq!(streamed, answer.text);
    answer
}

async fn error_of(provider: ModelProvider, replies: Vec<Reply>) -> (ChatErrorKind, u32) {
    let server = Server::start(replies).await;
    let error = ask(server.of(provider, "m"), &question()).await.0.unwrap_err();
    (error.kind, error.attempts)
}

async fn outcome(replies: Vec<Reply>) -> ChatOutcome {
    let server = Server::start(replies).await;
    let (answer, streamed) = ask(server.config("m"), &question()).await;
    let answer = answer.unwrap();
    assert_eq!(streamed, answer.text);
    answer
}

async fn failure(replies: Vec<Reply>) -> (ChatErrorKind, u32, usize) {
    let server = Server::start(replies).await;
    let error = ask(server.config("m"), &question()).await.0.unwrap_err();
    (error.kind, error.attempts, server.requests())
}

/// Id, name and arguments of each call.
fn told(answer: &ChatOutcome) -> Vec<(&str, &str, &str)> {
    answer.tool_calls.iter().map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str())).collect()
}

/// A provider's reports of tokens.
const fn reported(input_tokens: u64, output_tokens: u64) -> TokenUsage {
    TokenUsage { input_tokens, output_tokens, source: UsageSource::Provider }
}

#[test]
fn provider_labels_read_back_and_unknown_ones_list_the_known() {
    for provider in ModelProvider::ALL {
        assert_eq!(provider.to_string().parse(), Ok(provider));
    }
    let message = "openai_chat".parse::<ModelProvider>().unwrap_err().to_string();
    assert!(
        message.contains("openai-chat, openai, anthropic") && message.contains("extractive"),
        "{message}"
    );
}

struct Heard<'a>(&'a mut String);

#[async_trait]
impl DeltaSink for Heard<'_> {
    async fn take(&mut self, delta: &str) {
        self.0.push_str(delta);
    }
}
