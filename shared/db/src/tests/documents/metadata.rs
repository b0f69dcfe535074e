//! Metadata as it is stored.

use std::collections::BTreeMap;

use lectern_shared::{
    ids::DocumentId,
    model::{
        Json,
        document::{SplitterConfig, SplitterType},
    },
};
use serde_json::json;

use super::delete;
use crate::{
    documents::{self, metadata, metadata::DocumentDescription},
    execute,
    testing::{TestDb, at, both, claimed, commit, document, published, set_metadata, workspace},
};

async fn describe(t: &TestDb, document: DocumentId, metadata: &str) {
    commit!(t.db, |tx| async {
        execute!(
            tx,
            sqlx::query("UPDATE documents SET metadata = $2 WHERE id = $1").bind(document).bind(metadata)
        )
    });
}

#[tokio::test]
async fn only_metadata_of_the_owners_searchable_documents_is_read() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        assert_eq!(metadata::size(&t.db, owner).await.unwrap(), (0, 0), "{}", t.name);
        let (first, _) = published(&t.db, owner, "first", &["text"], at(0)).await;
        let (second, _) = published(&t.db, owner, "second", &["text"], at(0)).await;
        let (bare, _) = published(&t.db, owner, "bare", &["text"], at(0)).await;
        let (gone, _) = published(&t.db, owner, "gone", &["text"], at(0)).await;
        let (theirs, _) = published(&t.db, other, "theirs", &["text"], at(0)).await;
        let waiting = claimed(&t.db, owner, "not yet", at(0)).await.document_id;
        // Of more bytes than characters.
        let (a, b) = (r#"{"a":1}"#, r#"{"größe":"über"}"#);
        for (document, text) in [(first, a), (second, b), (gone, a), (theirs, a), (waiting, a)] {
            describe(t, document, text).await;
        }
        delete(&t.db, owner, gone, 2).await;

        let size = (2, (a.len() + b.len()) as u64);
        assert_eq!(metadata::size(&t.db, owner).await.unwrap(), size, "{}", t.name);
        let mut seen = Vec::new();
        let all = metadata::each(&t.db, owner, |id, text| {
            seen.push((id, text.to_owned()));
            true
        });
        all.await.unwrap();
        assert_eq!(seen, [(first, a.to_owned()), (second, b.to_owned())], "{}: by their ids", t.name);
        let mut taken = 0;
        let one = metadata::each(&t.db, owner, |_, _| {
            taken += 1;
            false
        });
        one.await.unwrap();
        assert_eq!(taken, 1, "{}: no more than is wanted", t.name);
        assert_eq!(documents::active(&t.db, owner).await.unwrap().len(), 3, "{}: nothing hangs", t.name);

        let named = [second, gone, theirs, waiting, bare, first, DocumentId::generate()];
        let of: BTreeMap<_, _> = metadata::of(&t.db, owner, &named).await.unwrap().into_iter().collect();
        assert_eq!(of, BTreeMap::from([(first, a.to_owned()), (second, b.to_owned())]), "{}", t.name);
        assert!(metadata::of(&t.db, owner, &[]).await.unwrap().is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn what_is_said_of_a_document_is_written_without_the_rest_of_it() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let id = document(&t.db, owner, "first", at(0)).await;
        let untouched = document(&t.db, owner, "second", at(0)).await;
        let gone = document(&t.db, owner, "gone", at(0)).await;
        commit!(t.db, |tx| documents::delete(tx, owner, gone, at(1), at(1)));
        let before = documents::source(&t.db, owner, id).await.unwrap().unwrap();
        let splitter =
            SplitterConfig { r#type: SplitterType::Token, chunk_size: 300, chunk_overlap: 30, given: None };
        let metadata = json!({"team": "law"}).as_object().cloned().unwrap();
        let said = DocumentDescription { id, metadata: Some(Json(metadata)), splitter: Some(Json(splitter)) };
        for (workspace, id, is_there) in [(owner, id, true), (other, id, false), (owner, gone, false)] {
            let said = DocumentDescription { id, ..said.clone() };
            let written = commit!(t.db, |tx| metadata::describe(tx, workspace, &said, at(3)));
            assert_eq!(written, is_there, "{}", t.name);
        }
        let after = documents::source(&t.db, owner, id).await.unwrap().unwrap();
        assert_eq!((&after.metadata, &after.splitter), (&said.metadata, &said.splitter), "{}", t.name);
        assert_eq!((&after.name, &after.url, &after.content), (&before.name, &before.url, &before.content));
        let shown = documents::find(&t.db, owner, id).await.unwrap().unwrap();
        assert_eq!((shown.created_at, shown.updated_at), (at(0), at(3)), "{}", t.name);

        let named = [id, untouched, gone, DocumentId::generate()];
        let mut found = commit!(t.db, |tx| metadata::described(tx, owner, &named));
        found.sort_by_key(|description| description.id);
        let bare = DocumentDescription { id: untouched, metadata: None, splitter: None };
        assert_eq!(found, [said, bare], "{}", t.name);
        assert!(commit!(t.db, |tx| metadata::described(tx, other, &named)).is_empty(), "{}", t.name);
        assert!(commit!(t.db, |tx| metadata::described(tx, owner, &[])).is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn what_has_changed_of_the_metadata_can_be_read_alone() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let epoch = async || documents::search_epoch(&t.db, owner).await.unwrap();
        let mut ids = Vec::new();
        for name in ["first", "second", "third"] {
            ids.push(published(&t.db, owner, name, &["text"], at(0)).await.0);
        }
        published(&t.db, other, "another's", &["text"], at(0)).await;
        let begun = epoch().await;
        let since = async |epoch, limit| metadata::changed_since(&t.db, owner, epoch, limit).await.unwrap();
        assert_eq!(since(begun, 9).await, Some(vec![]), "{}", t.name);
        for (id, text) in [(ids[2], r#"{"a":1}"#), (ids[0], r#"{"b":2}"#)] {
            commit!(t.db, |tx| async {
                documents::bump_search_epoch(tx, owner).await?;
                set_metadata(tx, id, text).await
            });
        }
        let told = |text: &str| Some(text.to_owned());
        let both_told = vec![(ids[0], told(r#"{"b":2}"#)), (ids[2], told(r#"{"a":1}"#))];
        assert_eq!(since(begun, 2).await, Some(both_told), "{}", t.name);
        assert_eq!(since(begun, 1).await, None, "{}: more than are wanted", t.name);
        commit!(t.db, |tx| documents::delete(tx, owner, ids[0], at(1), at(1)));
        let deleted = vec![(ids[0], None), (ids[2], told(r#"{"a":1}"#))];
        assert_eq!(since(begun, 2).await, Some(deleted), "{}", t.name);
        let last = epoch().await;
        commit!(t.db, |tx| documents::drop_tombstone(tx, ids[0], at(2)));
        assert_eq!(since(begun, 2).await, None, "{}: what is gone is unknown", t.name);
        assert_eq!(since(last, 2).await, Some(vec![]), "{}", t.name);
    }
}
