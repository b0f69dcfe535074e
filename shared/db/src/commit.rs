//! Commits whose answer is lost. A connection that breaks between a COMMIT and its answer leaves open whether the transaction
//! took place. PostgreSQL remembers that of every transaction, so it is asked: nobody has to guess, and whoever wrote is told what
//! became of it.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

use lectern_shared::ids::WorkspaceId;
use sqlx::{PgConnection, PgPool, PgTransaction};
use tokio::time::{Instant, sleep};

use super::{DbError, Result, silence};

/// For how long the outcome is asked for.
const ASK_FOR: Duration = Duration::from_secs(10);
/// The pause between two questions.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// A transaction that is open for so long after its connection broke is ended: the server has not noticed that nobody is there.
const END_AFTER: Duration = Duration::from_secs(1);

/// An open transaction on PostgreSQL.
#[derive(Debug)]
pub struct PgWrite {
    tx: PgTransaction<'static>,
    /// Where to ask for the outcome, if anybody needs to know.
    asks: Option<PgPool>,
    /// What to ask for, if a statement told.
    identity: Option<PgIdentity>,
    /// A workspace whose row is locked, and whose account is active until this ends.
    active: Option<WorkspaceId>,
    /// The workspace whose row was locked last.
    locked: Option<WorkspaceId>,
    /// The number that a workspace's next job was given, which is not queued yet.
    numbered: Option<(WorkspaceId, i64)>,
}

/// By what the server knows a transaction and its own side of it: the columns of [`pg_identity`].
#[derive(Debug, sqlx::FromRow)]
pub(super) struct PgIdentity {
    /// None of a transaction that has only read.
    xid: Option<String>,
    backend: i32,
}

/// The columns of a [`PgIdentity`]. A statement that runs in any case tells it along, which saves a round trip at the commit.
macro_rules! pg_identity {
    () => {
        "CAST(pg_current_xact_id_if_assigned() AS TEXT) AS xid, pg_backend_pid() AS backend"
    };
}
pub(super) use pg_identity;

impl PgWrite {
    /// A transaction whose commit is a promise: its outcome is always found out.
    pub(super) async fn promising(pool: &PgPool) -> Result<Self> {
        Ok(Self {
            tx: begin(pool, "BEGIN").await?,
            asks: Some(pool.clone()),
            identity: None,
            active: None,
            locked: None,
            numbered: None,
        })
    }

    /// A transaction whose commit may be lost without harm, and does not wait for the disk.
    pub(super) async fn relaxed(pool: &PgPool) -> Result<Self> {
        let tx = begin(pool, "BEGIN; SET LOCAL synchronous_commit = off").await?;
        Ok(Self { tx, asks: None, identity: None, active: None, locked: None, numbered: None })
    }

    /// Notes what a statement told. Before the transaction has written there is nothing to be noted.
    pub(super) fn note(&mut self, identity: Option<PgIdentity>) {
        self.identity = identity.filter(|identity| identity.xid.is_some());
    }

    /// Notes that a workspace's row was locked, and that the account is active.
    pub(super) fn note_active(&mut self, workspace: WorkspaceId) {
        self.active = Some(workspace);
    }

    /// Whether an account is known to be active until this ends.
    pub(super) fn knows_active(&self, workspace: WorkspaceId) -> bool {
        self.active == Some(workspace)
    }

    /// Notes that a workspace's row was locked, as an update of it does.
    pub(super) fn note_locked(&mut self, workspace: WorkspaceId) {
        self.locked = Some(workspace);
    }

    /// Whether a workspace's row is known to be locked until this ends.
    pub(super) fn knows_locked(&self, workspace: WorkspaceId) -> bool {
        self.locked == Some(workspace)
    }

    /// Notes that a workspace's next job was given its number.
    pub(super) fn note_numbered(&mut self, workspace: WorkspaceId, number: i64) {
        self.numbered = Some((workspace, number));
    }

    /// The number that a workspace's next job was given, for whoever queues it now.
    pub(super) fn use_number(&mut self, workspace: WorkspaceId) -> Option<i64> {
        self.numbered.take_if(|(of, _)| *of == workspace).map(|(_, number)| number)
    }

    /// Commits.
    ///
    /// # Errors
    /// [`DbError::CommitUnknown`] when the answer was lost and the server could not be asked either; every other error means that
    /// nothing took place.
    pub(super) async fn commit(self) -> Result<()> {
        let Self { mut tx, asks, identity, active: _, locked: _, numbered: _ } = self;
        let Some(pool) = asks else {
            return Ok(silence::answered(tx.commit()).await?);
        };
        let PgIdentity { xid, backend } = match identity {
            Some(identity) => identity,
            None => {
                let asked = sqlx::query_as(concat!("SELECT ", pg_identity!()));
                silence::answered(asked.fetch_one(&mut *tx)).await?
            }
        };
        match (silence::answered(tx.commit()).await, xid) {
            (Ok(()), _) => Ok(()),
            (Err(error), None) => Err(error.into()),
            (Err(error), Some(xid)) => resolve_outcome(&pool, &xid, backend, error).await,
        }
    }
}

impl Deref for PgWrite {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.tx
    }
}

impl DerefMut for PgWrite {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.tx
    }
}

/// Begins a transaction, on a task of its own that goes on to the answer. Whoever goes away before it, as a client that hangs up, would
/// leave the pool a connection in a transaction that the driver knows nothing of, and what others write by it next would be lost.
async fn begin(pool: &PgPool, statement: &'static str) -> Result<PgTransaction<'static>> {
    let pool = pool.clone();
    let begun = tokio::spawn(async move { silence::answered(Box::pin(pool.begin_with(statement))).await });
    // The task ends early only with the process.
    Ok(begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))?)
}

