//! `lectern-api`: answers requests, and queues what workers do. For installations of several processes.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use lectern_api::HttpInterface;
use lectern_parse::child;
use lectern_runtime::{
    ProcessRole,
    process::{self, FatalError},
};
use lectern_shared::{config::Settings, shutdown::Shutdown};

/// Lectern's API; documents are ingested by `lectern-worker`.
#[derive(Parser)]
#[command(name = "lectern-api", version)]
struct ApiCli {
    /// A TOML file with settings; the environment wins over it.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<ApiCommand>,
}

#[derive(Subcommand)]
enum ApiCommand {
    /// Answer requests (what happens without a command).
    Serve,
    /// Ask the running API whether it is ready.
    Health,
}

fn main() -> ExitCode {
    // Pages are drawn in processes of their own, which have nothing in common with the API but the binary.
    if child::is_child() {
        return child::main();
    }
    process::shield();
    let ApiCli { config, command } = ApiCli::parse();
    process::run(config.as_deref(), async |settings| match command.unwrap_or(ApiCommand::Serve) {
        ApiCommand::Serve => Box::pin(serve(settings)).await,
        ApiCommand::Health => process::ask_health(settings.addr).await,
    })
}

async fn serve(settings: Settings) -> Result<(), FatalError> {
    lectern_api::check_settings(&settings)?;
    let shutdown = Shutdown::new();
    shutdown.listen()?;
    let interface = HttpInterface::prepare();
    let Some(runtime) = process::open(settings, ProcessRole::Part, &shutdown).await? else { return Ok(()) };
    let listener = lectern_api::bind(&runtime)?;
    lectern_api::run(runtime, listener, interface, &shutdown).await
}
