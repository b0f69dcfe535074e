//! Generations.

use lectern_shared::{
    ids::{ClaimId, GenerationId},
    model::job::{IngestionError, JobClaim},
};

use crate::{
    chunks, documents,
    generations::{self, NewGeneration, RetiredGeneration},
    jobs::{self, GenerationPublication, JobProgress, PublishOutcome},
    testing::{
        LEASE, active, at, both, claim, claimed, commit, document, enqueue, publish, published, ready,
        staged, workspace,
    },
};

fn lost() -> IngestionError {
    IngestionError { code: "worker_lost".to_owned(), message: String::new(), retryable: true }
}

fn of(id: GenerationId) -> NewGeneration {
    NewGeneration { id, space: None, stored_bytes: 0, engine: None }
}

#[tokio::test]
async fn a_generation_begins_and_is_written_only_under_a_claim_that_is_held() {
    for t in &both().await {
        for ended in ["expired", "claimed again", "cancelled", "deleted", "handed back", "published"] {
            let on = format!("{} {ended}", t.name);
            let workspace = workspace(&t.db, at(0)).await;
            let held = claimed(&t.db, workspace, "one", at(0)).await;
            let generation = staged(&t.db, &held, &["text"], at(0)).await;
            assert!(commit!(t.db, |tx| generations::may_write(tx, &held, generation)), "{on}");
            let later = at(0).plus(LEASE * 2);
            match ended {
                "expired" | "claimed again" => {
                    commit!(t.db, |tx| jobs::expire_leases(tx, later, later, &lost()));
                    if ended == "claimed again" {
                        let new = claim(&t.db, later).await.unwrap();
                        assert_eq!(new.id, held.id, "{on}");
                        let theirs = commit!(t.db, |tx| generations::may_write(tx, &new, generation));
                        assert!(!theirs, "{on}: a generation has one writer");
                    }
                }
                "cancelled" => {
                    commit!(t.db, |tx| jobs::cancel(tx, workspace, held.document_id, at(1)));
                }
                "deleted" => {
                    commit!(t.db, |tx| documents::delete(tx, workspace, held.document_id, at(1), at(2)));
                }
                "handed back" => {
                    commit!(t.db, |tx| jobs::release(tx, &held, later));
                }
                _ => {
                    publish(&t.db, &held, generation, at(1)).await;
                }
            }
            assert!(!commit!(t.db, |tx| generations::may_write(tx, &held, generation)), "{on}");
            let late = GenerationId::generate();
            assert!(!commit!(t.db, |tx| generations::begin(tx, &held, of(late), later)), "{on}");
            assert!(
                !commit!(t.db, |tx| generations::may_write(tx, &held, late)),
                "{on}: nothing was written"
            );
            commit!(t.db, |tx| jobs::cancel(tx, workspace, held.document_id, later));
        }
    }
}

#[tokio::test]
async fn a_claim_that_nobody_gave_out_begins_nothing() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let generation = staged(&t.db, &held, &[], at(0)).await;
        let forged = JobClaim { claim_id: ClaimId::generate(), ..held.clone() };
        let new = GenerationId::generate();
        assert!(!commit!(t.db, |tx| generations::begin(tx, &forged, of(new), at(0))), "{}", t.name);
        assert!(!commit!(t.db, |tx| generations::may_write(tx, &forged, generation)), "{}", t.name);
        assert!(!commit!(t.db, |tx| generations::may_write(tx, &held, new)), "{}", t.name);
    }
}

#[tokio::test]
async fn only_generations_whose_claim_is_not_current_are_abandoned() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let done = claimed(&t.db, workspace, "done", at(0)).await;
        let active = staged(&t.db, &done, &[], at(0)).await;
        publish(&t.db, &done, active, at(0)).await;
        let stopped = claimed(&t.db, workspace, "stopped", at(0)).await;
        let given_up = staged(&t.db, &stopped, &[], at(0)).await;
        commit!(t.db, |tx| jobs::cancel(tx, workspace, stopped.document_id, at(1)));
        let slow = claimed(&t.db, workspace, "slow", at(0)).await;
        let old = staged(&t.db, &slow, &[], at(0)).await;
        // Its worker is late but alive: until somebody takes the job from it, it may go on.
        let held = commit!(t.db, |tx| jobs::renew(tx, &slow, at(0), &JobProgress::default()));
        assert!(held, "{}", t.name);

        assert_eq!(commit!(t.db, |tx| generations::abandon(tx, at(50))), 1, "{}", t.name);
        assert_eq!(commit!(t.db, |tx| generations::abandon(tx, at(60))), 0, "{}: once", t.name);
        assert!(generations::purgeable(&t.db, at(49), 10).await.unwrap().is_empty(), "{}", t.name);
        let purgeable = generations::purgeable(&t.db, at(50), 10).await.unwrap();
        assert_eq!(purgeable.iter().map(|g| g.retired.id()).collect::<Vec<_>>(), [given_up], "{}", t.name);
        assert!(commit!(t.db, |tx| generations::may_write(tx, &slow, old)), "{}", t.name);

        // The job's next claim does not save what was begun under the one before.
        commit!(t.db, |tx| jobs::expire_leases(tx, at(1), at(1), &lost()));
        let second = claim(&t.db, at(1)).await.unwrap();
        assert_eq!(second.id, slow.id, "{}", t.name);
        let new = staged(&t.db, &second, &[], at(1)).await;
        assert_eq!(commit!(t.db, |tx| generations::abandon(tx, at(70))), 1, "{}", t.name);
        let purgeable = generations::purgeable(&t.db, at(70), 10).await.unwrap();
        assert_eq!(
            purgeable.iter().map(|g| g.retired.id()).collect::<Vec<_>>(),
            [given_up, old],
            "{}",
            t.name
        );
        assert!(commit!(t.db, |tx| generations::may_write(tx, &second, new)), "{}", t.name);
    }
}

