//! A store without room, and connections whose transaction broke off.

use sqlx::{AssertSqlSafe, Executor, SqlitePool};

use crate::{
    Db, DbError, DbErrorKind, Result, Tx, execute, singletons,
    testing::{TestDb, both, commit},
};

/// Writes until the store says that it has no room for it, in a transaction that is then dropped.
async fn fill(t: &TestDb) -> Result<()> {
    let mut tx = t.db.begin().await.unwrap();
    match &mut tx {
        Tx::Sqlite(c) => {
            // Holds for this connection alone: the next one finds room.
            let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut **c).await.unwrap();
            let limit = AssertSqlSafe(format!("PRAGMA max_page_count = {}", pages + 8));
            c.execute(limit).await.unwrap();
            let many = "x".repeat(1 << 20);
            singletons::set(&mut tx, "too much", &many).await
        }
        Tx::Postgres(_) => {
            let full =
                "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$";
            execute!(tx, sqlx::query(full)).map(drop)
        }
    }
}

#[tokio::test]
async fn after_a_write_for_which_there_was_no_room_the_next_ones_are_done() {
    for t in &both().await {
        commit!(t.db, |tx| singletons::set(tx, "before", "1"));
        for round in ["first", "second"] {
            let full = fill(t).await;
            assert!(matches!(full, Err(DbError::Full(_))), "{}: {full:?}", t.name);
            assert!(full.is_err_and(|error| error.kind() == DbErrorKind::Outage), "{}", t.name);
            commit!(t.db, |tx| singletons::set(tx, "after", round));
            let mut relaxed = t.db.begin_relaxed().await.unwrap();
            singletons::set(&mut relaxed, "relaxed", round).await.unwrap();
            relaxed.commit().await.unwrap();
            for name in ["after", "relaxed"] {
                let found = singletons::get(&t.db, name).await.unwrap();
                assert_eq!(found.as_deref(), Some(round), "{}", t.name);
            }
        }
        assert_eq!(
            singletons::get(&t.db, "too much").await.unwrap(),
            None,
            "{}: nothing is half there",
            t.name
        );
        assert_eq!(singletons::get(&t.db, "before").await.unwrap().as_deref(), Some("1"), "{}", t.name);
    }
}

/// Why the last of these statements fails.
async fn failure_of(t: &TestDb, statements: &[&'static str]) -> DbError {
    let mut tx = t.db.begin().await.unwrap();
    let mut last = Ok(0);
    for statement in statements {
        last = execute!(tx, sqlx::query(*statement));
    }
    last.unwrap_err()
}

/// Why SQLite's writer cannot begin while another process has the file for itself.
async fn refused_as_busy(t: &TestDb, writer: &SqlitePool) -> DbError {
    let mut connection = writer.acquire().await.unwrap();
    sqlx::query("PRAGMA busy_timeout = 0").execute(&mut *connection).await.unwrap();
    let other = t.reopen().await;
    let holding = other.begin().await.unwrap();
    let begun = sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await;
    drop(holding);
    begun.unwrap_err().into()
}

#[tokio::test]
async fn what_another_holds_for_too_long_is_no_fault_of_what_is_asked() {
    for t in &both().await {
        let error = match &t.db {
            Db::Sqlite { writer, .. } => refused_as_busy(t, writer).await,
            Db::Postgres { .. } => {
                let both_wait =
                    "DO $$ BEGIN RAISE EXCEPTION 'both wait' USING ERRCODE = 'deadlock_detected'; END $$";
                failure_of(t, &[both_wait]).await
            }
        };
        assert_eq!(error.kind(), DbErrorKind::Outage, "{}: {error}", t.name);
    }
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_told_from_an_outage() {
    for t in both().await.iter().filter(|t| t.name == "PostgreSQL") {
        let slow = ["SET LOCAL statement_timeout = '10ms'", "SELECT pg_sleep(60)"];
        let error = failure_of(t, &slow).await;
        assert_eq!(error.kind(), DbErrorKind::Slow, "{error}");
    }
}

#[tokio::test]
async fn writers_that_wait_behind_one_without_room_are_all_served() {
    for t in &both().await {
        let full = fill(t);
        let others = futures::future::join_all((0..20).map(|number| async move {
            let mut tx = t.db.begin().await?;
            singletons::set(&mut tx, &format!("waited {number}"), "1").await?;
            tx.commit().await
        }));
        let (full, others) = tokio::join!(full, others);
        assert!(matches!(full, Err(DbError::Full(_))), "{}: {full:?}", t.name);
        for other in others {
            other.unwrap_or_else(|error| panic!("{}: {error}", t.name));
        }
    }
}

#[tokio::test]
async fn a_connection_that_broke_in_a_transaction_is_thrown_away() {
    for t in both().await.iter().filter(|t| t.name == "PostgreSQL") {
        let mut tx = t.db.begin().await.unwrap();
        singletons::set(&mut tx, "lost", "1").await.unwrap();
        let Tx::Postgres(c) = &mut tx else { panic!("it is PostgreSQL") };
        let broken: std::result::Result<bool, _> =
            sqlx::query_scalar("SELECT pg_terminate_backend(pg_backend_pid())").fetch_one(&mut **c).await;
        assert!(broken.is_err());
        drop(tx);
        commit!(t.db, |tx| singletons::set(tx, "kept", "1"));
        assert_eq!(singletons::get(&t.db, "lost").await.unwrap(), None);
        assert!(singletons::get(&t.db, "kept").await.unwrap().is_some());
    }
}

#[tokio::test]
async fn the_reserve_is_made_once_kept_and_given_back_only_to_a_full_disk() {
    for t in both().await.iter().filter(|t| t.name == "SQLite") {
        let reserve = t.file().with_file_name("reserve");
        assert!(!reserve.exists(), "a command keeps none");
        t.db.keep_reserve().await;
        let size = || std::fs::metadata(&reserve).unwrap().len();
        assert!(size() > 0);
        let tx: Tx = t.db.begin_essential().await.unwrap();
        drop(tx);
        assert!(size() > 0, "there is room without it");
        // What no connection can tell from a full disk is looked into, and found to be none.
        assert!(fill(t).await.is_err());
        for _ in 0..2 {
            commit!(t.db, |tx| singletons::set(tx, "after", "1"));
        }
        assert!(!t.db.is_room_doubtful().await);
        assert!(size() > 0);
    }
}
