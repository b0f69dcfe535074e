//! Making the dumps of this release: `scripts/dump_release.sh`.

use std::{fmt::Write, process::Command};

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row, SqliteConnection};

use super::{KEY, fill, folder};
use crate::support::{
    embeddings::Embeddings,
    service::{Mode, Service},
    within_deadline,
};

/// The tables that a service fills, all of them.
const TABLES: [&str; 23] = [
    "agent_documents",
    "agent_memory",
    "agent_tags",
    "agent_tools",
    "agents",
    "api_tokens",
    "cached_answers",
    "chunks",
    "documents",
    "embedding_spaces",
    "generations",
    "idempotency",
    "index_segments",
    "jobs",
    "leases",
    "prompts",
    "queue_head",
    "singletons",
    "tags",
    "tools",
    "traces",
    "users",
    "vectors",
];

/// Writes what a service of this program leaves when it is killed, for both engines.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes tests/upgrade: run scripts/dump_release.sh"]
async fn the_dumps_of_this_release_are_written() {
    for (mode, engine) in [(Mode::Embedded, "sqlite"), (Mode::Postgres, "postgres")] {
        let embeddings = Embeddings::start().await;
        let mut service = Service::in_mode(mode)
            .env("LECTERN_SECRET_KEY", KEY)
            .env("LECTERN_TRACE_TTL", "36500d")
            .env("LECTERN_WORKER_CONCURRENCY", "1")
            .env("LECTERN_EMBEDDER", "openai-compatible")
            .env("LECTERN_EMBEDDING_URL", &embeddings.url())
            .env("LECTERN_EMBEDDING_MODEL", "tiny")
            .start()
            .await;
        let filled = fill::fill(&service).await;
        let setup = service.sibling();
        let dumped = async || {
            if mode == Mode::Embedded {
                of_sqlite(&format!("sqlite:{}", setup.data_dir().join("lectern.db").display())).await
            } else {
                of_postgres(setup.environment()["DATABASE_URL"].to_str().unwrap()).await
            }
        };
        let is_in = |statements: &str, table: &str| {
            let inserted = [format!("INSERT INTO {table} "), format!("INSERT INTO public.{table} ")];
            inserted.iter().any(|insert| statements.contains(insert.as_str()))
        };
        // The house is kept for the first time some seconds after the start.
        let kept = async {
            while !is_in(&dumped().await, "leases") {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
        };
        within_deadline("the house to be kept", kept).await;
        service.kill();
        let statements = dumped().await;
        for table in TABLES {
            assert!(is_in(&statements, table), "{engine}: {table} is empty");
        }
        let version = env!("CARGO_PKG_VERSION");
        let dump = format!(
            "-- Lectern {version}, as a killed service left it.\n-- token {}\n{statements}",
            filled.token
        );
        std::fs::write(folder().join(format!("{version}.{engine}.sql")), dump).unwrap();
    }
}

async fn of_sqlite(url: &str) -> String {
    let mut connection = SqliteConnection::connect(url).await.unwrap();
    let mut dump = String::from("PRAGMA foreign_keys = OFF;\nBEGIN;\n");
    let schema =
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid";
    for row in connection.fetch_all(schema).await.unwrap() {
        writeln!(dump, "{};", row.get::<String, _>(0)).unwrap();
    }
    let tables =
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    for table in connection.fetch_all(tables).await.unwrap() {
        let table: String = table.get(0);
        let columns =
            connection.fetch_all(AssertSqlSafe(format!("PRAGMA table_info({table})"))).await.unwrap();
        let columns: Vec<String> = columns.iter().map(|column| column.get::<String, _>("name")).collect();
        let quoted: Vec<String> = columns.iter().map(|column| format!("quote(\"{column}\")")).collect();
        let rows = format!("SELECT {} FROM {table} ORDER BY rowid", quoted.join(" || ', ' || "));
        for row in connection.fetch_all(AssertSqlSafe(rows)).await.unwrap() {
            writeln!(
                dump,
                "INSERT INTO {table} ({}) VALUES ({});",
                columns.join(", "),
                row.get::<String, _>(0)
            )
            .unwrap();
        }
    }
    connection.close().await.unwrap();
    dump.push_str("COMMIT;\n");
    dump
}

async fn of_postgres(url: &str) -> String {
    // What the killed service held open is over.
    PgConnection::connect(url).await.unwrap().close().await.unwrap();
    let programs =
        std::env::var("TEST_POSTGRES_BIN").expect("TEST_POSTGRES_BIN: run scripts/dump_release.sh");
    let output = Command::new(format!("{programs}/pg_dump"))
        .args(["--column-inserts", "--no-owner", "--no-privileges", "--dbname", url])
        .output()
        .expect("pg_dump starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let dump = String::from_utf8(output.stdout).unwrap();
    // What only psql reads, and what depends on the server's version.
    let needless = ["\\", "--", "SET ", "SELECT pg_catalog.set_config"];
    let lines =
        dump.lines().filter(|line| !line.is_empty() && !needless.iter().any(|start| line.starts_with(start)));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}
