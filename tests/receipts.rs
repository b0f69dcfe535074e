//! Receipts of deletions: what is told is what was there, and nothing of it is left.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{
    DEADLINE,
    client::{Client, PASSWORD, data, id},
    command::lectern,
    in_both_modes,
    process::POLL,
    service::{Mode, Service},
};

in_both_modes!(a_receipt_tells_what_was_there_and_that_nothing_is_left, a_receipt_is_the_same_after_a_crash);

/// A text of several passages.
fn text() -> String {
    let lines = (0..400).map(|number| format!("Line {number} of the ledger names the keeper of that day."));
    lines.collect::<Vec<_>>().join(" ")
}

/// A document with two links; and how many passages it has.
async fn linked_document(client: &Client) -> (String, usize) {
    let shelf = client.create("/collections", &json!({"name": "Shelf"})).await;
    let document = json!({"name": "Ledger", "type": "TXT", "content": text(), "collectionIds": [id(&shelf)]});
    let document = client.ingest(&document).await;
    let agent = client.create_agent(&json!({"name": "Clerk", "type": "CHATVENDOR"})).await;
    client.link(id(&agent), id(&document)).await;
    let passages = client.read(&format!("/documents/{}/chunks?limit=200", id(&document))).await;
    (id(&document).to_owned(), passages.as_array().expect("a list").len())
}

/// The receipt, when nothing of the document is left.
pub async fn closed_receipt(client: &Client, document: &str) -> Value {
    let path = format!("/documents/{document}/receipt");
    let closing = async {
        loop {
            let receipt = client.read(&path).await;
            if !receipt["purgedAt"].is_null() {
                return receipt;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    // Housekeeping comes after everything else, and many tests are under way.
    let closed = tokio::time::timeout(3 * DEADLINE, closing).await;
    closed.unwrap_or_else(|_| panic!("document {document} was not purged within {:?}", 3 * DEADLINE))
}

fn assert_told(receipt: &Value, passages: usize) {
    let removed = &receipt["removed"];
    assert_eq!((&receipt["name"], &receipt["remaining"]), (&json!("Ledger"), &json!(0)), "{receipt:#}");
    assert_eq!(removed["passages"], json!(passages), "{receipt:#}");
    assert_eq!(removed["links"], json!(2), "{receipt:#}");
    assert!(removed["bytes"].as_u64() >= Some(text().len() as u64), "{receipt:#}");
    assert!(removed["indexEntries"].as_u64() >= Some(passages as u64), "{receipt:#}");
}

async fn a_receipt_tells_what_was_there_and_that_nothing_is_left(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let other = service.signed_up("ben@example.com").await;
    let (document, passages) = linked_document(&owner).await;
    assert!(passages > 3, "{passages}");
    let path = format!("/documents/{document}/receipt");
    assert_eq!(owner.get(&path).await.0, StatusCode::NOT_FOUND, "it is not deleted");
    data(owner.delete(&format!("/documents/{document}")).await);
    let told = owner.read(&path).await;
    assert_eq!((&told["documentId"], &told["deletedBy"]), (&json!(document), &owner.user()["id"]), "at once");
    assert_eq!(told["removed"]["passages"], json!(passages));
    assert_told(&closed_receipt(&owner, &document).await, passages);
    assert_eq!(other.get(&path).await.0, StatusCode::NOT_FOUND);
    assert_eq!(owner.get(&format!("/documents/{document}")).await.0, StatusCode::NOT_FOUND);
}

async fn a_receipt_is_the_same_after_a_crash(mode: Mode) {
    let mut service = Service::in_mode(mode).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let (document, passages) = linked_document(&owner).await;
    data(owner.delete(&format!("/documents/{document}")).await);
    service.kill();
    service.restart().await;
    assert_told(&closed_receipt(&owner, &document).await, passages);
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_are_right_after_a_restore() {
    let service = Service::in_mode(Mode::Embedded).start().await;
    let owner = service.signed_up("ada@example.com").await;
    let (before, passages) = linked_document(&owner).await;
    let (after, _) = linked_document(&owner).await;
    data(owner.delete(&format!("/documents/{before}")).await);
    let told = closed_receipt(&owner, &before).await;
    let place = tempfile::tempdir().expect("a folder");
    let backup = place.path().join("backup");
    let backup = backup.to_str().expect("a path of plain text");
    tokio::task::block_in_place(|| lectern(&service.sibling(), &["backup", backup])).well();
    drop(service);

    let setup = Service::in_mode(Mode::Embedded);
    tokio::task::block_in_place(|| lectern(&setup, &["restore", backup])).well();
    let service = setup.start().await;
    let owner = service.client().sign_in("ada@example.com", PASSWORD).await;
    assert_eq!(owner.read(&format!("/documents/{before}/receipt")).await, told);
    data(owner.delete(&format!("/documents/{after}")).await);
    assert_told(&closed_receipt(&owner, &after).await, passages);
}
