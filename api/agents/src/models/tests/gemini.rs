//! Gemini's format.

use serde_json::{Value, json};

use super::{
    server::{Server, raw, sse},
    *,
};

const PROVIDER: ModelProvider = ModelProvider::Gemini;

fn parts(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

fn ends(reason: &str) -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 2, "thoughtsTokenCount": 30, "totalTokenCount": 39},
    })
}

fn plain() -> Reply {
    let thought = parts(&json!([{"text": "Hm.", "thought": true}]));
    sse(&frames(&[thought, parts(&json!([{"text": "Hel"}])), parts(&json!([{"text": "lo"}])), ends("STOP")]))
}

#[tokio::test]
async fn text_usage_and_reason_are_read() {
    let answer = answer_of(PROVIDER, plain()).await;
    assert_eq!((answer.text.as_str(), answer.finish_reason), ("Hello", FinishReason::Stop));
    assert_eq!(answer.usage, reported(7, 32));
}

#[tokio::test]
async fn calls_at_once_get_ids_and_keep_their_signature() {
    let first = json!([
        {"functionCall": {"name": "search", "args": {"q": "x"}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "search", "args": {"q": "y"}}},
    ]);
    let second = json!([{"functionCall": {"name": "now", "id": "given"}}]);
    let body = frames(&[parts(&first), parts(&second), ends("STOP")]);
    let server = Server::start(vec![sse(&body), plain()]).await;
    let answer = ask(server.of(PROVIDER, "m"), &question()).await.0.unwrap();
    assert_eq!(answer.finish_reason, FinishReason::ToolCalls);
    let calls = answer.tool_calls;
    let arguments: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(arguments, [("search", r#"{"q":"x"}"#), ("search", r#"{"q":"y"}"#), ("now", "")]);
    assert_ne!(calls[0].id, calls[1].id);

    // Sent back, the provider sees what it sent: its ids, its signature, and nothing of ours.
    let tools = calls.iter().map(|call| ChatMessage::Tool {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: "done".into(),
    });
    let mut request = question();
    request.messages.push(ChatMessage::Assistant { text: String::new(), tool_calls: calls.clone() });
    request.messages.extend(tools);
    ask(server.of(PROVIDER, "m"), &request).await.0.unwrap();
    let response = json!({"output": "done"});
    let expected = json!([
        {"role": "user", "parts": [{"text": "Hi, how are you?"}]},
        {"role": "model", "parts": [
            {"functionCall": {"name": "search", "args": {"q": "x"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "search", "args": {"q": "y"}}},
            {"functionCall": {"name": "now", "args": {}, "id": "given"}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "search", "response": response}},
            {"functionResponse": {"name": "search", "response": response}},
            {"functionResponse": {"name": "now", "response": response, "id": "given"}},
        ]},
    ]);
    assert_eq!(server.request(1).body["contents"], expected);
}

#[tokio::test]
async fn every_reason_to_finish_has_its_meaning() {
    for (reason, expected) in [
        ("MAX_TOKENS", FinishReason::Length),
        ("SAFETY", FinishReason::ContentFilter),
        ("PROHIBITED_CONTENT", FinishReason::ContentFilter),
        ("MALFORMED_FUNCTION_CALL", FinishReason::Other),
    ] {
        let answer = answer_of(PROVIDER, sse(&frame(&ends(reason)))).await;
        assert_eq!(answer.finish_reason, expected, "{reason}");
    }
    let blocked = frame(
        &json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 7}}),
    );
    assert_eq!(answer_of(PROVIDER, sse(&blocked)).await.finish_reason, FinishReason::ContentFilter);
    assert_eq!(
        error_of(PROVIDER, vec![sse(&frame(&json!({"candidates": []})))]).await.0,
        ChatErrorKind::NoChoices
    );
}

#[tokio::test]
async fn the_request_is_the_conversation_as_the_format_has_it() {
    let server = Server::start(vec![plain()]).await;
    ask(server.of(PROVIDER, "m"), &conversation()).await.0.unwrap();
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [
                {"text": "Let me see."},
                {"functionCall": {"id": "c1", "name": "search", "args": {"q": "x"}}},
                {"functionCall": {"id": "c2", "name": "add", "args": {"arguments": "not json"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "c1", "name": "search", "response": {"output": "nothing"}}},
                {"functionResponse": {"id": "c2", "name": "add", "response": {"output": "3"}}},
                {"text": "And?"},
            ]},
        ],
        "tools": [{"functionDeclarations": [{
            "name": "search",
            "description": "Searches.",
            "parameters": {"type": "OBJECT", "properties": {"q": {"type": "STRING"}}, "required": ["q"]},
        }]}],
        "generationConfig": {
            "temperature": 0.5,
            "maxOutputTokens": 99,
            "stopSequences": ["Observation:", "B", "C", "D", "E"],
        },
    });
    assert_eq!(server.request(0).body, expected);
}

#[tokio::test]
async fn the_model_is_one_segment_of_the_address_and_the_key_is_not_in_it() {
    for (base, model, path) in [
        ("/", "gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash"),
        ("/v1beta/", "models/x", "/v1beta/models/x"),
        ("/v1/projects/p/publishers/google", "a/b:c@d", "/v1/projects/p/publishers/google/models/a%2Fb:c@d"),
        ("/gate", "tunedModels/mine", "/gate/v1beta/tunedModels/mine"),
    ] {
        let server = Server::start(vec![plain()]).await;
        let config = ChatModelConfig { base_url: Some(server.at(base)), ..server.of(PROVIDER, model) };
        ask(config, &question()).await.0.unwrap();
        let seen = server.request(0);
        assert_eq!(seen.target(), format!("POST {path}:streamGenerateContent?alt=sse"));
        assert_eq!((seen.header("x-goog-api-key"), seen.header("authorization")), (Some(KEY), None));
    }
}

#[tokio::test]
async fn errors_have_the_class_that_their_status_names() {
    let error = json!({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}});
    let server = Server::start(vec![sse(&frame(&error)), plain()]).await;
    assert_eq!(ask(server.of(PROVIDER, "m"), &question()).await.0.unwrap().attempts, 2);
    let body = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}});
    let failed = error_of(PROVIDER, vec![raw("400 Bad Request", "", &body.to_string())]).await;
    assert_eq!(failed, (ChatErrorKind::Unauthorized { status: 400 }, 1));
}

#[tokio::test]
async fn the_wait_that_a_body_asks_for_is_honoured() {
    let limited = |delay: &str| {
        let body = json!({"error": {"code": 429, "details": [{"@type": "RetryInfo", "retryDelay": delay}]}});
        raw("429 Too Many Requests", "", &body.to_string())
    };
    let server = Server::start(vec![limited("0.01s"), plain()]).await;
    assert_eq!(ask(server.of(PROVIDER, "m"), &question()).await.0.unwrap().attempts, 2);
    let retry_after = Some(std::time::Duration::from_hours(1));
    let failed = error_of(PROVIDER, vec![limited("3600s"), plain()]).await;
    assert_eq!(failed, (ChatErrorKind::RateLimited { retry_after }, 1));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let half = frame(&parts(&json!([{"text": "Hal"}])));
    assert_eq!(error_of(PROVIDER, vec![sse(&half), plain()]).await, (ChatErrorKind::Truncated, 1));
}
