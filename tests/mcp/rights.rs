//! Who is let in, and what each may do.

use reqwest::{
    Method, StatusCode,
    header::{HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE},
};
use serde_json::{Value, json};

use super::{
    MCP, Revision, agent_with_text, assert_told, call, post, request, response, tools_of, with_api_token,
};
use crate::support::{
    client::send,
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(
    a_token_is_offered_the_tools_that_it_may_use,
    what_is_anothers_is_unknown,
    without_a_credential_a_client_is_told_how_to_get_in,
    names_and_pages_of_strangers_are_refused,
    a_token_for_pages_answers_its_own_pages,
);

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;

fn list() -> Value {
    serde_json::from_str(LIST).expect("a message")
}

async fn a_token_is_offered_the_tools_that_it_may_use(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (agent, document) = agent_with_text(&ada, "The gate opens at nine.").await;
    let (other, _) = agent_with_text(&ada, "The cellar is locked.").await;
    let editor = with_api_token(&ada, json!({ "role": "editor" })).await;
    let asker = with_api_token(&ada, json!({ "role": "asker" })).await;
    let bound = with_api_token(&ada, json!({ "agentId": agent })).await;
    let all = ["search", "fetch", "ask_agent", "list_agents", "list_documents", "add_document"];
    for revision in Revision::BOTH {
        assert_eq!(tools_of(&editor, revision).await, all);
        for limited in [&asker, &bound] {
            assert_eq!(tools_of(limited, revision).await, ["ask_agent", "list_agents"]);
            for (tool, arguments) in [
                ("search", json!({ "query": "gate" })),
                ("fetch", json!({ "id": document })),
                ("list_documents", json!({})),
                ("add_document", json!({ "name": "a", "text": "b" })),
            ] {
                assert_eq!(call(limited, revision, tool, &arguments).await["isError"], true, "{tool}");
            }
        }
        assert_told(&call(&asker, revision, "search", &json!({ "query": "gate" })).await, "`editor`");
        let asked = json!({ "agent": agent, "question": "When does the gate open?" });
        for limited in [&asker, &bound] {
            assert_eq!(call(limited, revision, "ask_agent", &asked).await["isError"], false);
        }
        let agents = call(&bound, revision, "list_agents", &json!({})).await;
        assert_eq!(agents["structuredContent"]["agents"].as_array().expect("agents").len(), 1, "{agents:#}");
        let asked = json!({ "agent": other, "question": "Well?" });
        assert_told(&call(&bound, revision, "ask_agent", &asked).await, "bound to");
    }
}

async fn what_is_anothers_is_unknown(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let eve = service.signed_up("eve@example.com").await;
    let (agent, document) = agent_with_text(&ada, "The gate opens at nine.").await;
    for (tool, arguments) in [
        ("fetch", json!({ "id": document })),
        ("fetch", json!({ "id": format!("{document}:0") })),
        ("fetch", json!({ "id": format!("{document}:0+") })),
        ("ask_agent", json!({ "agent": agent, "question": "Well?" })),
        ("ask_agent", json!({ "agent": "Clerk", "question": "Well?" })),
    ] {
        assert_told(&call(&eve, Revision::Stateless, tool, &arguments).await, "There is no such");
    }
    let found = call(&eve, Revision::Stateless, "search", &json!({ "query": "gate" })).await;
    assert_eq!(super::json_of(&found), json!({ "results": [] }));
    let read = json!({ "uri": format!("lectern://documents/{document}") });
    let refused = response(request(&eve, Revision::Handshake, "resources/read", read)).await;
    assert_eq!(refused["error"]["code"], -32_002, "{refused:#}");
}

async fn without_a_credential_a_client_is_told_how_to_get_in(mode: Mode) {
    let service =
        Service::in_mode(mode).env("LECTERN_PUBLIC_URL", "https://lectern.example.com").start().await;
    let nobody = service.client();
    for stranger in [nobody.clone(), nobody.with_token("lct_nothing")] {
        let answer = send(post(&stranger, &list())).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        let told = answer.headers()[WWW_AUTHENTICATE].to_str().expect("text").to_owned();
        let metadata = "https://lectern.example.com/.well-known/oauth-protected-resource/mcp";
        assert_eq!(told, format!("Bearer resource_metadata=\"{metadata}\""));
        let body: Value = answer.json().await.expect("JSON");
        assert_eq!(
            (&body["jsonrpc"], &body["error"]["data"]["code"]),
            (&json!("2.0"), &json!("unauthorized"))
        );
    }
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let told: Value = send(nobody.request_outside(Method::GET, path)).await.json().await.expect("JSON");
        assert_eq!(told["resource"], "https://lectern.example.com/mcp", "{told:#}");
        assert_eq!(told["bearer_methods_supported"], json!(["header"]));
        assert_eq!(told.get("authorization_servers"), None, "there is none");
    }
}

