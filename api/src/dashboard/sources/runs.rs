//! Runs of sources in a browser: what they found, and the question before much is deleted.

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{SourceId, SourceRunId},
    model::sync::{SyncOutcome, SyncRun, SyncRunItem, SyncRunState},
};
use uuid::Uuid;

use crate::{
    dashboard::{
        PagePolicy,
        confirm::{Confirmed, NoFields},
        frame::{Frame, SubmittedForm, Visitor},
        html,
        text::{filters, size, stop_word},
    },
    extract::{PathId, PathIds, parameter},
    response::ApiResult,
    services::{
        creation::CreationOutcome,
        sources::{NewRun, SourceService},
    },
};

/// What a run found, of a page.
const ITEMS: u32 = 100;

#[derive(Template)]
#[template(path = "source_run.html")]
struct RunPage {
    frame: Frame,
    source: SourceId,
    name: String,
    run: RunRow,
    found: Vec<FoundRow>,
    more: Option<Uuid>,
}

/// A run, in words.
pub(super) struct RunRow {
    pub(super) id: SourceRunId,
    pub(super) word: &'static str,
    pub(super) tone: &'static str,
    pub(super) is_busy: bool,
    pub(super) is_failed: bool,
    /// What it found.
    pub(super) summary: String,
    pub(super) detail: Option<String>,
    /// What is to be known of it although it did not fail.
    pub(super) warning: Option<String>,
    pub(super) is_waiting: bool,
    pub(super) how: &'static str,
    pub(super) created_at: Timestamp,
    pub(super) finished_at: Option<Timestamp>,
    pub(super) received: String,
}

/// What a run has found that has found nothing.
const fn nothing(state: SyncRunState) -> &'static str {
    match state {
        SyncRunState::Queued | SyncRunState::Running => "nothing yet",
        SyncRunState::Failed => "nothing: it could not be read",
        SyncRunState::Waiting | SyncRunState::Succeeded | SyncRunState::Cancelled => "nothing",
    }
}

/// What a run has found, in numbers; nothing when it has found nothing. A dry run did nothing of it.
fn summary(run: &SyncRun) -> String {
    let counts = &run.counts;
    let [added, changed, moved, gone] = if run.dry_run {
        ["would be added", "would be changed", "would be moved", "would be deleted"]
    } else {
        ["added", "changed", "moved", "gone"]
    };
    let parts = [
        (counts.added, added),
        (counts.changed, changed),
        (counts.moved, moved),
        (counts.gone, gone),
        (counts.failed, "failed"),
        (run.skipped, "skipped"),
        (counts.unchanged, "unchanged"),
        (counts.deleted_here, "deleted here, left away"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, word)| format!("{count} {word}")).collect();
    parts.join(", ")
}

impl From<&SyncRun> for RunRow {
    fn from(run: &SyncRun) -> Self {
        let (word, tone) = match run.state {
            SyncRunState::Queued => ("Waits", "busy"),
            SyncRunState::Running => ("Under way", "busy"),
            SyncRunState::Waiting => ("Asks", "bad"),
            SyncRunState::Succeeded => ("Done", "good"),
            SyncRunState::Failed => ("Failed", "bad"),
            SyncRunState::Cancelled => ("Stopped", ""),
        };
        let summary = summary(run);
        let how = match (run.dry_run, run.requested_by) {
            (true, _) => "a dry run: nothing was changed",
            (false, Some(_)) => "by hand",
            (false, None) => "by schedule",
        };
        Self {
            id: run.id,
            word,
            tone,
            is_busy: matches!(run.state, SyncRunState::Queued | SyncRunState::Running),
            is_failed: run.state == SyncRunState::Failed,
            summary: if summary.is_empty() { nothing(run.state).to_owned() } else { summary },
            detail: run.error.clone(),
            warning: run.warning.clone(),
            is_waiting: run.state == SyncRunState::Waiting,
            how,
            created_at: run.created_at,
            finished_at: run.finished_at,
            received: size(run.counts.bytes.unsigned_abs()),
        }
    }
}

