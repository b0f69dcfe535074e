//! Opening the store.

use std::{path::PathBuf, str::FromStr, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use sqlx::{
    ConnectOptions,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{Db, DbError, Result};

/// Where the store is.
#[derive(Clone, Debug)]
pub enum Location {
    /// A `postgres://` URL, which may hold a password.
    Postgres(SecretString),
    /// A SQLite file, made when it is missing.
    Sqlite(PathBuf),
}

/// How long a caller waits for a free connection.
const ACQUIRE: Duration = Duration::from_secs(10);
/// How long SQLite waits for another process that holds the file (a backup, a shell).
const BUSY: Duration = Duration::from_secs(10);
const POSTGRES_CONNECTIONS: u32 = 20;
const SQLITE_READERS: u32 = 8;

/// Opens the store. Nothing is migrated.
pub async fn connect(location: &Location) -> Result<Db> {
    match location {
        Location::Postgres(url) => {
            let options = PgConnectOptions::from_str(url.expose_secret())
                .map_err(|_| DbError::Unreadable("DATABASE_URL is not a PostgreSQL URL".to_owned()))?
                .application_name("lectern")
                // A statement or a transaction that hangs gives its locks back.
                .options([("statement_timeout", "60s"), ("idle_in_transaction_session_timeout", "60s")])
                .disable_statement_logging();
            let pool = PgPoolOptions::new()
                .max_connections(POSTGRES_CONNECTIONS)
                .acquire_timeout(ACQUIRE)
                .connect_with(options)
                .await?;
            Ok(Db::Postgres(pool))
        }
        Location::Sqlite(path) => {
            let options = SqliteConnectOptions::new()
                .filename(path)
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                // A document that was accepted is still there after a power cut.
                .synchronous(SqliteSynchronous::Full)
                .foreign_keys(true)
                .busy_timeout(BUSY)
                .pragma("cache_size", "-8192")
                .pragma("temp_store", "MEMORY")
                .disable_statement_logging();
            let writer = SqlitePoolOptions::new()
                .max_connections(1)
                .min_connections(1)
                .idle_timeout(None)
                .max_lifetime(None)
                // Writers queue here; a burst of uploads must wait, not fail.
                .acquire_timeout(ACQUIRE * 3)
                .connect_with(options.clone())
                .await?;
            let readers = SqlitePoolOptions::new()
                .max_connections(SQLITE_READERS)
                .acquire_timeout(ACQUIRE)
                .connect_with(options.pragma("query_only", "ON"))
                .await?;
            Ok(Db::Sqlite { readers, writer })
        }
    }
}
