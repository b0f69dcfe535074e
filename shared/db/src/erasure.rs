//! What becomes of the bytes of what is deleted from a SQLite file: they are overwritten, so that neither the file nor a copy of it tells
//! any more what they said. On a full disk only as far as it takes no room: there a deletion has to do with what the reserve leaves it.

use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{Executor as _, SqliteConnection};

/// How the connection of a store's writer is set.
#[derive(Debug, Default)]
pub(super) struct Erasure {
    /// Whether it overwrites the pages too that nothing is left on. A long text has pages of its own.
    is_whole: AtomicBool,
}

impl Erasure {
    /// Sets a connection that has just been opened.
    pub(super) async fn begin(&self, connection: &mut SqliteConnection, is_full: bool) -> sqlx::Result<()> {
        // Whatever the one before was set to.
        self.is_whole.store(is_full, Ordering::Release);
        self.suit(connection, is_full).await
    }

    /// Sets the connection anew when the disk has become full, or is so no more.
    pub(super) async fn suit(&self, connection: &mut SqliteConnection, is_full: bool) -> sqlx::Result<()> {
        if self.is_whole.load(Ordering::Acquire) == is_full {
            let how = if is_full { "PRAGMA secure_delete = FAST" } else { "PRAGMA secure_delete = ON" };
            connection.execute(how).await?;
            self.is_whole.store(!is_full, Ordering::Release);
        }
        Ok(())
    }
}