#[tokio::test]
async fn what_can_be_purged_comes_oldest_first_and_is_forgotten_when_it_is_gone() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let mut ids = Vec::new();
        for purge_at in [30, 10, 20] {
            let held = claimed(&t.db, workspace, "one", at(0)).await;
            ids.push(staged(&t.db, &held, &[], at(0)).await);
            commit!(t.db, |tx| documents::delete(tx, workspace, held.document_id, at(0), at(purge_at)));
        }
        let purgeable = async |now, limit| -> Vec<GenerationId> {
            generations::purgeable(&t.db, at(now), limit)
                .await
                .unwrap()
                .iter()
                .map(|g| g.retired.id())
                .collect()
        };
        assert_eq!(purgeable(25, 9).await, [ids[1], ids[2]], "{}", t.name);
        assert_eq!(purgeable(99, 2).await, [ids[1], ids[2]], "{}", t.name);
        commit!(t.db, |tx| generations::delete(tx, RetiredGeneration::assumed(workspace, ids[1])));
        assert_eq!(purgeable(99, 9).await, [ids[2], ids[0]], "{}", t.name);
    }
}

#[tokio::test]
async fn a_generation_that_must_be_removed_again_waits_for_its_time() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let generation = staged(&t.db, &held, &[], at(0)).await;
        commit!(t.db, |tx| documents::delete(tx, workspace, held.document_id, at(0), at(10)));
        let removals = async |now| -> Vec<i64> {
            generations::purgeable(&t.db, at(now), 9).await.unwrap().iter().map(|g| g.removals).collect()
        };
        assert_eq!(removals(10).await, [0], "{}", t.name);
        commit!(t.db, |tx| generations::remove_again(
            tx,
            RetiredGeneration::assumed(workspace, generation),
            at(80)
        ));
        assert!(removals(79).await.is_empty(), "{}", t.name);
        assert_eq!(removals(80).await, [1], "{}", t.name);
    }
}

#[tokio::test]
async fn the_generation_that_answers_is_not_forgotten() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (document, active) = crate::testing::published(&t.db, workspace, "one", &[], at(0)).await;
        commit!(t.db, |tx| generations::delete(tx, RetiredGeneration::assumed(workspace, active)));
        // It is still there to be superseded.
        enqueue(&t.db, workspace, document, at(1)).await;
        let held = claim(&t.db, at(1)).await.unwrap();
        let new = staged(&t.db, &held, &[], at(1)).await;
        publish(&t.db, &held, new, at(1)).await;
        let purgeable = generations::purgeable(&t.db, at(1_000), 10).await.unwrap();
        assert_eq!(purgeable.iter().map(|g| g.retired.id()).collect::<Vec<_>>(), [active], "{}", t.name);
    }
}

#[tokio::test]
async fn a_cancelled_jobs_generation_is_abandoned_even_when_its_document_waits_again() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let id = document(&t.db, workspace, "one", at(0)).await;
        let held = claim(&t.db, at(0)).await.unwrap();
        staged(&t.db, &held, &[], at(0)).await;
        commit!(t.db, |tx| jobs::cancel(tx, workspace, id, at(1)));
        enqueue(&t.db, workspace, id, at(1)).await;
        assert_eq!(commit!(t.db, |tx| generations::abandon(tx, at(2))), 1, "{}", t.name);
    }
}

