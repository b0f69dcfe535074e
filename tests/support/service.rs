//! The real binaries as child processes: started, watched, killed, stopped and started again.

use std::{path::Path, process::ExitStatus, sync::Arc};

use parking_lot::{Mutex, RwLock};
use rustix::process::Signal;
use serde_json::Value;

pub use super::setup::{Mode, Refusal, Setup};
use super::within_deadline;
use super::{
    client::Client,
    process::{Log, POLL, Process},
    setup::Program,
};

/// A running service: one process, or in the cluster mode an API and its workers. All are killed when this is dropped;
/// when the test is failing, the ends of their logs are printed.
pub struct Service {
    // The processes go before the database and the directory that they use.
    api: Node,
    workers: Vec<Node>,
    setup: Setup,
    base_url: Arc<RwLock<String>>,
}

impl Service {
    /// Starts a service in the embedded mode.
    pub async fn start() -> Self {
        Self::in_mode(Mode::Embedded).start().await
    }

    /// A service to be started with settings of the test's own.
    pub fn in_mode(mode: Mode) -> Setup {
        Setup::new(mode)
    }

    /// More processes with the settings, the data directory and the database of this one.
    pub fn sibling(&self) -> Setup {
        self.setup.clone()
    }

    /// A client that is not signed in. It follows the service when that is restarted on another port.
    pub fn client(&self) -> Client {
        Client::new(Arc::clone(&self.base_url))
    }

    /// A client signed in to a new account.
    pub async fn signed_up(&self, email: &str) -> Client {
        self.client().sign_up(email, super::client::PASSWORD).await
    }

