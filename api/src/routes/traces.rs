//! Records of what agents did.

use axum::{Router, extract::State, http::Uri, routing::get};
use lectern_shared::{
    db::{self, traces::StoredTrace},
    ids::{AgentId, TraceId},
    runtime::Runtime,
};
use serde_json::{Value, json};

use crate::{
    auth::Caller,
    error::ApiError,
    extract::{PathId, parameter},
    response::{Answer, Paging, data, list_by},
    state::AppState,
};

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/traces", get(index)).route("/traces/{id}", get(find))
}

/// Traces may have a megabyte each.
const PAGE: u32 = 10;

fn show(trace: &StoredTrace) -> Value {
    json!({
        "id": trace.id,
        "agentId": trace.agent_id,
        "session": trace.session,
        "createdAt": trace.created_at,
        "complete": trace.complete,
        "trace": trace.body.0,
    })
}

async fn index(State(runtime): State<Runtime>, caller: Caller, uri: Uri, paging: Paging) -> Answer {
    let unknown = || ApiError::not_found("agent");
    let agent: Option<AgentId> =
        parameter(&uri, "agentId").map(|text| text.parse()).transpose().map_err(|_| unknown())?;
    if let Some(agent) = agent {
        db::agents::find(&runtime.db, caller.id(), agent).await?.ok_or_else(unknown)?;
    }
    list_by(PAGE, paging, move |before, limit| {
        let (runtime, user) = (runtime.clone(), caller.id());
        async move {
            let now = runtime.clock.now();
            let traces = db::traces::list(&runtime.db, user, agent, now, before.into(), limit).await?;
            Ok(traces.iter().map(|trace| (*trace.id.as_uuid(), show(trace))).collect())
        }
    })
    .await
}

async fn find(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<TraceId>) -> Answer {
    let trace = db::traces::find(&runtime.db, caller.id(), id, runtime.clock.now()).await?;
    Ok(data(show(&trace.ok_or_else(|| ApiError::not_found("trace"))?)))
}
