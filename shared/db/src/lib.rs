//! The relational store: PostgreSQL or SQLite behind one set of statements. All SQL of the service lives in this
//! crate, one file a group of tables.
//!
//! A query is written once and compiled for both drivers by [`on!`]. Reads take a [`Db`]; every write takes a [`Tx`],
//! so that a caller decides what belongs together.

pub mod accounts;
pub mod agent_versions;
pub mod agents;
pub mod api_tokens;
pub mod audit;
pub mod cached_answers;
mod checkpoint;
pub mod checkup;
pub mod choices;
pub mod chunks;
pub mod collections;
mod commit;
mod connect;
pub mod copy;
pub mod documents;
mod erasure;
mod error;
pub mod evaluations;
pub mod generations;
pub mod idempotency;
pub mod identities;
pub mod index_segments;
pub mod jobs;
pub mod key_use;
pub mod known_addresses;
pub mod locks;
pub mod memory;
pub mod migrate;
pub mod operator_jobs;
pub mod pages;
pub mod prompts;
pub mod publications;
pub mod receipts;
mod room;
pub mod sealed;
pub(crate) mod silence;
pub mod singletons;
pub mod statistics;
pub mod storage;
pub mod sync;
pub mod tags;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
pub mod tools;
pub mod traces;
pub mod usage;
pub mod vectors;
pub mod webhooks;
pub mod workspaces;
mod writer;

use std::sync::Arc;

use lectern_shared::{clock::Timestamp, ids::WorkspaceId, metrics::PoolState};
use sqlx::{PgConnection, PgPool, SqliteConnection, SqlitePool};
use uuid::Uuid;

pub use commit::PgWrite;
pub use connect::{connect, open_for_command, open_read_only};
pub use error::{DbError, DbErrorKind};
pub use room::DiskReserve;
pub use writer::{SqliteWrite, WriterLane};

/// What a statement runs on, for one of the two drivers.
pub(crate) enum DbExecutor<P, S> {
    /// PostgreSQL.
    Postgres(P),
    /// SQLite.
    Sqlite(S),
}

/// Runs one expression on whichever driver is in use; the expression is compiled for both.
///
/// `execute!(db, sqlx::query("…").bind(x))`, where `db` is a `&Db` (reads) or a `&mut Tx`.
macro_rules! on {
    ($db:expr, |$c:ident| $body:expr) => {
        match $db.on() {
            $crate::DbExecutor::Postgres($c) => $crate::silence::answered($body).await,
            $crate::DbExecutor::Sqlite($c) => $body.await,
        }
    };
}
pub(crate) use on;

/// Runs a statement without rows, and returns how many it touched: `execute!(tx, sqlx::query("…").bind(x))`.
macro_rules! execute {
    ($db:expr, $query:expr) => {
        match $db.on() {
            $crate::DbExecutor::Postgres(c) => {
                $crate::silence::answered($query.execute(c)).await.map(|done| done.rows_affected())
            }
            $crate::DbExecutor::Sqlite(c) => $query.execute(c).await.map(|done| done.rows_affected()),
        }
        .map_err($crate::DbError::from)
    };
}
pub(crate) use execute;

/// A result of the store.
pub type Result<T> = std::result::Result<T, DbError>;

/// Reads an id that SQLite's `hex()` wrote.
fn from_hex(hex: Option<&str>) -> Result<Uuid> {
    hex.and_then(|hex| Uuid::try_parse(hex).ok()).ok_or_else(|| DbError::Unreadable("an id".to_owned()))
}

/// Reads ids that SQLite's `group_concat(hex(…), '')` wrote one behind the other.
fn ids_from_hex<I: From<Uuid>>(digits: &str) -> Result<Vec<I>> {
    (0..digits.len()).step_by(32).map(|at| Ok(from_hex(digits.get(at..at + 32))?.into())).collect()
}

/// A handle to the store. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Db {
    /// PostgreSQL.
    Postgres {
        /// What requests and jobs share.
        pool: PgPool,
        /// Kept apart for [`Db::probes`].
        probes: PgPool,
    },
    /// SQLite, in one process: one connection writes, several read.
    Sqlite {
        /// Read-only connections.
        readers: SqlitePool,
        /// The one connection that writes.
        writer: SqlitePool,
        /// The room on its disk.
        room: Arc<DiskReserve>,
        /// Whose transactions this handle begins.
        lane: WriterLane,
    },
}

/// What a transaction's commit promises.
#[derive(Clone, Copy, Debug)]
enum CommitDurability {
    /// It has taken place for good.
    Promised,
    /// It may be lost when the machine goes.
    Relaxed,
}

