//! Both engines for the tests of the repositories: SQLite in a temporary folder, and a database of its own on the
//! PostgreSQL server that the test command starts. And what such tests need before they can begin.

#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::missing_panics_doc,
    reason = "for tests"
)]

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
    time::Duration,
};

use lectern_shared::{
    clock::Timestamp,
    config::DatabaseLocation,
    ids::{ChunkId, DocumentId, GenerationId, UserId, WorkspaceId},
    model::{
        Json,
        document::{DocumentType, PageRange, SearchIndexInfo, SourceState},
        job::{JobClaim, JobKind},
        place::SourceSpan,
        space::EmbeddingSpace,
        workspace::{RowOwner, RunOwner},
    },
};
use secrecy::{ExposeSecret, SecretString};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::sync::Mutex;

use super::{
    Db, Tx, accounts,
    chunks::{self, NewChunk},
    connect,
    documents::{self, NewDocumentRow, set_changed_epoch},
    execute,
    generations::{self, NewGeneration},
    jobs::{self, GenerationPublication, PublishOutcome},
    locks, migrate, vectors,
};

/// Attempts that the jobs of [`document`] have.
pub const ATTEMPTS: u32 = 2;
/// How long the claims of [`claim`] last.
pub const LEASE: Duration = Duration::from_mins(1);
/// When what [`publish`] replaces may be purged.
pub const GRACE: Duration = Duration::from_secs(30);
/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_mins(1);

/// A fresh, migrated store.
pub struct TestDb {
    pub name: &'static str,
    pub db: Db,
    location: DatabaseLocation,
    home: Home,
    /// Goes with the last test that uses it.
    _template: Option<Arc<MigratedTemplate>>,
}

impl TestDb {
    /// The same store as another process would open it.
    pub async fn reopen(&self) -> Db {
        connect(&self.location).await.unwrap()
    }

    /// The file of a SQLite store.
    pub fn file(&self) -> &std::path::Path {
        match &self.location {
            DatabaseLocation::Sqlite(file) => file,
            DatabaseLocation::Postgres(_) => panic!("it is no file"),
        }
    }

    /// The steps in which SQLite would take a statement.
    pub async fn query_plan(&self, statement: &str) -> Vec<String> {
        let Db::Sqlite { readers, .. } = &self.db else { panic!("plans of SQLite are meant") };
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
        let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as(explain).fetch_all(readers).await.unwrap();
        steps.into_iter().map(|(.., step)| step).collect()
    }
}

/// Where a store lives, removed with this value.
enum Home {
    Folder { _dir: tempfile::TempDir },
    Database { server: SecretString, name: String },
}

impl Drop for Home {
    fn drop(&mut self) {
        let Self::Database { server, name } = self else { return };
        let (server, drop) = (server.clone(), format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        // A destructor cannot wait on the runtime of its own test.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(on_server(&server, drop));
        })
        .join();
        if dropped.is_err() {
            eprintln!("the test database {name} was left behind");
        }
    }
}

async fn on_server(server: &SecretString, statement: String) {
    let mut connection = Box::pin(PgConnection::connect(server.expose_secret())).await.unwrap();
    connection.execute(AssertSqlSafe(statement)).await.unwrap();
    connection.close().await.unwrap();
}

/// A fresh store on each engine, not migrated.
pub async fn both_empty() -> Vec<TestDb> {
    copies(None).await
}

/// A fresh store on each engine.
pub async fn both() -> Vec<TestDb> {
    copies(Some(MigratedTemplate::get().await)).await
}

/// Stores that are copied instead of migrated anew for each test.
struct MigratedTemplate {
    sqlite: PathBuf,
    postgres: String,
    _stores: Vec<Home>,
}

impl MigratedTemplate {
    async fn get() -> Arc<Self> {
        static LAST: Mutex<Weak<MigratedTemplate>> = Mutex::const_new(Weak::new());
        let mut last = LAST.lock().await;
        if let Some(template) = last.upgrade() {
            return template;
        }
        let template = Arc::new(Self::make().await);
        *last = Arc::downgrade(&template);
        template
    }

