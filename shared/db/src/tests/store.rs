//! The store itself: transactions and connections.

use std::{
    ffi::OsString,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::{
    future::{Either, select, select_all},
    poll,
};

use lectern_shared::config::DatabaseLocation;

use crate::{
    CommitDurability, Db, DbError, Tx, connect, singletons,
    testing::{at, both, commit, user},
};

#[tokio::test]
async fn a_transaction_is_seen_when_it_is_committed_and_never_when_it_is_dropped() {
    for t in &both().await {
        let mut tx = t.db.begin().await.unwrap();
        singletons::claim(&mut tx, "kept", "1").await.unwrap();
        assert_eq!(singletons::get(&t.db, "kept").await.unwrap(), None, "{}", t.name);
        tx.commit().await.unwrap();
        assert!(singletons::get(&t.db, "kept").await.unwrap().is_some(), "{}", t.name);
        let mut tx = t.db.begin().await.unwrap();
        singletons::claim(&mut tx, "dropped", "1").await.unwrap();
        drop(tx);
        commit!(t.db, |tx| singletons::claim(tx, "next", "1"));
        assert_eq!(singletons::get(&t.db, "dropped").await.unwrap(), None, "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_burst_of_writers_waits_and_none_fails() {
    for t in &both().await {
        let tasks: Vec<_> = (0..60)
            .map(|_| {
                let db = t.db.clone();
                tokio::spawn(async move { user(&db, at(0)).await })
            })
            .collect();
        for task in tasks {
            let id = task.await.unwrap();
            assert!(crate::accounts::find(&t.db, id).await.unwrap().is_some(), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn a_connection_is_opened_in_few_turns_of_a_busy_process() {
    for t in &both().await {
        let turns = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&turns);
        let other_work = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                // It keeps the only thread busy.
                std::thread::sleep(Duration::from_millis(5));
                tokio::task::yield_now().await;
            }
        });
        // The connections for this are opened when it is first asked.
        t.db.ping().await.unwrap();
        other_work.abort();
        // Hashing the password alone lets others run 800 times.
        let turns = turns.load(Ordering::Relaxed);
        assert!(turns < 400, "{}: everything else ran {turns} times", t.name);
    }
}

#[tokio::test]
async fn connections_for_probes_can_be_opened_before_anybody_asks() {
    for t in &both().await {
        let Db::Postgres { probes, .. } = &t.db else { continue };
        assert_eq!(probes.size(), 0, "nobody has asked");
        t.db.prepare_probes();
        let opened = async {
            while probes.num_idle() == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), opened).await.expect("none is opened");
    }
}

#[tokio::test]
async fn a_request_waits_for_one_transaction_of_the_background_and_not_for_all() {
    let t = &both().await[0];
    assert_eq!(t.name, "SQLite");
    let background = t.db.in_background();
    let first = background.begin().await.unwrap();
    let others = [(); 5].map(|()| Box::pin(background.start(CommitDurability::Relaxed)));
    let mut others = select_all(others);
    assert!(poll!(&mut others).is_pending(), "the writer has something to do");
    let mut request = pin!(t.db.start(CommitDurability::Promised));
    assert!(poll!(&mut request).is_pending());
    first.commit().await.unwrap();
    let Either::Left((request, others)) = select(request, others).await else {
        panic!("others of the background went before it");
    };
    request.unwrap().commit().await.unwrap();
    let (other, _, _) = others.await;
    other.unwrap().commit().await.unwrap();
}

#[tokio::test]
async fn the_log_is_copied_into_the_file_without_a_commit_that_does_it_and_stays_short() {
    /// Pages.
    const LONG: i64 = 1_000;
    const MIB: usize = 1 << 20;
    let t = &both().await[0];
    let Db::Sqlite { readers, .. } = &t.db else { panic!("SQLite comes first") };
    let text = "x".repeat(MIB);
    for number in 0..20 {
        commit!(t.db, |tx| singletons::claim(tx, &format!("fact {number}"), &text));
        let copied = async {
            loop {
                let state = sqlx::query_as("PRAGMA wal_checkpoint(NOOP)").fetch_one(readers);
                let (_, pages, copied): (i64, i64, i64) = state.await.unwrap();
                if pages - copied < LONG {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), copied).await.expect("nobody copies the log");
    }
    let log = [t.file().as_os_str(), "-wal".as_ref()].into_iter().collect::<OsString>();
    let size = std::fs::metadata(log).unwrap().len();
    assert!(size < 8 * MIB as u64, "the log has {size} bytes");
}

#[tokio::test]
async fn what_was_stored_is_there_when_the_store_is_opened_again() {
    for t in &both().await {
        commit!(t.db, |tx| singletons::claim(tx, "fact", "1"));
        t.db.ping().await.unwrap();
        t.db.close().await;
        assert!(t.db.ping().await.is_err(), "{}: it is closed", t.name);
        let again = t.reopen().await;
        assert_eq!(singletons::get(&again, "fact").await.unwrap().as_deref(), Some("1"), "{}", t.name);
    }
}

#[tokio::test]
async fn only_a_store_that_several_processes_share_has_a_clock() {
    for t in &both().await {
        let first = t.db.server_time().await.unwrap();
        let second = t.db.server_time().await.unwrap();
        assert_eq!(first.is_some(), t.name == "PostgreSQL");
        assert!(first <= second, "{}", t.name);
    }
}

#[tokio::test]
async fn a_relaxed_transaction_is_all_or_nothing_like_any_other() {
    for t in &both().await {
        let mut tx = t.db.begin_relaxed().await.unwrap();
        assert!(singletons::claim(&mut tx, "dropped", "value").await.unwrap(), "{}", t.name);
        drop(tx);
        let mut tx = t.db.begin_relaxed().await.unwrap();
        assert!(singletons::claim(&mut tx, "kept", "value").await.unwrap(), "{}", t.name);
        tx.commit().await.unwrap();
        assert_eq!(singletons::get(&t.db, "dropped").await.unwrap(), None, "{}", t.name);
        assert_eq!(singletons::get(&t.db, "kept").await.unwrap().as_deref(), Some("value"), "{}", t.name);
    }
}

#[tokio::test]
async fn only_a_relaxed_commit_does_not_wait_for_the_disk_whatever_came_before_it() {
    for t in &both().await {
        for is_relaxed in [false, true, false] {
            let mut tx = if is_relaxed { t.db.begin_relaxed().await } else { t.db.begin().await }.unwrap();
            singletons::claim(&mut tx, "fact", "value").await.unwrap();
            match &mut tx {
                Tx::Sqlite(_) => {
                    let before = t.db.flushed();
                    tx.commit().await.unwrap();
                    assert_eq!(t.db.flushed() - before, u64::from(!is_relaxed));
                }
                Tx::Postgres(c) => {
                    let mode: String =
                        sqlx::query_scalar("SHOW synchronous_commit").fetch_one(&mut **c).await.unwrap();
                    // Of any other transaction it is the server's, which need not wait in tests.
                    assert!(!is_relaxed || mode == "off", "{mode}");
                }
            }
        }
    }
}

#[tokio::test]
async fn nothing_is_promised_after_the_disk_has_failed_until_the_store_is_opened_again() {
    let t = &both().await[0];
    assert_eq!(t.name, "SQLite");
    let mut tx = t.db.begin().await.unwrap();
    singletons::claim(&mut tx, "fact", "value").await.unwrap();
    let [log, away] = ["-wal", "-wal.away"].map(|end| {
        let mut name = t.file().as_os_str().to_owned();
        name.push(end);
        name
    });
    // SQLite goes on writing to what it has opened; what has its name cannot be flushed.
    std::fs::rename(&log, &away).unwrap();
    std::os::unix::fs::symlink("/dev/null", &log).unwrap();
    assert!(matches!(tx.commit().await, Err(DbError::CommitUnknown(_))));
    std::fs::rename(&away, &log).unwrap();
    let refused = [t.db.begin().await, t.db.begin_essential_relaxed().await];
    assert!(refused.iter().all(|begun| matches!(begun, Err(DbError::Failed(_)))), "{refused:?}");
    t.db.close().await;

    let again = t.reopen().await;
    commit!(again, |tx| singletons::claim(tx, "another", "value"));
    assert_eq!(singletons::get(&again, "another").await.unwrap().as_deref(), Some("value"));
}

#[tokio::test]
async fn a_store_may_be_reached_by_a_link() {
    let t = &both().await[0];
    let link = t.file().with_extension("link");
    std::os::unix::fs::symlink(t.file(), &link).unwrap();
    t.db.close().await;
    let linked = connect(&DatabaseLocation::Sqlite(link)).await.unwrap();
    commit!(linked, |tx| singletons::claim(tx, "fact", "value"));
    linked.close().await;
    assert_eq!(singletons::get(&t.reopen().await, "fact").await.unwrap().as_deref(), Some("value"));
}
