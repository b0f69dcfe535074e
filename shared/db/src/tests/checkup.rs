//! What the doctor asks and changes.

use std::collections::HashMap;

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, GenerationId, JobId, WorkspaceId},
    model::{
        job::{IngestionError, JobState},
        space::EmbeddingSpace,
    },
};
use uuid::Uuid;

use crate::{
    Db,
    checkup::{self, BlobHolder, OrphanCounts, SearchableDocument, UnqueuedDocument},
    documents, execute, generations, index_segments, jobs,
    sealed::{self, KeyUsage, SealedColumn},
    singletons,
    testing::{TestDb, at, both, claim, commit, document, plain, published, staged_in, workspace},
    tests::sealed::add,
    vectors,
};

async fn all(db: &Db) -> Vec<SearchableDocument> {
    checkup::answering(db, checkup::beginning()).await.unwrap()
}

async fn one(db: &Db, id: DocumentId) -> SearchableDocument {
    all(db).await.into_iter().find(|document| document.id == id).unwrap()
}

/// Somebody with a shell.
async fn meddle(t: &TestDb, statement: &'static str, id: impl Into<Uuid>) {
    let mut tx = t.db.begin().await.unwrap();
    execute!(tx, sqlx::query(statement).bind(id.into())).unwrap();
    tx.commit().await.unwrap();
}

async fn indexed(t: &TestDb, workspace: WorkspaceId, generation: GenerationId) {
    commit!(t.db, |tx| index_segments::insert(tx, workspace, generation, 0, 1, b"blob"));
}

#[tokio::test]
async fn documents_that_answer_are_shown_page_by_page_with_what_is_there_of_them() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (first, generation) = published(&t.db, owner, "first", &["a"], at(1)).await;
        let (second, _) = published(&t.db, owner, "second", &["b"], at(2)).await;
        let (gone, _) = published(&t.db, owner, "gone", &["c"], at(3)).await;
        assert!(commit!(t.db, |tx| documents::delete(tx, owner, gone, at(4), at(4))));
        document(&t.db, owner, "waiting", at(5)).await;
        indexed(t, owner, generation).await;

        let ids: Vec<_> = all(&t.db).await.iter().map(|document| document.id).collect();
        assert_eq!(ids, [first, second], "{}", t.name);
        let rest = checkup::answering(&t.db, first).await.unwrap();
        assert_eq!(rest.iter().map(|document| document.id).collect::<Vec<_>>(), [second], "{}", t.name);
        let shown = one(&t.db, first).await;
        assert_eq!((shown.state.as_deref(), shown.chunks), (Some("active"), Some(1)), "{}", t.name);
        assert_eq!((shown.has_content, shown.has_url, shown.blob_key), (true, false, None), "{}", t.name);
        assert_eq!((shown.job, shown.from_stored), (Some(JobState::Done), Some(false)), "{}", t.name);
        assert!(!shown.source_forgotten && shown.search_index.unwrap().contains("READY"), "{}", t.name);

        let generations = [generation, GenerationId::generate()];
        let held = HashMap::from([(generation, 1)]);
        assert_eq!(checkup::passages(&t.db, &generations).await.unwrap(), held, "{}", t.name);
        assert_eq!(checkup::indexed(&t.db, &generations).await.unwrap(), held, "{}", t.name);
        assert!(checkup::embedded(&t.db, &generations).await.unwrap().is_empty(), "{}", t.name);
        assert_eq!(checkup::parts(&t.db, generation).await.unwrap(), [(0, 4)], "{}", t.name);
        let part = checkup::part(&t.db, generation, 0).await.unwrap();
        assert_eq!(part.as_deref(), Some(&b"blob"[..]), "{}", t.name);
        assert_eq!(checkup::part(&t.db, generation, 1).await.unwrap(), None, "{}", t.name);
        assert_eq!(checkup::without_vectors(&t.db).await.unwrap(), 2, "{}", t.name);
        assert!(checkup::damage(&t.db, true).await.unwrap().is_empty(), "{}", t.name);
        assert_eq!(checkup::dangling(&t.db).await.unwrap(), 0, "{}", t.name);
    }
}

