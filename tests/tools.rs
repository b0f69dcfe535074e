//! Tools, their configurations, and which agents have them.

use std::path::Path;

use lectern_shared::secrets::hex;
use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use crate::support::{
    client::{Client, id},
    command::{lectern, meddle},
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(
    a_tool_is_made_read_changed_and_deleted,
    every_type_takes_its_configuration_and_whatever_else_is_in_it,
    a_wrong_configuration_is_refused_by_field,
    secrets_come_back_masked_and_stay_when_the_mask_does,
    a_mask_that_stands_for_nothing_is_refused,
    no_stored_secret_can_be_read_in_the_database,
    an_address_from_before_they_were_encrypted_goes_on_working,
    a_tool_asks_an_agent_of_its_owner_alone,
    an_agent_and_a_tool_are_linked_once,
    agents_cannot_come_to_ask_themselves,
    of_two_links_that_close_a_circle_together_one_is_refused,
    of_two_changes_that_close_a_circle_together_one_is_refused
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
    assert_eq!(made["metadata"], json!({"provider": "brave", "api_key": "BS…x7Qd"}));
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
        (json!({"returnDirect": null}), "returnDirect"),
        (json!({"returnDirect": "yes"}), "returnDirect"),
        (json!({"createdAt": made["createdAt"]}), "createdAt"),
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

async fn every_type_takes_its_configuration_and_whatever_else_is_in_it(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let clerk = agent(&client, "Clerk").await;
    let same = json!({});
    for (r#type, metadata, masked) in [
        ("SEARCH", json!({"provider": "searxng", "base_url": "http://127.0.0.1:8888/"}), same.clone()),
        ("SEARCH", json!({"provider": "tavily", "api_key": KEY, "limit": 5}), json!({"api_key": "BS…x7Qd"})),
        ("COMPUTE_ALPHA", json!({"app_id": "ABCDEF-GHIJKLMNOP"}), json!({"app_id": "A…NOP"})),
        ("MODELHOST", json!({"api_key": KEY, "model": "owner/name"}), json!({"api_key": "BS…x7Qd"})),
        (
            "MODELHOST",
            json!({"api_key": "short", "version": "5c7d5dc6", "timeout": 90}),
            json!({"api_key": "…"}),
        ),
        (
            "AUTOMATION_NLA",
            json!({"automation_nla_api_key": KEY, "base_url": "https://nla.example.com/v1"}),
            json!({"automation_nla_api_key": "BS…x7Qd"}),
        ),
        ("AGENT", json!({"agentId": clerk}), same.clone()),
        (
            "OPENAPI",
            json!({
                "openApiUrl": "https://api.example.com/openapi.json?version=3",
                "headers": {"Authorization": "Bearer 0123456789", "X-Short": "1"},
                "operations": ["listPets", "getPet"],
            }),
            json!({"headers": {"Authorization": "B…789", "X-Short": "…"}}),
        ),
        (
            "MCP",
            json!({
                "url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer 0123456789"}, "tools": ["read"],
            }),
            json!({"headers": {"Authorization": "B…789"}}),
        ),
    ] {
        let mut sent = metadata;
        sent["color"] = json!({"any": ["other", 1, true, null]});
        let tool = client.create("/tools", &json!({"name": "a", "type": r#type, "metadata": sent})).await;
        let mut shown = sent;
        for (name, mask) in masked.as_object().expect("an object") {
            shown[name] = mask.clone();
        }
        assert_eq!((&tool["type"], &tool["metadata"]), (&json!(r#type), &shown));
        assert_eq!(client.read(&format!("/tools/{}", id(&tool))).await, tool);
    }
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
        (
            json!({"name": "a", "type": "OPENAPI", "metadata": {
                "openApiUrl": "https://api.example.com/openapi.json",
                "headers": {"Host": "a", "X-Good": "a", "X-Bad": "a\nb", "transfer-encoding": "chunked"},
                "operations": [1],
            }}),
            vec![
                "metadata.headers.Host",
                "metadata.headers.X-Bad",
                "metadata.headers.transfer-encoding",
                "metadata.operations",
            ],
        ),
        (
            json!({"name": "a", "type": "SEARCH", "metadata": {"provider": "serper"}}),
            vec!["metadata.api_key"],
        ),
        (
            json!({"name": "a", "type": "SEARCH", "metadata": {"provider": "searxng"}}),
            vec!["metadata.base_url"],
        ),
        (
            json!({"name": "a", "type": "SEARCH", "metadata": {"provider": "altavista"}}),
            vec!["metadata.provider"],
        ),
        (json!({"name": "a", "type": "COMPUTE_ALPHA", "metadata": {"app_id": " "}}), vec!["metadata.app_id"]),
        (
            json!({"name": "a", "type": "AUTOMATION_NLA", "metadata": {}}),
            vec!["metadata.automation_nla_api_key"],
        ),
        (json!({"name": "a", "type": "AGENT", "metadata": {"agentId": 7}}), vec!["metadata.agentId"]),
        (json!({"name": "a", "type": "MCP", "metadata": {}}), vec!["metadata.url"]),
        (json!({"name": "a", "type": "MCP", "metadata": {"server": "files"}}), vec!["metadata.server"]),
        (
            json!({"name": "a", "type": "COMPUTE_ALPHA", "metadata": {"app_id": "a", "more": "x".repeat(64 * 1024)}}),
            vec!["metadata"],
        ),
    ] {
        let (status, answer) = client.post("/tools", &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:#}");
        assert_eq!(paths(&answer), wrong, "{body}");
    }
    // The published interface's own example.
    let nla = json!({"name": "a", "type": "AUTOMATION_NLA", "metadata": {"automation_nla_api_key": "nla-0123456789"}});
    client.create("/tools", &nla).await;
}

async fn a_tool_asks_an_agent_of_its_owner_alone(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let (clerk, hers) = (agent(&ada, "Clerk").await, agent(&grace, "hers").await);
    let tool = asking(&ada, &clerk).await;
    let path = format!("/tools/{tool}");
    for nobody in ["nobody", "019a8f40-9b1c-7d55-8e02-000000000000", &tool, &hers] {
        let metadata = json!({"agentId": nobody});
        let new = json!({"name": "a", "type": "AGENT", "metadata": metadata});
        let (status, answer) = ada.post("/tools", &new).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{nobody}: {answer:#}");
        let (status, answer) = ada.patch(&path, &json!({"metadata": metadata})).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{nobody}: {answer:#}");
        assert_eq!(ada.read(&path).await["metadata"]["agentId"], json!(clerk));
    }
    for (agent, tool) in [(&hers, &tool), (&clerk, &asking(&grace, &hers).await)] {
        assert_eq!(link(&ada, agent, tool).await.0, StatusCode::NOT_FOUND);
    }

    // The tool outlives its agent, and can be told of another one.
    let (status, _) = ada.delete(&format!("/agents/{clerk}")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(ada.read(&path).await["metadata"]["agentId"], json!(clerk));
    assert_eq!(ada.patch(&path, &json!({"name": "renamed"})).await.0, StatusCode::OK);
    let heir = agent(&ada, "heir").await;
    assert_eq!(ada.patch(&path, &json!({"metadata": {"agentId": heir}})).await.0, StatusCode::OK);
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
    assert_eq!(masked["headers"]["X-Anything"], "t…123");
    assert_eq!(masked["deeper"], json!([{"client_secret": "h…123", "kept": "in sight"}]));

    // Read, changed elsewhere, and sent back.
    let mut sent = masked.clone();
    sent["operations"] = json!(["list"]);
    let (status, kept) = client.patch(&path, &json!({"metadata": sent})).await;
    assert_eq!((status, &kept["data"]["metadata"]), (StatusCode::OK, &sent), "{kept:#}");
    sent["headers"]["X-Anything"] = json!("new-0123456789");
    let (_, changed) = client.patch(&path, &json!({"metadata": sent})).await;
    assert_eq!(changed["data"]["metadata"]["headers"]["X-Anything"], "n…89");
    assert_eq!(changed["data"]["metadata"]["deeper"], masked["deeper"]);
    service.assert_no_secret_in_logs(&secrets);
}

async fn a_mask_that_stands_for_nothing_is_refused(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let refused = |(status, answer): (StatusCode, Value), field: &str| {
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:#}");
        assert_eq!(paths(&answer), [field]);
    };
    let made = client.create("/tools", &search()).await;
    // A tool made as a copy of an answer would not work.
    let copy = json!({"name": "copy", "type": "SEARCH", "metadata": made["metadata"]});
    refused(client.post("/tools", &copy).await, "metadata.api_key");
    let path = format!("/tools/{}", id(&made));
    for (metadata, field) in [
        (json!({"provider": "brave", "api_key": "sk-…0000"}), "metadata.api_key"),
        (
            json!({"provider": "brave", "api_key": "BSA…x7Qd", "other_token": "BSA…x7Qd"}),
            "metadata.other_token",
        ),
        (
            json!({"provider": "brave", "api_key": "BSA…x7Qd", "headers": {"X-A": "…"}}),
            "metadata.headers.X-A",
        ),
    ] {
        refused(client.patch(&path, &json!({"metadata": metadata})).await, field);
        assert_eq!(client.read(&path).await, made);
    }
}

async fn no_stored_secret_can_be_read_in_the_database(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let secrets = [
        "tok-abcdefgh0123",
        "hush-abcdefgh0123",
        "APPID-abcdefgh0123",
        "pass-abcdefgh0123",
        "query-abcdefgh0123",
    ];
    let address = format!("https://api.example.com/openapi.json?key={}", secrets[4]);
    let made = client
        .create(
            "/tools",
            &json!({"name": "in-plain-text", "type": "OPENAPI", "metadata": {
                "openApiUrl": address,
                "headers": {"X-Anything": secrets[0]},
                "deep": [{"CLIENT_SECRET": secrets[1]}, {"app_id": secrets[2]}, {"password": {"of": [secrets[3]]}}],
            }}),
        )
        .await;
    assert_eq!(made["metadata"]["openApiUrl"], address, "whoever may change it sees it");
    // Kept by their masks, and sealed once more.
    let mut metadata = made["metadata"].clone();
    metadata["operations"] = json!(["list"]);
    let (status, changed) =
        client.patch(&format!("/tools/{}", id(&made)), &json!({"metadata": metadata})).await;
    assert_eq!((status, &changed["data"]["metadata"]), (StatusCode::OK, &metadata));

    let stored = match service.sibling().environment().get("DATABASE_URL") {
        Some(url) => rows_of_tools(url.to_str().expect("text")).await,
        None => {
            // So that everything is in the files.
            assert!(service.terminate().await.success());
            every_file(service.data_dir())
        }
    };
    let holds = |text: &str| stored.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("in-plain-text"), "a search that finds nothing proves nothing");
    for secret in secrets {
        assert!(!holds(secret) && !holds(&hex(secret.as_bytes())), "{secret} can be read");
    }
    service.assert_no_secret_in_logs(&secrets);
}

async fn an_address_from_before_they_were_encrypted_goes_on_working(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let metadata = json!({"openApiUrl": "https://api.example.com/openapi.json?key=opens-it"});
    let make = async |name: &str| {
        let tool =
            client.create("/tools", &json!({"name": name, "type": "OPENAPI", "metadata": metadata})).await;
        format!("/tools/{}", id(&tool))
    };
    let [kept, changed] = [make("kept").await, make("changed").await];
    let setup = service.sibling();
    let plain =
        async || meddle(mode, &setup, "UPDATE tools SET name = name WHERE metadata LIKE '%opens-it%'").await;
    assert_eq!(plain().await, 0);
    let before = format!("UPDATE tools SET metadata = '{metadata}', metadata_sealed = NULL");
    assert_eq!(meddle(mode, &setup, &before).await, 2);
    assert_eq!(plain().await, 2);
    let shown = async |path: &str| client.read(path).await["metadata"].clone();
    assert_eq!([shown(&kept).await, shown(&changed).await], [metadata.clone(), metadata.clone()]);
    // Whatever is changed of it.
    let (status, answer) = client.patch(&changed, &json!({"name": "renamed"})).await;
    assert_eq!((status, &answer["data"]["metadata"]), (StatusCode::OK, &metadata), "{answer:#}");
    assert_eq!(plain().await, 1);
    // Those that nobody changes, when the operator has it done.
    let ran = lectern(&setup, &["reencrypt"]).well();
    assert!(ran.out.contains("encrypted under LECTERN_SECRET_KEY: 1\n"), "{ran:#?}");
    assert_eq!(plain().await, 0);
    assert_eq!([shown(&kept).await, shown(&changed).await], [metadata.clone(), metadata]);
    service.assert_no_secret_in_logs(&["opens-it"]);
}

async fn rows_of_tools(url: &str) -> Vec<u8> {
    let mut connection = PgConnection::connect(url).await.expect("the service's database");
    let rows: Vec<String> = sqlx::query_scalar("SELECT CAST(t AS TEXT) FROM tools t")
        .fetch_all(&mut connection)
        .await
        .expect("the tools");
    rows.concat().into_bytes()
}

fn every_file(folder: &Path) -> Vec<u8> {
    let mut everything = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            everything.extend(every_file(&path));
        } else {
            everything.extend(std::fs::read(&path).expect("a file"));
        }
    }
    everything
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
    // So is the tool of the first, which asks the second.
    refused(client.patch(&format!("/tools/{}", tools[1]), &turned).await, "metadata.agentId");
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

async fn of_two_changes_that_close_a_circle_together_one_is_refused(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let apart = agent(&client, "apart").await;
    for round in 0..10 {
        let (one, other) = (agent(&client, "one").await, agent(&client, "other").await);
        let (ones, others) = (asking(&client, &apart).await, asking(&client, &apart).await);
        for (agent, tool) in [(&one, &ones), (&other, &others)] {
            assert_eq!(link(&client, agent, tool).await.0, StatusCode::OK);
        }
        let turn = async |tool: &str, agent: &str| {
            client.patch(&format!("/tools/{tool}"), &json!({"metadata": {"agentId": agent}})).await.0
        };
        let (first, second) = tokio::join!(turn(&ones, &other), turn(&others, &one));
        let ended = [first, second];
        assert!(
            ended.contains(&StatusCode::OK) && ended.contains(&StatusCode::UNPROCESSABLE_ENTITY),
            "round {round}: {ended:?}"
        );
    }
}
