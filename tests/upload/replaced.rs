//! New versions of files: what is found is the new one, and everything that refers to the document stays.

use futures::{StreamExt, future::join_all, stream};
use reqwest::{Body, Method, RequestBuilder, StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{BOUNDARY, Form, blobs, ingest, part_head, upload, wait_for_blobs};
use crate::{
    bodies::Refused,
    ingestion::chunks,
    support::{
        client::{Client, data, envelope, id, send},
        command::download,
        in_both_modes,
        service::{Mode, Service},
        web::Web,
        within_deadline,
    },
};

in_both_modes!(
    a_new_version_is_found_and_the_former_is_not_and_all_that_refers_to_it_stays,
    the_former_version_answers_when_the_new_one_cannot_be_read,
    the_file_that_is_there_already_queues_nothing,
    a_new_version_is_what_its_file_shows_unless_it_is_of_the_same_kind,
    a_new_version_that_is_wrong_is_refused_and_leaves_the_former,
    only_a_file_that_was_uploaded_to_ones_own_workspace_is_replaced,
    a_new_version_that_is_sent_again_is_taken_once,
    a_full_workspace_takes_a_new_version_that_is_not_larger,
    a_new_version_ends_with_the_credential_by_which_it_began,
    a_kill_leaves_the_former_version_or_the_new_one,
    versions_and_a_deletion_at_once_leave_one_version_or_none
);

const SIX: &[u8] = b"The notice period is six months.";
const THREE: &[u8] = b"The notice period is three months.";

fn replacing(client: &Client, document: &Value) -> RequestBuilder {
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    client.request(Method::PUT, &format!("/documents/{}/file", id(document))).header(CONTENT_TYPE, kind)
}

async fn replace(client: &Client, document: &Value, form: Form) -> (StatusCode, Value) {
    envelope(send(replacing(client, document).body(form.bytes())).await).await
}

/// Replaces a file, waits for the ingestion, expects that it succeeded, and returns the document.
async fn replaced(client: &Client, document: &Value, form: Form) -> Value {
    data(replace(client, document, form).await);
    let document = client.wait_until_ingested(id(document)).await;
    assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{:#}", document["ingestion"]);
    document
}

fn contract(bytes: &[u8]) -> Form {
    Form::default().file("contract.txt", bytes)
}

/// The texts that are found for a question.
async fn found(client: &Client) -> Vec<String> {
    let found = client.create("/search", &json!({ "query": "notice period" })).await;
    let text = |passage: &Value| passage["text"].as_str().expect("a text").to_owned();
    found.as_array().expect("a list").iter().map(text).collect()
}

async fn a_new_version_is_found_and_the_former_is_not_and_all_that_refers_to_it_stays(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let collection = ada.create("/collections", &json!({ "name": "Contracts" })).await;
    let form = contract(SIX)
        .text("name", "Contract")
        .text("description", "With the landlord")
        .text("metadata", r#"{"year": 2025}"#)
        .text("collectionIds", id(&collection));
    let document = ingest(&ada, form).await;
    let agent = ada.create_agent(&json!({ "name": "Clerk", "type": "CHATVENDOR" })).await;
    let link = ada.link(id(&agent), id(&document)).await;
    assert_eq!(found(&ada).await, ["The notice period is six months."]);

    let queued = data(replace(&ada, &document, Form::default().file("contract-2027.txt", THREE)).await);
    assert_eq!((&queued["id"], &queued["ingestion"]["status"]), (&document["id"], &json!("QUEUED")));
    assert_eq!(queued["index"]["status"], "READY", "the former one answers meanwhile: {queued:#}");
    let after = ada.wait_until_ingested(id(&document)).await;
    assert_eq!(after["ingestion"]["status"], "SUCCEEDED", "{after:#}");
    assert_eq!(found(&ada).await, ["The notice period is three months."]);
    assert_eq!(download(&ada, id(&document)).await, THREE);
    for field in ["id", "name", "description", "type", "metadata", "collectionIds", "createdAt"] {
        assert_eq!(after[field], document[field], "{field}");
    }
    assert_eq!(ada.read(&format!("/agent-documents/{}", id(&link))).await["documentId"], document["id"]);
    assert_eq!(ada.read("/documents").await.as_array().map(Vec::len), Some(1));
    wait_for_blobs(&service, 1).await;

    let renamed = replaced(&ada, &document, contract(SIX).text("name", "Old contract")).await;
    assert_eq!(renamed["name"], "Old contract");
    assert_eq!(found(&ada).await, ["The notice period is six months."]);
    data(ada.delete(&format!("/documents/{}", id(&document))).await);
    wait_for_blobs(&service, 0).await;
}

async fn the_former_version_answers_when_the_new_one_cannot_be_read(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let document = ingest(&ada, contract(SIX)).await;
    let broken = Form::default().file("contract.pdf", b"%PDF-1.7 and nothing more");
    let queued = data(replace(&ada, &document, broken).await);
    assert_eq!(queued["type"], "PDF");
    let failed = ada.wait_until_ingested(id(&document)).await;
    assert_eq!(failed["ingestion"]["status"], "FAILED", "{failed:#}");
    assert_eq!(found(&ada).await, ["The notice period is six months."]);
    let after = replaced(&ada, &document, contract(THREE)).await;
    assert_eq!(after["type"], "TXT");
    assert_eq!(found(&ada).await, ["The notice period is three months."]);
    wait_for_blobs(&service, 1).await;
}

async fn the_file_that_is_there_already_queues_nothing(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let document = ingest(&ada, contract(SIX)).await;
    let same = data(replace(&ada, &document, contract(SIX)).await);
    for field in ["updatedAt", "ingestion", "index", "name", "type"] {
        assert_eq!(same[field], document[field], "{field}");
    }
    wait_for_blobs(&service, 1).await;
    assert_eq!(download(&ada, id(&document)).await, SIX);
}

async fn a_new_version_is_what_its_file_shows_unless_it_is_of_the_same_kind(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    // What somebody wrote down of a video is that in its next version, too.
    let talk = ingest(&ada, Form::default().file("talk.txt", b"Good evening.").text("type", "VIDEO")).await;
    let again = replaced(&ada, &talk, Form::default().file("talk-2.txt", b"Good morning.")).await;
    assert_eq!(again["type"], "VIDEO");
    let table = replaced(&ada, &talk, Form::default().file("talk.csv", b"who,what\nAda,Good night.\n")).await;
    assert_eq!(table["type"], "CSV");
    let text = Form::default().file("talk.csv", b"who,what\nAda,Good night.\n").text("type", "TXT");
    assert_eq!(replaced(&ada, &talk, text).await["type"], "TXT");
    // Its name alone makes a text Markdown.
    let plain = ingest(&ada, Form::default().file("rules.txt", b"# Cellar\n\nBicycles.")).await;
    let marked = replaced(&ada, &plain, Form::default().file("rules.md", b"# Cellar\n\nBicycles.")).await;
    assert_eq!(marked["name"], "rules.txt", "its name stays");
    assert_eq!(chunks(&ada, id(&plain)).await[0]["place"]["heading"], json!(["Cellar"]));
}

async fn a_new_version_that_is_wrong_is_refused_and_leaves_the_former(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_MAX_SOURCE", "100KiB").start().await;
    let ada = service.signed_up("ada@example.com").await;
    let document = ingest(&ada, contract(SIX)).await;
    for (form, named) in [
        (Form::default(), &["file"][..]),
        (Form::default().text("name", " "), &["file", "name"]),
        (Form::default().file("empty.txt", b""), &["file"]),
        (contract(THREE).file("b.txt", b"more"), &["file"]),
        (contract(THREE).text("name", "A").text("name", "B"), &["name"]),
        (contract(THREE).text("type", "PDF"), &["type"]),
        (contract(THREE).text("type", "WORD"), &["type"]),
        (
            contract(THREE).text("metadata", "{}").text("from_page", "1").text("url", "https://example.com/"),
            &["from_page", "metadata", "url"],
        ),
    ] {
        let shown = String::from_utf8_lossy(&form.0).into_owned();
        let refused = Refused::by(replace(&ada, &document, form).await);
        assert_eq!(refused.paths(), named, "{shown}");
    }
    // Where something else is to be done, that is said, and not that a change of the document would do it.
    let form = contract(THREE).text("description", "A").text("content", "text").text("collectionIds", "[]");
    let refused = Refused::by(replace(&ada, &document, form).await);
    for (field, instead) in [("description", "PATCH"), ("collectionIds", "/collections/{id}/documents/")] {
        assert!(refused.message(field).contains(instead), "{refused:?}");
    }
    assert_eq!(refused.message("content"), "cannot be given together with a file");
    let large = vec![b'x'; 200 << 10];
    for (form, status, code) in [
        (Form::default().file("a.png", b"\x89PNG\r\n\x1a\n"), 415, "unsupported_media_type"),
        (contract(&large), 413, "too_large"),
    ] {
        let (answered, answer) = replace(&ada, &document, form).await;
        assert_eq!((answered.as_u16(), &answer["error"]["code"]), (status, &json!(code)), "{answer:#}");
    }
    wait_for_blobs(&service, 1).await;
    assert_eq!(download(&ada, id(&document)).await, SIX);
    let after = ada.read(&format!("/documents/{}", id(&document))).await;
    assert_eq!(after["ingestion"], document["ingestion"], "nothing was queued");
}

async fn only_a_file_that_was_uploaded_to_ones_own_workspace_is_replaced(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let grace = service.signed_up("grace@example.com").await;
    let text = ada.create_document(&json!({ "name": "A", "type": "TXT", "content": "text" })).await;
    let web = Web::start().await;
    let url = web.serve("/a.txt", "text/plain", "A text.");
    let address = ada.create_document(&json!({ "name": "A", "type": "TXT", "url": url })).await;
    for (document, instead) in [(&text, "change its content"), (&address, "change its url")] {
        let (status, answer) = replace(&ada, document, contract(THREE)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:#}");
        let wrong = &answer["error"]["fields"][0];
        assert_eq!(wrong["path"], "file", "{answer:#}");
        assert!(wrong["message"].as_str().is_some_and(|message| message.contains(instead)), "{answer:#}");
    }
    let document = ingest(&ada, contract(SIX)).await;
    let (status, strangers) = replace(&grace, &document, contract(THREE)).await;
    let (_, nobodys) = replace(&grace, ada.user(), contract(THREE)).await;
    assert_eq!((status, &strangers["error"]), (StatusCode::NOT_FOUND, &nobodys["error"]));
    let (status, _) = replace(&ada.signed_out(), &document, contract(THREE)).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert_eq!(download(&ada, id(&document)).await, SIX);
    assert_eq!(blobs(&service), 1, "nothing was stored");
}

async fn a_new_version_that_is_sent_again_is_taken_once(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let document = ingest(&ada, contract(SIX)).await;
    let send_with = async |form: Form| {
        let request = replacing(&ada, &document).header("Idempotency-Key", "key");
        let answer = send(request.body(form.bytes())).await;
        let replayed = answer.headers().contains_key("idempotent-replayed");
        (envelope(answer).await, replayed)
    };
    let (first, replayed) = send_with(contract(THREE)).await;
    assert!(!replayed && first.0 == StatusCode::OK, "{first:?}");
    let ended = ada.wait_until_ingested(id(&document)).await;
    assert_eq!(send_with(contract(THREE)).await, (first, true));
    let ((status, answer), _) = send_with(contract(SIX)).await;
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::CONFLICT, &json!("idempotency_key_reused")));
    let after = ada.read(&format!("/documents/{}", id(&document))).await;
    assert_eq!(after["ingestion"], ended["ingestion"], "nothing was queued again");
    wait_for_blobs(&service, 1).await;
    assert_eq!(download(&ada, id(&document)).await, THREE);
}

async fn a_full_workspace_takes_a_new_version_that_is_not_larger(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    // The first account is the operator's, who sets quotas.
    let ada = service.signed_up("ada@example.com").await;
    let document = ingest(&ada, contract(SIX)).await;
    wait_for_blobs(&service, 1).await;
    let workspace = format!("/workspaces/{}", ada.user()["id"].as_str().expect("an id"));
    let used = ada.read(&workspace).await["used"]["bytes"].clone();
    data(ada.patch(&workspace, &json!({ "quotas": { "bytes": used } })).await);
    let larger = [SIX, b" And a day.".repeat(100).as_slice()].concat();
    let (status, answer) = replace(&ada, &document, contract(&larger)).await;
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::FORBIDDEN, &json!("quota_exceeded")));
    let (status, answer) = upload(&ada, contract(b"x")).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer:#}");
    let as_large = b"The notice period is two months.";
    assert_eq!(as_large.len(), SIX.len());
    replaced(&ada, &document, contract(as_large)).await;
    assert_eq!(found(&ada).await, ["The notice period is two months."]);
    wait_for_blobs(&service, 1).await;
}