#[tokio::test]
async fn vectors_are_counted_for_the_generation_that_has_their_space() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let space = EmbeddingSpace::new("tiny", 2, &[]);
        let claim = crate::testing::claimed(&t.db, owner, "one", at(1)).await;
        let generation = staged_in(&t.db, &claim, Some(&space), &["a"], at(1)).await;
        assert!(checkup::embedded(&t.db, &[generation]).await.unwrap().is_empty(), "{}", t.name);
        let made = [([7; 32], vec![0.0, 1.0])];
        commit!(t.db, |tx| vectors::insert(tx, claim.document_id, generation, &space, &made));
        let counted = checkup::embedded(&t.db, &[generation]).await.unwrap();
        assert_eq!(counted, HashMap::from([(generation, 1)]), "{}", t.name);
    }
}

#[tokio::test]
async fn documents_are_queued_from_what_is_stored_or_from_their_sources() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (stored, _) = published(&t.db, owner, "stored", &["a"], at(1)).await;
        let (source, _) = published(&t.db, owner, "source", &["b"], at(2)).await;
        assert_eq!(commit!(t.db, |tx| checkup::index_again(tx, &[stored, source], at(9))), 2, "{}", t.name);
        assert_eq!(commit!(t.db, |tx| checkup::index_again(tx, &[stored], at(9))), 0, "{}: it waits", t.name);
        // One that would only be indexed again is ingested instead.
        assert_eq!(commit!(t.db, |tx| checkup::ingest_again(tx, &[source], at(9))), 1, "{}", t.name);
        assert!(one(&t.db, source).await.source_forgotten && !one(&t.db, stored).await.source_forgotten);
        let mut queued = HashMap::new();
        while let Some(claim) = claim(&t.db, at(10)).await {
            queued.insert(claim.document_id, claim.from_stored);
        }
        assert_eq!(queued, HashMap::from([(stored, true), (source, false)]), "{}", t.name);
        let again = commit!(t.db, |tx| checkup::ingest_again(tx, &[stored, source], at(11)));
        assert_eq!(again, 0, "{}: they are running", t.name);
        assert_eq!(commit!(t.db, |tx| checkup::index_again(tx, &[], at(11))), 0, "{}", t.name);
    }
}