/// What became of something, in words.
struct FoundRow {
    item: String,
    /// Whether it can be opened in a browser.
    is_address: bool,
    word: &'static str,
    tone: &'static str,
    reason: Option<String>,
    document: Option<String>,
}

impl FoundRow {
    /// What became of something, or in a dry run would.
    fn of(found: SyncRunItem, is_dry: bool) -> Self {
        let (word, tone) = match (found.outcome, is_dry) {
            (SyncOutcome::Added, false) => ("Added", "good"),
            (SyncOutcome::Added, true) => ("Would be added", "good"),
            (SyncOutcome::Changed, false) => ("Changed", "good"),
            (SyncOutcome::Changed, true) => ("Would be changed", "good"),
            (SyncOutcome::Moved, false) => ("Moved", "good"),
            (SyncOutcome::Moved, true) => ("Would be moved", "good"),
            (SyncOutcome::Gone, false) => ("Gone", "bad"),
            (SyncOutcome::Gone, true) => ("Would be deleted", "bad"),
            (SyncOutcome::Failed, _) => ("Failed", "bad"),
            (SyncOutcome::Skipped, _) => ("Skipped", ""),
        };
        Self {
            is_address: found.item_key.starts_with("https://") || found.item_key.starts_with("http://"),
            item: found.item_key,
            word,
            tone,
            reason: found.reason,
            document: found.document_id.map(|id| id.to_string()),
        }
    }
}

/// Has one run.
#[handler]
pub(super) async fn start(
    State(sources): State<SourceService>,
    PathId(id): PathId<SourceId>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewRun>,
) -> ApiResult {
    let id_of = |made: &SyncRun| Ok(made.id.to_string().into_bytes());
    let started = sources.run(&visitor.actor(), id, body, once, id_of).await?;
    let (CreationOutcome::Now(run) | CreationOutcome::Before(run)) = started;
    Ok(visitor.go(&format!("sources/{id}/runs/{}", String::from_utf8_lossy(&run))))
}

/// Shows a run, and what it found.
#[handler]
pub(super) async fn show(
    State(sources): State<SourceService>,
    visitor: Visitor,
    uri: Uri,
    PathIds(id, run): PathIds<SourceId, SourceRunId>,
) -> ApiResult {
    let actor = visitor.actor();
    let before = parameter(&uri, "after").and_then(|after| after.parse().ok()).unwrap_or_else(Uuid::max);
    let name = sources.find(&actor, id).await?.source.name;
    let found = sources.find_run(&actor, id, run).await?;
    let mut items = sources.found(&actor, id, run, before.into(), ITEMS + 1).await?;
    let has_more = items.len() > ITEMS as usize;
    items.truncate(ITEMS as usize);
    let is_dry = found.dry_run;
    let page = RunPage {
        source: id,
        name,
        run: RunRow::from(&found),
        more: items.last().map(|last| *last.id.as_uuid()).filter(|_| has_more),
        found: items.into_iter().map(|item| FoundRow::of(item, is_dry)).collect(),
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Has a run delete what is gone.
#[handler]
pub(super) async fn confirm(
    State(sources): State<SourceService>,
    PathIds(id, run): PathIds<SourceId, SourceRunId>,
    Confirmed(visitor): Confirmed,
) -> ApiResult {
    sources.confirm(&visitor.actor(), id, run).await?;
    Ok(visitor.go(&format!("sources/{id}/runs/{run}?said=sent")))
}

/// Stops a run, or has it keep what is gone.
#[handler]
pub(super) async fn cancel(
    State(sources): State<SourceService>,
    PathIds(id, run): PathIds<SourceId, SourceRunId>,
    SubmittedForm { visitor, .. }: SubmittedForm<NoFields>,
) -> ApiResult {
    let (_, is_stopped) = sources.cancel(&visitor.actor(), id, run).await?;
    let said = stop_word(is_stopped);
    Ok(visitor.go(&format!("sources/{id}/runs/{run}?said={said}")))
}
