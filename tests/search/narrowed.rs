//! Searches of some documents only: of those that are named, linked, or described by their metadata, and of one's own.

use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ask, each, names, note, search};
use crate::support::{
    client::{Client, data, id},
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(
    a_search_is_of_the_documents_that_are_named_or_linked,
    a_filter_is_met_by_documents_with_one_of_the_values_of_each_key,
    a_change_of_metadata_counts_at_once,
    nothing_of_another_user_is_found
);

const NOTHING: [&str; 0] = [];

async fn a_search_is_of_the_documents_that_are_named_or_linked(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let mut ids = Vec::new();
    for name in ["north", "south", "east"] {
        let document = client.ingest(&note(name, &format!("The {name} gate opens at nine."))).await;
        ids.push(id(&document).to_owned());
    }
    let [north, south, east] = &ids[..] else { panic!("three documents") };
    let agent = async |documents: &[&String]| {
        let agent = client.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await;
        for document in documents {
            client.link(id(&agent), document).await;
        }
        id(&agent).to_owned()
    };
    let (of_two, of_none) = (agent(&[north, south]).await, agent(&[]).await);
    for (body, expected) in [
        (json!({}), &["east", "north", "south"][..]),
        (json!({ "documentIds": null, "agentId": null, "filter": null }), &["east", "north", "south"]),
        (json!({ "documentIds": [east] }), &["east"]),
        (json!({ "documentIds": [east, north, east] }), &["east", "north"]),
        (json!({ "documentIds": vec![south; 1_000] }), &["south"]),
        (json!({ "documentIds": [] }), &NOTHING),
        (json!({ "agentId": of_two }), &["north", "south"]),
        (json!({ "agentId": of_none }), &NOTHING),
        (json!({ "agentId": of_two, "documentIds": [north, east] }), &["north"]),
        (json!({ "agentId": of_two, "documentIds": [east] }), &NOTHING),
        (json!({ "agentId": of_none, "documentIds": [east] }), &NOTHING),
    ] {
        let mut whole = json!({ "query": "When does the gate open?" });
        for (field, value) in body.as_object().expect("an object") {
            whole[field] = value.clone();
        }
        assert_eq!(names(&search(&client, whole).await), expected, "{body}");
    }

    let nobodys = Uuid::now_v7().to_string();
    for (body, noun) in [
        (json!({ "documentIds": [nobodys] }), "document"),
        (json!({ "documentIds": [north, nobodys] }), "document"),
        (json!({ "documentIds": [north, "gate"] }), "document"),
        (json!({ "documentIds": [of_two] }), "document"),
        (json!({ "documentIds": [nobodys], "agentId": of_two }), "document"),
        (json!({ "agentId": nobodys }), "agent"),
        (json!({ "agentId": "" }), "agent"),
        (json!({ "agentId": north }), "agent"),
        (json!({ "agentId": nobodys, "documentIds": [north] }), "agent"),
    ] {
        let mut whole = body.clone();
        whole["query"] = json!("gate");
        let (status, refusal) = client.post("/search", &whole).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{body}: {refusal:#}");
        assert_eq!(refusal["error"]["message"], format!("There is no such {noun}."), "{body}");
    }

    data(client.delete(&format!("/documents/{south}")).await);
    assert_eq!(names(&search(&client, json!({ "query": "gate", "agentId": of_two })).await), ["north"]);
    let (status, _) = client.post("/search", &json!({ "query": "gate", "documentIds": [south] })).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "a deleted document is unknown");
}

/// Documents with these metadata, by their names.
async fn described(client: &Client, documents: &[(&str, Value)]) {
    for (name, metadata) in documents {
        let mut body = note(name, &format!("The {name} gate opens at nine."));
        body["metadata"] = metadata.clone();
        client.ingest(&body).await;
    }
}

async fn filtered(client: &Client, filter: &Value) -> Vec<String> {
    let found = search(client, json!({ "query": "gate", "filter": filter, "limit": 50 })).await;
    names(&found).into_iter().map(str::to_owned).collect()
}

async fn a_filter_is_met_by_documents_with_one_of_the_values_of_each_key(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    described(
        &client,
        &[
            ("a", json!({ "team": "legal", "year": 2024, "open": true, "tags": ["wood", "old"] })),
            ("b", json!({ "team": "Legal", "year": 2025.0, "open": false, "tags": [] })),
            ("c", json!({ "team": ["legal", "sales"], "year": "2024", "open": null, "tags": "wood" })),
            ("d", json!({ "year": [2023, 2024.5], "nested": { "team": "legal" }, "größe": "1 m", "a.b": 1 })),
            ("e", Value::Null),
        ],
    )
    .await;
    for (filter, expected) in [
        (json!({}), &["a", "b", "c", "d", "e"][..]),
        (json!({ "team": "legal" }), &["a", "c"]),
        (json!({ "team": ["sales", "Legal"] }), &["b", "c"]),
        (json!({ "team": "leg" }), &NOTHING),
        (json!({ "year": 2024 }), &["a"]),
        (json!({ "year": 2024.0 }), &["a"]),
        (json!({ "year": 2025 }), &["b"]),
        (json!({ "year": "2024" }), &["c"]),
        (json!({ "year": [2024.5, 2025, "2024"] }), &["b", "c", "d"]),
        (json!({ "open": true }), &["a"]),
        (json!({ "open": [true, false] }), &["a", "b"]),
        (json!({ "open": "true" }), &NOTHING),
        (json!({ "open": 1 }), &NOTHING),
        // What is missing is null.
        (json!({ "open": null }), &["c", "d", "e"]),
        (json!({ "team": [null, "legal"] }), &["a", "c", "d", "e"]),
        (json!({ "tags": "wood" }), &["a", "c"]),
        (json!({ "tags": ["old", "new"] }), &["a"]),
        (json!({ "team": "legal", "year": 2024 }), &["a"]),
        (json!({ "team": "legal", "open": false }), &NOTHING),
        (json!({ "nobody": "has it" }), &NOTHING),
        (json!({ "größe": "1 m" }), &["d"]),
        (json!({ "a.b": 1 }), &["d"]),
        (json!({ "": null, "team": "Legal" }), &["b"]),
    ] {
        assert_eq!(filtered(&client, &filter).await, expected, "{filter}");
    }
    let only = search(&client, json!({ "query": "gate", "filter": { "team": "legal" }, "limit": 1 })).await;
    assert_eq!(only.len(), 1, "what a filter leaves out takes no place in the answer");
}

async fn a_change_of_metadata_counts_at_once(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    described(&client, &[("a", json!({ "version": 0 })), ("b", json!({ "version": 0 }))]).await;
    let found = ask(&client, "gate").await;
    let of_a = found.iter().find(|passage| passage["documentName"] == "a").expect("a is found");
    let path = format!("/documents/{}", of_a["documentId"].as_str().expect("an id"));
    let before = client.read(&path).await;
    for version in 1..=20 {
        data(client.patch(&path, &json!({ "metadata": { "version": version } })).await);
        assert_eq!(filtered(&client, &json!({ "version": version })).await, ["a"]);
        assert_eq!(
            filtered(&client, &json!({ "version": version - 1 })).await,
            &["b"][usize::from(version > 1)..]
        );
    }
    data(client.patch(&path, &json!({ "metadata": null })).await);
    assert_eq!(filtered(&client, &json!({ "version": null })).await, ["a"]);
    let after = client.read(&path).await;
    assert_eq!(after["index"], before["index"], "nothing was ingested again for it");
}

async fn nothing_of_another_user_is_found(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let hers = ada.ingest(&note("Ada's", "The zephyrine valve opens at 73 degrees.")).await;
    let shared = "The east gate opens at nine.";
    let same_of_ada = ada.ingest(&note("the same", shared)).await;
    let same_of_grace = grace.ingest(&note("the same", shared)).await;
    let agent = ada.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await;
    ada.link(id(&agent), id(&hers)).await;

    assert_eq!(names(&ask(&ada, "zephyrine valve").await), ["Ada's"]);
    assert_eq!(names(&ask(&grace, "zephyrine valve").await), NOTHING);
    assert_eq!(each(&ask(&grace, "east gate").await, "documentId"), [id(&same_of_grace)]);
    for body in [
        json!({ "query": "zephyrine valve", "documentIds": [id(&hers)] }),
        json!({ "query": "gate", "documentIds": [id(&same_of_grace), id(&same_of_ada)] }),
        json!({ "query": "gate", "agentId": id(&agent) }),
        json!({ "query": "gate", "agentId": id(&agent), "documentIds": [id(&same_of_grace)] }),
    ] {
        let (status, refusal) = grace.post("/search", &body).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{body}: {refusal:#}");
    }
    let (status, _) = grace.signed_out().post("/search", &json!({ "query": "gate" })).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}
