//! Documents.

mod active;
mod browse;
mod content;
mod holdings;
mod ingestions;
mod lists;
mod metadata;
mod uploads;

use std::time::Duration;

use lectern_shared::{
    ids::{DocumentId, GenerationId, WorkspaceId},
    model::{
        document::{DocumentType, PageRange, SplitterConfig, SplitterType},
        job::{IngestionError, JobKind, JobState, QueueDepth},
    },
};
use serde_json::json;

use crate::{
    Db, agents, chunks, documents,
    documents::NewDocumentRow,
    generations::{self, RetiredGeneration},
    jobs::{self, JobProgress},
    testing::{
        at, both, claim, claimed, commit, document, enqueue, finished_or_blocked, made_in, plain, published,
        staged, workspace,
    },
    tests::agents::agent,
};

/// No id is as great.
pub(super) fn end() -> DocumentId {
    uuid::Uuid::max().into()
}

async fn names(db: &Db, workspace: WorkspaceId, before: DocumentId, limit: u32) -> Vec<String> {
    let page = documents::list(db, workspace, before, limit).await.unwrap();
    page.into_iter().map(|details| details.document.name).collect()
}

async fn delete(db: &Db, workspace: WorkspaceId, id: DocumentId, now: u64) -> bool {
    commit!(db, |tx| documents::delete(tx, workspace, id, at(now), at(now + 30)))
}

#[tokio::test]
async fn a_document_is_read_as_it_was_written() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let metadata = json!({"nul": "a\u{0}b", "number": 123, "deep": [null, {"ß": 1.5}]});
        let splitter =
            SplitterConfig { r#type: SplitterType::Token, chunk_size: 400, chunk_overlap: 60, given: None };
        let new = NewDocumentRow {
            id: DocumentId::generate(),
            owner: made_in(workspace),
            r#type: DocumentType::Pdf,
            name: "Näme 😀",
            description: "about it",
            url: "https://example.com/a.pdf",
            content: Some("inline"),
            metadata: metadata.as_object(),
            splitter: Some(&splitter),
            pages: PageRange { from: Some(2), to: Some(u32::MAX) },
            authorization_sealed: Some(b"\x00sealed\xff"),
        };
        commit!(t.db, |tx| documents::insert(tx, &new, at(3)));
        commit!(t.db, |tx| jobs::enqueue(tx, workspace, new.id, JobKind::Ingest, 5, at(3)));

        let read = documents::find(&t.db, workspace, new.id).await.unwrap().unwrap();
        assert_eq!(
            (read.id, read.owner, read.r#type),
            (new.id, made_in(workspace), DocumentType::Pdf),
            "{}",
            t.name
        );
        assert_eq!(
            (&*read.name, &*read.description, &*read.url),
            (new.name, new.description, new.url),
            "{}",
            t.name
        );
        assert_eq!(Some(&read.metadata.unwrap().0), metadata.as_object(), "{}", t.name);
        assert_eq!(read.splitter.unwrap().0, splitter, "{}", t.name);
        assert_eq!((read.from_page, read.to_page), (Some(2), Some(i64::from(u32::MAX))), "{}", t.name);
        assert_eq!((read.created_at, read.updated_at), (at(3), at(3)), "{}", t.name);
        assert!(read.search_index.is_none(), "{}", t.name);
        assert_eq!(
            documents::content::find(&t.db, workspace, new.id).await.unwrap().as_deref(),
            Some("inline"),
            "{}",
            t.name
        );
        let (_, content) = documents::find_with_content(&t.db, workspace, new.id).await.unwrap().unwrap();
        assert_eq!(content.as_deref(), Some("inline"), "{}", t.name);

        let source = documents::source(&t.db, workspace, new.id).await.unwrap().unwrap();
        assert_eq!(
            (source.id, source.workspace_id, source.r#type),
            (new.id, workspace, DocumentType::Pdf),
            "{}",
            t.name
        );
        assert_eq!(
            (&*source.name, &*source.url, source.content.as_deref()),
            (new.name, new.url, new.content),
            "{}",
            t.name
        );
        assert_eq!(source.splitter.unwrap().0, splitter, "{}", t.name);
        assert_eq!((source.from_page, source.to_page), (Some(2), Some(i64::from(u32::MAX))), "{}", t.name);
        assert_eq!(source.authorization_sealed.as_deref(), new.authorization_sealed, "{}", t.name);
    }
}

#[tokio::test]
async fn what_was_not_given_is_absent() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let new = NewDocumentRow { content: None, ..plain(workspace, "one") };
        commit!(t.db, |tx| documents::insert(tx, &new, at(0)));
        enqueue(&t.db, workspace, new.id, at(0)).await;
        let read = documents::find(&t.db, workspace, new.id).await.unwrap().unwrap();
        assert!(read.metadata.is_none() && read.splitter.is_none(), "{}", t.name);
        assert_eq!((read.from_page, read.to_page), (None, None), "{}", t.name);
        assert_eq!(documents::content::find(&t.db, workspace, new.id).await.unwrap(), None, "{}", t.name);
        let source = documents::source(&t.db, workspace, new.id).await.unwrap().unwrap();
        assert!(source.content.is_none() && source.authorization_sealed.is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn documents_are_listed_newest_first_page_by_page() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let mut ids = Vec::new();
        for name in ["1", "2", "3", "4", "5"] {
            ids.push(document(&t.db, workspace, name, at(0)).await);
        }
        assert_eq!(names(&t.db, workspace, end(), 2).await, ["5", "4"], "{}", t.name);
        assert_eq!(names(&t.db, workspace, ids[3], 2).await, ["3", "2"], "{}", t.name);
        assert_eq!(names(&t.db, workspace, ids[1], 2).await, ["1"], "{}", t.name);
        assert!(names(&t.db, workspace, ids[0], 2).await.is_empty(), "{}", t.name);
        delete(&t.db, workspace, ids[2], 1).await;
        assert_eq!(
            names(&t.db, workspace, end(), 3).await,
            ["5", "4", "2"],
            "{}: a page is full all the same",
            t.name
        );
    }
}

