//! Sources in a browser: what they are, what their runs found, and the question before much is deleted.

use askama::Template;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri},
    routing::{get, post},
};
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{CollectionId, SourceId, SourceRunId},
    model::sync::{
        BucketConfig, FeedConfig, FolderConfig, PageDiscovery, PathFilter, SiteConfig, SyncConfig,
        SyncOutcome, SyncRun, SyncRunItem, SyncRunState, SyncSource, SyncSourceType,
    },
};
use uuid::Uuid;

use super::{
    PagePolicy,
    frame::{Frame, SubmittedForm, Visitor},
    html,
    text::{counted, filters, size, stop_word},
};
use crate::{
    extract::{PathId, PathIds, parameter},
    response::ApiResult,
    services::{
        actor::Actor,
        collections::CollectionService,
        creation::CreationOutcome,
        sources::{NewRun, NewSource, SourceChange, SourceDetails, SourceService, next_run, written_every},
    },
    state::AppState,
};

/// Sources that are shown: a workspace has fewer.
const SOURCES: u32 = 200;
/// Runs of a page.
const RUNS: u32 = 20;
/// What a run found, of a page.
const ITEMS: u32 = 100;
/// Collections to choose from.
const COLLECTIONS: u32 = 200;

/// The kinds of sources, and what they are for people.
const KINDS: [(SyncSourceType, &str); 4] = [
    (SyncSourceType::Site, "A web site"),
    (SyncSourceType::Feed, "A feed"),
    (SyncSourceType::S3, "A bucket (S3)"),
    (SyncSourceType::Folder, "A folder"),
];

/// How often a source may run, as people choose it.
const INTERVALS: [(&str, &str); 7] = [
    ("15m", "every 15 minutes"),
    ("1h", "every hour"),
    ("6h", "every 6 hours"),
    ("12h", "every 12 hours"),
    ("1d", "every day"),
    ("7d", "every week"),
    ("30d", "every 30 days"),
];

#[expect(clippy::disallowed_methods, reason = "the document describes what programs use")]
pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/sources", get(list).post(create))
        .route("/sources/new", get(new))
        .route("/sources/{id}", get(show).post(change))
        .route("/sources/{id}/run", post(run))
        .route("/sources/{id}/delete", post(delete))
        .route("/sources/{id}/runs/{run}", get(show_run))
        .route("/sources/{id}/runs/{run}/confirm", post(confirm))
        .route("/sources/{id}/runs/{run}/cancel", post(cancel))
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
    is_busy: bool,
    runs: Vec<RunRow>,
    more: Option<SourceRunId>,
    fields: SourceFields,
}

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
struct RunRow {
    id: SourceRunId,
    word: &'static str,
    tone: &'static str,
    is_busy: bool,
    is_failed: bool,
    /// What it found.
    summary: String,
    detail: Option<String>,
    is_waiting: bool,
    how: &'static str,
    created_at: Timestamp,
    finished_at: Option<Timestamp>,
    received: String,
}

