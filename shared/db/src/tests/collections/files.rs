//! Documents as files: of a workspace, of a collection, of a batch.

use lectern_shared::{
    ids::{CollectionId, DocumentId, FileBatchId, WorkspaceId},
    model::{collection::CollectionFileCounts, job::JobState},
};
use serde_json::json;
use uuid::Uuid;

use super::{add, collection, new_collection};
use crate::{
    Db, agents,
    collections::{self, files, files::FileSelection},
    documents::{self, files as document_files, files::IdWindow},
    execute, jobs,
    testing::{at, both, claimed, commit, document, made_in, published, set_metadata, workspace},
    tests::agents::agent,
};

/// Everything, the newest first.
fn newest(limit: u32) -> IdWindow {
    IdWindow { above: Uuid::nil(), below: Uuid::max(), is_ascending: false, limit }
}

fn oldest(limit: u32) -> IdWindow {
    IdWindow { is_ascending: true, ..newest(limit) }
}

async fn listed(
    db: &Db,
    workspace: WorkspaceId,
    collection: CollectionId,
    selection: FileSelection,
    window: &IdWindow,
) -> Vec<DocumentId> {
    let files = files::list(db, workspace, collection, selection, window).await.unwrap();
    files.into_iter().map(|file| file.document.id).collect()
}

