//! Cohere's format.

use serde_json::{Value, json};

use super::{
    server::{Server, raw, sse},
    *,
};

const PROVIDER: ModelProvider = ModelProvider::Cohere;

fn event(kind: &str, index: u64, message: &Value) -> Value {
    json!({"type": kind, "index": index, "delta": {"message": message}})
}

fn start() -> Value {
    json!({"type": "message-start", "id": "1", "delta": {"message": {"role": "assistant", "content": [], "tool_calls": []}}})
}

fn says(text: &str) -> Value {
    event("content-delta", 0, &json!({"content": {"text": text}}))
}

fn ends(reason: &str) -> Value {
    json!({"type": "message-end", "delta": {"finish_reason": reason, "usage": {
        "billed_units": {"input_tokens": 5.0, "output_tokens": 2}, "tokens": {"input_tokens": 70, "output_tokens": 3},
    }}})
}

fn plain() -> Reply {
    let begin = event("content-start", 0, &json!({"content": {"type": "text", "text": ""}}));
    let thinks = event("content-delta", 0, &json!({"content": {"thinking": "Hm."}}));
    let end = json!({"type": "content-end", "index": 0});
    sse(&frames(&[start(), begin, thinks, says("Hel"), says("lo"), end, ends("COMPLETE")]))
}

#[tokio::test]
async fn text_usage_and_reason_are_read() {
    let answer = answer_of(PROVIDER, plain()).await;
    assert_eq!((answer.text.as_str(), answer.finish_reason), ("Hello", FinishReason::Stop));
    assert_eq!(answer.usage, reported(5, 2));
}

#[tokio::test]
async fn calls_at_once_arrive_in_pieces_and_the_plan_is_no_text() {
    let begin = |index: u64, id: &str, name: &str| {
        let call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        event("tool-call-start", index, &json!({"tool_calls": call}))
    };
    let piece = |index: u64, arguments: &str| {
        event("tool-call-delta", index, &json!({"tool_calls": {"function": {"arguments": arguments}}}))
    };
    let body = frames(&[
        start(),
        event("tool-plan-delta", 0, &json!({"tool_plan": "I will look."})),
        begin(0, "t1", "search"),
        piece(0, "{\"q\":"),
        piece(0, "\"x\"}"),
        json!({"type": "tool-call-end", "index": 0}),
        begin(1, "t2", "now"),
        piece(1, "{}"),
        ends("TOOL_CALL"),
    ]);
    let answer = answer_of(PROVIDER, sse(&body)).await;
    assert_eq!(told(&answer), [("t1", "search", r#"{"q":"x"}"#), ("t2", "now", "{}")]);
    assert_eq!((answer.text.as_str(), answer.finish_reason), ("", FinishReason::ToolCalls));
}

#[tokio::test]
async fn every_reason_to_finish_has_its_meaning() {
    for (reason, expected) in [
        ("STOP_SEQUENCE", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::Length),
        ("NEW", FinishReason::Other),
    ] {
        let answer = answer_of(PROVIDER, sse(&frames(&[start(), ends(reason)]))).await;
        assert_eq!(answer.finish_reason, expected, "{reason}");
    }
    let failed =
        error_of(PROVIDER, vec![sse(&frames(&[start(), says("Hal"), ends("ERROR")])), plain()]).await;
    assert_eq!(failed, (ChatErrorKind::Upstream { status: None }, 1));
}

#[tokio::test]
async fn the_request_is_the_conversation_as_the_format_has_it() {
    let server = Server::start(vec![plain()]).await;
    let config = ChatModelConfig { base_url: Some(server.at("/")), ..server.of(PROVIDER, "a/b:c@d") };
    ask(config, &conversation()).await.0.unwrap();
    let seen = server.request(0);
    assert_eq!(seen.target(), "POST /v2/chat");
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    let expected = json!({
        "model": "a/b:c@d",
        "stream": true,
        "temperature": 0.5,
        "max_tokens": 99,
        "stop_sequences": ["Observation:", "B", "C", "D", "E"],
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "tool_plan": "Let me see.", "tool_calls": [
                {"id": "c1", "type": "function", "function": function("search", r#"{"q": "x"}"#)},
                {"id": "c2", "type": "function", "function": function("add", r#"{"arguments":"not json"}"#)},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
            {"role": "tool", "tool_call_id": "c2", "content": "3"},
            {"role": "user", "content": "And?"},
        ],
        "tools": [{"type": "function", "function": {
            "name": "search",
            "description": "Searches.",
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
        }}],
    });
    assert_eq!(seen.body, expected);
}

#[tokio::test]
async fn errors_and_broken_answers_are_no_answers() {
    let half = frames(&[start(), says("Hal")]);
    assert_eq!(error_of(PROVIDER, vec![sse(&half), plain()]).await, (ChatErrorKind::Truncated, 1));
    let error = frame(&json!({"error": {"type": "rate_limit_error"}}));
    let server = Server::start(vec![sse(&error), plain()]).await;
    assert_eq!(ask(server.of(PROVIDER, "m"), &question()).await.0.unwrap().attempts, 2);
    let failed = error_of(PROVIDER, vec![raw("401 Unauthorized", "", KEY)]).await;
    assert_eq!(failed, (ChatErrorKind::Unauthorized { status: 401 }, 1));
}
