//! The schema and its history.

use std::borrow::Cow;

use sqlx::{
    Connection, PgPool, SqlSafeStr, SqlitePool,
    migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator},
};

use super::{Db, DbError, on, silence};

/// One version of the schema.
struct MigrationStep {
    version: i64,
    description: &'static str,
    statements: MigrationSql,
}

/// The statements of one version: the same for both drivers, or what each needs besides what both do.
enum MigrationSql {
    Shared(&'static str),
    PerDriver { postgres: &'static str, sqlite: &'static str },
}

/// Which statements are meant.
#[derive(Clone, Copy)]
enum SqlDialect {
    Postgres,
    Sqlite,
}

impl MigrationSql {
    const fn of(&self, dialect: SqlDialect) -> &'static str {
        match (self, dialect) {
            (Self::Shared(sql), _) => sql,
            (Self::PerDriver { postgres, .. }, SqlDialect::Postgres) => postgres,
            (Self::PerDriver { sqlite, .. }, SqlDialect::Sqlite) => sqlite,
        }
    }
}

impl SqlDialect {
    const fn of(db: &Db) -> Self {
        match db {
            Db::Postgres { .. } => Self::Postgres,
            Db::Sqlite { .. } => Self::Sqlite,
        }
    }
}

const STEPS: &[MigrationStep] = &[
    MigrationStep {
        version: 1,
        description: "initial",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0001_initial.sql")),
    },
    MigrationStep {
        version: 2,
        description: "known addresses",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0002_known_addresses.sql")),
    },
    MigrationStep {
        version: 3,
        description: "storage",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0003_storage.sql")),
    },
    MigrationStep {
        version: 4,
        description: "fair line",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0004_fair_line.sql")),
    },
    MigrationStep {
        version: 5,
        description: "workspaces",
        statements: MigrationSql::PerDriver {
            postgres: concat!(
                include_str!("../../../migrations/0005_workspaces.postgres.sql"),
                include_str!("../../../migrations/0005_workspaces.sql"),
            ),
            sqlite: concat!(
                include_str!("../../../migrations/0005_workspaces.sqlite.sql"),
                include_str!("../../../migrations/0005_workspaces.sql"),
            ),
        },
    },
    MigrationStep {
        version: 6,
        description: "vector stores",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0006_vector_stores.sql")),
    },
    MigrationStep {
        version: 7,
        description: "pages",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0007_pages.sql")),
    },
    MigrationStep {
        version: 8,
        description: "publications",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0008_publications.sql")),
    },
    MigrationStep {
        version: 9,
        description: "receipts",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0009_receipts.sql")),
    },
    MigrationStep {
        version: 10,
        description: "webhooks",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0010_webhooks.sql")),
    },
    MigrationStep {
        version: 11,
        description: "sources",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0011_sources.sql")),
    },
    MigrationStep {
        version: 12,
        description: "content hashes",
        statements: MigrationSql::PerDriver {
            postgres: concat!(
                include_str!("../../../migrations/0012_content_hashes.postgres.sql"),
                include_str!("../../../migrations/0012_content_hashes.sql"),
            ),
            sqlite: concat!(
                include_str!("../../../migrations/0012_content_hashes.sqlite.sql"),
                include_str!("../../../migrations/0012_content_hashes.sql"),
            ),
        },
    },
    MigrationStep {
        version: 13,
        description: "evaluations",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0013_evaluations.sql")),
    },
    MigrationStep {
        version: 14,
        description: "reranked agents",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0014_rerank.sql")),
    },
    MigrationStep {
        version: 15,
        description: "when documents last changed for searches",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0015_changed_documents.sql")),
    },
    MigrationStep {
        version: 16,
        description: "inline content in a table of its own",
        statements: MigrationSql::PerDriver {
            postgres: concat!(
                include_str!("../../../migrations/0016_document_contents.sql"),
                include_str!("../../../migrations/0016_document_contents.postgres.sql"),
            ),
            sqlite: concat!(
                include_str!("../../../migrations/0016_document_contents.sql"),
                include_str!("../../../migrations/0016_document_contents.sqlite.sql"),
            ),
        },
    },
    MigrationStep {
        version: 17,
        description: "outages, and what is left of failures",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0017_outages.sql")),
    },
    MigrationStep {
        version: 18,
        description: "what a workspace stores at most",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0018_storage_sums.sql")),
    },
    MigrationStep {
        version: 19,
        description: "how many documents a workspace has at most",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0019_document_counts.sql")),
    },
    MigrationStep {
        version: 20,
        description: "what runs of sources went past, and warn of",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0020_source_reports.sql")),
    },
    MigrationStep {
        version: 21,
        description: "files that no document names",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0021_loose_files.sql")),
    },
    MigrationStep {
        version: 22,
        description: "what sources call their documents",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0022_source_names.sql")),
    },
    MigrationStep {
        version: 23,
        description: "what runs of sources found elsewhere",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0023_source_moves.sql")),
    },
    MigrationStep {
        version: 24,
        description: "what the audit log says further",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0024_audit_details.sql")),
    },
    MigrationStep {
        version: 25,
        description: "who answers for webhooks",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0025_webhook_vouchers.sql")),
    },
    MigrationStep {
        version: 26,
        description: "who asked, and what is remembered of which run",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0026_askers.sql")),
    },
    MigrationStep {
        version: 27,
        description: "what answers were asked",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0027_trace_questions.sql")),
    },
    MigrationStep {
        version: 28,
        description: "addresses that are encrypted",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0028_sealed_addresses.sql")),
    },
    MigrationStep {
        version: 29,
        description: "what feeds call their entries",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0029_source_entries.sql")),
    },
    MigrationStep {
        version: 30,
        description: "webhooks that nobody answers for",
        statements: MigrationSql::Shared(include_str!("../../../migrations/0030_unvouched_webhooks.sql")),
    },
];

