//! Sources in a browser: what they are, what their runs found, and the question before much is deleted.

mod fields;
mod runs;

use askama::Template;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri},
    routing::{get, post},
};
use lectern_derive::handler;
use lectern_shared::{
    clock::{Clock, Timestamp},
    ids::{SourceId, SourceRunId},
    model::sync::{PageDiscovery, SyncConfig, SyncRunState, SyncSourceType},
};
use uuid::Uuid;

pub(super) use self::fields::CONFIG;
use self::{fields::SourceFields, runs::RunRow};
use super::{
    PagePolicy,
    choices::collection_choice,
    confirm::Confirmed,
    edits::{EditForm, was_made},
    frame::{Frame, SubmittedForm, Visitor},
    html,
    text::{counted, filters},
};
use crate::{
    extract::{PathId, parameter},
    response::ApiResult,
    services::{
        collections::CollectionService,
        creation::CreationOutcome,
        sources::{NewSource, SourceChange, SourceDetails, SourceService, next_run},
    },
    state::AppState,
};

/// Sources that are shown: a workspace has fewer.
const SOURCES: u32 = 200;
/// Runs of a page.
const RUNS: u32 = 20;

/// The kinds of sources, and what they are for people.
const KINDS: [(SyncSourceType, &str); 4] = [
    (SyncSourceType::Site, "A web site"),
    (SyncSourceType::Feed, "A feed"),
    (SyncSourceType::S3, "A bucket (S3)"),
    (SyncSourceType::Folder, "A folder"),
];

#[expect(clippy::disallowed_methods, reason = "the document describes what programs use")]
pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/sources", get(list).post(create))
        .route("/sources/new", get(new))
        .route("/sources/{id}", get(show).post(change))
        .route("/sources/{id}/run", post(runs::start))
        .route("/sources/{id}/delete", post(delete))
        .route("/sources/{id}/runs/{run}", get(runs::show))
        .route("/sources/{id}/runs/{run}/confirm", post(runs::confirm))
        .route("/sources/{id}/runs/{run}/cancel", post(runs::cancel))
}

