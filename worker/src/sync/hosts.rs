//! Politeness: requests to one host keep a distance in time, over all runs of a process.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Hosts that are remembered before those are forgotten whose time is over.
const REMEMBERED: usize = 1_000;

/// Gives requests to hosts their turns. Cheap to clone; clones share them.
#[derive(Clone)]
pub(super) struct HostPacer {
    pause: Duration,
    next: Arc<Mutex<HashMap<String, Instant>>>,
}

impl HostPacer {
    /// With at least this time between two requests to one host.
    pub(super) fn new(pause: Duration) -> Self {
        Self { pause, next: Arc::default() }
    }

    /// Waits for a turn at a host that wants at least `own` between two requests.
    pub(super) async fn turn(&self, host: &str, own: Duration) {
        sleep_until(self.next_turn(host, own, Instant::now())).await;
    }

    /// When the next turn is, which nobody else gets then.
    fn next_turn(&self, host: &str, own: Duration, now: Instant) -> Instant {
        let mut next = self.next.lock();
        if next.len() >= REMEMBERED {
            next.retain(|_, at| *at > now);
        }
        let at = next.get(host).copied().unwrap_or(now).max(now);
        next.insert(host.to_owned(), at + self.pause.max(own));
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_one_host_keep_their_distance_and_those_to_others_do_not_wait() {
        let pacer = HostPacer::new(Duration::from_secs(1));
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        for (host, own, now, turn) in [
            ("a", 0, 0, 0),
            ("a", 0, 0, 1),
            ("b", 3, 0, 0),
            ("a", 0, 0, 2),
            ("b", 3, 0, 3),
            ("a", 0, 9, 9),
            ("a", 0, 9, 10),
        ] {
            assert_eq!(pacer.next_turn(host, Duration::from_secs(own), at(now)), at(turn), "{host} at {now}");
        }
    }
}
