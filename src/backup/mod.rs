//! Backups of an embedded installation, made while it runs, and what is made of them again.
//!
//! A backup is a folder: the database as of one moment, every file that it names, the key unless it was left out, and a manifest
//! (`backup.json`) with the hash of each. It is written aside and renamed when it is whole and on the disk.

pub(crate) mod command;
mod files;
mod make;
mod manifest;
mod restore;
mod verify;

use std::{io, path::Path};

pub(crate) use self::{make::make, manifest::BackupManifest, restore::restore, verify::verify};
use lectern_db::DbError;
use lectern_shared::blobs::BlobError;

/// Why a backup cannot be made, used or restored. In words for the operator.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    /// Only an embedded installation is backed up so.
    #[error(
        "this installation is over PostgreSQL: back it up and restore it with pg_dump and pg_restore, and its blobs with their store's own means (docs/operations.md, Backup and restore)"
    )]
    Postgres,
    /// There is nothing to back up.
    #[error("there is no database at {0}: set LECTERN_DATA_DIR to that of the service")]
    Nothing(String),
    /// The key is gone.
    #[error("{0} is gone: put it back from an earlier backup, or leave it out of this one (--without-key)")]
    NoKey(String),
    /// The schema is another version's.
    #[error(
        "the database's schema is not this program's: use the program of the version that runs, or bring it up to date with `lectern migrate` first"
    )]
    OtherSchema,
    /// The target is in the way.
    #[error("{0} exists already: name a folder that does not exist")]
    Exists(String),
    /// A backup to the same place did not end, or goes on.
    #[error("{0} is there: another backup goes on, or one was interrupted; delete it if none does")]
    Unfinished(String),
    /// What is to be restored into is not empty.
    #[error("{0} is not empty: a backup is restored into an empty place (LECTERN_DATA_DIR)")]
    NotEmpty(String),
    /// The blob store holds something else.
    #[error(
        "the blobs cannot go to {0}: it belongs to another installation; set LECTERN_BLOBS to an empty place"
    )]
    BlobsElsewhere(String),
    /// The blob store is not the one that the database knows of.
    #[error("{0} is not where this installation keeps its blobs: `lectern doctor` says more")]
    BlobsNotHere(String),
    /// It is no backup.
    #[error("{0} is no backup: it has no backup.json that can be read")]
    NoManifest(String),
    /// A later version of the program made it.
    #[error("this backup was made by Lectern {program} (schema {schema}), which is later than this program")]
    Newer {
        /// The program's version.
        program: String,
        /// The schema's version.
        schema: i64,
    },
    /// Something of it is missing or is not what it was.
    #[error("this backup is damaged, and nothing was restored: {0}")]
    Damaged(String),
    /// Documents were deleted all the while.
    #[error("documents were deleted faster than their files could be copied; try again at a quieter time")]
    TooBusy,
    /// The disk under the backup is full.
    #[error(
        "the disk of {0} has too little room for the backup: make some, or name a folder on another disk"
    )]
    NoRoom(String),
    /// The disk failed.
    #[error("{path}: {source}")]
    Io {
        /// What was read or written.
        path: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The blob store failed.
    #[error(transparent)]
    Blobs(#[from] BlobError),
}

impl BackupError {
    /// What went wrong with a file or a folder.
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Io { path, source }
    }

    /// Whether there was no room on a disk to write to.
    fn is_full(&self) -> bool {
        match self {
            Self::Io { source, .. } | Self::Blobs(BlobError::Io(source)) => {
                source.kind() == io::ErrorKind::StorageFull
            }
            Self::Db(error) => matches!(error, DbError::Full(_)),
            _ => false,
        }
    }
}

/// Names in a backup.
const DATABASE: &str = "lectern.db";
const KEY: &str = "secret.key";
const BLOBS: &str = "blobs";
