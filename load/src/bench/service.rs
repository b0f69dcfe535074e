//! The service as child processes: started, waited for, measured, stopped.

use std::{
    ffi::OsString,
    fs::File,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use reqwest::{Method, StatusCode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::{
    process::{Child, Command},
    time::Instant,
};
use url::Url;

use super::{BenchError, machine};
use crate::api::ApiClient;

/// The longest that a start may take, also of a service that holds a lot.
const START: Duration = Duration::from_mins(5);
/// The longest that a stop may take; then the process is killed.
const STOP: Duration = Duration::from_mins(1);
/// How often a start is looked at.
const POLL: Duration = Duration::from_millis(2);

/// Which programs, with which settings.
#[derive(Clone, Debug)]
pub(crate) struct ServiceSetup {
    /// The programs; the first one answers requests.
    pub(crate) programs: Vec<PathBuf>,
    /// Where the data and the logs go.
    pub(crate) folder: PathBuf,
    /// The database of a cluster.
    pub(crate) database: Option<Url>,
    /// Settings of all of them.
    pub(crate) env: Vec<(String, OsString)>,
}

impl ServiceSetup {
    /// The same with one more setting.
    #[must_use]
    pub(crate) fn with(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The same, searching by words only.
    #[must_use]
    pub(crate) fn without_model(self) -> Self {
        self.with("LECTERN_EMBEDDER", "none")
    }

    /// The same, searching by meaning too, with the model whose files are in this folder.
    #[must_use]
    pub(crate) fn with_model(self, folder: &Path) -> Self {
        self.with("LECTERN_EMBEDDER", "local").with("LECTERN_EMBEDDING_MODEL_DIR", folder)
    }

    /// The folder in which the service keeps its data.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Starts every program, and waits until all are ready; how long that took.
    pub(crate) async fn start(&self) -> Result<(RunningService, Duration), BenchError> {
        let began = Instant::now();
        let mut processes = Vec::new();
        for program in &self.programs {
            processes.push(ServiceProcess::spawn(program, self)?);
        }
        let ready = async {
            let mut addresses = Vec::new();
            for process in &mut processes {
                addresses.push(process.until_ready().await?);
            }
            Ok::<_, BenchError>(addresses)
        };
        let addresses = tokio::time::timeout(START, ready).await.map_err(|_| BenchError::Process {
            name: "the service".to_owned(),
            what: format!("is not ready after {START:?}"),
            log: self.folder.clone(),
        })??;
        let lasted = began.elapsed();
        let apis: Result<Vec<_>, _> = addresses.iter().map(ApiClient::new).collect();
        Ok((RunningService { processes, apis: apis? }, lasted))
    }
}

/// A running service. What is not stopped is killed when this is dropped.
pub(crate) struct RunningService {
    processes: Vec<ServiceProcess>,
    apis: Vec<ApiClient>,
}

impl RunningService {
    /// A client that is not signed in.
    pub(crate) fn api(&self) -> Result<&ApiClient, BenchError> {
        self.apis.first().ok_or(BenchError::Arguments("there is no program to measure"))
    }

    /// What each process holds, in bytes, with its name.
    pub(crate) fn resident(&self) -> Vec<(String, u64)> {
        let held =
            |process: &ServiceProcess| Some((process.name.clone(), machine::resident(process.child.id()?)?));
        self.processes.iter().filter_map(held).collect()
    }

    /// Waits until the embedding model is open in every process.
    pub(crate) async fn until_model_is_open(&self) -> Result<(), BenchError> {
        let deadline = Instant::now() + START;
        for api in &self.apis {
            loop {
                let (_, health) = api.health().await?;
                let embedder = &health["data"]["parts"]["embedder"];
                if embedder["status"] == "up" {
                    break;
                }
                if embedder["status"] == "none" || Instant::now() > deadline {
                    return Err(BenchError::Model(embedder.to_string()));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }

    /// Asks every process to end, and waits until they have.
    pub(crate) async fn stop(mut self) -> Result<(), BenchError> {
        for process in &self.processes {
            process.signal(Signal::TERM);
        }
        for process in &mut self.processes {
            process.stopped().await?;
        }
        Ok(())
    }
}

struct ServiceProcess {
    name: String,
    child: Child,
    log: PathBuf,
}

impl ServiceProcess {
    fn spawn(program: &Path, setup: &ServiceSetup) -> Result<Self, BenchError> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = setup.folder.join(format!("{name}.log"));
        let failed = |error: std::io::Error| BenchError::Process {
            name: name.clone(),
            what: format!("does not start: {error}"),
            log: log.clone(),
        };
        let output = File::create(&log).map_err(failed)?;
        let mut command = Command::new(program);
        // Nothing of the caller's own settings.
        command.env_clear().current_dir(&setup.folder);
        for variable in ["PATH", "TMPDIR", "LD_LIBRARY_PATH"] {
            if let Some(value) = std::env::var_os(variable) {
                command.env(variable, value);
            }
        }
        command
            .env("HOME", &setup.folder)
            .env("LECTERN_DATA_DIR", setup.data())
            // Any free port; the log tells which.
            .env("LECTERN_ADDR", "127.0.0.1:0")
            .env("LECTERN_WORKER_ADDR", "127.0.0.1:0")
            .env("LECTERN_LOG_FORMAT", "json")
            .envs(setup.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(failed)?)
            .stderr(output)
            .kill_on_drop(true);
        let child = command.spawn().map_err(failed)?;
        Ok(Self { name, child, log })
    }

    /// Waits until it is ready, and returns its address.
    async fn until_ready(&mut self) -> Result<Url, BenchError> {
        let address = loop {
            if let Some(status) = self.child.try_wait().map_err(|error| self.failed(&error.to_string()))? {
                return Err(self.failed(&format!("has ended: {status}")));
            }
            match tokio::fs::read_to_string(&self.log).await.ok().as_deref().and_then(listening) {
                Some(address) => break address,
                None => tokio::time::sleep(POLL).await,
            }
        };
        let api = ApiClient::new(&address)?;
        loop {
            let answer = api.request(Method::GET, "/health/ready").send().await;
            if answer.is_ok_and(|answer| answer.status() == StatusCode::OK) {
                return Ok(address);
            }
            if let Some(status) = self.child.try_wait().map_err(|error| self.failed(&error.to_string()))? {
                return Err(self.failed(&format!("has ended: {status}")));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // One that has ended by itself is noticed by whoever waits for it.
            let _ = kill_process(pid, signal);
        }
    }

    async fn stopped(&mut self) -> Result<(), BenchError> {
        let status: ExitStatus = match tokio::time::timeout(STOP, self.child.wait()).await {
            Ok(status) => status.map_err(|error| self.failed(&error.to_string()))?,
            Err(_) => {
                self.child.kill().await.map_err(|error| self.failed(&error.to_string()))?;
                return Err(self.failed(&format!("did not stop within {STOP:?}, and was killed")));
            }
        };
        if status.success() { Ok(()) } else { Err(self.failed(&format!("ended with {status}"))) }
    }

    fn failed(&self, what: &str) -> BenchError {
        BenchError::Process { name: self.name.clone(), what: what.to_owned(), log: self.log.clone() }
    }
}

/// Where a process listens, as its log says.
fn listening(log: &str) -> Option<Url> {
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut said = events.filter(|event| event["fields"]["message"] == "listening");
    let address = said.next()?["fields"]["addr"].as_str()?.to_owned();
    Url::parse(&format!("http://{address}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_the_log() {
        let log = "not JSON\n{\"fields\":{\"message\":\"opening\"}}\n\
                   {\"fields\":{\"message\":\"listening\",\"addr\":\"127.0.0.1:4711\"}}\n{\"fields\":{\"mess";
        assert_eq!(listening(log).unwrap().as_str(), "http://127.0.0.1:4711/");
        assert_eq!(listening("{\"fields\":{\"message\":\"list"), None);
    }
}
