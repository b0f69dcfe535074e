//! What workspaces may store.

use lectern_shared::{
    ids::{GenerationId, WorkspaceId},
    model::{document::DocumentType, job::IngestionError, workspace::WorkspaceQuotas},
};

use crate::{
    Db, Result, Tx, accounts, chunks, documents,
    documents::{
        NewDocumentRow,
        uploads::{self, BlobFile},
    },
    execute, generations,
    jobs::{self, JobProgress, PublishOutcome},
    storage,
    storage::{OverQuota, StorageDemand},
    testing::{
        ATTEMPTS, LEASE, account_of, at, both, claimed, commit, document, finished_or_blocked, plain,
        publish, published, staged, workspace,
    },
    workspaces,
};

/// Has a generation take so many bytes.
async fn note(tx: &mut Tx, generation: GenerationId, bytes: i64) -> Result<u64> {
    execute!(
        tx,
        sqlx::query("UPDATE generations SET stored_bytes = $2 WHERE id = $1").bind(generation).bind(bytes)
    )
}

/// So many bytes more, of as many as are allowed.
fn demand(more: u64, allowed: u64) -> StorageDemand {
    StorageDemand { more, allowed: Some(allowed) }
}

/// What is stored for a workspace: told by a quota of one byte, which any storage is over.
async fn used(db: &Db, workspace: WorkspaceId) -> u64 {
    match storage::left(db, workspace, demand(1, 1), None).await.unwrap() {
        Ok(left) => {
            assert_eq!(left.map(|left| left.bytes), Some(1));
            0
        }
        Err(over) => over.used,
    }
}

/// Stores a text of seven bytes and queues it, as a request does; whether it may stay.
async fn add(db: &Db, workspace: WorkspaceId, allowed: u64) -> Result<std::result::Result<(), OverQuota>> {
    let row = plain(workspace, "text");
    let mut tx = db.begin().await?;
    jobs::store_new(&mut tx, &row, demand(7, allowed), at(0)).await?;
    let queued = jobs::enqueue_new(&mut tx, workspace, row.id, demand(7, allowed), ATTEMPTS, at(0)).await?;
    if queued.is_ok() {
        tx.commit().await?;
    }
    Ok(queued.map(drop))
}

#[tokio::test]
async fn files_texts_and_passages_count_until_they_are_purged() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        assert_eq!(used(&t.db, owner).await, 0, "{}", t.name);
        let claim = claimed(&t.db, owner, "text", at(0)).await;
        assert_eq!(used(&t.db, owner).await, 7, "{}: content", t.name);
        commit!(t.db, |tx| documents::content::set(tx, claim.document_id, Some("más")));
        assert_eq!(used(&t.db, owner).await, 4, "{}: bytes, not characters", t.name);

        let file = NewDocumentRow { content: None, r#type: DocumentType::Pdf, ..plain(owner, "file") };
        commit!(t.db, |tx| uploads::reserve(tx, owner, file.id, at(1), at(50)));
        let stored =
            BlobFile { key: "key", bytes: 100, sha256: &[7; 32], name: None, mime: "application/pdf" };
        assert!(commit!(t.db, |tx| uploads::complete(tx, &file, &stored, at(2))), "{}", t.name);
        assert_eq!(used(&t.db, owner).await, 104, "{}", t.name);

        let generation = staged(&t.db, &claim, &["one"], at(2)).await;
        commit!(t.db, |tx| note(tx, generation, 1_000));
        assert_eq!(used(&t.db, owner).await, 1_104, "{}", t.name);
        let again = staged(&t.db, &claim, &["one"], at(2)).await;
        commit!(t.db, |tx| note(tx, again, 1_000));
        assert_eq!(used(&t.db, owner).await, 2_104, "{}", t.name);
        assert_eq!(used(&t.db, other).await, 0, "{}: each workspace has a quota alone", t.name);

        commit!(t.db, |tx| documents::delete(tx, owner, claim.document_id, at(3), at(3)));
        commit!(t.db, |tx| documents::delete(tx, owner, file.id, at(3), at(3)));
        assert_eq!(used(&t.db, owner).await, 2_104, "{}: it takes room as before", t.name);
        for generation in [generation, again] {
            let retired = generations::RetiredGeneration::assumed(owner, generation);
            commit!(t.db, |tx| chunks::purge_some(tx, retired));
            commit!(t.db, |tx| generations::delete(tx, retired));
        }
        for id in [claim.document_id, file.id] {
            commit!(t.db, |tx| documents::drop_tombstone(tx, id, at(9)));
        }
        assert_eq!(used(&t.db, owner).await, 0, "{}", t.name);
    }
}

