//! Databases of earlier releases, as they were left when the service was killed, go on under this program. Each release has a
//! dump of its own for both engines beside this file; `scripts/dump_release.sh` makes those of the next one.

mod dump;
mod fill;

use std::path::{Path, PathBuf};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

use crate::support::{
    client::{Client, PASSWORD, id, send},
    command::{doctor, download, finding, lectern, meddle},
    db::Database,
    service::{Mode, Service},
    setup::Setup,
};

/// The key that the dumps are encrypted under.
pub const KEY: &str = "the key of the dumps, which opens nothing else";
/// What was uploaded to them.
pub const UPLOADED: &str = "The lift holds eight people.";

/// A dump of a release.
struct Dump {
    /// The file's name, for messages.
    name: String,
    sql: String,
    /// An API token of the user of it.
    token: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upgrade")
}

/// The dumps for an engine, the oldest release first.
fn dumps(engine: &str) -> Vec<Dump> {
    let suffix = format!(".{engine}.sql");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.to_str().unwrap().ends_with(&suffix));
    files.sort();
    assert!(!files.is_empty(), "no release has a dump for {engine}; see scripts/dump_release.sh");
    let read = |file: PathBuf| {
        let sql = std::fs::read_to_string(&file).unwrap();
        let token = sql.lines().find_map(|line| line.strip_prefix("-- token ")).expect("a token").to_owned();
        Dump { name: file.file_name().unwrap().to_string_lossy().into_owned(), sql, token }
    };
    files.into_iter().map(read).collect()
}

/// An installation that is not started, with the database of a dump; and that database, which lives as long.
async fn installed(mode: Mode, dump: &Dump) -> (Setup, Option<Database>) {
    let setup = Service::in_mode(mode).env("LECTERN_SECRET_KEY", KEY).env("LECTERN_TRACE_TTL", "36500d");
    let (setup, database) = if mode == Mode::Embedded {
        let url = format!("sqlite:{}?mode=rwc", setup.data_dir().join("lectern.db").display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(dump.sql.clone())).execute(&mut connection).await.expect(&dump.name);
        connection.close().await.unwrap();
        (setup, None)
    } else {
        let database = Database::fresh().await;
        let mut connection = PgConnection::connect(database.url()).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(dump.sql.clone())).execute(&mut connection).await.expect(&dump.name);
        connection.close().await.unwrap();
        (setup.database_url(database.url()), Some(database))
    };
    let (mark, key) = recorded(mode, &setup).await;
    let file = setup.data_dir().join("blobs").join(&key[34..36]).join(&key);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, UPLOADED).unwrap();
    std::fs::write(setup.data_dir().join("blobs/instance"), mark).unwrap();
    (setup, database)
}

