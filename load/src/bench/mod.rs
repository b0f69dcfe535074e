//! What every measurement of a service needs that it starts itself: the programs with their databases, requests that are timed,
//! and the page that the figures go to. `table` and `grow` use it; it knows neither.

mod args;
mod column;
mod database;
mod machine;
mod mode;
mod page;
mod queue;
mod run;
mod service;
mod shown;
mod timed;

use std::{io, path::PathBuf};

use crate::api::RequestProblem;

pub(crate) use self::{
    args::ServiceArgs,
    column::{FigureColumn, markdown_rows},
    database::RunDatabases,
    mode::ServiceMode,
    page::{PageMarkers, command_line, write_table},
    queue::{searchable, until_idle},
    run::{BenchRun, bench},
    service::{RunningService, ServiceSetup},
    shown::{both, grouped, median, megabytes, millis},
    timed::{RequestPlan, timed},
};

/// Clients that add documents at once.
pub(crate) const CLIENTS: usize = 8;
/// About what a small document has, in bytes: it becomes one passage.
pub(crate) const SMALL: usize = 600;

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// Arguments that do not fit together.
    #[error("{0}")]
    Arguments(&'static str),
    /// A file that a table cannot go into.
    #[error("{} has no lines <!-- {name} --> and <!-- /{name} -->: what was measured is in {}", file.display(), beside.display())]
    NoMarkers {
        /// The file, which is as it was.
        file: PathBuf,
        /// The name of the markers.
        name: &'static str,
        /// Where the table is.
        beside: PathBuf,
    },
    /// A program of the service.
    #[error("{name} {what}; its log is {}", log.display())]
    Process {
        /// Which one.
        name: String,
        /// What it did.
        what: String,
        /// What it wrote, or the folder of all logs.
        log: PathBuf,
    },
    /// There is no such program.
    #[error("--programs: {} cannot be read: {error}", path.display())]
    Program {
        /// Where it should be.
        path: PathBuf,
        /// Why it is not.
        error: io::Error,
    },
    /// The embedding model.
    #[error("the model of --model-dir is not open: {0}")]
    Model(String),
    /// A wrong answer, or none.
    #[error("the service answered badly: {0}")]
    Answer(#[from] RequestProblem),
    /// The PostgreSQL server.
    #[error("PostgreSQL: {0}")]
    Database(#[from] sqlx::Error),
    /// Files, and standard output.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Somebody asked for it.
    #[error("stopped before the end")]
    Stopped,
}