#[tokio::test]
async fn a_quota_is_used_to_the_last_byte_and_no_further() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        document(&t.db, owner, "text", at(0)).await;
        for (more, fits) in [(3, true), (4, false), (u64::MAX, false), (0, true)] {
            let admitted = commit!(t.db, |tx| storage::admit(tx, owner, more, None, Some(10)));
            let expected = if fits { Ok(()) } else { Err(OverQuota { used: 7, allowed: 10 }) };
            assert_eq!(admitted, expected, "{}: {more}", t.name);
        }
        // What does not count is refused above the quota only, which the operator may have lowered.
        for (allowed, fits) in [(7, true), (6, false)] {
            let admitted = commit!(t.db, |tx| storage::admit(tx, owner, 0, None, Some(allowed)));
            assert_eq!(admitted.is_ok(), fits, "{}: {allowed}", t.name);
        }
        let left = storage::left(&t.db, owner, demand(10, 10), None).await.unwrap();
        assert_eq!(left.unwrap().map(|left| left.bytes), Some(3), "{}", t.name);
        assert!(storage::left(&t.db, owner, demand(10, 7), None).await.unwrap().is_err(), "{}", t.name);
        assert_eq!(commit!(t.db, |tx| storage::admit(tx, owner, u64::MAX, None, None)), Ok(()), "{}", t.name);
    }
}

#[tokio::test]
async fn room_that_is_free_again_is_used_at_once_and_what_came_without_a_quota_counts() {
    let quotas = WorkspaceQuotas { bytes: Some(100), ..WorkspaceQuotas::default() };
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let admit = async |more| commit!(t.db, |tx| storage::admit(tx, owner, more, None, Some(100)));
        // Of what was admitted nothing is stored any more.
        for _ in 0..3 {
            assert_eq!(admit(60).await, Ok(()), "{}", t.name);
        }
        document(&t.db, owner, "one", at(0)).await;
        commit!(t.db, |tx| storage::forget_sums(tx));
        let full = Err(OverQuota { used: 7, allowed: 100 });
        assert_eq!(admit(94).await, full, "{}", t.name);
        let expect = async |more, at_most| {
            storage::expect_room(&t.db, owner, demand(more, 100), at_most).await.unwrap()
        };
        assert_eq!(expect(94, None).await, full, "{}", t.name);
        assert_eq!(expect(93, None).await, Ok(()), "{}", t.name);
        assert_eq!(expect(94, Some(7)).await, full, "{}: what is known leaves no room", t.name);
        assert_eq!(expect(93, Some(60)).await, Ok(()), "{}: more is known than there is", t.name);
        assert_eq!(expect(94, Some(6)).await, Ok(()), "{}: what is known is enough", t.name);
        assert_eq!(admit(0).await, Ok(()), "{}", t.name);

        document(&t.db, owner, "another", at(0)).await;
        commit!(t.db, |tx| workspaces::set_quotas(tx, owner, quotas, at(1)));
        assert_eq!(admit(87).await, Err(OverQuota { used: 14, allowed: 100 }), "{}", t.name);
        assert_eq!(admit(86).await, Ok(()), "{}", t.name);
    }
}

#[tokio::test]
async fn passages_of_a_job_that_knew_of_no_quota_count_under_one_that_was_set_meanwhile() {
    let quotas = WorkspaceQuotas { bytes: Some(100), ..WorkspaceQuotas::default() };
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let claim = claimed(&t.db, owner, "text", at(0)).await;
        let admit = async |more| commit!(t.db, |tx| storage::admit(tx, owner, more, None, Some(100)));
        commit!(t.db, |tx| workspaces::set_quotas(tx, owner, quotas, at(1)));
        assert_eq!(admit(13).await, Ok(()), "{}: they are not there yet", t.name);
        let generation = staged(&t.db, &claim, &["one"], at(2)).await;
        commit!(t.db, |tx| note(tx, generation, 80));
        let outcome = publish(&t.db, &claim, generation, at(3)).await;
        assert_eq!(outcome, PublishOutcome::Yes, "{}", t.name);
        // Of what was admitted before nothing is stored.
        assert_eq!(admit(14).await, Err(OverQuota { used: 87, allowed: 100 }), "{}", t.name);
        assert_eq!(admit(13).await, Ok(()), "{}", t.name);
    }
}

