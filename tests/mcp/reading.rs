//! Finding and reading documents, and adding one.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{
    Revision, agent_with_text, assert_told, call, json_of, post, request, response, result, tools_of,
    with_api_token,
};
use crate::support::{
    client::{id, send},
    command::upload,
    in_both_modes,
    pdf::pdf_with_pages,
    service::{Mode, Service},
};

in_both_modes!(
    a_client_of_either_revision_is_told_what_the_server_is,
    what_is_found_can_be_read_with_what_stands_around_it,
    a_passage_comes_with_the_page_that_it_is_on,
    a_long_document_is_read_in_parts,
    documents_are_listed_page_by_page,
    what_is_added_can_be_found,
    documents_are_resources,
    a_thousand_calls_leave_nothing_behind,
);

const RULES: &str = "The harbour gate opens at half past six. The cellar is locked at night.";

async fn a_client_of_either_revision_is_told_what_the_server_is(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let params = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        let message = json!({ "jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params });
        let answer = response(post(&ada, &message)).await;
        assert_eq!(answer["id"], "a");
        let told = &answer["result"];
        assert_eq!(told["protocolVersion"], version, "{answer:#}");
        assert_eq!(told["serverInfo"]["name"], "lectern");
        assert!(told["capabilities"]["tools"].is_object() && told["capabilities"]["resources"].is_object());
        assert!(told["instructions"].as_str().expect("instructions").contains("ask_agent"));
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let answer = send(post(&ada, &ready).header("MCP-Protocol-Version", version)).await;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
    }
    let discovered = result(&ada, Revision::Stateless, "server/discover", json!({})).await;
    let versions = discovered["supportedVersions"].as_array().expect("versions");
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")));
    // The newest of the handshake is offered to whoever asks for one that nobody knows.
    let params = json!({ "protocolVersion": "2099-01-01", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    assert_eq!(response(post(&ada, &message)).await["result"]["protocolVersion"], "2025-11-25");
}

async fn what_is_found_can_be_read_with_what_stands_around_it(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let sentences: Vec<String> =
        (0..12).map(|number| format!("Rule {number} is about the word{number} alone.")).collect();
    let splitter = json!({ "type": "character", "chunk_size": 40, "chunk_overlap": 0 });
    let body =
        json!({ "name": "Rules", "type": "TXT", "content": sentences.join("\n\n"), "splitter": splitter });
    let document = id(&ada.ingest(&body).await).to_owned();
    for revision in Revision::BOTH {
        let found = json_of(&call(&ada, revision, "search", &json!({ "query": "word6", "limit": 1 })).await);
        assert_eq!(found.as_object().expect("an object").len(), 1, "{found:#}");
        let results = found["results"].as_array().expect("results");
        assert_eq!(results.len(), 1, "{found:#}");
        let keys: Vec<&String> = results[0].as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["id", "title", "url"], "nothing else: {found:#}");
        assert_eq!(results[0]["id"], format!("{document}:6"));
        assert!(results[0]["url"].as_str().expect("a link").starts_with(&service.base_url()), "{found:#}");

        let read = json_of(&call(&ada, revision, "fetch", &json!({ "id": results[0]["id"] })).await);
        let keys: Vec<&String> = read.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["id", "title", "text", "url", "metadata"], "{read:#}");
        let around = |number: usize| read["text"].as_str().expect("a text").contains(&sentences[number]);
        assert!((4..=8).all(around) && !around(3) && !around(9), "two on each side: {read:#}");
        let first = json_of(&call(&ada, revision, "fetch", &json!({ "id": format!("{document}:0") })).await);
        assert!(first["text"].as_str().expect("a text").trim_end().ends_with(&sentences[2]), "{first:#}");
        let whole = json_of(&call(&ada, revision, "fetch", &json!({ "id": document })).await);
        assert_eq!(
            (&whole["text"], &whole["metadata"]["next"]),
            (&json!(sentences.join("\n\n")), &Value::Null)
        );
    }
    for unknown in
        [format!("{document}:99"), "nothing".to_owned(), "019a8f3e-6c41-7a90-b2d7-3e5f7a9b1c2d".to_owned()]
    {
        let refused = call(&ada, Revision::Stateless, "fetch", &json!({ "id": unknown })).await;
        assert_told(&refused, "There is no such");
    }
    for (arguments, wrong) in [
        (json!({}), "`query` is required"),
        (json!({ "query": " " }), "`query` must not be blanks only"),
        (json!({ "query": "x", "limit": 21 }), "`limit` must be a whole number between 1 and 20"),
        (json!({ "query": 5, "limit": "x" }), "`query` must be a string; `limit`"),
    ] {
        assert_told(&call(&ada, Revision::Handshake, "search", &arguments).await, wrong);
    }
}

async fn a_passage_comes_with_the_page_that_it_is_on(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let made = upload(&ada, "report.pdf", &pdf_with_pages(&["Rates are in the table on this page."])).await;
    let report = id(&ada.wait_until_ingested(id(&made)).await).to_owned();
    let note =
        id(&ada.ingest(&json!({ "name": "Note", "type": "TXT", "content": "No page." })).await).to_owned();
    let fetched = async |document: &str| {
        let arguments = json!({ "id": format!("{document}:0"), "image": true });
        let result = call(&ada, Revision::Stateless, "fetch", &arguments).await;
        assert_eq!(result["isError"], false, "{result:#}");
        result["content"].as_array().expect("content").clone()
    };
    let [text, image] = &fetched(&report).await[..] else { panic!("two parts") };
    assert!(text["text"].as_str().expect("a text").contains("table on this page"), "{text:#}");
    assert_eq!((&image["type"], &image["mimeType"]), (&json!("image"), &json!("image/png")));
    // The beginning of a PNG in base64.
    assert!(image["data"].as_str().expect("data").starts_with("iVBORw0KGgo"), "{image:#}");
    let [_, told] = &fetched(&note).await[..] else { panic!("two parts") };
    assert!(told["text"].as_str().expect("a text").contains("no image"), "{told:#}");
}

async fn a_long_document_is_read_in_parts(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let text: Vec<String> = (0..9_000).map(|number| format!("word{number}")).collect();
    let text = text.join(" ");
    let (_, document) = agent_with_text(&ada, &text).await;
    let (mut read, mut next) = (String::new(), json!(document));
    let mut parts = 0;
    while !next.is_null() {
        let part = json_of(&call(&ada, Revision::Stateless, "fetch", &json!({ "id": next })).await);
        let part_text = part["text"].as_str().expect("a text");
        assert!(part_text.chars().count() <= 51_000, "{}", part_text.len());
        // What a part repeats of the one before is not looked for here: every word has to come.
        read.push(' ');
        read.push_str(part_text);
        next = part["metadata"]["next"].clone();
        parts += 1;
    }
    assert!(parts >= 2, "{parts}");
    let words: std::collections::HashSet<&str> = read.split_whitespace().collect();
    let missing = text.split(' ').filter(|word| !words.contains(word)).count();
    assert_eq!(missing, 0);
}

async fn documents_are_listed_page_by_page(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    for name in ["One", "Two", "Three"] {
        ada.ingest(&json!({ "name": name, "type": "TXT", "content": name })).await;
    }
    let first = call(&ada, Revision::Stateless, "list_documents", &json!({ "limit": 2 })).await;
    let listed = &first["structuredContent"];
    assert_eq!(
        (&listed["documents"][0]["name"], &listed["documents"][1]["name"]),
        (&json!("Three"), &json!("Two"))
    );
    assert_eq!(listed["documents"][0]["status"], "SUCCEEDED");
    assert_eq!(&json_of(&first), listed, "for clients that read the text");
    let rest = json!({ "limit": 2, "cursor": listed["nextCursor"] });
    let rest = call(&ada, Revision::Handshake, "list_documents", &rest).await["structuredContent"].take();
    assert_eq!((&rest["documents"][0]["name"], rest.get("nextCursor")), (&json!("One"), None), "{rest:#}");
    let wrong = call(&ada, Revision::Handshake, "list_documents", &json!({ "cursor": "x" })).await;
    assert_told(&wrong, "`cursor` must be the nextCursor of an earlier answer");
}

async fn what_is_added_can_be_found(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let collection = ada.create("/collections", &json!({ "name": "Sea" })).await;
    let body = json!({ "name": "Light", "text": "Ottilie keeps the lighthouse.", "collectionIds": [id(&collection)] });
    let added = call(&ada, Revision::Stateless, "add_document", &body).await["structuredContent"].take();
    assert_eq!(added["name"], "Light", "{added:#}");
    let document = ada.wait_until_ingested(id(&added)).await;
    assert_eq!(document["collectionIds"], json!([id(&collection)]), "{document:#}");
    let found = call(&ada, Revision::Stateless, "search", &json!({ "query": "lighthouse" })).await;
    assert_eq!(json_of(&found)["results"][0]["title"], "Light");
    for (body, wrong) in [
        (json!({ "name": "Light" }), "`text` or `url` has to be given"),
        (json!({ "name": "Light", "text": "a", "url": "https://example.com" }), "and not both"),
        (json!({ "text": "a" }), "`name` is required"),
        (json!({ "name": "Light", "url": "ftp://example.com" }), "`url` must begin with http"),
        (json!({ "name": "Light", "text": "a", "collectionIds": ["x"] }), "There is no such collection"),
    ] {
        assert_told(&call(&ada, Revision::Handshake, "add_document", &body).await, wrong);
    }
}

async fn documents_are_resources(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let (_, document) = agent_with_text(&ada, RULES).await;
    let uri = format!("lectern://documents/{document}");
    for revision in Revision::BOTH {
        let listed = result(&ada, revision, "resources/list", json!({})).await;
        assert_eq!(
            (&listed["resources"][0]["uri"], &listed["resources"][0]["name"]),
            (&json!(uri), &json!("Rules"))
        );
        assert_eq!(listed.get("nextCursor"), None);
        let templates = result(&ada, revision, "resources/templates/list", json!({})).await;
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "lectern://documents/{id}");
        let read = result(&ada, revision, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(
            (&read["contents"][0]["text"], &read["contents"][0]["mimeType"]),
            (&json!(RULES), &json!("text/plain"))
        );
        for unknown in [
            "lectern://documents/019a8f3e-6c41-7a90-b2d7-3e5f7a9b1c2d",
            "lectern://documents/x",
            "file:///etc/passwd",
        ] {
            let refused =
                response(request(&ada, revision, "resources/read", json!({ "uri": unknown }))).await;
            let code = if revision == Revision::Handshake { -32_002 } else { -32_602 };
            assert_eq!(
                (&refused["error"]["code"], &refused["error"]["data"]["uri"]),
                (&json!(code), &json!(unknown))
            );
        }
    }
    let asker = with_api_token(&ada, json!({ "role": "asker" })).await;
    let listed = result(&asker, Revision::Stateless, "resources/list", json!({})).await;
    assert_eq!(listed["resources"], json!([]));
    let refused =
        response(request(&asker, Revision::Stateless, "resources/read", json!({ "uri": uri }))).await;
    assert!(refused["error"]["message"].as_str().expect("words").contains("editor"), "{refused:#}");
}

async fn a_thousand_calls_leave_nothing_behind(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    agent_with_text(&ada, RULES).await;
    let round = async |calls: usize| {
        for at in 0..calls {
            let revision = Revision::BOTH[at % 2];
            let found = call(&ada, revision, "search", &json!({ "query": "harbour gate" })).await;
            assert_eq!(json_of(&found)["results"].as_array().expect("results").len(), 1);
        }
        assert_eq!(tools_of(&ada, Revision::Stateless).await.len(), 6);
    };
    // What is filled once, is.
    round(200).await;
    let before = service.rss_bytes();
    round(1_000).await;
    let grown = service.rss_bytes().saturating_sub(before);
    // A session, or a task for each call that stays, holds tens of kilobytes.
    assert!(grown < 24 << 20, "{grown} bytes more after a thousand calls");
}
