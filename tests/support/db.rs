//! Databases of a test's own, on the PostgreSQL server that `scripts/test.sh` starts; and whole servers, for tests that
//! take them away.

use std::{
    fs::OpenOptions,
    io::Write,
    os::unix::{fs::chown, process::CommandExt},
    path::Path,
    process::Command,
    sync::{Arc, Weak},
};

use lectern_shared::config::DatabaseLocation;
use rustix::process::{Signal, geteuid};
use secrecy::SecretString;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tempfile::TempDir;
use tokio::sync::Mutex;
use url::Url;
use uuid::Uuid;

use super::{
    process::{POLL, signalled_with_this_thread},
    server::Server,
    within_deadline,
};

/// A PostgreSQL database that nobody else uses. It is dropped with this value, whoever is still connected.
#[derive(Debug)]
pub struct Database {
    server: String,
    name: String,
    url: String,
    /// What it was copied from goes with the last copy.
    _template: Option<Arc<Self>>,
}

impl Database {
    /// Creates an empty one on the server of `TEST_DATABASE_URL`.
    pub async fn fresh() -> Self {
        // `template1` cannot be copied while anybody is connected to it; nobody can connect to `template0`.
        Self::copy("template0", None).await
    }

    /// Creates one with this version's schema and nothing in it: copied, which is a part of the work of migrating.
    pub async fn migrated() -> Self {
        static LAST: Mutex<Weak<Database>> = Mutex::const_new(Weak::new());
        let template = {
            let mut last = LAST.lock().await;
            match last.upgrade() {
                Some(template) => template,
                None => {
                    let template = Arc::new(Self::fresh().await);
                    migrate(template.url()).await;
                    *last = Arc::downgrade(&template);
                    template
                }
            }
        };
        Self::copy(&template.name, Some(Arc::clone(&template))).await
    }

    async fn copy(source: &str, template: Option<Arc<Self>>) -> Self {
        let server = std::env::var("TEST_DATABASE_URL").unwrap_or_else(|_| {
            panic!("TEST_DATABASE_URL is not set; run scripts/test.sh, which starts a PostgreSQL server for the tests")
        });
        let name = format!("lectern_test_{}", Uuid::now_v7().simple());
        let mut url = Url::parse(&server).expect("TEST_DATABASE_URL is a postgres:// URL");
        url.set_path(&name);
        let create = format!("CREATE DATABASE {name} TEMPLATE {source}");
        within_deadline("a fresh database", execute(&server, create))
            .await
            .unwrap_or_else(|error| panic!("the server of TEST_DATABASE_URL makes no database: {error}"));
        Self { server, name, url: url.into(), _template: template }
    }

    /// Its address, `postgres://…`.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // Drop cannot wait for a future on the test's own runtime.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let drop = execute(&server, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            runtime.block_on(drop).map_err(std::io::Error::other)
        })
        .join();
        if !matches!(dropped, Ok(Ok(()))) {
            eprintln!("the test database {} was left behind: {dropped:?}", self.name);
        }
    }
}

/// Gives an empty database the schema, and leaves it: what anybody is connected to cannot be copied.
async fn migrate(url: &str) {
    let location = DatabaseLocation::Postgres(SecretString::from(url));
    let db = lectern_db::connect(&location).await.expect("the database that was made");
    lectern_db::migrate::run(&db).await.expect("the schema");
    db.close().await;
}

/// Runs one statement of our own making on a connection of its own.
async fn execute(server: &str, statement: String) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(server).await?;
    connection.execute(AssertSqlSafe(statement)).await?;
    connection.close().await
}

/// A PostgreSQL server of a test's own, on loopback, with one empty database. It ends with this value.
pub struct PostgresServer {
    // The server goes before the folder that it works in.
    server: Server,
    password: String,
    _folder: TempDir,
}

impl PostgresServer {
    /// Makes a server's folder, starts it, and waits until it takes connections.
    ///
    /// `TEST_POSTGRES_BIN` is the folder of its programs. PostgreSQL does not run as root: `TEST_SERVER_ACCOUNT` names
    /// whom to run it as then. `scripts/test.sh` sets both.
    pub async fn start() -> Self {
        let programs = std::env::var("TEST_POSTGRES_BIN").unwrap_or_else(|_| {
            panic!(
                "TEST_POSTGRES_BIN is not set; run scripts/test.sh, which finds PostgreSQL's server programs"
            )
        });
        let account = Account::of_servers();
        let folder = account.temporary_folder();
        let data = folder.path().join("data");
        let password = Uuid::now_v7().simple().to_string();
        initialize(&programs, &account, folder.path(), &data, &password);
        let command = {
            let (cwd, data) = (folder.path().to_owned(), data);
            move |port: u16| {
                // SIGQUIT is its shutdown at once, and takes its children and shared memory along.
                let mut command = signalled_with_this_thread("QUIT", &format!("{programs}/postgres"));
                command.arg("-D").arg(&data).args(["-p", &port.to_string()]).current_dir(&cwd);
                account.run(&mut command);
                command
            }
        };
        let is_up = {
            let password = password.clone();
            async move |port: u16| {
                let connection = PgConnection::connect(&url(port, &password)).await;
                match connection {
                    Ok(connection) => connection.close().await.is_ok(),
                    Err(_) => false,
                }
            }
        };
        let server = Server::start("PostgreSQL", Signal::QUIT, command, is_up).await;
        Self { server, password, _folder: folder }
    }

