//! What `lectern-load table` takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use url::Url;

/// Which programs the service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ServiceModes {
    /// `lectern`, with everything in its data directory.
    Embedded,
    /// `lectern-api` and `lectern-worker`, over PostgreSQL and Redis.
    Cluster,
    /// One after the other.
    Both,
}

/// Start the service, measure it with one request at a time, and print the table of docs/performance.md.
#[derive(Args, Debug)]
pub(crate) struct TableArgs {
    /// The folder with `lectern`, `lectern-api` and `lectern-worker`.
    #[arg(long, default_value = "target/release")]
    pub(super) programs: PathBuf,
    /// What is measured.
    #[arg(long, value_enum, default_value_t = ServiceModes::Both)]
    pub(super) mode: ServiceModes,
    /// A PostgreSQL server, as a role that may create databases: the cluster gets one that is dropped at the end.
    #[arg(long)]
    pub(super) database_url: Option<Url>,
    /// A Redis server for the cluster.
    #[arg(long)]
    pub(super) redis_url: Option<Url>,
    /// A Qdrant server for the cluster (gRPC address). Without it the index is in PostgreSQL.
    #[arg(long)]
    pub(super) qdrant_url: Option<Url>,
    /// The files of the embedding model; without them nothing is measured by meaning.
    #[arg(long)]
    pub(super) model_dir: Option<PathBuf>,
    /// Where the table goes besides standard output. In a file that has the lines `<!-- table -->` and `<!-- /table -->`, what
    /// stands between them is replaced.
    #[arg(long)]
    pub(super) output: Option<PathBuf>,
    /// Documents in the corpus that is listed, searched and asked.
    #[arg(long, default_value_t = 1_000)]
    pub(super) documents: u64,
    /// Requests that are timed of each kind, after 50 to warm up.
    #[arg(long, default_value_t = 500)]
    pub(super) requests: u64,
    /// Starts that are timed of each kind.
    #[arg(long, default_value_t = 5)]
    pub(super) starts: usize,
    /// Small documents whose ingestion is timed.
    #[arg(long, default_value_t = 4_000)]
    pub(super) small: u64,
    /// PDFs of 50 pages whose ingestion is timed.
    #[arg(long, default_value_t = 12)]
    pub(super) pdfs: u64,
}
