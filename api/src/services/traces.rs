//! Records of what agents did.

use lectern_shared::{
    clock::Clock,
    db::{self, Db, Json, traces::StoredTrace},
    ids::{AgentId, TraceId},
};
use serde_json::Value;
use uuid::Uuid;

use super::actor::{Actor, Permission};
use crate::error::ApiError;

/// A trace, and from what its run can be repeated.
pub(crate) struct RecordedTrace {
    pub(crate) trace: StoredTrace,
    /// None when the run cannot be repeated.
    pub(crate) record: Option<Json<Value>>,
}

/// Traces. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TraceService {
    db: Db,
    clock: Clock,
}

fn unknown() -> ApiError {
    ApiError::not_found("trace")
}

impl TraceService {
    pub(crate) fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock }
    }

    /// The traces before an id, newest first; those of one agent when it is named.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        agent: Option<AgentId>,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<StoredTrace>, ApiError> {
        let workspace = actor.may(Permission::ListRuns)?.workspace_id;
        let (of, now) = (actor.sees_runs_of(), self.clock.now());
        Ok(db::traces::list(&self.db, workspace, of, agent, now, before.into(), limit).await?)
    }

    /// One trace.
    pub(crate) async fn find(&self, actor: &Actor, id: TraceId) -> Result<StoredTrace, ApiError> {
        let workspace = actor.may(Permission::ReadCitations)?.workspace_id;
        let (of, now) = (actor.sees_runs_of(), self.clock.now());
        db::traces::find(&self.db, workspace, of, id, now).await?.ok_or_else(unknown)
    }

    /// One trace with its record.
    pub(crate) async fn find_with_record(
        &self,
        actor: &Actor,
        id: TraceId,
    ) -> Result<RecordedTrace, ApiError> {
        let workspace = actor.may(Permission::ListRuns)?.workspace_id;
        let (of, now) = (actor.sees_runs_of(), self.clock.now());
        let found = db::traces::find_with_record(&self.db, workspace, of, id, now).await?;
        let (trace, record) = found.ok_or_else(unknown)?;
        Ok(RecordedTrace { trace, record })
    }
}
