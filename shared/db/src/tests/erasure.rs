//! What is left of deleted texts in the file of a SQLite store.

use sqlx::SqlitePool;

use crate::{
    Db, execute, singletons,
    testing::{TestDb, both, commit},
};

/// Whether the file holds a text. What stands in its log only is copied into it before.
async fn holds(t: &TestDb, writer: &SqlitePool, text: &str) -> bool {
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(writer).await.unwrap();
    let file = std::fs::read(t.file()).unwrap();
    file.windows(text.len()).any(|window| window == text.as_bytes())
}

/// What the writer's connection is set to: 1 when it overwrites everything, 2 when only what takes no room.
async fn setting(writer: &SqlitePool) -> i64 {
    sqlx::query_scalar("PRAGMA secure_delete").fetch_one(writer).await.unwrap()
}

#[tokio::test]
async fn what_was_deleted_or_replaced_is_not_in_the_file_any_more() {
    let t = &both().await[0];
    let Db::Sqlite { writer, .. } = &t.db else { panic!("SQLite comes first") };
    // One on a page with others, one that is replaced, and one that has pages of its own.
    let long = format!("the heron {} that flew away", "of the harbour ".repeat(5_000));
    let (short, old) = ("a bittern in the reeds", "an egret on the pier");
    let texts = [("short", short), ("old", old), ("long", long.as_str())];
    for (name, text) in texts {
        commit!(t.db, |tx| singletons::set(tx, name, text));
    }
    let parts = [short, old, "the heron of", "that flew away"];
    for part in parts {
        assert!(holds(t, writer, part).await, "{part} is stored");
    }
    let mut tx = t.db.begin().await.unwrap();
    execute!(tx, sqlx::query("DELETE FROM singletons WHERE name IN ('short', 'long')")).unwrap();
    singletons::set(&mut tx, "old", "nothing").await.unwrap();
    tx.commit().await.unwrap();
    for part in parts {
        assert!(!holds(t, writer, part).await, "{part} is left");
    }
}

#[tokio::test]
async fn on_a_full_disk_nothing_is_overwritten_that_takes_room() {
    let t = &both().await[0];
    let Db::Sqlite { writer, room, .. } = &t.db else { panic!("SQLite comes first") };
    assert_eq!(setting(writer).await, 1);
    room.doubt();
    assert_eq!(setting(writer).await, 2);
    // There is room again, as is found out before the next transaction.
    commit!(t.db, |tx| singletons::set(tx, "fact", "1"));
    assert_eq!(setting(writer).await, 1);
}