    async fn make() -> Self {
        let (mut sqlite, mut postgres, mut stores) = (PathBuf::new(), String::new(), Vec::new());
        for test in both_empty().await {
            migrate::run(&test.db).await.unwrap();
            // Nobody may be connected to what is copied.
            test.db.close().await;
            match &test.home {
                Home::Folder { .. } => test.file().clone_into(&mut sqlite),
                Home::Database { name, .. } => name.clone_into(&mut postgres),
            }
            stores.push(test.home);
        }
        Self { sqlite, postgres, _stores: stores }
    }
}

/// A fresh store on each engine, empty or as the template.
async fn copies(template: Option<Arc<MigratedTemplate>>) -> Vec<TestDb> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    if let Some(template) = &template {
        std::fs::copy(&template.sqlite, &path).unwrap();
    }
    // Nobody can be connected to `template0`, which would keep it from being copied.
    let database = template.as_ref().map_or("template0", |template| &template.postgres);
    let sqlite = DatabaseLocation::Sqlite(path);
    #[expect(clippy::disallowed_methods, reason = "the test command passes the server's address this way")]
    let server = std::env::var("TEST_DATABASE_URL").expect(
        "TEST_DATABASE_URL is not set: run scripts/test.sh, which starts a PostgreSQL server for the tests",
    );
    let name = format!("t_{}", uuid::Uuid::now_v7().simple());
    let mut url = url::Url::parse(&server).unwrap();
    url.set_path(&name);
    let server = SecretString::from(server);
    on_server(&server, format!("CREATE DATABASE {name} TEMPLATE {database}")).await;
    let postgres = DatabaseLocation::Postgres(SecretString::from(url.to_string()));
    vec![
        TestDb {
            name: "SQLite",
            db: connect(&sqlite).await.unwrap(),
            location: sqlite,
            home: Home::Folder { _dir: dir },
            _template: template.clone(),
        },
        TestDb {
            name: "PostgreSQL",
            db: connect(&postgres).await.unwrap(),
            location: postgres,
            home: Home::Database { server, name },
            _template: template,
        },
    ]
}

/// Does one thing in a transaction of its own: `commit!(db, |tx| accounts::insert(tx, …))`.
#[macro_export]
macro_rules! commit {
    ($db:expr, |$tx:ident| $call:expr) => {{
        let mut transaction = $db.begin().await.unwrap();
        let done = {
            let $tx = &mut transaction;
            $call.await.unwrap()
        };
        transaction.commit().await.unwrap();
        done
    }};
}
pub use crate::commit;

/// The moment that many seconds after the beginning of every test.
pub fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000).plus(Duration::from_secs(seconds))
}

/// Adds an account.
pub async fn user(db: &Db, now: Timestamp) -> UserId {
    let id = UserId::generate();
    let email = format!("{id}@example.com");
    let user = accounts::NewUser {
        id,
        email: &email,
        email_key: &email,
        name: "someone",
        password_hash: "hash",
        is_admin: false,
    };
    commit!(db, |tx| accounts::insert(tx, &user, now));
    id
}

/// Adds an account, and gives its own workspace.
pub async fn workspace(db: &Db, now: Timestamp) -> WorkspaceId {
    user(db, now).await.into()
}

/// The account whose own workspace this is.
pub fn account_of(workspace: WorkspaceId) -> UserId {
    UserId::from(*workspace.as_uuid())
}

/// Something that the account of a workspace makes in it.
pub fn made_in(workspace: WorkspaceId) -> RowOwner {
    RowOwner::new(workspace, account_of(workspace))
}

/// A run by the account of a workspace in it.
pub fn run_in(workspace: WorkspaceId) -> RunOwner {
    RunOwner { workspace_id: workspace, user: account_of(workspace), token: None }
}