/// What the steps up to [`WHOLE_VERSION`] make of an empty database, in one script. The steps make tables, columns and indexes that later
/// ones rename, make anew or drop, and an empty database has nothing that would have to be kept meanwhile.
const WHOLE: &str = include_str!("../../../migrations/schema_0022.sql");
/// The version of the schema that [`WHOLE`] makes.
const WHOLE_VERSION: i64 = 22;

/// Why the schema could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// The store itself failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// A step failed, or the schema was written by a newer version of the service.
    #[error("the schema could not be migrated: {0}")]
    Failed(#[from] MigrateError),
    /// The database is new, and could not store every text.
    #[error(
        "the database's encoding is {0}, which lacks most characters: make one of UTF8 (CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0)"
    )]
    Encoding(String),
    /// A migration left rows that point nowhere.
    #[error("the schema was migrated, but {0} rows point to rows that do not exist")]
    DanglingRows(usize),
}

/// Encodings of PostgreSQL's in which every text can be stored: `SQL_ASCII` takes bytes as they come. The others convert what they are
/// given, and refuse what they lack.
const COMPLETE_ENCODINGS: [&str; 2] = ["UTF8", "SQL_ASCII"];

/// How a database's schema stands to this program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaStatus {
    /// There is none: the database is empty.
    Empty,
    /// It is this program's.
    Current,
    /// It is of this earlier version.
    Older(i64),
    /// It is of this later version.
    Newer(i64),
    /// This step was applied in another form than this program has, or not to its end.
    Altered(i64),
}

/// The version of the schema that this program works with.
pub fn version() -> i64 {
    STEPS.last().map_or(0, |step| step.version)
}

/// How the schema stands to this program's.
pub async fn standing(db: &Db) -> super::Result<SchemaStatus> {
    if !has_history(db).await? {
        return Ok(SchemaStatus::Empty);
    }
    let applied: Vec<(i64, bool, Vec<u8>)> = on!(db, |c| sqlx::query_as(
        "SELECT version, success, checksum FROM _sqlx_migrations ORDER BY version"
    )
    .fetch_all(c))?;
    let steps = migrations(SqlDialect::of(db));
    for (version, success, checksum) in &applied {
        let ours = steps.iter().find(|step| step.version == *version);
        if !success || ours.is_some_and(|step| *step.checksum != **checksum) {
            return Ok(SchemaStatus::Altered(*version));
        }
    }
    Ok(match applied.last() {
        None => SchemaStatus::Empty,
        Some((applied, ..)) if *applied < version() => SchemaStatus::Older(*applied),
        Some((applied, ..)) if *applied > version() => SchemaStatus::Newer(*applied),
        Some(_) => SchemaStatus::Current,
    })
}

/// Counts the tables of steps that were taken: one, or none.
const fn count_histories(dialect: SqlDialect) -> &'static str {
    match dialect {
        SqlDialect::Postgres => {
            "SELECT CAST(COUNT(*) AS BIGINT) FROM pg_tables
             WHERE tablename = '_sqlx_migrations' AND schemaname = current_schema()"
        }
        SqlDialect::Sqlite => "SELECT COUNT(*) FROM sqlite_master WHERE name = '_sqlx_migrations'",
    }
}

async fn has_history(db: &Db) -> super::Result<bool> {
    let count = count_histories(SqlDialect::of(db));
    let histories: i64 = on!(db, |c| sqlx::query_scalar(count).fetch_one(c))?;
    Ok(histories > 0)
}

/// The encoding of a database that cannot store every text; none of one that can.
pub async fn incomplete_encoding(db: &Db) -> super::Result<Option<String>> {
    let Db::Postgres { pool, .. } = db else { return Ok(None) };
    let asked = sqlx::query_scalar("SELECT current_setting('server_encoding')").fetch_one(pool);
    let encoding: String = silence::answered(asked).await?;
    Ok((!COMPLETE_ENCODINGS.contains(&encoding.as_str())).then_some(encoding))
}

