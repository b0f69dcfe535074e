//! Why the service cannot start, for whoever starts it.

use std::io;

use lectern_db::{DbError, migrate::MigrationError};
use lectern_index::IndexError;
use lectern_shared::{
    blobs::BlobError, config::DatabaseLocation, egress::EgressError, redis::RedisError, secrets::SecretError,
};

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeStartError {
    /// The data directory cannot be used.
    #[error(
        "the data directory cannot be used: {path}: {source}: let this account read and write it, or set LECTERN_DATA_DIR to another folder"
    )]
    DataDir {
        /// The directory, or what in it cannot be used.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Others on the machine could read the data directory.
    #[error(
        "the data directory {path} is open to other users of this machine, and that cannot be changed ({source}): as its owner, run `chmod -R go= {path}`, or set LECTERN_DATA_DIR to a new folder in it or elsewhere, which the service makes for itself"
    )]
    DataDirOpen {
        /// The directory.
        path: String,
        /// Why it stays open.
        source: io::Error,
    },
    /// Another process works on the same data directory.
    #[error(
        "the data directory {0} is in use by another process: stop it, or set LECTERN_DATA_DIR to another directory"
    )]
    InUse(String),
    /// A command looks for an installation where none is.
    #[error(
        "there is no database at {0}: set LECTERN_DATA_DIR (the folder that the service keeps everything in) or DATABASE_URL to those of the service. A new installation is made when the service is started"
    )]
    Nothing(String),
    /// A command of one version finds the schema of another.
    #[error(
        "the database's schema is not this program's: use the program of the version that runs, or bring the schema up to date with `lectern migrate`"
    )]
    OtherSchema,
    /// The schema is of a later version.
    #[error(
        "the database's schema is version {0}, which a newer program made: use that program; to go back to this one, restore a backup of its time"
    )]
    NewerSchema(i64),
    /// Without the secret nothing that is encrypted could be read.
    #[error("LECTERN_SECRET_KEY must be set when DATABASE_URL is, so that every process has the same key")]
    SecretMissing,
    /// The secret is not the one under which the database was filled.
    #[error(
        "LECTERN_SECRET_KEY is not the key of this database: set the right one, or give the old one as LECTERN_SECRET_KEY_PREVIOUS"
    )]
    WrongSecret,
    /// The file with the secret is gone, and the database was filled under it.
    #[error(
        "{0} is gone, and this database was filled under the key in it: put it back from a backup, or set LECTERN_SECRET_KEY to what it held"
    )]
    SecretLost(String),
    /// The file with the secret holds another one than that under which the database was filled.
    #[error(
        "{0} does not hold the key that this database was filled under: put that back from a backup, or set it as LECTERN_SECRET_KEY. When the key was changed, give the old one as LECTERN_SECRET_KEY_PREVIOUS"
    )]
    WrongSecretFile(String),
    /// What the file with the secret holds is no key.
    #[error("{file}: {source}: put the file back from a backup, or set LECTERN_SECRET_KEY to what it held")]
    SecretFile {
        /// The file.
        file: String,
        /// Why it is none.
        source: SecretError,
    },
    /// The secret cannot be used.
    #[error("LECTERN_SECRET_KEY: {0}")]
    Secret(#[from] SecretError),
    /// The store failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// PostgreSQL is away, or refused what a start needs.
    #[error(
        "DATABASE_URL: {0}: see that PostgreSQL runs, and that the address, the account, the password and the database's name are right; `lectern doctor` says more"
    )]
    Postgres(#[source] DbError),
    /// SQLite's file cannot be used.
    #[error("{file}: {source}: `lectern doctor` says what to do")]
    DatabaseFile {
        /// The file.
        file: String,
        /// Why.
        source: DbError,
    },
    /// The schema cannot be used.
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// The blob store failed.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// The bucket is away, or refuses.
    #[error(
        "LECTERN_BLOBS: {0}: see that the store runs, and that its address (AWS_ENDPOINT_URL), the bucket and the account's keys are right"
    )]
    BlobsAway(#[source] BlobError),
    /// A SQLite file has one process.
    #[error(
        "several processes cannot work on one SQLite file: set DATABASE_URL to a PostgreSQL database, or run `lectern`, which is the API and the worker in one process"
    )]
    SqliteInParts,
    /// The blob store is not the one that this installation's blobs are in.
    #[error(
        "{place} is not where this installation keeps its blobs: share that folder or bucket with every process (LECTERN_BLOBS). If the blobs are lost for good, put a file named `instance` that holds {mark} there, and it is taken as it is"
    )]
    BlobsElsewhere {
        /// The store that is set.
        place: String,
        /// What the right one is marked with.
        mark: String,
    },
    /// The search index is not the one that this installation's documents are in.
    #[error(
        "the documents are in the index of {known}, and the settings name {set}: set QDRANT_URL as every other process has it. To move to {set}, stop every process and run `lectern reindex`"
    )]
    IndexElsewhere {
        /// Where they are.
        known: String,
        /// What is set.
        set: &'static str,
    },
    /// The address of Redis cannot be used.
    #[error("REDIS_URL: {0}")]
    Redis(#[from] RedisError),
    /// The search engine cannot be used.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Qdrant is away, or refuses.
    #[error("QDRANT_URL: {0}")]
    Qdrant(#[source] IndexError),
    /// The outbound client cannot be built.
    #[error(transparent)]
    Egress(#[from] EgressError),
}

impl RuntimeStartError {
    /// Says which setting names the part that an error is of: the part does not know.
    pub(crate) fn with_setting(self, database: &DatabaseLocation) -> Self {
        let source = match self {
            Self::Db(source)
            | Self::Migration(MigrationError::Db(source))
            | Self::Index(IndexError::Db(source)) => source,
            Self::Blobs(source @ BlobError::Unavailable { .. }) => return Self::BlobsAway(source),
            Self::Index(source @ (IndexError::Engine(_) | IndexError::Refused(_))) => {
                return Self::Qdrant(source);
            }
            other => return other,
        };
        match (database, &source) {
            (DatabaseLocation::Postgres(_), DbError::Failed(_) | DbError::CommitUnknown(_)) => {
                Self::Postgres(source)
            }
            // PostgreSQL runs and lets the service in: no setting is wrong.
            (DatabaseLocation::Postgres(_), _) => Self::Db(source),
            (DatabaseLocation::Sqlite(file), _) => {
                Self::DatabaseFile { file: file.display().to_string(), source }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use secrecy::SecretString;

    use super::*;

    #[test]
    fn a_part_that_keeps_the_service_from_starting_is_told_with_what_names_it() {
        let database = DatabaseLocation::Sqlite(PathBuf::from("/srv/data/lectern.db"));
        let away = BlobError::Unavailable { what: "s3://bucket/prefix: it cannot be reached".to_owned() };
        let errors = [
            (RuntimeStartError::Db(DbError::Full("it is full".to_owned())), "/srv/data/lectern.db: "),
            (RuntimeStartError::Blobs(away), "LECTERN_BLOBS: "),
            (RuntimeStartError::Index(IndexError::Engine("nobody answers".to_owned())), "QDRANT_URL: "),
        ];
        for (error, named) in errors {
            let cause = error.to_string();
            let told = error.with_setting(&database).to_string();
            assert!(told.starts_with(named) && told.contains(&cause), "{told}");
        }
        let server = DatabaseLocation::Postgres(SecretString::from("postgres://ada:hunter2@db/lectern"));
        let full = || RuntimeStartError::Db(DbError::Full("its disk is full".to_owned()));
        assert_eq!(full().with_setting(&server).to_string(), full().to_string(), "the address is right");
    }
}
