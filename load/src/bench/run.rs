//! One run of a measuring command.

use std::{path::Path, time::SystemTime};

use tempfile::TempDir;
use tokio::process::Command;

use super::{BenchError, RunDatabases, ServiceArgs, ServiceMode, args::ServiceModes, command_line, machine};
use crate::{out::note, stop};

/// Where a run has its files and its databases.
pub(crate) struct BenchRun<'a> {
    pub(super) args: &'a ServiceArgs,
    folder: TempDir,
    pub(super) databases: Option<RunDatabases>,
}

/// Runs `measure`, unless somebody asks for the end. The databases that it made are dropped whatever becomes of it, and its folder
/// goes too, unless its logs say what went wrong.
pub(crate) async fn bench<T>(
    args: &ServiceArgs,
    measure: impl AsyncFnOnce(&BenchRun<'_>) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    args.check()?;
    let requested = stop::requested()?;
    let folder = tempfile::Builder::new().prefix("lectern-load-").tempdir()?;
    let run = BenchRun { args, folder, databases: args.database_url.as_ref().map(RunDatabases::on) };
    let measured = tokio::select! {
        measured = measure(&run) => measured,
        () = stop::wait(requested, 1) => Err(BenchError::Stopped),
    };
    if let Some(databases) = &run.databases
        && let Err(error) = databases.drop_all().await
    {
        note(&format!("a database was left behind: {error}"));
    }
    if let Err(BenchError::Process { .. } | BenchError::Answer(_) | BenchError::Model(_)) = &measured {
        note(&format!("the data and the logs are in {}", run.folder.keep().display()));
    }
    measured
}

impl BenchRun<'_> {
    /// What is measured, one after the other. Every program is there.
    pub(crate) fn modes(&self) -> Result<Vec<ServiceMode<'_>>, BenchError> {
        self.args.modes().into_iter().map(|(title, names)| ServiceMode::new(self, title, names)).collect()
    }

    /// The folder of this run.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Lines about the machine, the programs, the servers, and how this program was started.
    pub(crate) async fn facts(&self) -> Result<Vec<String>, BenchError> {
        let now = humantime::format_rfc3339_seconds(now()).to_string();
        let measured = format!("{}, measured {}", self.version().await?, now.get(..10).unwrap_or(&now));
        let mut facts = vec![machine::facts(), measured];
        if self.args.mode != ServiceModes::Embedded
            && let Some(databases) = &self.databases
        {
            let index = if self.args.qdrant_url.is_some() { "Qdrant" } else { "PostgreSQL" };
            facts.push(format!("Cluster: {}, Redis; index in {index}", databases.describe().await?));
        }
        facts.push(format!("`{}`", command_line(std::env::args().skip(1))));
        Ok(facts)
    }

    async fn version(&self) -> Result<String, BenchError> {
        let is_cluster = self.args.mode == ServiceModes::Cluster;
        let program = self.args.programs.join(if is_cluster { "lectern-api" } else { "lectern" });
        let output = Command::new(program).arg("--version").output().await?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

fn now() -> SystemTime {
    #[expect(clippy::disallowed_methods, reason = "the date of a measurement, which nothing goes by")]
    SystemTime::now()
}
