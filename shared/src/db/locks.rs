//! The lock that comes first in the order of locks: user, document, job; and user, prompt, agent, tag or tool, link.

use super::{Result, Tx, execute};
use crate::ids::UserId;

/// Makes changes to what a user owns wait for each other until this transaction ends: nothing goes while it is joined to
/// something else, of two changes neither undoes the other, and two that are harmless alone make no circle together. In the
/// order of locks it comes first.
pub async fn lock_user(tx: &mut Tx, user: UserId) -> Result<()> {
    execute!(tx, sqlx::query("UPDATE users SET fair_at = fair_at WHERE id = $1").bind(user))?;
    Ok(())
}