#[tokio::test]
async fn what_was_deleted_meanwhile_is_not_queued() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (kept, _) = published(&t.db, owner, "kept", &["a"], at(1)).await;
        let (gone, _) = published(&t.db, owner, "gone", &["b"], at(2)).await;
        assert!(commit!(t.db, |tx| documents::delete(tx, owner, gone, at(3), at(3))));
        assert_eq!(commit!(t.db, |tx| checkup::index_again(tx, &[kept, gone], at(9))), 1, "{}", t.name);
        assert_eq!(commit!(t.db, |tx| checkup::ingest_again(tx, &[gone], at(9))), 0, "{}", t.name);
        assert_eq!(claim(&t.db, at(10)).await.unwrap().document_id, kept, "{}", t.name);
        assert!(claim(&t.db, at(10)).await.is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn documents_that_are_queued_page_by_page_have_one_turn_a_round_together() {
    for t in &both().await {
        let (damaged, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let mut documents = Vec::new();
        for _ in 0..6 {
            documents.push(published(&t.db, damaged, "damaged", &["a"], at(1)).await.0);
        }
        for page in documents.chunks(2) {
            assert_eq!(commit!(t.db, |tx| checkup::index_again(tx, page, at(2))), 2, "{}", t.name);
        }
        for _ in 0..6 {
            document(&t.db, other, "new", at(2)).await;
        }
        let mut taken = Vec::new();
        for _ in 0..8 {
            let next = claim(&t.db, at(3)).await.unwrap();
            taken.push(next.workspace_id);
            let error = IngestionError::interrupted();
            commit!(t.db, |tx| jobs::fail(tx, &next, &error, None, &jobs::JobProgress::default(), at(3)));
        }
        let of_other = taken.iter().filter(|workspace| **workspace == other).count();
        assert!((3..=5).contains(&of_other), "{}: each has every other turn: {taken:?}", t.name);
    }
}

#[tokio::test]
async fn a_lost_generation_row_comes_back_for_the_document_that_names_it() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (document, generation) = published(&t.db, owner, "one", &["a"], at(1)).await;
        meddle(t, "DELETE FROM generations WHERE id = $1", *generation.as_uuid()).await;
        let lost = one(&t.db, document).await;
        assert_eq!((lost.state.as_deref(), lost.chunks), (None, None), "{}", t.name);
        assert_eq!(documents::active(&t.db, owner).await.unwrap().len(), 0, "{}", t.name);
        assert!(commit!(t.db, |tx| checkup::renew_generation(tx, &lost, 1, at(2))), "{}", t.name);
        assert_eq!(documents::active(&t.db, owner).await.unwrap().len(), 1, "{}", t.name);
        meddle(
            t,
            "UPDATE generations SET state = 'superseded', purge_at = 1 WHERE id = $1",
            *generation.as_uuid(),
        )
        .await;
        assert!(commit!(t.db, |tx| checkup::renew_generation(tx, &lost, 1, at(2))), "{}", t.name);
        assert!(generations::purgeable(&t.db, at(9), 9).await.unwrap().is_empty(), "{}", t.name);
        let other = SearchableDocument { generation: GenerationId::generate(), ..lost };
        assert!(!commit!(t.db, |tx| checkup::renew_generation(tx, &other, 1, at(2))), "{}: outdated", t.name);
    }
}

#[tokio::test]
async fn a_document_that_is_withdrawn_does_not_answer_and_its_remains_are_purged() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        for row_is_there in [true, false] {
            let (document, generation) = published(&t.db, owner, "one", &["a"], at(1)).await;
            if !row_is_there {
                meddle(t, "DELETE FROM generations WHERE id = $1", *generation.as_uuid()).await;
            }
            let shown = one(&t.db, document).await;
            assert!(commit!(t.db, |tx| checkup::unpublish(tx, &shown, at(2))), "{}", t.name);
            assert!(!commit!(t.db, |tx| checkup::unpublish(tx, &shown, at(2))), "{}: it is done", t.name);
            assert!(documents::active(&t.db, owner).await.unwrap().is_empty(), "{}", t.name);
            let found = documents::find(&t.db, owner, document).await.unwrap().unwrap();
            assert!(found.search_index.is_none(), "{}", t.name);
            let purgeable = generations::purgeable(&t.db, at(2), 9).await.unwrap();
            assert!(purgeable.iter().any(|purgeable| purgeable.retired.id() == generation), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn what_nobody_owns_is_counted_and_left_to_the_sweeper() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (named, rowless) = published(&t.db, owner, "named", &["a"], at(1)).await;
        let (_, orphaned) = published(&t.db, owner, "orphaned", &["b"], at(2)).await;
        let (unnamed, _) = published(&t.db, owner, "unnamed", &["c"], at(3)).await;
        for generation in [rowless, orphaned] {
            indexed(t, owner, generation).await;
        }
        assert!(checkup::leftovers(&t.db).await.unwrap().is_none(), "{}", t.name);
        // A document names it still, so that its passages are somebody's.
        meddle(t, "DELETE FROM generations WHERE id = $1", *rowless.as_uuid()).await;
        assert!(checkup::leftovers(&t.db).await.unwrap().is_none(), "{}", t.name);
        meddle(t, "DELETE FROM generations WHERE id = $1", *orphaned.as_uuid()).await;
        meddle(
            t,
            "UPDATE documents SET active_generation = NULL WHERE active_generation = $1",
            *orphaned.as_uuid(),
        )
        .await;
        meddle(t, "UPDATE documents SET active_generation = NULL WHERE id = $1", *unnamed.as_uuid()).await;
        let space = EmbeddingSpace::new("tiny", 2, &[]);
        let nobody = DocumentId::generate();
        let made = [([7; 32], vec![0.0, 1.0])];
        commit!(t.db, |tx| vectors::insert(tx, nobody, orphaned, &space, &made));

        let wanted = OrphanCounts { chunks: 1, segments: 1, generations: 1, vectors: 1 };
        assert_eq!(checkup::leftovers(&t.db).await.unwrap(), wanted, "{}", t.name);
        assert_eq!(checkup::vectors_of_nobody(&t.db).await.unwrap(), [nobody], "{}", t.name);
        assert_eq!(commit!(t.db, |tx| checkup::retire_unnamed(tx, at(9))), 1, "{}", t.name);
        commit!(t.db, |tx| checkup::adopt_leftovers(tx, at(9)));
        let wanted = OrphanCounts { vectors: 1, ..OrphanCounts::default() };
        assert_eq!(checkup::leftovers(&t.db).await.unwrap(), wanted, "{}", t.name);
        assert_eq!(generations::purgeable(&t.db, at(9), 9).await.unwrap().len(), 2, "{}", t.name);
        assert_eq!(one(&t.db, named).await.generation, rowless, "{}", t.name);
    }
}

