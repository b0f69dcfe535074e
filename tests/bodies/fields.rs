//! Fields that are wrong, each named, and what is taken instead.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{NOWHERE, Refused};
use crate::support::{
    client::{data, id},
    service::Service,
};

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_field_of_a_document_is_named_at_once() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let all_wrong = json!({
        "name": " ", "type": "DOCX", "url": "ftp://example.com/a", "description": 5, "metadata": [],
        "splitter": { "type": "sentence", "chunk_size": 0 }, "authorization": { "type": "bearer" },
    });
    let refused = Refused::by(ada.post("/documents", &all_wrong).await);
    let named = [
        "authorization.token",
        "description",
        "metadata",
        "name",
        "splitter.chunk_size",
        "splitter.type",
        "type",
        "url",
    ];
    assert_eq!(refused.paths(), named);
    for known in ["TXT", "PDF", "VIDEO", "CSV", "URL"] {
        assert!(refused.message("type").contains(known), "{known} is not offered: {refused:?}");
    }

    assert_eq!(Refused::by(ada.post("/documents", &json!({})).await).paths(), ["name", "type", "url"]);
    assert_eq!(ada.read("/documents").await, json!([]), "what is refused is not made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_with_one_wrong_field_is_refused_for_that_field() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let pdf = json!({ "name": "Report", "type": "PDF", "url": NOWHERE });
    let note = json!({ "name": "Note", "type": "TXT", "content": "text" });
    for (base, wrong, named) in [
        (&pdf, json!({ "name": null }), "name"),
        (&pdf, json!({ "name": 7 }), "name"),
        (&pdf, json!({ "name": "x".repeat(1_001) }), "name"),
        (&pdf, json!({ "type": "pdf" }), "type"),
        (&pdf, json!({ "type": 1 }), "type"),
        (&pdf, json!({ "url": "" }), "url"),
        (&pdf, json!({ "url": null }), "url"),
        (&pdf, json!({ "url": "report.pdf" }), "url"),
        (&pdf, json!({ "url": "http://" }), "url"),
        (&pdf, json!({ "url": "file:///etc/passwd" }), "url"),
        (&pdf, json!({ "url": "data:text/plain,hello" }), "url"),
        (&pdf, json!({ "url": "javascript:alert(1)" }), "url"),
        (&pdf, json!({ "url": "https://ada@example.com/report.pdf" }), "url"),
        (&pdf, json!({ "url": "https://ada:secret@example.com/report.pdf" }), "url"),
        (&pdf, json!({ "url": "https://:secret@example.com/report.pdf" }), "url"),
        (&pdf, json!({ "url": format!("{NOWHERE}/{}", "x".repeat(8_000)) }), "url"),
        (&pdf, json!({ "type": "URL", "url": format!("{NOWHERE}, https://") }), "url"),
        (&pdf, json!({ "type": "URL", "url": format!("{NOWHERE}, https://me:secret@example.com") }), "url"),
        (&pdf, json!({ "type": "URL", "url": vec![NOWHERE; 51].join(",") }), "url"),
        (&pdf, json!({ "content": "text" }), "content"),
        (&pdf, json!({ "url": null, "content": "text" }), "content"),
        (&note, json!({ "url": NOWHERE }), "content"),
        (&note, json!({ "type": "URL" }), "content"),
        (&pdf, json!({ "from_page": 0 }), "from_page"),
        (&pdf, json!({ "from_page": "0" }), "from_page"),
        (&pdf, json!({ "from_page": 1.5 }), "from_page"),
        (&pdf, json!({ "from_page": true }), "from_page"),
        (&pdf, json!({ "to_page": -1 }), "to_page"),
        (&pdf, json!({ "to_page": "last" }), "to_page"),
        (&pdf, json!({ "to_page": "" }), "to_page"),
        (&pdf, json!({ "to_page": 99_999_999_999_u64 }), "to_page"),
        (&pdf, json!({ "from_page": 5, "to_page": 4 }), "to_page"),
        (&pdf, json!({ "from_page": "10", "to_page": "9" }), "to_page"),
        (&note, json!({ "metadata": "text" }), "metadata"),
        (&note, json!({ "metadata": ["text"] }), "metadata"),
        (&note, json!({ "splitter": "token" }), "splitter"),
        (&note, json!({ "splitter": [] }), "splitter"),
        (&note, json!({ "splitter": {} }), "splitter.type"),
        (&note, json!({ "splitter": { "type": "SentenceTextSplitter" } }), "splitter.type"),
        (&note, json!({ "splitter": { "type": "TokenTextSplitter", "chunkSize": 1 } }), "splitter.chunkSize"),
        (
            &note,
            json!({ "splitter": { "type": "TokenTextSplitter", "chunkSize": 100, "chunkOverlap": 51 } }),
            "splitter.chunkOverlap",
        ),
        (&note, json!({ "splitter": { "type": "token", "chunk_size": "many" } }), "splitter.chunk_size"),
        (&note, json!({ "splitter": { "type": "token", "chunk_size": 1 } }), "splitter.chunk_size"),
        (&note, json!({ "splitter": { "type": "token", "chunk_size": 1_000_000 } }), "splitter.chunk_size"),
        (
            &note,
            json!({ "splitter": { "type": "token", "chunk_size": 100, "chunk_overlap": 100 } }),
            "splitter.chunk_overlap",
        ),
        (
            &note,
            json!({ "splitter": { "type": "token", "chunk_size": 100, "chunk_overlap": -1 } }),
            "splitter.chunk_overlap",
        ),
        (&pdf, json!({ "url": format!("{NOWHERE}, {NOWHERE}") }), "url"),
        (&note, json!({ "content": null, "url": format!("{NOWHERE} {NOWHERE}") }), "url"),
    ] {
        let body = with(base, &wrong);
        let refused = Refused::by(ada.post("/documents", &body).await);
        assert_eq!(refused.paths(), [named], "{body}");
    }
    assert_eq!(ada.read("/documents").await, json!([]), "what is refused is not made");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorization_that_cannot_be_sent_is_refused_for_what_is_wrong_with_it() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let pdf = json!({ "name": "Report", "type": "PDF", "url": NOWHERE });
    for (wrong, named) in [
        (json!({ "authorization": "Bearer x" }), "authorization"),
        (json!({ "authorization": {} }), "authorization.type"),
        (json!({ "authorization": { "type": "digest" } }), "authorization.type"),
        (json!({ "authorization": { "type": "bearer", "token": 5 } }), "authorization.token"),
        (json!({ "authorization": { "type": "basic" } }), "authorization.username"),
        (json!({ "authorization": { "type": "headers" } }), "authorization.headers"),
        (json!({ "authorization": { "type": "headers", "headers": {} } }), "authorization.headers"),
        (
            json!({ "authorization": { "type": "headers", "headers": { "X-Key": 1 } } }),
            "authorization.headers.X-Key",
        ),
        // What could never be sent is not found out in the background.
        (json!({ "authorization": { "type": "bearer", "token": "abc\n" } }), "authorization.token"),
        (
            json!({ "authorization": { "type": "headers", "headers": { "X Key": "a" } } }),
            "authorization.headers.X Key",
        ),
        (
            json!({ "authorization": { "type": "headers", "headers": { "X-Key": "a\r\nX-Other: b" } } }),
            "authorization.headers.X-Key",
        ),
        (
            json!({ "authorization": { "type": "headers", "headers": { "Host": "a", "X-Key": "b" } } }),
            "authorization.headers.Host",
        ),
        (
            json!({ "authorization": { "type": "headers", "headers": { "Content-Length": "1" } } }),
            "authorization.headers.Content-Length",
        ),
    ] {
        let body = with(&pdf, &wrong);
        let refused = Refused::by(ada.post("/documents", &body).await);
        assert_eq!(refused.paths(), [named], "{body}");
    }
    assert_eq!(ada.read("/documents").await, json!([]), "what is refused is not made");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_of_a_wrong_field_is_what_would_be_right() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let splitter = json!({ "type": "token", "chunk_size": 100, "chunk_overlap": -1 });
    for (wrong, named, words) in [
        (json!({ "splitter": splitter }), "splitter.chunk_overlap", "from 0 to half of chunk_size"),
        (json!({ "content": null, "url": format!("{NOWHERE}, {NOWHERE}") }), "url", "the type URL"),
    ] {
        let body = with(&json!({ "name": "Note", "type": "TXT", "content": "text" }), &wrong);
        let refused = Refused::by(ada.post("/documents", &body).await);
        assert!(refused.message(named).contains(words), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_address_of_several_is_named() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let url = format!("{NOWHERE}, https://, https://me:secret@example.com/, {NOWHERE}");
    let refused =
        Refused::by(ada.post("/documents", &json!({ "name": "A", "type": "URL", "url": url })).await);
    assert_eq!((refused.paths(), refused.0.len()), (vec!["url"], 2), "{refused:?}");
    let messages = format!("{refused:?}");
    assert!(messages.contains("address 2 of 4") && messages.contains("address 3 of 4"), "{messages}");
    assert!(!messages.contains("secret"), "{messages}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_of_the_wrong_type_is_not_said_to_be_missing() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    for (wrong, named) in [(json!({ "url": 5 }), "url"), (json!({ "content": 5 }), "content")] {
        let body = with(&json!({ "name": "Note", "type": "TXT" }), &wrong);
        let refused = Refused::by(ada.post("/documents", &body).await);
        assert_eq!(refused.paths(), [named], "{body}");
        assert_eq!(refused.0.len(), 1, "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_one_wrong_field_one_thing_is_said() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = |llm: Value| json!({ "name": "Clerk", "type": "REACT", "llm": llm });
    for (path, body, named) in [
        ("/agents", agent(json!({ "provider": 5, "model": "any" })), "llm.provider"),
        ("/agents", agent(json!({ "provider": "openai", "model": "any", "base_url": 5 })), "llm.base_url"),
        (
            "/agents",
            agent(json!({ "provider": "openai-compatible", "model": "any", "base_url": 5 })),
            "llm.base_url",
        ),
        ("/api-tokens", json!({ "description": "a", "origins": [5] }), "origins.0"),
        ("/api-tokens", json!({ "description": "a", "origins": [] }), "origins"),
        ("/webhooks", json!({ "url": 5, "events": ["document.failed"] }), "url"),
        ("/tags", json!({ "name": "a", "color": "x".repeat(1_001) }), "color"),
        ("/documents", json!({ "name": "a", "type": "TXT", "url": "x".repeat(20_001) }), "url"),
    ] {
        let refused = Refused::by(ada.post(path, &body).await);
        assert_eq!((refused.paths(), refused.0.len()), (vec![named], 1), "{path} {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_refuses_what_it_does_not_know_wherever_it_stands() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let note = json!({
        "name": "Note", "type": "TXT", "content": "text", "metadata": { "any": { "thing": 1 } },
        "splitter": { "type": "token", "chunk_size": 200, "chunk_overlap": 0, "size": 1 },
    });
    let defaults = json!({ "language": "de", "metadata": { "team": "house" } });
    let site = json!({ "url": "https://example.com/", "include": ["/a/*"], "inlcude": [] });
    let llm = json!({ "provider": "openai", "model": "any", "temperature": 0.5, "temprature": 1 });
    let mut paths = Vec::new();
    // What is made takes no notice of it.
    for (path, body) in [
        ("/documents", note),
        ("/collections", json!({ "name": "House", "defaults": defaults })),
        ("/sources", json!({ "name": "Site", "type": "site", "config": site })),
        ("/agents", json!({ "name": "Clerk", "type": "REACT", "llm": llm })),
    ] {
        paths.push(format!("{path}/{}", id(&ada.create(path, &body).await)));
    }
    let paths: [String; 4] = paths.try_into().expect("one of each");
    let [document, collection, source, agent] = paths;
    ada.wait_until_ingested(document.rsplit('/').next().expect("an id")).await;
    let own = format!("/workspaces/{}", id(ada.user()));
    data(ada.patch(&own, &json!({ "quotas": { "documents": 60 } })).await);

    for (path, change, named) in [
        (&own, json!({ "quotas": { "document": 70 } }), "quotas.document"),
        (&collection, json!({ "defaults": { "langauge": "en" } }), "defaults.langauge"),
        (&source, json!({ "config": { "url": "https://example.com/", "inlcude": [] } }), "config.inlcude"),
    ] {
        let before = ada.read(path).await;
        assert_eq!(Refused::by(ada.patch(path, &change).await).paths(), [named], "{path} {change}");
        assert_eq!(ada.read(path).await, before, "{path} {change}");
    }

    // What was read can be sent back, the old names are known still, and what is free stays so.
    for (path, name) in [(&own, "quotas"), (&collection, "defaults"), (&source, "config"), (&agent, "llm")] {
        let read = ada.read(path).await[name].take();
        assert_eq!(data(ada.patch(path, &json!({ name: read })).await)[name], read, "{path}");
    }
    for change in [
        json!({ "splitter": { "type": "TokenTextSplitter", "chunkSize": 100, "chunkOverlap": 0 } }),
        json!({ "metadata": { "some": { "other": "thing" } } }),
    ] {
        data(ada.patch(&document, &change).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_document_may_be_made_of_is_taken() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let pdf = json!({ "name": "Report", "type": "PDF", "url": NOWHERE });
    let note = json!({ "name": "Note", "type": "TXT", "content": "text" });
    for (base, sent, shown) in [
        (&pdf, json!({ "from_page": 2, "to_page": "3" }), json!({ "from_page": 2, "to_page": 3 })),
        (&pdf, json!({ "from_page": "4", "to_page": 4 }), json!({ "from_page": 4, "to_page": 4 })),
        (&pdf, json!({ "from_page": 2.0, "to_page": 3.0 }), json!({ "from_page": 2, "to_page": 3 })),
        (&pdf, json!({ "to_page": "12" }), json!({ "from_page": null, "to_page": 12 })),
        (&pdf, json!({ "from_page": null, "to_page": null }), json!({ "from_page": null, "to_page": null })),
        (&note, json!({ "from_page": 9, "to_page": "first" }), json!({ "from_page": null, "to_page": null })),
        (&pdf, json!({ "authorization": null, "splitter": null }), json!({ "splitter": null })),
        (&pdf, json!({ "url": format!(" {NOWHERE} ") }), json!({ "url": NOWHERE })),
        (&note, json!({ "url": null }), json!({ "url": "" })),
        (&note, json!({ "url": "" }), json!({ "url": "" })),
        (&note, json!({ "type": "CSV", "content": "a,b\n1,2\n" }), json!({ "type": "CSV" })),
        (&note, json!({ "type": "VIDEO", "content": "WEBVTT\n" }), json!({ "type": "VIDEO", "url": "" })),
        (&pdf, json!({ "type": "URL", "url": format!("{NOWHERE}, {NOWHERE}/2,3\n{NOWHERE}") }), Value::Null),
        (&pdf, json!({ "type": "URL", "url": vec![NOWHERE; 50].join(",") }), Value::Null),
        (&pdf, json!({ "url": format!("{NOWHERE}/1,2,3") }), Value::Null),
        (&note, json!({ "metadata": { "year": 2026, "tags": ["a", null] } }), Value::Null),
        (&note, json!({ "metadata": null }), json!({ "metadata": null })),
        (&note, json!({ "name": "é".repeat(1_000) }), Value::Null),
        (&note, json!({ "description": "what it says" }), Value::Null),
        (&note, json!({ "colour": "green", "ingestion": { "status": "SUCCEEDED" } }), json!({})),
        (
            &note,
            json!({ "splitter": { "type": "token", "chunk_size": "200", "chunk_overlap": "0" } }),
            json!({ "splitter": { "type": "token", "chunk_size": 200, "chunk_overlap": 0 } }),
        ),
        (
            &note,
            json!({ "splitter": { "type": "recursive", "chunk_size": 800, "chunk_overlap": 80 } }),
            Value::Null,
        ),
    ] {
        let body = with(base, &sent);
        let document = ada.create_document(&body).await;
        let shown = if shown.is_null() { sent } else { shown };
        for (field, value) in shown.as_object().expect("an object") {
            assert_eq!(&document[field], value, "{field} after {body}");
        }
        assert_eq!(document.get("colour"), None, "{document:#}");
    }
    for (given, kind, size) in [
        ("recursive", "recursive", 1_600),
        ("character", "character", 1_600),
        ("token", "token", 400),
        ("markdown", "markdown", 1_600),
        ("Token", "token", 400),
        ("RecursiveCharacterTextSplitter", "recursive", 1_600),
        ("recursive_character", "recursive", 1_600),
        ("CharacterTextSplitter", "character", 1_600),
        ("tokentextsplitter", "token", 400),
        ("MarkdownTextSplitter", "markdown", 1_600),
    ] {
        let body = with(&note, &json!({ "splitter": { "type": given } }));
        let overlap = size * 3 / 20;
        assert_eq!(
            ada.create_document(&body).await["splitter"],
            json!({ "type": kind, "chunk_size": size, "chunk_overlap": overlap }),
            "{given}"
        );
    }
    let old =
        json!({ "type": "TokenTextSplitter", "chunkSize": "100", "chunkOverlap": 0, "chunk_size": 200 });
    assert_eq!(
        ada.create_document(&with(&note, &json!({ "splitter": old }))).await["splitter"],
        json!({ "type": "token", "chunk_size": 200, "chunk_overlap": 0 }),
        "today's name wins"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_field_of_an_agent_is_named() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let refused = async |body: Value| Refused::by(ada.post("/agents", &body).await);
    let agent = json!({ "name": "Clerk", "type": "CHATVENDOR" });

    assert_eq!(refused(json!({})).await.paths(), ["name", "type"]);
    let all_wrong = json!({
        "name": "", "type": "OTHER", "description": [], "hasMemory": "yes", "tags": {}, "llm": {
            "provider": "nobody", "base_url": "ftp://example.com/", "temperature": "hot", "max_tokens": 0,
            "api_key": 5,
        },
    });
    let all_wrong = refused(all_wrong).await;
    let named = [
        "description",
        "hasMemory",
        "llm.api_key",
        "llm.base_url",
        "llm.max_tokens",
        "llm.model",
        "llm.provider",
        "llm.temperature",
        "name",
        "tags",
        "type",
    ];
    assert_eq!(all_wrong.paths(), named);
    for known in ["CHATVENDOR", "REACT"] {
        assert!(all_wrong.message("type").contains(known), "{known} is not offered: {all_wrong:?}");
    }
    for known in [
        "openai-chat",
        "openai",
        "anthropic",
        "gemini",
        "mistral",
        "groq",
        "cohere",
        "azure-openai",
        "ollama",
        "openai-compatible",
        "extractive",
    ] {
        let message = all_wrong.message("llm.provider");
        let mut offered = message.split([' ', ',']).filter(|word| !word.is_empty());
        assert!(offered.any(|word| word == known), "{known} is not offered: {message}");
    }

    for (llm, named) in [
        (json!("openai/any"), "llm"),
        (json!({ "provider": "openai-compatible", "model": "any" }), "llm.base_url"),
        (json!({ "provider": "openai-compatible", "model": "any", "base_url": null }), "llm.base_url"),
        (json!({ "provider": "ollama", "model": "any" }), "llm.base_url"),
        (json!({ "provider": "azure-openai", "model": "any", "api_key": "key" }), "llm.base_url"),
        (json!({ "provider": "openai", "model": "any", "base_url": "nowhere" }), "llm.base_url"),
        (json!({ "provider": "openai", "model": "any", "base_url": "http://a:b@c/" }), "llm.base_url"),
        (json!({ "provider": "OpenAI", "model": "any" }), "llm.provider"),
        (json!({ "provider": "openai" }), "llm.model"),
        (json!({ "provider": "openai", "model": " " }), "llm.model"),
        (json!({ "provider": "openai", "model": "any", "temperature": 2.1 }), "llm.temperature"),
        (json!({ "provider": "openai", "model": "any", "temperature": -0.1 }), "llm.temperature"),
    ] {
        let body = with(&agent, &json!({ "llm": llm }));
        assert_eq!(refused(body.clone()).await.paths(), [named], "{body}");
    }
    assert_eq!(ada.read("/agents").await, json!([]), "what is refused is not made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_changes_nothing_leaves_the_time_alone() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let template = json!({ "name": "p", "template": "{input}", "input_variables": ["input"] });
    let mut made = vec![("/users/me".to_owned(), ada.read("/users/me").await)];
    for (path, body) in [
        ("/agents", json!({ "name": "Clerk", "type": "REACT", "description": "d" })),
        (
            "/tools",
            json!({ "name": "web", "type": "SEARCH", "metadata": { "provider": "brave", "api_key": "0123456789abcdef" } }),
        ),
        ("/tags", json!({ "name": "urgent", "color": "#D73A4A" })),
        ("/prompts", template),
        ("/documents", json!({ "name": "Note", "type": "TXT", "content": "The gate opens at nine." })),
    ] {
        let one = ada.create(path, &body).await;
        made.push((format!("{path}/{}", id(&one)), one));
    }
    for (path, before) in made {
        let fields = [
            "name",
            "color",
            "template",
            "input_variables",
            "description",
            "metadata",
            "returnDirect",
            "llm",
        ];
        let mut same = json!({});
        for name in fields.into_iter().filter(|name| before.get(name).is_some()) {
            same[name] = before[name].clone();
        }
        for change in [json!({}), same] {
            let (status, answer) = ada.patch(&path, &change).await;
            assert_eq!(status, StatusCode::OK, "{path} {change}: {answer:#}");
            assert_eq!(answer["data"]["updatedAt"], before["updatedAt"], "{path} {change}");
            assert_eq!(ada.read(&path).await["updatedAt"], before["updatedAt"], "{path} {change}");
        }
        let renamed = ada.patch(&path, &json!({ "name": "renamed" })).await.1["data"].take();
        assert!(before["updatedAt"].as_str() < renamed["updatedAt"].as_str(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_field_of_the_other_bodies_is_named() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let agent = ada.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await;
    let predict = format!("/agents/{}/predict", id(&agent));
    for (path, body, named) in [
        ("/auth/sign-in", json!({}), &["email", "password"][..]),
        ("/auth/sign-in", json!({ "email": 1, "password": [] }), &["email", "password"]),
        ("/api-tokens", json!({}), &["description"]),
        ("/api-tokens", json!({ "description": " " }), &["description"]),
        ("/api-tokens", json!({ "description": 5 }), &["description"]),
        ("/agent-documents", json!({}), &["agentId", "documentId"]),
        ("/agent-documents", json!({ "agentId": 1, "documentId": {} }), &["agentId", "documentId"]),
        (&predict, json!({}), &["input"]),
        (&predict, json!({ "input": "Well?" }), &["input"]),
        (&predict, json!({ "input": {} }), &["input.input"]),
        (&predict, json!({ "input": { "input": "" } }), &["input.input"]),
        (&predict, json!({ "input": { "input": " \n" } }), &["input.input"]),
        (
            &predict,
            json!({ "input": { "input": ["Well?"] }, "session": 1, "has_streaming": "yes" }),
            &["has_streaming", "input.input", "session"],
        ),
    ] {
        let refused = Refused::by(ada.post(path, &body).await);
        assert_eq!(refused.paths(), named, "{body} to {path}");
    }
}

/// An object with some fields replaced.
fn with(base: &Value, changes: &Value) -> Value {
    let mut whole = base.clone();
    for (name, value) in changes.as_object().expect("an object") {
        whole[name] = value.clone();
    }
    whole
}
