//! What is known of a run that has ended: what its trace tells, and what its record keeps.

use lectern_shared::model::run::TerminationReason;

use super::{citation::CitationView, step::StepView};
use crate::{
    AgentError,
    run::setup::{RecordEntry, RunUsage},
};

/// How a run ended.
pub(in crate::run) struct RunAnswer {
    /// The answer.
    pub(in crate::run) answer: String,
    /// Why it ended.
    pub(in crate::run) finish_reason: TerminationReason,
    /// What it cites.
    pub(in crate::run) citations: Vec<CitationView>,
    /// The answer says only that there is none.
    pub(in crate::run) is_unanswered: bool,
    /// The provider withheld the rest of it.
    pub(in crate::run) is_withheld: bool,
}

/// What is known of a run, however it ended.
pub(in crate::run) struct FinishedRun {
    /// How it ended.
    pub(in crate::run) outcome: Result<RunAnswer, AgentError>,
    /// What was done.
    pub(in crate::run) steps: Vec<StepView>,
    /// What the outside answered.
    pub(in crate::run) entries: Vec<RecordEntry>,
    /// What it took.
    pub(in crate::run) spent: RunUsage,
    /// Its reader was too slow to hear all of it.
    pub(in crate::run) is_unread: bool,
}
