//! Anthropic's format.

use serde_json::{Value, json};

use super::{
    server::{Server, raw, sse},
    *,
};

const PROVIDER: ModelProvider = ModelProvider::Anthropic;

fn start() -> Value {
    json!({"type": "message_start", "message": {"role": "assistant", "content": [], "usage": {
        "input_tokens": 10, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 1,
    }}})
}

fn block(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn says(text: &str) -> Value {
    delta(0, &json!({"type": "text_delta", "text": text}))
}

fn ends(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ]
}

fn whole(events: &[Value]) -> String {
    let events: Vec<Value> = std::iter::once(start()).chain(events.iter().cloned()).collect();
    let named = |event: &Value| format!("event: {}\n{}", event["type"].as_str().unwrap(), frame(event));
    events.iter().map(named).collect()
}

fn plain() -> String {
    let [end, stop] = ends("end_turn");
    let thinks = delta(0, &json!({"type": "thinking_delta", "thinking": "Hm."}));
    whole(&[
        block(0, &json!({"type": "text", "text": ""})),
        json!({"type": "ping"}),
        thinks,
        says("Hel"),
        says("lo"),
        end,
        stop,
    ])
}

#[tokio::test]
async fn text_usage_and_reason_are_read() {
    let answer = answer_of(PROVIDER, sse(&plain())).await;
    assert_eq!((answer.text.as_str(), answer.finish_reason), ("Hello", FinishReason::Stop));
    assert_eq!(answer.usage, reported(17, 5));
}

#[tokio::test]
async fn calls_at_once_arrive_in_pieces() {
    let tool = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let json =
        |index: u64, text: &str| delta(index, &json!({"type": "input_json_delta", "partial_json": text}));
    let [end, stop] = ends("tool_use");
    let events = [
        block(0, &json!({"type": "text", "text": "I"})),
        says(" look."),
        block(1, &tool("t1", "search")),
        json(1, ""),
        json(1, "{\"q\":"),
        json(1, "\"x\"}"),
        json!({"type": "content_block_stop", "index": 1}),
        block(2, &tool("t2", "now")),
        json(2, ""),
        end,
        stop,
    ];
    let answer = answer_of(PROVIDER, sse(&whole(&events))).await;
    assert_eq!(told(&answer), [("t1", "search", r#"{"q":"x"}"#), ("t2", "now", "")]);
    assert_eq!((answer.text.as_str(), answer.finish_reason), ("I look.", FinishReason::ToolCalls));
    assert_eq!(answer.tool_calls[1].parse_arguments().unwrap(), json!({}));
}

#[tokio::test]
async fn every_reason_to_stop_has_its_meaning() {
    for (reason, expected) in [
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::ContentFilter),
        ("pause_turn", FinishReason::Other),
    ] {
        assert_eq!(answer_of(PROVIDER, sse(&whole(&ends(reason)))).await.finish_reason, expected, "{reason}");
    }
}

#[tokio::test]
async fn the_request_is_the_conversation_as_the_format_has_it() {
    let server = Server::start(vec![sse(&plain())]).await;
    ask(server.of(PROVIDER, "a/b:c@d"), &conversation()).await.0.unwrap();
    let seen = server.request(0);
    assert_eq!(seen.target(), "POST /v1/messages");
    assert_eq!((seen.header("x-api-key"), seen.header("authorization")), (Some(KEY), None));
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    let expected = json!({
        "model": "a/b:c@d",
        "max_tokens": 99,
        "stream": true,
        "temperature": 0.5,
        "stop_sequences": ["Observation:", "B", "C", "D", "E", "F"],
        "system": "Be kind.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "x"}},
                {"type": "tool_use", "id": "c2", "name": "add", "input": {"arguments": "not json"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "nothing"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "3"},
                {"type": "text", "text": "And?"},
            ]},
        ],
        "tools": [{
            "name": "search",
            "description": "Searches.",
            "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
        }],
    });
    assert_eq!(seen.body, expected);
}

#[tokio::test]
async fn a_limit_is_sent_even_where_the_agent_sets_none() {
    let server = Server::start(vec![sse(&plain())]).await;
    let config = ChatModelConfig { base_url: Some(server.at("/")), ..server.of(PROVIDER, "m") };
    let alone =
        ChatRequest { messages: vec![ChatMessage::System("Greet.".into())], ..ChatRequest::default() };
    ask(config, &alone).await.0.unwrap();
    let seen = server.request(0);
    assert_eq!(seen.target(), "POST /v1/messages");
    let turns = json!([{"role": "user", "content": [{"type": "text", "text": "Greet."}]}]);
    let expected = json!({"model": "m", "max_tokens": 4096, "stream": true, "messages": turns});
    assert_eq!(seen.body, expected);
}

#[tokio::test]
async fn errors_have_the_class_that_their_type_names() {
    let event = |kind: &str| {
        let error = json!({"type": "error", "error": {"type": kind, "message": KEY}});
        sse(&format!("event: error\ndata: {error}\n\n"))
    };
    let server = Server::start(vec![event("overloaded_error"), sse(&plain())]).await;
    assert_eq!(ask(server.of(PROVIDER, "m"), &question()).await.0.unwrap().attempts, 2);
    let unauthorized = ChatErrorKind::Unauthorized { status: 401 };
    assert_eq!(error_of(PROVIDER, vec![event("authentication_error")]).await, (unauthorized.clone(), 1));
    assert_eq!(error_of(PROVIDER, vec![raw("401 Unauthorized", "", KEY)]).await, (unauthorized, 1));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let half = whole(&[says("Hal")]);
    assert_eq!(error_of(PROVIDER, vec![sse(&half), sse(&plain())]).await, (ChatErrorKind::Truncated, 1));
    assert_eq!(error_of(PROVIDER, vec![hello()]).await.0, ChatErrorKind::NoChoices);
}

#[tokio::test]
async fn a_temperature_that_the_model_has_not_is_left_out() {
    let refusal = r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "`temperature` is deprecated for this model."}}"#;
    let server = Server::start(vec![raw("400 Bad Request", "", refusal), sse(&plain())]).await;
    ask(server.of(PROVIDER, "m"), &conversation()).await.0.unwrap();
    assert_eq!(server.request(1).body["temperature"], Value::Null);
}
