//! How a service is to be started: which programs, on which stores, with which settings.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::Path,
    process::{Command, ExitStatus},
    sync::Arc,
};

use tempfile::TempDir;

use super::{db::Database, process::dying_with_this_thread, redis, service::Service};

/// Which programs the service is, and which stores it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One program, with everything in the data directory.
    Embedded,
    /// One program, with the relational store in a PostgreSQL database of the test's own.
    Postgres,
    /// `lectern-api` and `lectern-worker`, over a PostgreSQL database of the test's own and the tests' Redis. They share
    /// the data directory, where the blobs are.
    Cluster,
}

/// One of the programs that are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Everything in one.
    Lectern,
    /// The API of a cluster.
    Api,
    /// A worker of a cluster.
    Worker,
}

impl Program {
    /// The path of the binary.
    pub fn path(self) -> &'static str {
        match self {
            Self::Lectern => env!("CARGO_BIN_EXE_lectern"),
            Self::Api => env!("CARGO_BIN_EXE_lectern-api"),
            Self::Worker => env!("CARGO_BIN_EXE_lectern-worker"),
        }
    }
}

/// How a service is to be started: its settings, its data directory and its database.
///
/// The processes see no variable of the test's own environment, only what is set here. The defaults suit tests: any free
/// port, sources on loopback may be fetched, no embedding model is downloaded, anybody may sign up, and no test has to
/// count its requests, nor those that are refused.
#[derive(Clone)]
pub struct Setup {
    mode: Mode,
    workers: usize,
    env: BTreeMap<String, OsString>,
    /// How many files a process may have open when it starts, if not as many as the test.
    open_files: Option<u64>,
    makes_database: bool,
    database: Option<Arc<Database>>,
    data_dir: Arc<TempDir>,
}

impl Setup {
    pub(super) fn new(mode: Mode) -> Self {
        let data_dir = tempfile::Builder::new().prefix("lectern-").tempdir().expect("a temporary directory");
        let workers = usize::from(mode == Mode::Cluster);
        let mut setup = Self {
            mode,
            workers,
            env: BTreeMap::new(),
            open_files: None,
            makes_database: mode != Mode::Embedded,
            database: None,
            data_dir: Arc::new(data_dir),
        }
        .env("LECTERN_ADDR", "127.0.0.1:0")
        .env("LECTERN_LOG_FORMAT", "json")
        .env("LECTERN_EMBEDDER", "none")
        .env("LECTERN_EGRESS_ALLOW", "127.0.0.0/8")
        .env("LECTERN_SIGN_UP", "open")
        .env("LECTERN_RATE_LIMIT", "off")
        .env("LECTERN_REFUSAL_RATE", "off")
        .env("LECTERN_SOURCE_PAUSE", "0s")
        .env("RUST_BACKTRACE", "1");
        setup.env.insert("LECTERN_DATA_DIR".to_owned(), setup.data_dir.path().into());
        setup.env.insert("HOME".to_owned(), setup.data_dir.path().into());
        // What the system and coverage tools need to run a program at all.
        for name in ["PATH", "TMPDIR", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(name) {
                setup.env.insert(name.to_owned(), value);
            }
        }
        if mode != Mode::Embedded {
            // Several processes may share one database, so these modes make no key of their own.
            setup = setup.env("LECTERN_SECRET_KEY", "a key that only these tests ever use");
        }
        if mode == Mode::Cluster {
            setup = setup.redis_url(&redis::shared_url());
        }
        setup
    }

    /// Sets an environment variable of every process.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.makes_database &= name != "DATABASE_URL";
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// Leaves a variable unset, the defaults of the tests included.
    pub fn without(mut self, name: &str) -> Self {
        self.makes_database &= name != "DATABASE_URL";
        self.env.remove(name);
        self
    }

    /// Every variable that the processes see.
    pub fn environment(&self) -> &BTreeMap<String, OsString> {
        &self.env
    }

    /// Uses this database instead of one that is made for the test.
    pub fn database_url(self, url: &str) -> Self {
        self.env("DATABASE_URL", url)
    }

    /// Uses this Redis server instead of the one that all tests share.
    pub fn redis_url(self, url: &str) -> Self {
        self.env("REDIS_URL", url)
    }

    /// How many workers a cluster has: none leaves the API alone. One if this is not said.
    pub fn workers(mut self, count: usize) -> Self {
        assert_eq!(self.mode, Mode::Cluster, "only a cluster has workers of its own");
        self.workers = count;
        self
    }

    /// Lets every process start with this soft limit of open files.
    pub fn open_files(mut self, soft: u64) -> Self {
        self.open_files = Some(soft);
        self
    }

    /// Starts the service and waits until it is ready: the API answers so, and every worker has said that it works.
    pub async fn start(self) -> Service {
        let mut service = Service::spawn(self).await;
        service.is_up().await;
        service
    }

    /// Starts every process of the service, and waits for none.
    pub async fn begin(self) -> Service {
        Service::spawn(self).await
    }

    /// Starts the service and expects that each of its processes refuses to run.
    pub async fn start_refused(self) -> Refusal {
        Service::spawn(self).await.refusal().await
    }

    /// Where everything is that is not in a database.
    pub fn data_dir(&self) -> &Path {
        self.data_dir.path()
    }

    /// The programs to run, each with a name for messages. The first is the one that answers requests.
    pub(super) fn programs(&self) -> Vec<(String, Program)> {
        if self.mode != Mode::Cluster {
            return vec![("lectern".to_owned(), Program::Lectern)];
        }
        let workers = (0..self.workers).map(|number| (format!("lectern-worker {number}"), Program::Worker));
        [("lectern-api".to_owned(), Program::Api)].into_iter().chain(workers).collect()
    }

    /// Makes the database, if one is wanted and not there yet.
    pub(super) async fn prepare(&mut self) {
        if self.makes_database {
            self.makes_database = false;
            let database = Box::pin(Database::migrated()).await;
            self.env.insert("DATABASE_URL".to_owned(), database.url().into());
            self.database = Some(Arc::new(database));
        }
    }

    /// The command that runs one of the programs with these settings.
    pub(super) fn command(&self, program: Program) -> Command {
        let mut command = match self.open_files {
            None => dying_with_this_thread(program.path()),
            Some(soft) => {
                let mut shell = dying_with_this_thread("sh");
                shell.args(["-c", "ulimit -Sn \"$0\" && exec \"$1\"", &soft.to_string(), program.path()]);
                shell
            }
        };
        command.env_clear().envs(&self.env).current_dir(self.data_dir.path());
        command
    }
}

/// How a service that would not start ended.
#[derive(Debug)]
pub struct Refusal {
    /// Of several processes, the first one's.
    pub status: ExitStatus,
    /// Everything that was written, by all of them.
    pub log: String,
    /// Each process by itself: its name, its end and its log.
    pub processes: Vec<(String, ExitStatus, String)>,
}