#[tokio::test]
async fn what_no_worker_takes_up_is_found() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (searchable, _) = published(&t.db, owner, "searchable", &["a"], at(1)).await;
        let bare = plain(owner, "bare");
        commit!(t.db, |tx| documents::insert(tx, &bare, at(2)));
        meddle(t, "DELETE FROM jobs WHERE document_id = $1", *searchable.as_uuid()).await;
        let found = checkup::unqueued(&t.db, checkup::beginning()).await.unwrap();
        let wanted = [
            UnqueuedDocument { id: searchable, workspace_id: owner, searchable: true },
            UnqueuedDocument { id: bare.id, workspace_id: owner, searchable: false },
        ];
        assert_eq!(found, wanted, "{}", t.name);
        assert!(checkup::unqueued(&t.db, bare.id).await.unwrap().is_empty(), "{}", t.name);

        document(&t.db, owner, "held", at(3)).await;
        let held = claim(&t.db, at(3)).await.unwrap();
        assert!(checkup::stale(&t.db, at(3)).await.unwrap().is_empty(), "{}", t.name);
        assert_eq!(checkup::stale(&t.db, at(1_000)).await.unwrap(), [held.id], "{}", t.name);
        let error = IngestionError::interrupted();
        let report = jobs::JobProgress::default();
        let mut tx = t.db.begin().await.unwrap();
        let failed = jobs::fail(&mut tx, &held, &error, None, &report, at(4)).await.unwrap();
        assert!(failed.is_some(), "{}: rolled back", t.name);
        drop(tx);
        commit!(t.db, |tx| jobs::fail(tx, &held, &error, None, &jobs::JobProgress::default(), at(4)));
        let dead = checkup::dead(&t.db, JobId::from(Uuid::nil())).await.unwrap();
        assert_eq!(dead.len(), 1, "{}", t.name);
        assert!(dead[0].1.as_ref().unwrap().contains("interrupted"), "{}", t.name);
        assert!(checkup::dead(&t.db, dead[0].0).await.unwrap().is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn files_and_who_has_them() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let uploading = DocumentId::generate();
        commit!(t.db, |tx| documents::uploads::reserve(tx, owner, uploading, at(1), at(100)));
        let mut done = plain(owner, "done");
        done.content = None;
        commit!(t.db, |tx| documents::uploads::reserve(tx, owner, done.id, at(1), at(100)));
        let key = format!("{}/ab", done.id);
        let file = documents::uploads::BlobFile {
            key: &key,
            bytes: 5,
            sha256: &[9; 32],
            name: None,
            mime: "text/plain",
        };
        assert!(commit!(t.db, |tx| documents::uploads::complete(tx, &done, &file, at(2))));
        document(&t.db, owner, "inline", at(3)).await;

        let uploads = checkup::uploads(&t.db, checkup::beginning()).await.unwrap();
        assert_eq!(uploads.len(), 1, "{}", t.name);
        assert_eq!((&uploads[0].blob_key, uploads[0].source_bytes), (&key, 5), "{}", t.name);
        assert_eq!(uploads[0].source_sha256, [9; 32], "{}", t.name);
        assert!(checkup::uploads(&t.db, done.id).await.unwrap().is_empty(), "{}", t.name);
        let asked = [uploading, done.id, DocumentId::generate()];
        let mut holders = checkup::holders(&t.db, &asked).await.unwrap();
        holders.sort_by_key(|holder| holder.id);
        let wanted = [
            BlobHolder { id: uploading, blob_key: None, tombstone: true },
            BlobHolder { id: done.id, blob_key: Some(key), tombstone: false },
        ];
        assert_eq!(holders, wanted, "{}", t.name);
        assert!(checkup::holders(&t.db, &[]).await.unwrap().is_empty(), "{}", t.name);

        let [replaced, unknown] = ["cd", "ef"].map(|name| format!("{}/{name}", done.id));
        commit!(t.db, |tx| documents::uploads::reserve_key(tx, &replaced, at(9)));
        let loose = checkup::loose(&t.db, &[unknown, replaced.clone()]).await.unwrap();
        assert_eq!(loose.into_iter().collect::<Vec<_>>(), [replaced], "{}", t.name);
        assert!(checkup::loose(&t.db, &[]).await.unwrap().is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn secrets_are_counted_by_the_key_that_they_name() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        for column in SealedColumn::ALL {
            for id in [b"aaaa", b"aaaa", b"bbbb", b"cccc"] {
                add(&t.db, owner, column, &[&[1], &id[..], b"the rest"].concat()).await;
            }
            let found = sealed::usage(&t.db, column, *b"aaaa", *b"bbbb").await.unwrap();
            let all = KeyUsage { total: 4, current: 2, previous: 1 };
            assert_eq!(found, all, "{} {column:?}", t.name);
        }
        let found = checkup::sealed(&t.db, *b"aaaa", *b"bbbb").await.unwrap();
        assert_eq!((found.current, found.previous), (16, 8), "{}: of all columns", t.name);
    }
}

