//! What a server of the Model Context Protocol cannot bring about, whatever it does.

use std::time::Duration;

use lectern_shared::model::tool::ToolType::Mcp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    super::{OpenedTool, ToolError},
    mcp_server::*,
    support::*,
};

fn metadata(site: &Site) -> Value {
    json!({"url": site.base, "headers": {"Authorization": format!("Bearer {KEY}")}})
}

/// Opens a tool whose server answers each call with this.
async fn calling(reply: Reply) -> (Site, OpenedTool) {
    let site = Site::new(stateless(json!([tool("read")]), move |_| reply.clone())).await;
    let opened = open(Mcp, metadata(&site)).await;
    (site, opened)
}

#[tokio::test]
async fn failures_are_told_in_words_without_what_the_server_wrote() {
    let upstream = "upstream says hello";
    let event = |data: &str| Reply::Body(200, "text/event-stream", format!("data: {data}\n\n").into());
    let endless = format!("data: {}\n\n", json!({"jsonrpc": "2.0", "method": "notifications/progress"}));
    let other = json!({"jsonrpc": "2.0", "id": 999, "result": said(upstream)});
    for (reply, sentence) in [
        (text(401, upstream), "rejected the credentials of this tool."),
        (text(403, upstream), "rejected the credentials of this tool."),
        (text(404, upstream), "refused the request (status 404)."),
        (text(429, upstream), "has been asked too often; try again later."),
        (text(500, upstream), "failed (status 500); try again later."),
        (Reply::Body(503, "text/html", vec![b' '; 10_000_000]), "failed (status 503); try again later."),
        (
            Reply::Body(200, "text/html", upstream.into()),
            "answered with something that cannot be understood.",
        ),
        (
            Reply::Body(200, "application/json", b"{\"upstream".into()),
            "answered with something that cannot be understood.",
        ),
        (
            Reply::Body(200, "application/json", "[".repeat(100_000).into()),
            "answered with something that cannot be understood.",
        ),
        (json(&other), "answered with something that cannot be understood."),
        (Reply::Body(202, "text/plain", Vec::new()), "answered with something that cannot be understood."),
        (event("upstream"), "answered with something that cannot be understood."),
        (event(&other.to_string()), "ended its answer before it had said anything."),
        (Reply::Body(200, "application/json", vec![b' '; 10_000_000]), "gave an answer that is too large."),
        (
            Reply::Body(200, "text/event-stream", endless.repeat(40_000).into()),
            "gave an answer that is too large.",
        ),
        (Reply::Body(200, "text/event-stream", vec![b'x'; 10_000_000]), "gave an answer that is too large."),
        (Reply::Raw("nonsense\r\n\r\n"), "gave an answer that could not be read."),
    ] {
        let (_site, opened) = calling(reply.clone()).await;
        let error = call(&opened, 0, json!({"city": "Oslo"})).await.unwrap_err();
        let text = error.to_string();
        assert!(!text.contains("upstream") && !text.contains(KEY), "{text}");
        assert_eq!(text, format!("The MCP server {sentence}"));
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_costs_the_time_of_the_call_and_no_more() {
    for reply in
        [Reply::Stall, Reply::Raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: wait\n\n")]
    {
        let (_site, opened) = calling(reply.clone()).await;
        let deadline = Instant::now() + Duration::from_millis(300);
        let answered = opened.tool.call(0, object(json!({"city": "Oslo"})), deadline).await;
        match reply {
            Reply::Stall => assert_eq!(answered, Err(ToolError::Timeout)),
            _ => assert!(answered.is_err(), "{answered:?}"),
        }
    }
    // Already when it is opened.
    let site = Site::new(|_| Reply::Stall).await;
    let tool = stored(Mcp, "My tool", metadata(&site));
    let opened = toolbox("127.0.0.0/8").open(&tool, Instant::now() + Duration::from_millis(300)).await;
    assert_eq!(call(&opened, 0, json!({})).await, Err(ToolError::Timeout));
}

#[tokio::test]
async fn redirects_are_not_followed_anywhere() {
    let thief = Site::new(|seen: &Seen| answer(seen, &said("stolen"))).await;
    for status in [301, 302, 303, 307, 308] {
        for target in
            [format!("{}/mcp", thief.base), "http://169.254.169.254/".to_owned(), "/mcp/".to_owned()]
        {
            let (site, opened) = calling(Reply::To(status, target.clone())).await;
            let error = call(&opened, 0, json!({"city": "Oslo"})).await.unwrap_err().to_string();
            assert!(error.contains("redirect, which is not followed"), "{status} {target}: {error}");
            assert_eq!(site.seen().len(), 3, "it was asked once");
            // And not before the first call either.
            let site = Site::new(move |_| Reply::To(status, target.clone())).await;
            let error = ask(Mcp, metadata(&site), json!({})).await.unwrap_err().to_string();
            assert!(error.contains("redirect, which is not followed"), "{status}: {error}");
        }
    }
    assert!(thief.seen().is_empty());
}

#[tokio::test]
async fn a_server_inside_is_not_asked() {
    let site = Site::new(stateless(json!([tool("read")]), |seen| answer(seen, &said("inside")))).await;
    let tool = stored(Mcp, "My tool", metadata(&site));
    let error = call(&toolbox("").open(&tool, soon()).await, 0, json!({})).await.unwrap_err().to_string();
    assert!(error.starts_with("The MCP server could not be reached"), "{error}");
    assert!(site.seen().is_empty());
}

#[tokio::test]
async fn a_tool_that_cannot_be_offered_is_left_out_and_the_others_go_on() {
    let with = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let deep = (0..40).fold(json!({}), |inner, _| json!({"type": "object", "properties": {"a": inner}}));
    let large = json!({"type": "object", "description": "x".repeat(100_000)});
    let listed = json!([
        with("a list", json!([])),
        with("no object", json!({"type": "string"})),
        with("deep", deep),
        with("large", large),
        with(
            "outside",
            json!({"type": "object", "properties": {"a": {"$ref": "https://evil.example/s.json"}}})
        ),
        with("dangling", json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/nothing"}}})),
        with("odd names", json!({"type": "object", "properties": {"ä b": {}}})),
        with(
            "odd header",
            json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "a b"}}})
        ),
        with(" ", json!({"type": "object"})),
        json!("nonsense"),
        json!({"inputSchema": {"type": "object"}}),
        with(
            "good",
            json!({
                "type": "object", "properties": {"a": {"$ref": "#/$defs/here"}}, "$defs": {"here": {"type": "string"}},
                "anyOf": [{"required": ["a"]}],
            })
        ),
        with("good", json!({"type": "object"})),
        with("plain", json!({"type": "object"})),
    ]);
    let site = Site::new(stateless(listed, |seen| answer(seen, &said("Done.")))).await;
    let opened = open(Mcp, metadata(&site)).await;
    let names: Vec<_> = opened.tool.functions().iter().map(|function| function.spec.name.as_str()).collect();
    assert_eq!(names, ["my_tool_good", "my_tool_plain"]);
    let told = &opened.tool.functions()[0].spec.description;
    assert!(told.contains("`deep` (its schema is too deep)") && told.ends_with("and 7 more."), "{told}");
    assert_eq!(opened.tool.functions()[0].spec.parameters.get("anyOf"), None);
    assert_eq!(call(&opened, 0, json!({"a": "b"})).await.unwrap(), "Done.");
}

