//! OpenAI's format and those who speak it.

use serde_json::{Value, json};

use super::{
    server::{Server, raw, sse},
    *,
};

#[tokio::test]
async fn an_answer_arrives_in_pieces_with_usage_and_reason() {
    let usage =
        json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13}});
    let body = [text("Hel"), text("lo, 世界"), finish("stop"), frame(&usage), DONE.to_owned()].concat();
    let answer = outcome(vec![sse(&body)]).await;
    assert_eq!(answer.text, "Hello, 世界");
    assert_eq!((answer.finish_reason, answer.attempts), (FinishReason::Stop, 1));
    assert_eq!(answer.usage, reported(11, 2));
}

#[tokio::test]
async fn usage_is_estimated_from_characters_where_the_provider_gives_none() {
    let answer = outcome(vec![hello()]).await;
    assert_eq!(
        answer.usage,
        TokenUsage { input_tokens: 4, output_tokens: 2, source: UsageSource::Estimated }
    );
}

#[tokio::test]
async fn thoughts_that_are_told_apart_count_where_usage_is_estimated() {
    let end = text("Hi") + &finish("stop");
    let thinks = |delta: Value| frame(&json!({"choices": [{"delta": delta}]}));
    let forty = "ü".repeat(40);
    for delta in [
        json!({"reasoning_content": forty}),
        json!({"reasoning": forty}),
        // Some servers say it twice.
        json!({"reasoning_content": forty, "reasoning": forty}),
        json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": forty}]}]}),
    ] {
        let answer = outcome(vec![sse(&(thinks(delta.clone()) + &end))]).await;
        assert_eq!((answer.text.as_str(), answer.usage.output_tokens), ("Hi", 11), "{delta}");
    }
}