/// The mark of the blobs and the key of the uploaded file, as the database has them.
async fn recorded(mode: Mode, setup: &Setup) -> (String, String) {
    const MARK: &str = "SELECT value FROM singletons WHERE name = 'blobs'";
    const FILE: &str = "SELECT blob_key FROM documents WHERE blob_key IS NOT NULL";
    if mode == Mode::Embedded {
        let url = format!("sqlite:{}", setup.data_dir().join("lectern.db").display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        let mark = sqlx::query_scalar(MARK).fetch_one(&mut connection).await.unwrap();
        (mark, sqlx::query_scalar(FILE).fetch_one(&mut connection).await.unwrap())
    } else {
        let url = setup.environment()["DATABASE_URL"].to_str().unwrap();
        let mut connection = PgConnection::connect(url).await.unwrap();
        let mark = sqlx::query_scalar(MARK).fetch_one(&mut connection).await.unwrap();
        (mark, sqlx::query_scalar(FILE).fetch_one(&mut connection).await.unwrap())
    }
}

/// The thing of this name in a list of the user's.
async fn called(client: &Client, path: &str, name: &str) -> Value {
    let all = client.read(path).await;
    let found = all.as_array().unwrap().iter().find(|thing| thing["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {all:#}")).clone()
}

async fn goes_on(mode: Mode, dump: &Dump) {
    let (setup, _database) = installed(mode, dump).await;
    let service = setup.start().await;
    // Signing in, and the token of that time.
    service.client().sign_in(fill::EMAIL, PASSWORD).await;
    let client = service.client().with_token(&dump.token);
    assert_eq!(client.read("/users/me").await["email"], fill::EMAIL, "{}", dump.name);

    // Documents, by what became of them.
    for name in ["rules", "prices", "roof", fill::UPLOAD] {
        let document = called(&client, "/documents", name).await;
        assert_eq!(document["ingestion"]["status"], "SUCCEEDED", "{}: {document:#}", dump.name);
        assert_eq!(document["index"]["status"], "READY", "{}: {document:#}", dump.name);
    }
    assert_eq!(called(&client, "/documents", "nowhere").await["ingestion"]["error"]["code"], "not_found");
    assert_eq!(called(&client, "/documents", "cancelled").await["ingestion"]["status"], "CANCELLED");
    let queued = called(&client, "/documents", "queued").await;
    let queued = client.wait_until_ingested(id(&queued)).await;
    assert_eq!(queued["ingestion"]["status"], "SUCCEEDED", "what waited is done: {queued:#}");
    let interrupted = called(&client, "/documents", "interrupted").await;
    assert_ne!(interrupted["ingestion"]["status"], "CANCELLED", "{interrupted:#}");
    let file = called(&client, "/documents", fill::UPLOAD).await;
    assert_eq!(download(&client, id(&file)).await, UPLOADED.as_bytes());

    // Searching and asking, with citations that hold.
    let rules = called(&client, "/documents", "rules").await;
    let hits = client.create("/search", &json!({"query": "Where do bicycles belong?"})).await;
    let hits = hits.as_array().or_else(|| hits["hits"].as_array()).expect("hits").clone();
    assert_eq!(hits[0]["documentId"], rules["id"], "{}: {hits:#?}", dump.name);
    let agent = called(&client, "/agents", "caretaker").await;
    let (status, answer) = client.predict(id(&agent), "Where do bicycles belong?").await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    assert_eq!(answer["trace"]["citations"][0]["documentId"], rules["id"], "{answer:#}");
    assert_eq!(answer["trace"]["citations"][0]["verified"], true, "{answer:#}");
    let traces = client.read(&format!("/traces?agentId={}", id(&agent))).await;
    assert!(traces.as_array().unwrap().len() >= 2, "that one, and those of then: {traces:#}");
    let oldest = traces.as_array().unwrap().last().unwrap();
    client.read(&format!("/traces/{}", id(oldest))).await;

    // What agents are made of, secrets among it.
    assert_eq!(agent["tags"].as_array().map(Vec::len), Some(1), "{agent:#}");
    assert!(agent["promptId"].is_string() || agent["prompt"].is_object(), "{agent:#}");
    assert_eq!(called(&client, "/tools", "web").await["metadata"]["api_key"], fill::MASKED);
    called(&client, "/tags", "urgent").await;
    called(&client, "/prompts", "curt").await;
    assert_eq!(client.read("/agent-documents").await.as_array().unwrap().len(), 2);
    assert_eq!(client.read("/agent-tools").await.as_array().unwrap().len(), 1);

    // And it is used as any other.
    let new = json!({"name": "new", "type": "TXT", "content": "The gate opens at nine."});
    let new = client.ingest(&new).await;
    client.link(id(&agent), id(&new)).await;
    let (_, answer) = client.predict(id(&agent), "When does the gate open?").await;
    assert_eq!(answer["trace"]["citations"][0]["documentId"], new["id"], "{answer:#}");
    let (sound, report) = doctor(&service.sibling(), &["--deep"]);
    assert!(sound, "{}: {report:#}", dump.name);
    let gone = send(client.request(Method::DELETE, &format!("/documents/{}", id(&rules)))).await;
    assert!(gone.status().is_success());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_released_database_goes_on_embedded() {
    for dump in dumps("sqlite") {
        goes_on(Mode::Embedded, &dump).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_released_database_goes_on_over_postgresql() {
    for dump in dumps("postgres") {
        goes_on(Mode::Postgres, &dump).await;
    }
}

/// Each dump has the checksums of the migrations that its release applied, so that a start over it would be refused; this says why.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_was_released_is_never_edited() {
    for dump in dumps("sqlite") {
        let (setup, _) = installed(Mode::Embedded, &dump).await;
        let (_, report) = doctor(&setup, &[]);
        let altered = finding(&report, "schema_altered");
        assert_eq!(
            altered, None,
            "{}: a migration of this release was edited: put it back, and add another",
            dump.name
        );
    }
}

/// There is no way back from a migration but a backup.
#[tokio::test(flavor = "multi_thread")]
async fn commands_and_starts_that_are_refused_leave_the_schema_as_it_is() {
    let dump = dumps("sqlite").swap_remove(0);
    let (setup, _) = installed(Mode::Embedded, &dump).await;
    let ran = lectern(&setup, &["user", "admin", fill::EMAIL]);
    assert!(!ran.status.success() && ran.log.contains("lectern migrate"), "{ran:#?}");
    let setup = setup.env("LECTERN_SECRET_KEY", "another key than that of the dumps");
    let ran = lectern(&setup, &["migrate"]);
    assert!(!ran.status.success() && ran.log.contains("LECTERN_SECRET_KEY"), "{ran:#?}");
    let (_, report) = doctor(&setup, &[]);
    assert!(finding(&report, "schema_older").is_some(), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_making_is_refused() {
    let dump = dumps("sqlite").pop().unwrap();
    let (setup, _) = installed(Mode::Embedded, &dump).await;
    let altered = "UPDATE _sqlx_migrations SET checksum = X'00' WHERE version = 1";
    assert_eq!(meddle(Mode::Embedded, &setup, altered).await, 1);
    let (sound, report) = doctor(&setup, &[]);
    assert!(!sound && finding(&report, "schema_altered").is_some(), "{report:#}");
    let refusal = setup.start_refused().await;
    assert!(refusal.log.contains("could not be migrated"), "{}", refusal.log);
}