    /// Where it listens: `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn base_url(&self) -> String {
        self.base_url.read().clone()
    }

    /// The directory that it keeps its data in.
    pub fn data_dir(&self) -> &Path {
        self.setup.data_dir()
    }

    /// The process that answers requests.
    pub fn pid(&self) -> u32 {
        self.api.running().id()
    }

    /// The memory that the process which answers requests holds at this moment, in bytes. Linux only.
    pub fn rss_bytes(&self) -> u64 {
        rss_bytes(self.pid())
    }

    /// Everything that the processes, and those before a restart, wrote so far: the API's, then each worker's.
    pub fn logs(&self) -> String {
        self.nodes().map(|node| node.log.lock().text.clone()).collect()
    }

    /// The log's lines that are JSON objects.
    pub fn log_events(&self) -> Vec<Value> {
        self.logs().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits for the first line of the log that is `wanted`. A line may come after the answer that it tells of: the log is
    /// read from the process's output.
    pub async fn logged(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let looking = async {
            loop {
                if let Some(event) = self.log_events().into_iter().find(&wanted) {
                    return event;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline(&format!("{what} in the log"), looking).await
    }

    /// Fails when one of `secrets` was logged, as it is or escaped as in JSON.
    pub fn assert_no_secret_in_logs(&self, secrets: &[&str]) {
        for node in self.nodes() {
            let (name, logs) = (&node.name, &node.log.lock().text);
            assert!(!logs.is_empty(), "a log that says nothing proves nothing: {name}");
            for secret in secrets {
                assert!(!secret.is_empty(), "the empty text is no secret");
                let quoted = Value::from(*secret).to_string();
                let escaped = &quoted[1..quoted.len() - 1];
                let leak = logs.lines().find(|line| line.contains(secret) || line.contains(escaped));
                assert_eq!(leak, None, "{secret:?} is in the log of {name}");
            }
        }
    }

    // --- all processes -----------------------------------------------------------------------------------------------

    /// Ends every process at once (SIGKILL), as a crash or a power cut would.
    pub fn kill(&mut self) {
        // All of them before the first is waited for.
        for node in self.nodes_mut() {
            node.signal(Signal::KILL);
        }
        for node in self.nodes_mut() {
            node.kill();
        }
    }

    /// Asks every process to end (SIGTERM) without waiting for it.
    pub fn ask_to_stop(&mut self) {
        for node in self.nodes_mut() {
            node.signal(Signal::TERM);
        }
    }

    /// Asks every process to end (SIGTERM) and waits until they have. The first status that is no success, if there is one.
    pub async fn terminate(&mut self) -> ExitStatus {
        self.ask_to_stop();
        let mut statuses = Vec::new();
        for node in self.nodes_mut() {
            statuses.extend(node.wait().await);
        }
        let bad = statuses.iter().find(|status| !status.success());
        *bad.or(statuses.first()).expect("a process that ran")
    }

    /// Starts it again, with the same settings and data and all its workers. What still runs is killed first. The port may
    /// change.
    pub async fn restart(&mut self) {
        self.kill();
        let Self { api, workers, setup, .. } = self;
        for node in [api].into_iter().chain(workers) {
            node.start(setup);
        }
        self.is_up().await;
    }

    // --- one process -------------------------------------------------------------------------------------------------

    /// Kills (SIGKILL) the process that answers requests. In a cluster the workers go on.
    pub fn kill_api(&mut self) {
        self.api.kill();
    }

    /// Asks the process that answers requests to end (SIGTERM), and waits until it has.
    pub async fn stop_api(&mut self) -> ExitStatus {
        self.api.signal(Signal::TERM);
        self.api.wait().await.expect("an API that runs")
    }

    /// Starts the process that answers requests again. If it still runs, it is killed first. The port may change.
    pub async fn restart_api(&mut self) {
        self.api.start(&self.setup);
        self.is_up().await;
    }

    /// How many workers there are, running or not.
    pub fn worker_count(&self) -> usize {
        self.workers.len()
    }

    /// The process of a worker.
    pub fn worker_pid(&self, worker: usize) -> u32 {
        self.workers[worker].running().id()
    }

    /// The memory that a worker holds at this moment, in bytes. Linux only.
    pub fn worker_rss_bytes(&self, worker: usize) -> u64 {
        rss_bytes(self.worker_pid(worker))
    }

    /// Everything that a worker, and those before a restart, wrote so far.
    pub fn worker_logs(&self, worker: usize) -> String {
        self.workers[worker].log.lock().text.clone()
    }

    /// Where a worker answers about its health, `http://127.0.0.1:PORT`. `None` unless `LECTERN_WORKER_ADDR` is set.
    pub fn worker_url(&self, worker: usize) -> Option<String> {
        let address = self.workers[worker].log.lock().address;
        address.map(|address| format!("http://{address}"))
    }

    /// Kills (SIGKILL) a worker. Its jobs are others' when their leases have run out.
    pub fn kill_worker(&mut self, worker: usize) {
        self.workers[worker].kill();
    }

    /// Asks a worker to end (SIGTERM), and waits until it has.
    pub async fn stop_worker(&mut self, worker: usize) -> ExitStatus {
        self.workers[worker].signal(Signal::TERM);
        self.workers[worker].wait().await.expect("a worker that runs")
    }

    /// Starts a worker that was stopped or killed, and waits until it works. If it still runs, it is killed first.
    pub async fn start_worker(&mut self, worker: usize) {
        self.workers[worker].start(&self.setup);
        self.is_up().await;
    }

    /// As [`start_worker`](Self::start_worker), where the test means one that runs.
    pub async fn restart_worker(&mut self, worker: usize) {
        self.start_worker(worker).await;
    }

    /// Starts one more worker, waits until it works, and returns its number.
    pub async fn add_worker(&mut self) -> usize {
        let worker = self.workers.len();
        let mut node = Node::new(format!("lectern-worker {worker}"), Program::Worker);
        node.start(&self.setup);
        self.workers.push(node);
        self.is_up().await;
        worker
    }

    /// Freezes a worker (SIGSTOP): it is there, and does nothing until it is thawed.
    pub fn freeze_worker(&mut self, worker: usize) {
        self.workers[worker].signal(Signal::STOP);
    }

    /// Lets a frozen worker go on where it was (SIGCONT).
    pub fn thaw_worker(&mut self, worker: usize) {
        self.workers[worker].signal(Signal::CONT);
    }

    // --- starting ----------------------------------------------------------------------------------------------------

    /// Starts every process at the same moment, and waits for none.
    pub(super) async fn spawn(mut setup: Setup) -> Self {
        setup.prepare().await;
        let mut nodes = setup.programs().into_iter().map(|(name, program)| {
            let mut node = Node::new(name, program);
            node.start(&setup);
            node
        });
        let api = nodes.next().expect("a program");
        let workers = nodes.collect();
        Self { api, workers, setup, base_url: Arc::default() }
    }

    /// Waits until every process that was not stopped has started and the service is ready.
    pub(super) async fn is_up(&mut self) {
        let started = async {
            loop {
                let mut all = true;
                for node in self.nodes_mut() {
                    match node.state() {
                        State::Starting => all = false,
                        State::Started | State::Down => {}
                        State::Ended(status) => panic!("{} has ended by itself: {status}", node.name),
                    }
                }
                if all {
                    return;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline("every process to start", started).await;
        if self.api.process.is_some() {
            let address = self.api.log.lock().address.expect("the address that it listens at");
            *self.base_url.write() = format!("http://{address}");
            let client = self.client();
            let ready = async {
                while !client.is_ready().await {
                    tokio::time::sleep(POLL).await;
                }
            };
            within_deadline("/health/ready to be 200", ready).await;
        }
    }

    /// Waits until every process has ended, and fails when one starts instead.
    pub(super) async fn refusal(mut self) -> Refusal {
        let ended = async {
            loop {
                let mut processes = Vec::new();
                for node in self.nodes_mut() {
                    match node.state() {
                        State::Ended(status) => {
                            processes.push((node.name.clone(), status, node.log.lock().text.clone()));
                        }
                        State::Starting => {}
                        State::Started | State::Down => {
                            panic!("{} started, and should have refused to", node.name)
                        }
                    }
                }
                if processes.len() == self.nodes().count() {
                    return processes;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        let processes = within_deadline("every process to refuse", ended).await;
        Refusal { status: processes[0].1, log: self.logs(), processes }
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        [&self.api].into_iter().chain(&self.workers)
    }

    fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        [&mut self.api].into_iter().chain(&mut self.workers)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            for node in self.nodes() {
                eprintln!("--- the end of the log of {} ---\n{}", node.name, node.log.lock().tail());
            }
        }
    }
}

/// One program of the service, over all its restarts.
struct Node {
    name: String,
    program: Program,
    log: Arc<Mutex<Log>>,
    /// `None` after the test has stopped or killed it.
    process: Option<Process>,
}

enum State {
    /// The test has stopped or killed it.
    Down,
    /// It has not yet said that it is at work.
    Starting,
    Started,
    /// It has ended, and nobody had asked it to.
    Ended(ExitStatus),
}

impl Node {
    fn new(name: String, program: Program) -> Self {
        Self { name, program, log: Arc::default(), process: None }
    }

    fn start(&mut self, setup: &Setup) {
        self.kill();
        self.process = Some(Process::spawn(setup.command(self.program), &self.log));
    }

    fn running(&self) -> &Process {
        self.process.as_ref().unwrap_or_else(|| panic!("{} does not run", self.name))
    }

    fn state(&mut self) -> State {
        let Some(process) = &mut self.process else { return State::Down };
        match process.ended() {
            Some(status) => State::Ended(status),
            None if self.log.lock().started => State::Started,
            None => State::Starting,
        }
    }

    fn signal(&mut self, signal: Signal) {
        if let Some(process) = &mut self.process {
            process.signal(signal);
        }
    }

    /// Waits for its end, unless the test had already stopped it.
    async fn wait(&mut self) -> Option<ExitStatus> {
        let status = self.process.as_mut()?.wait(&self.name).await;
        self.process = None;
        Some(status)
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }
}

fn rss_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a resident size");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
    kib * 1024
}
