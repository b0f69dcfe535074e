//! What is wrong with an installation, and what can be mended from here.
//!
//! Each part is opened by itself, so that this works while the service runs and when it cannot even start: a part that cannot
//! be opened is a finding like any other. Everything is read in pages. A repair queues; the work is done by the service.

mod blobs;
pub(crate) mod command;
mod database;
mod index;
mod leftovers;
mod mend;
mod model;
mod queue;
mod secret;
mod sources;

use std::fmt::Display;

use lectern_db::{Db, DbError, checkup, singletons};
use lectern_index::IndexError;
use lectern_runtime as runtime;
use lectern_shared::{
    clock::{Clock, Timestamp},
    config::{DatabaseLocation, Settings},
};
use serde::Serialize;

/// The most ids that a finding names.
pub(crate) const NAMED: usize = 10;

/// What to look at, and whether to mend it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DoctorOptions {
    /// Reads everything that can be read: each part of the embedded index, and the files of the model.
    pub(crate) deep: bool,
    /// Mends what can be mended.
    pub(crate) repair: bool,
}

/// A part of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InstallationPart {
    /// The relational store and the disk under it.
    Database,
    /// The key that everything secret is encrypted under.
    Secret,
    /// Jobs.
    Queue,
    /// The search index, and the passages that it is made of.
    Index,
    /// Uploaded files.
    Blobs,
    /// The embedding model.
    Model,
    /// The folders that sources may read.
    Sources,
    /// What parsers can reach.
    Sandbox,
}

impl Display for InstallationPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Database => "database",
            Self::Secret => "secret",
            Self::Queue => "queue",
            Self::Index => "index",
            Self::Blobs => "blobs",
            Self::Model => "model",
            Self::Sources => "sources",
            Self::Sandbox => "sandbox",
        })
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// As it should be.
    Ok,
    /// Nothing is lost or wrong by it, but somebody should know.
    Warning,
    /// Something does not work, or is gone.
    Error,
}

/// One thing that was found.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DoctorFinding {
    /// Where.
    pub(crate) part: InstallationPart,
    /// How bad it is.
    pub(crate) severity: Severity,
    /// A fixed word for it.
    pub(crate) code: &'static str,
    /// What is so, in one sentence, without text or names of documents.
    pub(crate) what: String,
    /// How many things it is about; none when it is about the part itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
    /// The ids of the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ids: Vec<String>,
    /// What to do, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) todo: Option<String>,
    /// Whether a repair mends it, or begins to.
    pub(crate) repairable: bool,
    /// Whether it was mended, or begun to be, just now.
    pub(crate) repaired: bool,
}

