//! Opening the store.

use std::{path::Path, str::FromStr, sync::Arc, time::Duration};

use futures::TryFutureExt;
use lectern_shared::config::DatabaseLocation;
use secrecy::ExposeSecret;
use sqlx::{
    ConnectOptions, Connection as _, Executor as _,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use url::Url;

use super::{
    Db, DbError, Result, checkpoint,
    erasure::Erasure,
    room::DiskReserve,
    silence,
    writer::{self, WriterLane},
};

/// How long a caller waits for a free connection.
const ACQUIRE: Duration = Duration::from_secs(10);
/// How soon PostgreSQL refuses a connection that it does not let be made.
pub(super) const AT_ONCE: Duration = Duration::from_secs(1);
/// How long SQLite waits for another process that holds the file (a backup, a shell).
const BUSY: Duration = Duration::from_secs(10);
const POSTGRES_CONNECTIONS: u32 = 20;
/// Those of them that [`Db::probes`] has for itself.
pub(super) const POSTGRES_PROBES: u32 = 2;
const SQLITE_READERS: u32 = 8;
/// Rows that SQLite's thread may be ahead of who reads them: each time that it waits costs more than the rows. It takes no more
/// memory, since whatever is read is collected anyway.
const ROWS_AHEAD: usize = 1_000;

/// Long values are compressed by LZ4 where PostgreSQL has it (from 14 on, as a rule): its own way takes longer for the record of a run
/// than everything else that is done to store it. Set for the session, so that nothing of it is in a dump, which another server may
/// be given.
const QUICK_COMPRESSION: &str = "SELECT set_config(name, 'lz4', false) FROM pg_settings
     WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)";

/// How long PostgreSQL lets a session take. Afterwards its locks are free: those of a client that is gone without a word too, which
/// the server does not notice by itself.
struct SessionTimeouts {
    /// For one statement.
    statement: Duration,
    /// For a lock. Not longer than `idle`: those of lost clients that wait for the same lock would get it one after the other.
    lock: Duration,
    /// Between two statements of a transaction.
    idle: Duration,
}

const SERVICE: SessionTimeouts = SessionTimeouts {
    statement: Duration::from_mins(1),
    lock: Duration::from_secs(5),
    idle: Duration::from_secs(5),
};
/// Of a command that looks through everything.
const COMMAND: SessionTimeouts = SessionTimeouts {
    statement: Duration::from_mins(15),
    lock: Duration::from_mins(1),
    idle: Duration::from_mins(1),
};

/// Opens the store. Nothing is migrated.
pub async fn connect(location: &DatabaseLocation) -> Result<Db> {
    open(location, true, &SERVICE).await
}

/// Opens the store that is there already, for a command of the operator's that may ask long questions. Nothing is made and
/// nothing is migrated.
pub async fn open_for_command(location: &DatabaseLocation) -> Result<Db> {
    open(location, false, &COMMAND).await
}

/// Opens a SQLite file that nobody writes to, such as a copy, and leaves it as it is: nothing can be written through this, and no
/// file appears beside it.
pub async fn open_read_only(path: &Path) -> Result<Db> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .immutable(true)
        .pragma("temp_store", "MEMORY")
        .disable_statement_logging();
    let readers = SqlitePoolOptions::new().max_connections(2).acquire_timeout(ACQUIRE).connect_with(options);
    let readers = readers.await?;
    let room = Arc::new(DiskReserve::beside(path));
    Ok(Db::Sqlite { writer: readers.clone(), readers, room, lane: WriterLane::new(path) })
}

/// Parameters of a PostgreSQL address that the driver reads; besides them, `options[…]`.
const PARAMETERS: [&str; 18] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

/// What else the driver finds wrong with an address. Its own words could repeat a password.
const BAD_ADDRESS: &str = "a parameter of the address, such as `sslmode`, has a value that it cannot have, or a name or password in it is percent-encoded wrongly";

/// The names of an address's parameters that the driver passes over. Their values are not told: that of a misspelt `password` is one.
/// What is no name is not told either: behind a `?` in a password, the rest of it is read as a parameter.
fn unknown_parameters(url: &str) -> Vec<String> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let names = url.query_pairs().map(|(name, _)| name.into_owned());
    let unknown = names.filter(|name| !PARAMETERS.contains(&name.as_str()) && !name.starts_with("options["));
    unknown.map(|name| if is_name(&name) { name } else { "…".to_owned() }).collect()
}

async fn open(location: &DatabaseLocation, make: bool, timeouts: &SessionTimeouts) -> Result<Db> {
    // What opening takes in room would be carried along by whoever has a store opened.
    match (Box::pin(open_once(location, make, timeouts)).await, location) {
        // After a crash SQLite writes before it reads.
        (Err(DbError::Full(_)), DatabaseLocation::Sqlite(path)) if DiskReserve::beside(path).give_back() => {
            Box::pin(open_once(location, make, timeouts)).await
        }
        (opened, _) => opened,
    }
}

