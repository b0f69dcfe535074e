//! What a backup says of itself.

use std::{io, path::Path};

use lectern_shared::{clock::Timestamp, ids::DocumentId};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;

use super::{
    BackupError,
    files::{self, BackupFile},
};

const MANIFEST: &str = "backup.json";
/// The form of backups that this program writes, and the only one that there is so far.
const FORMAT: u32 = 1;
/// Far more than a manifest has, in bytes.
const LONGEST: u64 = 64 << 20;

/// The uploaded files of a backup. Where each is, how long it is and what it hashes to is in the database beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackupBlobs {
    /// How many there are.
    pub(crate) count: u64,
    /// Their length together.
    pub(crate) bytes: u64,
    /// Documents whose file was missing, or not what it had been, when the backup was made. It is not in the backup.
    pub(crate) missing: Vec<DocumentId>,
}

/// What a backup says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackupManifest {
    /// The form of the backup.
    pub(crate) format: u32,
    /// The version of the program that made it.
    pub(crate) program: String,
    /// The version of the schema.
    pub(crate) schema: i64,
    /// The installation's id.
    pub(crate) instance: String,
    /// When it was made, in UTC.
    pub(crate) created_at: String,
    /// The database.
    pub(crate) database: BackupFile,
    /// The file of the key; none when it is not in the backup.
    pub(crate) key: Option<BackupFile>,
    /// The uploaded files.
    pub(crate) blobs: BackupBlobs,
    /// What a restored installation needs besides, in words.
    pub(crate) not_included: Vec<String>,
}

impl BackupManifest {
    pub(super) fn new(
        instance: String,
        now: Timestamp,
        database: BackupFile,
        key: Option<BackupFile>,
        blobs: BackupBlobs,
        not_included: Vec<String>,
    ) -> Self {
        Self {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            schema: lectern_db::migrate::version(),
            instance,
            created_at: now.to_string(),
            database,
            key,
            blobs,
            not_included,
        }
    }

    /// Reads the manifest of a backup.
    ///
    /// # Errors
    /// [`BackupError::NoManifest`], [`BackupError::Newer`] for one that only a later program understands, and [`BackupError::Io`]: what
    /// this account may not read is a backup all the same.
    pub(crate) async fn read(folder: &Path) -> Result<Self, BackupError> {
        let none = || BackupError::NoManifest(folder.display().to_string());
        let path = folder.join(MANIFEST);
        let file = tokio::fs::File::open(&path).await.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => none(),
            _ => BackupError::io(&path)(error),
        })?;
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text).await.map_err(BackupError::io(&path))?;
        let manifest: Self = serde_json::from_slice(&text).map_err(|_| none())?;
        if manifest.format != FORMAT || manifest.schema > lectern_db::migrate::version() {
            return Err(BackupError::Newer { program: manifest.program, schema: manifest.schema });
        }
        Ok(manifest)
    }

    pub(super) async fn write(&self, folder: &Path) -> Result<(), BackupError> {
        let path = folder.join(MANIFEST);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| BackupError::Io { path: path.display().to_string(), source: error.into() })?;
        files::write(&path, text).await
    }
}