impl DoctorFinding {
    /// One without details.
    pub(crate) fn new(
        part: InstallationPart,
        severity: Severity,
        code: &'static str,
        what: impl Into<String>,
    ) -> Self {
        Self {
            part,
            severity,
            code,
            what: what.into(),
            count: None,
            ids: Vec::new(),
            todo: None,
            repairable: false,
            repaired: false,
        }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub(crate) fn todo(mut self, todo: impl Into<String>) -> Self {
        self.todo = Some(todo.into());
        self
    }

    fn of(mut self, tally: &FindingTally) -> Self {
        self.count = Some(tally.count);
        self.ids.clone_from(&tally.ids);
        self
    }

    fn repairable(mut self, repaired: bool) -> Self {
        self.repairable = true;
        self.repaired = repaired;
        self
    }
}

/// Things of one kind: how many, and the first of them.
#[derive(Clone, Debug, Default)]
struct FindingTally {
    count: u64,
    ids: Vec<String>,
}

impl FindingTally {
    fn add(&mut self, id: impl Display) {
        self.count += 1;
        if self.ids.len() < NAMED {
            self.ids.push(id.to_string());
        }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DoctorReport {
    /// What was found, part by part.
    pub(crate) findings: Vec<DoctorFinding>,
    /// Documents that were queued by repairs.
    pub(crate) queued: u64,
    /// Whether the service runs, where that can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) running: Option<bool>,
}

impl DoctorReport {
    /// How many findings are as bad as this.
    pub(crate) fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Whether nothing is an error.
    pub(crate) fn is_sound(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    fn add(&mut self, finding: DoctorFinding) {
        self.findings.push(finding);
    }

    fn ok(&mut self, part: InstallationPart, what: impl Into<String>) {
        self.add(DoctorFinding::new(part, Severity::Ok, "ok", what));
    }

    /// A part could not be looked at to the end.
    fn trouble(&mut self, part: InstallationPart, end: Result<(), DoctorError>) {
        if let Err(trouble) = end {
            let todo = "see what is wrong with it, and run this again".to_owned();
            let what = format!("it could not be looked at to the end: {trouble}");
            self.add(DoctorFinding::new(part, Severity::Error, "unreadable", what).todo(todo));
        }
    }
}

/// Why a look ended early.
#[derive(Debug, thiserror::Error)]
enum DoctorError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Blobs(#[from] lectern_shared::blobs::BlobError),
    #[error("a computation was stopped")]
    Stopped(#[from] lectern_shared::compute::ComputeStopped),
}

/// What all looks share.
struct DoctorContext<'a> {
    settings: &'a Settings,
    options: DoctorOptions,
    db: &'a Db,
    /// The installation's id; none when it never started.
    instance: Option<String>,
    /// The time by which leases are judged.
    now: Timestamp,
}

/// Looks at every part, and mends what can be mended if that is wanted.
pub(crate) async fn examine(settings: &Settings, options: DoctorOptions) -> DoctorReport {
    lectern_shared::tls::install();
    let mut report = DoctorReport::default();
    let db = database::open(settings, options, &mut report).await;
    if let Some(db) = &db {
        let end = look(settings, options, db, &mut report).await;
        report.trouble(InstallationPart::Database, end);
    }
    model::look(settings, options, db.as_ref(), &mut report).await;
    sources::look(&settings.sync, &mut report);
    if let Some(db) = db {
        report.running = is_running(settings, &db).await;
        db.close().await;
    }
    report
}

async fn look(
    settings: &Settings,
    options: DoctorOptions,
    db: &Db,
    report: &mut DoctorReport,
) -> Result<(), DoctorError> {
    let instance = singletons::get(db, runtime::INSTANCE).await?;
    let clock = Clock::system();
    let now = db.server_time().await?.unwrap_or_else(|| clock.now());
    let look = DoctorContext { settings, options, db, instance, now };
    let end = secret::look(&look, report).await;
    report.trouble(InstallationPart::Secret, end);
    let end = queue::look(&look, report).await;
    report.trouble(InstallationPart::Queue, end);
    let store = blobs::open(&look, report).await;
    let end = index::look(&look, store.as_ref(), report).await;
    report.trouble(InstallationPart::Index, end);
    if let Some(store) = &store {
        let end = blobs::look(&look, store, report).await;
        report.trouble(InstallationPart::Blobs, end);
    }
    Ok(())
}

/// Whether the service runs: embedded, it holds its lock; elsewhere, somebody kept the house a short while ago.
async fn is_running(settings: &Settings, db: &Db) -> Option<bool> {
    match &settings.database {
        DatabaseLocation::Sqlite(_) => {
            let lock = std::fs::File::options().write(true).open(settings.data_dir.join("lock")).ok();
            let Some(lock) = lock else { return Some(false) };
            match lock.try_lock() {
                Ok(()) => Some(false),
                Err(std::fs::TryLockError::WouldBlock) => Some(true),
                Err(std::fs::TryLockError::Error(_)) => None,
            }
        }
        DatabaseLocation::Postgres(_) => {
            let until = checkup::housekeeper_until(db).await.ok()??;
            let now = db.server_time().await.ok()??;
            (now.since(until) < database::HOUSEKEEPER_SILENT).then_some(true)
        }
    }
}

/// `1 document is`, `2 documents are`.
fn documents(count: u64, verbs: (&str, &str)) -> String {
    if count == 1 { format!("1 document {}", verbs.0) } else { format!("{count} documents {}", verbs.1) }
}