#[derive(Template)]
#[template(path = "sources.html")]
struct SourcesPage {
    frame: Frame,
    rows: Vec<SourceRow>,
    is_busy: bool,
    kinds: Vec<(SyncSourceType, &'static str)>,
}

struct SourceRow {
    id: SourceId,
    name: String,
    place: String,
    documents: i64,
    run: Option<RunRow>,
    next: Option<Timestamp>,
}

#[derive(Template)]
#[template(path = "source_new.html")]
struct NewSourcePage {
    frame: Frame,
    label: &'static str,
    fields: SourceFields,
}

#[derive(Template)]
#[template(path = "source.html")]
struct SourcePage {
    frame: Frame,
    id: SourceId,
    name: String,
    place: String,
    documents: String,
    next: Option<Timestamp>,
    /// A run that asks whether so much is to be deleted.
    question: Option<RunRow>,
    /// What is to be known of the last run although it did not fail.
    warning: Option<String>,
    is_busy: bool,
    runs: Vec<RunRow>,
    more: Option<SourceRunId>,
    fields: SourceFields,
}

/// Whether what is told of a source's runs changes soon: one is under way, or the first one is due.
fn is_busy(SourceDetails { source, last_run }: &SourceDetails, now: Timestamp) -> bool {
    match last_run {
        Some(run) => RunRow::from(run).is_busy,
        None => next_run(source).is_some_and(|next| next <= now),
    }
}

/// Shows the sources.
#[handler]
async fn list(
    State(sources): State<SourceService>,
    State(clock): State<Clock>,
    visitor: Visitor,
) -> ApiResult {
    let found = sources.list(&visitor.actor(), Uuid::max(), SOURCES).await?;
    let now = clock.now();
    let is_busy = found.iter().any(|source| is_busy(source, now));
    let row = |SourceDetails { source, last_run }: SourceDetails| SourceRow {
        id: source.id,
        next: next_run(&source),
        place: source.config.0.place(),
        documents: source.documents,
        name: source.name,
        run: last_run.as_ref().map(RunRow::from),
    };
    let rows: Vec<SourceRow> = found.into_iter().map(row).collect();
    let is_shown =
        |(kind, _): &(SyncSourceType, &str)| *kind != SyncSourceType::Folder || sources.has_folders();
    let page = SourcesPage {
        frame: visitor.frame,
        is_busy,
        rows,
        kinds: KINDS.into_iter().filter(is_shown).collect(),
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Shows the form for one.
#[handler]
async fn new(State(collections): State<CollectionService>, visitor: Visitor, uri: Uri) -> ApiResult {
    let wanted = parameter(&uri, "type").and_then(|kind| kind.parse().ok()).unwrap_or(SyncSourceType::Site);
    let label = KINDS.iter().find(|(kind, _)| *kind == wanted).map_or("", |(_, label)| label);
    let collections = collection_choice(&collections, &visitor.actor(), None, &uri, "").await?;
    let page = NewSourcePage { frame: visitor.frame, label, fields: SourceFields::new(wanted, collections) };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Makes one.
#[handler]
async fn create(
    State(sources): State<SourceService>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewSource>,
) -> ApiResult {
    let id_of = |made: &SourceDetails| Ok(made.source.id.to_string().into_bytes());
    let made = sources.create(&visitor.actor(), body, once, id_of).await?;
    let (CreationOutcome::Now(id) | CreationOutcome::Before(id)) = made;
    Ok(visitor.go(&format!("sources/{}?said=added", String::from_utf8_lossy(&id))))
}

/// Shows one, and its runs.
#[handler]
async fn show(
    State(sources): State<SourceService>,
    State(collections): State<CollectionService>,
    State(clock): State<Clock>,
    visitor: Visitor,
    uri: Uri,
    PathId(id): PathId<SourceId>,
) -> ApiResult {
    let actor = visitor.actor();
    let before = parameter(&uri, "after").and_then(|after| after.parse().ok()).unwrap_or_else(Uuid::max);
    let found = sources.find(&actor, id).await?;
    let is_busy = is_busy(&found, clock.now());
    let SourceDetails { source, last_run } = found;
    let mut runs = sources.runs(&actor, id, before, RUNS + 1).await?;
    let has_more = runs.len() > RUNS as usize;
    runs.truncate(RUNS as usize);
    let last = last_run.as_ref();
    let choices = collection_choice(&collections, &actor, source.collection_id, &uri, "change").await?;
    let page = SourcePage {
        id,
        name: source.name.clone(),
        place: source.config.0.place(),
        documents: counted(source.documents.unsigned_abs(), "document", "documents"),
        next: next_run(&source),
        question: last.filter(|run| run.state == SyncRunState::Waiting).map(RunRow::from),
        warning: last.and_then(|run| run.warning.clone()),
        is_busy,
        more: runs.last().map(|last| last.id).filter(|_| has_more),
        runs: runs.iter().map(RunRow::from).collect(),
        fields: SourceFields::of(source, choices),
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Changes one.
#[handler]
async fn change(
    State(sources): State<SourceService>,
    State(collections): State<CollectionService>,
    PathId(id): PathId<SourceId>,
    uri: Uri,
    EditForm { visitor, body, edit }: EditForm<SourceChange>,
) -> ApiResult {
    let actor = visitor.actor();
    if was_made(sources.change(&actor, id, body, edit.base()).await)? {
        return Ok(visitor.go(&format!("sources/{id}?said=saved")));
    }
    let SourceDetails { source, .. } = sources.find(&actor, id).await?;
    let choices = collection_choice(&collections, &actor, source.collection_id, &uri, "change").await?;
    let changed_last = source.updated_at;
    let shows = SourceFields::of(source, choices).shown(changed_last);
    edit.outdated(visitor, &shows, None, &format!("sources/{id}#change"))
}

/// Deletes one. Its documents stay.
#[handler]
async fn delete(
    State(sources): State<SourceService>,
    PathId(id): PathId<SourceId>,
    Confirmed(visitor): Confirmed,
) -> ApiResult {
    sources.delete(&visitor.actor(), id).await?;
    Ok(visitor.go("sources?said=removed"))
}
