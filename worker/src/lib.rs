//! The worker: takes jobs from the queue and makes documents searchable. It shares the relational store with the API and
//! nothing else.

mod consumer;
mod extracted;
mod failure;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod health;
mod ingest;
mod lease;
mod orphans;
pub mod preview;
mod scrubber;
pub mod source;
mod splitter;
mod sweeper;
mod sync;
mod webhooks;

use std::io;

use futures::future::LocalBoxFuture;
use lectern_db as db;
use lectern_runtime::{Runtime, leased};
use lectern_sandbox::{Sandbox, SandboxConfig};
use lectern_shared::{
    clock::Timestamp,
    config::{DatabaseLocation, Settings, SyncSettings},
    shutdown::Shutdown,
};

use crate::{
    ingest::Ingester,
    source::pdf::{PdfEngine, PdfEngineError},
    sync::SyncRuns,
};

/// Why the worker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WorkerStartError {
    /// The program cannot find itself, which it must to run its parsers.
    #[error("the running program cannot be found: {0}")]
    NoBinary(io::Error),
    /// What the settings say of PDFs cannot be done.
    #[error(transparent)]
    Pdf(#[from] PdfEngineError),
    /// The store failed.
    #[error(transparent)]
    Db(#[from] db::DbError),
}

/// What files are read with.
pub struct ParsingTools {
    sandbox: Sandbox,
    /// What reads PDFs, tried out; none where it is found out after the start, since whatever comes of that will do.
    pdf: Option<PdfEngine>,
}

impl ParsingTools {
    /// Tries what the settings ask for to read PDFs, and says in the log what came of it. It needs nothing of the rest of a process, which
    /// can be opened meanwhile. None when the process was asked to stop before it was known.
    ///
    /// # Errors
    /// When parsers cannot be run, or PDFs not be read as the settings say.
    pub async fn open(settings: &Settings, shutdown: &Shutdown) -> Result<Option<Self>, WorkerStartError> {
        let config = SandboxConfig::within(&settings.limits, settings.jobs.parsers)
            .map_err(WorkerStartError::NoBinary)?;
        let sandbox = Sandbox::new(config);
        if !PdfEngine::may_be_refused(&settings.pdf) {
            return Ok(Some(Self { sandbox, pdf: None }));
        }
        let pdf = tokio::select! {
            chosen = PdfEngine::choose(&settings.pdf, &sandbox) => chosen?,
            // A program that does not answer must not keep the process from being stopped.
            () = shutdown.soft().cancelled() => return Ok(None),
        };
        Ok(Some(Self { sandbox, pdf: Some(pdf) }))
    }
}

/// Starts the worker in the background; it ends with `shutdown`. Boxed here, so that it is compiled once and not again for each
/// program.
///
/// # Errors
/// When the store fails.
pub fn start<'a>(
    runtime: &'a Runtime,
    tools: ParsingTools,
    shutdown: &'a Shutdown,
) -> LocalBoxFuture<'a, Result<(), WorkerStartError>> {
    Box::pin(start_parts(runtime.in_background(), tools, shutdown))
}

async fn start_parts(
    runtime: Runtime,
    ParsingTools { sandbox, pdf }: ParsingTools,
    shutdown: &Shutdown,
) -> Result<(), WorkerStartError> {
    tell_of_missing_folders(runtime.settings.sync.clone());
    // Not before: to try them takes as much of the processor as opening the store, and whatever they are, parsers run.
    tokio::spawn(tell_of_walls(sandbox.clone()));
    if matches!(runtime.settings.database, DatabaseLocation::Sqlite(_)) {
        // This process has the data directory for itself: whoever held a job before is gone.
        let all = Timestamp::from_micros(i64::MAX);
        sweeper::expire_job_leases(&runtime.db, &runtime.jobs, &runtime.metrics, all).await?;
        let mut tx = runtime.db.begin_essential().await?;
        db::sync::runs::void_claims(&mut tx).await?;
        tx.commit().await?;
    }
    match pdf {
        Some(pdf) => start_consumer(&runtime, sandbox.clone(), pdf, shutdown),
        None => start_consumer_later(&runtime, &sandbox, shutdown),
    }
    sweeper::start(runtime.clone(), shutdown);
    webhooks::start(runtime.clone(), shutdown);
    leased::start(SyncRuns::new(runtime, sandbox), shutdown);
    Ok(())
}

fn start_consumer(runtime: &Runtime, sandbox: Sandbox, pdf: PdfEngine, shutdown: &Shutdown) {
    let ingester = Ingester::new(runtime.clone(), sandbox, pdf);
    consumer::start(&runtime.jobs, &runtime.metrics, ingester, shutdown);
}

/// Takes jobs as soon as it is known what there is to read PDFs with. To ask a program what it has takes as long as opening the store.
fn start_consumer_later(runtime: &Runtime, sandbox: &Sandbox, shutdown: &Shutdown) {
    let (runtime, sandbox, stopping) = (runtime.clone(), sandbox.clone(), shutdown.clone());
    shutdown.spawn(async move {
        let chosen = tokio::select! {
            chosen = PdfEngine::choose(&runtime.settings.pdf, &sandbox) => chosen,
            () = stopping.soft().cancelled() => return,
        };
        let pdf = chosen.unwrap_or_else(|error| {
            tracing::error!(%error, "PDFs are read by the built-in engine, and scanned pages not at all");
            PdfEngine::default()
        });
        start_consumer(&runtime, sandbox, pdf, &stopping);
    });
}

/// Says in the log which folders sources may read that are not there. Nothing waits for a disk that does not answer.
fn tell_of_missing_folders(settings: SyncSettings) {
    tokio::task::spawn_blocking(move || {
        for folder in settings.missing_folders() {
            let folder = folder.display();
            tracing::warn!(%folder, "LECTERN_SOURCE_FOLDERS names a folder that is not there; sources in it fail until it is");
        }
    });
}

/// Tries the walls around parsers, and says in the log what stands and what does not.
async fn tell_of_walls(sandbox: Sandbox) {
    match sandbox.probe_confinement().await {
        Ok(walls) if walls.is_confined() => tracing::info!(%walls, "sandbox"),
        Ok(walls) => tracing::warn!(%walls, "sandbox; see \"What parsers can reach\" in docs/operations.md"),
        Err(error) => tracing::warn!(%error, "the sandbox could not be tried"),
    }
}