#[tokio::test]
async fn too_many_tools_and_too_much_schema_are_cut_off() {
    let many: Vec<_> = (0..100).map(|number| tool(&format!("tool {number}"))).collect();
    let site = Site::new(stateless(many.into(), |seen| answer(seen, &said("")))).await;
    assert_eq!(open(Mcp, metadata(&site)).await.tool.functions().len(), 64);

    let large = |number: u32| {
        let description = "x".repeat(50_000);
        json!({"name": format!("t{number}"), "inputSchema": {"type": "object", "description": description}})
    };
    let site = Site::new(stateless((0..10).map(large).collect(), |seen| answer(seen, &said("")))).await;
    assert_eq!(open(Mcp, metadata(&site)).await.tool.functions().len(), 5, "256 KiB");

    let whole: Vec<_> = (0..30).map(large).collect();
    let site = Site::new(stateless(whole.into(), |seen| answer(seen, &said("")))).await;
    let error = ask(Mcp, metadata(&site), json!({})).await.unwrap_err();
    assert_eq!(error, failure("The MCP server gave an answer that is too large."));
}

#[tokio::test]
async fn a_list_without_end_comes_to_an_end() {
    let site = Site::new(|seen: &Seen| match method(seen).as_str() {
        "tools/list" => answer(seen, &json!({"tools": [tool("read")], "nextCursor": "again"})),
        _ => stateless(json!([]), |seen| answer(seen, &said("")))(seen),
    })
    .await;
    assert_eq!(open(Mcp, metadata(&site)).await.tool.functions().len(), 1);
    assert!(site.seen().len() < 20);
}