async fn names_and_pages_of_strangers_are_refused(mode: Mode) {
    let service = Service::in_mode(mode)
        .env("LECTERN_PUBLIC_URL", "https://lectern.example.com")
        .env("LECTERN_CORS_ORIGINS", "https://chat.example.com")
        .start()
        .await;
    let ada = service.signed_up("ada@example.com").await;
    let refused = async |name: HeaderName, value: &str| {
        let answer = send(post(&ada, &list()).header(name, value)).await;
        let status = answer.status();
        let body: Value = answer.json().await.expect("JSON");
        (status, body["error"]["data"]["code"].as_str().map(str::to_owned))
    };
    // Programs may use any name: that of a service in a cluster, or what a proxy makes of it.
    for host in ["lectern.example.com", "localhost:1", "127.0.0.1", "lectern.default.svc.cluster.local:8080"]
    {
        assert_eq!(refused(HOST, host).await, (StatusCode::OK, None), "{host}");
    }
    for host in ["evil.example", "lectern.example.com.evil.example:443"] {
        let request = post(&ada, &list()).header(HOST, host).header(ORIGIN, format!("http://{host}"));
        let answer = send(request).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{host}");
        let body: Value = answer.json().await.expect("JSON");
        assert_eq!(body["error"]["data"]["code"], "host_refused", "{host}");
    }
    let request = post(&ada, &list()).header(HOST, "lectern.default.svc.cluster.local");
    let answer = send(request.header(ORIGIN, "https://lectern.example.com")).await;
    assert_eq!(answer.status(), StatusCode::OK, "its own page, through a proxy");
    for origin in ["https://lectern.example.com", "https://chat.example.com"] {
        assert_eq!(refused(ORIGIN, origin).await, (StatusCode::OK, None), "{origin}");
    }
    for origin in ["https://evil.example", "null", "http://lectern.example.com"] {
        let expected = (StatusCode::FORBIDDEN, Some("origin_refused".to_owned()));
        assert_eq!(refused(ORIGIN, origin).await, expected, "{origin}");
    }
}

async fn a_token_for_pages_answers_its_own_pages(mode: Mode) {
    let service = Service::in_mode(mode).without("LECTERN_CORS_ORIGINS").start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (agent, _) = agent_with_text(&ada, "The gate opens at nine.").await;
    let fields = json!({ "agentId": agent, "origins": ["https://www.example.com"], "role": "asker" });
    let page = with_api_token(&ada, fields).await;
    for (origin, status) in
        [("https://www.example.com", StatusCode::OK), ("https://evil.example", StatusCode::FORBIDDEN)]
    {
        let answer = send(post(&page, &list()).header(ORIGIN, origin)).await;
        assert_eq!(answer.status(), status, "{origin}");
    }
    let preflight = page.request_outside(Method::OPTIONS, MCP).header(ORIGIN, "https://www.example.com");
    let preflight = preflight.header("Access-Control-Request-Method", "POST");
    let asked = "authorization,content-type,mcp-protocol-version,mcp-method,mcp-name";
    let answer = send(preflight.header("Access-Control-Request-Headers", asked)).await;
    assert_eq!(answer.headers()["access-control-allow-origin"], "https://www.example.com");
    let allowed = answer.headers()["access-control-allow-headers"].to_str().expect("text").to_lowercase();
    assert!(asked.split(',').all(|name| allowed.contains(name)), "{allowed}");
}
