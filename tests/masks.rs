//! What is stored and never shown is sent to no host that it was not given for: whoever may change an agent, a tool or a document
//! could read it there.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    agents::{changes::key_sent, with},
    bodies::Refused,
    documents::change,
    support::{
        client::{data, id},
        in_both_modes,
        model::{API_KEY, Model},
        service::{Mode, Service},
        web::Web,
    },
};

in_both_modes!(
    the_masked_key_of_an_agent_goes_to_no_other_host,
    the_masked_secret_of_a_tool_goes_to_no_other_host,
    the_authorization_of_a_document_goes_to_no_other_host
);

const KEY: &str = "BSA-0123456789abcdefx7Qd";

async fn the_masked_key_of_an_agent_goes_to_no_other_host(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (model, other) = (Model::start().await, Model::start().await);
    let body = json!({ "name": "Clerk", "type": "CHATVENDOR", "llm": model.llm("m") });
    let agent = ada.create_agent(&body).await;
    let (path, read) = (&format!("/agents/{}", id(&agent)), agent["llm"].clone());
    for elsewhere in [
        json!({ "base_url": other.base_url() }),
        json!({ "base_url": model.base_url().replace("http://", "https://") }),
        json!({ "base_url": "https://models.example/v1" }),
        json!({ "provider": "openai" }),
        json!({ "provider": "openai", "base_url": null }),
    ] {
        let llm = with(&read, &elsewhere);
        let refused = Refused::by(ada.patch(path, &json!({ "llm": llm })).await);
        assert_eq!(refused.paths(), ["llm.api_key"], "{elsewhere}");
        assert!(refused.message("llm.api_key").contains("the key itself"), "{refused:?}");
        assert_eq!(ada.read(path).await["llm"], read, "{elsewhere}");
    }
    // Another path of the same host.
    let other_path = model.base_url().trim_end_matches('/').to_owned();
    let same_host = with(&read, &json!({ "base_url": other_path }));
    assert_eq!(data(ada.patch(path, &json!({ "llm": same_host })).await)["llm"]["api_key"], read["api_key"]);
    assert_eq!(key_sent(&ada, &model, &agent).await.as_deref(), Some(API_KEY));
    // Elsewhere without a key, and then with one.
    let mut keyless = with(&read, &json!({ "base_url": other.base_url() }));
    keyless.as_object_mut().expect("an object").remove("api_key");
    data(ada.patch(path, &json!({ "llm": keyless })).await);
    assert_eq!(key_sent(&ada, &other, &agent).await, None);
    let own = with(&keyless, &json!({ "api_key": "sk-test-aaaabbbbccccdddd" }));
    data(ada.patch(path, &json!({ "llm": own })).await);
    assert_eq!(key_sent(&ada, &other, &agent).await.as_deref(), Some("sk-test-aaaabbbbccccdddd"));
}

