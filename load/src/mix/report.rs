//! What is said at the end, and whether the service has passed.

use std::time::Duration;

use super::{
    LoadEnding, MixArgs, MixError,
    user::LoadUser,
    watch::{JobCounts, ProcessWatch},
};
use crate::{memory::MemoryGrowth, out::say, units::mebibytes};

/// Everything that is known after a run.
pub(super) struct MixReport<'a> {
    pub(super) args: &'a MixArgs,
    pub(super) user: &'a LoadUser,
    pub(super) watch: &'a ProcessWatch,
    /// How long the load lasted.
    pub(super) lasted: Duration,
    pub(super) ending: LoadEnding,
    /// Documents that were taken and did not become searchable in time.
    pub(super) unfinished: usize,
    /// The jobs after the service had its time to finish; none when it did not say.
    pub(super) jobs: Option<JobCounts>,
    /// Jobs that had failed for good before the load.
    pub(super) dead_before: u64,
}

impl MixReport<'_> {
    /// Prints it, and returns whether the service has passed.
    pub(super) fn print(&self) -> Result<bool, MixError> {
        let recorder = &self.user.recorder;
        say("")?;
        say(recorder.table(self.lasted).trim_end())?;
        let mut failures = Vec::new();
        match self.ending {
            LoadEnding::Complete => {}
            // What was not done has not passed.
            LoadEnding::Interrupted => failures.push("the load was stopped before its end".to_owned()),
            LoadEnding::Gone => failures.push(format!(
                "the service at {} does not answer any more; the load was ended after {:.0} s",
                self.args.url,
                self.lasted.as_secs_f64()
            )),
        }
        self.say_memory(&mut failures)?;
        self.say_jobs(&mut failures)?;
        if recorder.errors() > 0 {
            failures.push(format!("{} errors", recorder.errors()));
            say("the first errors:")?;
            for example in recorder.examples() {
                say(&format!("  {example}"))?;
            }
        }
        if failures.is_empty() {
            say("PASSED")?;
        } else {
            say(&format!("FAILED: {}", failures.join("; ")))?;
        }
        Ok(failures.is_empty())
    }

    fn say_memory(&self, failures: &mut Vec<String>) -> Result<(), MixError> {
        for (address, course) in self.watch.courses() {
            let (warm_up, interval) = (self.args.warm_up(), self.args.interval);
            let growth = course.growth(warm_up, interval, self.lasted, self.args.max_growth);
            let most =
                course.most().map_or_else(String::new, |most| format!(" (at most {})", mebibytes(most)));
            say(&format!("memory of {address}: {growth}{most}"))?;
            if growth.is_bad() {
                failures.push(format!("the memory of {address} grows"));
            }
            if growth == MemoryGrowth::Unknown && !self.args.metrics.is_empty() {
                failures.push(format!("{address} does not say what memory is held"));
            }
        }
        Ok(())
    }

    fn say_jobs(&self, failures: &mut Vec<String>) -> Result<(), MixError> {
        let Some(jobs) = &self.jobs else {
            say("jobs left: unknown")?;
            if self.ending != LoadEnding::Gone {
                failures.push("the jobs that are left are not known".to_owned());
            }
            return Ok(());
        };
        say(&format!("jobs left: {jobs}; documents that are not searchable: {}", self.unfinished))?;
        if jobs.left() > 0 {
            failures.push(format!("{} jobs are stuck", jobs.left()));
        }
        if self.unfinished > 0 {
            failures.push(format!("{} documents are stuck", self.unfinished));
        }
        if jobs.dead() > self.dead_before {
            failures.push(format!("{} jobs have failed for good", jobs.dead() - self.dead_before));
        }
        Ok(())
    }
}
