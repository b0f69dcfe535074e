//! What may go wrong on the way, and when another try is made.

use std::{io, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::json;
use tokio::{net::TcpListener, time::Instant};
use tracing::subscriber::NoSubscriber;
use url::Url;

use super::{
    server::{Server, cut, raw, sse},
    *,
};

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
async fn a_limited_provider_is_asked_again_when_it_says() {
    let limited = raw("429 Too Many Requests", "Retry-After: 0\r\n", "{}");
    assert_eq!(outcome(vec![limited, hello()]).await.attempts, 2);
}

#[tokio::test]
async fn a_wait_past_the_deadline_is_not_waited_for() {
    let limited = raw("429 Too Many Requests", "Retry-After: 3600\r\n", "{}");
    let (kind, attempts, requests) = failure(vec![limited, hello()]).await;
    assert_eq!(kind, ChatErrorKind::RateLimited { retry_after: Some(Duration::from_hours(1)) });
    assert_eq!((kind.code(), attempts, requests), ("provider_rate_limited", 1, 1));
}

#[tokio::test]
async fn a_failing_provider_is_asked_three_times_in_all() {
    let broken = || raw("500 Internal Server Error", "", "oops");
    assert_eq!(outcome(vec![broken(), broken(), hello()]).await.attempts, 3);
    for status in ["408 Request Timeout", "425 Too Early", "503 Service Unavailable", "529 Overloaded"] {
        assert_eq!(outcome(vec![raw(status, "", ""), hello()]).await.attempts, 2, "{status}");
    }
    let (kind, attempts, requests) = failure(vec![broken(), broken(), broken(), hello()]).await;
    assert_eq!(kind, ChatErrorKind::Upstream { status: Some(500) });
    assert_eq!((kind.code(), attempts, requests), ("provider_failed", 3, 3));
    let slow = || raw("408 Request Timeout", "", "");
    assert_eq!(
        failure(vec![slow(), slow(), slow()]).await.0.code(),
        "provider_failed",
        "it is not our time that was up"
    );
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_asked_three_times_in_all() {
    let server = Server::start(vec![]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let config = ChatModelConfig { base_url: Some(base_url), ..server.config("m") };
    let error = ask(config, &question()).await.0.unwrap_err();
    assert_eq!((error.kind, error.attempts), (ChatErrorKind::RefusedAddress, 3));
}

#[tokio::test]
async fn a_rejected_request_is_not_repeated() {
    for (status, kind) in [
        ("400 Bad Request", ChatErrorKind::BadRequest { status: 400 }),
        ("404 Not Found", ChatErrorKind::NotFound),
        ("402 Payment Required", ChatErrorKind::NoCredit { status: 402 }),
        ("403 Forbidden", ChatErrorKind::Unauthorized { status: 403 }),
        ("302 Found", ChatErrorKind::Upstream { status: Some(302) }),
        ("307 Temporary Redirect", ChatErrorKind::Upstream { status: Some(307) }),
    ] {
        assert_eq!(failure(vec![raw(status, "Location: /elsewhere\r\n", "no"), hello()]).await, (kind, 1, 1));
    }
}

#[tokio::test]
async fn an_error_body_with_the_key_is_neither_told_nor_logged() {
    // While there is only one subscriber, whether a place logs is decided by the first thread that passes it, which may be
    // another test's that has none. A second one makes all of them be asked.
    let _second = tracing::Dispatch::new(NoSubscriber::default());
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
        let model = HttpModel::new(config.clone()).unwrap();
        let error = ask(config, &question()).await.0.unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::Unauthorized { status: 401 });
        assert_eq!(
            error.to_string(),
            "The model provider openai-compatible rejected the credentials (status 401): check the key."
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
    for reply in [html, sse("data: {\"choices\": [\n\n"), sse("data: {\"a\":\"\u{0}\"}\n\n"), sse("")] {
        let (kind, attempts, requests) = failure(vec![reply, hello()]).await;
        assert_eq!((kind, attempts, requests), (ChatErrorKind::Garbage, 1, 1));
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_told_apart_from_one_that_sends_anything() {
    for body in [r#"{"choices":[{"message":{"content":"Hello"}}]}"#, "{\n  \"choices\": []\n}\n"] {
        let json = raw("200 OK", "Content-Type: application/json; charset=utf-8\r\n", body);
        let (kind, attempts, requests) = failure(vec![json, hello()]).await;
        assert_eq!((kind.code(), attempts, requests), ("provider_garbage", 1, 1));
        assert_eq!(kind, ChatErrorKind::NotStreamed);
        assert!(kind.to_string().contains("did not stream"));
    }
    // A stream under the wrong type is one.
    let body = text("Hello") + &finish("stop");
    let stream = raw("200 OK", "Content-Type: application/json\r\n", &body);
    assert_eq!(outcome(vec![stream]).await.text, "Hello");
}

#[tokio::test]
async fn why_a_request_was_rejected_is_told_where_it_is_known() {
    let quota = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let empty = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low."}}"#;
    let long = r#"{"error":{"message":"This model's maximum context length is 4096 tokens.","code":"context_length_exceeded"}}"#;
    for (status, body, kind, words) in [
        ("429 Too Many Requests", quota, ChatErrorKind::NoCredit { status: 429 }, "no credit left"),
        ("400 Bad Request", empty, ChatErrorKind::NoCredit { status: 400 }, "no credit left"),
        ("400 Bad Request", long, ChatErrorKind::TooLong { status: 400 }, "longer than the model takes"),
        ("404 Not Found", "{}", ChatErrorKind::NotFound, "no such model"),
    ] {
        for headers in ["", "Retry-After: 0\r\n"] {
            let (told, attempts, requests) = failure(vec![raw(status, headers, body), hello()]).await;
            assert_eq!((&told, attempts, requests), (&kind, 1, 1), "{body}");
        }
        let code = if status.starts_with("429") { "provider_rate_limited" } else { "provider_rejected" };
        assert_eq!(kind.code(), code);
        assert!(kind.to_string().contains(words), "{kind}");
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
async fn silence_is_tried_again_before_the_first_token_and_never_after() {
    let server = Server::start(vec![cut(": hello\n\n", true), cut("", true), hello()]).await;
    let config = ChatModelConfig { silence: Duration::from_millis(100), ..server.config("m") };
    let (answer, streamed) = ask(config, &question()).await;
    assert_eq!((answer.unwrap().attempts, streamed.as_str()), (3, "Hello"));

    let server = Server::start(vec![cut(&text("Hal"), true), hello()]).await;
    let config = ChatModelConfig { silence: Duration::from_millis(100), ..server.config("m") };
    let (answer, streamed) = ask(config, &question()).await;
    let error = answer.unwrap_err();
    assert_eq!((error.kind.clone(), error.attempts, streamed.as_str()), (ChatErrorKind::Timeout, 1, "Hal"));
    assert_eq!((error.kind.code(), server.requests()), ("provider_timeout", 1));
}

#[tokio::test]
async fn the_deadline_ends_a_call() {
    let server = Server::start(vec![cut(&text("Hal"), true)]).await;
    let model = HttpModel::new(server.config("m")).unwrap();
    let deadline = Instant::now() + Duration::from_millis(200);
    let error = model.chat(&question(), deadline, &mut Heard(&mut String::new())).await.unwrap_err();
    assert_eq!((error.kind, error.attempts), (ChatErrorKind::Timeout, 1));
}

#[tokio::test]
async fn an_error_event_is_tried_again_before_the_first_token_and_never_after() {
    let overloaded = || frame(&json!({"error": {"message": "busy", "code": 503}}));
    assert_eq!(outcome(vec![sse(&overloaded()), hello()]).await.attempts, 2);
    let thinks = frame(&json!({"choices": [{"delta": {"reasoning_content": "Hm."}}]}));
    let begins = calls(&json!([{"index": 0, "id": "x", "function": {"name": "f"}}]));
    for beginning in [text("Hal"), thinks, begins] {
        let failed = failure(vec![sse(&(beginning + &overloaded())), hello()]).await;
        assert_eq!(failed, (ChatErrorKind::Upstream { status: Some(503) }, 1, 1));
    }
    let named = "event: error\ndata: {\"code\": 401}\n\n";
    assert_eq!(failure(vec![sse(named)]).await.0, ChatErrorKind::Unauthorized { status: 401 });
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_first_event_is_made_again() {
    assert_eq!(outcome(vec![cut("", false), hello()]).await.attempts, 2);
}

#[tokio::test]
async fn a_setting_that_the_model_does_not_take_is_left_out_from_then_on() {
    let refusal = r#"{"error": {"message": "Unsupported value: 'temperature' does not support 0.2.", "param": "temperature"}}"#;
    let server = Server::start(vec![raw("400 Bad Request", "", refusal), hello(), hello()]).await;
    let model = HttpModel::new(server.config("m")).unwrap();
    let request = ChatRequest { temperature: Some(0.2), ..question() };
    for attempts in [2, 1] {
        let mut streamed = String::new();
        let deadline = Instant::now() + Duration::from_secs(30);
        let answer = model.chat(&request, deadline, &mut Heard(&mut streamed)).await.unwrap();
        assert_eq!(answer.attempts, attempts);
    }
    let sent: Vec<Value> = (0..3).map(|number| server.request(number).body["temperature"].clone()).collect();
    assert_eq!(sent, [json!(0.2), Value::Null, Value::Null]);
    // What is refused although it was not sent is no reason to ask again and again.
    let refused = || raw("400 Bad Request", "", refusal);
    assert_eq!(failure(vec![refused(), refused(), hello()]).await.1, 2);
}

#[tokio::test]
async fn a_model_that_takes_none_of_the_settings_answers_and_is_asked_without_them_by_later_runs() {
    let settings = ["stream_options", "temperature", "stop", "max_tokens"];
    let refusal = |name: &str| format!(r#"{{"error": {{"message": "Unsupported parameter: '{name}'."}}}}"#);
    let mut replies = vec![raw("503 Service Unavailable", "", "")];
    replies.extend(settings.map(|name| raw("400 Bad Request", "", &refusal(name))));
    replies.extend([raw("500 Internal Server Error", "", ""), hello(), hello()]);
    let server = Server::start(replies).await;
    let config = server.config("m");
    for attempts in [7, 1] {
        let answer = ask(config.clone(), &conversation()).await.0.unwrap();
        assert_eq!((answer.text.as_str(), answer.attempts), ("Hello", attempts));
    }
    assert!(settings.iter().all(|name| !server.request(0).body[*name].is_null()));
    for number in [6, 7] {
        let body = server.request(number).body;
        assert!(settings.iter().all(|name| body[*name].is_null()), "{body:#}");
        assert_eq!(body["max_completion_tokens"], 99);
    }
}

#[tokio::test]
async fn what_did_not_help_to_leave_out_is_not_remembered() {
    let refusal = r#"{"error": {"message": "Unsupported temperature."}}"#;
    let replies = vec![raw("400 Bad Request", "", refusal), raw("401 Unauthorized", "", ""), hello()];
    let server = Server::start(replies).await;
    let (config, request) = (server.config("m"), ChatRequest { temperature: Some(0.2), ..question() });
    ask(config.clone(), &request).await.0.unwrap_err();
    ask(config, &request).await.0.unwrap();
    let sent: Vec<Value> = (0..3).map(|number| server.request(number).body["temperature"].clone()).collect();
    assert_eq!(sent, [json!(0.2), Value::Null, json!(0.2)]);
}

#[tokio::test]
async fn the_limit_of_length_is_sent_by_its_other_name_when_a_model_asks_for_it() {
    let refusal = r#"{"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}"#;
    let server = Server::start(vec![raw("400 Bad Request", "", refusal), hello()]).await;
    let request = ChatRequest { max_tokens: Some(7), ..question() };
    ask(server.config("my-deployment"), &request).await.0.unwrap();
    assert_eq!(server.request(0).body["max_tokens"], 7);
    let body = server.request(1).body;
    assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(7), &Value::Null));
}

#[tokio::test]
async fn a_refused_address_is_told_and_a_refused_name_is_tried_like_one_that_does_not_answer() {
    let server = Server::start(vec![hello()]).await;
    let by_name = Url::parse(&format!("http://localhost:{}/v1", server.base.port().unwrap())).unwrap();
    for (base_url, attempts) in [(server.base.clone(), 1), (by_name, 3)] {
        let config = ChatModelConfig { base_url: Some(base_url), egress: egress(""), ..server.config("m") };
        let error = ask(config, &question()).await.0.unwrap_err();
        assert_eq!((error.kind, error.attempts), (ChatErrorKind::RefusedAddress, attempts));
    }
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn a_model_that_cannot_work_is_refused_when_it_is_set_up() {
    let server = Server::start(vec![]).await;
    let refusal = |config: ChatModelConfig| HttpModel::new(config).unwrap_err();
    for provider in [ModelProvider::OpenAiCompatible, ModelProvider::Ollama, ModelProvider::AzureOpenAi] {
        let config = ChatModelConfig { base_url: None, ..server.of(provider, "m") };
        assert_eq!(refusal(config), ModelConfigError::BaseUrlRequired { provider });
    }
    for address in ["ftp://host/", "http://user:pass@host/", "http://user@host/", "data:text/plain,x"] {
        let base_url = Some(Url::parse(address).unwrap());
        let config = ChatModelConfig { base_url, ..server.config("m") };
        assert_eq!(refusal(config), ModelConfigError::BaseUrlInvalid, "{address}");
    }
    let api_key = Some(SecretString::from("a\nb"));
    assert_eq!(refusal(ChatModelConfig { api_key, ..server.config("m") }), ModelConfigError::ApiKeyInvalid);
    assert_eq!(refusal(server.config(" ")), ModelConfigError::ModelRequired);
    let provider = ModelProvider::Extractive;
    assert_eq!(refusal(server.of(provider, "m")), ModelConfigError::ProviderNotAvailable { provider });
}