/// Every step with its checksum, which takes a while to make.
fn migrations(dialect: SqlDialect) -> Vec<Migration> {
    let migration = |step: &MigrationStep| {
        Migration::new(
            step.version,
            Cow::Borrowed(step.description),
            MigrationType::Simple,
            step.statements.of(dialect).into_sql_str(),
            false,
        )
    };
    STEPS.iter().map(migration).collect()
}

/// Brings the schema to an earlier version, for what is to be migrated from there.
#[cfg(test)]
pub(super) async fn run_to(db: &Db, version: i64) -> Result<(), MigrationError> {
    let steps = migrations(SqlDialect::of(db)).into_iter().filter(|step| step.version <= version).collect();
    let migrator = Migrator::with_migrations(steps);
    match db {
        Db::Postgres { pool, .. } => migrator.run(pool).await?,
        Db::Sqlite { writer, .. } => migrator.run(writer).await?,
    }
    Ok(())
}

/// Whether there are steps to take. A database that they would be the first of has to be able to store every text; one that is in use
/// already goes on, and the doctor tells of it.
async fn is_behind(db: &Db) -> Result<bool, MigrationError> {
    let standing = standing(db).await?;
    if standing == SchemaStatus::Empty
        && let Some(encoding) = incomplete_encoding(db).await?
    {
        return Err(MigrationError::Encoding(encoding));
    }
    Ok(standing != SchemaStatus::Current)
}

/// Brings the schema up to date. On PostgreSQL several processes may call this at once, and one does the work; a SQLite file
/// has one process, which the lock on the data directory ensures.
///
/// An empty database gets the whole schema in one transaction, which notes the steps as taken. Each step that is taken is a transaction of
/// its own.
///
/// None of them waits for the disk: one that a crash takes back is taken again, and what is committed after them takes them along.
pub async fn run(db: &Db) -> Result<(), MigrationError> {
    // The rule; what follows looks through every row that points to another.
    if !is_behind(db).await? {
        return Ok(());
    }
    let migrator = Migrator::with_migrations(migrations(SqlDialect::of(db)));
    match db {
        Db::Postgres { pool, .. } => migrate_postgres(pool, &migrator).await,
        Db::Sqlite { writer, .. } => migrate_sqlite(writer, &migrator).await,
    }
}

/// Makes the whole schema where there is none, on a connection that nobody else changes the schema beside. What came about before it was this
/// one's turn is left as it is.
macro_rules! make_whole {
    ($dialect:expr, $connection:expr, $migrator:expr) => {
        let histories = sqlx::query_scalar(count_histories($dialect)).fetch_one(&mut *$connection);
        let histories: i64 = histories.await.map_err(DbError::from)?;
        if histories == 0 {
            let mut tx = $connection.begin().await.map_err(DbError::from)?;
            sqlx::raw_sql(WHOLE).execute(&mut *tx).await.map_err(DbError::from)?;
            $migrator.skip(&mut *tx, Some(WHOLE_VERSION)).await?;
            tx.commit().await.map_err(DbError::from)?;
        }
    };
}

async fn migrate_postgres(pool: &PgPool, migrator: &Migrator) -> Result<(), MigrationError> {
    let mut connection = pool.acquire().await.map_err(DbError::from)?;
    // Rebuilding a large table may take longer than any statement of the service, and so may waiting for another process
    // that does it.
    sqlx::raw_sql(
        "SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0;
         SET synchronous_commit = off",
    )
    .execute(&mut *connection)
    .await
    .map_err(DbError::from)?;
    let migrated = async {
        // The advisory lock that the migrator takes once more for itself.
        connection.lock().await?;
        make_whole!(SqlDialect::Postgres, connection, migrator);
        migrator.run(&mut *connection).await?;
        connection.unlock().await?;
        Ok::<_, MigrationError>(())
    }
    .await;
    sqlx::raw_sql(
        "RESET statement_timeout; RESET lock_timeout; RESET idle_in_transaction_session_timeout;
         RESET synchronous_commit",
    )
    .execute(&mut *connection)
    .await
    .map_err(DbError::from)?;
    migrated
}

async fn migrate_sqlite(writer: &SqlitePool, migrator: &Migrator) -> Result<(), MigrationError> {
    let mut connection = writer.acquire().await.map_err(DbError::from)?;
    // Rebuilding a table with foreign keys on deletes its children.
    sqlx::query("PRAGMA foreign_keys = OFF").execute(&mut *connection).await.map_err(DbError::from)?;
    let migrated = async {
        make_whole!(SqlDialect::Sqlite, connection, migrator);
        migrator.run(&mut *connection).await?;
        Ok::<_, MigrationError>(())
    }
    .await;
    let dangling =
        sqlx::query("PRAGMA foreign_key_check").fetch_all(&mut *connection).await.map_err(DbError::from)?;
    sqlx::query("PRAGMA foreign_keys = ON").execute(&mut *connection).await.map_err(DbError::from)?;
    connection.ping().await.map_err(DbError::from)?;
    migrated?;
    if !dangling.is_empty() {
        return Err(MigrationError::DanglingRows(dangling.len()));
    }
    Ok(())
}
