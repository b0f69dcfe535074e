//! Under which key processes say that they encrypt.

use uuid::Uuid;

use crate::{
    key_use, singletons,
    testing::{at, both, commit},
};

const OLD: [u8; 4] = *b"old.";
const NEW: [u8; 4] = *b"new.";

#[tokio::test]
async fn a_process_counts_for_its_key_until_it_withdraws_or_is_silent_for_too_long() {
    for t in &both().await {
        let others = async |key, now| key_use::others(&t.db, key, at(now)).await.unwrap();
        let note = async |key, process, now, until| {
            let process = Uuid::from_u128(process);
            commit!(t.db, |tx| key_use::note(tx, key, process, at(now), at(until)));
        };
        assert_eq!(others(NEW, 0).await, 0, "{}", t.name);
        note(OLD, 1, 0, 10).await;
        note(OLD, 2, 0, 10).await;
        note(NEW, 3, 0, 10).await;
        assert_eq!((others(NEW, 5).await, others(OLD, 5).await), (2, 1), "{}", t.name);
        assert_eq!(others(*b"none", 5).await, 3, "{}", t.name);

        note(OLD, 1, 8, 20).await;
        assert_eq!(others(NEW, 10).await, 2, "{}: the moment itself is within", t.name);
        assert_eq!(others(NEW, 11).await, 1, "{}: one has said so again", t.name);
        commit!(t.db, |tx| key_use::withdraw(tx, OLD, Uuid::from_u128(3)));
        assert_eq!(others(OLD, 10).await, 1, "{}: that is another's key", t.name);
        commit!(t.db, |tx| key_use::withdraw(tx, OLD, Uuid::from_u128(1)));
        assert_eq!(others(NEW, 11).await, 0, "{}", t.name);

        note(OLD, 2, 30, 40).await;
        assert_eq!(others(NEW, 35).await, 1, "{}: it was silent, and goes on", t.name);
    }
}

#[tokio::test]
async fn who_went_without_a_word_is_forgotten_after_a_day_or_when_it_is_known() {
    const DAY: u64 = 24 * 60 * 60;
    for t in &both().await {
        let (lost, living) = (Uuid::from_u128(1), Uuid::from_u128(2));
        commit!(t.db, |tx| key_use::note(tx, OLD, lost, at(0), at(10)));
        commit!(t.db, |tx| key_use::note(tx, OLD, living, at(0), at(20)));
        for (now, left) in [(DAY + 10, 2), (DAY + 11, 1), (DAY + 20, 1)] {
            commit!(t.db, |tx| key_use::forget_lost(tx, at(now)));
            assert_eq!(key_use::others(&t.db, NEW, at(0)).await.unwrap(), left, "{} at {now}", t.name);
        }
        let mine = Uuid::from_u128(4);
        assert!(commit!(t.db, |tx| singletons::hold_lease(tx, "sweeper", mine, at(0), at(10))));
        commit!(t.db, |tx| key_use::forget_all(tx));
        assert_eq!(key_use::others(&t.db, NEW, at(0)).await.unwrap(), 0, "{}", t.name);
        let another = commit!(t.db, |tx| singletons::hold_lease(tx, "sweeper", living, at(5), at(15)));
        assert!(!another, "{}: other leases stay", t.name);
    }
}