/// A document with nothing but a name and inline content.
pub fn plain(workspace: WorkspaceId, name: &str) -> NewDocumentRow<'_> {
    NewDocumentRow {
        id: DocumentId::generate(),
        owner: made_in(workspace),
        r#type: DocumentType::Txt,
        name,
        description: "",
        url: "",
        content: Some("content"),
        metadata: None,
        splitter: None,
        pages: PageRange::default(),
        authorization_sealed: None,
    }
}

/// Adds a document and its job, which is due at `now`.
pub async fn document(db: &Db, workspace: WorkspaceId, name: &str, now: Timestamp) -> DocumentId {
    let document = plain(workspace, name);
    commit!(db, |tx| documents::insert(tx, &document, now));
    enqueue(db, workspace, document.id, now).await;
    document.id
}

/// Queues a document's job; false when there is no such document.
pub async fn enqueue(db: &Db, workspace: WorkspaceId, document: DocumentId, now: Timestamp) -> bool {
    commit!(db, |tx| jobs::enqueue(tx, workspace, document, JobKind::Ingest, ATTEMPTS, now)).is_some()
}

/// Takes the next due job.
pub async fn claim(db: &Db, now: Timestamp) -> Option<JobClaim> {
    commit!(db, |tx| jobs::claim(tx, "worker", now, now.plus(LEASE), 1)).claims.pop()
}

/// Adds a document and takes its job.
pub async fn claimed(db: &Db, workspace: WorkspaceId, name: &str, now: Timestamp) -> JobClaim {
    let document = document(db, workspace, name, now).await;
    let claim = claim(db, now).await.unwrap();
    assert_eq!(claim.document_id, document, "another job was due before this one");
    claim
}

/// Passages with these texts.
pub fn passages(document: DocumentId, texts: &[&str]) -> Vec<NewChunk> {
    let chunk = |(ordinal, text): (u32, &&str)| NewChunk {
        ordinal,
        chunk_id: ChunkId::derive(document, ordinal, text, "{}"),
        text_hash: lectern_shared::secrets::sha256(text.as_bytes()),
        tokens: 7,
        place: SourceSpan {
            page: Some(ordinal + 1),
            char_end: text.chars().count() as u64,
            ..SourceSpan::default()
        },
        text: (*text).to_owned(),
    };
    (0..).zip(texts).map(chunk).collect()
}

/// Begins a generation and fills it with passages.
pub async fn staged(db: &Db, claim: &JobClaim, texts: &[&str], now: Timestamp) -> GenerationId {
    staged_in(db, claim, None, texts, now).await
}

/// [`staged`], with vectors in an embedding space.
pub async fn staged_in(
    db: &Db,
    claim: &JobClaim,
    space: Option<&EmbeddingSpace>,
    texts: &[&str],
    now: Timestamp,
) -> GenerationId {
    let id = GenerationId::generate();
    if let Some(space) = space {
        commit!(db, |tx| vectors::record_space(tx, space, now));
    }
    let new = NewGeneration { id, space: space.map(|space| space.id), stored_bytes: 0, engine: None };
    assert!(commit!(db, |tx| generations::begin(tx, claim, new, now)));
    for some in passages(claim.document_id, texts).chunks(chunks::BATCH) {
        commit!(db, |tx| chunks::insert(tx, claim.workspace_id, claim.document_id, id, some));
    }
    id
}

/// What is said of a published generation.
pub fn ready(generation: GenerationId, chunks: u64) -> SearchIndexInfo {
    SearchIndexInfo {
        status: "READY".to_owned(),
        chunks,
        pages: None,
        engine: None,
        tokens: chunks * 7,
        embedding_model: None,
        dimensions: None,
        content_hash: String::new(),
        generation,
        indexed_at: String::new(),
    }
}

/// The generation that answers for a workspace's document.
pub async fn active(db: &Db, workspace: WorkspaceId, document: DocumentId) -> Option<GenerationId> {
    let source = documents::source(db, workspace, document).await.unwrap()?;
    source.active_index.map(|Json(index)| index.generation)
}

