//! Documents on their way to being searchable, and what their owners are told when they cannot be.

use std::collections::HashSet;

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::support::{
    client::{Client, id},
    command::lectern,
    in_both_modes, on_postgres_too,
    pdf::{OpensWith, PdfBuilder, encrypted_pdf, pdf_with_pages},
    service::{Mode, Service},
    web::Web,
};

in_both_modes!(
    a_text_by_url_and_a_text_by_content_become_searchable,
    two_hundred_documents_at_once_are_all_ingested_once,
    what_cannot_be_ingested_fails_with_a_code_and_a_sentence_and_the_worker_goes_on,
    a_deleted_document_is_gone_for_every_reader,
    a_document_whose_source_fails_keeps_its_earlier_index,
    a_cancelled_ingestion_stays_cancelled_until_it_is_asked_for_again
);

on_postgres_too!(a_text_by_url_and_a_text_by_content_become_searchable);

/// Every passage of a document, in the order of the source.
pub async fn chunks(client: &Client, document: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut path = format!("/documents/{document}/chunks?limit=200");
    loop {
        let (_, body) = client.get(&path).await;
        all.extend(body["data"].as_array().expect("an array").clone());
        let Some(next) = body["nextCursor"].as_str() else { return all };
        path = format!("/documents/{document}/chunks?limit=200&cursor={next}");
    }
}

async fn a_text_by_url_and_a_text_by_content_become_searchable(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let url = web.serve(
        "/notes.txt",
        "text/plain; charset=iso-8859-1",
        &b"Der M\xfcller mahlt.\r\nZeile zwei."[..],
    );

    let fetched = client.ingest(&json!({"name": "notes", "type": "TXT", "url": url})).await;
    assert_eq!(fetched["url"], url);
    assert_eq!(fetched["ingestion"]["source"]["mimeType"], "text/plain");
    assert_eq!(fetched["ingestion"]["attempts"], 1);
    let passages = chunks(&client, id(&fetched)).await;
    assert_eq!(passages[0]["text"], "Der Müller mahlt.\nZeile zwei.");

    let text = "Ünïcode first. ".repeat(400);
    let inline = client.ingest(&json!({"name": "inline", "type": "TXT", "content": text})).await;
    let index = &inline["index"];
    assert_eq!(index["status"], "READY");
    assert_eq!(inline["content"], text.as_str());
    let passages = chunks(&client, id(&inline)).await;
    assert_eq!(index["chunks"], passages.len());
    let characters: Vec<char> = text.chars().collect();
    for (at, passage) in passages.iter().enumerate() {
        assert_eq!(passage["ordinal"], at);
        let place =
            |name: &str| usize::try_from(passage["place"][name].as_u64().expect("a number")).expect("small");
        let slice: String = characters[place("charStart")..place("charEnd")].iter().collect();
        assert_eq!(passage["text"], slice.as_str(), "the text is the slice that its place names");
    }
}

