//! `lectern reingest`: PDFs read again from their sources, for what a newer engine reads better.

use clap::Args;
use lectern_db::{self as db, jobs::RereadTarget};
use lectern_runtime::{ProcessRole, Runtime, process::FatalError};
use lectern_shared::{config::Settings, model::page::PdfEngineName};

use crate::jobs::say;

/// Which PDFs are meant.
#[derive(Args)]
pub(crate) struct ReingestArgs {
    /// Those that this engine read (`index.engine` of a document): hayro, `pdf_oxide` or pdfium; `unknown` are those that were read
    /// before version 0.2, `all` are all.
    #[arg(long, value_parser = target)]
    engine: RereadTarget,
    /// Only say how many there are.
    #[arg(long)]
    dry_run: bool,
}

fn target(text: &str) -> Result<RereadTarget, String> {
    match text {
        "all" => Ok(RereadTarget::All),
        "unknown" => Ok(RereadTarget::Unknown),
        name => name
            .parse()
            .map(RereadTarget::ReadBy)
            .map_err(|_| format!("it must be one of {}, unknown, all", PdfEngineName::choices())),
    }
}

/// # Errors
/// When the installation cannot be opened.
pub(crate) async fn run(settings: Settings, args: ReingestArgs) -> Result<(), FatalError> {
    let runtime = Runtime::start(settings, ProcessRole::Command).await?;
    let told = if args.dry_run {
        let documents = db::jobs::count_to_read(&runtime.db, args.engine).await?;
        format!("would be read again: {documents}")
    } else {
        let mut tx = runtime.db.begin().await?;
        let documents = db::jobs::enqueue_to_read(&mut tx, args.engine, runtime.jobs.now()).await?;
        tx.commit().await?;
        runtime.jobs.doorbell().ring(runtime.settings.jobs.concurrency);
        format!("queued: {documents}; the service reads them again, and answers from what it has until then")
    };
    runtime.close().await;
    say(&told)
}
