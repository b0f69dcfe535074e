//! The client against a server on this machine.

mod server;

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;
use url::Url;

use self::server::{Reply, Server, cut, raw, sse};
use super::*;

const KEY: &str = "sk-secret-0123456789";

impl Server {
    fn config(&self, model: &str) -> GenaiConfig {
        GenaiConfig {
            provider: Provider::OpenAiCompatible,
            model: model.to_owned(),
            base_url: Some(self.base.clone()),
            api_key: Some(SecretString::from(KEY)),
            client: client(),
            silence: DEFAULT_SILENCE,
            is_refusal: |_| false,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the guarded client refuses loopback addresses")]
fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

fn frame(value: &Value) -> String {
    format!("data: {value}\n\n")
}

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

async fn ask(config: GenaiConfig, request: &ChatRequest) -> (Result<ChatOutcome, ChatError>, String) {
    let mut streamed = String::new();
    let model = GenaiModel::new(config).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let answer = model.chat(request, deadline, &mut |delta| streamed.push_str(delta)).await;
    (answer, streamed)
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

#[tokio::test]
async fn an_answer_arrives_in_pieces_with_usage_and_reason() {
    let usage =
        json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13}});
    let body = [text("Hel"), text("lo, 世界"), finish("stop"), frame(&usage), DONE.to_owned()].concat();
    let answer = outcome(vec![sse(&body)]).await;
    assert_eq!(answer.text, "Hello, 世界");
    assert_eq!((answer.finish_reason, answer.attempts), (FinishReason::Stop, 1));
    assert_eq!(answer.usage, Usage { input_tokens: 11, output_tokens: 2, source: UsageSource::Provider });
}

#[tokio::test]
async fn usage_is_estimated_from_characters_where_the_provider_gives_none() {
    let answer = outcome(vec![hello()]).await;
    assert_eq!(answer.usage, Usage { input_tokens: 4, output_tokens: 2, source: UsageSource::Estimated });
}

#[tokio::test]
async fn the_request_carries_conversation_tools_and_settings() {
    let server = Server::start(vec![hello()]).await;
    let call = ToolCall { id: "c1".into(), name: "search".into(), arguments: r#"{"q": "x"}"#.into() };
    let request = ChatRequest {
        messages: vec![
            ChatMessage::System("Be kind.".into()),
            ChatMessage::User("Hi".into()),
            ChatMessage::Assistant { text: String::new(), tool_calls: vec![call] },
            ChatMessage::Tool { call_id: "c1".into(), name: "search".into(), content: "nothing".into() },
        ],
        temperature: Some(0.5),
        max_tokens: Some(99),
        tools: vec![ToolSpec {
            name: "search".into(),
            description: "Searches.".into(),
            parameters: json!({"type": "object", "properties": {"q": {"type": "string"}}}),
        }],
    };
    ask(server.config("m"), &request).await.0.unwrap();
    let seen = server.seen.lock()[0].clone();
    assert!(seen.head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{}", seen.head);
    assert!(seen.head.contains(&format!("Bearer {KEY}")), "{}", seen.head);
    let body = seen.body;
    assert_eq!(
        (&body["stream"], &body["temperature"], &body["max_tokens"]),
        (&json!(true), &json!(0.5), &json!(99))
    );
    assert_eq!(body["stream_options"]["include_usage"], true);
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "Be kind."}));
    assert_eq!(
        body["messages"][2]["tool_calls"][0]["function"],
        json!({"name": "search", "arguments": r#"{"q":"x"}"#})
    );
    assert_eq!(body["messages"][3], json!({"role": "tool", "tool_call_id": "c1", "content": "nothing"}));
    assert_eq!(body["tools"][0]["function"]["parameters"]["properties"]["q"]["type"], "string");
}

#[tokio::test]
async fn the_model_name_reaches_the_wire_as_it_is_and_adds_nothing() {
    for (name, limit) in [
        ("qwen-max", "max_tokens"),
        ("a::b", "max_tokens"),
        ("openai/gpt-4o", "max_tokens"),
        ("gpt-5-codex", "max_completion_tokens"),
        ("openai/o3-high", "max_completion_tokens"),
        ("gpt-6", "max_completion_tokens"),
    ] {
        let server = Server::start(vec![hello()]).await;
        let request = ChatRequest { max_tokens: Some(5), ..question() };
        ask(server.config(name), &request).await.0.unwrap();
        let body = server.seen.lock()[0].body.clone();
        assert_eq!(body["model"], name);
        let mut fields: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        let mut expected = [limit, "messages", "model", "stream", "stream_options"];
        expected.sort_unstable();
        assert_eq!(fields, expected, "{name}");
    }
}

#[tokio::test]
async fn no_credentials_are_sent_where_there_are_none() {
    let server = Server::start(vec![hello()]).await;
    ask(GenaiConfig { api_key: None, ..server.config("m") }, &question()).await.0.unwrap();
    assert!(!server.seen.lock()[0].head.to_lowercase().contains("authorization"));
}

#[tokio::test]
async fn several_tool_calls_split_over_frames_are_put_together() {
    let body = [
        calls(&json!([{"index": 0, "id": "x", "function": {"name": "search", "arguments": ""}}])),
        calls(&json!([{"index": 1, "id": "y", "function": {"name": "add", "arguments": "{\"a\":"}},
                      {"index": 0, "function": {"arguments": "{\"q\":\"l"}}])),
        calls(
            &json!([{"index": 0, "function": {"arguments": "ions\"}"}}, {"index": 1, "function": {"arguments": "1}"}}]),
        ),
        finish("tool_calls"),
    ];
    for end in [DONE, ""] {
        let answer = outcome(vec![sse(&(body.concat() + end))]).await;
        let calls: Vec<_> = answer
            .tool_calls
            .iter()
            .map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str()))
            .collect();
        assert_eq!(calls, [("x", "search", r#"{"q":"lions"}"#), ("y", "add", r#"{"a":1}"#)]);
        assert_eq!(answer.finish_reason, FinishReason::ToolCalls);
    }
}

#[tokio::test]
async fn tool_calls_of_careless_servers_are_understood() {
    // All at index 0; none indexed; arguments as an object, no id, and `stop` for a reason.
    for parts in [
        json!([{"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}},
               {"index": 0, "id": "y", "function": {"name": "g", "arguments": "{}"}}]),
        json!([{"id": "x", "function": {"name": "f", "arguments": "{"}}, {"function": {"arguments": "}"}},
               {"id": "y", "function": {"name": "g", "arguments": {}}}]),
        json!([{"index": 1, "function": {"name": "f", "arguments": "{}"}},
               {"index": 4_000_000_000_u64, "function": {"name": "g", "arguments": "{}"}}]),
    ] {
        let answer = outcome(vec![sse(&[calls(&parts), finish("stop"), DONE.to_owned()].concat())]).await;
        let names: Vec<_> =
            answer.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!(names, [("f", "{}"), ("g", "{}")]);
        assert_ne!(answer.tool_calls[0].id, answer.tool_calls[1].id);
        assert_eq!(answer.finish_reason, FinishReason::ToolCalls);
    }
}

#[tokio::test]
async fn a_limited_provider_is_asked_again_when_it_says() {
    let limited = raw("429 Too Many Requests", "Retry-After: 0\r\n", "{}");
    assert_eq!(outcome(vec![limited, hello()]).await.attempts, 2);
}

#[tokio::test]
async fn a_wait_past_the_deadline_is_not_waited_for() {
    let limited = raw("429 Too Many Requests", "Retry-After: 3600\r\n", "{}");
    let (kind, attempts, requests) = failure(vec![limited, hello()]).await;
    assert_eq!(kind, ChatErrorKind::RateLimited { retry_after: Some(Duration::from_hours(1)) });
    assert_eq!((kind.http_status(), attempts, requests), (503, 1, 1));
}

#[tokio::test]
async fn a_failing_provider_is_asked_three_times_in_all() {
    let broken = || raw("500 Internal Server Error", "", "oops");
    assert_eq!(outcome(vec![broken(), broken(), hello()]).await.attempts, 3);
    let (kind, attempts, requests) = failure(vec![broken(), broken(), broken(), hello()]).await;
    assert_eq!(kind, ChatErrorKind::Upstream { status: Some(500) });
    assert_eq!((kind.http_status(), attempts, requests), (502, 3, 3));
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_asked_three_times_in_all() {
    let server = Server::start(vec![]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let config = GenaiConfig { base_url: Some(base_url), ..server.config("m") };
    let error = ask(config, &question()).await.0.unwrap_err();
    assert_eq!((error.kind, error.attempts), (ChatErrorKind::Connect, 3));
}

#[tokio::test]
async fn a_rejected_request_is_not_repeated() {
    for (status, kind) in [
        ("400 Bad Request", ChatErrorKind::BadRequest { status: 400 }),
        ("404 Not Found", ChatErrorKind::BadRequest { status: 404 }),
        ("403 Forbidden", ChatErrorKind::Unauthorized { status: 403 }),
        ("302 Found", ChatErrorKind::Upstream { status: Some(302) }),
    ] {
        assert_eq!(failure(vec![raw(status, "Location: /elsewhere\r\n", "no"), hello()]).await, (kind, 1, 1));
    }
}

/// Collects everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_error_body_with_the_key_is_neither_told_nor_logged() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let body = format!(r#"{{"error": {{"message": "bad key {KEY} for UPSTREAM-TEXT", "code": 401}}}}"#);
    for reply in [raw("401 Unauthorized", "", &body), sse(&format!("data: {body}\n\n"))] {
        let server = Server::start(vec![reply]).await;
        let config = server.config("m");
        let model = GenaiModel::new(config.clone()).unwrap();
        let error = ask(config, &question()).await.0.unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::Unauthorized { status: 401 });
        assert_eq!(
            error.to_string(),
            "The model provider openai-compatible rejected the credentials (status 401)."
        );
        assert!(!format!("{error:?} {model:?}").contains("sk-secret"));
    }
    drop(guard);
    let logged = String::from_utf8(log.0.lock().clone()).unwrap();
    assert!(logged.contains("model call failed") && logged.contains("provider_unauthorized"), "{logged}");
    assert!(!logged.contains("sk-secret") && !logged.contains("UPSTREAM-TEXT"), "{logged}");
}

#[tokio::test]
async fn what_is_not_a_stream_of_json_is_garbage() {
    let html = raw("200 OK", "Content-Type: text/html\r\n", "<html>\n\n<body>data here</body></html>");
    let json = raw("200 OK", "Content-Type: application/json\r\n", r#"{"choices":[]}"#);
    for reply in [html, json, sse("data: {\"choices\": [\n\n"), sse("data: {\"a\":\"\u{0}\"}\n\n"), sse("")] {
        let (kind, attempts, requests) = failure(vec![reply, hello()]).await;
        assert_eq!((kind, attempts, requests), (ChatErrorKind::Garbage, 1, 1));
    }
}

#[tokio::test]
async fn a_stream_without_choices_is_an_error_of_its_own() {
    for end in [DONE, ""] {
        let body = frame(&json!({"choices": []})) + end;
        assert_eq!(failure(vec![sse(&body)]).await.0, ChatErrorKind::NoChoices);
    }
}

#[tokio::test]
async fn an_answer_that_ends_without_a_reason_is_truncated() {
    for reply in [sse(&text("Hal")), sse(&(text("Hal") + DONE)), cut(&text("Hal"), false)] {
        let (kind, attempts, requests) = failure(vec![reply, hello()]).await;
        assert_eq!((kind, attempts, requests), (ChatErrorKind::Truncated, 1, 1));
    }
}

#[tokio::test]
async fn a_finish_reason_makes_an_answer_whole_however_the_stream_ends() {
    let body = text("Whole") + &finish("stop");
    for reply in [sse(&body), cut(&body, false), cut(&body, true), sse(&(body.clone() + "data: {broken\n\n"))]
    {
        let answer = outcome(vec![reply]).await;
        assert_eq!(
            (answer.text.as_str(), answer.finish_reason, answer.attempts),
            ("Whole", FinishReason::Stop, 1)
        );
    }
}

#[tokio::test]
async fn an_empty_answer_with_a_reason_is_left_to_the_caller() {
    for (reason, expected) in [
        ("stop", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("content_filter", FinishReason::ContentFilter),
        ("new_reason", FinishReason::Other),
    ] {
        let answer = outcome(vec![sse(&(finish(reason) + DONE))]).await;
        assert_eq!((answer.text.as_str(), answer.finish_reason), ("", expected));
    }
}

#[tokio::test]
async fn silence_is_tried_again_before_the_first_token_and_never_after() {
    let server = Server::start(vec![cut(": hello\n\n", true), cut("", true), hello()]).await;
    let config = GenaiConfig { silence: Duration::from_millis(100), ..server.config("m") };
    let (answer, streamed) = ask(config, &question()).await;
    assert_eq!((answer.unwrap().attempts, streamed.as_str()), (3, "Hello"));

    let server = Server::start(vec![cut(&text("Hal"), true), hello()]).await;
    let config = GenaiConfig { silence: Duration::from_millis(100), ..server.config("m") };
    let (answer, streamed) = ask(config, &question()).await;
    let error = answer.unwrap_err();
    assert_eq!((error.kind.clone(), error.attempts, streamed.as_str()), (ChatErrorKind::Timeout, 1, "Hal"));
    assert_eq!((error.kind.http_status(), server.requests()), (504, 1));
}

#[tokio::test]
async fn the_deadline_ends_a_call() {
    let server = Server::start(vec![cut(&text("Hal"), true)]).await;
    let model = GenaiModel::new(server.config("m")).unwrap();
    let deadline = Instant::now() + Duration::from_millis(200);
    let error = model.chat(&question(), deadline, &mut |_| {}).await.unwrap_err();
    assert_eq!((error.kind, error.attempts), (ChatErrorKind::Timeout, 1));
}

#[tokio::test]
async fn an_endless_answer_is_cut_at_the_limit() {
    let piece = "ä".repeat(50_000) + "x";
    let body: String = std::iter::repeat_n(text(&piece), 100).collect();
    let answer = outcome(vec![sse(&(body + &finish("stop")))]).await;
    assert!((MAX_TEXT_BYTES - 1..=MAX_TEXT_BYTES).contains(&answer.text.len()), "{}", answer.text.len());
    assert_eq!(answer.finish_reason, FinishReason::Length);
}

#[tokio::test]
async fn endless_tool_calls_are_refused() {
    let part = json!([{"index": 0, "id": "x", "function": {"name": "f", "arguments": "a".repeat(600_000)}}]);
    let body = [calls(&part), calls(&part), finish("tool_calls")].concat();
    assert_eq!(failure(vec![sse(&body)]).await.0, ChatErrorKind::TooLarge);
    let many: Vec<Value> =
        (0..1000).map(|index| json!({"index": index, "function": {"name": "f"}})).collect();
    assert_eq!(failure(vec![sse(&calls(&json!(many)))]).await.0, ChatErrorKind::TooLarge);
}

#[tokio::test]
async fn a_refused_address_is_told_and_not_tried_again() {
    #[derive(Debug, thiserror::Error)]
    #[error("refused")]
    struct Refused;
    struct Guard;
    impl reqwest::dns::Resolve for Guard {
        fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
            Box::pin(async { Err(Box::new(Refused) as Box<dyn StdError + Send + Sync>) })
        }
    }
    #[expect(clippy::disallowed_methods, reason = "stands for the guarded client")]
    let client = reqwest::Client::builder().no_proxy().dns_resolver(Arc::new(Guard)).build().unwrap();
    let server = Server::start(vec![]).await;
    let config = GenaiConfig {
        base_url: Some(Url::parse("http://metadata.test/").unwrap()),
        client,
        is_refusal: |error| error.is::<Refused>(),
        ..server.config("m")
    };
    let error = ask(config, &question()).await.0.unwrap_err();
    assert_eq!((error.kind, error.attempts), (ChatErrorKind::RefusedAddress, 1));
}

#[tokio::test]
async fn a_model_that_cannot_work_is_refused_when_it_is_set_up() {
    let server = Server::start(vec![]).await;
    let refusal = |config: GenaiConfig| GenaiModel::new(config).unwrap_err();
    let provider = Provider::OpenAiCompatible;
    let config = || server.config("m");
    assert_eq!(
        refusal(GenaiConfig { base_url: None, ..config() }),
        ModelConfigError::BaseUrlRequired { provider }
    );
    for address in ["ftp://host/", "http://user:pass@host/", "http://user@host/", "data:text/plain,x"] {
        let base_url = Some(Url::parse(address).unwrap());
        assert_eq!(
            refusal(GenaiConfig { base_url, ..config() }),
            ModelConfigError::BaseUrlInvalid,
            "{address}"
        );
    }
    let api_key = Some(SecretString::from("a\nb"));
    assert_eq!(refusal(GenaiConfig { api_key, ..config() }), ModelConfigError::ApiKeyInvalid);
    assert_eq!(refusal(server.config(" ")), ModelConfigError::ModelRequired);
    let provider = Provider::Extractive;
    assert_eq!(
        refusal(GenaiConfig { provider, ..config() }),
        ModelConfigError::ProviderNotAvailable { provider }
    );
}

#[test]
fn provider_labels_read_back_and_unknown_ones_list_the_known() {
    for provider in Provider::ALL {
        assert_eq!(provider.to_string().parse(), Ok(provider));
    }
    let message = "openai_chat".parse::<Provider>().unwrap_err().to_string();
    assert!(
        message.contains("openai-chat, openai, anthropic") && message.contains("extractive"),
        "{message}"
    );
}
