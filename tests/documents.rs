//! Changing and deleting documents.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    bodies::Refused,
    ingestion::chunks,
    support::{
        client::{Client, data, id},
        command::upload,
        in_both_modes,
        pdf::pdf_with_pages,
        service::{Mode, Service},
        web::Web,
    },
};

in_both_modes!(
    a_change_applies_and_only_what_the_index_depends_on_is_ingested_again,
    the_pages_of_a_pdf_can_be_changed_and_those_of_a_text_mean_nothing,
    the_earlier_index_answers_until_a_change_is_ingested,
    a_change_while_a_document_is_ingested_is_not_lost,
    a_change_that_cannot_be_is_refused_and_changes_nothing,
    a_deleted_document_leaves_a_receipt_in_the_log,
    documents_that_are_alike_are_named
);

/// Changes a document, waits until it is ingested, and returns it. Fails when it was queued and should not have been, or the
/// other way round.
pub async fn change(client: &Client, before: &Value, change: &Value, queued: bool) -> Value {
    let path = format!("/documents/{}", id(before));
    let answer = data(client.patch(&path, change).await);
    let before = &before["ingestion"]["queuedAt"];
    assert_eq!(answer["ingestion"]["queuedAt"] != *before, queued, "{change}: {answer:#}");
    assert!(answer.get("content").is_none(), "content is shown by GET of one document only");
    let document = client.wait_until_ingested(id(&answer)).await;
    assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{change}: {document:#}");
    document
}

async fn a_change_applies_and_only_what_the_index_depends_on_is_ingested_again(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let (one, two) = (
        web.serve("/one.txt", "text/plain", "The first text."),
        web.serve("/two.txt", "text/plain", "The second."),
    );
    let mut document = ada.ingest(&json!({ "name": "Notes", "type": "TXT", "url": one })).await;
    let splitter = json!({ "type": "token", "chunk_size": 100, "chunk_overlap": 10 });
    let bearer = json!({ "type": "bearer", "token": "opens it" });

    for (body, queued, shown) in [
        (json!({}), false, json!({ "name": "Notes", "url": one })),
        (json!({ "description": "mine" }), false, json!({ "description": "mine" })),
        (json!({ "description": null }), false, json!({ "description": "" })),
        (json!({ "metadata": { "a": 1, "b": 2 } }), false, json!({ "metadata": { "a": 1, "b": 2 } })),
        (json!({ "metadata": { "c": [3] } }), false, json!({ "metadata": { "c": [3] } })),
        (json!({ "metadata": null }), false, json!({ "metadata": null })),
        (json!({ "name": "Notes" }), false, json!({ "name": "Notes" })),
        (json!({ "name": "Papers" }), true, json!({ "name": "Papers", "url": one })),
        (json!({ "url": one }), false, json!({ "url": one })),
        (json!({ "url": two }), true, json!({ "url": two, "content": null })),
        (json!({ "splitter": splitter }), true, json!({ "splitter": splitter })),
        (json!({ "splitter": splitter }), false, json!({ "splitter": splitter })),
        (json!({ "splitter": null }), true, json!({ "splitter": null })),
        (json!({ "authorization": bearer }), true, json!({ "url": two })),
        (json!({ "authorization": bearer }), false, json!({ "url": two })),
        (json!({ "authorization": null }), true, json!({ "url": two })),
        (json!({ "authorization": null }), false, json!({ "url": two })),
        (json!({ "content": "A third." }), true, json!({ "url": "", "content": "A third." })),
        (json!({ "content": "A third.", "url": null }), false, json!({ "url": "", "content": "A third." })),
        (json!({ "content": null, "url": one }), true, json!({ "url": one, "content": null })),
        (
            json!({ "url": "", "content": "" , "name": "All", "description": "at once" }),
            true,
            json!({ "name": "All" }),
        ),
    ] {
        // An empty text has nothing to index; everything else is ingested.
        if body["content"] == "" {
            let answer = data(ada.patch(&format!("/documents/{}", id(&document)), &body).await);
            let ended = ada.wait_until_ingested(id(&answer)).await;
            assert_eq!(ended["ingestion"]["error"]["code"], "no_extractable_text", "{ended:#}");
            assert_eq!(ended["index"], document["index"], "a failed run does no harm");
            break;
        }
        document = change(&ada, &document, &body, queued).await;
        for (name, value) in shown.as_object().expect("an object") {
            assert_eq!(document[name], *value, "{name} after {body}");
        }
    }

    let authorized: Vec<bool> =
        web.requests("/two.txt").iter().map(|seen| seen.headers.contains_key("authorization")).collect();
    assert_eq!(
        authorized,
        [false, false, false, true, false],
        "what opens the source is sent while it is set"
    );
    assert_eq!(web.hits("/one.txt"), 2, "another name needs no other text");
    service.assert_no_secret_in_logs(&["opens it"]);
}

async fn the_pages_of_a_pdf_can_be_changed_and_those_of_a_text_mean_nothing(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let url =
        web.serve("/a.pdf", "application/pdf", pdf_with_pages(&["Page one.", "Page two.", "Page three."]));
    let mut pdf = ada.ingest(&json!({ "name": "A", "type": "PDF", "url": url })).await;
    assert_eq!(pdf["index"]["pages"], 3);
    for (body, queued, pages) in [
        (json!({ "from_page": "2" }), true, 2),
        (json!({ "from_page": 2, "to_page": null }), false, 2),
        (json!({ "to_page": 2 }), true, 1),
        (json!({ "from_page": null, "to_page": null }), true, 3),
    ] {
        pdf = change(&ada, &pdf, &body, queued).await;
        assert_eq!(pdf["index"]["pages"], pages, "{body}");
    }
    pdf = change(&ada, &pdf, &json!({ "to_page": 2 }), true).await;
    let reversed =
        Refused::by(ada.patch(&format!("/documents/{}", id(&pdf)), &json!({ "from_page": 3 })).await);
    assert_eq!(reversed.paths(), ["to_page"], "the resulting pages are what is checked");

    let text = ada.ingest(&json!({ "name": "B", "type": "TXT", "content": "text" })).await;
    for ignored in [json!({ "from_page": 3, "to_page": 1 }), json!({ "from_page": "abc", "to_page": 0 })] {
        let text = change(&ada, &text, &ignored, false).await;
        assert_eq!((&text["from_page"], &text["to_page"]), (&Value::Null, &Value::Null));
    }
}

async fn the_earlier_index_answers_until_a_change_is_ingested(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let (url, gate) = web.gate("/slow.txt", "text/plain", "What is new.");
    let before = ada.ingest(&json!({ "name": "A", "type": "TXT", "content": "What was before." })).await;
    let path = format!("/documents/{}", id(&before));
    let changed = data(ada.patch(&path, &json!({ "url": url })).await);
    web.wait_for_hits("/slow.txt", 1).await;
    assert_eq!(changed["index"], before["index"]);
    assert_eq!(ada.read(&path).await["index"], before["index"]);
    assert_eq!(chunks(&ada, id(&before)).await[0]["text"], "What was before.");
    gate.release();
    ada.wait_until_ingested(id(&before)).await;
    assert_eq!(chunks(&ada, id(&before)).await[0]["text"], "What is new.");
}

async fn a_change_while_a_document_is_ingested_is_not_lost(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let (url, gate) = web.gate("/slow.txt", "text/plain", "Nobody waits for this.");
    let document = ada.create_document(&json!({ "name": "A", "type": "TXT", "url": url })).await;
    web.wait_for_hits("/slow.txt", 1).await;
    let path = format!("/documents/{}", id(&document));
    data(ada.patch(&path, &json!({ "content": "This is what counts." })).await);
    gate.release();
    let document = ada.wait_until_ingested(id(&document)).await;
    assert_eq!(document["ingestion"]["status"], "SUCCEEDED");
    assert_eq!(chunks(&ada, id(&document)).await[0]["text"], "This is what counts.");
}

async fn a_change_that_cannot_be_is_refused_and_changes_nothing(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let web = Web::start().await;
    let url = web.serve("/a.pdf", "application/pdf", pdf_with_pages(&["A page."]));
    let text = ada.ingest(&json!({ "name": "A", "type": "TXT", "content": "text" })).await;
    let pdf = ada.ingest(&json!({ "name": "B", "type": "PDF", "url": url })).await;
    for (document, body, named) in [
        (&text, json!({ "type": "PDF" }), &["type"][..]),
        (
            &text,
            json!({ "id": "x", "userId": "y", "createdAt": "z", "index": null, "colour": "red", "name": "C" }),
            &["colour", "createdAt", "id", "index", "userId"],
        ),
        (&text, json!({ "name": null }), &["name"]),
        (&text, json!({ "name": " " }), &["name"]),
        (&text, json!({ "name": 7, "description": 8, "url": 9 }), &["description", "name", "url"]),
        (&text, json!({ "url": "ftp://example.com/a" }), &["url"]),
        (&text, json!({ "url": "https://ada:secret@example.com/a" }), &["url"]),
        (&text, json!({ "url": url, "content": "both" }), &["content"]),
        (&text, json!({ "content": null }), &["url"]),
        (&pdf, json!({ "url": null }), &["url"]),
        (&pdf, json!({ "url": "" }), &["url"]),
        (&pdf, json!({ "content": "text" }), &["content"]),
        (&pdf, json!({ "url": "https://" }), &["url"]),
        (&pdf, json!({ "url": format!("{url},https://"), "metadata": 5 }), &["metadata"]),
        (&text, json!({ "url": format!("{url}, {url}") }), &["url"]),
        (&pdf, json!({ "from_page": 0, "to_page": "last" }), &["from_page", "to_page"]),
        (&pdf, json!({ "metadata": [], "splitter": { "type": "knife" } }), &["metadata", "splitter.type"]),
        (&pdf, json!({ "authorization": { "type": "bearer" } }), &["authorization.token"]),
    ] {
        let path = format!("/documents/{}", id(document));
        let refused = Refused::by(ada.patch(&path, &body).await);
        assert_eq!(refused.paths(), named, "{body}");
        assert_eq!(&ada.read(&path).await, document, "{body}");
    }
    let path = format!("/documents/{}", id(&text));
    let (status, stranger) = grace.patch(&path, &json!({ "name": "mine" })).await;
    let (_, nobody) =
        grace.patch(&format!("/documents/{}", ada.user()["id"].as_str().unwrap()), &json!({})).await;
    assert_eq!((status, &stranger["error"]), (StatusCode::NOT_FOUND, &nobody["error"]));
    assert_eq!(ada.read(&path).await, text);
}

async fn a_deleted_document_leaves_a_receipt_in_the_log(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let document = ada.ingest(&json!({ "name": "A", "type": "TXT", "content": "word ".repeat(2_000) })).await;
    let (status, answer) = ada.delete(&format!("/documents/{}", id(&document))).await;
    assert_eq!((status, &answer["data"]), (StatusCode::OK, &Value::Null));
    let is_receipt = |event: &Value| {
        event["fields"]["message"].as_str().is_some_and(|text| text.starts_with("document deleted"))
    };
    let receipt = service.logged("a receipt", is_receipt).await["fields"].clone();
    assert_eq!(receipt["document"], document["id"]);
    assert_eq!(receipt["user"], ada.user()["id"]);
    assert_eq!(receipt["chunks"], document["index"]["chunks"]);
    assert_eq!((&receipt["generations"], &receipt["blobs"]), (&json!(1), &json!(0)));
}

async fn documents_that_are_alike_are_named(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let text = |name: &str, content: &str| json!({"name": name, "type": "TXT", "content": content});
    let one = client.ingest(&text("One", "The gate opens at nine.")).await;
    let two = client.ingest(&text("Two", "The gate opens at nine.")).await;
    client.ingest(&text("Other", "The gate closes at six.")).await;
    let file = b"The ship returned with moss.";
    let first = upload(&client, "a.txt", file).await;
    let second = upload(&client, "b.txt", file).await;
    for upload in [&first, &second] {
        client.wait_until_ingested(id(upload)).await;
    }
    let told = client.read("/documents/duplicates").await;
    let ids = |group: &Value| -> Vec<Value> {
        group["documents"].as_array().expect("a list").iter().map(|document| document["id"].clone()).collect()
    };
    assert_eq!(
        (&told[0]["same"], ids(&told[0])),
        (&json!("bytes"), vec![first["id"].clone(), second["id"].clone()])
    );
    assert_eq!(
        (&told[1]["same"], ids(&told[1])),
        (&json!("text"), vec![one["id"].clone(), two["id"].clone()])
    );
    assert_eq!(told.as_array().map(Vec::len), Some(2), "{told:#}");
    data(client.delete(&format!("/documents/{}", id(&two))).await);
    let told = client.read("/documents/duplicates").await;
    assert_eq!(told.as_array().map(Vec::len), Some(1), "{told:#}");
}
