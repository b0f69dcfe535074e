//! Facts of which the whole installation has one, and leases of which one process at a time has one.

use lectern_shared::clock::Timestamp;
use uuid::Uuid;

use crate::{Db, Result, Tx, execute, on};

/// The value stored under `name`.
pub async fn get(db: &Db, name: &str) -> Result<Option<String>> {
    Ok(on!(db, |c| sqlx::query_scalar("SELECT value FROM singletons WHERE name = $1")
        .bind(name)
        .fetch_optional(c))?)
}

/// Stores `value` under `name` unless something is there already; true when it was this call that stored it.
pub async fn claim(tx: &mut Tx, name: &str, value: &str) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("INSERT INTO singletons (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
            .bind(name)
            .bind(value)
    )?;
    Ok(rows == 1)
}

/// Stores `value` under `name` in place of what is there.
pub async fn set(tx: &mut Tx, name: &str, value: &str) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO singletons (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        )
        .bind(name)
        .bind(value)
    )?;
    Ok(())
}

/// Stores `value` under `name` if `old` is there; false when it is not, and nothing is changed.
pub async fn replace(tx: &mut Tx, name: &str, old: &str, value: &str) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query("UPDATE singletons SET value = $3 WHERE name = $1 AND value = $2")
            .bind(name)
            .bind(old)
            .bind(value)
    )?;
    Ok(rows == 1)
}

/// Takes or extends the lease `name` for `owner`; false while somebody else holds it.
pub async fn hold_lease(
    tx: &mut Tx,
    name: &str,
    owner: Uuid,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool> {
    let rows = execute!(
        tx,
        sqlx::query(
            "INSERT INTO leases (name, owner, held_until) VALUES ($1, $2, $4)
             ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, held_until = excluded.held_until
             WHERE leases.owner = excluded.owner OR leases.held_until < $3",
        )
        .bind(name)
        .bind(owner)
        .bind(now)
        .bind(until)
    )?;
    Ok(rows == 1)
}
