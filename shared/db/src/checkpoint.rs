//! Checkpoints of SQLite's write-ahead log: what is committed is copied from the log into the database's file, so that the log can begin
//! anew.
//!
//! SQLite does so by itself at the end of a commit that finds the log long, which keeps its only writer from everybody for as long
//! as some hundred commits take. Here a reader does it, while the writer goes on; only what was committed meanwhile is left to the
//! writer. Both at once are safe from SQLite 3.51.3 on.

use std::time::Duration;

use sqlx::{SqliteConnection, SqlitePool};
use tokio::sync::watch;

use super::{Result, writer::BackgroundTurns};

/// Pages of the log from which on it is copied: 4 MiB, as SQLite does by itself.
const LONG: i64 = 1_000;
/// Pages from which on a commit copies it after all, since nobody else has come to it.
pub(super) const TOO_LONG: &str = "2000";
/// The shortest time between two looks at the log's length, while there are commits.
const PAUSE: Duration = Duration::from_millis(50);
/// The same when somebody reads what was before the last commits, which keeps the log as it is.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// Looks after the log for as long as somebody can commit.
pub(super) async fn look_after_log(
    mut commits: watch::Receiver<()>,
    readers: SqlitePool,
    writer: SqlitePool,
    turns: BackgroundTurns,
) {
    while commits.changed().await.is_ok() {
        let pause = match shorten_log(&readers, &writer, &turns).await {
            Ok(LogState::Short | LogState::Copied) => PAUSE,
            Ok(LogState::InUse) => LONG_PAUSE,
            Err(_) if readers.is_closed() => return,
            Err(error) => {
                // A commit does it in the end, or says what is wrong.
                tracing::debug!(%error, "the log could not be copied into the database's file");
                LONG_PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// What a look at the log found, or made of it.
enum LogState {
    /// It is not long.
    Short,
    /// It can begin anew.
    Copied,
    /// Most of it has to stay.
    InUse,
}

async fn shorten_log(readers: &SqlitePool, writer: &SqlitePool, turns: &BackgroundTurns) -> Result<LogState> {
    let mut reader = readers.acquire().await?;
    let found = LogLength::after(&mut reader, "PRAGMA wal_checkpoint(NOOP)").await?;
    if found.pages - found.copied < LONG {
        return Ok(LogState::Short);
    }
    // Who else copies it at this moment leaves nothing to be done, and no numbers.
    if LogLength::after(&mut reader, "PRAGMA wal_checkpoint(PASSIVE)").await?.copied < found.pages {
        return Ok(LogState::InUse);
    }
    drop(reader);
    let _turn = turns.take(None).await;
    let mut writer = writer.acquire().await?;
    LogLength::after(&mut writer, "PRAGMA wal_checkpoint(PASSIVE)").await?;
    Ok(LogState::Copied)
}

/// The log in pages.
#[derive(sqlx::FromRow)]
struct LogLength {
    #[sqlx(rename = "log")]
    pages: i64,
    /// Those of them that are in the file, and written over when all are.
    #[sqlx(rename = "checkpointed")]
    copied: i64,
}

impl LogLength {
    async fn after(connection: &mut SqliteConnection, checkpoint: &'static str) -> Result<Self> {
        Ok(sqlx::query_as(checkpoint).fetch_one(connection).await?)
    }
}
