//! Which service is measured.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use url::Url;

use super::BenchError;

/// Which programs the service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServiceModes {
    /// `lectern`, with everything in its data directory.
    Embedded,
    /// `lectern-api` and `lectern-worker`, over PostgreSQL and Redis.
    Cluster,
    /// One after the other.
    Both,
}

/// The programs of the service, and the servers that they use.
#[derive(Args, Debug)]
pub(crate) struct ServiceArgs {
    /// The folder with `lectern`, `lectern-api` and `lectern-worker`.
    #[arg(long, default_value = "target/release")]
    pub(crate) programs: PathBuf,
    /// What is measured.
    #[arg(long, value_enum, default_value_t = ServiceModes::Both)]
    pub(crate) mode: ServiceModes,
    /// A PostgreSQL server, as a role that may create databases: the cluster gets its own, which are dropped at the end.
    #[arg(long)]
    pub(crate) database_url: Option<Url>,
    /// A Redis server for the cluster.
    #[arg(long)]
    pub(crate) redis_url: Option<Url>,
    /// A Qdrant server for the cluster (gRPC address). Without it the index is in PostgreSQL.
    #[arg(long)]
    pub(crate) qdrant_url: Option<Url>,
    /// The files of the embedding model; without them nothing is measured by meaning.
    #[arg(long)]
    pub(crate) model_dir: Option<PathBuf>,
    /// A setting of the service besides those of the measurement, `NAME=value`; can be given several times. Nothing of this program's
    /// own environment is handed on.
    #[arg(long = "setting", value_parser = setting)]
    pub(crate) settings: Vec<(String, String)>,
}

fn setting(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a setting is NAME=value"),
    }
}

impl ServiceArgs {
    /// Refuses a cluster without its servers.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let is_cluster = self.mode != ServiceModes::Embedded;
        if is_cluster && (self.database_url.is_none() || self.redis_url.is_none()) {
            return Err(BenchError::Arguments("a cluster needs --database-url and --redis-url"));
        }
        Ok(())
    }

    /// The modes that are measured, in their order, each with its programs.
    pub(super) fn modes(&self) -> Vec<(&'static str, &'static [&'static str])> {
        const EMBEDDED: (&str, &[&str]) = ("embedded", &["lectern"]);
        const CLUSTER: (&str, &[&str]) = ("cluster", &["lectern-api", "lectern-worker"]);
        match self.mode {
            ServiceModes::Embedded => vec![EMBEDDED],
            ServiceModes::Cluster => vec![CLUSTER],
            ServiceModes::Both => vec![EMBEDDED, CLUSTER],
        }
    }
}
