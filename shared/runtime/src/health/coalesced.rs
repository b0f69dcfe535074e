//! One look at the parts for everybody who asks meanwhile. Anybody may ask, and each look asks the database: if there were as many at
//! once as there are people, they would wait for each other until the parts seem down.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::{
    sync::Mutex,
    time::{Instant, sleep_until},
};

use super::HealthReport;

/// How long the parts are left alone between two looks. Whoever asks meanwhile waits for the next one instead of having the answer of
/// the last, which would tell nothing of a part that has gone since.
const PAUSE: Duration = Duration::from_millis(10);

/// The looks at the parts of one process. Cheap to clone; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct CoalescedChecks(Arc<Mutex<Option<HealthSnapshot>>>);

/// What was found last.
#[derive(Debug)]
struct HealthSnapshot {
    health: HealthReport,
    /// When the look ended.
    at: Instant,
}

impl CoalescedChecks {
    /// What `look` finds, or another look that goes on already.
    pub(super) async fn share(
        &self,
        look: impl Future<Output = HealthReport> + Send + 'static,
    ) -> HealthReport {
        let asked = Instant::now();
        let mut last = Arc::clone(&self.0).lock_owned().await;
        if let Some(seen) = last.as_ref().filter(|seen| seen.at >= asked) {
            return seen.health.clone();
        }
        let again_at = last.as_ref().map(|seen| seen.at + PAUSE);
        // In a task of its own, which has the lock: the next one does not begin anew because this one goes away.
        let looking = tokio::spawn(async move {
            if let Some(again_at) = again_at {
                sleep_until(again_at).await;
            }
            let health = look.await;
            *last = Some(HealthSnapshot { health: health.clone(), at: Instant::now() });
            health
        });
        // It fails when the process is ending.
        looking.await.unwrap_or_else(|_| HealthReport { ready: false, parts: json!({}) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::{future::join_all, poll};
    use tokio::sync::Notify;

    use super::*;

    /// Looks that are counted, each of which ends when it may.
    #[derive(Default)]
    struct Parts {
        looks: CoalescedChecks,
        begun: Arc<AtomicUsize>,
        may_end: Arc<Notify>,
    }

    impl Parts {
        async fn ask(&self) -> HealthReport {
            let (begun, may_end) = (Arc::clone(&self.begun), Arc::clone(&self.may_end));
            let look = async move {
                let number = begun.fetch_add(1, Ordering::SeqCst);
                may_end.notified().await;
                HealthReport { ready: true, parts: json!(number) }
            };
            self.looks.share(look).await
        }

        fn begun(&self) -> usize {
            self.begun.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn all_who_ask_during_a_look_are_answered_by_it() {
        let parts = Parts::default();
        let mut asking: Vec<_> = (0..50).map(|_| Box::pin(parts.ask())).collect();
        for one in &mut asking {
            assert!(poll!(one).is_pending());
        }
        parts.may_end.notify_one();
        let answers = join_all(asking).await;
        assert!(answers.iter().all(|health| health.ready && health.parts == json!(0)), "{answers:?}");
        assert_eq!(parts.begun(), 1);
    }

    #[tokio::test]
    async fn whoever_asks_after_a_look_is_answered_by_another() {
        let parts = Parts::default();
        for number in 0..2 {
            parts.may_end.notify_one();
            assert_eq!(parts.ask().await.parts, json!(number));
        }
    }

    #[tokio::test]
    async fn a_look_goes_on_when_whoever_asked_for_it_goes_away() {
        let parts = Parts::default();
        for _ in 0..10 {
            let mut gone = Box::pin(parts.ask());
            assert!(poll!(&mut gone).is_pending());
        }
        let mut staying = Box::pin(parts.ask());
        assert!(poll!(&mut staying).is_pending());
        parts.may_end.notify_one();
        assert_eq!(staying.await.parts, json!(0));
        assert_eq!(parts.begun(), 1);
    }
}
