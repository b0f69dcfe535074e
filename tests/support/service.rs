//! The real `lectern` binary as a child process: started, watched, killed, stopped and started again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::client::Client;
use super::db::Database;
use super::within_deadline;

/// How often a state that cannot announce itself is looked at.
const POLL: Duration = Duration::from_millis(10);

/// Which stores the service runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything in the data directory.
    Embedded,
    /// The relational store in a PostgreSQL database of the test's own.
    Postgres,
}

/// How a service is to be started: its settings, its data directory and its database.
///
/// The process sees no variable of the test's own environment, only what is set here. The defaults suit tests: any free
/// port, sources on loopback may be fetched, no embedding model is downloaded, anybody may sign up.
#[derive(Clone)]
pub struct Setup {
    mode: Mode,
    env: BTreeMap<String, OsString>,
    database: Option<Arc<Database>>,
    data_dir: Arc<TempDir>,
}

impl Setup {
    fn new(mode: Mode) -> Self {
        let data_dir = tempfile::Builder::new().prefix("lectern-").tempdir().expect("a temporary directory");
        let mut setup = Self { mode, env: BTreeMap::new(), database: None, data_dir: Arc::new(data_dir) }
            .env("LECTERN_ADDR", "127.0.0.1:0")
            .env("LECTERN_LOG_FORMAT", "json")
            .env("LECTERN_EMBEDDER", "none")
            .env("LECTERN_EGRESS_ALLOW", "127.0.0.0/8")
            .env("LECTERN_SIGN_UP", "open")
            .env("RUST_BACKTRACE", "1");
        setup.env.insert("LECTERN_DATA_DIR".to_owned(), setup.data_dir.path().into());
        setup.env.insert("HOME".to_owned(), setup.data_dir.path().into());
        // What the system and coverage tools need to run a program at all.
        for name in ["PATH", "TMPDIR", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(name) {
                setup.env.insert(name.to_owned(), value);
            }
        }
        setup
    }

    /// Sets an environment variable of the service.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// Leaves a variable unset, the defaults of the tests included.
    pub fn without(mut self, name: &str) -> Self {
        self.env.remove(name);
        self
    }

    /// Starts the service and waits until it is ready.
    pub async fn start(self) -> Service {
        let mut service = Service::spawn(self).await;
        if let Err(status) = service.listens().await {
            panic!("the service ended at its start: {status}");
        }
        service.is_ready().await;
        service
    }

    /// Starts the service and expects that it refuses to run.
    pub async fn start_refused(self) -> Refusal {
        let mut service = Service::spawn(self).await;
        match service.listens().await {
            Ok(()) => panic!("the service started, and should have refused to"),
            Err(status) => Refusal { status, log: service.logs() },
        }
    }

