//! Tools, their configurations, and which agents have them.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::client::{Client, id};
use crate::support::in_both_modes;
use crate::support::service::{Mode, Service};

in_both_modes!(
    a_tool_is_made_read_changed_and_deleted,
    a_wrong_configuration_is_refused_by_field,
    secrets_come_back_masked_and_stay_when_the_mask_does,
    an_agent_and_a_tool_are_linked_once,
    agents_cannot_come_to_ask_themselves,
    of_two_links_that_close_a_circle_together_one_is_refused
);

const KEY: &str = "BSA-0123456789abcdefx7Qd";

fn search() -> Value {
    json!({"name": "web", "type": "SEARCH", "metadata": {"provider": "brave", "api_key": KEY}})
}

fn paths(answer: &Value) -> Vec<&str> {
    let fields = answer["error"]["fields"].as_array().expect("fields");
    fields.iter().map(|field| field["path"].as_str().expect("a path")).collect()
}

async fn agent(client: &Client, name: &str) -> String {
    id(&client.create_agent(&json!({"name": name, "type": "REACT"})).await).to_owned()
}

async fn asking(client: &Client, agent: &str) -> String {
    let tool = json!({"name": "ask", "type": "AGENT", "metadata": {"agentId": agent}});
    id(&client.create("/tools", &tool).await).to_owned()
}

async fn link(client: &Client, agent: &str, tool: &str) -> (StatusCode, Value) {
    client.post("/agent-tools", &json!({"agentId": agent, "toolId": tool})).await
}

async fn a_tool_is_made_read_changed_and_deleted(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let made = client.create("/tools", &search()).await;
    assert_eq!(made["metadata"], json!({"provider": "brave", "api_key": "BSA…x7Qd"}));
    assert_eq!((&made["description"], &made["returnDirect"]), (&json!(""), &json!(false)));
    let path = format!("/tools/{}", id(&made));
    assert_eq!(client.read(&path).await, made);
    let second = client.create("/tools", &search()).await;
    assert_eq!(client.read("/tools").await, json!([second, made]), "newest first");

    let change = json!({"name": "the web", "description": "Searches.", "returnDirect": true});
    let (status, changed) = client.patch(&path, &change).await;
    assert_eq!(status, StatusCode::OK, "{changed:#}");
    for (field, value) in change.as_object().expect("an object") {
        assert_eq!(&changed["data"][field], value);
    }
    assert_eq!(changed["data"]["metadata"], made["metadata"]);
    assert_eq!(client.read(&path).await, changed["data"]);
    let (_, emptied) = client.patch(&path, &json!({"description": null})).await;
    assert_eq!(emptied["data"]["description"], "");

    for (body, wrong) in [
        (json!({"type": "AGENT"}), "type"),
        (json!({"id": "x"}), "id"),
        (json!({"userId": "x"}), "userId"),
        (json!({"name": null}), "name"),
        (json!({"metadata": null}), "metadata"),
        (json!({"metadata": {"provider": "brave"}}), "metadata.api_key"),
    ] {
        let (status, answer) = client.patch(&path, &body).await;
        assert_eq!((status, paths(&answer)), (StatusCode::UNPROCESSABLE_ENTITY, vec![wrong]), "{body}");
    }
    let (status, answer) = client.delete(&path).await;
    assert_eq!((status, &answer["data"]), (StatusCode::OK, &Value::Null));
    assert_eq!(client.get(&path).await.0, StatusCode::NOT_FOUND);
    assert_eq!(client.patch(&path, &json!({})).await.0, StatusCode::NOT_FOUND);
    assert_eq!(client.delete(&path).await.0, StatusCode::NOT_FOUND);
}

