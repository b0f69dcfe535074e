//! `lectern reembed`: the vectors of every document made anew by the model that is set, from the passages that are stored.

use std::time::Duration;

use lectern_db::{self as db, jobs::ReindexTarget};
use lectern_runtime::{ProcessRole, Runtime, process::FatalError};
use lectern_shared::{
    config::{DatabaseLocation, Settings},
    model::space::EmbeddingSpace,
    shutdown::Shutdown,
};
use lectern_worker::ParsingTools;

use crate::jobs::{counted, say};

/// How often it is looked how far the work is.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often that is said.
const SAY_EVERY: u32 = 5;

/// Queues every document that the model that is set has not embedded, and waits until they are done. On SQLite this process does
/// the work, and the service must not run; otherwise the workers do.
///
/// # Errors
/// When no model is set or it cannot be had, and when another process has the data directory.
pub(crate) async fn run(settings: Settings) -> Result<(), FatalError> {
    let shutdown = Shutdown::new();
    shutdown.listen()?;
    let alone = matches!(settings.database, DatabaseLocation::Sqlite(_));
    let runtime = Runtime::start(settings, ProcessRole::ExclusiveCommand).await?;
    let opened = tokio::select! {
        opened = runtime.models.open(&runtime.clock) => opened?,
        () = shutdown.soft().cancelled() => return Ok(()),
    };
    let embedder =
        opened.ok_or("LECTERN_EMBEDDER is none: set the model that the documents are to be embedded by")?;
    let space = embedder.space();
    let now = runtime.jobs.now();
    let mut tx = runtime.db.begin().await?;
    let queued = db::jobs::enqueue_again(&mut tx, ReindexTarget::OutsideSpace(space.id), now).await?;
    tx.commit().await?;
    tracing::info!(documents = queued, model = space.model, "queued to be embedded");
    // Without them it was asked to stop, which is told below.
    if alone && let Some(tools) = ParsingTools::open(&runtime.settings, &shutdown).await? {
        lectern_worker::start(&runtime, tools, &shutdown).await?;
    }
    runtime.jobs.doorbell().ring(runtime.settings.jobs.concurrency);
    wait(&runtime, space, &shutdown).await?;
    shutdown.begin();
    shutdown.finished(runtime.close()).await;
    Ok(())
}

/// Waits until nothing is left to do, and says how far it is.
async fn wait(runtime: &Runtime, space: &EmbeddingSpace, shutdown: &Shutdown) -> Result<(), FatalError> {
    for look in 0_u32.. {
        let (done, left) = db::vectors::documents_in_space(&runtime.db, space).await?;
        let depth = db::jobs::depth(&runtime.db, runtime.jobs.now()).await?;
        if left == 0 {
            return say(&format!("every document is embedded by {}: {done}", space.model));
        }
        if depth.due + depth.waiting + depth.running == 0 {
            return Err(format!(
                "{} could not be embedded: GET /api/v1/documents says why; the others are done ({done})",
                counted(left, "document", "documents")
            )
            .into());
        }
        if look % SAY_EVERY == 0 {
            tracing::info!(done, left, "embedding");
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = shutdown.soft().cancelled() => {
                tracing::info!(done, left, "stopped; what is queued is embedded when the service runs");
                return Ok(());
            }
        }
    }
    Ok(())
}