impl Db {
    pub(crate) fn on(&self) -> DbExecutor<&PgPool, &SqlitePool> {
        match self {
            Self::Postgres { pool, .. } => DbExecutor::Postgres(pool),
            Self::Sqlite { readers, .. } => DbExecutor::Sqlite(readers),
        }
    }

    /// Starts a transaction that may write. On SQLite it takes the write lock at once: of transactions that read first
    /// and lock later, all but one fail under load.
    ///
    /// # Errors
    /// [`DbError::Full`] at once while the disk of a SQLite store has only room for [`Db::begin_essential`].
    pub async fn begin(&self) -> Result<Tx> {
        self.start_with_room(CommitDurability::Promised).await
    }

    /// Starts a transaction like [`Db::begin`] for what must work on a full disk too: what frees room, and what keeps the jobs in
    /// order until there is some. SQLite has a reserve for it; PostgreSQL's room is its operator's.
    pub async fn begin_essential(&self) -> Result<Tx> {
        if let Self::Sqlite { room, .. } = self {
            room.make().await;
        }
        self.start(CommitDurability::Promised).await
    }

    /// Starts a transaction like [`Db::begin`] for what may be lost in a crash of the machine, or of the database's server: its commit
    /// does not wait for the disk, and the last moments of such commits go when the machine goes. Nothing is ever half there: the
    /// log has an order, so that whatever is committed by a transaction of [`Db::begin`] takes everything before it to the disk.
    pub async fn begin_relaxed(&self) -> Result<Tx> {
        self.start_with_room(CommitDurability::Relaxed).await
    }

    /// Starts a transaction that is one of [`Db::begin_essential`] and of [`Db::begin_relaxed`].
    pub async fn begin_essential_relaxed(&self) -> Result<Tx> {
        if let Self::Sqlite { room, .. } = self {
            room.make().await;
        }
        self.start(CommitDurability::Relaxed).await
    }

    /// Starts a transaction once there is room for it.
    async fn start_with_room(&self, durability: CommitDurability) -> Result<Tx> {
        let Self::Sqlite { room, .. } = self else { return self.start(durability).await };
        loop {
            room.check().await?;
            let tx = self.start(durability).await?;
            // Those that stood in line for the only writer while the reserve was given back would use it up.
            if !room.is_doubtful() {
                return Ok(tx);
            }
            tx.rollback().await?;
        }
    }

    async fn start(&self, durability: CommitDurability) -> Result<Tx> {
        match (self, durability) {
            (Self::Postgres { pool, .. }, CommitDurability::Promised) => {
                Ok(Tx::Postgres(PgWrite::promising(pool).await?))
            }
            (Self::Postgres { pool, .. }, CommitDurability::Relaxed) => {
                Ok(Tx::Postgres(PgWrite::relaxed(pool).await?))
            }
            (Self::Sqlite { writer, lane, .. }, durability) => {
                Ok(Tx::Sqlite(lane.begin(writer, durability).await?))
            }
        }
    }

    /// The same store for work that nobody waits for at the other end of a connection. SQLite's only writer serves in the order of
    /// arrival, so a request would wait for everything that the jobs under way have to write; by this handle they take turns, and
    /// one of them at most stands before a request.
    #[must_use]
    pub fn in_background(&self) -> Self {
        let mut background = self.clone();
        if let Self::Sqlite { lane, .. } = &mut background {
            *lane = lane.background();
        }
        background
    }

    /// The same store on behalf of a workspace. Where transactions take turns, those of another do not wait for all of this one's.
    #[must_use]
    pub fn on_behalf_of(&self, workspace: WorkspaceId) -> Self {
        let mut own = self.clone();
        if let Self::Sqlite { lane, .. } = &mut own {
            *lane = lane.of(workspace);
        }
        own
    }

    /// Keeps room for [`Db::begin_essential`] from now on, in a file beside that of SQLite.
    pub async fn keep_reserve(&self) {
        if let Self::Sqlite { room, .. } = self {
            room.keep_reserve().await;
        }
    }

    /// Whether there may be no room to write: a glance, which writes nothing.
    pub async fn is_room_doubtful(&self) -> bool {
        match self {
            Self::Postgres { .. } => false,
            Self::Sqlite { room, .. } => room.probe_free_space().await,
        }
    }

    /// Gives back what can be of the room that the store itself takes, when there may be none.
    ///
    /// # Errors
    /// [`DbError::Full`] when there is none after it either.
    pub async fn regain_room(&self) -> Result<()> {
        match self {
            Self::Postgres { .. } => Ok(()),
            Self::Sqlite { room, writer, .. } => room.regain(writer).await,
        }
    }

    /// The same store for the question whether it works. On PostgreSQL this has connections of its own, so that the answer does
    /// not wait until requests and jobs give one back: a service that has much to do is no service that is down.
    #[must_use]
    pub fn probes(&self) -> Self {
        match self {
            Self::Postgres { probes, .. } => Self::Postgres { pool: probes.clone(), probes: probes.clone() },
            Self::Sqlite { .. } => self.clone(),
        }
    }