/// Publishes a generation.
pub async fn publish(db: &Db, claim: &JobClaim, generation: GenerationId, now: Timestamp) -> PublishOutcome {
    let publication = publication(db, claim, generation, now).await;
    jobs::publish(db, &publication, now).await.unwrap()
}

/// The publication of a generation, with all passages that are stored.
pub async fn publication(
    db: &Db,
    claim: &JobClaim,
    generation: GenerationId,
    now: Timestamp,
) -> GenerationPublication {
    let stored = chunks::count(db, generation).await.unwrap();
    GenerationPublication {
        claim: claim.clone(),
        generation,
        was_unlimited: true,
        replaces: active(db, claim.workspace_id, claim.document_id).await,
        index: ready(generation, u64::try_from(stored).unwrap()),
        languages: Vec::new(),
        learnt: Some(SourceState::default()),
        purge_old_at: now.plus(GRACE),
    }
}

/// Adds a document that answers with these passages.
pub async fn published(
    db: &Db,
    workspace: WorkspaceId,
    name: &str,
    texts: &[&str],
    now: Timestamp,
) -> (DocumentId, GenerationId) {
    let claim = claimed(db, workspace, name, now).await;
    let generation = staged(db, &claim, texts, now).await;
    assert_eq!(publish(db, &claim, generation, now).await, PublishOutcome::Yes);
    (claim.document_id, generation)
}

/// Waits until a task is finished or cannot go on before another transaction ends. On SQLite that is known at once: a
/// transaction that writes waits for all others.
pub async fn finished_or_blocked<T>(db: &Db, task: &tokio::task::JoinHandle<T>) {
    finished_or_blocked_beside(db, task, 0).await;
}

/// [`finished_or_blocked`], where so many others cannot go on either.
pub async fn finished_or_blocked_beside<T>(db: &Db, task: &tokio::task::JoinHandle<T>, others: i64) {
    let Db::Postgres { pool, .. } = db else { return };
    let waiting = async {
        while !task.is_finished() {
            // What asks for a lock again and again has no other statement between two of these.
            let blocked: i64 = sqlx::query_scalar(
                "SELECT COUNT(*) FROM pg_stat_activity
                 WHERE datname = current_database()
                   AND (wait_event_type = 'Lock' OR (state = 'idle in transaction' AND query = $1))",
            )
            .bind(locks::LOCK_WHEN_FREE)
            .fetch_one(pool)
            .await
            .unwrap();
            if blocked > others {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.unwrap();
}

/// Overwrites what the index keeps of a generation's first part.
pub async fn damage_segment(tx: &mut Tx, generation: GenerationId, bytes: &[u8]) -> super::Result<u64> {
    execute!(
        tx,
        sqlx::query("UPDATE index_segments SET data = $2 WHERE generation_id = $1 AND part = 0")
            .bind(generation)
            .bind(bytes)
    )
}

/// Overwrites something of a document's job by what nobody can read.
pub async fn damage_job(tx: &mut Tx, document: DocumentId) -> super::Result<u64> {
    execute!(tx, sqlx::query("UPDATE jobs SET warnings = '{' WHERE document_id = $1").bind(document))
}

/// Sets what is recorded of the languages of a document's passages.
pub async fn set_languages(tx: &mut Tx, document: DocumentId, languages: &str) -> super::Result<u64> {
    execute!(
        tx,
        sqlx::query("UPDATE documents SET languages = $2 WHERE id = $1").bind(document).bind(languages)
    )
}

/// Sets a document's metadata, at the search epoch that there is, and begins none.
pub async fn set_metadata(tx: &mut Tx, document: DocumentId, metadata: &str) -> super::Result<u64> {
    let set = concat!("UPDATE documents SET metadata = $2, ", set_changed_epoch!(), " WHERE id = $1");
    execute!(tx, sqlx::query(set).bind(document).bind(metadata))
}
