//! What is stored of a run that has ended: its trace, the record from which it can be repeated, and what follows from both.

use std::{mem, time::Duration};

use lectern_db::{self as db, traces::StoredTrace};
use lectern_shared::model::{Json, webhook::WebhookEvent};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    AgentParts, AskedQuestion, cached,
    memory::{self, AnsweredTurn},
    setup::{RECORD_VERSION, RecordEntry, RunRecord, RunSetup},
    trace::{self, FinishedRun},
};
use crate::AgentError;

/// How long a trace may take to be stored.
const STORED_WITHIN: Duration = Duration::from_secs(10);
/// The largest trace that is kept whole, in bytes.
const LARGEST_TRACE: usize = 1 << 20;
/// The largest record, in bytes: what the trace says, and what it leaves out.
const LARGEST_RECORD: usize = 2 << 20;

/// A run that has ended, to be stored.
pub(super) struct EndedRun {
    asked: AskedQuestion,
    setup: RunSetup,
    /// What the outside answered.
    entries: Vec<RecordEntry>,
    /// The trace as the caller sees it.
    body: Value,
    duration_ms: u64,
    /// Why there is no answer.
    failure: Option<&'static str>,
    /// The answer, when a later question of its session is to know it.
    turn: Option<String>,
    /// By what the answer is found when it is to be given again.
    cache_key: Option<[u8; 32]>,
    is_repeatable: bool,
}

impl EndedRun {
    /// Takes of a run what only its record needs.
    pub(super) fn new(
        asked: AskedQuestion,
        setup: RunSetup,
        done: &mut FinishedRun,
        body: Value,
        duration_ms: u64,
    ) -> Self {
        let AskedQuestion { agent, question, key, .. } = &asked;
        let is_remembered = agent.has_memory && question.session.is_some();
        let ended = done.outcome.as_ref().ok();
        let turn =
            ended.filter(|ended| is_remembered && !ended.is_unanswered).map(|ended| ended.answer.clone());
        let cache_key = key.filter(|_| ended.is_some_and(|ended| cached::is_cacheable(ended, &done.steps)));
        // What failed before the model was asked cannot be told from what was recorded.
        let is_repeatable = ended.is_some() || matches!(done.entries.last(), Some(RecordEntry::Chat { .. }));
        let failure = done.outcome.as_ref().err().map(AgentError::code);
        let entries = mem::take(&mut done.entries);
        Self { asked, setup, entries, body, duration_ms, failure, turn, cache_key, is_repeatable }
    }

    /// Whether the answer has to wait until this is stored: the next question builds on it.
    pub(super) fn is_promised(&self) -> bool {
        self.turn.is_some() || self.cache_key.is_some()
    }

    /// Stores the trace, and both turns if the session is remembered. The answer is right without it, so a store that is away costs
    /// the record, not the answer. What a run leaves goes with its agent, also when that was deleted meanwhile.
    pub(super) async fn store(self, parts: &AgentParts) {
        let trace = self.setup.trace;
        match timeout(STORED_WITHIN, self.write(parts)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) if error.is_orphan() => {
                tracing::info!(%trace, "an agent was deleted while it answered; nothing of the run is kept");
            }
            Ok(Err(error)) => tracing::error!(%error, %trace, "the trace of an answer could not be kept"),
            Err(_) => tracing::error!(%trace, "the trace of an answer could not be kept in time"),
        }
    }

    async fn write(self, parts: &AgentParts) -> db::Result<()> {
        let Self { asked, setup, entries, body, duration_ms, failure, turn, cache_key, is_repeatable } = self;
        let AskedQuestion { agent, owner, question, .. } = asked;
        let (trace, session, last_erasure) = (setup.trace, question.session, setup.last_erasure);
        let record = json!(RunRecord { version: RECORD_VERSION, setup, entries, duration_ms });
        let complete = is_at_most(&body, LARGEST_TRACE) && is_at_most(&record, LARGEST_RECORD);
        let record = (complete && is_repeatable).then_some(Json(record));
        let now = parts.clock.now();
        let stored = StoredTrace {
            id: trace,
            agent_id: agent.id,
            session: session.clone(),
            question: Some(question.text.clone()),
            created_at: now,
            complete,
            body: Json(if complete { body } else { trace::shortened(body, LARGEST_TRACE) }),
            rating: None,
            feedback: None,
            feedback_at: None,
            user_id: None,
            token_id: None,
        };
        let expires = now.plus(parts.settings.trace_ttl);
        let cache_key = cache_key.filter(|_| complete);
        if failure.is_none() && turn.is_none() && cache_key.is_none() {
            return db::traces::insert_relaxed(&parts.db, owner, &stored, record.as_ref(), expires).await;
        }
        // A turn of a conversation is kept like any other thing of a user's; a trace alone is not worth waiting for the disk.
        let mut tx = if turn.is_some() { parts.db.begin().await? } else { parts.db.begin_relaxed().await? };
        db::traces::insert(&mut tx, owner, &stored, record.as_ref(), expires).await?;
        if let Some(code) = failure {
            let told = json!({"agentId": agent.id, "name": agent.name, "traceId": trace, "error": code});
            db::webhooks::emit(&mut tx, owner.workspace_id, WebhookEvent::AgentFailed, &told, now).await?;
        }
        if let (Some(session), Some(answer)) = (&session, &turn) {
            let turn = AnsweredTurn { trace, session, question: &question.text, answer, last_erasure };
            memory::remember(parts, &mut tx, owner, &agent, turn).await?;
        }
        if let Some(key) = cache_key {
            db::cached_answers::put(&mut tx, owner.workspace_id, &key, trace, now).await?;
        }
        tx.commit().await
    }
}

/// Whether a value has at most so many bytes as JSON.
fn is_at_most(value: &Value, bytes: usize) -> bool {
    struct LimitedWriter(usize);
    impl std::io::Write for LimitedWriter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(LimitedWriter(bytes), value).is_ok()
}
