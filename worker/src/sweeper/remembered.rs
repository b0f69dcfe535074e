//! Looks for what agents remember of conversations that nobody can go on with any more.

use lectern_db::{DbError, memory};
use lectern_runtime::Runtime;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Turns that one sweep looks at; the rest waits for the next.
const LOOKED_AT: u32 = 1_000;

/// A search through all turns that are remembered, over and over.
#[derive(Default)]
pub(super) struct UnreachableSearch {
    /// The turn that was looked at last.
    looked_at: Uuid,
}

impl UnreachableSearch {
    /// Looks at the next turns, and forgets those of them that nobody can ask for or erase any more. What guests of published pages said is
    /// kept as long as its traces are.
    pub(super) async fn go_on(&mut self, runtime: &Runtime, soft: &CancellationToken) -> Result<(), DbError> {
        let Runtime { db, clock, settings, .. } = runtime;
        let end = memory::end_of_next(db, self.looked_at, LOOKED_AT).await?;
        let last = end.unwrap_or(Uuid::max());
        let guests_before = clock.now().minus(settings.trace_ttl);
        let mut more = true;
        while more && !soft.is_cancelled() {
            let mut tx = db.begin_essential().await?;
            more = memory::forget_unreachable(&mut tx, self.looked_at, last, guests_before).await?;
            tx.commit().await?;
        }
        self.looked_at = end.unwrap_or_default();
        Ok(())
    }
}