/// What a run has found that has found nothing.
const fn nothing(state: SyncRunState) -> &'static str {
    match state {
        SyncRunState::Queued | SyncRunState::Running => "nothing yet",
        SyncRunState::Failed => "nothing: it could not be read",
        SyncRunState::Waiting | SyncRunState::Succeeded | SyncRunState::Cancelled => "nothing",
    }
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
        let counts = &run.counts;
        let parts = [
            (counts.added, "added"),
            (counts.changed, "changed"),
            (counts.gone, "gone"),
            (counts.failed, "failed"),
            (counts.unchanged, "unchanged"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
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
            summary: if parts.is_empty() { nothing(run.state).to_owned() } else { parts.join(", ") },
            detail: run.error.clone(),
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

impl From<SyncRunItem> for FoundRow {
    fn from(found: SyncRunItem) -> Self {
        let (word, tone) = match found.outcome {
            SyncOutcome::Added => ("Added", "good"),
            SyncOutcome::Changed => ("Changed", "good"),
            SyncOutcome::Gone => ("Gone", "bad"),
            SyncOutcome::Failed => ("Failed", "bad"),
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

/// The fields of a source's form, with what is in them.
struct SourceFields {
    kind: SyncSourceType,
    is_new: bool,
    name: String,
    config: SyncConfig,
    has_secret: bool,
    every: String,
    delete_limit: i64,
    collection: String,
    collections: Vec<(CollectionId, String)>,
    /// How often, of what can be chosen.
    intervals: Vec<(String, String)>,
}

impl SourceFields {
    fn new(kind: SyncSourceType, collections: Vec<(CollectionId, String)>) -> Self {
        let config = empty(kind);
        Self {
            kind,
            is_new: true,
            name: String::new(),
            config,
            has_secret: false,
            every: "1d".to_owned(),
            delete_limit: 20,
            collection: String::new(),
            collections,
            intervals: intervals(""),
        }
    }

    fn of(source: SyncSource, collections: Vec<(CollectionId, String)>) -> Self {
        let every = written_every(&source).unwrap_or_default();
        Self {
            kind: source.config.0.source_type(),
            is_new: false,
            name: source.name,
            has_secret: source.secret_sealed.is_some(),
            intervals: intervals(&every),
            every,
            delete_limit: source.delete_limit,
            collection: source.collection_id.map(|id| id.to_string()).unwrap_or_default(),
            collections,
            config: source.config.0,
        }
    }

    /// What of it becomes documents, where that is told by paths.
    fn filter(&self) -> Option<&PathFilter> {
        match &self.config {
            SyncConfig::Site(SiteConfig { filter, .. })
            | SyncConfig::S3(BucketConfig { filter, .. })
            | SyncConfig::Folder(FolderConfig { filter, .. }) => Some(filter),
            SyncConfig::Feed(_) => None,
        }
    }

    fn is_site(&self) -> bool {
        self.kind == SyncSourceType::Site
    }

    fn takes_authorization(&self) -> bool {
        matches!(self.kind, SyncSourceType::Site | SyncSourceType::Feed)
    }
}

/// How often a source may run, with one that is none of those that can be chosen.
fn intervals(own: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        INTERVALS.iter().map(|(value, words)| ((*value).to_owned(), (*words).to_owned())).collect();
    if !own.is_empty() && all.iter().all(|(value, _)| value != own) {
        all.push((own.to_owned(), format!("every {own}")));
    }
    all
}

/// What a form begins with.
fn empty(kind: SyncSourceType) -> SyncConfig {
    let (url, max_documents, filter) = (String::new(), 1_000, PathFilter::default());
    match kind {
        SyncSourceType::Site => SyncConfig::Site(SiteConfig {
            url,
            discover: PageDiscovery::Auto,
            filter,
            max_depth: 5,
            max_documents,
        }),
        SyncSourceType::Feed => {
            SyncConfig::Feed(FeedConfig { url, full_pages: true, only_current: false, max_documents })
        }
        SyncSourceType::S3 => SyncConfig::S3(BucketConfig {
            endpoint: None,
            region: "us-east-1".to_owned(),
            bucket: String::new(),
            prefix: String::new(),
            access_key_id: None,
            path_style: false,
            filter,
            max_documents,
        }),
        SyncSourceType::Folder => {
            SyncConfig::Folder(FolderConfig { path: String::new(), filter, max_documents })
        }
    }
}

/// The collections to choose from, and the one that is chosen.
async fn choices(
    collections: &CollectionService,
    actor: &Actor,
    chosen: Option<CollectionId>,
) -> ApiResult<Vec<(CollectionId, String)>> {
    let mut found = collections.list(actor, Uuid::max(), COLLECTIONS).await?;
    // Older than those that are listed: without it the form would take it away.
    if let Some(chosen) = chosen
        && found.iter().all(|collection| collection.id != chosen)
    {
        found.push(collections.find(actor, chosen).await?);
    }
    Ok(found.into_iter().map(|collection| (collection.id, collection.name)).collect())
}

/// Shows the sources.
#[handler]
async fn list(State(sources): State<SourceService>, visitor: Visitor) -> ApiResult {
    let found = sources.list(&visitor.actor(), Uuid::max(), SOURCES).await?;
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
        is_busy: rows.iter().any(|row| row.run.as_ref().is_some_and(|run| run.is_busy)),
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
    let collections = choices(&collections, &visitor.actor(), None).await?;
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
    visitor: Visitor,
    uri: Uri,
    PathId(id): PathId<SourceId>,
) -> ApiResult {
    let actor = visitor.actor();
    let before = parameter(&uri, "after").and_then(|after| after.parse().ok()).unwrap_or_else(Uuid::max);
    let SourceDetails { source, last_run } = sources.find(&actor, id).await?;
    let mut runs = sources.runs(&actor, id, before, RUNS + 1).await?;
    let has_more = runs.len() > RUNS as usize;
    runs.truncate(RUNS as usize);
    let last = last_run.as_ref();
    let choices = choices(&collections, &actor, source.collection_id).await?;
    let page = SourcePage {
        id,
        name: source.name.clone(),
        place: source.config.0.place(),
        documents: counted(source.documents.unsigned_abs(), "document", "documents"),
        next: next_run(&source),
        question: last.filter(|run| run.state == SyncRunState::Waiting).map(RunRow::from),
        is_busy: last.is_some_and(|run| RunRow::from(run).is_busy),
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
    PathId(id): PathId<SourceId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<SourceChange>,
) -> ApiResult {
    sources.change(&visitor.actor(), id, body).await?;
    Ok(visitor.go(&format!("sources/{id}?said=saved")))
}

/// Deletes one. Its documents stay.
#[handler]
async fn delete(
    State(sources): State<SourceService>,
    visitor: Visitor,
    PathId(id): PathId<SourceId>,
) -> ApiResult {
    sources.delete(&visitor.actor(), id).await?;
    Ok(visitor.go("sources?said=removed"))
}

/// Has one run.
#[handler]
async fn run(
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
async fn show_run(
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
    let page = RunPage {
        source: id,
        name,
        run: RunRow::from(&found),
        more: items.last().map(|last| *last.id.as_uuid()).filter(|_| has_more),
        found: items.into_iter().map(FoundRow::from).collect(),
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Has a run delete what is gone.
#[handler]
async fn confirm(
    State(sources): State<SourceService>,
    visitor: Visitor,
    PathIds(id, run): PathIds<SourceId, SourceRunId>,
) -> ApiResult {
    sources.confirm(&visitor.actor(), id, run).await?;
    Ok(visitor.go(&format!("sources/{id}/runs/{run}?said=sent")))
}

/// Stops a run, or has it keep what is gone.
#[handler]
async fn cancel(
    State(sources): State<SourceService>,
    visitor: Visitor,
    PathIds(id, run): PathIds<SourceId, SourceRunId>,
) -> ApiResult {
    let (_, is_stopped) = sources.cancel(&visitor.actor(), id, run).await?;
    let said = stop_word(is_stopped);
    Ok(visitor.go(&format!("sources/{id}/runs/{run}?said={said}")))
}