#[tokio::test]
async fn documents_are_counted_as_they_are_whoever_has_made_them() {
    let quotas = WorkspaceQuotas { documents: Some(3), ..WorkspaceQuotas::default() };
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let make = async || assert_eq!(add(&t.db, owner, 1_000).await.unwrap(), Ok(()), "{}", t.name);
        let count = async |allowed| commit!(t.db, |tx| storage::count_documents(tx, owner, allowed));
        let deleted = document(&t.db, owner, "deleted", at(0)).await;
        commit!(t.db, |tx| workspaces::set_quotas(tx, owner, quotas, at(1)));
        assert_eq!(count(3).await, 1, "{}: what was there before the quota", t.name);
        // Neither has asked whether it may.
        make().await;
        make().await;
        assert_eq!(count(3).await, 3, "{}", t.name);
        commit!(t.db, |tx| documents::delete(tx, owner, deleted, at(2), at(2)));
        assert_eq!(count(3).await, 2, "{}: its place is free at once", t.name);
        make().await;
        commit!(t.db, |tx| workspaces::set_quotas(tx, owner, quotas, at(3)));
        assert_eq!(count(4).await, 3, "{}", t.name);
        assert!(
            commit!(t.db, |tx| storage::count_documents(tx, other, 3)) == 0,
            "{}: one's own only",
            t.name
        );
    }
}

#[tokio::test]
async fn the_passages_of_a_document_take_the_place_of_those_that_it_has() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let claim = claimed(&t.db, owner, "text", at(0)).await;
        let generation = staged(&t.db, &claim, &["one"], at(1)).await;
        commit!(t.db, |tx| note(tx, generation, 90));
        let document = Some(claim.document_id);
        assert_eq!(
            commit!(t.db, |tx| storage::admit(tx, owner, 93, document, Some(100))),
            Ok(()),
            "{}",
            t.name
        );
        assert!(
            commit!(t.db, |tx| storage::admit(tx, owner, 94, document, Some(100))).is_err(),
            "{}",
            t.name
        );
    }
}

#[tokio::test]
async fn what_an_attempt_reserves_counts_until_its_claim_is_lost() {
    let error = IngestionError::interrupted();
    for t in &both().await {
        for ended in ["postponed", "handed back", "failed", "expired", "cancelled", "given up"] {
            let on = format!("{} {ended}", t.name);
            let owner = workspace(&t.db, at(0)).await;
            let first = claimed(&t.db, owner, "first", at(0)).await;
            let second = claimed(&t.db, owner, "second", at(0)).await;
            let reserved = staged(&t.db, &first, &[], at(1)).await;
            commit!(t.db, |tx| note(tx, reserved, 90));
            let document = Some(second.document_id);
            let admit = async || commit!(t.db, |tx| storage::admit(tx, owner, 20, document, Some(120)));
            assert!(admit().await.is_err(), "{on}: two at once do not share the room");

            let later = at(0).plus(LEASE * 2);
            let is_lost = match ended {
                "postponed" => commit!(t.db, |tx| jobs::postpone(tx, &first, later, &error, at(2))),
                "handed back" => commit!(t.db, |tx| jobs::release(tx, &first, at(2))),
                "failed" => {
                    let report = JobProgress::default();
                    commit!(t.db, |tx| jobs::fail(tx, &first, &error, Some(later), &report, at(2))).is_some()
                }
                "expired" => !commit!(t.db, |tx| jobs::expire_leases(tx, later, later, &error)).is_empty(),
                "cancelled" => commit!(t.db, |tx| jobs::cancel(tx, owner, first.document_id, at(2))),
                _ => commit!(t.db, |tx| generations::retire(tx, &first, reserved, at(2))).is_some(),
            };
            assert!(is_lost, "{on}");
            assert_eq!(used(&t.db, owner).await, 14, "{on}: the two texts");
            assert_eq!(admit().await, Ok(()), "{on}");
            commit!(t.db, |tx| generations::abandon(tx, at(3)));
            assert_eq!(used(&t.db, owner).await, 14, "{on}: nor while it waits to be purged");
            commit!(t.db, |tx| accounts::delete(tx, account_of(owner), at(4)));
        }
    }
}

#[tokio::test]
async fn what_answers_counts_though_its_claim_has_ended() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (_, generation) = published(&t.db, owner, "text", &["one"], at(1)).await;
        commit!(t.db, |tx| note(tx, generation, 90));
        commit!(t.db, |tx| generations::abandon(tx, at(2)));
        assert_eq!(used(&t.db, owner).await, 97, "{}", t.name);
    }
}

