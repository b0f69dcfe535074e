//! Why the store could not do something, and what that means for whoever asked.

use lectern_shared::failure::ServiceFailure;
use sqlx::error::DatabaseError;

/// Why the store could not do something.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// A unique column already holds this value.
    #[error("a row with this value exists already")]
    Duplicate,
    /// There is no room for it.
    #[error("the database has no room left: {0}")]
    Full(String),
    /// The store is away, locked, or refused the statement.
    #[error("the database failed: {}", told(.0))]
    Failed(#[source] sqlx::Error),
    /// The connection broke while a transaction was committed, and whether it took place could not be found out; or it took place, and
    /// may not be on the disk.
    #[error("what became of a commit is not known: {0}")]
    CommitUnknown(#[source] sqlx::Error),
    /// What is stored cannot be read: a newer version wrote it, or it is damaged.
    #[error("a stored value cannot be read: {0}")]
    Unreadable(String),
}

/// What may come of it when what the store could not do is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DbErrorKind {
    /// It is the store that cannot do its work now, whatever it is asked: nothing is wrong with that.
    Outage,
    /// PostgreSQL ended the statement, mostly since it took too long. The store may have too much to do, or the statement: whoever tries it
    /// again has to know when to cease.
    Slow,
    /// It would fail again and again.
    Fault,
}

/// What the driver says of connections that cannot be had is only that its time was over, whatever it was that kept it.
const NO_CONNECTION: &str = "no connection could be had in time: all are in use, or PostgreSQL lets none be made (`lectern doctor` says why)";

/// PostgreSQL's `too_many_connections`: all of the server, or all that the role or the database may have.
const TOO_MANY_CONNECTIONS: &str = "53300";
/// PostgreSQL's `disk_full`; SQLite's `FULL` and `IOERR_SHMSIZE`.
const NO_ROOM: [&str; 3] = ["53100", "13", "4874"];
/// Another process holds SQLite's file.
const SQLITE_BUSY: i32 = 5;
/// SQLite's disk failed.
const SQLITE_IOERR: i32 = 10;

/// An error of the driver in words for the operator.
fn told(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::PoolTimedOut => NO_CONNECTION.to_owned(),
        // The driver would add where in PostgreSQL's own source that is said.
        sqlx::Error::Database(error) if sqlite_kind(error.as_ref()).is_none() => error.message().to_owned(),
        sqlx::Error::Configuration(problem) => problem.to_string(),
        error => error.to_string(),
    }
}

/// The kind of an error of SQLite: the last eight bits of its code. PostgreSQL's have none.
fn sqlite_kind(error: &(dyn DatabaseError + 'static)) -> Option<i32> {
    error.try_downcast_ref::<sqlx::sqlite::SqliteError>()?;
    error.code()?.parse::<i32>().ok().map(|code| code & 0xff)
}

impl From<sqlx::Error> for DbError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(e) if e.is_unique_violation() => Self::Duplicate,
            sqlx::Error::Database(e) if e.code().is_some_and(|code| NO_ROOM.contains(&code.as_ref())) => {
                Self::Full(error.to_string())
            }
            sqlx::Error::ColumnDecode { source, .. } => Self::Unreadable(source.to_string()),
            _ => Self::Failed(error),
        }
    }
}

impl DbError {
    /// Whether the store could not be reached or not get at the rows: it is not there, does not answer, is only starting or
    /// stopping, or somebody holds a lock for too long.
    pub fn is_connection_failure(&self) -> bool {
        match self {
            Self::Failed(sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut) | Self::CommitUnknown(_) => true,
            // 57P: cannot connect now, shutting down; 08: connection lost; 55P03: somebody, who may be lost, holds a lock; 40P01: two
            // waited for each other; 25P03: the server took this client for lost.
            Self::Failed(sqlx::Error::Database(error)) => match sqlite_kind(error.as_ref()) {
                Some(kind) => kind == SQLITE_BUSY,
                None => error.code().is_some_and(|code| {
                    code.starts_with("57P")
                        || code.starts_with("08")
                        || [TOO_MANY_CONNECTIONS, "55P03", "40P01", "25P03"].contains(&code.as_ref())
                }),
            },
            Self::Failed(_) | Self::Full(_) | Self::Duplicate | Self::Unreadable(_) => false,
        }
    }

    /// Whether PostgreSQL has as many connections as it, the role or the database may have.
    pub fn is_too_many_connections(&self) -> bool {
        let Self::Failed(sqlx::Error::Database(error)) = self else { return false };
        error.code().is_some_and(|code| code == TOO_MANY_CONNECTIONS)
    }

    /// Whether the store cannot do its work now, whatever it is asked.
    fn is_outage(&self) -> bool {
        match self {
            Self::Full(_) => true,
            // A disk's quota that is used up is one of SQLite's errors of the disk.
            Self::Failed(sqlx::Error::Database(error))
                if sqlite_kind(error.as_ref()) == Some(SQLITE_IOERR) =>
            {
                true
            }
            Self::Failed(_) | Self::CommitUnknown(_) | Self::Duplicate | Self::Unreadable(_) => {
                self.is_connection_failure()
            }
        }
    }

    /// Whether PostgreSQL ended the statement.
    fn is_statement_timeout(&self) -> bool {
        let Self::Failed(sqlx::Error::Database(error)) = self else { return false };
        error.code().is_some_and(|code| code == "57014")
    }

    /// What another try would come to.
    pub fn kind(&self) -> DbErrorKind {
        if self.is_outage() {
            DbErrorKind::Outage
        } else if self.is_statement_timeout() {
            DbErrorKind::Slow
        } else {
            DbErrorKind::Fault
        }
    }

    /// Whether what was to be stored belongs to something that is not there: somebody has deleted that meanwhile.
    pub fn is_orphan(&self) -> bool {
        matches!(self, Self::Failed(sqlx::Error::Database(error)) if error.is_foreign_key_violation())
    }
}

impl From<DbError> for ServiceFailure {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Duplicate => Self::Duplicate,
            DbError::Full(_) => {
                tracing::warn!(%error, "refused: the database has no room");
                Self::StorageFull
            }
            DbError::Failed(_) => {
                tracing::error!(%error, "the database failed");
                Self::Unavailable
            }
            DbError::CommitUnknown(_) => {
                tracing::error!(%error, "the outcome of a commit is not known");
                Self::OutcomeUnknown
            }
            DbError::Unreadable(_) => {
                tracing::error!(%error, "a stored value cannot be read");
                Self::Internal
            }
        }
    }
}