async fn a_wrong_configuration_is_refused_by_field(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    for (body, wrong) in [
        (json!({"name": "a", "type": "SEARCH"}), vec!["metadata"]),
        (json!({"name": "a", "type": "SEARCH", "metadata": []}), vec!["metadata"]),
        (
            json!({"type": "MODELHOST", "metadata": {"base_url": "gopher://a"}}),
            vec!["name", "metadata.base_url", "metadata.api_key", "metadata.model"],
        ),
        (json!({"name": "a", "type": "HAMMER", "metadata": {}}), vec!["type"]),
        (
            json!({"name": "a", "type": "OPENAPI", "metadata": {"openApiUrl": "a"}}),
            vec!["metadata.openApiUrl"],
        ),
    ] {
        let (status, answer) = client.post("/tools", &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:#}");
        assert_eq!(paths(&answer), wrong, "{body}");
    }
    // The published interface's own example.
    let nla = json!({"name": "a", "type": "AUTOMATION_NLA", "metadata": {"automation_nla_api_key": "nla-0123456789"}});
    client.create("/tools", &nla).await;
    let nobody = json!({"name": "a", "type": "AGENT", "metadata": {"agentId": "nobody"}});
    assert_eq!(client.post("/tools", &nobody).await.0, StatusCode::NOT_FOUND);
    let grace = service.signed_up("grace@example.com").await;
    let hers = agent(&grace, "hers").await;
    let foreign = json!({"name": "a", "type": "AGENT", "metadata": {"agentId": hers}});
    assert_eq!(client.post("/tools", &foreign).await.0, StatusCode::NOT_FOUND);
}

async fn secrets_come_back_masked_and_stay_when_the_mask_does(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let secrets = ["tok-abcdefgh0123", "hush-abcdefgh0123"];
    let tool = json!({"name": "api", "type": "OPENAPI", "metadata": {
        "openApiUrl": "https://api.example.com/openapi.json",
        "headers": {"X-Anything": secrets[0]},
        "deeper": [{"client_secret": secrets[1], "kept": "in sight"}],
    }});
    let made = client.create("/tools", &tool).await;
    let path = format!("/tools/{}", id(&made));
    let masked = made["metadata"].clone();
    assert_eq!(masked["headers"]["X-Anything"], "tok…0123");
    assert_eq!(masked["deeper"], json!([{"client_secret": "hus…0123", "kept": "in sight"}]));

    // Read, changed elsewhere, and sent back.
    let mut sent = masked.clone();
    sent["operations"] = json!(["list"]);
    let (status, kept) = client.patch(&path, &json!({"metadata": sent})).await;
    assert_eq!((status, &kept["data"]["metadata"]), (StatusCode::OK, &sent), "{kept:#}");
    sent["headers"]["X-Anything"] = json!("new-0123456789");
    let (_, changed) = client.patch(&path, &json!({"metadata": sent})).await;
    assert_eq!(changed["data"]["metadata"]["headers"]["X-Anything"], "new…6789");
    assert_eq!(changed["data"]["metadata"]["deeper"], masked["deeper"]);
    service.assert_no_secret_in_logs(&secrets);
}

async fn an_agent_and_a_tool_are_linked_once(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let (one, other) = (agent(&client, "one").await, agent(&client, "other").await);
    let tool = client.create("/tools", &search()).await;
    let (status, linked) = link(&client, &one, id(&tool)).await;
    assert_eq!(status, StatusCode::OK, "{linked:#}");
    let linked = &linked["data"];
    assert_eq!((&linked["agentId"], &linked["toolId"]), (&json!(one), &tool["id"]));
    assert_eq!((&linked["agent"], &linked["tool"]), (&json!({}), &json!({})));
    assert_eq!(&link(&client, &one, id(&tool)).await.1["data"], linked, "the first link");
    let second = link(&client, &other, id(&tool)).await.1["data"].clone();
    assert_eq!(client.read("/agent-tools").await, json!([second, linked]));
    assert_eq!(client.read(&format!("/agent-tools?agentId={one}")).await, json!([linked]));
    let path = format!("/agent-tools/{}", id(linked));
    assert_eq!(&client.read(&path).await, linked);

    for body in [
        json!({"agentId": one, "toolId": one}),
        json!({"agentId": id(&tool), "toolId": id(&tool)}),
        json!({"agentId": "x", "toolId": id(&tool)}),
    ] {
        assert_eq!(client.post("/agent-tools", &body).await.0, StatusCode::NOT_FOUND, "{body}");
    }
    let (status, answer) = client.delete(&path).await;
    assert_eq!((status, &answer["data"]), (StatusCode::OK, &Value::Null));
    assert_eq!(client.get(&path).await.0, StatusCode::NOT_FOUND);
    // The other link goes with the tool.
    client.delete(&format!("/tools/{}", id(&tool))).await;
    assert_eq!(client.read("/agent-tools").await, json!([]));
}

async fn agents_cannot_come_to_ask_themselves(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let mut agents = Vec::new();
    let mut tools = Vec::new();
    for name in ["first", "second", "third"] {
        let agent = agent(&client, name).await;
        tools.push(asking(&client, &agent).await);
        agents.push(agent);
    }
    let refused = |(status, answer): (StatusCode, Value), field: &str| {
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:#}");
        assert_eq!(paths(&answer), [field]);
    };
    refused(link(&client, &agents[0], &tools[0]).await, "toolId");
    assert_eq!(link(&client, &agents[0], &tools[1]).await.0, StatusCode::OK);
    refused(link(&client, &agents[1], &tools[0]).await, "toolId");
    assert_eq!(link(&client, &agents[1], &tools[2]).await.0, StatusCode::OK);
    refused(link(&client, &agents[2], &tools[0]).await, "toolId");
    assert_eq!(link(&client, &agents[0], &tools[2]).await.0, StatusCode::OK, "twice the same is no circle");

    // The tool of the second, which asks the third, is turned to the first.
    let turned = json!({"metadata": {"agentId": agents[0]}});
    refused(client.patch(&format!("/tools/{}", tools[2]), &turned).await, "metadata.agentId");
    assert_eq!(client.read(&format!("/tools/{}", tools[2])).await["metadata"]["agentId"], agents[2]);
    // A tool that nobody has can ask anybody.
    assert_eq!(client.patch(&format!("/tools/{}", tools[0]), &turned).await.0, StatusCode::OK);
}

async fn of_two_links_that_close_a_circle_together_one_is_refused(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    for round in 0..10 {
        let (one, other) = (agent(&client, "one").await, agent(&client, "other").await);
        let (ask_one, ask_other) = (asking(&client, &one).await, asking(&client, &other).await);
        let (first, second) = tokio::join!(link(&client, &one, &ask_other), link(&client, &other, &ask_one));
        let ended = [first.0, second.0];
        assert!(
            ended.contains(&StatusCode::OK) && ended.contains(&StatusCode::UNPROCESSABLE_ENTITY),
            "round {round}: {ended:?}"
        );
    }
}
