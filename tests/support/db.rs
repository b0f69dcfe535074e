//! Databases of a test's own, on the PostgreSQL server that `scripts/test.sh` starts.

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use url::Url;
use uuid::Uuid;

use super::within_deadline;

/// An empty PostgreSQL database that nobody else uses. It is dropped with this value, whoever is still connected.
#[derive(Debug)]
pub struct Database {
    server: String,
    name: String,
    url: String,
}

impl Database {
    /// Creates one on the server of `TEST_DATABASE_URL`.
    pub async fn fresh() -> Self {
        let server = std::env::var("TEST_DATABASE_URL").unwrap_or_else(|_| {
            panic!("TEST_DATABASE_URL is not set; run scripts/test.sh, which starts a PostgreSQL server for the tests")
        });
        let name = format!("lectern_test_{}", Uuid::now_v7().simple());
        let mut url = Url::parse(&server).expect("TEST_DATABASE_URL is a postgres:// URL");
        url.set_path(&name);
        // `template1` cannot be copied while anybody is connected to it; nobody can connect to `template0`.
        let create = format!("CREATE DATABASE {name} TEMPLATE template0");
        within_deadline("a fresh database", execute(&server, create))
            .await
            .unwrap_or_else(|error| panic!("the server of TEST_DATABASE_URL makes no database: {error}"));
        Self { server, name, url: url.into() }
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

/// Runs one statement of our own making on a connection of its own.
async fn execute(server: &str, statement: String) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(server).await?;
    connection.execute(AssertSqlSafe(statement)).await?;
    connection.close().await
}
