//! What `lectern-load grow` takes.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::Args;

use crate::bench::{BenchError, ServiceArgs};

/// Passages of a document of the one workspace, about.
pub(super) const PASSAGES: u64 = 10;
/// The smallest step: what is asked of some documents needs as many.
const FEWEST_PASSAGES: u64 = 100;
/// Documents that can be told apart by their facts.
const MOST_DOCUMENTS: u64 = 5_000_000;

/// Start the service, let it grow, measure it at each step, and print what it takes then.
#[derive(Args, Debug)]
pub(crate) struct GrowArgs {
    #[command(flatten)]
    pub(super) service: ServiceArgs,
    /// Where the tables go besides standard output. In a file that has the lines `<!-- grow -->` and `<!-- /grow -->`, what
    /// stands between them is replaced.
    #[arg(long)]
    pub(super) output: Option<PathBuf>,
    /// Passages of one workspace, of ten in a document, at which it is measured; `none` leaves this growth out.
    #[arg(long, default_value = "1000,10000,100000,1000000")]
    pub(super) steps: GrowthSteps,
    /// Workspaces at which it is measured; `none` leaves this growth out.
    #[arg(long, default_value = "100,1000,10000")]
    pub(super) workspaces: GrowthSteps,
    /// Documents of one passage in each of them.
    #[arg(long, default_value_t = 100)]
    pub(super) each: u64,
    /// Requests that are timed of each kind at each step; fewer when they take more than a minute.
    #[arg(long, default_value_t = 200)]
    pub(super) requests: u64,
    /// Restarts that are timed at each step.
    #[arg(long, default_value_t = 3)]
    pub(super) starts: usize,
    /// How long each growth may take: after the step that passes it no other one is begun. Without it there is no limit.
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(super) time_limit: Option<Duration>,
}

impl GrowArgs {
    /// Refuses numbers with which nothing could be measured.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        if self.requests == 0 || self.starts == 0 || self.each == 0 {
            return Err(BenchError::Arguments("--requests, --starts and --each must be 1 at least"));
        }
        if self.steps.first().is_some_and(|passages| passages < FEWEST_PASSAGES) {
            return Err(BenchError::Arguments("the first of --steps must be 100 passages at least"));
        }
        if self.workspaces.first().is_some_and(|workspaces| workspaces < 2) {
            return Err(BenchError::Arguments("the first of --workspaces must be 2 at least"));
        }
        let of_one = self.steps.last().map(|passages| passages / PASSAGES);
        let of_many = self.workspaces.last().map(|workspaces| workspaces.saturating_mul(self.each));
        if of_one.max(of_many) > Some(MOST_DOCUMENTS) {
            return Err(BenchError::Arguments("more than five million documents cannot be told apart"));
        }
        Ok(())
    }
}

/// Sizes at which something is measured, each larger than the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GrowthSteps(Vec<u64>);

/// A text that is no list of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("steps are written 1000,10000,100000, each more than the one before, or none")]
pub(super) struct GrowthStepsError;

impl GrowthSteps {
    /// All of them, the smallest first.
    pub(super) fn all(&self) -> &[u64] {
        &self.0
    }

    fn first(&self) -> Option<u64> {
        self.0.first().copied()
    }

    fn last(&self) -> Option<u64> {
        self.0.last().copied()
    }
}

impl FromStr for GrowthSteps {
    type Err = GrowthStepsError;

    fn from_str(text: &str) -> Result<Self, GrowthStepsError> {
        if text.trim() == "none" {
            return Ok(Self(Vec::new()));
        }
        let steps: Result<Vec<u64>, _> = text.split(',').map(|step| step.trim().parse()).collect();
        let steps = steps.map_err(|_| GrowthStepsError)?;
        let is_growth = !steps.contains(&0) && steps.is_sorted_by(|smaller, larger| smaller < larger);
        is_growth.then_some(Self(steps)).ok_or(GrowthStepsError)
    }
}

impl fmt::Display for GrowthSteps {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("none");
        }
        let steps: Vec<String> = self.0.iter().map(u64::to_string).collect();
        formatter.write_str(&steps.join(","))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct TestCli {
        #[command(flatten)]
        args: GrowArgs,
    }

    fn steps(text: &str) -> Result<GrowthSteps, GrowthStepsError> {
        text.parse()
    }

    fn checked(arguments: &[&str]) -> Result<(), String> {
        let cli = TestCli::try_parse_from([&["grow"], arguments].concat());
        cli.map_err(|error| error.to_string())?.args.check().map_err(|error| error.to_string())
    }

    #[test]
    fn steps_are_numbers_that_grow() {
        assert_eq!(steps("1000, 10000,100000"), Ok(GrowthSteps(vec![1_000, 10_000, 100_000])));
        assert_eq!(steps("10000"), Ok(GrowthSteps(vec![10_000])));
        for wrong in ["", "0,10", "10,10", "100,10", "10,", "ten", "1k", "-1", "1_000"] {
            assert_eq!(steps(wrong), Err(GrowthStepsError), "{wrong:?}");
        }
    }

    #[test]
    fn a_growth_can_be_left_out() {
        assert_eq!(steps(" none "), Ok(GrowthSteps(Vec::new())));
        assert_eq!(checked(&["--steps", "none", "--workspaces", "10"]), Ok(()));
    }

    #[test]
    fn steps_are_written_as_they_are_read() {
        for text in ["none", "7", "1000,10000"] {
            assert_eq!(steps(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_defaults_can_be_measured_and_what_cannot_is_refused() {
        assert_eq!(checked(&[]), Ok(()));
        for wrong in [
            ["--steps", "50,1000"],
            ["--workspaces", "1"],
            ["--requests", "0"],
            ["--starts", "0"],
            ["--each", "0"],
            ["--each", "1000"],
            ["--steps", "1000,100000000"],
        ] {
            assert!(checked(&wrong).is_err(), "{wrong:?}");
        }
    }
}