async fn two_hundred_documents_at_once_are_all_ingested_once(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let created: Vec<String> = stream::iter(0..200)
        .map(|number| {
            let client = &client;
            async move {
                let text = format!("The password of vault number {number} is plum{number}apple.");
                let body = json!({"name": format!("vault {number}"), "type": "TXT", "content": text});
                let document = client.create_document(&body).await;
                // The API answers others in the meantime.
                assert!(client.is_ready().await);
                id(&document).to_owned()
            }
        })
        // More than there are connections to the database.
        .buffer_unordered(32)
        .collect()
        .await;
    for document in &created {
        let document = client.wait_until_ingested(document).await;
        assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{document:#}");
        assert_eq!(document["ingestion"]["attempts"], 1, "{document:#}");
        assert_eq!(document["index"]["chunks"], 1);
    }
    let listed = client.read("/documents").await;
    let listed: HashSet<&str> = listed.as_array().expect("an array").iter().map(id).collect();
    assert_eq!(listed, created.iter().map(String::as_str).collect());

    let agent = client.create_agent(&json!({"name": "keeper", "type": "CHATVENDOR"})).await;
    for document in &created {
        client.link(id(&agent), document).await;
    }
    let (_, answer) = client.predict(id(&agent), "What is the password of vault number 137?").await;
    assert!(answer["data"].as_str().expect("an answer").contains("plum137apple"), "{answer:#}");
    let found = answer["trace"]["steps"][0]["documents"].as_array().expect("passages");
    let unique: HashSet<_> = found.iter().map(|passage| passage["chunkId"].as_str()).collect();
    assert_eq!(unique.len(), found.len(), "no passage is found twice");
}

async fn what_cannot_be_ingested_fails_with_a_code_and_a_sentence_and_the_worker_goes_on(mode: Mode) {
    let service = Service::in_mode(mode)
        .env("LECTERN_EGRESS_ALLOW", "127.0.0.1/32")
        .env("LECTERN_MAX_SOURCE", "5MiB")
        .env("LECTERN_JOB_MAX_ATTEMPTS", "2")
        .env("LECTERN_FETCH_TIMEOUT", "1s")
        .env("LECTERN_PARSER_TIMEOUT", "10s")
        .start()
        .await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let mut scan = PdfBuilder::new();
    scan.add_empty_page();
    let nested = {
        let mut pdf = PdfBuilder::new();
        let deep = [vec![b'['; 2 << 20], vec![b']'; 2 << 20]].concat();
        pdf.add_page("<< >>", &[b"BT ".as_slice(), &deep, b" TJ ET"].concat());
        pdf.finish()
    };
    let pdf = "application/pdf";
    let cases = [
        ("TXT", web.status("/missing", 404), "not_found"),
        ("TXT", web.status("/private", 403), "forbidden"),
        ("TXT", web.status("/broken", 500), "unreachable"),
        ("TXT", "http://127.0.0.2:9/".to_owned(), "refused_address"),
        ("TXT", "http://169.254.169.254/latest/meta-data/".to_owned(), "refused_address"),
        ("TXT", "http://[::1]/".to_owned(), "refused_address"),
        ("TXT", web.redirect("/leads-inside", "http://127.0.0.2:9/secret"), "refused_address"),
        ("TXT", web.redirect("/leads-out", "ftp://127.0.0.1/file"), "refused_redirect"),
        ("TXT", web.serve("/empty", "text/plain", ""), "no_extractable_text"),
        ("TXT", web.serve("/blank", "text/plain", " \n\t "), "no_extractable_text"),
        (
            "URL",
            web.serve(
                "/shell",
                "text/html",
                "<html><body><div id=root></div><script src=/app.js></script></body></html>",
            ),
            "no_extractable_text",
        ),
        (
            "TXT",
            web.serve("/picture", "image/png", &b"\x89PNG\r\n\x1a\n\0\0"[..]),
            "unsupported_content_type",
        ),
        ("TXT", web.serve("/large", "text/plain", vec![b'x'; 6 << 20]), "too_large"),
        ("TXT", web.hang("/silent"), "timeout"),
        ("PDF", web.serve("/empty.pdf", pdf, ""), "damaged"),
        ("PDF", web.serve("/half.pdf", pdf, &b"%PDF-1.7\n1 0 obj\n<<"[..]), "damaged"),
        ("PDF", web.serve("/locked.pdf", pdf, encrypted_pdf(OpensWith::Password)), "password_required"),
        ("PDF", web.serve("/scan.pdf", pdf, scan.finish()), "no_extractable_text"),
        ("PDF", web.serve("/nested.pdf", pdf, nested), "parser_crashed"),
    ];
    let mut created = Vec::new();
    for (kind, url, code) in &cases {
        let document = client.create_document(&json!({"name": code, "type": kind, "url": url})).await;
        created.push((id(&document).to_owned(), url, code));
    }
    for (document, url, code) in created {
        let document = client.wait_until_ingested(&document).await;
        let error = &document["ingestion"]["error"];
        assert_eq!(document["ingestion"]["status"], "FAILED", "{url}: {document:#}");
        assert_eq!(error["code"], **code, "{url}: {error}");
        let sentence = error["message"].as_str().expect("a message");
        assert!(sentence.len() > 20 && sentence.ends_with('.'), "{url}: {sentence}");
        let attempts = if error["retryable"] == true { 2 } else { 1 };
        assert_eq!(document["ingestion"]["attempts"], attempts, "{url}: {error}");
        assert_eq!(document["index"], Value::Null);
    }
    let good = web.serve("/good.pdf", pdf, pdf_with_pages(&["The lighthouse keeper is called Ingrid."]));
    let good = client.ingest(&json!({"name": "good", "type": "PDF", "url": good})).await;
    assert_eq!(good["index"]["pages"], 1);
}

async fn a_deleted_document_is_gone_for_every_reader(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let document =
        client.ingest(&json!({"name": "d", "type": "TXT", "content": "The treasure is in the attic."})).await;
    let agent = client.create_agent(&json!({"name": "a", "type": "CHATVENDOR"})).await;
    let link = client.link(id(&agent), id(&document)).await;
    let (_, before) = client.predict(id(&agent), "Where is the treasure?").await;
    assert_eq!(before["trace"]["finishReason"], "extractive");

    let (status, body) = client.delete(&format!("/documents/{}", id(&document))).await;
    assert_eq!((status.as_u16(), &body["data"]), (200, &Value::Null));
    let (_, after) = client.predict(id(&agent), "Where is the treasure?").await;
    assert_eq!(after["trace"]["finishReason"], "declined", "{after:#}");
    for path in [
        format!("/documents/{}", id(&document)),
        format!("/documents/{}/chunks", id(&document)),
        format!("/agent-documents/{}", id(&link)),
    ] {
        assert_eq!(client.get(&path).await.0.as_u16(), 404, "{path}");
    }
    assert_eq!(client.read("/documents").await, json!([]));
    assert_eq!(client.delete(&format!("/documents/{}", id(&document))).await.0.as_u16(), 404);
}

async fn a_document_whose_source_fails_keeps_its_earlier_index(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let url = web.serve("/notes", "text/plain", "The harbour closes at nine.");
    let document = client.ingest(&json!({"name": "notes", "type": "TXT", "url": url})).await;
    let agent = client.create_agent(&json!({"name": "a", "type": "CHATVENDOR"})).await;
    client.link(id(&agent), id(&document)).await;

    web.status("/notes", 404);
    client.create(&format!("/documents/{}/ingest", id(&document)), &json!({})).await;
    let failed = client.wait_until_ingested(id(&document)).await;
    assert_eq!(failed["ingestion"]["status"], "FAILED");
    assert_eq!(failed["index"], document["index"], "the earlier index is untouched");
    let (_, answer) = client.predict(id(&agent), "When does the harbour close?").await;
    assert!(answer["data"].as_str().expect("an answer").contains("closes at nine"), "{answer:#}");
}

async fn a_cancelled_ingestion_stays_cancelled_until_it_is_asked_for_again(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let (url, gate) = web.gate("/slow", "text/plain", "Slow and steady.");
    let document = client.create_document(&json!({"name": "slow", "type": "TXT", "url": url})).await;
    gate.wait_until_reached().await;
    let cancelled = client.create(&format!("/documents/{}/cancel", id(&document)), &json!({})).await;
    assert_eq!(cancelled["ingestion"]["status"], "CANCELLED");
    gate.release();
    // Another document goes through the same worker, which has therefore looked at the first one's end.
    client.ingest(&json!({"name": "other", "type": "TXT", "content": "Other words."})).await;
    let still = client.read(&format!("/documents/{}", id(&document))).await;
    assert_eq!(still["ingestion"]["status"], "CANCELLED");
    assert_eq!(still["index"], Value::Null);

    client.create(&format!("/documents/{}/ingest", id(&document)), &json!({})).await;
    let again = client.wait_until_ingested(id(&document)).await;
    assert_eq!(again["ingestion"]["status"], "SUCCEEDED", "{again:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_pages_that_were_asked_for_are_ingested_and_named() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let pages: Vec<String> =
        (1..=9).map(|number| format!("This page tells of the number {number}.")).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let url = web.serve("/nine.pdf", "application/pdf", pdf_with_pages(&pages));
    // Numbers and digits in a string are both taken.
    let body = json!({"name": "nine", "type": "PDF", "url": url, "from_page": 3, "to_page": "5"});
    let document = client.ingest(&body).await;
    assert_eq!(document["index"]["pages"], 3);
    let passages = chunks(&client, id(&document)).await;
    let text: String = passages.iter().filter_map(|passage| passage["text"].as_str()).collect();
    for number in 1..=9 {
        assert_eq!(text.contains(&format!("number {number}")), (3..=5).contains(&number), "{text}");
    }
    assert_eq!((&passages[0]["place"]["page"], &passages[0]["place"]["pageEnd"]), (&json!(3), &json!(5)));

    let beyond = json!({"name": "nine", "type": "PDF", "url": url, "from_page": 10});
    let beyond = client.create_document(&beyond).await;
    let beyond = client.wait_until_ingested(id(&beyond)).await;
    assert_eq!(beyond["ingestion"]["error"]["code"], "invalid_page_range", "{beyond:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_away_for_a_moment_is_tried_again() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let url = web.flaky("/flaky", 1, 503, "text/plain", "Back again.");
    let document = client.ingest(&json!({"name": "flaky", "type": "TXT", "url": url})).await;
    assert_eq!(document["ingestion"]["attempts"], 2);
    assert_eq!(document["ingestion"]["error"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_open_the_source_and_go_nowhere_else() {
    const SECRET: &str = "tok-9f86d081884c7d65";
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let (web, other) = (Web::start().await, Web::start().await);
    let elsewhere = other.serve("/elsewhere", "text/plain", "Moved here.");
    let url = web.redirect("/moved", &elsewhere);
    let body = json!({
        "name": "moved", "type": "TXT", "url": url, "authorization": {"type": "bearer", "token": SECRET},
    });
    let document = client.ingest(&body).await;
    let sent = web.requests("/moved");
    assert_eq!(sent[0].header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert_eq!(other.requests("/elsewhere")[0].header("authorization"), None);
    assert!(!document.to_string().contains(SECRET), "{document:#}");
    service.assert_no_secret_in_logs(&[SECRET]);
}

#[test]
fn a_command_that_reads_a_file_says_that_a_folder_or_a_pipe_is_none() {
    let setup = Service::in_mode(Mode::Embedded);
    let (folder, pipe) = (setup.data_dir(), setup.data_dir().join("pipe"));
    // Nobody will ever write into it.
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("it runs").success());
    for path in [folder, pipe.as_path()] {
        let ran = lectern(&setup, &["parse", path.to_str().expect("a path of plain text")]);
        assert!(!ran.status.success() && ran.log.contains("it must be a file"), "{ran:#?}");
    }
}
