//! Answers that are kept.

use lectern_shared::ids::UserId;
use tokio::sync::oneshot;

use crate::{
    Db, accounts, idempotency,
    testing::{at, both, commit, finished_or_blocked, user},
};

async fn find(db: &Db, user: UserId, key: &str, now: u64) -> Option<Vec<u8>> {
    idempotency::find(db, user, key, at(now)).await.unwrap()
}

async fn keep(db: &Db, user: UserId, key: &str, answer: &[u8], now: u64, expires_at: u64) -> bool {
    commit!(db, |tx| idempotency::insert(tx, user, key, answer, at(now), at(expires_at)))
}

#[tokio::test]
async fn an_answer_is_kept_once_for_each_key_of_each_user() {
    for t in &both().await {
        let (ada, grace) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        assert_eq!(find(&t.db, ada, "key", 1).await, None, "{}", t.name);
        assert!(keep(&t.db, ada, "key", b"\x00first\xff", 1, 100).await, "{}", t.name);
        assert!(!keep(&t.db, ada, "key", b"second", 2, 200).await, "{}", t.name);
        assert_eq!(find(&t.db, ada, "key", 2).await.as_deref(), Some(&b"\x00first\xff"[..]), "{}", t.name);

        assert_eq!(find(&t.db, grace, "key", 2).await, None, "{}", t.name);
        assert!(keep(&t.db, grace, "key", b"hers", 2, 100).await, "{}", t.name);
        assert!(keep(&t.db, ada, "Key", b"of another key", 2, 100).await, "{}", t.name);
        assert_eq!(find(&t.db, grace, "key", 2).await.as_deref(), Some(&b"hers"[..]), "{}", t.name);
        assert_eq!(find(&t.db, ada, "key", 2).await.as_deref(), Some(&b"\x00first\xff"[..]), "{}", t.name);
    }
}

#[tokio::test]
async fn an_answer_that_is_rolled_back_was_never_given() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let mut tx = t.db.begin().await.unwrap();
        assert!(idempotency::insert(&mut tx, user, "key", b"lost", at(1), at(100)).await.unwrap());
        drop(tx);
        assert_eq!(find(&t.db, user, "key", 1).await, None, "{}", t.name);
        assert!(keep(&t.db, user, "key", b"kept", 1, 100).await, "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_with_one_key_at_once_one_is_kept() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        let tasks: Vec<_> = (0..12_u8)
            .map(|n| {
                let db = t.db.clone();
                tokio::spawn(async move { (n, keep(&db, user, "key", &[n], 1, 100).await) })
            })
            .collect();
        let mut kept = Vec::new();
        for task in tasks {
            let (n, won) = task.await.unwrap();
            kept.extend(won.then_some(n));
        }
        assert_eq!(kept.len(), 1, "{}", t.name);
        assert_eq!(find(&t.db, user, "key", 1).await, Some(kept), "{}", t.name);
    }
}

#[tokio::test]
async fn an_expired_answer_is_gone_before_it_is_swept() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        for (key, expires_at) in [("a", 10), ("b", 10), ("c", 10), ("d", 20)] {
            assert!(keep(&t.db, user, key, b"answer", 0, expires_at).await, "{}", t.name);
        }
        assert!(find(&t.db, user, "a", 9).await.is_some(), "{}", t.name);
        assert!(find(&t.db, user, "a", 10).await.is_none(), "{}", t.name);
        assert!(!keep(&t.db, user, "a", b"early", 9, 30).await, "{}", t.name);
        assert!(keep(&t.db, user, "a", b"again", 10, 30).await, "{}", t.name);
        assert_eq!(find(&t.db, user, "a", 10).await.as_deref(), Some(&b"again"[..]), "{}", t.name);

        assert_eq!(commit!(t.db, |tx| idempotency::expire(tx, at(9), 10)), 0, "{}", t.name);
        for swept in [1, 1, 0] {
            assert_eq!(commit!(t.db, |tx| idempotency::expire(tx, at(10), 1)), swept, "{}", t.name);
        }
        // What was swept is gone whatever the time; the rest is there.
        for (key, there) in [("a", true), ("b", false), ("c", false), ("d", true)] {
            assert_eq!(find(&t.db, user, key, 1).await.is_some(), there, "{} {key}", t.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_that_is_used_again_while_it_is_swept_keeps_its_new_answer() {
    for t in &both().await {
        let user = user(&t.db, at(0)).await;
        assert!(keep(&t.db, user, "key", b"old", 0, 10).await, "{}", t.name);
        let mut tx = t.db.begin().await.unwrap();
        assert!(idempotency::insert(&mut tx, user, "key", b"new", at(20), at(100)).await.unwrap());
        let (begun, sweeping) = oneshot::channel();
        let sweep = tokio::spawn({
            let db = t.db.clone();
            async move {
                begun.send(()).unwrap();
                commit!(db, |tx| idempotency::expire(tx, at(20), 10))
            }
        });
        sweeping.await.unwrap();
        finished_or_blocked(&t.db, &sweep).await;
        tx.commit().await.unwrap();
        assert_eq!(sweep.await.unwrap(), 0, "{}", t.name);
        assert_eq!(find(&t.db, user, "key", 20).await.as_deref(), Some(&b"new"[..]), "{}", t.name);
    }
}

#[tokio::test]
async fn a_deleted_account_keeps_no_answers() {
    for t in &both().await {
        let (gone, other) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        for user in [gone, other] {
            assert!(keep(&t.db, user, "key", b"answer", 0, 100).await, "{}", t.name);
        }
        commit!(t.db, |tx| accounts::delete(tx, gone, at(1)));
        assert_eq!(find(&t.db, gone, "key", 1).await, None, "{}", t.name);
        assert!(find(&t.db, other, "key", 1).await.is_some(), "{}", t.name);
    }
}
