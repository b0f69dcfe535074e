//! Requests that are timed one after the other.

use std::time::Duration;

use tokio::time::Instant;

use super::BenchError;
use crate::{api::RequestProblem, stats::LatencyHistogram};

/// Requests that are timed at least, however long they take: of fewer, a percentile says nothing.
const FEWEST: u64 = 20;

/// How many requests of a kind are timed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestPlan {
    /// Those before, which do not count.
    pub(crate) warm_up: u64,
    /// Those that do.
    pub(crate) requests: u64,
    /// After this time no more are sent than is needed.
    pub(crate) longest: Duration,
}

/// Times requests one after the other, a closed loop. `act` is given the number of each, and says how long it took.
pub(crate) async fn timed(
    plan: RequestPlan,
    mut act: impl AsyncFnMut(u64) -> Result<Duration, RequestProblem>,
) -> Result<LatencyHistogram, BenchError> {
    let mut latency = LatencyHistogram::new();
    let began = Instant::now();
    for number in 0..plan.warm_up + plan.requests {
        let time = act(number).await?;
        let is_late = began.elapsed() > plan.longest;
        if number >= plan.warm_up || is_late {
            latency.add(time);
        }
        if is_late && latency.count() >= FEWEST {
            break;
        }
    }
    Ok(latency)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn counted(longest: Duration) -> (u64, u64) {
        let plan = RequestPlan { warm_up: 5, requests: 100, longest };
        let mut sent = 0;
        let latency = timed(plan, async |_| {
            sent += 1;
            Ok(Duration::from_millis(1))
        });
        let timed = latency.await.unwrap().count();
        (sent, timed)
    }

    #[tokio::test]
    async fn those_before_do_not_count() {
        assert_eq!(counted(Duration::MAX).await, (105, 100));
    }

    #[tokio::test]
    async fn when_they_take_too_long_a_few_are_enough() {
        assert_eq!(counted(Duration::ZERO).await, (20, 20));
    }

    #[tokio::test]
    async fn a_wrong_answer_is_the_end() {
        let plan = RequestPlan { warm_up: 0, requests: 3, longest: Duration::MAX };
        let ended = timed(plan, async |_| Err(RequestProblem::new("fact_not_found", "x"))).await;
        assert!(ended.is_err());
    }
}