    /// The address of its database, `postgres://…`. It stays the same over restarts.
    pub fn url(&self) -> String {
        url(self.server.port(), &self.password)
    }

    /// Shuts it down as an operator does (`pg_ctl stop -m fast`): running transactions are rolled back, clients cut off.
    pub async fn stop(&mut self) {
        self.server.end(Signal::INT).await;
    }

    /// Ends it as a crash does (`-m immediate`): nothing is tidied up, and the next start recovers from the log.
    pub async fn crash(&mut self) {
        self.server.end(Signal::QUIT).await;
    }

    /// Starts it again after [`stop`](Self::stop) or [`crash`](Self::crash), at the same address.
    pub async fn start_again(&mut self) {
        let password = self.password.clone();
        let is_up = async |port: u16| PgConnection::connect(&url(port, &password)).await.is_ok();
        self.server.start_again(is_up).await;
    }

    /// Stops it and starts it again.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.start_again().await;
    }
}

fn url(port: u16, password: &str) -> String {
    format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres")
}

/// Makes the folder of a server's data.
fn initialize(programs: &str, account: &Account, folder: &Path, data: &Path, password: &str) {
    let password_file = folder.join("password");
    std::fs::write(&password_file, password).expect("a file in the server's folder");
    account.own(&password_file);
    let mut initdb = Command::new(format!("{programs}/initdb"));
    initdb.arg("--pgdata").arg(data).arg("--pwfile").arg(&password_file).current_dir(folder);
    initdb.args(["--username", "postgres", "--auth", "scram-sha-256", "--encoding", "UTF8"]);
    initdb.args(["--locale", "C", "--no-sync"]);
    account.run(&mut initdb);
    let output = initdb.output().expect("initdb starts");
    assert!(output.status.success(), "initdb failed: {}", String::from_utf8_lossy(&output.stderr));
    let mut config =
        OpenOptions::new().append(true).open(data.join("postgresql.conf")).expect("its configuration");
    // Processes come and go here, the machine does not, so nothing waits for the disk.
    let lines = "listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_connections = 200\n\
                 fsync = off\nfull_page_writes = off\n";
    config.write_all(lines.as_bytes()).expect("its configuration can be written");
}

/// The account that servers run as: that of the tests, unless it is root's.
struct Account(Option<(u32, u32)>);

impl Account {
    fn of_servers() -> Self {
        if !geteuid().is_root() {
            return Self(None);
        }
        let name = std::env::var("TEST_SERVER_ACCOUNT").unwrap_or_else(|_| {
            panic!("PostgreSQL does not run as root, and TEST_SERVER_ACCOUNT is not set; run scripts/test.sh")
        });
        let id = |what: &str| {
            let output = Command::new("id").args([what, &name]).output().expect("id(1) starts");
            let id = String::from_utf8_lossy(&output.stdout).trim().parse::<u32>();
            id.unwrap_or_else(|_| panic!("TEST_SERVER_ACCOUNT: there is no account {name}"))
        };
        Self(Some((id("-u"), id("-g"))))
    }

    /// An empty folder of this account.
    fn temporary_folder(&self) -> TempDir {
        let builder = || {
            let mut builder = tempfile::Builder::new();
            builder.prefix("lectern-postgres-");
            builder
        };
        // TMPDIR may lie where another account cannot go; /tmp never does.
        let folder = match self.0 {
            None => builder().tempdir(),
            Some(_) => builder().tempdir_in("/tmp"),
        };
        let folder = folder.expect("a temporary directory");
        self.own(folder.path());
        folder
    }

    /// Gives it a file.
    fn own(&self, path: &Path) {
        if let Some((user, group)) = self.0 {
            chown(path, Some(user), Some(group)).expect("root may give a file away");
        }
    }

    /// Lets a command run as this account.
    fn run(&self, command: &mut Command) {
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
    }
}

/// Waits until a statement with this beginning waits for a lock.
pub async fn waits_for_a_lock(beside: &mut PgConnection, beginning: &str) {
    let waiting = async {
        loop {
            let count: i64 = sqlx::query_scalar(
                "SELECT COUNT(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock' AND starts_with(query, $1)",
            )
            .bind(beginning)
            .fetch_one(&mut *beside)
            .await
            .expect("an answer");
            if count > 0 {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline(beginning, waiting).await;
}