#[tokio::test]
async fn a_server_that_wants_something_of_a_person_gets_nothing() {
    for (kind, told) in
        [("input_required", "wants something of a person"), ("task", "does not answer at once")]
    {
        let site = Site::new(stateless(json!([tool("read")]), move |seen| {
            answer(seen, &json!({"resultType": kind, "inputRequests": {}}))
        }))
        .await;
        let opened = open(Mcp, metadata(&site)).await;
        let error = call(&opened, 0, json!({"city": "Oslo"})).await.unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[tokio::test]
async fn a_tool_that_has_gone_is_told_and_looked_for_by_the_next_run() {
    let site = Site::new(stateless(json!([tool("read")]), |seen| error(seen, -32_602, "Unknown tool"))).await;
    let (toolbox, stored) = (toolbox("127.0.0.0/8"), stored(Mcp, "My tool", metadata(&site)));
    for _ in 0..2 {
        let opened = toolbox.open(&stored, soon()).await;
        assert!(call(&opened, 0, json!({"city": "Oslo"})).await.is_err());
    }
    assert_eq!(site.seen().iter().filter(|seen| method(seen) == "tools/list").count(), 2);
}

#[tokio::test]
async fn a_server_that_asks_its_client_without_end_is_given_up() {
    let asks: Vec<_> =
        (0..100).map(|id| json!({"jsonrpc": "2.0", "id": format!("a{id}"), "method": "ping"})).collect();
    let site =
        Site::new(with_handshake(json!([tool("read")]), move |seen| streamed(seen, &asks, &said("")))).await;
    let opened = open(Mcp, metadata(&site)).await;
    let error = call(&opened, 0, json!({"city": "Oslo"})).await.unwrap_err();
    assert_eq!(error, failure("The MCP server asks its client too much."));
    assert!(site.seen().len() < 30);
}

#[tokio::test]
async fn a_tool_that_is_named_like_a_secret_is_left_out_without_its_name() {
    let names = [KEY.to_owned(), format!("x.{KEY}"), "plan a/b".to_owned(), "plan_a_b".to_owned()];
    let mut listed: Vec<_> = names.iter().map(|name| tool(name)).collect();
    listed.push(json!({"name": KEY, "inputSchema": []}));
    listed.push(tool("read"));
    let site = Site::new(stateless(listed.into(), |seen| answer(seen, &said("")))).await;
    let headers = json!({"Authorization": format!("Bearer {KEY}"), "X-Plan": "plan a/b"});
    let opened = open(Mcp, json!({"url": site.base, "headers": headers})).await;
    let functions = opened.tool.functions();
    assert_eq!(functions.len(), 1);
    assert_eq!(functions[0].spec.name, "my_tool_read");
    let told = format!("{:?}", functions[0].spec);
    assert!(told.contains("its name holds a secret"), "{told}");
    assert!(!told.contains(KEY) && !told.contains("a/b") && !told.contains("a_b"), "{told}");
}

#[tokio::test]
async fn a_list_is_not_followed_beyond_its_bytes() {
    let pad = "[".repeat(90) + &"]".repeat(90);
    let pad = format!("[{}0]", format!("{pad},").repeat(3_000));
    let pad: Value = serde_json::from_str(&pad).unwrap();
    let site = Site::new(move |seen: &Seen| match method(seen).as_str() {
        "tools/list" => {
            let large = json!({"name": "large", "inputSchema": {"type": "object", "x": pad}});
            answer(seen, &json!({"tools": [large, tool("read")], "nextCursor": "again"}))
        }
        _ => stateless(json!([]), |seen| answer(seen, &said("")))(seen),
    })
    .await;
    let opened = open(Mcp, metadata(&site)).await;
    assert_eq!(opened.tool.functions().len(), 1);
    let told = &opened.tool.functions()[0].spec.description;
    assert!(told.contains("`large` (its schema is too deep)"), "{told}");
    assert_eq!(site.seen().iter().filter(|seen| method(seen) == "tools/list").count(), 2);
}

#[tokio::test]
async fn a_server_that_could_not_say_what_it_offers_is_let_be_for_a_while() {
    let site = Site::new(|_| text(500, "no")).await;
    let toolbox = toolbox("127.0.0.0/8");
    let mut tool = stored(Mcp, "My tool", metadata(&site));
    let mut asked = 0;
    for _ in 0..3 {
        let opened = toolbox.open(&tool, soon()).await;
        let error = call(&opened, 0, json!({})).await.unwrap_err();
        assert_eq!(error, failure("The MCP server failed (status 500); try again later."));
        if asked == 0 {
            asked = site.seen().len();
        }
        assert_eq!(site.seen().len(), asked, "it is not asked again");
    }
    // Its owner has changed it.
    tool.updated_at = lectern_shared::clock::Timestamp::from_micros(1);
    toolbox.open(&tool, soon()).await;
    assert!(site.seen().len() > asked);
}
