//! `lectern-worker`: ingests documents. For installations of several processes.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use lectern_parse::child;
use lectern_runtime::{
    ProcessRole,
    process::{self, FatalError},
};
use lectern_shared::{config::Settings, shutdown::Shutdown};
use lectern_worker::{ParsingTools, health};

/// Lectern's worker; requests are answered by `lectern-api`.
#[derive(Parser)]
#[command(name = "lectern-worker", version)]
struct WorkerCli {
    /// A TOML file with settings; the environment wins over it.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<WorkerCommand>,
}

#[derive(Subcommand)]
enum WorkerCommand {
    /// Ingest documents (what happens without a command).
    Work,
    /// Ask the running worker whether it is ready; it must have `LECTERN_WORKER_ADDR`.
    Health,
}

fn main() -> ExitCode {
    // A parsing child has nothing in common with the service but the binary.
    if child::is_child() {
        return child::main();
    }
    process::shield();
    let WorkerCli { config, command } = WorkerCli::parse();
    process::run(config.as_deref(), async |settings| match command.unwrap_or(WorkerCommand::Work) {
        WorkerCommand::Work => Box::pin(work(settings)).await,
        WorkerCommand::Health => match settings.worker_addr {
            Some(addr) => process::ask_health(addr).await,
            None => Err("LECTERN_WORKER_ADDR is not set, so the worker listens on nothing".into()),
        },
    })
}

async fn work(settings: Settings) -> Result<(), FatalError> {
    let shutdown = Shutdown::new();
    shutdown.listen()?;
    let opened = process::open(settings.clone(), ProcessRole::Part, &shutdown);
    let (opened, tools) = tokio::join!(opened, ParsingTools::open(&settings, &shutdown));
    let Some(runtime) = opened? else { return Ok(()) };
    let Some(tools) = tools? else {
        shutdown.finished(runtime.close()).await;
        return Ok(());
    };
    let listener = health::bind(runtime.settings.worker_addr).await?;
    lectern_worker::start(&runtime, tools, &shutdown).await?;
    if let Some(listener) = listener {
        health::serve(runtime.clone(), listener, &shutdown)?;
    }
    tracing::info!("working");
    shutdown.finished(runtime.close()).await;
    tracing::info!("stopped");
    Ok(())
}
