//! Documents that are uploaded.

mod mail;
mod names;
mod replaced;
mod revoked;

use std::{path::Path, time::Duration};

use futures::{StreamExt, stream};
use reqwest::{
    Method, StatusCode,
    header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    bodies::Refused,
    ingestion::chunks,
    support::{
        client::{Client, data, envelope, id, send},
        in_both_modes,
        pdf::pdf_with_pages,
        service::{Mode, Service},
        within_deadline,
    },
};

in_both_modes!(
    files_become_searchable_by_what_they_are_and_come_back_as_they_were,
    files_of_every_kind_become_documents_of_the_type_that_they_show,
    what_a_file_is_can_still_be_told_when_its_document_is_called_otherwise,
    an_uploaded_document_is_described_by_the_other_parts_wherever_they_stand,
    a_document_is_called_like_its_file_without_folders_and_tricks,
    a_form_that_is_wrong_is_refused_and_leaves_nothing,
    a_file_that_is_too_large_is_refused_and_leaves_nothing,
    an_upload_that_is_sent_again_makes_one_document,
    an_upload_that_breaks_off_leaves_nothing,
    uploads_of_one_user_wait_for_each_other_and_keep_nobody_else_waiting,
    the_file_of_an_uploaded_document_is_not_patched_and_goes_with_it,
    another_users_file_does_not_exist
);

const BOUNDARY: &str = "------------boundary-of-the-tests";

/// A form, part by part.
#[derive(Clone, Default)]
struct Form(Vec<u8>);

impl Form {
    fn text(self, name: &str, value: &str) -> Self {
        self.part(&format!("name=\"{name}\""), None, value.as_bytes())
    }

    fn file(self, file_name: &str, bytes: &[u8]) -> Self {
        self.typed_file(file_name, "application/octet-stream", bytes)
    }

    fn typed_file(self, file_name: &str, content_type: &str, bytes: &[u8]) -> Self {
        self.part(&format!("name=\"file\"; filename=\"{file_name}\""), Some(content_type), bytes)
    }