    async fn command(&mut self) -> Command {
        if self.mode == Mode::Postgres {
            if self.database.is_none() {
                self.database = Some(Arc::new(Database::fresh().await));
            }
            let url = self.database.as_ref().map(|database| database.url().into()).unwrap_or_default();
            self.env.entry("DATABASE_URL".to_owned()).or_insert(url);
            // Several processes may share one database, so this mode makes no key of its own.
            let key = || "a key that only these tests ever use".into();
            self.env.entry("LECTERN_SECRET_KEY".to_owned()).or_insert_with(key);
        }
        let mut command = dying_with_this_thread(env!("CARGO_BIN_EXE_lectern"));
        command.env_clear().envs(&self.env).current_dir(self.data_dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// How a service that would not start ended.
#[derive(Debug)]
pub struct Refusal {
    pub status: ExitStatus,
    /// Everything that it wrote.
    pub log: String,
}

/// A running service. It is killed when this is dropped; when the test is failing, the end of its log is printed.
pub struct Service {
    // The process goes before the database and the directory that it uses.
    process: Process,
    setup: Setup,
    log: Arc<Mutex<Log>>,
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

    /// A second process with the settings, the data directory and the database of this one.
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
        self.setup.data_dir.path()
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// The memory that the process holds at this moment, in bytes. Linux only.
    pub fn rss_bytes(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a resident size");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
        kib * 1024
    }

    /// Everything that the process, and those before a restart, wrote so far.
    pub fn logs(&self) -> String {
        self.log.lock().text.clone()
    }

    /// The log's lines that are JSON objects.
    pub fn log_events(&self) -> Vec<Value> {
        self.logs().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Fails when one of `secrets` was logged, as it is or escaped as in JSON.
    pub fn assert_no_secret_in_logs(&self, secrets: &[&str]) {
        let logs = self.logs();
        assert!(!logs.is_empty(), "a log that says nothing proves nothing");
        for secret in secrets {
            assert!(!secret.is_empty(), "the empty text is no secret");
            let quoted = Value::from(*secret).to_string();
            let escaped = &quoted[1..quoted.len() - 1];
            let leak = logs.lines().find(|line| line.contains(secret) || line.contains(escaped));
            assert_eq!(leak, None, "{secret:?} is in the log");
        }
    }

    /// Ends the process at once (SIGKILL), as a crash or a power cut would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Asks the process to end (SIGTERM) without waiting for it.
    pub fn ask_to_stop(&self) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, Signal::TERM).expect("the process runs");
    }

    /// Asks the process to end (SIGTERM) and waits until it has.
    pub async fn terminate(&mut self) -> ExitStatus {
        self.ask_to_stop();
        let end = async {
            loop {
                if let Some(status) = self.process.ended() {
                    return status;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline("the service to stop", end).await
    }

    /// Starts it again, with the same settings and data. If it still runs, it is killed first. The port may change.
    pub async fn restart(&mut self) {
        self.kill();
        self.log.lock().address = None;
        self.process = Process::spawn(self.setup.command().await, &self.log);
        if let Err(status) = self.listens().await {
            panic!("the service ended when it was restarted: {status}");
        }
        self.is_ready().await;
    }

    async fn spawn(mut setup: Setup) -> Self {
        let log = Arc::default();
        let process = Process::spawn(setup.command().await, &log);
        Self { process, setup, log, base_url: Arc::default() }
    }

    /// Waits until the process says where it listens, or has ended.
    async fn listens(&mut self) -> Result<(), ExitStatus> {
        let listens = async {
            loop {
                if let Some(address) = self.log.lock().address {
                    *self.base_url.write() = format!("http://{address}");
                    return Ok(());
                }
                if let Some(status) = self.process.ended() {
                    return Err(status);
                }
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline("the service to listen", listens).await
    }

    async fn is_ready(&self) {
        let client = self.client();
        let ready = async {
            while !client.is_ready().await {
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline("/health/ready to be 200", ready).await;
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.process.kill();
        if std::thread::panicking() {
            const TAIL: usize = 60;
            let log = self.log.lock();
            let lines: Vec<_> = log.text.lines().collect();
            eprintln!("--- the end of the service's log ---");
            for line in &lines[lines.len().saturating_sub(TAIL)..] {
                eprintln!("{line}");
            }
        }
    }
}

/// What the process wrote, and where it said that it listens.
#[derive(Default)]
struct Log {
    text: String,
    address: Option<SocketAddr>,
}

impl Log {
    fn add(&mut self, line: &str) {
        self.text.push_str(line);
        if let Ok(event) = serde_json::from_str::<Value>(line)
            && event["fields"]["message"] == "listening"
        {
            self.address = event["fields"]["addr"].as_str().and_then(|address| address.parse().ok());
        }
    }
}

/// A child process whose output is read on threads, so that it never blocks on a full pipe.
struct Process {
    child: Child,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    fn spawn(mut command: Command, log: &Arc<Mutex<Log>>) -> Self {
        let mut child = command.spawn().expect("the service's binary starts");
        let stdout = child.stdout.take().expect("a pipe");
        let stderr = child.stderr.take().expect("a pipe");
        let readers = vec![read_lines(stdout, Arc::clone(log)), read_lines(stderr, Arc::clone(log))];
        Self { child, readers }
    }

    /// How the process ended, once it has and all that it wrote is in the log.
    fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().expect("a child can be waited for")?;
        self.drain();
        Some(status)
    }

    fn kill(&mut self) {
        // Both fail only when it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.drain();
    }

    /// Waits for the readers, but not long: a grandchild may hold the pipes open.
    fn drain(&self) {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(1) && !self.readers.iter().all(JoinHandle::is_finished)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn read_lines(pipe: impl Read + Send + 'static, log: Arc<Mutex<Log>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut lines = BufReader::new(pipe);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            log.lock().add(&String::from_utf8_lossy(&line));
            line.clear();
        }
    })
}

/// A command whose process ends with this thread, and so with the test, even when the test itself is killed.
///
/// The kernel can do that only for a process that asks for it: where there is util-linux's `setpriv`, that asks and becomes
/// the program, in the same process. Elsewhere only dropping the [`Service`] ends it.
fn dying_with_this_thread(program: &str) -> Command {
    static SETPRIV: OnceLock<bool> = OnceLock::new();
    let setpriv = || {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        command
    };
    let works = *SETPRIV.get_or_init(|| {
        let probe = setpriv().arg("true").stdout(Stdio::null()).stderr(Stdio::null()).status();
        cfg!(target_os = "linux") && probe.is_ok_and(|status| status.success())
    });
    if works {
        let mut command = setpriv();
        command.arg(program);
        command
    } else {
        Command::new(program)
    }
}