#[tokio::test]
async fn whoever_keeps_the_house_says_until_when() {
    for t in &both().await {
        assert_eq!(checkup::housekeeper_until(&t.db).await.unwrap(), None, "{}", t.name);
        let me = Uuid::now_v7();
        assert!(commit!(t.db, |tx| singletons::hold_lease(tx, "sweeper", me, at(0), at(15))));
        let until: Option<Timestamp> = checkup::housekeeper_until(&t.db).await.unwrap();
        assert_eq!(until, Some(at(15)), "{}", t.name);
    }
}

#[tokio::test]
async fn a_copy_of_sqlite_is_of_one_moment_and_is_left_as_it_is() {
    let all = both().await;
    let t = &all[0];
    let owner = workspace(&t.db, at(0)).await;
    published(&t.db, owner, "before", &["a"], at(1)).await;
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("it's a copy.db");
    crate::copy::snapshot(t.file(), &to).await.unwrap();
    published(&t.db, owner, "after", &["b"], at(2)).await;
    let bytes = std::fs::read(&to).unwrap();
    let copy = crate::open_read_only(&to).await.unwrap();
    assert_eq!(self::all(&copy).await.len(), 1);
    assert!(checkup::damage(&copy, true).await.unwrap().is_empty());
    assert!(copy.begin().await.is_err() || std::fs::read(&to).unwrap() == bytes);
    copy.close().await;
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no log beside it");
    assert!(crate::copy::snapshot(t.file(), &to).await.is_err(), "nothing is written over");
}
