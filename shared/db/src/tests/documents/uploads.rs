//! Uploads.

use super::*;
use crate::documents::uploads::{self, BlobFile, FilePlace, FileReplacement};

/// A document that is to be made of an upload which is purged after 50 seconds.
async fn begun(db: &Db, workspace: WorkspaceId) -> NewDocumentRow<'static> {
    let document = NewDocumentRow { content: None, r#type: DocumentType::Pdf, ..plain(workspace, "upload") };
    uploads::reserve_alone(db, workspace, document.id, at(0), at(50)).await.unwrap();
    document
}

async fn complete(db: &Db, document: &NewDocumentRow<'_>, now: u64) -> bool {
    let file = BlobFile {
        key: "the/key",
        bytes: 5_000_000_000,
        sha256: &[7; 32],
        name: Some("Über.pdf"),
        mime: "application/pdf",
    };
    commit!(db, |tx| uploads::complete(tx, document, &file, at(now)))
}

async fn due(db: &Db, now: u64) -> Vec<DocumentId> {
    documents::tombstones(db, at(now), 10).await.unwrap()
}

#[tokio::test]
async fn an_upload_is_no_document_until_it_is_completed() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let document = begun(&t.db, owner).await;
        let id = document.id;
        assert!(!enqueue(&t.db, owner, id, at(1)).await, "{}", t.name);
        assert!(documents::source(&t.db, owner, id).await.unwrap().is_none(), "{}", t.name);
        assert!(uploads::find(&t.db, owner, id).await.unwrap().is_none(), "{}", t.name);

        let stranger = plain(other, "stranger");
        assert!(!complete(&t.db, &NewDocumentRow { id, ..stranger }, 2).await, "{}", t.name);
        assert!(complete(&t.db, &document, 3).await, "{}", t.name);
        assert!(enqueue(&t.db, owner, id, at(3)).await, "{}", t.name);
        let found = documents::find(&t.db, owner, id).await.unwrap().unwrap();
        assert_eq!(
            (&*found.name, found.r#type, found.created_at),
            ("upload", DocumentType::Pdf, at(0)),
            "{}",
            t.name
        );
        let source = documents::source(&t.db, owner, id).await.unwrap().unwrap();
        assert_eq!((source.blob_key.as_deref(), source.content), (Some("the/key"), None), "{}", t.name);
        let called = (Some("Über.pdf"), Some("application/pdf"));
        assert_eq!((source.source_name.as_deref(), source.source_mime.as_deref()), called, "{}", t.name);
        let file = uploads::find(&t.db, owner, id).await.unwrap().unwrap();
        assert_eq!((file.source_name.as_deref(), file.source_mime.as_deref()), called, "{}", t.name);
        assert_eq!((&*file.blob_key, file.source_bytes), ("the/key", 5_000_000_000), "{}", t.name);
        assert_eq!(file.source_sha256, [7; 32], "{}", t.name);
        assert!(uploads::find(&t.db, other, id).await.unwrap().is_none(), "{}", t.name);

        assert!(!complete(&t.db, &document, 4).await, "{}: only once", t.name);
        commit!(t.db, |tx| uploads::give_up(tx, id, at(4)));
        assert!(due(&t.db, 1_000).await.is_empty(), "{}: what is complete is not given up", t.name);
    }
}

#[tokio::test]
async fn an_upload_that_is_given_up_or_forgotten_is_purged() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (given_up, forgotten) = (begun(&t.db, owner).await, begun(&t.db, owner).await);
        assert!(due(&t.db, 49).await.is_empty(), "{}: they may still be going on", t.name);
        commit!(t.db, |tx| uploads::give_up(tx, given_up.id, at(5)));
        assert_eq!(due(&t.db, 5).await, [given_up.id], "{}", t.name);
        assert!(!complete(&t.db, &given_up, 6).await, "{}", t.name);
        assert_eq!(due(&t.db, 50).await, [given_up.id, forgotten.id], "{}", t.name);
        assert!(!complete(&t.db, &forgotten, 50).await, "{}: its time is over", t.name);
        for id in [given_up.id, forgotten.id] {
            commit!(t.db, |tx| documents::drop_tombstone(tx, id, at(9)));
        }
        assert!(due(&t.db, 50).await.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn what_is_read_of_a_locked_document_is_what_an_ingestion_reads() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (published, _) = published(&t.db, owner, "published", &["text"], at(0)).await;
        let uploaded = begun(&t.db, owner).await;
        assert!(complete(&t.db, &uploaded, 3).await, "{}", t.name);
        assert!(enqueue(&t.db, owner, uploaded.id, at(3)).await, "{}", t.name);
        for id in [published, uploaded.id] {
            let (document, locked) = commit!(t.db, |tx| documents::find_locked(tx, owner, id)).unwrap();
            let read = documents::source(&t.db, owner, id).await.unwrap().unwrap();
            assert_eq!(format!("{locked:?}"), format!("{read:?}"), "{}", t.name);
            let found = documents::find(&t.db, owner, id).await.unwrap().unwrap();
            assert_eq!(format!("{document:?}"), format!("{found:?}"), "{}", t.name);
        }
    }
}

/// A file under a key, of one byte.
fn version_at(key: &str) -> FileReplacement<'_> {
    let file = BlobFile { key, bytes: 1, sha256: &[8; 32], name: Some("new.md"), mime: "text/markdown" };
    FileReplacement { r#type: DocumentType::Txt, name: None, url: None, file }
}

