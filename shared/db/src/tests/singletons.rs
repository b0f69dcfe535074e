//! Facts and leases of the whole installation.

use uuid::Uuid;

use crate::{
    singletons,
    testing::{at, both, commit},
};

#[tokio::test]
async fn the_first_to_store_a_fact_is_the_only_one() {
    for t in &both().await {
        assert_eq!(singletons::get(&t.db, "instance").await.unwrap(), None, "{}", t.name);
        assert!(commit!(t.db, |tx| singletons::claim(tx, "instance", "first")), "{}", t.name);
        assert!(!commit!(t.db, |tx| singletons::claim(tx, "instance", "second")), "{}", t.name);
        assert!(commit!(t.db, |tx| singletons::claim(tx, "another", "second")), "{}", t.name);
        assert_eq!(singletons::get(&t.db, "instance").await.unwrap().as_deref(), Some("first"), "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_claim_at_once_one_wins_and_its_value_stays() {
    for t in &both().await {
        let tasks: Vec<_> = (0..12)
            .map(|n| {
                let db = t.db.clone();
                tokio::spawn(async move {
                    let value = n.to_string();
                    (commit!(db, |tx| singletons::claim(tx, "first_sign_up", &value)), value)
                })
            })
            .collect();
        let mut winners = Vec::new();
        for task in tasks {
            let (won, value) = task.await.unwrap();
            winners.extend(won.then_some(value));
        }
        assert_eq!(winners.len(), 1, "{}", t.name);
        let stored = singletons::get(&t.db, "first_sign_up").await.unwrap();
        assert_eq!(stored.as_ref(), winners.first(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_fact_is_replaced_only_if_it_is_the_one_that_was_read() {
    for t in &both().await {
        commit!(t.db, |tx| singletons::claim(tx, "fact", "old"));
        for (name, old, value, replaced, then) in [
            ("fact", "other", "new", false, "old"),
            ("another", "old", "new", false, "old"),
            ("fact", "old", "new", true, "new"),
            ("fact", "old", "newer", false, "new"),
        ] {
            assert_eq!(commit!(t.db, |tx| singletons::replace(tx, name, old, value)), replaced, "{}", t.name);
            assert_eq!(singletons::get(&t.db, "fact").await.unwrap().as_deref(), Some(then), "{}", t.name);
        }
        assert_eq!(singletons::get(&t.db, "another").await.unwrap(), None, "{}", t.name);
    }
}

#[tokio::test]
async fn a_fact_that_was_rolled_back_can_be_claimed_again() {
    for t in &both().await {
        let mut tx = t.db.begin().await.unwrap();
        assert!(singletons::claim(&mut tx, "fact", "lost").await.unwrap(), "{}", t.name);
        drop(tx);
        assert!(commit!(t.db, |tx| singletons::claim(tx, "fact", "kept")), "{}", t.name);
    }
}

#[tokio::test]
async fn a_lease_has_one_holder_until_it_ends() {
    for t in &both().await {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        for (name, owner, now, until, held) in [
            ("sweeper", a, 0, 10, true),
            ("sweeper", b, 5, 15, false),
            ("other", b, 5, 15, true),
            // Its holder extends it.
            ("sweeper", a, 8, 20, true),
            ("sweeper", b, 12, 22, false),
            ("sweeper", b, 20, 30, false),
            // It ended, so the next one takes it over.
            ("sweeper", b, 21, 31, true),
            ("sweeper", a, 25, 35, false),
            // Its holder comes back after its end.
            ("sweeper", b, 90, 99, true),
        ] {
            let got = commit!(t.db, |tx| singletons::hold_lease(tx, name, owner, at(now), at(until)));
            assert_eq!(got, held, "{} {name} {owner} {now}", t.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_want_a_lease_at_once_one_gets_it() {
    for t in &both().await {
        for now in [0, 100] {
            let tasks: Vec<_> = (0..12)
                .map(|n| {
                    let db = t.db.clone();
                    let owner = Uuid::from_u128(n);
                    tokio::spawn(async move {
                        commit!(db, |tx| singletons::hold_lease(tx, "sweeper", owner, at(now), at(now + 10)))
                    })
                })
                .collect();
            let mut holders = 0;
            for task in tasks {
                holders += u32::from(task.await.unwrap());
            }
            assert_eq!(holders, 1, "{} at {now}", t.name);
        }
    }
}
