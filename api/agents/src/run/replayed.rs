//! A record in place of the world: a run that is repeated gets from it what it got then.

use std::collections::VecDeque;

use async_trait::async_trait;

use super::{
    outside::{PlannedCall, RunEnvironment},
    setup::{CallOutcome, ModelReply, RecordEntry, RunLimits, StepTiming},
    sources::RetrievedExcerpt,
};
use crate::{
    AgentError, RepeatRefusal,
    models::{ChatRequest, DeltaSink},
};

/// What is left of a record.
pub(super) struct ReplayedEnvironment(VecDeque<RecordEntry>);

/// The record ends before the run, or tells of something else: it is of another version of the service.
const RECORD_MISMATCH: AgentError = AgentError::NotRepeatable(RepeatRefusal::OtherVersion);

impl ReplayedEnvironment {
    /// The whole of a record.
    pub(super) fn new(entries: Vec<RecordEntry>) -> Self {
        Self(VecDeque::from(entries))
    }
}

#[async_trait]
impl RunEnvironment for ReplayedEnvironment {
    fn is_live(&self) -> bool {
        false
    }

    async fn search(&mut self, _: &str, _: i64) -> Result<(Vec<RetrievedExcerpt>, StepTiming), AgentError> {
        match self.0.pop_front() {
            Some(RecordEntry::Search { found, span }) => Ok((found, span)),
            _ => Err(RECORD_MISMATCH),
        }
    }

    async fn chat(
        &mut self,
        _: &ChatRequest,
        _: bool,
        hears: &mut dyn DeltaSink,
    ) -> Result<(ModelReply, Vec<u32>, StepTiming), AgentError> {
        match self.0.pop_front() {
            Some(RecordEntry::Chat { said, pieces, span }) => {
                let mut rest = said.text();
                for piece in &pieces {
                    let (delta, more) = rest.split_at_checked(*piece as usize).ok_or(RECORD_MISMATCH)?;
                    hears.take(delta).await;
                    rest = more;
                }
                Ok((said, pieces, span))
            }
            _ => Err(RECORD_MISMATCH),
        }
    }

    async fn call(
        &mut self,
        planned: Vec<PlannedCall>,
        _: RunLimits,
    ) -> Result<Vec<CallOutcome>, AgentError> {
        match self.0.pop_front() {
            Some(RecordEntry::Calls(called)) if called.len() == planned.len() => Ok(called),
            _ => Err(RECORD_MISMATCH),
        }
    }
}