async fn reserve_key(db: &Db, key: &str) {
    commit!(db, |tx| uploads::reserve_key(tx, key, at(50)));
}

async fn loose(db: &Db, now: u64) -> Vec<String> {
    uploads::loose(db, at(now), 10).await.unwrap()
}

#[tokio::test]
async fn a_file_that_takes_the_place_of_another_leaves_that_one_to_be_removed() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let document = begun(&t.db, owner).await;
        assert!(complete(&t.db, &document, 3).await, "{}", t.name);
        assert!(enqueue(&t.db, owner, document.id, at(3)).await, "{}", t.name);
        reserve_key(&t.db, "new/key").await;
        assert!(loose(&t.db, 49).await.is_empty(), "{}: it may still be on its way", t.name);
        let new = FileReplacement {
            name: Some("Renamed"),
            url: Some("https://a.example/new"),
            ..version_at("new/key")
        };
        assert!(commit!(t.db, |tx| uploads::replace(tx, owner, document.id, &new, at(4))), "{}", t.name);
        let file = uploads::find(&t.db, owner, document.id).await.unwrap().unwrap();
        let now = (&*file.name, file.r#type, &*file.blob_key, file.source_bytes, file.source_name.as_deref());
        assert_eq!(now, ("Renamed", DocumentType::Txt, "new/key", 1, Some("new.md")), "{}", t.name);
        let replaced = documents::find(&t.db, owner, document.id).await.unwrap().unwrap();
        assert_eq!(replaced.url, "https://a.example/new", "{}", t.name);
        let locked = commit!(t.db, |tx| uploads::find_locked(tx, owner, document.id)).unwrap();
        assert_eq!(format!("{locked:?}"), format!("{file:?}"), "{}", t.name);

        commit!(t.db, |tx| uploads::give_up_key(tx, "new/key", at(4)));
        assert_eq!(loose(&t.db, 1_000).await, ["the/key"], "{}: what is named stays", t.name);
        assert_eq!(loose(&t.db, 4).await, ["the/key"], "{}", t.name);
        commit!(t.db, |tx| uploads::forget_loose(tx, "the/key"));
        assert!(loose(&t.db, 1_000).await.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_file_takes_no_place_that_is_not_its_workspaces_or_after_its_time() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let document = begun(&t.db, owner).await;
        assert!(complete(&t.db, &document, 3).await, "{}", t.name);
        let (inline, _) = published(&t.db, owner, "inline", &["text"], at(0)).await;
        let try_to = async |key: &str, workspace: WorkspaceId, id: DocumentId, now: u64| {
            let mut tx = t.db.begin().await.unwrap();
            // What is not replaced is rolled back.
            uploads::replace(&mut tx, workspace, id, &version_at(key), at(now)).await.unwrap()
        };
        reserve_key(&t.db, "new/key").await;
        assert!(!try_to("new/key", other, document.id, 4).await, "{}: another's", t.name);
        assert!(!try_to("new/key", owner, inline, 4).await, "{}: it has no file", t.name);
        assert!(!try_to("never/reserved", owner, document.id, 4).await, "{}", t.name);
        assert!(!try_to("new/key", owner, document.id, 50).await, "{}: its time is over", t.name);
        commit!(t.db, |tx| uploads::give_up_key(tx, "new/key", at(5)));
        assert!(!try_to("new/key", owner, document.id, 6).await, "{}: it was given up", t.name);
        assert_eq!(loose(&t.db, 5).await, ["new/key"], "{}", t.name);
        let file = uploads::find(&t.db, owner, document.id).await.unwrap().unwrap();
        assert_eq!(file.blob_key, "the/key", "{}", t.name);
    }
}

#[tokio::test]
async fn a_file_is_elsewhere_and_its_document_is_called_otherwise_where_it_is_given_a_name() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let document = begun(&t.db, owner).await;
        assert!(complete(&t.db, &document, 1).await, "{}", t.name);
        assert!(enqueue(&t.db, owner, document.id, at(1)).await, "{}", t.name);
        let id = document.id;
        let called = async || {
            let file = uploads::find(&t.db, owner, id).await.unwrap().unwrap();
            let document = documents::find(&t.db, owner, id).await.unwrap().unwrap();
            (file.name, file.source_name.unwrap_or_default(), file.blob_key, document.url)
        };
        let names = |name: &str, file: &str, url: &str| {
            (name.to_owned(), file.to_owned(), "the/key".to_owned(), url.to_owned())
        };
        let place = |name, file_name, url| FilePlace { name, file_name: Some(file_name), url };
        let theirs = place(Some("theirs"), "theirs.pdf", Some("https://theirs.example/"));
        commit!(t.db, |tx| uploads::relocate(tx, other, id, theirs, at(2)));
        assert_eq!(called().await, names("upload", "Über.pdf", ""), "{}", t.name);
        commit!(t.db, |tx| uploads::relocate(tx, owner, id, place(None, "new.pdf", None), at(3)));
        assert_eq!(called().await, names("upload", "new.pdf", ""), "{}", t.name);
        let moved = place(Some("b/new"), "new.pdf", Some("https://a.example/new"));
        commit!(t.db, |tx| uploads::relocate(tx, owner, id, moved, at(4)));
        assert_eq!(called().await, names("b/new", "new.pdf", "https://a.example/new"), "{}", t.name);
        commit!(t.db, |tx| uploads::relocate(tx, owner, id, place(None, "new.pdf", None), at(5)));
        assert_eq!(called().await, names("b/new", "new.pdf", "https://a.example/new"), "{}", t.name);
    }
}
