//! Seeing whether a backup is whole.

use std::{collections::BTreeSet, path::Path};

use lectern_db::{
    self as db, Db,
    checkup::{self, UploadRecord},
    migrate::{self, SchemaStatus},
    singletons,
};
use lectern_runtime as runtime;
use lectern_shared::{
    blobs::{BlobError, BlobStore},
    ids::DocumentId,
    secrets::Sha256Hasher,
};
use tokio::io::AsyncReadExt as _;

use super::{
    BLOBS, BackupError, DATABASE, KEY,
    files::{self, BackupFile},
    manifest::BackupManifest,
};

/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// Reads all of a backup, and compares it with what it says of itself. Nothing is written.
///
/// # Errors
/// [`BackupError::Damaged`] with the first thing that is missing or altered, and why it cannot be read.
pub(crate) async fn verify(folder: &Path) -> Result<BackupManifest, BackupError> {
    let manifest = BackupManifest::read(folder).await?;
    compare(folder, DATABASE, &manifest.database).await?;
    if let Some(key) = &manifest.key {
        compare(folder, KEY, key).await?;
    }
    let db = db::open_read_only(&folder.join(DATABASE)).await.map_err(|error| damaged(error.to_string()))?;
    let end = within(&db, folder, &manifest).await;
    db.close().await;
    end.map(|()| manifest)
}

fn damaged(what: impl Into<String>) -> BackupError {
    BackupError::Damaged(what.into())
}

async fn compare(folder: &Path, name: &str, wanted: &BackupFile) -> Result<(), BackupError> {
    match files::read(&folder.join(name)).await? {
        None => Err(damaged(format!("{name} is missing"))),
        Some(found) if found.bytes != wanted.bytes => {
            Err(damaged(format!("{name} has {} bytes, and had {}", found.bytes, wanted.bytes)))
        }
        Some(found) if found.sha256 != wanted.sha256 => Err(damaged(format!("{name} was altered"))),
        Some(_) => Ok(()),
    }
}

/// Whether the database is sound, and every file that it names is there and what it was.
async fn within(db: &Db, folder: &Path, manifest: &BackupManifest) -> Result<(), BackupError> {
    if let Some(problem) = checkup::damage(db, true).await?.first() {
        return Err(damaged(format!("{DATABASE}: {problem}")));
    }
    match migrate::standing(db).await? {
        SchemaStatus::Current | SchemaStatus::Older(_) => {}
        SchemaStatus::Newer(schema) => {
            return Err(BackupError::Newer { program: manifest.program.clone(), schema });
        }
        SchemaStatus::Empty | SchemaStatus::Altered(_) => {
            return Err(damaged(format!("the schema of {DATABASE} is not one of this program's")));
        }
    }
    if singletons::get(db, runtime::INSTANCE).await?.as_ref() != Some(&manifest.instance) {
        return Err(damaged(format!("{DATABASE} is another installation's")));
    }
    let missing: BTreeSet<DocumentId> = manifest.blobs.missing.iter().copied().collect();
    let blobs = BlobStore::open_read_only(&folder.join(BLOBS));
    let mut count = 0;
    let mut after = checkup::beginning();
    loop {
        let page = checkup::uploads(db, after).await?;
        let Some(last) = page.last() else { break };
        after = last.id;
        for upload in page.iter().filter(|upload| !missing.contains(&upload.id)) {
            file(&blobs, upload).await?;
            count += 1;
        }
    }
    if count == manifest.blobs.count {
        Ok(())
    } else {
        Err(damaged(format!("it has {count} files, and had {}", manifest.blobs.count)))
    }
}

async fn file(blobs: &BlobStore, upload: &UploadRecord) -> Result<(), BackupError> {
    let mut reader = match blobs.get(&upload.blob_key).await {
        Ok(reader) => reader,
        Err(BlobError::NotFound) => {
            return Err(damaged(format!("the file of document {} is missing", upload.id)));
        }
        Err(error) => return Err(error.into()),
    };
    let mut hasher = Sha256Hasher::default();
    let mut piece = vec![0; PIECE];
    loop {
        match reader.read(&mut piece).await.map_err(BlobError::from)? {
            0 => break,
            read => hasher.update(piece.get(..read).unwrap_or_default()),
        }
    }
    if hasher.finish() == *upload.source_sha256 {
        Ok(())
    } else {
        Err(damaged(format!("the file of document {} was altered", upload.id)))
    }
}
