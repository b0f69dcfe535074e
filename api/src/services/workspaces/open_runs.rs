//! Runs that go on in workspaces with a quota of tokens or cost. What a run uses is known when it has ended, so a part of the quota is kept
//! for it until then: of many that come at once, not each is let in by the same rest.

use std::{collections::HashMap, sync::Arc};

use lectern_db::usage::MonthlyUsage;
use lectern_shared::{ids::WorkspaceId, model::workspace::WorkspaceQuotas};
use parking_lot::Mutex;
use tokio::sync::{Notify, futures::Notified};

/// One of so many parts of a quota is kept for each run.
const PARTS: u32 = 64;

/// Whether what is left of the month reaches for one more run besides those that are open.
pub(super) fn has_room(used: MonthlyUsage, quotas: WorkspaceQuotas, open: u32) -> bool {
    let WorkspaceQuotas { tokens_per_month, cost_per_month, .. } = quotas;
    let has_tokens = tokens_per_month.is_none_or(|allowed| {
        let kept = allowed.saturating_mul(open.into()) / u64::from(PARTS);
        u64::try_from(used.tokens).unwrap_or(0).saturating_add(kept) < allowed
    });
    let has_money = cost_per_month
        .is_none_or(|allowed| used.cost() + allowed * f64::from(open) / f64::from(PARTS) < allowed);
    has_tokens && has_money
}

/// The runs that go on, of each workspace. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub(super) struct OpenRuns(Arc<OpenRunsState>);

#[derive(Default)]
struct OpenRunsState {
    counts: Mutex<OpenRunCounts>,
    /// Told whenever a run ends, in whichever workspace.
    ended: Notify,
}

#[derive(Default)]
struct OpenRunCounts {
    open: HashMap<WorkspaceId, u32>,
    /// How many have ended, in all workspaces.
    ended: u64,
}

/// A run that goes on, until this is dropped.
pub(crate) struct OpenRun {
    runs: OpenRuns,
    workspace: WorkspaceId,
}

impl OpenRuns {
    /// The next end of a run.
    pub(super) fn next_end(&self) -> Notified<'_> {
        self.0.ended.notified()
    }

    /// How many have ended: asked before what is used is read.
    pub(super) fn ended(&self) -> u64 {
        self.0.counts.lock().ended
    }

    /// Begins a run, if there is room for it besides so many that go on. Not when one has ended since `ended` were: what it used may not
    /// be in what was read meanwhile.
    pub(super) fn begin(
        &self,
        workspace: WorkspaceId,
        ended: u64,
        has_room: impl FnOnce(u32) -> bool,
    ) -> Option<OpenRun> {
        let mut counts = self.0.counts.lock();
        let open = counts.open.get(&workspace).copied().unwrap_or(0);
        if counts.ended != ended || !has_room(open) {
            return None;
        }
        counts.open.insert(workspace, open + 1);
        Some(OpenRun { runs: self.clone(), workspace })
    }
}

impl Drop for OpenRun {
    fn drop(&mut self) {
        let mut counts = self.runs.0.counts.lock();
        counts.ended += 1;
        if let Some(open) = counts.open.get_mut(&self.workspace) {
            *open -= 1;
            if *open == 0 {
                counts.open.remove(&self.workspace);
            }
        }
        drop(counts);
        self.runs.0.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_whole_quota_has_room_for_many_runs_at_once_and_the_last_of_it_for_one() {
        let at_once = |used: MonthlyUsage, quotas: WorkspaceQuotas| {
            (0..1_000).take_while(|open| has_room(used, quotas, *open)).count()
        };
        let of_tokens = |used| {
            let quotas = WorkspaceQuotas { tokens_per_month: Some(6_400), ..WorkspaceQuotas::default() };
            at_once(MonthlyUsage::new(used, 0.0), quotas)
        };
        assert_eq!([0, 3_200, 6_000, 6_399, 6_400, 9_999].map(of_tokens), [64, 32, 4, 1, 0, 0]);
        let of_money = |used| {
            let quotas = WorkspaceQuotas { cost_per_month: Some(8.0), ..WorkspaceQuotas::default() };
            at_once(MonthlyUsage::new(1_000_000, used), quotas)
        };
        assert_eq!([0.0, 4.0, 7.99, 8.0].map(of_money), [64, 32, 1, 0]);
        assert_eq!(at_once(MonthlyUsage::new(u64::MAX, 1e9), WorkspaceQuotas::default()), 1_000);
    }

    #[tokio::test]
    async fn a_run_takes_room_in_its_own_workspace_until_it_ends() {
        let runs = OpenRuns::default();
        let [mine, other] = [(); 2].map(|()| WorkspaceId::generate());
        let begin = |workspace| runs.begin(workspace, runs.ended(), |open| open < 1);
        let first = begin(mine).unwrap();
        let others = begin(other).unwrap();
        let mut end = pin!(runs.next_end());
        end.as_mut().enable();
        assert!(begin(mine).is_none());
        assert!(end.as_mut().now_or_never().is_none());
        let before = runs.ended();
        drop(first);
        assert!(end.now_or_never().is_some());
        assert!(
            runs.begin(mine, before, |_| true).is_none(),
            "what the first one used was read before it ended"
        );
        assert!(begin(mine).is_some());
        drop(others);
        assert!(runs.0.counts.lock().open.is_empty(), "nothing is remembered of who asks nothing");
    }
}