/// The body of a form with a file that goes on until it is told to end.
fn slow_form() -> (oneshot::Sender<()>, Body) {
    let (finish, finished) = oneshot::channel::<()>();
    let head = part_head("name=\"file\"; filename=\"slow.txt\"", Some("text/plain"));
    let head = [head.into_bytes(), b"words ".repeat(20_000)].concat();
    let end = async move {
        let _ = finished.await;
        format!("\r\n--{BOUNDARY}--\r\n").into_bytes()
    };
    let body = stream::once(async { head }).chain(stream::once(end)).map(Ok::<_, std::io::Error>);
    (finish, Body::wrap_stream(body))
}

async fn a_new_version_ends_with_the_credential_by_which_it_began(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let document = ingest(&ada, contract(SIX)).await;
    let made = ada.create("/api-tokens", &json!({ "description": "a script's", "role": "editor" })).await;
    let script = ada.with_token(made["token"].as_str().expect("a value"));
    let (finish, body) = slow_form();
    let request = replacing(&script, &document).body(body);
    let sent = tokio::spawn(async move { envelope(send(request).await).await });
    wait_for_blobs(&service, 2).await;
    data(ada.delete(&format!("/api-tokens/{}", id(&made))).await);
    let (status, answer) = within_deadline("the upload to end", sent).await.expect("no panic");
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{answer:#}");
    drop(finish);
    wait_for_blobs(&service, 1).await;
    assert_eq!(download(&ada, id(&document)).await, SIX);
}

async fn a_kill_leaves_the_former_version_or_the_new_one(mode: Mode) {
    let setup = Service::in_mode(mode);
    let setup = match mode {
        // The next start knows that all leases are void.
        Mode::Embedded => setup,
        Mode::Postgres | Mode::Cluster => setup.env("LECTERN_JOB_LEASE", "6s"),
    };
    let mut service = setup.start().await;
    let ada = service.signed_up("ada@example.com").await;
    let document = ingest(&ada, contract(SIX)).await;
    // It is not committed, although it may be on the disk.
    let (finish, body) = slow_form();
    let request = replacing(&ada, &document).body(body);
    let sent =
        tokio::spawn(async move { request.send().await.is_ok_and(|answer| answer.status().is_success()) });
    wait_for_blobs(&service, 2).await;
    service.kill();
    assert!(!within_deadline("the upload to end", sent).await.expect("no panic"), "nobody took it");
    drop(finish);
    service.restart().await;
    assert_eq!(download(&ada, id(&document)).await, SIX);
    assert_eq!(found(&ada).await, ["The notice period is six months."]);
    let unfinished = blobs(&service).checked_sub(1).expect("the former version");

    // It is committed, and whoever would remove the former version and read the new one is gone.
    data(replace(&ada, &document, contract(THREE)).await);
    service.kill();
    service.restart().await;
    let ended = ada.wait_until_ingested(id(&document)).await;
    assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
    assert_eq!(found(&ada).await, ["The notice period is three months."]);
    assert_eq!(download(&ada, id(&document)).await, THREE);
    wait_for_blobs(&service, 1 + unfinished).await;
}

async fn versions_and_a_deletion_at_once_leave_one_version_or_none(mode: Mode) {
    const VERSIONS: usize = 6;
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let document = ingest(&ada, contract(SIX)).await;
    let text = |number: usize| format!("The notice period is {number} weeks.");
    let versions = async || {
        let one = |number| {
            let (ada, document) = (&ada, &document);
            async move { replace(ada, document, contract(text(number).as_bytes())).await.0 }
        };
        join_all((0..VERSIONS).map(one)).await
    };
    assert_eq!(versions().await, [StatusCode::OK; VERSIONS]);
    let ended = ada.wait_until_ingested(id(&document)).await;
    assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
    let there = String::from_utf8(download(&ada, id(&document)).await).expect("a text");
    assert!((0..VERSIONS).any(|number| text(number) == there), "{there}");
    assert_eq!(found(&ada).await, [there]);
    wait_for_blobs(&service, 1).await;

    let path = format!("/documents/{}", id(&document));
    let (statuses, deleted) = tokio::join!(versions(), ada.delete(&path));
    data(deleted);
    // Whoever stores a file while those of a deleted document are purged is told to try again.
    let known = [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::SERVICE_UNAVAILABLE];
    assert!(statuses.iter().all(|status| known.contains(status)), "{statuses:?}");
    assert_eq!(ada.get(&path).await.0, StatusCode::NOT_FOUND);
    assert_eq!(found(&ada).await, [""; 0]);
    wait_for_blobs(&service, 0).await;
}