#[tokio::test]
async fn another_workspaces_id_finds_and_changes_nothing() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (id, generation) = published(&t.db, owner, "one", &["text"], at(0)).await;
        let before = format!(
            "{:?} {:?}",
            documents::find(&t.db, owner, id).await.unwrap(),
            documents::active(&t.db, owner).await.unwrap()
        );
        assert!(documents::find(&t.db, other, id).await.unwrap().is_none(), "{}", t.name);
        assert!(documents::content::find(&t.db, other, id).await.unwrap().is_none(), "{}", t.name);
        assert!(documents::source(&t.db, other, id).await.unwrap().is_none(), "{}", t.name);
        assert!(names(&t.db, other, end(), 10).await.is_empty(), "{}", t.name);
        assert!(documents::active(&t.db, other).await.unwrap().is_empty(), "{}", t.name);
        assert!(chunks::list(&t.db, other, id, 0, 10).await.unwrap().is_empty(), "{}", t.name);
        assert!(chunks::fetch(&t.db, other, &[(generation, 0)]).await.unwrap().is_empty(), "{}", t.name);
        assert!(!delete(&t.db, other, id, 1).await, "{}", t.name);
        assert!(!enqueue(&t.db, other, id, at(1)).await, "{}", t.name);
        assert!(!commit!(t.db, |tx| jobs::cancel(tx, other, id, at(1))), "{}", t.name);
        let after = format!(
            "{:?} {:?}",
            documents::find(&t.db, owner, id).await.unwrap(),
            documents::active(&t.db, owner).await.unwrap()
        );
        assert_eq!(before, after, "{}", t.name);
        assert_eq!(chunks::list(&t.db, owner, id, 0, 10).await.unwrap().len(), 1, "{}", t.name);
    }
}

#[tokio::test]
async fn a_workspace_has_all_of_some_documents_or_not() {
    for t in &both().await {
        let (ada, grace) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let mut own = Vec::new();
        for number in 0..5 {
            own.push(document(&t.db, ada, &number.to_string(), at(0)).await);
        }
        let others = document(&t.db, grace, "hers", at(0)).await;
        let has_all = async |ids: &[DocumentId]| documents::has_all(&t.db, ada, ids).await.unwrap();
        assert!(has_all(&[]).await);
        assert!(has_all(&own).await);
        assert!(has_all(&[own[0], own[1], own[0]]).await);
        assert!(has_all(&own.repeat(1_000)).await);
        let many: Vec<_> = own.iter().copied().chain((0..1_000).map(|_| DocumentId::generate())).collect();
        assert!(!has_all(&many).await);
        assert!(!has_all(&[others]).await);
        assert!(!has_all(&[own[0], DocumentId::generate()]).await);
        assert!(!has_all(&[own[0], others, own[0]]).await);
        assert!(delete(&t.db, ada, own[0], 1).await);
        assert!(!has_all(&own).await, "what is deleted is nobody's");
        assert!(has_all(&own[1..]).await);
    }
}

