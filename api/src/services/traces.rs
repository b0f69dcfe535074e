//! Records of what agents did.

use std::collections::HashMap;

use lectern_agents::run::RunRecorder;
use lectern_db::{
    self as db, Db,
    traces::{ErasedRuns, StoredTrace, TraceFilter},
};
use lectern_derive::RequestBody;
use lectern_shared::{
    clock::{Clock, Timestamp},
    ids::{AgentId, AskerId, TraceId, WorkspaceId},
    model::{
        Json,
        audit::{AuditAction, AuditDetails},
    },
};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    actor::{Actor, Permission},
    audit::AuditService,
};
use crate::{
    error::ApiError,
    fields::{FieldRule, JsonFields},
};

/// Traces that a search for a question looks at, at most: a workspace may have millions.
const LOOKED_AT: u32 = 10_000;

/// A trace, and from what its run can be repeated.
pub(crate) struct RecordedTrace {
    pub(crate) trace: StoredTrace,
    /// None when the run cannot be repeated.
    pub(crate) record: Option<Json<Value>>,
}

impl RecordedTrace {
    /// What was asked: as the record says, or as far as the trace still tells it.
    pub(crate) fn question(&self) -> Option<String> {
        let recorded = self.record.as_ref().and_then(|Json(record)| record.pointer("/setup/question"));
        let recorded = recorded.and_then(Value::as_str).filter(|question| !question.trim().is_empty());
        recorded.or_else(|| question_of(&self.trace.body.0)).map(str::to_owned)
    }

    /// The values that went with it for the agent's prompt, as far as the record says.
    pub(crate) fn values(&self) -> Map<String, Value> {
        let recorded = self.record.as_ref().and_then(|Json(record)| record.pointer("/setup/values"));
        recorded.and_then(Value::as_object).cloned().unwrap_or_default()
    }
}

/// What was asked, as far as a trace still tells it: what the documents were searched for first, or, of an agent without documents,
/// what the user said last to the model.
pub(crate) fn question_of(trace: &Value) -> Option<&str> {
    let steps = trace.get("steps")?.as_array()?;
    let first = |kind: &str| steps.iter().find(|step| step["kind"] == kind)?.get("input");
    let said = || {
        let messages = first("chat")?.as_array()?;
        messages.iter().rev().find(|message| message["role"] == "user")?.get("content")
    };
    let question = first("retrieval").or_else(said)?.as_str()?;
    (!question.trim().is_empty()).then_some(question)
}

/// What somebody says of an answer.
#[derive(RequestBody, ToSchema)]
#[schema(as = TraceFeedback)]
pub(crate) struct TraceFeedback {
    /// Whether it helped: 1, or -1 when it did not.
    #[schema(value_type = i32)]
    #[body(with = rating)]
    pub(crate) rating: i8,
    /// Anything worth saying of it.
    #[schema(max_length = 10_000)]
    pub(crate) text: Option<String>,
}

/// Reads what is said of an answer: 1 or -1.
pub(crate) fn rating(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<i8> {
    // Numbers are what they are, however they are written: 1.0 is 1.
    let is = |rating: &i8| fields.get(rule.name).and_then(Value::as_f64) == Some(f64::from(*rating));
    let rating = [1, -1].into_iter().find(is);
    if rating.is_none() {
        fields.refuse(rule.name, "must be 1 or -1");
    }
    rating
}

/// Traces. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TraceService {
    db: Db,
    clock: Clock,
    /// An answer may be read before its trace is stored.
    recorder: RunRecorder,
    audit: AuditService,
}

fn unknown() -> ApiError {
    ApiError::not_found("trace")
}

/// An id that comes before those of all answers of a session. The name that a page gives one says when that was, so that nobody has to
/// look through what is older; clocks may differ by an hour.
fn before_session(name: &str) -> TraceId {
    const HOUR: u128 = 60 * 60 * 1_000;
    /// Bits behind the milliseconds of an id.
    const REST: u32 = 80;
    let named = Uuid::try_parse(name).ok().filter(|id| id.get_version_num() == 7);
    let begun = named.map_or(0, |id| (id.as_u128() >> REST).saturating_sub(HOUR));
    Uuid::from_u128(begun << REST).into()
}

impl TraceService {
    pub(crate) fn new(db: Db, clock: Clock, recorder: RunRecorder, audit: AuditService) -> Self {
        Self { db, clock, recorder, audit }
    }

