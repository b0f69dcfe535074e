//! `MCP` over HTTP, in both revisions of the protocol.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use lectern_shared::model::tool::ToolType::Mcp;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{
    super::{OpenedTool, ToolError},
    mcp_server::*,
    support::*,
};

fn methods(site: &Site) -> Vec<String> {
    site.seen().iter().map(method).collect()
}

async fn open_at(site: &Site) -> OpenedTool {
    open(
        Mcp,
        json!({"url": format!("{}/mcp", site.base), "headers": {"Authorization": format!("Bearer {KEY}")}}),
    )
    .await
}

fn echo(seen: &Seen) -> Reply {
    answer(seen, &said(&seen.json()["params"]["arguments"].to_string()))
}

#[tokio::test]
async fn a_server_of_the_newest_revision_is_asked_without_a_session() {
    let site = Site::new(stateless(json!([tool("read.weather"), tool("send")]), echo)).await;
    let opened = open_at(&site).await;
    let (at, offered) = function(&opened, "my_tool_read_weather");
    assert_eq!(offered.spec.description, "Does read.weather.");
    let expected =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    assert_eq!(offered.spec.parameters, expected);
    assert_eq!(call(&opened, at, json!({"city": "Oslo"})).await.unwrap(), "{\"city\":\"Oslo\"}");
    assert_eq!(methods(&site), ["server/discover", "tools/list", "tools/call"]);
    for seen in site.seen() {
        assert_eq!(seen.line, "POST /mcp");
        let header = |name: &str| seen.header(name).unwrap_or_default().to_owned();
        assert_eq!(header("mcp-protocol-version"), "2026-07-28");
        assert_eq!(header("mcp-method"), method(&seen));
        assert_eq!(header("accept"), "application/json, text/event-stream");
        assert_eq!(header("authorization"), format!("Bearer {KEY}"));
        assert_eq!(seen.header("mcp-session-id"), None);
        let context = &seen.json()["params"]["_meta"];
        assert_eq!(context["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(context["io.modelcontextprotocol/clientCapabilities"], json!({}));
    }
    let called = site.seen().pop().unwrap();
    assert_eq!(called.header("mcp-name"), Some("read.weather"));
    assert_eq!(called.json()["params"]["name"], "read.weather", "as the server calls it");
}

#[tokio::test]
async fn an_older_server_gets_a_handshake_and_is_told_when_its_session_ends() {
    let site = Site::new(with_handshake(json!([tool("read")]), echo)).await;
    let opened = open_at(&site).await;
    for _ in 0..2 {
        assert_eq!(call(&opened, 0, json!({"city": "Oslo"})).await.unwrap(), "{\"city\":\"Oslo\"}");
    }
    drop(opened);
    let ended = site.wait(|seen| seen.line.starts_with("DELETE ")).await;
    assert_eq!(ended.header("mcp-session-id"), Some(SESSION));
    assert_eq!(
        methods(&site),
        [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/call",
            "tools/call",
            "DELETE"
        ]
    );
    let seen = site.seen();
    assert_eq!(seen[1].json()["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(seen[1].header("mcp-session-id"), None);
    for after in &seen[2..] {
        assert_eq!(after.header("mcp-protocol-version"), Some("2025-06-18"), "what was agreed on");
        assert_eq!(after.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    }
}

#[tokio::test]
async fn a_handshake_that_a_call_leaves_in_the_middle_is_ended_by_the_next_call() {
    let (told, reached) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let (heard, server) = (Arc::clone(&reached), with_handshake(json!([tool("read")]), echo));
    let site = Site::new(move |seen| {
        // The first one is that of the session in which the list is fetched.
        if method(seen) == "notifications/initialized" && told.fetch_add(1, Ordering::Relaxed) == 1 {
            heard.notify_one();
            return Reply::Stall;
        }
        server(seen)
    })
    .await;
    let (toolbox, tool) = (toolbox("127.0.0.0/8"), stored(Mcp, "My tool", json!({"url": site.base})));
    drop(toolbox.open(&tool, soon()).await);
    site.wait(|seen| seen.line.starts_with("DELETE ")).await;
    let before = site.seen().len();
    let opened = toolbox.open(&tool, soon()).await;
    tokio::select! {
        result = call(&opened, 0, json!({"city": "Oslo"})) => panic!("{result:?} without a session"),
        () = reached.notified() => {}
    }
    assert_eq!(call(&opened, 0, json!({"city": "Oslo"})).await.unwrap(), "{\"city\":\"Oslo\"}");
    assert_eq!(
        methods(&site)[before..],
        ["initialize", "notifications/initialized", "notifications/initialized", "tools/call"]
    );
}

#[tokio::test]
async fn a_list_is_remembered_until_the_server_says_that_it_has_changed() {
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let site = Site::new(stateless(json!([tool("read")]), move |seen| {
        let before = if seen.body.contains("Bergen") { vec![changed.clone()] } else { Vec::new() };
        streamed(seen, &before, &said("Rain."))
    }))
    .await;
    let (toolbox, tool) = (toolbox("127.0.0.0/8"), stored(Mcp, "My tool", json!({"url": site.base})));
    for city in ["Oslo", "Oslo", "Bergen", "Oslo"] {
        let opened = toolbox.open(&tool, soon()).await;
        assert_eq!(call(&opened, 0, json!({"city": city})).await.unwrap(), "Rain.");
    }
    let lists = methods(&site).iter().filter(|method| *method == "tools/list").count();
    assert_eq!(lists, 2);
}

#[tokio::test]
async fn what_a_server_asks_of_its_client_is_refused_and_a_ping_answered() {
    let asks = ["ping", "sampling/createMessage", "elicitation/create", "roots/list"]
        .map(|method| json!({"jsonrpc": "2.0", "id": method, "method": method, "params": {}}));
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}});
    let others = json!({"jsonrpc": "2.0", "id": 999, "result": said("for somebody else")});
    let before: Vec<Value> = asks.iter().cloned().chain([progress, others]).collect();
    let site =
        Site::new(with_handshake(json!([tool("read")]), move |seen| streamed(seen, &before, &said("Rain."))))
            .await;
    let opened = open_at(&site).await;
    assert_eq!(call(&opened, 0, json!({"city": "Oslo"})).await.unwrap(), "Rain.");
    let replies: Vec<_> = site.seen().iter().filter(|seen| method(seen).is_empty()).map(Seen::json).collect();
    assert_eq!(replies.len(), 4);
    assert_eq!(replies[0], json!({"jsonrpc": "2.0", "id": "ping", "result": {}}));
    for reply in &replies[1..] {
        assert_eq!(reply["error"]["code"], -32_601, "{reply}");
    }
}

#[tokio::test]
async fn results_become_text() {
    for (result, expected) in [
        (json!({"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}), "one\ntwo"),
        (json!({"content": [], "structuredContent": {"degrees": 7}}), "{\"degrees\":7}"),
        (json!({"content": [{"type": "text", "text": "7"}], "structuredContent": {"degrees": 7}}), "7"),
        (
            json!({"content": [{"type": "image", "mimeType": "image/png", "data": "QUJD"}]}),
            "[An image, image/png, which is not shown]",
        ),
        (
            json!({"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}]}),
            "inside",
        ),
        (
            json!({"content": [{"type": "resource_link", "name": "a", "uri": "file:///a"}]}),
            "[A link: a, file:///a]",
        ),
        (json!({"content": [{"type": "hologram"}]}), "[Content of an unknown kind, which is not shown]"),
        (json!({"content": []}), "The tool gave no content."),
    ] {
        let given = result.clone();
        let site = Site::new(stateless(json!([tool("read")]), move |seen| answer(seen, &given))).await;
        let text = call(&open_at(&site).await, 0, json!({"city": "Oslo"})).await.unwrap();
        assert_eq!(text, expected, "{result}");
    }
}

#[tokio::test]
async fn a_tool_that_reports_a_failure_is_heard_in_its_own_words() {
    let mut failure = said("There is no such city.");
    failure["isError"] = true.into();
    let site = Site::new(stateless(json!([tool("read")]), move |seen| answer(seen, &failure))).await;
    let error = call(&open_at(&site).await, 0, json!({"city": "Oslo"})).await.unwrap_err();
    assert_eq!(error, ToolError::Reported("There is no such city.".to_owned()));
    let site = Site::new(stateless(json!([tool("read")]), error_of)).await;
    let error = call(&open_at(&site).await, 0, json!({"city": "Oslo"})).await.unwrap_err();
    assert_eq!(error.to_string(), "The MCP server refused the call: Unknown tool");
    // What the server does not take is told before it is asked.
    let error = call(&open_at(&site).await, 0, json!({"city": 7})).await.unwrap_err();
    assert!(matches!(error, ToolError::Arguments(_)), "{error}");
}

fn error_of(seen: &Seen) -> Reply {
    error(seen, -32_602, "Unknown\n tool")
}

#[tokio::test]
async fn arguments_go_into_headers_where_the_server_wants_them_there() {
    let mut wants = tool("read");
    wants["inputSchema"]["properties"] = json!({
        "city": {"type": "string", "x-mcp-header": "City"},
        "in": {"type": "object", "properties": {"days": {"type": "integer", "x-mcp-header": "Days"}}},
    });
    let site = Site::new(stateless(json!([wants]), echo)).await;
    let opened = open_at(&site).await;
    call(&opened, 0, json!({"city": "Tromsø", "in": {"days": 3}})).await.unwrap();
    let seen = site.seen().pop().unwrap();
    assert_eq!(seen.header("mcp-param-city"), Some("=?base64?VHJvbXPDuA==?="));
    assert_eq!(seen.header("mcp-param-days"), Some("3"));
}

#[tokio::test]
async fn only_the_tools_that_are_named_can_be_called_and_pages_are_followed() {
    let site = Site::new(|seen: &Seen| match method(seen).as_str() {
        "tools/list" if seen.json()["params"]["cursor"] == "2" => {
            answer(seen, &json!({"tools": [tool("send")]}))
        }
        "tools/list" => answer(seen, &json!({"tools": [tool("read"), tool("delete")], "nextCursor": "2"})),
        _ => stateless(json!([]), echo)(seen),
    })
    .await;
    let metadata = json!({"url": site.base, "tools": ["send", "read", "fly"]});
    let opened = open(Mcp, metadata).await;
    let names: Vec<_> = opened.tool.functions().iter().map(|function| &function.spec.name).collect();
    assert_eq!(names, ["my_tool_read", "my_tool_send"]);
    let told = &opened.tool.functions()[0].spec.description;
    assert!(told.ends_with("cannot be called: `fly` (the server has no such tool)."), "{told}");
}