#[tokio::test]
async fn a_deleted_document_is_gone_for_every_reader_at_once() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (id, generation) = published(&t.db, workspace, "one", &["text"], at(0)).await;
        let agent = agent(&t.db, workspace, at(0)).await;
        let link = commit!(t.db, |tx| agents::link(tx, made_in(workspace), agent, id, at(0))).unwrap().link;
        let epoch = documents::search_epoch(&t.db, workspace).await.unwrap();
        assert!(delete(&t.db, workspace, id, 1).await, "{}", t.name);

        assert!(documents::find(&t.db, workspace, id).await.unwrap().is_none(), "{}", t.name);
        assert!(documents::content::find(&t.db, workspace, id).await.unwrap().is_none(), "{}", t.name);
        assert!(documents::source(&t.db, workspace, id).await.unwrap().is_none(), "{}", t.name);
        assert!(names(&t.db, workspace, end(), 10).await.is_empty(), "{}", t.name);
        assert!(documents::active(&t.db, workspace).await.unwrap().is_empty(), "{}", t.name);
        assert!(documents::search_epoch(&t.db, workspace).await.unwrap() > epoch, "{}", t.name);
        assert!(chunks::list(&t.db, workspace, id, 0, 10).await.unwrap().is_empty(), "{}", t.name);
        assert!(chunks::fetch(&t.db, workspace, &[(generation, 0)]).await.unwrap().is_empty(), "{}", t.name);
        assert!(agents::find_link(&t.db, workspace, link.id).await.unwrap().is_none(), "{}", t.name);
        assert!(agents::links(&t.db, workspace, agent).await.unwrap().documents.is_empty(), "{}", t.name);
        let agent = agents::find(&t.db, workspace, agent).await.unwrap().unwrap();
        assert_eq!(agent.document_id, None, "{}", t.name);
        assert!(
            commit!(t.db, |tx| agents::link(tx, made_in(workspace), agent.id, id, at(2))).is_none(),
            "{}",
            t.name
        );
        assert!(!enqueue(&t.db, workspace, id, at(2)).await, "{}", t.name);
        assert!(!delete(&t.db, workspace, id, 2).await, "{}: a second time", t.name);
    }
}

#[tokio::test]
async fn deleting_a_document_stops_its_job_wherever_it_stands() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let running = claimed(&t.db, workspace, "running", at(0)).await;
        let generation = staged(&t.db, &running, &["text"], at(0)).await;
        let waiting = document(&t.db, workspace, "waiting", at(0)).await;
        for id in [running.document_id, waiting] {
            assert!(delete(&t.db, workspace, id, 1).await, "{}", t.name);
        }
        assert!(claim(&t.db, at(1_000)).await.is_none(), "{}", t.name);
        let renewed = commit!(t.db, |tx| jobs::renew(tx, &running, at(90), &JobProgress::default()));
        assert!(!renewed, "{}", t.name);
        assert!(!commit!(t.db, |tx| generations::may_write(tx, &running, generation)), "{}", t.name);
        assert_eq!(jobs::depth(&t.db, at(1_000)).await.unwrap(), QueueDepth::default(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_tombstone_stays_until_the_last_of_its_generations_is_gone() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (id, active) = published(&t.db, workspace, "one", &["text"], at(0)).await;
        enqueue(&t.db, workspace, id, at(1)).await;
        let held = claim(&t.db, at(1)).await.unwrap();
        let staging = staged(&t.db, &held, &["text"], at(1)).await;
        let kept = published(&t.db, workspace, "kept", &["text"], at(2)).await;
        delete(&t.db, workspace, id, 10).await;

        let early = generations::purgeable(&t.db, at(40).minus(Duration::from_micros(1)), 10).await.unwrap();
        assert!(early.is_empty(), "{}", t.name);
        let mut purgeable: Vec<GenerationId> =
            generations::purgeable(&t.db, at(40), 10).await.unwrap().iter().map(|g| g.retired.id()).collect();
        purgeable.sort();
        assert_eq!(purgeable, [active, staging], "{}", t.name);
        for generation in purgeable {
            assert!(documents::tombstones(&t.db, at(100), 10).await.unwrap().is_empty(), "{}", t.name);
            let retired = RetiredGeneration::assumed(workspace, generation);
            while commit!(t.db, |tx| chunks::purge_some(tx, retired)) {}
            commit!(t.db, |tx| generations::delete(tx, retired));
        }
        assert_eq!(documents::tombstones(&t.db, at(100), 10).await.unwrap(), [id], "{}", t.name);
        commit!(t.db, |tx| documents::drop_tombstone(tx, id, at(9)));
        assert!(documents::tombstones(&t.db, at(100), 10).await.unwrap().is_empty(), "{}", t.name);
        assert_eq!(names(&t.db, workspace, end(), 10).await, ["kept"], "{}", t.name);
        assert_eq!(documents::active(&t.db, workspace).await.unwrap()[0].id, kept.0, "{}", t.name);
    }
}