    /// The traces before an id that pass a filter, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        filter: &TraceFilter,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<StoredTrace>, ApiError> {
        let workspace = actor.may(Permission::ListRuns)?.workspace_id;
        self.recorder.settled(workspace).await;
        let (of, now) = (actor.sees_runs_of(), self.clock.now());
        Ok(db::traces::list(&self.db, workspace, of, filter, now, before.into(), limit).await?)
    }

    /// Bounds a search for a question, from an id on. What it begins from next; none when it looks at all that is left, and of lists of any
    /// question.
    pub(crate) async fn bound(
        &self,
        actor: &Actor,
        filter: &mut TraceFilter,
        before: Uuid,
    ) -> Result<Option<Uuid>, ApiError> {
        let workspace = actor.may(Permission::ListRuns)?.workspace_id;
        if !filter.question.is_empty() {
            filter.since = db::traces::search_end(&self.db, workspace, before.into(), LOOKED_AT).await?;
        }
        Ok(filter.since.map(|since| *since.as_uuid()))
    }

    /// One trace.
    pub(crate) async fn find(&self, actor: &Actor, id: TraceId) -> Result<StoredTrace, ApiError> {
        let workspace = actor.may(Permission::ReadCitations)?.workspace_id;
        self.recorder.settled(workspace).await;
        let (of, now) = (actor.sees_runs_of(), self.clock.now());
        db::traces::find(&self.db, workspace, of, id, now).await?.ok_or_else(unknown)
    }

    /// The answers of one's own conversation with an agent, the latest at most, oldest first.
    pub(crate) async fn of_session(
        &self,
        actor: &Actor,
        agent: AgentId,
        session: &str,
        limit: u32,
    ) -> Result<Vec<TraceId>, ApiError> {
        let owner = actor.may_ask(agent)?;
        self.recorder.settled(owner.workspace_id).await;
        let (now, after) = (self.clock.now(), before_session(session));
        let mut found = db::traces::of_session(&self.db, owner, agent, session, now, after, limit).await?;
        found.reverse();
        Ok(found)
    }

    /// Keeps what somebody says of an answer that they may see, and returns it with that.
    pub(crate) async fn rate(
        &self,
        actor: &Actor,
        id: TraceId,
        feedback: TraceFeedback,
    ) -> Result<StoredTrace, ApiError> {
        let text = feedback.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        self.set_feedback(actor, id, Some((feedback.rating.into(), text))).await
    }

    /// Takes away what was said of an answer.
    pub(crate) async fn unrate(&self, actor: &Actor, id: TraceId) -> Result<StoredTrace, ApiError> {
        self.set_feedback(actor, id, None).await
    }

    async fn set_feedback(
        &self,
        actor: &Actor,
        id: TraceId,
        feedback: Option<(i64, Option<&str>)>,
    ) -> Result<StoredTrace, ApiError> {
        // A token that asks one agent may say what came of it, too.
        let workspace = actor.may(Permission::ReadCitations)?.workspace_id;
        self.recorder.settled(workspace).await;
        // What was said can be taken back on a full disk, too.
        let mut tx = match feedback {
            Some(_) => self.db.begin().await?,
            None => self.db.begin_essential().await?,
        };
        let (of, now) = (actor.sees_runs_of(), self.clock.now());
        if !db::traces::rate(&mut tx, workspace, of, id, feedback, now).await? {
            return Err(unknown());
        }
        tx.commit().await?;
        self.find(actor, id).await
    }

    /// Deletes a trace with what was said of its answer, and the turn that a conversation remembers of it. Those who build agents may delete
    /// everybody's, and others their own.
    pub(crate) async fn delete(&self, actor: &Actor, id: TraceId) -> Result<(), ApiError> {
        let found = self.find_with_record(actor, id).await?;
        // PostgreSQL takes no text with a NUL, and remembers none.
        let question = found.question().filter(|question| !question.contains('\0'));
        let StoredTrace { agent_id: agent, session, .. } = found.trace;
        let (workspace, of) = (actor.may(Permission::ListRuns)?.workspace_id, actor.sees_runs_of());
        let mut tx = self.db.begin_essential().await?;
        // In the order of locks: whoever deletes the agent goes on to its traces.
        db::agents::lock(&mut tx, workspace, agent).await?.ok_or_else(unknown)?;
        let deleted = db::traces::delete(&mut tx, workspace, of, id, self.clock.now()).await?;
        let asker = deleted.ok_or_else(unknown)?;
        if let Some(session) = session {
            db::memory::forget_turn(&mut tx, asker, agent, &session, id, question.as_deref()).await?;
        }
        let details = AuditDetails::default().with("agent", Some(agent));
        self.audit.note_with(&mut tx, actor, AuditAction::Deleted, "trace", id, details).await?;
        Ok(tx.commit().await?)
    }

    /// Deletes some of all that is kept of what one asked, as far as it can be seen: traces, and what their conversations remember. Each call is
    /// a transaction of its own, so that whatever comes between two of them, the next one goes on.
    pub(crate) async fn delete_some_of(&self, actor: &Actor, asker: AskerId) -> Result<ErasedRuns, ApiError> {
        let workspace = actor.may(Permission::ListRuns)?.workspace_id;
        // Whoever sees their own alone finds nothing of others, and is not told whether there is any.
        if actor.sees_runs_of().is_some_and(|own| own.asker() != asker) {
            return Ok(ErasedRuns::default());
        }
        self.recorder.settled(workspace).await;
        let mut tx = self.db.begin_essential().await?;
        let erased = db::traces::delete_some_of_asker(&mut tx, workspace, asker).await?;
        if erased.traces > 0 || erased.turns > 0 {
            let details = AuditDetails::default()
                .with("traces", Some(erased.traces))
                .with("remembered", Some(erased.turns));
            self.audit.note_with(&mut tx, actor, AuditAction::Deleted, "traces", asker, details).await?;
        }
        tx.commit().await?;
        Ok(erased)
    }

    /// What those are called who asked, for whoever sees everybody's: members by their e-mail, tokens by their description. Who is gone has no
    /// name.
    pub(crate) async fn asker_names(
        &self,
        actor: &Actor,
        askers: &[AskerId],
    ) -> Result<HashMap<AskerId, String>, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let ids: Vec<Uuid> = askers.iter().map(|asker| *asker.as_uuid()).collect();
        let mut names = HashMap::new();
        for kind in ["user", "api_token"] {
            let found = db::audit::names(&self.db, workspace, kind, &ids).await?;
            names.extend(found.into_iter().map(|(id, name)| (AskerId::from(id), name)));
        }
        Ok(names)
    }

    /// How many answers were given on each day from a time on, by the day as `2026-01-31`.
    pub(crate) async fn per_day(
        &self,
        actor: &Actor,
        from: Timestamp,
    ) -> Result<Vec<(String, u64)>, ApiError> {
        const DAY: i64 = 86_400_000_000;
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        self.recorder.settled(workspace).await;
        let counts = db::traces::per_day(&self.db, workspace, from).await?;
        let named = |(day, count): (i64, i64)| {
            let text = Timestamp::from_micros(day.saturating_mul(DAY)).to_string();
            (text.get(..10).unwrap_or(&text).to_owned(), count.unsigned_abs())
        };
        Ok(counts.into_iter().map(named).collect())
    }

    /// One trace with its record.
    pub(crate) async fn find_with_record(
        &self,
        actor: &Actor,
        id: TraceId,
    ) -> Result<RecordedTrace, ApiError> {
        let workspace = actor.may(Permission::ListRuns)?.workspace_id;
        self.recorded(workspace, actor, id).await
    }

    /// The same for whoever was given the answer, be it by a token that many hold.
    pub(crate) async fn find_told(&self, actor: &Actor, id: TraceId) -> Result<RecordedTrace, ApiError> {
        let workspace = actor.may(Permission::ReadCitations)?.workspace_id;
        self.recorded(workspace, actor, id).await
    }

    async fn recorded(
        &self,
        workspace: WorkspaceId,
        actor: &Actor,
        id: TraceId,
    ) -> Result<RecordedTrace, ApiError> {
        self.recorder.settled(workspace).await;
        let (of, now) = (actor.sees_runs_of(), self.clock.now());
        let found = db::traces::find_with_record(&self.db, workspace, of, id, now).await?;
        let (trace, record) = found.ok_or_else(unknown)?;
        Ok(RecordedTrace { trace, record })
    }
}

