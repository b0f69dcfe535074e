//! Inline content.

use super::*;
use crate::{
    documents::content,
    on,
    testing::{TestDb, publish},
    workspaces,
};

/// Documents whose content is kept.
async fn kept(db: &Db) -> Vec<DocumentId> {
    on!(db, |c| sqlx::query_scalar("SELECT document_id FROM document_contents ORDER BY document_id")
        .fetch_all(c))
    .unwrap()
}

#[tokio::test]
async fn content_is_replaced_removed_and_given_again() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let id = document(&t.db, owner, "one", at(0)).await;
        for given in [Some("another"), Some(""), None, Some("again")] {
            commit!(t.db, |tx| content::set(tx, id, given));
            assert_eq!(content::find(&t.db, owner, id).await.unwrap().as_deref(), given, "{}", t.name);
            let source = documents::source(&t.db, owner, id).await.unwrap().unwrap();
            assert_eq!(source.content.as_deref(), given, "{}", t.name);
        }
        assert!(content::find(&t.db, other, id).await.unwrap().is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn content_goes_with_its_document_at_once() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let [first, second, stays] = [
            document(&t.db, owner, "first", at(0)).await,
            document(&t.db, owner, "second", at(0)).await,
            document(&t.db, other, "stays", at(0)).await,
        ];
        assert_eq!(kept(&t.db).await, [first, second, stays], "{}", t.name);
        assert!(delete(&t.db, owner, first, 1).await, "{}", t.name);
        assert_eq!(kept(&t.db).await, [second, stays], "{}", t.name);
        commit!(t.db, |tx| workspaces::delete(tx, owner, at(2)));
        assert_eq!(kept(&t.db).await, [stays], "{}", t.name);
    }
}

/// Bytes of SQLite's log, which has what was written since it was last copied.
fn logged(t: &TestDb) -> u64 {
    let mut log = t.file().as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).unwrap().len()
}

#[tokio::test]
async fn a_long_content_is_written_once() {
    let t = &both().await[0];
    let workspace = workspace(&t.db, at(0)).await;
    let text = "a long text ".repeat(100_000);
    let new = NewDocumentRow { content: Some(&text), ..plain(workspace, "long") };
    let before = logged(t);
    commit!(t.db, |tx| documents::insert(tx, &new, at(0)));
    let inserted = logged(t);
    assert!(inserted - before > text.len() as u64, "{before} {inserted}");

    enqueue(&t.db, workspace, new.id, at(0)).await;
    let claim = claim(&t.db, at(0)).await.unwrap();
    let generation = staged(&t.db, &claim, &["text"], at(0)).await;
    publish(&t.db, &claim, generation, at(1)).await;
    let renamed = NewDocumentRow { name: "a longer name", ..new };
    assert!(commit!(t.db, |tx| documents::update(tx, &renamed, at(2))));
    let written = logged(t) - inserted;
    assert!(written > 0 && written < text.len() as u64 / 2, "{written} bytes");
}