#[tokio::test]
async fn the_texts_of_a_generation_are_counted_in_bytes() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (_, generation) = published(&t.db, owner, "text", &["más", "one"], at(1)).await;
        assert_eq!(storage::text_bytes(&t.db, owner, generation).await.unwrap(), 7, "{}", t.name);
        assert_eq!(storage::text_bytes(&t.db, other, generation).await.unwrap(), 0, "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_that_come_at_once_only_those_are_stored_that_fit() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let tasks: Vec<_> = (0..12)
            .map(|_| {
                let db = t.db.clone();
                tokio::spawn(async move {
                    let mut tx = db.begin().await?;
                    let admitted = storage::admit(&mut tx, owner, 7, None, Some(30)).await?;
                    if admitted.is_ok() {
                        documents::insert(&mut tx, &plain(owner, "text"), at(0)).await?;
                    }
                    tx.commit().await?;
                    Result::Ok(admitted.is_ok())
                })
            })
            .collect();
        let mut stored = 0;
        for task in tasks {
            stored += u64::from(task.await.unwrap().unwrap());
        }
        assert_eq!(stored, 4, "{}", t.name);
        assert_eq!(used(&t.db, owner).await, 28, "{}", t.name);
    }
}

#[tokio::test]
async fn what_is_stored_before_it_is_admitted_counts_once() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        for before in [0, 7, 14] {
            assert_eq!(add(&t.db, owner, 21).await.unwrap(), Ok(()), "{}: {before}", t.name);
        }
        let full = Err(OverQuota { used: 21, allowed: 27 });
        assert_eq!(add(&t.db, owner, 27).await.unwrap(), full, "{}", t.name);
        commit!(t.db, |tx| storage::forget_sums(tx));
        assert_eq!(add(&t.db, owner, 27).await.unwrap(), full, "{}: by the sum", t.name);
        assert_eq!(used(&t.db, owner).await, 21, "{}: nothing of it stays", t.name);
        assert_eq!(add(&t.db, owner, 28).await.unwrap(), Ok(()), "{}", t.name);
        assert_eq!(used(&t.db, owner).await, 28, "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_room_is_for_one_of_two_that_are_stored_at_once() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        assert_eq!(add(&t.db, owner, 14).await.unwrap(), Ok(()), "{}", t.name);
        let row = plain(owner, "text");
        let mut first = t.db.begin().await.unwrap();
        jobs::store_new(&mut first, &row, demand(7, 14), at(0)).await.unwrap();
        let queued = jobs::enqueue_new(&mut first, owner, row.id, demand(7, 14), ATTEMPTS, at(0));
        assert!(queued.await.unwrap().is_ok(), "{}", t.name);
        let db = t.db.clone();
        let second = tokio::spawn(async move { add(&db, owner, 14).await });
        finished_or_blocked(&t.db, &second).await;
        first.commit().await.unwrap();
        let full = Err(OverQuota { used: 14, allowed: 14 });
        assert_eq!(second.await.unwrap().unwrap(), full, "{}", t.name);
        assert_eq!(used(&t.db, owner).await, 14, "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_that_are_stored_at_once_only_those_stay_that_fit() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let tasks: Vec<_> = (0..12)
            .map(|_| {
                let db = t.db.clone();
                tokio::spawn(async move { add(&db, owner, 30).await })
            })
            .collect();
        let mut stored = 0;
        for task in tasks {
            stored += u64::from(task.await.unwrap().unwrap().is_ok());
        }
        assert_eq!(stored, 4, "{}", t.name);
        assert_eq!(used(&t.db, owner).await, 28, "{}", t.name);
    }
}

#[tokio::test]
async fn who_asks_is_read_with_what_the_workspace_stores_at_most() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let known = async || {
            let found = accounts::find_in_workspace(&t.db, account_of(owner), owner).await.unwrap();
            found.unwrap().stored_at_most
        };
        assert_eq!(known().await, None, "{}", t.name);
        add(&t.db, owner, 14).await.unwrap().unwrap();
        assert_eq!(known().await, Some(7), "{}", t.name);
        // A request that has come before the quota was set knows nothing of it.
        let (row, unlimited) = (plain(owner, "text"), StorageDemand { more: 7, allowed: None });
        commit!(t.db, |tx| documents::insert(tx, &row, at(0)));
        let queued = commit!(t.db, |tx| jobs::enqueue_new(tx, owner, row.id, unlimited, ATTEMPTS, at(0)));
        assert!(queued.is_ok(), "{}", t.name);
        assert_eq!(known().await, Some(14), "{}: it counts all the same", t.name);
    }
}