#[tokio::test]
async fn tombstones_come_oldest_first() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let mut ids = Vec::new();
        for deleted_at in [30, 10, 20] {
            ids.push(document(&t.db, workspace, "one", at(0)).await);
            delete(&t.db, workspace, ids[ids.len() - 1], deleted_at).await;
        }
        assert_eq!(documents::tombstones(&t.db, at(100), 2).await.unwrap(), [ids[1], ids[2]], "{}", t.name);
        assert_eq!(
            documents::tombstones(&t.db, at(100), 9).await.unwrap(),
            [ids[1], ids[2], ids[0]],
            "{}",
            t.name
        );
    }
}

#[tokio::test]
async fn a_document_that_lives_is_not_dropped() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let id = document(&t.db, workspace, "one", at(0)).await;
        commit!(t.db, |tx| documents::drop_tombstone(tx, id, at(9)));
        let found = documents::find(&t.db, workspace, id).await.unwrap();
        assert_eq!(found.map(|d| d.ingestion.state), Some(JobState::Queued), "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_is_deleted_while_it_is_linked_keeps_no_link() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let agent = agent(&t.db, workspace, at(0)).await;
        let id = document(&t.db, workspace, "one", at(0)).await;
        let mut deleting = t.db.begin().await.unwrap();
        assert!(documents::delete(&mut deleting, workspace, id, at(1), at(2)).await.unwrap(), "{}", t.name);
        let db = t.db.clone();
        let linking =
            tokio::spawn(
                async move { commit!(db, |tx| agents::link(tx, made_in(workspace), agent, id, at(1))) },
            );
        finished_or_blocked(&t.db, &linking).await;
        deleting.commit().await.unwrap();
        linking.await.unwrap();
        assert!(agents::links(&t.db, workspace, agent).await.unwrap().documents.is_empty(), "{}", t.name);
        let agent = agents::find(&t.db, workspace, agent).await.unwrap().unwrap();
        assert_eq!(agent.document_id, None, "{}", t.name);
    }
}

#[tokio::test]
async fn only_its_owner_can_lock_a_document_and_only_while_it_lives() {
    for t in &both().await {
        let (owner, stranger) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let id = document(&t.db, owner, "d", at(1)).await;
        let lock = async |workspace| commit!(t.db, |tx| documents::lock(tx, workspace, id));
        let find = async |workspace| {
            let found = commit!(t.db, |tx| documents::find_locked(tx, workspace, id));
            found.map(|(document, source)| (document.id, source.id))
        };
        assert!(lock(owner).await, "{}", t.name);
        assert_eq!(find(owner).await, Some((id, id)), "{}", t.name);
        assert!(!lock(stranger).await, "{}", t.name);
        assert_eq!(find(stranger).await, None, "{}", t.name);
        commit!(t.db, |tx| documents::delete(tx, owner, id, at(2), at(2)));
        assert!(!lock(owner).await, "{}", t.name);
        assert_eq!(find(owner).await, None, "{}", t.name);
    }
}