    /// Begins to open what [`Db::probes`] has for itself, so that the first question whether the store works does not wait for it. What
    /// goes wrong is told whoever asks that.
    pub fn prepare_probes(&self) {
        if let Self::Postgres { .. } = self {
            for _ in 0..connect::POSTGRES_PROBES {
                let db = self.clone();
                tokio::spawn(async move { db.ping().await });
            }
        }
    }

    /// Asks the store for the smallest possible answer, by [`Db::probes`].
    pub async fn ping(&self) -> Result<()> {
        on!(self.probes(), |c| sqlx::query_scalar::<_, i64>("SELECT CAST(1 AS BIGINT)").fetch_one(c))?;
        Ok(())
    }

    /// Why PostgreSQL lets no connection be made, if it says so at once. The pools do not: they try until their time is over.
    pub async fn refusal(&self) -> Option<DbError> {
        let Self::Postgres { probes, .. } = self else { return None };
        let refusal = connect::refusal(&probes.connect_options(), connect::AT_ONCE).await;
        refusal.map(DbError::from)
    }

    /// The store's own clock, where it has one that several processes share.
    pub async fn server_time(&self) -> Result<Option<Timestamp>> {
        match self {
            Self::Postgres { pool, .. } => {
                let micros = sqlx::query_scalar(
                    "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
                )
                .fetch_one(pool);
                let micros: i64 = silence::answered(micros).await?;
                Ok(Some(Timestamp::from_micros(micros)))
            }
            Self::Sqlite { .. } => Ok(None),
        }
    }

    /// The pools of connections, as they are now.
    pub fn pools(&self) -> Vec<PoolState> {
        fn state<DB: sqlx::Database>(name: &'static str, pool: &sqlx::Pool<DB>) -> PoolState {
            let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
            let open = i64::from(pool.size());
            PoolState {
                name,
                open,
                idle: count(pool.num_idle()).min(open),
                max: i64::from(pool.options().get_max_connections()),
            }
        }
        match self {
            Self::Postgres { pool, probes } => vec![state("main", pool), state("probes", probes)],
            Self::Sqlite { readers, writer, .. } => vec![state("readers", readers), state("writer", writer)],
        }
    }

    /// How often this process has waited for the disk of a SQLite store.
    #[cfg(any(test, feature = "testing"))]
    pub fn flushed(&self) -> u64 {
        match self {
            Self::Postgres { .. } => 0,
            Self::Sqlite { lane, .. } => lane.log().flushed(),
        }
    }

    /// Waits until everything that can be read now is on the disk. PostgreSQL shows nothing before it is, but what was relaxed.
    ///
    /// # Errors
    /// [`DbError::CommitUnknown`] when the disk fails.
    pub async fn flush(&self) -> Result<()> {
        match self {
            Self::Postgres { .. } => Ok(()),
            Self::Sqlite { lane, .. } => lane.log().flush().await,
        }
    }

    /// Closes every connection; on SQLite this also folds the write-ahead log into the file.
    pub async fn close(&self) {
        match self {
            Self::Postgres { pool, probes } => {
                pool.close().await;
                probes.close().await;
            }
            Self::Sqlite { readers, writer, .. } => {
                readers.close().await;
                writer.close().await;
            }
        }
    }
}

/// A transaction. Dropped without [`Tx::commit`] it is rolled back.
#[derive(Debug)]
pub enum Tx {
    /// PostgreSQL.
    Postgres(PgWrite),
    /// SQLite.
    Sqlite(SqliteWrite),
}

impl Tx {
    pub(crate) fn on(&mut self) -> DbExecutor<&mut PgConnection, &mut SqliteConnection> {
        match self {
            Self::Postgres(tx) => DbExecutor::Postgres(&mut **tx),
            Self::Sqlite(tx) => DbExecutor::Sqlite(&mut **tx),
        }
    }

    async fn rollback(self) -> Result<()> {
        match self {
            Self::Postgres(tx) => drop(tx),
            Self::Sqlite(tx) => tx.rollback().await?,
        }
        Ok(())
    }

    /// Makes everything that was done in this transaction visible and durable. When the answer to that is lost, the store is asked
    /// what became of it.
    ///
    /// # Errors
    /// [`DbError::CommitUnknown`] when that could not be found out, or the disk has failed; after any other error nothing was done.
    pub async fn commit(self) -> Result<()> {
        match self {
            Self::Postgres(tx) => tx.commit().await?,
            Self::Sqlite(tx) => tx.commit().await?,
        }
        Ok(())
    }
}