#[tokio::test]
async fn files_are_listed_from_either_end_and_between_two_of_them() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let mut ids = Vec::new();
        for name in ["a", "b", "c"] {
            ids.push(document(&t.db, owner, name, at(1)).await);
        }
        let gone = document(&t.db, owner, "gone", at(1)).await;
        commit!(t.db, |tx| documents::delete(tx, owner, gone, at(1), at(2)));
        let theirs = document(&t.db, other, "theirs", at(1)).await;
        let (first, last) = (*ids[0].as_uuid(), *ids[2].as_uuid());
        for (window, expected) in [
            (newest(9), vec![ids[2], ids[1], ids[0]]),
            (newest(2), vec![ids[2], ids[1]]),
            (oldest(2), vec![ids[0], ids[1]]),
            (IdWindow { below: last, ..newest(9) }, vec![ids[1], ids[0]]),
            (IdWindow { above: first, ..oldest(9) }, vec![ids[1], ids[2]]),
            (IdWindow { above: first, below: last, ..newest(9) }, vec![ids[1]]),
        ] {
            let page = document_files::list(&t.db, owner, &window).await.unwrap();
            let found: Vec<_> = page.iter().map(|file| file.id).collect();
            assert_eq!(found, expected, "{}: {window:?}", t.name);
        }
        let file = document_files::find(&t.db, owner, ids[0]).await.unwrap().unwrap();
        assert_eq!(
            (file.file_name(), file.stored_bytes, file.state),
            ("a", 7, JobState::Queued),
            "{}",
            t.name
        );
        assert_eq!(file.created_at, at(1), "{}", t.name);
        for id in [theirs, gone] {
            assert!(document_files::find(&t.db, owner, id).await.unwrap().is_none(), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn labels_tell_names_and_metadata_of_the_workspaces_own_documents() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let mine = document(&t.db, owner, "mine", at(1)).await;
        let theirs = document(&t.db, other, "theirs", at(1)).await;
        commit!(t.db, |tx| set_metadata(tx, mine, r#"{"year":2026}"#));
        let labels = document_files::labels(&t.db, owner, &[theirs, mine]).await.unwrap();
        assert_eq!(labels.len(), 1, "{}", t.name);
        assert_eq!((labels[0].id, labels[0].name.as_str()), (mine, "mine"), "{}", t.name);
        assert_eq!(labels[0].metadata.as_ref().unwrap().0["year"], json!(2026), "{}", t.name);
        assert!(document_files::labels(&t.db, owner, &[]).await.unwrap().is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn files_of_a_collection_are_counted_and_found_by_where_they_stand() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let set = collection(&t.db, made_in(owner), "set").await;
        let empty = collection(&t.db, made_in(owner), "empty").await;
        let (done, _) = published(&t.db, owner, "done", &["text"], at(1)).await;
        let running = claimed(&t.db, owner, "running", at(1)).await.document_id;
        let stopped = document(&t.db, owner, "stopped", at(1)).await;
        assert!(commit!(t.db, |tx| jobs::cancel(tx, owner, stopped, at(2))), "{}", t.name);
        let waiting = document(&t.db, owner, "waiting", at(1)).await;
        let outside = document(&t.db, owner, "outside", at(1)).await;
        add(&t.db, owner, set, &[done, running, stopped, waiting]).await;
        commit!(t.db, |tx| async {
            let size = "UPDATE generations SET stored_bytes = 50 WHERE document_id = $1";
            execute!(tx, sqlx::query(size).bind(done))
        });

        let counts = files::counts(&t.db, owner, &[set, empty]).await.unwrap();
        assert!(!counts.contains_key(&empty), "{}", t.name);
        let found = counts[&set];
        let expected =
            CollectionFileCounts { in_progress: 2, completed: 1, failed: 0, cancelled: 1, indexed_bytes: 50 };
        assert_eq!((found, found.total()), (expected, 4), "{}", t.name);
        assert!(files::counts(&t.db, other, &[set]).await.unwrap().is_empty(), "{}", t.name);
        assert_eq!(commit!(t.db, |tx| files::counts_in(tx, owner, set)), expected, "{}", t.name);
        assert_eq!(commit!(t.db, |tx| files::counts_in(tx, other, set)).total(), 0, "{}", t.name);

        for (states, expected) in [
            (None, vec![waiting, stopped, running, done]),
            (Some((JobState::Queued, JobState::Running)), vec![waiting, running]),
            (Some((JobState::Done, JobState::Done)), vec![done]),
            (Some((JobState::Cancelled, JobState::Cancelled)), vec![stopped]),
            (Some((JobState::Dead, JobState::Dead)), vec![]),
        ] {
            let selection = FileSelection { batch: None, states };
            let found = listed(&t.db, owner, set, selection, &newest(9)).await;
            assert_eq!(found, expected, "{}: {states:?}", t.name);
        }
        let all = FileSelection::default();
        assert_eq!(listed(&t.db, owner, set, all, &oldest(2)).await, [done, running], "{}", t.name);
        assert_eq!(listed(&t.db, other, set, all, &newest(9)).await, [], "{}", t.name);

        let file = files::find(&t.db, owner, set, done).await.unwrap().unwrap();
        assert_eq!((file.document.id, file.indexed_bytes), (done, 50), "{}", t.name);
        for (workspace, document) in [(owner, outside), (other, done)] {
            let found = files::find(&t.db, workspace, set, document).await.unwrap();
            assert!(found.is_none(), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn the_last_batch_that_put_a_document_there_counts_and_is_stopped_alone() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let set = collection(&t.db, made_in(owner), "set").await;
        let mut ids = Vec::new();
        for name in ["a", "b", "c"] {
            ids.push(document(&t.db, owner, name, at(1)).await);
        }
        add(&t.db, owner, set, &ids).await;
        let (first, second) = (FileBatchId::generate(), FileBatchId::generate());
        commit!(t.db, |tx| files::set_batch(tx, owner, set, &ids[..2], first));
        commit!(t.db, |tx| files::set_batch(tx, owner, set, &ids[1..], second));
        commit!(t.db, |tx| files::set_batch(tx, other, set, &ids, second));
        commit!(t.db, |tx| files::set_batch(tx, owner, set, &[], first));
        add(&t.db, owner, set, &ids).await;

        let of = |batch| FileSelection { batch: Some(batch), states: None };
        assert_eq!(listed(&t.db, owner, set, of(first), &newest(9)).await, ids[..1], "{}", t.name);
        assert_eq!(listed(&t.db, owner, set, of(second), &oldest(9)).await, ids[1..], "{}", t.name);

        let cancel = async |workspace, batch| {
            commit!(t.db, |tx| files::cancel_batch(tx, workspace, set, batch, at(3)))
        };
        assert_eq!(cancel(other, second).await, 0, "{}", t.name);
        assert_eq!(cancel(owner, second).await, 2, "{}", t.name);
        assert_eq!(cancel(owner, second).await, 0, "{}: they are stopped already", t.name);
        let counts = async |batch| files::batch_counts(&t.db, owner, set, batch).await.unwrap();
        let stopped = CollectionFileCounts { cancelled: 2, ..CollectionFileCounts::default() };
        assert_eq!(counts(second).await, Some(stopped), "{}", t.name);
        let waiting = CollectionFileCounts { in_progress: 1, ..CollectionFileCounts::default() };
        assert_eq!(counts(first).await, Some(waiting), "{}", t.name);
        assert_eq!(counts(FileBatchId::generate()).await, None, "{}", t.name);
        assert_eq!(files::batch_counts(&t.db, other, set, first).await.unwrap(), None, "{}", t.name);
    }
}

#[tokio::test]
async fn what_is_waited_for_elsewhere_too_is_not_stopped_with_its_batch() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let set = collection(&t.db, made_in(owner), "set").await;
        let another = collection(&t.db, made_in(owner), "another").await;
        let mut ids = Vec::new();
        for name in ["alone", "in another", "linked"] {
            ids.push(document(&t.db, owner, name, at(1)).await);
        }
        add(&t.db, owner, set, &ids).await;
        add(&t.db, owner, another, &ids[1..2]).await;
        let asked = agent(&t.db, owner, at(1)).await;
        commit!(t.db, |tx| agents::link(tx, made_in(owner), asked, ids[2], at(2))).unwrap();
        let batch = FileBatchId::generate();
        commit!(t.db, |tx| files::set_batch(tx, owner, set, &ids, batch));

        let stopped = commit!(t.db, |tx| files::cancel_batch(tx, owner, set, batch, at(3)));
        assert_eq!(stopped, 1, "{}", t.name);
        let states = Some((JobState::Cancelled, JobState::Cancelled));
        let selection = FileSelection { batch: Some(batch), states };
        assert_eq!(listed(&t.db, owner, set, selection, &newest(9)).await, ids[..1], "{}", t.name);
    }
}

#[tokio::test]
async fn collections_are_listed_from_either_end() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (a, b) = (new_collection(made_in(owner), "a"), new_collection(made_in(owner), "b"));
        for made in [&a, &b] {
            commit!(t.db, |tx| collections::insert(tx, made));
        }
        collection(&t.db, made_in(other), "theirs").await;
        for (window, expected) in [
            (newest(9), vec![b.clone(), a.clone()]),
            (oldest(9), vec![a.clone(), b.clone()]),
            (newest(1), vec![b.clone()]),
            (IdWindow { above: *a.id.as_uuid(), ..oldest(9) }, vec![b.clone()]),
            (IdWindow { below: *b.id.as_uuid(), ..newest(9) }, vec![a.clone()]),
        ] {
            let page = collections::window(&t.db, owner, &window).await.unwrap();
            assert_eq!(page, expected, "{}: {window:?}", t.name);
        }
    }
}

#[tokio::test]
async fn a_file_is_in_a_collection_until_it_is_taken_out_or_deleted() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let set = collection(&t.db, made_in(owner), "set").await;
        let mut ids = Vec::new();
        for name in ["kept", "taken out", "deleted", "never there"] {
            ids.push(document(&t.db, owner, name, at(1)).await);
        }
        add(&t.db, owner, set, &ids[..3]).await;
        let holds = async |workspace, id| commit!(t.db, |tx| files::holds(tx, workspace, set, id));
        assert!(holds(owner, ids[0]).await && holds(owner, ids[1]).await, "{}", t.name);
        assert!(!holds(owner, ids[3]).await && !holds(other, ids[0]).await, "{}", t.name);
        commit!(t.db, |tx| collections::remove_document(tx, owner, set, ids[1]));
        commit!(t.db, |tx| documents::delete(tx, owner, ids[2], at(2), at(2)));
        assert!(holds(owner, ids[0]).await, "{}", t.name);
        assert!(!holds(owner, ids[1]).await && !holds(owner, ids[2]).await, "{}", t.name);
    }
}