#[tokio::test]
async fn a_changed_document_is_read_as_it_was_changed() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let id = document(&t.db, owner, "before", at(0)).await;
        let metadata = json!({"year": 2026});
        let splitter =
            SplitterConfig { r#type: SplitterType::Token, chunk_size: 400, chunk_overlap: 60, given: None };
        let after = NewDocumentRow {
            id,
            description: "about it",
            url: "https://example.com/a",
            content: None,
            metadata: metadata.as_object(),
            splitter: Some(&splitter),
            pages: PageRange { from: Some(2), to: None },
            authorization_sealed: Some(b"sealed"),
            ..plain(owner, "after")
        };
        let stranger = NewDocumentRow { id, ..plain(other, "stranger") };
        assert!(!commit!(t.db, |tx| documents::update(tx, &stranger, at(1))), "{}", t.name);
        assert!(commit!(t.db, |tx| documents::update(tx, &after, at(2))), "{}", t.name);
        commit!(t.db, |tx| documents::content::set(tx, id, after.content));
        let found = commit!(t.db, |tx| documents::find_collected(tx, owner, id)).unwrap();
        assert!(found.collections.is_empty(), "{}", t.name);
        let read = found.document;
        assert_eq!(
            (&*read.name, &*read.description, &*read.url),
            ("after", after.description, after.url),
            "{}",
            t.name
        );
        assert_eq!(Some(&read.metadata.unwrap().0), metadata.as_object(), "{}", t.name);
        assert_eq!((read.created_at, read.updated_at), (at(0), at(2)), "{}", t.name);
        let (_, source) = commit!(t.db, |tx| documents::find_locked(tx, owner, id)).unwrap();
        assert_eq!((source.content, source.from_page, source.to_page), (None, Some(2), None), "{}", t.name);
        assert_eq!(source.authorization_sealed.as_deref(), Some(&b"sealed"[..]), "{}", t.name);
        assert_eq!(source.splitter.unwrap().0, splitter, "{}", t.name);

        let plain = NewDocumentRow { id, ..plain(owner, "plain") };
        assert!(commit!(t.db, |tx| documents::update(tx, &plain, at(3))), "{}", t.name);
        let read = documents::find(&t.db, owner, id).await.unwrap().unwrap();
        assert!(read.metadata.is_none() && read.splitter.is_none() && read.from_page.is_none(), "{}", t.name);
        delete(&t.db, owner, id, 4).await;
        assert!(!commit!(t.db, |tx| documents::update(tx, &plain, at(5))), "{}", t.name);
    }
}

#[tokio::test]
async fn a_document_can_be_indexed_again_from_what_is_stored() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (id, _) = published(&t.db, owner, "one", &["text"], at(0)).await;
        enqueue(&t.db, owner, id, at(1)).await;
        let warnings = [lectern_shared::model::job::IngestionWarning {
            code: "bad".to_owned(),
            message: "Bad.".to_owned(),
            count: 2,
        }];
        commit!(t.db, |tx| documents::from_stored(tx, id, &warnings));
        let ingestion = documents::ingestion(&t.db, owner, id).await.unwrap().unwrap();
        assert_eq!(
            (ingestion.state, &ingestion.warnings.0[..]),
            (JobState::Queued, &warnings[..]),
            "{}",
            t.name
        );
        let held = claim(&t.db, at(1)).await.unwrap();
        assert!(held.from_stored, "{}", t.name);
        // What comes while a worker holds it asks for the source.
        enqueue(&t.db, owner, id, at(2)).await;
        commit!(t.db, |tx| documents::from_stored(tx, id, &[]));
        let generation = staged(&t.db, &held, &["text"], at(2)).await;
        crate::testing::publish(&t.db, &held, generation, at(2)).await;
        assert!(!claim(&t.db, at(3)).await.unwrap().from_stored, "{}", t.name);
    }
}

#[tokio::test]
async fn an_ingestion_is_followed_by_its_owner_until_the_document_is_deleted() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let held = claimed(&t.db, owner, "one", at(0)).await;
        let id = held.document_id;
        let ingestion = documents::ingestion(&t.db, owner, id).await.unwrap().unwrap();
        assert_eq!((ingestion.state, ingestion.attempts), (JobState::Running, 1), "{}", t.name);
        assert!(documents::ingestion(&t.db, other, id).await.unwrap().is_none(), "{}", t.name);
        delete(&t.db, owner, id, 1).await;
        assert!(documents::ingestion(&t.db, owner, id).await.unwrap().is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn what_is_read_of_a_locked_document_is_what_came_of_whoever_held_it_before() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, owner, "one", at(0)).await;
        let id = held.document_id;
        let (error, report) = (IngestionError::interrupted(), JobProgress::default());
        let mut failing = t.db.begin().await.unwrap();
        jobs::fail(&mut failing, &held, &error, None, &report, at(1)).await.unwrap();
        let db = t.db.clone();
        let changing = tokio::spawn(async move { commit!(db, |tx| documents::find_locked(tx, owner, id)) });
        finished_or_blocked(&t.db, &changing).await;
        failing.commit().await.unwrap();
        let (read, _) = changing.await.unwrap().unwrap();
        assert_eq!(read.ingestion.state, JobState::Dead, "{}", t.name);
    }
}
