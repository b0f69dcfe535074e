//! Copies of the store while it is in use.

use std::path::Path;

use sqlx::{ConnectOptions, Connection, sqlite::SqliteConnectOptions};

use super::{DbError, Result};

/// Writes a consistent copy of the SQLite file `from`, as of one moment, to `to`, which must not exist. Writers go on meanwhile. The
/// copy is one file, without a log beside it; it is on the disk only once the caller has synced it.
pub async fn snapshot(from: &Path, to: &Path) -> Result<()> {
    let to =
        to.to_str().ok_or_else(|| DbError::Unreadable("the copy's path is not UTF-8".to_owned()))?.to_owned();
    let options = SqliteConnectOptions::new().filename(from).disable_statement_logging();
    let mut connection = options.connect().await?;
    sqlx::query("VACUUM INTO $1").bind(to).execute(&mut connection).await?;
    connection.close().await?;
    Ok(())
}
