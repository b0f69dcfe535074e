//! SQLite's only writer: who waits for it, and in which order.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use sqlx::{SqliteConnection, SqliteTransaction};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{DbError, Result};

/// How long a transaction waits for the writer: a burst of uploads must wait, not fail.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// For whom a handle begins its transactions.
#[derive(Clone, Debug)]
pub struct WriterLane {
    is_background: bool,
    /// The background's turn: one transaction of its own at a time waits for the writer or has it.
    turn: Arc<Semaphore>,
}

impl WriterLane {
    /// That of requests.
    pub(super) fn new() -> Self {
        Self { is_background: false, turn: Arc::new(Semaphore::new(1)) }
    }

    /// That of jobs beside these requests.
    pub(super) fn background(&self) -> Self {
        Self { is_background: true, turn: Arc::clone(&self.turn) }
    }

    /// Waits until one may stand in line for the writer.
    ///
    /// # Errors
    /// [`DbError::Failed`], as of a writer that is busy for too long.
    pub(super) async fn turn(&self) -> Result<Option<OwnedSemaphorePermit>> {
        if !self.is_background {
            return Ok(None);
        }
        match tokio::time::timeout(PATIENCE, Arc::clone(&self.turn).acquire_owned()).await {
            Ok(Ok(turn)) => Ok(Some(turn)),
            Ok(Err(_)) => Err(DbError::Failed(sqlx::Error::PoolClosed)),
            Err(_) => Err(DbError::Failed(sqlx::Error::PoolTimedOut)),
        }
    }
}

/// An open transaction on SQLite.
#[derive(Debug)]
pub struct SqliteWrite {
    tx: SqliteTransaction<'static>,
    /// Given back after the connection.
    turn: Option<OwnedSemaphorePermit>,
}

impl SqliteWrite {
    pub(super) fn new(tx: SqliteTransaction<'static>, turn: Option<OwnedSemaphorePermit>) -> Self {
        Self { tx, turn }
    }

    pub(super) async fn commit(self) -> Result<()> {
        let Self { tx, turn } = self;
        let end = tx.commit().await;
        drop(turn);
        Ok(end?)
    }

    pub(super) async fn rollback(self) -> Result<()> {
        let Self { tx, turn } = self;
        let end = tx.rollback().await;
        drop(turn);
        Ok(end?)
    }
}

impl Deref for SqliteWrite {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.tx
    }
}

impl DerefMut for SqliteWrite {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.tx
    }
}