/// Finds out what became of a transaction whose commit ended in `error`.
async fn resolve_outcome(pool: &PgPool, id: &str, backend: i32, error: sqlx::Error) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < ASK_FOR {
        let left = ASK_FOR.saturating_sub(began.elapsed());
        let status = sqlx::query_scalar::<_, Option<String>>("SELECT pg_xact_status(CAST($1 AS xid8))")
            .bind(id)
            .fetch_one(pool);
        match tokio::time::timeout(left, status).await {
            Ok(Ok(status)) => match status.as_deref() {
                Some("committed") => {
                    tracing::info!(%error, "the answer to a commit was lost; it took place");
                    return Ok(());
                }
                Some("aborted") => return Err(error.into()),
                // In progress: the server still works on it, or waits for a client that is gone.
                Some(_) if began.elapsed() > END_AFTER => end(pool, id, backend).await,
                Some(_) => {}
                None => break,
            },
            Ok(Err(away)) => tracing::debug!(%away, "the outcome of a commit cannot be asked for yet"),
            Err(_) => break,
        }
        sleep(ASK_EVERY).await;
    }
    tracing::warn!(%error, "the answer to a commit was lost, and its outcome could not be found out");
    Err(DbError::CommitUnknown(error))
}

/// Ends the server's side of the transaction, which decides it. Only if that still works on it: process ids are used again.
async fn end(pool: &PgPool, id: &str, backend: i32) {
    let ended = sqlx::query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE pid = $1 AND backend_xid = CAST(CAST($2 AS xid8) AS xid)",
    )
    .bind(backend)
    .bind(id)
    .execute(pool);
    if let Err(error) = silence::answered(ended).await {
        tracing::debug!(%error, "an abandoned transaction could not be ended yet");
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;
    use tokio::task::yield_now;

    use super::*;
    use crate::{
        Db,
        testing::{both, commit},
    };

    /// What a client sees of a connection that breaks.
    fn broken() -> sqlx::Error {
        sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into())
    }

    async fn postgres() -> (crate::testing::TestDb, PgPool) {
        let t = both().await.pop().unwrap();
        let Db::Postgres { pool, .. } = t.db.clone() else { panic!("the second is PostgreSQL") };
        (t, pool)
    }

    /// A transaction that has written, its id, and its backend.
    async fn writing(pool: &PgPool) -> (PgTransaction<'static>, String, i32) {
        let mut tx = pool.begin().await.unwrap();
        sqlx::query("INSERT INTO singletons (name, value) VALUES ('written', '')")
            .execute(&mut *tx)
            .await
            .unwrap();
        let about = "SELECT CAST(pg_current_xact_id() AS TEXT), pg_backend_pid()";
        let (id, backend) = sqlx::query_as(about).fetch_one(&mut *tx).await.unwrap();
        (tx, id, backend)
    }

    #[tokio::test]
    async fn a_commit_whose_answer_is_lost_is_what_the_server_says_it_is() {
        let (_t, pool) = postgres().await;
        let (tx, id, backend) = writing(&pool).await;
        tx.rollback().await.unwrap();
        let error = resolve_outcome(&pool, &id, backend, broken()).await.unwrap_err();
        assert!(matches!(error, DbError::Failed(_)), "{error}");
        let (tx, id, backend) = writing(&pool).await;
        tx.commit().await.unwrap();
        resolve_outcome(&pool, &id, backend, broken()).await.unwrap();
    }

    #[tokio::test]
    async fn whoever_goes_away_while_a_transaction_begins_leaves_none_to_those_who_write_next() {
        let (t, pool) = postgres().await;
        let Db::Postgres { pool: others, .. } = t.reopen().await else { panic!("it is PostgreSQL") };
        for turns in 0..40 {
            let mut begun = Box::pin(PgWrite::relaxed(&pool));
            for _ in 0..turns {
                if poll!(&mut begun).is_ready() {
                    break;
                }
                yield_now().await;
            }
            drop(begun);
            let insert = sqlx::query("INSERT INTO singletons (name, value) VALUES ($1, '')");
            insert.bind(turns.to_string()).execute(&pool).await.unwrap();
            let written = sqlx::query_scalar::<_, i64>("SELECT COUNT(*) FROM singletons WHERE name = $1");
            let written = written.bind(turns.to_string()).fetch_one(&others).await.unwrap();
            assert_eq!(written, 1, "given up after {turns} turns");
        }
    }

    #[tokio::test]
    async fn a_transaction_whose_client_is_gone_is_ended_so_that_it_is_decided() {
        let (t, pool) = postgres().await;
        // The server has not noticed: nothing was said on this connection, and nothing will be.
        let (abandoned, id, backend) = writing(&pool).await;
        let error = resolve_outcome(&pool, &id, backend, broken()).await.unwrap_err();
        assert!(matches!(error, DbError::Failed(_)), "{error}");
        // What it held locked is free.
        assert!(commit!(t.db, |tx| crate::singletons::claim(tx, "written", "by another")));
        drop(abandoned);
    }

    #[tokio::test]
    async fn an_outcome_that_nobody_can_tell_is_not_guessed() {
        let (_t, pool) = postgres().await;
        let (tx, id, backend) = writing(&pool).await;
        tx.commit().await.unwrap();
        pool.close().await;
        let error = resolve_outcome(&pool, &id, backend, broken()).await.unwrap_err();
        assert!(matches!(error, DbError::CommitUnknown(_)) && error.is_connection_failure(), "{error}");
    }
}
