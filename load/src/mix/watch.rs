//! What the service says of itself while it works: memory and jobs.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::{
    api::{ApiClient, RequestProblem},
    memory::MemorySeries,
    prometheus::{samples_of, whole},
};

/// States in which a job still has something to do.
const UNFINISHED: [&str; 3] = ["due", "waiting", "running"];

/// Jobs by state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct JobCounts(BTreeMap<String, u64>);

impl JobCounts {
    /// Jobs that are not finished.
    pub(super) fn left(&self) -> u64 {
        UNFINISHED.iter().filter_map(|state| self.0.get(*state)).sum()
    }

    /// Jobs that have failed for good.
    pub(super) fn dead(&self) -> u64 {
        self.0.get("dead").copied().unwrap_or(0)
    }

    /// What several processes say of the same jobs: the most of each state.
    fn merge(&mut self, text: &str) -> bool {
        let mut any = false;
        for sample in samples_of(text, "lectern_jobs") {
            if let (Some(state), Some(count)) = (sample.label("state"), whole(sample.value)) {
                let known = self.0.entry(state.to_owned()).or_default();
                *known = count.max(*known);
                any = true;
            }
        }
        any
    }
}

impl fmt::Display for JobCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states = self.0.iter().map(|(state, count)| format!("{state} {count}"));
        formatter.write_str(&states.collect::<Vec<_>>().join(", "))
    }
}

/// Asks every process what it holds, all the time.
pub(super) struct ProcessWatch {
    api: ApiClient,
    metrics: Vec<Url>,
    courses: Mutex<Vec<MemorySeries>>,
}

impl ProcessWatch {
    /// Will ask these addresses.
    pub(super) fn new(api: &ApiClient, metrics: Vec<Url>) -> Arc<Self> {
        let courses = Mutex::new(vec![MemorySeries::default(); metrics.len()]);
        Arc::new(Self { api: api.clone(), metrics, courses })
    }

    /// Asks every `pause`, for ever. Times are counted from `begin`.
    pub(super) async fn sample(&self, begin: Instant, pause: Duration) {
        let mut ticks = tokio::time::interval(pause);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            for (place, address) in self.metrics.iter().enumerate() {
                // A process that does not say is told of in the end.
                let Ok(text) = self.api.text(address).await else { continue };
                let held = samples_of(&text, "process_resident_memory_bytes");
                if let Some(bytes) = held.first().and_then(|sample| whole(sample.value))
                    && let Some(course) = self.courses.lock().get_mut(place)
                {
                    course.add(begin.elapsed(), bytes);
                }
            }
        }
    }

    /// What each process held so far, by its address.
    pub(super) fn courses(&self) -> Vec<(Url, MemorySeries)> {
        self.metrics.iter().cloned().zip(self.courses.lock().iter().cloned()).collect()
    }

    /// The jobs that there are: by `/metrics`, or by `/health/ready` where nobody has the former.
    pub(super) async fn jobs(&self) -> Result<JobCounts, RequestProblem> {
        let mut jobs = JobCounts::default();
        let mut any = false;
        for address in &self.metrics {
            if let Ok(text) = self.api.text(address).await {
                any |= jobs.merge(&text);
            }
        }
        if any {
            return Ok(jobs);
        }
        let (_, health) = self.api.health().await?;
        let queue = &health["data"]["parts"]["queue"];
        for state in UNFINISHED.into_iter().chain(["dead"]) {
            let count = queue[state].as_u64();
            let count =
                count.ok_or_else(|| RequestProblem::new("not_an_answer", "/health/ready tells no jobs"))?;
            jobs.0.insert(state.to_owned(), count);
        }
        Ok(jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_several_processes_are_not_added_up() {
        let mut jobs = JobCounts::default();
        assert!(jobs.merge("lectern_jobs{state=\"due\"} 3\nlectern_jobs{state=\"dead\"} 1\n"));
        assert!(jobs.merge("lectern_jobs{state=\"due\"} 2\nlectern_jobs{state=\"running\"} 1\n"));
        assert_eq!((jobs.left(), jobs.dead()), (4, 1));
        assert_eq!(jobs.to_string(), "dead 1, due 3, running 1");
        assert!(!jobs.merge("process_open_fds 4\n"));
    }
}