#[tokio::test]
async fn a_generation_is_not_forgotten_while_it_has_passages() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let generation = staged(&t.db, &held, &["text"], at(0)).await;
        commit!(t.db, |tx| documents::delete(tx, workspace, held.document_id, at(1), at(2)));
        let retired = RetiredGeneration::assumed(workspace, generation);
        assert!(!commit!(t.db, |tx| generations::delete(tx, retired)), "{}", t.name);
        assert_eq!(generations::purgeable(&t.db, at(2), 9).await.unwrap().len(), 1, "{}", t.name);
        while commit!(t.db, |tx| chunks::purge_some(tx, retired)) {}
        assert!(commit!(t.db, |tx| generations::delete(tx, retired)), "{}", t.name);
        assert!(generations::purgeable(&t.db, at(2), 9).await.unwrap().is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn nobody_gives_up_what_was_published() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let generation = staged(&t.db, &held, &["text"], at(0)).await;
        assert_eq!(publish(&t.db, &held, generation, at(1)).await, PublishOutcome::Yes, "{}", t.name);
        // Its worker has not heard of it, and finds its claim gone.
        let proof = commit!(t.db, |tx| generations::retire(tx, &held, generation, at(1)));
        assert_eq!(proof, None, "{}", t.name);
        assert_eq!(active(&t.db, workspace, held.document_id).await, Some(generation), "{}", t.name);
        assert!(generations::purgeable(&t.db, at(1_000), 9).await.unwrap().is_empty(), "{}", t.name);

        // Not even while searches that began before may still read it.
        enqueue(&t.db, workspace, held.document_id, at(2)).await;
        let second = claim(&t.db, at(2)).await.unwrap();
        let new = staged(&t.db, &second, &["text"], at(2)).await;
        publish(&t.db, &second, new, at(3)).await;
        let proof = commit!(t.db, |tx| generations::retire(tx, &held, generation, at(3)));
        assert_eq!(proof, None, "{}", t.name);
    }
}

#[tokio::test]
async fn what_was_given_up_is_never_published() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let generation = staged(&t.db, &held, &["text"], at(0)).await;
        let proof = commit!(t.db, |tx| generations::retire(tx, &held, generation, at(5)));
        let proof = proof.expect(t.name);
        assert_eq!((proof.workspace_id(), proof.id()), (workspace, generation), "{}", t.name);
        assert_eq!(publish(&t.db, &held, generation, at(6)).await, PublishOutcome::ClaimLost, "{}", t.name);
        assert_eq!(active(&t.db, workspace, held.document_id).await, None, "{}", t.name);
        assert!(claim(&t.db, at(7)).await.is_none(), "{}: its claim is as it was", t.name);
        // The sweeper may have been quicker, and even through with it.
        for _ in 0..2 {
            let again = commit!(t.db, |tx| generations::retire(tx, &held, generation, at(8)));
            assert_eq!(again, Some(proof), "{}", t.name);
            commit!(t.db, |tx| chunks::purge_some(tx, proof));
            commit!(t.db, |tx| generations::delete(tx, proof));
        }
    }
}

#[tokio::test]
async fn nobody_gives_up_what_another_claim_writes() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let generation = staged(&t.db, &held, &["text"], at(0)).await;
        let stranger = JobClaim { claim_id: ClaimId::generate(), ..held.clone() };
        let proof = commit!(t.db, |tx| generations::retire(tx, &stranger, generation, at(1)));
        assert_eq!(proof, None, "{}", t.name);
        assert_eq!(publish(&t.db, &held, generation, at(2)).await, PublishOutcome::Yes, "{}", t.name);
    }
}

#[tokio::test]
async fn what_no_row_tells_of_may_be_removed_and_nothing_else() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let staging = staged(&t.db, &held, &["text"], at(0)).await;
        let (_, answering) = published(&t.db, workspace, "two", &["text"], at(1)).await;
        let lost = GenerationId::generate();
        let seen = [staging, lost, answering].map(|generation| (workspace, generation));
        let unknown = generations::unknown(&t.db, &seen).await.unwrap();
        let unknown: Vec<_> = unknown.iter().map(|retired| (retired.workspace_id(), retired.id())).collect();
        assert_eq!(unknown, [(workspace, lost)], "{}", t.name);
        assert!(generations::unknown(&t.db, &[]).await.unwrap().is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_generation_that_lacks_a_passage_is_not_published() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, workspace, "one", at(0)).await;
        let generation = staged(&t.db, &held, &["a", "b"], at(0)).await;
        let publication = GenerationPublication {
            claim: held.clone(),
            generation,
            was_unlimited: true,
            replaces: None,
            index: ready(generation, 3),
            languages: Vec::new(),
            learnt: None,
            purge_old_at: at(9),
        };
        let outcome = jobs::publish(&t.db, &publication, at(1)).await.unwrap();
        assert_eq!(outcome, PublishOutcome::Incomplete, "{}", t.name);
        assert_eq!(active(&t.db, workspace, held.document_id).await, None, "{}", t.name);
        // Nothing was written, so what is whole can still be published.
        assert_eq!(publish(&t.db, &held, generation, at(2)).await, PublishOutcome::Yes, "{}", t.name);
    }
}
