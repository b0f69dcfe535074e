//! Runs of evaluations.

use super::{ConfigError, SettingsSource, parse::number};

/// How evaluations are run.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationSettings {
    /// Runs at once in a process.
    pub runs: u32,
    /// Cases of a run that are worked on at once, and so questions that an agent is asked at once.
    pub parallel: u32,
    /// Results of cases that are kept of a workspace.
    pub results: u64,
}

impl EvaluationSettings {
    pub(super) fn load(source: &SettingsSource) -> Result<Self, ConfigError> {
        Ok(Self {
            runs: source.parse("LECTERN_EVALUATION_RUNS", "2", number(1, 100))?,
            parallel: source.parse("LECTERN_EVALUATION_PARALLEL", "4", number(1, 100))?,
            results: source.parse("LECTERN_EVALUATION_RESULTS", "200000", number(1, 1_000_000_000))?,
        })
    }
}
