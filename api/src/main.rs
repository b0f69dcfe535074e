//! `lectern-api`: answers requests, and queues what workers do. For installations of several processes.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use lectern_runtime::{
    Role,
    process::{self, Failure},
};
use lectern_shared::{config::Settings, shutdown::Shutdown};

/// Lectern's API; documents are ingested by `lectern-worker`.
#[derive(Parser)]
#[command(name = "lectern-api", version)]
struct Cli {
    /// A TOML file with settings; the environment wins over it.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Answer requests (what happens without a command).
    Serve,
    /// Ask the running API whether it is ready.
    Health,
}

fn main() -> ExitCode {
    process::shield();
    let Cli { config, command } = Cli::parse();
    process::run(config.as_deref(), async |settings| match command.unwrap_or(Command::Serve) {
        Command::Serve => Box::pin(serve(settings)).await,
        Command::Health => process::ask_health(settings.addr).await,
    })
}

async fn serve(settings: Settings) -> Result<(), Failure> {
    lectern_api::check_settings(&settings)?;
    let shutdown = Shutdown::new();
    shutdown.listen()?;
    let Some(runtime) = process::open(settings, Role::Part, &shutdown).await? else { return Ok(()) };
    let listener = lectern_api::bind(&runtime)?;
    lectern_api::run(runtime, listener, &shutdown).await
}