async fn open_once(location: &DatabaseLocation, make: bool, timeouts: &SessionTimeouts) -> Result<Db> {
    match location {
        DatabaseLocation::Postgres(url) => {
            silence::allow(timeouts.statement);
            for parameter in unknown_parameters(url.expose_secret()) {
                tracing::warn!(parameter, "DATABASE_URL has a parameter that is not known; is it misspelt?");
            }
            let seconds = |time: Duration| format!("{}s", time.as_secs());
            let options = PgConnectOptions::from_str(url.expose_secret())
                .map_err(|_| sqlx::Error::Configuration(BAD_ADDRESS.into()))?
                .application_name("lectern")
                .options([
                    ("statement_timeout", seconds(timeouts.statement)),
                    ("lock_timeout", seconds(timeouts.lock)),
                    ("idle_in_transaction_session_timeout", seconds(timeouts.idle)),
                ])
                .disable_statement_logging();
            let pool = PgPoolOptions::new()
                .acquire_timeout(ACQUIRE)
                // A ping before every statement would double the way to the server and back.
                .test_before_acquire(false)
                .after_connect(|connection, _| Box::pin(connection.execute(QUICK_COMPRESSION).map_ok(|_| ())))
                .before_acquire(|connection, about| {
                    Box::pin(async move {
                        Ok(silence::is_alive(connection, about).await? && !connection.is_in_transaction())
                    })
                })
                .after_release(|_, about| Box::pin(async move { Ok(silence::may_return(&about)) }));
            let probes = pool.clone().max_connections(POSTGRES_PROBES).connect_lazy_with(options.clone());
            let pool = pool.max_connections(POSTGRES_CONNECTIONS - POSTGRES_PROBES);
            let pool = match pool.connect_with(options.clone()).await {
                Err(late @ sqlx::Error::PoolTimedOut) => {
                    return Err(refusal(&options, ACQUIRE).await.unwrap_or(late).into());
                }
                opened => opened?,
            };
            Ok(Db::Postgres { pool, probes })
        }
        DatabaseLocation::Sqlite(path) => open_sqlite(path, make).await,
    }
}

/// Why PostgreSQL lets no connection be made, if it says so within this time. A pool tries until its own is over, and does not say why it
/// had to.
pub(super) async fn refusal(options: &PgConnectOptions, within: Duration) -> Option<sqlx::Error> {
    tokio::time::timeout(within, options.connect()).await.ok().and_then(std::result::Result::err)
}

async fn open_sqlite(path: &Path, make: bool) -> Result<Db> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(make)
        .journal_mode(SqliteJournalMode::Wal)
        // Whose commit is a promise takes it to the disk itself.
        .synchronous(SqliteSynchronous::Normal)
        .foreign_keys(true)
        .busy_timeout(BUSY)
        .pragma("cache_size", "-8192")
        .pragma("temp_store", "MEMORY")
        .pragma("wal_autocheckpoint", checkpoint::TOO_LONG)
        .row_buffer_size(ROWS_AHEAD)
        .disable_statement_logging();
    let room = Arc::new(DiskReserve::beside(path));
    let erasure = Arc::new(Erasure::default());
    let (watched, set) = (Arc::clone(&room), Arc::clone(&erasure));
    let doubted = Arc::clone(&room);
    let writer = SqlitePoolOptions::new()
        .max_connections(1)
        .min_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(writer::PATIENCE)
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            let (is_full, erasure) = (watched.is_doubtful(), Arc::clone(&set));
            Box::pin(async move { erasure.begin(connection, is_full).await })
        })
        // SQLite ends a transaction by itself when the disk is full or fails. Then nothing is there to be rolled back, which
        // the driver takes for a transaction that goes on: no further one would ever begin on this connection.
        .before_acquire(move |connection, _| {
            let is_usable = !connection.is_in_transaction();
            if !is_usable {
                doubted.doubt();
            }
            let (is_full, erasure) = (doubted.is_doubtful(), Arc::clone(&erasure));
            Box::pin(async move {
                if is_usable {
                    erasure.suit(connection, is_full).await?;
                }
                Ok(is_usable)
            })
        })
        .connect_with(options.clone())
        .await?;
    let readers = SqlitePoolOptions::new()
        .max_connections(SQLITE_READERS)
        // With one that stays, a writer that is thrown away is never the last one, which would take the log with it: on a full
        // disk it could not be made anew.
        .min_connections(1)
        .acquire_timeout(ACQUIRE)
        .test_before_acquire(false)
        .connect_with(options.pragma("query_only", "ON"))
        .await?;
    let lane = WriterLane::new(path);
    let (commits, turns) = (lane.log().commits(), lane.turns());
    tokio::spawn(checkpoint::look_after_log(commits, readers.clone(), writer.clone(), turns));
    Ok(Db::Sqlite { readers, writer, room, lane })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn that_no_connection_can_be_made_is_told_with_the_reason() {
        let pool = PgPoolOptions::new()
            .acquire_timeout(Duration::from_millis(100))
            .connect_lazy("postgres://ada@127.0.0.1:1/lectern")
            .expect("an address");
        let db = Db::Postgres { pool: pool.clone(), probes: pool };
        // What a pool says that nobody answers is not why.
        let late = db.ping().await.expect_err("nobody is there").to_string();
        assert!(late.contains("`lectern doctor`"), "{late}");
        let refusal = db.refusal().await.expect("nobody is there").to_string();
        assert!(refusal.contains("refused"), "{refusal}");
    }

    #[test]
    fn of_parameters_that_are_not_known_the_names_are_told() {
        let url =
            "postgres://ada@db/lectern?sslmode=require&pasword=hunter2&options[geqo]=off&ssl_mode=require";
        assert_eq!(unknown_parameters(url), ["pasword", "ssl_mode"]);
        assert_eq!(unknown_parameters("postgres://ada:hun@ter?2@db/lectern"), ["…"]);
    }
}
