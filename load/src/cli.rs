//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{
    grow::{self, GrowArgs},
    mix::{self, MixArgs},
    out::note,
    table::{self, TableArgs},
};

/// Puts a running Lectern under load, and measures it.
#[derive(Parser)]
#[command(name = "lectern-load", version)]
struct LoadCli {
    #[command(subcommand)]
    command: LoadCommand,
}

#[derive(Subcommand)]
enum LoadCommand {
    Grow(GrowArgs),
    Mix(MixArgs),
    Table(TableArgs),
}

/// Runs the command; 0 when all was well, 1 when not, 2 when the command line is wrong.
pub(crate) fn main() -> ExitCode {
    let LoadCli { command } = LoadCli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            note(&format!("cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let outcome: Result<bool, String> = runtime.block_on(async {
        match command {
            LoadCommand::Grow(args) => {
                grow::run(args).await.map(|()| true).map_err(|error| error.to_string())
            }
            LoadCommand::Mix(args) => mix::run(args).await.map_err(|error| error.to_string()),
            LoadCommand::Table(args) => {
                table::run(args).await.map(|()| true).map_err(|error| error.to_string())
            }
        }
    });
    // What is still under way must not keep the program.
    runtime.shutdown_background();
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            note(&error);
            ExitCode::FAILURE
        }
    }
}