async fn the_masked_secret_of_a_tool_goes_to_no_other_host(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let open_api =
        json!({"openApiUrl": "https://api.example.com/openapi.json", "headers": {"X-A": KEY, "X-B": KEY}});
    for (r#type, metadata, elsewhere, same, fields) in [
        (
            "SEARCH",
            json!({"provider": "brave", "api_key": KEY}),
            vec![json!({"provider": "tavily"}), json!({"base_url": "https://brave.example"})],
            json!({"base_url": "https://api.search.brave.com/v2"}),
            &["metadata.api_key"][..],
        ),
        (
            "COMPUTE_ALPHA",
            json!({"app_id": KEY, "base_url": "https://compute.example"}),
            vec![
                json!({"base_url": "http://compute.example"}),
                json!({"base_url": "https://compute.example:444"}),
            ],
            json!({"base_url": "https://compute.example/api"}),
            &["metadata.app_id"],
        ),
        (
            "AUTOMATION_NLA",
            json!({"automation_nla_api_key": KEY}),
            vec![json!({"base_url": "https://actions.example"})],
            json!({"timeout": 3}),
            &["metadata.automation_nla_api_key"],
        ),
        (
            "OPENAPI",
            open_api,
            vec![
                json!({"openApiUrl": "https://other.example/o.json"}),
                json!({"base_url": "https://other.example"}),
            ],
            json!({"openApiUrl": "https://api.example.com/v2.json"}),
            &["metadata.headers.X-A", "metadata.headers.X-B"],
        ),
        (
            "MCP",
            json!({"url": "https://mcp.example.com/mcp", "headers": {"X-A": KEY}}),
            vec![json!({"url": "https://other.example/mcp"}), json!({"url": "http://mcp.example.com/mcp"})],
            json!({"url": "https://mcp.example.com/v2"}),
            &["metadata.headers.X-A"],
        ),
    ] {
        let tool = json!({"name": "tool", "type": r#type, "metadata": metadata});
        let made = client.create("/tools", &tool).await;
        let path = format!("/tools/{}", id(&made));
        let with = |change: &Value| {
            let mut metadata = made["metadata"].clone();
            let changes = change.as_object().expect("an object").clone();
            metadata.as_object_mut().expect("an object").extend(changes);
            metadata
        };
        for change in elsewhere {
            let refused = Refused::by(client.patch(&path, &json!({"metadata": with(&change)})).await);
            assert_eq!(refused.paths(), fields, "{change}");
            assert_eq!(client.read(&path).await, made);
        }
        let kept = with(&same);
        let (status, answer) = client.patch(&path, &json!({"metadata": kept})).await;
        assert_eq!((status, &answer["data"]["metadata"]), (StatusCode::OK, &kept), "{answer:#}");
    }
    // With the secret itself it may go anywhere.
    let made = client
        .create(
            "/tools",
            &json!({"name": "web", "type": "SEARCH", "metadata": {"provider": "brave", "api_key": KEY}}),
        )
        .await;
    let moved =
        json!({"metadata": {"provider": "tavily", "api_key": KEY, "base_url": "https://tavily.example"}});
    assert_eq!(client.patch(&format!("/tools/{}", id(&made)), &moved).await.0, StatusCode::OK);
}

async fn the_authorization_of_a_document_goes_to_no_other_host(mode: Mode) {
    const HERE: &str = "tok-of-this-host-0123456789";
    const THERE: &str = "tok-of-the-other-host-0123456789";
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (web, other) = (Web::start().await, Web::start().await);
    let url = web.serve("/a.txt", "text/plain", "The first text.");
    let beside = web.serve("/b.txt", "text/plain", "The second text.");
    let elsewhere = other.serve("/c.txt", "text/plain", "The third text.");
    let bearer = |token: &str| json!({ "type": "bearer", "token": token });
    let body = json!({ "name": "A", "type": "TXT", "url": url, "authorization": bearer(HERE) });
    let document = ada.ingest(&body).await;
    let path = format!("/documents/{}", id(&document));
    let refused = async || {
        let answer = ada.patch(&path, &json!({ "url": elsewhere })).await;
        assert_eq!(Refused::by(answer).paths(), ["authorization"]);
    };
    refused().await;
    change(&ada, &document, &json!({ "url": beside }), true).await;
    assert_eq!(web.requests("/b.txt")[0].header("authorization"), Some(format!("Bearer {HERE}").as_str()));
    // A text in between does not make it anybody's: it is forgotten with the address.
    let read = ada.read(&path).await;
    assert_eq!(read["hasAuthorization"], true, "{read:#}");
    let inline = change(&ada, &read, &json!({ "content": "A text." }), true).await;
    assert_eq!(inline["hasAuthorization"], false, "{inline:#}");
    let open = change(&ada, &inline, &json!({ "url": elsewhere }), true).await;
    let inline = change(&ada, &open, &json!({ "content": "A text." }), true).await;
    let own = change(&ada, &inline, &json!({ "url": elsewhere, "authorization": bearer(THERE) }), true).await;
    let sent: Vec<_> =
        other.requests("/c.txt").iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    assert_eq!(sent, [None, Some(format!("Bearer {THERE}"))]);
    change(&ada, &own, &json!({ "url": url, "authorization": null }), true).await;
    assert_eq!(web.requests("/a.txt").last().expect("a request").header("authorization"), None);
    service.assert_no_secret_in_logs(&[HERE, THERE]);
}