#[tokio::test]
async fn the_model_name_reaches_the_wire_as_it_is_and_adds_nothing() {
    for (name, limit) in [
        ("qwen-max", "max_tokens"),
        ("a/b:c@d", "max_tokens"),
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
    ask(ChatModelConfig { api_key: None, ..server.config("m") }, &question()).await.0.unwrap();
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
        assert_eq!(told(&answer), [("x", "search", r#"{"q":"lions"}"#), ("y", "add", r#"{"a":1}"#)]);
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
async fn the_request_is_the_conversation_as_the_format_has_it() {
    let server = Server::start(vec![hello()]).await;
    ask(server.config("m"), &conversation()).await.0.unwrap();
    let seen = server.request(0);
    assert_eq!(seen.target(), "POST /v1/chat/completions");
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen.header("accept"), Some("text/event-stream"));
    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    let expected = json!({
        "model": "m",
        "stream": true,
        "stream_options": {"include_usage": true},
        "temperature": 0.5,
        "max_tokens": 99,
        "stop": ["Observation:", "B", "C", "D"],
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Let me see.", "tool_calls": [
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
async fn mistral_gets_its_own_fields_and_ids_only() {
    let server = Server::start(vec![hello()]).await;
    ask(server.of(ModelProvider::Mistral, "o3-like"), &conversation()).await.0.unwrap();
    let body = server.request(0).body;
    assert_eq!((&body["stream_options"], &body["max_completion_tokens"]), (&Value::Null, &Value::Null));
    assert_eq!((&body["max_tokens"], &body["stop"][0]), (&json!(99), &json!("Observation:")));
    let calls = &body["messages"][2]["tool_calls"];
    assert_eq!((&calls[0]["id"], &calls[1]["id"]), (&json!("c00000000"), &json!("c00000001")));
    assert_eq!(body["messages"][4]["tool_call_id"], "c00000001");
}

#[tokio::test]
async fn mistrals_blocks_of_content_are_text_and_thoughts() {
    let delta = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Hi"}]);
    let body = frame(&json!({"choices": [{"delta": {"content": delta}, "finish_reason": "stop"}]}));
    assert_eq!(answer_of(ModelProvider::Mistral, sse(&body)).await.text, "Hi");
}

#[tokio::test]
async fn thoughts_in_the_text_before_the_answer_are_not_told() {
    for (pieces, told) in [
        (vec!["\n<thi", "nk>The rules", " say it.</think", ">\n\nIn the", " cellar."], "\nIn the cellar."),
        (vec!["<thi", "rty> years."], "<thirty> years."),
        (vec!["<thi"], "<thi"),
        (vec!["<think>The rules", " say"], ""),
    ] {
        let body: String = pieces.iter().map(|piece| text(piece)).collect();
        let answer = outcome(vec![sse(&(body + &finish("stop") + DONE))]).await;
        assert_eq!((answer.text.as_str(), answer.finish_reason), (told, FinishReason::Stop));
    }
    // They were written all the same, and a try that has begun with them is not repeated.
    let thinks = text("<think>eight it");
    let answer = outcome(vec![sse(&(thinks.clone() + &finish("length")))]).await;
    assert_eq!(answer.usage.output_tokens, 2);
    let overloaded = frame(&json!({"error": {"code": 503}}));
    let failed = failure(vec![sse(&(thinks + &overloaded)), hello()]).await;
    assert_eq!(failed, (ChatErrorKind::Upstream { status: Some(503) }, 1, 1));
}

#[tokio::test]
async fn reasoning_models_get_no_stop() {
    let server = Server::start(vec![hello()]).await;
    ask(server.of(ModelProvider::OpenAi, "gpt-5-mini"), &conversation()).await.0.unwrap();
    assert_eq!(server.request(0).body["stop"], Value::Null);
}

#[tokio::test]
async fn every_speaker_is_asked_where_it_listens() {
    for (provider, base, target) in [
        (ModelProvider::OpenAiChat, "/v1/", "/v1/chat/completions"),
        (ModelProvider::Groq, "/openai/v1", "/openai/v1/chat/completions"),
        (ModelProvider::OpenAiCompatible, "/", "/chat/completions"),
        (ModelProvider::OpenAiCompatible, "/x?tenant=a%20b#c", "/x/chat/completions?tenant=a%20b"),
        (ModelProvider::Ollama, "/", "/v1/chat/completions"),
        (ModelProvider::Ollama, "/llm", "/llm/v1/chat/completions"),
        (ModelProvider::Ollama, "/v1/", "/v1/chat/completions"),
    ] {
        let server = Server::start(vec![hello()]).await;
        let config = ChatModelConfig { base_url: Some(server.at(base)), ..server.of(provider, "m") };
        ask(config, &question()).await.0.unwrap();
        assert_eq!(server.request(0).target(), format!("POST {target}"));
    }
}

#[tokio::test]
async fn azure_is_asked_by_deployment_and_version() {
    let version = "?api-version=2024-10-21";
    let usage = json!({"include_usage": true});
    for (base, target, model, options) in [
        ("/", format!("/openai/deployments/a%2Fb:c@d/chat/completions{version}"), Value::Null, &usage),
        ("/openai", format!("/openai/deployments/a%2Fb:c@d/chat/completions{version}"), Value::Null, &usage),
        (
            "/openai/deployments/other/chat/completions?api-version=2023-05-15",
            "/openai/deployments/a%2Fb:c@d/chat/completions?api-version=2023-05-15".to_owned(),
            Value::Null,
            &Value::Null,
        ),
        ("/gate/openai/v1/", "/gate/openai/v1/chat/completions".to_owned(), json!("a/b:c@d"), &usage),
    ] {
        let server = Server::start(vec![hello()]).await;
        let config = ChatModelConfig {
            base_url: Some(server.at(base)),
            ..server.of(ModelProvider::AzureOpenAi, "a/b:c@d")
        };
        ask(config, &question()).await.0.unwrap();
        let seen = server.request(0);
        assert_eq!(seen.target(), format!("POST {target}"));
        assert_eq!((&seen.body["model"], &seen.body["stream_options"]), (&model, options), "{base}");
        assert_eq!((seen.header("api-key"), seen.header("authorization")), (Some(KEY), None));
        assert!(!seen.target().contains(KEY));
    }
}

#[tokio::test]
async fn a_prompt_that_azure_withholds_is_a_filtered_answer() {
    let body = r#"{"error": {"message": "…", "param": "prompt", "code": "content_filter", "status": 400}}"#;
    let answer = answer_of(ModelProvider::AzureOpenAi, raw("400 Bad Request", "", body)).await;
    assert_eq!((answer.text.as_str(), answer.finish_reason), ("", FinishReason::ContentFilter));
}

#[tokio::test]
async fn a_model_that_breaks_down_is_no_answer() {
    let body = text("Hal") + &finish("error");
    assert_eq!(failure(vec![sse(&body), hello()]).await, (ChatErrorKind::Upstream { status: None }, 1, 1));
}
