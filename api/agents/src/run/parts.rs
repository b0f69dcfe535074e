//! What runs of agents are made of.

use std::sync::Arc;

use lectern_db::Db;
use lectern_runtime::Runtime;
use lectern_shared::{
    clock::Clock, compute::ComputePool, config::Settings, egress::Egress, metrics::Metrics, secrets::Keyring,
};

use super::RunRecorder;
use crate::{briefings::AgentBriefings, models::RefusalMemory, search::SearchEngine};

/// The parts that a run of an agent uses. Cheap to clone.
#[derive(Clone)]
pub struct AgentParts {
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: Clock,
    /// The relational store.
    pub db: Db,
    /// What questions have to know of agents.
    pub briefings: AgentBriefings,
    pub(crate) keyring: Arc<Keyring>,
    /// The search over what documents hold.
    pub search: SearchEngine,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) compute: ComputePool,
    /// The way out for everything that a user can steer.
    pub(crate) egress: Egress,
    /// The way to hosts that the operator's settings name.
    pub(crate) operator_egress: Egress,
    /// What models turned out not to take.
    pub(crate) refusals: RefusalMemory,
    /// What stores the records of runs.
    pub recorder: RunRecorder,
}

impl AgentParts {
    /// The parts of this runtime, and a search over them.
    pub fn new(runtime: &Runtime, search: SearchEngine) -> Self {
        let Runtime { settings, clock, db, keyring, metrics, compute, egress, operator_egress, .. } =
            runtime.clone();
        let recorder = RunRecorder::default();
        let briefings = AgentBriefings::new(db.clone(), &runtime.cache_budget);
        Self {
            settings,
            clock,
            db,
            briefings,
            keyring,
            search,
            metrics,
            compute,
            egress,
            operator_egress,
            refusals: RefusalMemory::default(),
            recorder,
        }
    }
}
