//! PostgreSQL databases that are measured with, and dropped afterwards.

use parking_lot::Mutex;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use url::Url;
use uuid::Uuid;

use super::BenchError;

/// A server, and the databases that were made on it.
pub(crate) struct RunDatabases {
    server: Url,
    made: Mutex<Vec<String>>,
}

impl RunDatabases {
    /// Databases on this server.
    pub(crate) fn on(server: &Url) -> Self {
        Self { server: server.clone(), made: Mutex::default() }
    }

    /// Makes an empty one, and returns its address.
    pub(crate) async fn fresh(&self) -> Result<Url, BenchError> {
        let name = format!("lectern_load_{}", Uuid::now_v7().simple());
        // Remembered before it is there, so that it cannot be left behind.
        self.made.lock().push(name.clone());
        // `template1` cannot be copied while anybody is connected to it; nobody can connect to `template0`.
        self.execute(format!("CREATE DATABASE {name} TEMPLATE template0")).await?;
        let mut url = self.server.clone();
        url.set_path(&name);
        Ok(url)
    }

    /// What the database at this address, one of these, takes on the disk, in bytes.
    pub(crate) async fn size(&self, database: &Url) -> Result<u64, BenchError> {
        let mut connection = PgConnection::connect(database.as_str()).await?;
        let row = connection.fetch_one("SELECT pg_database_size(current_database())").await?;
        let size: i64 = row.try_get(0)?;
        connection.close().await?;
        Ok(u64::try_from(size).unwrap_or(0))
    }

    /// Drops all of them, whoever is still connected.
    pub(crate) async fn drop_all(&self) -> Result<(), BenchError> {
        let made = std::mem::take(&mut *self.made.lock());
        for name in made {
            self.execute(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?;
        }
        Ok(())
    }

    /// The server's version, and what of its durability is switched off.
    pub(crate) async fn describe(&self) -> Result<String, BenchError> {
        let mut connection = PgConnection::connect(self.server.as_str()).await?;
        let mut shown = Vec::new();
        for name in ["server_version", "fsync", "synchronous_commit"] {
            let row = connection.fetch_one(AssertSqlSafe(format!("SHOW {name}"))).await?;
            let value: String = row.try_get(0)?;
            match (name, value.as_str()) {
                ("server_version", version) => shown.push(format!("PostgreSQL {version}")),
                (name, "off") => shown.push(format!("{name} off")),
                _ => {}
            }
        }
        connection.close().await?;
        Ok(shown.join(", "))
    }

    async fn execute(&self, statement: String) -> Result<(), BenchError> {
        let mut connection = PgConnection::connect(self.server.as_str()).await?;
        // The names in it are made above.
        connection.execute(AssertSqlSafe(statement)).await?;
        Ok(connection.close().await?)
    }
}
