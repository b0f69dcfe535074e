//! Both engines for the tests of the repositories: SQLite in a temporary folder, and a database of its own on the
//! PostgreSQL server that the test command starts.

use secrecy::SecretString;

use super::{Db, Location, connect, migrate};
use crate::{clock::Timestamp, ids::UserId};

/// A fresh, migrated store.
pub(crate) struct TestDb {
    pub(crate) name: &'static str,
    pub(crate) db: Db,
    _dir: Option<tempfile::TempDir>,
}

/// A fresh store on each engine.
pub(crate) async fn both() -> Vec<TestDb> {
    let dir = tempfile::tempdir().unwrap();
    let sqlite = connect(&Location::Sqlite(dir.path().join("test.db"))).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "the test command passes the server's address this way")]
    let server = std::env::var("TEST_DATABASE_URL").expect(
        "TEST_DATABASE_URL is not set: run scripts/test.sh, which starts a PostgreSQL server for the tests",
    );
    let name = format!("t_{}", uuid::Uuid::now_v7().simple());
    let admin = sqlx::PgPool::connect(&server).await.unwrap();
    sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&admin).await.unwrap();
    admin.close().await;
    let mut url = url::Url::parse(&server).unwrap();
    url.set_path(&name);
    let postgres = connect(&Location::Postgres(SecretString::from(url.to_string()))).await.unwrap();
    let both = vec![
        TestDb { name: "SQLite", db: sqlite, _dir: Some(dir) },
        TestDb { name: "PostgreSQL", db: postgres, _dir: None },
    ];
    for test in &both {
        migrate::run(&test.db).await.unwrap();
    }
    both
}

/// Adds an account.
pub(crate) async fn user(db: &Db, now: Timestamp) -> UserId {
    let id = UserId::generate();
    let email = format!("{id}@example.com");
    let user = super::accounts::NewUser {
        id,
        email: &email,
        email_key: &email,
        name: "someone",
        password_hash: "hash",
        is_admin: false,
    };
    let mut tx = db.begin().await.unwrap();
    super::accounts::insert(&mut tx, &user, now).await.unwrap();
    tx.commit().await.unwrap();
    id
}