#[cfg(test)]
mod tests {
    use lectern_agents::run::trace;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_newer_than_a_session_is_looked_through_for_its_answers() {
        let session = Uuid::now_v7();
        assert!(before_session(&session.to_string()) < TraceId::from(session));
        let hour_before = before_session("019a8f60-1b2c-7d3e-8f4a-5b6c7d8e9f01").to_string();
        assert_eq!(hour_before, "019a8f29-2cac-0000-0000-000000000000");
        for named_otherwise in
            ["mine", "", "9d6a37ab-49b3-4d0a-a1a3-2b8f7e9f6f10", "00000000-0000-7000-8000-000000000000"]
        {
            assert_eq!(before_session(named_otherwise), TraceId::from(Uuid::nil()), "{named_otherwise}");
        }
    }

    #[test]
    fn a_trace_tells_what_was_asked_whether_documents_were_searched_or_not() {
        let mut trace = trace::example();
        assert_eq!(question_of(&trace), Some("Who was the captain?"));
        // Nothing is linked: the first step is a question to the model, after what was said before.
        let said = |role: &str, content: &str| json!({"role": role, "content": content});
        let chat = |input: Value| json!({"kind": "chat", "action": "m", "input": input});
        let tool = json!({"kind": "tool", "action": "look", "input": "the weather"});
        let messages = json!([
            said("system", "Be brief."),
            said("user", "Hello?"),
            said("assistant", "Yes."),
            said("user", "Who was the mate?"),
        ]);
        trace["steps"] = json!([chat(messages), tool, chat(json!([said("user", "Go on.")]))]);
        assert_eq!(question_of(&trace), Some("Who was the mate?"));
        // What a tool is given is no question.
        for steps in [json!([tool]), json!([]), json!([chat(json!([said("system", "Be brief.")]))]), json!(7)]
        {
            trace["steps"] = steps;
            assert_eq!(question_of(&trace), None);
        }
    }
}
