//! Under which key processes encrypt: each says so again and again while it runs, so that no key is given up that somebody writes
//! under. They are leases that nobody else wants.

use std::time::Duration;

use lectern_shared::{clock::Timestamp, secrets::hex};
use uuid::Uuid;

use crate::{Db, Result, Tx, execute, on, singletons};

/// For how long a notice that has ended is kept. Of a process that may go on some day none is taken away.
const KEPT: Duration = Duration::from_hours(24);

/// The lease by which a process says that it encrypts under the key with this id.
fn notice(key: [u8; 4], process: Uuid) -> String {
    format!("secret-key:{}:{process}", hex(&key))
}

/// Notes that a process encrypts under the key with this id, and may do so until then.
pub async fn note(tx: &mut Tx, key: [u8; 4], process: Uuid, now: Timestamp, until: Timestamp) -> Result<()> {
    singletons::hold_lease(tx, &notice(key, process), process, now, until).await?;
    Ok(())
}

/// Notes that a process does not any more.
pub async fn withdraw(tx: &mut Tx, key: [u8; 4], process: Uuid) -> Result<()> {
    execute!(tx, sqlx::query("DELETE FROM leases WHERE name = $1").bind(notice(key, process)))?;
    Ok(())
}

/// Forgets the notices of processes that went without a word, long ago.
pub async fn forget_lost(tx: &mut Tx, now: Timestamp) -> Result<()> {
    execute!(
        tx,
        sqlx::query("DELETE FROM leases WHERE name LIKE 'secret-key:%' AND held_until < $1")
            .bind(now.minus(KEPT))
    )?;
    Ok(())
}

/// Forgets all notices: every process that gave one is known to be gone.
pub async fn forget_all(tx: &mut Tx) -> Result<()> {
    execute!(tx, sqlx::query("DELETE FROM leases WHERE name LIKE 'secret-key:%'"))?;
    Ok(())
}

/// How many processes encrypt under another key than the one with this id, as far as they have said so.
pub async fn others(db: &Db, key: [u8; 4], now: Timestamp) -> Result<i64> {
    Ok(on!(db, |c| sqlx::query_scalar(
        "SELECT COUNT(*) FROM leases
         WHERE name LIKE 'secret-key:%' AND name NOT LIKE $1 AND held_until >= $2"
    )
    .bind(format!("secret-key:{}:%", hex(&key)))
    .bind(now)
    .fetch_one(c))?)
}