    fn part(mut self, disposition: &str, content_type: Option<&str>, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(part_head(disposition, content_type).as_bytes());
        self.0.extend_from_slice(bytes);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    fn bytes(mut self) -> Vec<u8> {
        self.0.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        self.0
    }
}

fn part_head(disposition: &str, content_type: Option<&str>) -> String {
    let content_type = content_type.map(|kind| format!("Content-Type: {kind}\r\n")).unwrap_or_default();
    format!("--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n{content_type}\r\n")
}

fn request(client: &Client) -> reqwest::RequestBuilder {
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    client.request(Method::POST, "/documents/upload").header(CONTENT_TYPE, kind)
}

async fn upload(client: &Client, form: Form) -> (StatusCode, Value) {
    envelope(send(request(client).body(form.bytes())).await).await
}

/// Uploads, waits for the ingestion, expects that it succeeded, and returns the document.
async fn ingest(client: &Client, form: Form) -> Value {
    let created = data(upload(client, form).await);
    let document = client.wait_until_ingested(id(&created)).await;
    assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{:#}", document["ingestion"]);
    document
}

/// The files of the blob store, finished or not.
fn blobs(service: &Service) -> usize {
    fn count(folder: &Path) -> usize {
        let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
        entries.flatten().map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
    }
    // One is the store's own mark.
    count(&service.data_dir().join("blobs")).checked_sub(1).expect("the blob store's mark")
}

async fn wait_for_blobs(service: &Service, expected: usize) {
    let wait = async {
        while blobs(service) != expected {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within_deadline(&format!("{expected} blobs"), wait).await;
}

async fn files_become_searchable_by_what_they_are_and_come_back_as_they_were(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let pdf = pdf_with_pages(&["The first page.", "The second page."]);
    let binary_tail =
        [&b"A text first. "[..], &"word ".repeat(50_000).into_bytes(), b"\r\nThe end."].concat();
    for (file_name, content_type, bytes, kind, media, found) in [
        ("notes.txt", "text/plain", &b"gr\xfcn is green"[..], "TXT", "text/plain", "grün is green"),
        ("table.csv", "application/octet-stream", b"a,b\n1,2\n", "CSV", "text/csv", "a"),
        ("table", "text/csv; charset=utf-8", b"a,b\n3,4\n", "CSV", "text/csv;charset=utf-8", "a"),
        ("table.TSV", "text/plain", b"a\tb\n1\t2\n", "CSV", "text/tab-separated-values", "a"),
        ("called.txt", "text/plain", &pdf, "PDF", "application/pdf", "The first page."),
        ("long.md", "", &binary_tail, "TXT", "text/markdown", "A text first."),
    ] {
        let document = ingest(&ada, Form::default().typed_file(file_name, content_type, bytes)).await;
        assert_eq!((&document["type"], &document["name"]), (&json!(kind), &json!(file_name)));
        assert_eq!((&document["url"], &document["content"]), (&json!(""), &Value::Null));
        assert_eq!(document["ingestion"]["source"]["bytes"], bytes.len());
        let first = &chunks(&ada, id(&document)).await[0];
        assert!(first["text"].as_str().expect("text").starts_with(found), "{first:#}");

        let path = format!("/documents/{}/source", id(&document));
        let answer = send(ada.request(Method::GET, &path)).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let headers = answer.headers().clone();
        assert_eq!(headers[CONTENT_TYPE], media);
        assert_eq!(headers[CONTENT_LENGTH], bytes.len().to_string());
        assert_eq!(headers["x-content-type-options"], "nosniff");
        let disposition = headers[CONTENT_DISPOSITION].to_str().expect("ASCII");
        assert!(disposition.starts_with("attachment; filename="), "{disposition}");
        assert_eq!(answer.bytes().await.expect("the file"), bytes);
        let known = ada.request(Method::GET, &path).header(IF_NONE_MATCH, &headers[ETAG]);
        assert_eq!(send(known).await.status(), StatusCode::NOT_MODIFIED);
    }
    let inline = ada.ingest(&json!({ "name": "A", "type": "TXT", "content": "text" })).await;
    let (status, answer) = ada.get(&format!("/documents/{}/source", id(&inline))).await;
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
    assert!(answer["error"]["message"].as_str().expect("text").contains("no stored source"), "{answer:#}");
}

async fn files_of_every_kind_become_documents_of_the_type_that_they_show(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let page = b"<!DOCTYPE html><html><body><p>Words.</p></body></html>";
    for (file_name, bytes, kind, media) in [
        ("page.html", &page[..], "TXT", "text/html"),
        ("read.md", b"# Title\n\nWords.", "TXT", "text/markdown"),
        ("rows.jsonl", b"{\"a\": 1}\n{\"a\": 2}\n", "TXT", "application/x-ndjson"),
        ("feed.xml", b"<?xml version=\"1.0\"?><rss/>", "TXT", "application/xml"),
        ("book.epub", b"PK\x03\x04", "TXT", "application/epub+zip"),
        ("letter.odt", b"PK\x03\x04", "TXT", "application/vnd.oasis.opendocument.text"),
        ("table.ods", b"PK\x03\x04", "CSV", "application/vnd.oasis.opendocument.spreadsheet"),
        ("old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "CSV", "application/vnd.ms-excel"),
        ("talk.vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\nHi\n", "VIDEO", "text/vtt"),
        ("talk", b"1\n00:00:01,000 --> 00:00:02,000\nHi\n", "VIDEO", "text/vtt"),
        ("talk.sbv", b"0:00:01.000,0:00:02.000\nHi\n", "VIDEO", "text/plain"),
    ] {
        let document = data(upload(&ada, Form::default().file(file_name, bytes)).await);
        assert_eq!((&document["type"], &document["name"]), (&json!(kind), &json!(file_name)));
        let answer = send(ada.request(Method::GET, &format!("/documents/{}/source", id(&document)))).await;
        assert_eq!(answer.headers()[CONTENT_TYPE], media, "{file_name}");
    }
    // Few letters do not show how they are encoded: their sender knows.
    let (in_ibm866, greeting) = ("text/plain; charset=\"IBM866\"", b"\x8f\xe0\xa8\xa2\xa5\xe2.");
    let greeting = ingest(&ada, Form::default().typed_file("a.txt", in_ibm866, greeting)).await;
    assert_eq!(chunks(&ada, id(&greeting)).await[0]["text"], "Привет.");
    // A text can be what somebody wrote down of a video.
    let spoken = ingest(&ada, Form::default().file("a.txt", b"Good evening.").text("type", "VIDEO")).await;
    assert_eq!(spoken["type"], "VIDEO");
    assert_eq!(chunks(&ada, id(&spoken)).await[0]["text"], "Good evening.");
}

async fn what_a_file_is_can_still_be_told_when_its_document_is_called_otherwise(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let form =
        Form::default().file("folder/Über uns.md", b"# Ours\n\nWords of a page.").text("name", "About");
    let document = ingest(&ada, form).await;
    assert_eq!((&document["name"], &document["type"]), (&json!("About"), &json!("TXT")));
    let first = &chunks(&ada, id(&document)).await[0];
    assert_eq!(first["place"]["heading"], json!(["Ours"]), "it is read as Markdown: {first:#}");

    let saved_as = async |document: &Value| {
        let answer = send(ada.request(Method::GET, &format!("/documents/{}/source", id(document)))).await;
        answer.headers()[CONTENT_DISPOSITION].to_str().expect("ASCII").to_owned()
    };
    assert_eq!(saved_as(&document).await, "attachment; filename=\"About.md\"; filename*=UTF-8''About.md");
    let book =
        data(upload(&ada, Form::default().file("x.EPUB", b"PK\x03\x04").text("name", "Tales 1.0")).await);
    assert_eq!(
        saved_as(&book).await,
        "attachment; filename=\"Tales 1.0.epub\"; filename*=UTF-8''Tales%201.0.epub"
    );
}

async fn an_uploaded_document_is_described_by_the_other_parts_wherever_they_stand(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let form = Form::default()
        .text("name", "Handbook")
        .text("to_page", "2")
        .text("unheard-of", "of no interest")
        .file("a.pdf", &pdf_with_pages(&["One.", "Two.", "Three."]))
        .text("description", "for all")
        .text("type", "PDF")
        .text("from_page", "2")
        .text("metadata", r#"{"year": 2026}"#)
        .text("splitter", r#"{"type": "token", "chunk_size": 100, "chunk_overlap": 0}"#)
        .text("url", "");
    let document = ingest(&ada, form).await;
    assert_eq!((&document["name"], &document["description"]), (&json!("Handbook"), &json!("for all")));
    assert_eq!((&document["from_page"], &document["to_page"]), (&json!(2), &json!(2)));
    assert_eq!(document["metadata"], json!({ "year": 2026 }));
    assert_eq!(document["splitter"], json!({ "type": "token", "chunk_size": 100, "chunk_overlap": 0 }));
    assert_eq!(chunks(&ada, id(&document)).await[0]["place"]["page"], 2);
    // A text may be said to be a table, and the other way round.
    let table = data(upload(&ada, Form::default().file("a.txt", b"a;b").text("type", "CSV")).await);
    let text = data(upload(&ada, Form::default().file("a.csv", b"a;b").text("type", "TXT")).await);
    assert_eq!((&table["type"], &text["type"]), (&json!("CSV"), &json!("TXT")));
}

async fn a_document_is_called_like_its_file_without_folders_and_tricks(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let long = format!("{}.txt", "n".repeat(2_000));
    for (file_name, name) in [
        // As browsers send a quotation mark in a name.
        ("%22q%22.txt", "\"q\".txt"),
        ("../../../etc/passwd", "passwd"),
        ("C:\\\\Users\\\\ada\\\\notes.txt", "notes.txt"),
        ("invoice\u{202e}txt.exe", "invoicetxt.exe"),
        ("tab\there.txt", "tabhere.txt"),
        ("u\u{308}ber.txt", "über.txt"),
        ("..", "upload"),
        ("", "upload"),
        (&long, &long[1_004..]),
    ] {
        let document = data(upload(&ada, Form::default().file(file_name, b"text")).await);
        assert_eq!(document["name"], name, "{file_name:?}");
    }
    assert_eq!(blobs(&service), 9, "every file is where it belongs");
}

async fn a_form_that_is_wrong_is_refused_and_leaves_nothing(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let file = || Form::default().file("a.txt", b"text");
    for (form, named) in [
        (Form::default().text("name", "A"), &["file"][..]),
        (Form::default().text("name", " ").text("metadata", "[]"), &["file", "metadata", "name"]),
        (file().file("b.txt", b"more"), &["file"]),
        (Form::default().file("empty.txt", b""), &["file"]),
        (file().text("type", "PDF"), &["type"]),
        (file().text("type", "URL"), &["type"]),
        (Form::default().file("a.html", b"<html>").text("type", "URL"), &["type"]),
        (Form::default().file("a.csv", b"a,b").text("type", "VIDEO"), &["type"]),
        (Form::default().file("a.xlsx", b"PK\x03\x04").text("type", "TXT"), &["type"]),
        (Form::default().file("a.docx", b"PK\x03\x04").text("type", "CSV"), &["type"]),
        (file().text("type", "WORD"), &["type"]),
        (file().text("name", "A").text("name", "B"), &["name"]),
        (file().text("name", "a\0b"), &["name"]),
        (file().part("name=\"name\"", None, b"\xff"), &["name"]),
        (
            file().text("metadata", "{").text("splitter", r#"{"type": "knife"}"#),
            &["metadata", "splitter.type"],
        ),
        (file().text("url", "https://example.com/").text("content", "text"), &["content", "url"]),
        (Form::default().file("a.pdf", b"%PDF-1.7").text("from_page", "0"), &["from_page"]),
        (file().text("collectionIds", "a,b"), &["collectionIds"]),
        (Form::default().file("a.pdf", b"%PDF-1.7").text("type", "TXT"), &["type"]),
    ] {
        let shown = String::from_utf8_lossy(&form.0).into_owned();
        let refused = Refused::by(upload(&ada, form).await);
        assert_eq!(refused.paths(), named, "{shown}");
    }
    let (_, answer) = upload(&ada, Form::default().file("a.png", b"\x89PNG\r\n\x1a\n")).await;
    let message = answer["error"]["message"].as_str().expect("text");
    for taken in ["PDF", "Markdown", "CSV", "XLSX", "DOCX", "EPUB", "EML", "VTT"] {
        assert!(message.contains(taken), "{taken} is not offered: {message}");
    }
    for (form, status, code) in [
        (Form::default().file("a.png", b"\x89PNG\r\n\x1a\n"), 415, "unsupported_media_type"),
        (Form::default().file("a.bin", b"a\0b"), 415, "unsupported_media_type"),
        (Form::default().file("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), 415, "unsupported_media_type"),
        (file().text("description", &"d".repeat(3 << 20)), 413, "too_large"),
        (file().text("unheard-of", &"d".repeat(3 << 20)), 413, "too_large"),
        (file().part(&format!("name=\"{}\"", "n".repeat(6 << 20)), None, b""), 400, "malformed_form"),
    ] {
        let (answered, answer) = upload(&ada, form).await;
        assert_eq!((answered.as_u16(), &answer["error"]["code"]), (status, &json!(code)), "{answer:#}");
    }
    let whole = file().bytes();
    for (kind, body, status) in [
        ("application/json", whole.clone(), 415),
        ("multipart/form-data", whole.clone(), 400),
        ("multipart/form-data; boundary=another", whole.clone(), 400),
        (&format!("multipart/form-data; boundary={BOUNDARY}"), whole[..whole.len() - 9].to_vec(), 400),
        (&format!("multipart/form-data; boundary={BOUNDARY}"), Vec::new(), 400),
    ] {
        let request = ada.request(Method::POST, "/documents/upload").header(CONTENT_TYPE, kind).body(body);
        let (answered, answer) = envelope(send(request).await).await;
        assert_eq!(answered.as_u16(), status, "{kind}: {answer:#}");
    }
    assert_eq!(ada.read("/documents").await, json!([]));
    wait_for_blobs(&service, 0).await;
}

async fn a_file_that_is_too_large_is_refused_and_leaves_nothing(mode: Mode) {
    let small = Service::in_mode(mode).env("LECTERN_MAX_SOURCE", "1MiB").start().await;
    let usual = Service::in_mode(mode).start().await;
    for (service, bytes, status) in [
        (&small, 1_usize << 20, 200),
        (&small, (1 << 20) + 1, 413),
        (&small, 3 << 20, 413),
        (&usual, 101 << 20, 413),
    ] {
        let ada = service.client();
        let ada = match ada
            .post("/auth/sign-up", &json!({ "email": "ada@example.com", "password": "a long password" }))
            .await
        {
            (StatusCode::OK | StatusCode::CONFLICT, _) => {
                ada.sign_in("ada@example.com", "a long password").await
            }
            (status, answer) => panic!("{status}: {answer:#}"),
        };
        let head = part_head("name=\"file\"; filename=\"a.txt\"", None);
        let piece = axum::body::Bytes::from(vec![b'x'; 1 << 16]);
        let whole = std::iter::repeat_n(piece.clone(), bytes / piece.len());
        let rest = piece.slice(..bytes % piece.len());
        let tail = format!("\r\n--{BOUNDARY}--\r\n");
        let parts = std::iter::once(head.into()).chain(whole).chain([rest, tail.into()]);
        let body = reqwest::Body::wrap_stream(stream::iter(parts.map(Ok::<_, std::io::Error>)));
        let (answered, answer) = envelope(send(request(&ada).body(body)).await).await;
        assert_eq!(answered.as_u16(), status, "{bytes} bytes: {answer:#}");
        if status == 413 {
            assert_eq!(answer["error"]["code"], "too_large");
        } else {
            let document = &answer["data"];
            data(ada.delete(&format!("/documents/{}", id(document))).await);
        }
        assert_eq!(ada.read("/documents").await, json!([]));
        wait_for_blobs(service, 0).await;
    }
}

async fn an_upload_that_is_sent_again_makes_one_document(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let send_with = async |key: &str, form: Form| {
        let answer = send(request(&ada).header("Idempotency-Key", key).body(form.bytes())).await;
        let replayed = answer.headers().contains_key("idempotent-replayed");
        (envelope(answer).await, replayed)
    };
    let form = || Form::default().file("a.txt", b"the same text").text("metadata", r#"{"a": 1, "b": 2}"#);
    let (first, replayed) = send_with("key", form()).await;
    assert!(!replayed && first.0 == StatusCode::OK, "{first:?}");
    assert_eq!(send_with("key", form()).await, (first.clone(), true));
    let other_order = Form::default().text("metadata", r#"{"b":2,"a":1}"#).file("a.txt", b"the same text");
    assert_eq!(send_with("key", other_order).await, (first.clone(), true), "it says the same");
    for other in [
        Form::default().file("a.txt", b"another text").text("metadata", r#"{"a": 1, "b": 2}"#),
        Form::default().file("b.txt", b"the same text").text("metadata", r#"{"a": 1, "b": 2}"#),
        form().text("name", "another name"),
        Form::default()
            .file("a.md", b"the same text")
            .text("metadata", r#"{"a": 1, "b": 2}"#)
            .text("name", "a.txt"),
    ] {
        let ((status, answer), _) = send_with("key", other).await;
        assert_eq!(
            (status, &answer["error"]["code"]),
            (StatusCode::CONFLICT, &json!("idempotency_key_reused"))
        );
    }
    let listed = ada.read("/documents").await;
    assert_eq!(listed.as_array().expect("a list").len(), 1, "{listed:#}");
    wait_for_blobs(&service, 1).await;
}

async fn an_upload_that_breaks_off_leaves_nothing(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let address = service.base_url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.expect("a connection");
    let head = format!(
        "POST /api/v1/documents/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: 9000000\r\n\r\n{}",
        ada.token(),
        part_head("name=\"file\"; filename=\"a.txt\"", None)
    );
    stream.write_all(head.as_bytes()).await.expect("the head is taken");
    stream.write_all(&vec![b'x'; 1 << 20]).await.expect("the beginning is taken");
    wait_for_blobs(&service, 1).await;
    drop(stream);
    wait_for_blobs(&service, 0).await;
    assert_eq!(ada.read("/documents").await, json!([]));
}

async fn the_file_of_an_uploaded_document_is_not_patched_and_goes_with_it(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let document = ingest(&ada, Form::default().file("a.txt", b"the text")).await;
    let path = format!("/documents/{}", id(&document));
    for (body, named) in [
        (json!({ "url": "https://example.com/a" }), "url"),
        (json!({ "content": "another text" }), "content"),
    ] {
        assert_eq!(Refused::by(ada.patch(&path, &body).await).paths(), [named]);
    }
    let renamed = data(
        ada.patch(
            &path,
            &json!({ "name": "B", "url": null, "content": null, "splitter": { "type": "token" } }),
        )
        .await,
    );
    assert_ne!(renamed["ingestion"]["queuedAt"], document["ingestion"]["queuedAt"]);
    let again = ada.wait_until_ingested(id(&document)).await;
    assert_eq!((&again["ingestion"]["status"], &again["name"]), (&json!("SUCCEEDED"), &json!("B")));
    assert_eq!(chunks(&ada, id(&document)).await[0]["text"], "the text");

    assert_eq!(blobs(&service), 1);
    data(ada.delete(&path).await);
    let (status, _) = ada.get(&format!("{path}/source")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    wait_for_blobs(&service, 0).await;
}

async fn another_users_file_does_not_exist(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let document = data(upload(&ada, Form::default().file("a.txt", b"the text")).await);
    let path = format!("/documents/{}/source", id(&document));
    let (status, stranger) = grace.get(&path).await;
    let (_, nobody) = grace.get(&path.replace(id(&document), ada.user()["id"].as_str().unwrap())).await;
    assert_eq!((status, &stranger["error"]), (StatusCode::NOT_FOUND, &nobody["error"]));
    let (status, _) = upload(&ada.signed_out(), Form::default().file("a.txt", b"the text")).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let (status, _) = upload(&ada.with_token("nonsense"), Form::default().file("a.txt", b"the text")).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

/// An upload that has begun, and ends when it is told to.
async fn begun(
    service: &Service,
    client: &Client,
) -> (tokio::sync::oneshot::Sender<()>, tokio::task::JoinHandle<Value>) {
    let (finish, finished) = tokio::sync::oneshot::channel();
    let head = part_head("name=\"file\"; filename=\"slow.txt\"", Some("text/plain"));
    let head = [head.into_bytes(), b"words ".repeat(20_000)].concat();
    let end = async move {
        let _ = finished.await;
        format!("\r\n--{BOUNDARY}--\r\n").into_bytes()
    };
    let body = stream::once(async { head }).chain(stream::once(end)).map(Ok::<_, std::io::Error>);
    let request = request(client).body(reqwest::Body::wrap_stream(body));
    let before = blobs(service);
    let sent = tokio::spawn(async move { data(envelope(send(request).await).await) });
    wait_for_blobs(service, before + 1).await;
    (finish, sent)
}

async fn uploads_of_one_user_wait_for_each_other_and_keep_nobody_else_waiting(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_MAX_UPLOADS", "2").start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let (finish, slow) = begun(&service, &ada).await;
    let second = tokio::spawn({
        let ada = ada.clone();
        async move { data(upload(&ada, Form::default().file("second.txt", b"text")).await) }
    });
    let hers = data(upload(&grace, Form::default().file("hers.txt", b"text")).await);
    assert_eq!(hers["name"], "hers.txt");
    assert!(!second.is_finished(), "one of two turns is a user's own");
    finish.send(()).expect("the upload goes on");
    for (sent, name) in [(slow, "slow.txt"), (second, "second.txt")] {
        let document = within_deadline(name, sent).await.expect("no panic");
        assert_eq!(document["name"], name);
    }
}
