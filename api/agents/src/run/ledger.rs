//! What a run uses of its models, for the quotas of its workspace. It counts whatever becomes of the run: whoever hangs up before the end
//! has used what was used.

use std::{fmt, sync::Arc};

use lectern_db::{Db, usage, usage::MonthlyUsage};
use lectern_shared::{clock::Clock, ids::WorkspaceId};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::recorder::RunRecorder;

/// Something that whoever asks keeps for a run: dropped once what the run used is written down, however it ended.
#[derive(Clone)]
pub struct RunReservation(
    #[expect(dead_code, reason = "it is kept, and never looked at")] Arc<dyn Send + Sync>,
);

impl RunReservation {
    /// Keeps this.
    pub fn of(kept: impl Send + Sync + 'static) -> Self {
        Self(Arc::new(kept))
    }
}

impl fmt::Debug for RunReservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunReservation").finish_non_exhaustive()
    }
}

/// What a run and those within it have used, and nobody has written down yet. Cheap to clone; clones share it. What is left when the last
/// clone goes is written then.
#[derive(Clone)]
pub(super) struct UsageLedger(Arc<LedgerState>);

struct LedgerState {
    db: Db,
    clock: Clock,
    /// What stopping waits for.
    recorder: RunRecorder,
    workspace: WorkspaceId,
    used: Mutex<LedgerTotals>,
    /// Dropped when everything is written.
    reservation: Option<RunReservation>,
}

#[derive(Clone, Copy, Default)]
struct LedgerTotals {
    tokens: u64,
    cost: f64,
}

impl UsageLedger {
    pub(super) fn new(
        db: Db,
        clock: Clock,
        recorder: RunRecorder,
        workspace: WorkspaceId,
        reservation: Option<RunReservation>,
    ) -> Self {
        Self(Arc::new(LedgerState { db, clock, recorder, workspace, used: Mutex::default(), reservation }))
    }

    /// Adds what one answer of a model used.
    pub(super) fn add(&self, tokens: u64, cost: Option<f64>) {
        let mut used = self.0.used.lock();
        used.tokens = used.tokens.saturating_add(tokens);
        used.cost += cost.unwrap_or(0.0);
    }

    /// Writes down what was used so far, whatever becomes of the caller. What cannot be written is tried again when the last clone goes.
    pub(super) async fn settle(&self) {
        let (ledger, LedgerState { recorder, workspace, .. }) = (self.clone(), &*self.0);
        // In a task of its own: what it has taken of the ledger would be lost with a client that hangs up meanwhile.
        let write = async move { ledger.write_down().await };
        // It fails only when the process is ending.
        let _ = recorder.record_little(&Handle::current(), *workspace, write).await;
    }

    async fn write_down(&self) {
        let used = std::mem::take(&mut *self.0.used.lock());
        if let Err(error) = write(&self.0.db, &self.0.clock, self.0.workspace, used).await {
            tracing::warn!(%error, "what a run used could not be written down");
            self.add(used.tokens, Some(used.cost));
        }
    }
}

impl Drop for LedgerState {
    fn drop(&mut self) {
        let used = *self.used.get_mut();
        // Without a runtime the process is at its end.
        let Ok(runtime) = Handle::try_current() else { return };
        if used.tokens == 0 {
            return;
        }
        let (db, clock, workspace) = (self.db.clone(), self.clock.clone(), self.workspace);
        let reservation = self.reservation.take();
        self.recorder.record_little(&runtime, workspace, async move {
            let _reservation = reservation;
            if let Err(error) = write(&db, &clock, workspace, used).await {
                tracing::error!(%error, %workspace, "what a run used is not counted");
            }
        });
    }
}

async fn write(
    db: &Db,
    clock: &Clock,
    workspace: WorkspaceId,
    used: LedgerTotals,
) -> Result<(), lectern_db::DbError> {
    if used.tokens == 0 {
        return Ok(());
    }
    let mut tx = db.begin_relaxed().await?;
    let used = MonthlyUsage::new(used.tokens, used.cost);
    usage::add(&mut tx, workspace, clock.now().month_start(), used).await?;
    tx.commit().await
}

#[cfg(test)]
mod tests {
    use futures::poll;
    use lectern_db::testing::{at, both, workspace};
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_a_run_used_counts_whenever_its_client_hangs_up_and_stopping_waits_for_it() {
        for t in &both().await {
            let owner = workspace(&t.db, at(0)).await;
            let counted = async || usage::of_month(&t.db, owner, at(0).month_start()).await.unwrap().tokens;
            let recorder = RunRecorder::default();
            let (kept, is_over) = oneshot::channel::<()>();
            let reservation = Some(RunReservation::of(kept));
            let ledger =
                UsageLedger::new(t.db.clone(), Clock::manual(at(0)), recorder.clone(), owner, reservation);
            ledger.add(7, None);
            // While it is written down.
            let mut settling = Box::pin(ledger.settle());
            assert!(poll!(&mut settling).is_pending());
            drop(settling);
            // Whoever reads it afterwards waits for it, as stopping does.
            recorder.settled(owner).await;
            assert_eq!(counted().await, 7, "{}", t.name);
            // Before it is.
            ledger.add(3, None);
            drop(ledger);
            recorder.finish().await;
            assert_eq!(counted().await, 10, "{}", t.name);
            assert!(is_over.await.is_err(), "it is dropped when all is written");
        }
    }
}
