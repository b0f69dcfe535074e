//! Where accounts were signed in to of late, by a hash that tells nothing without the service's key.

use std::time::Duration;

use lectern_shared::{clock::Timestamp, ids::UserId};

use crate::{Result, Tx, execute};

/// For how long an address is known: longer than most holidays.
pub const KNOWN_FOR: Duration = Duration::from_hours(30 * 24);

/// Notes that a user has signed in from an address, and forgets all of the user's but the `keep` that were met last.
pub async fn remember(
    tx: &mut Tx,
    user: UserId,
    address_hash: &[u8],
    now: Timestamp,
    keep: u32,
) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO known_addresses (user_id, address_hash, seen_at) VALUES ($1, $2, $3)
             ON CONFLICT (user_id, address_hash) DO UPDATE SET seen_at = excluded.seen_at"
        )
        .bind(user)
        .bind(address_hash)
        .bind(now)
    )?;
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM known_addresses WHERE user_id = $1 AND address_hash NOT IN (
                 SELECT address_hash FROM known_addresses WHERE user_id = $1
                 ORDER BY seen_at DESC, address_hash LIMIT $2)"
        )
        .bind(user)
        .bind(i64::from(keep))
    )?;
    Ok(())
}

/// Forgets addresses that were last met before `before`; at most `limit`, so that it never holds the store for long.
pub async fn expire(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    // Said twice: one that is met again at this moment stays.
    execute!(
        tx,
        sqlx::query(
            "DELETE FROM known_addresses WHERE seen_at < $1 AND (user_id, address_hash) IN (
                 SELECT user_id, address_hash FROM known_addresses WHERE seen_at < $1 ORDER BY seen_at LIMIT $2)"
        )
        .bind(before)
        .bind(i64::from(limit))
    )
}
