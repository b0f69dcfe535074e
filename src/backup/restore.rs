//! Making an installation of a backup.

use std::{collections::BTreeSet, io, path::Path};

use lectern_db::{self as db, checkup, singletons};
use lectern_runtime as runtime;
use lectern_shared::{
    blobs::{BlobError, BlobLocation, BlobStore},
    config::{DatabaseLocation, Settings},
    ids::DocumentId,
};
use tokio_util::io::ReaderStream;

use super::{BLOBS, BackupError, DATABASE, KEY, files, manifest::BackupManifest, verify};

/// Makes the installation of these settings, which must not exist yet, of a backup. The backup is read to its end first, so that
/// nothing is written when it is damaged. The blob store must be empty, or be the one that the backup was made of: then what it
/// lacks is added.
///
/// # Errors
/// [`BackupError`]; the data directory is empty again then.
pub(crate) async fn restore(settings: &Settings, folder: &Path) -> Result<BackupManifest, BackupError> {
    let DatabaseLocation::Sqlite(database) = &settings.database else { return Err(BackupError::Postgres) };
    let manifest = verify(folder).await?;
    check_empty(&settings.data_dir).await?;
    let snapshot = db::open_read_only(&folder.join(DATABASE)).await?;
    let mark = singletons::get(&snapshot, runtime::BLOBS).await;
    let end = match mark {
        Ok(mark) => write(settings, database, folder, &manifest, &snapshot, mark.as_deref()).await,
        Err(error) => Err(error.into()),
    };
    snapshot.close().await;
    match end {
        Ok(()) => Ok(manifest),
        Err(error) => {
            if let Err(problem) = empty(&settings.data_dir).await {
                tracing::warn!(%problem, "what was written so far could not be removed");
            }
            Err(error)
        }
    }
}

/// Refuses a data directory in which there is anything.
async fn check_empty(data_dir: &Path) -> Result<(), BackupError> {
    let entry = async { tokio::fs::read_dir(data_dir).await?.next_entry().await };
    match entry.await {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(BackupError::NotEmpty(data_dir.display().to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(BackupError::io(data_dir)(error)),
    }
}

/// Removes everything in the data directory, which was empty.
async fn empty(data_dir: &Path) -> io::Result<()> {
    let mut entries = match tokio::fs::read_dir(data_dir).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    while let Some(entry) = entries.next_entry().await? {
        if entry.file_type().await?.is_dir() {
            tokio::fs::remove_dir_all(entry.path()).await?;
        } else {
            tokio::fs::remove_file(entry.path()).await?;
        }
    }
    Ok(())
}

async fn write(
    settings: &Settings,
    database: &Path,
    folder: &Path,
    manifest: &BackupManifest,
    snapshot: &db::Db,
    mark: Option<&str>,
) -> Result<(), BackupError> {
    let elsewhere = || BackupError::BlobsElsewhere(settings.blobs.to_string());
    // Looked at before anything is made.
    let owner = match &settings.blobs {
        BlobLocation::Folder(place) => BlobStore::open_read_only(place).owner().await?,
        BlobLocation::S3(_) => BlobStore::open(&settings.blobs).await?.owner().await?,
    };
    if owner.is_some() && owner.as_deref() != mark {
        return Err(elsewhere());
    }
    files::make_folder(&settings.data_dir).await?;
    let target = BlobStore::open(&settings.blobs).await?;
    if let Some(mark) = mark {
        target.claim(mark).await.map_err(|error| match error {
            BlobError::Foreign(_) => elsewhere(),
            error => error.into(),
        })?;
    }
    blobs(folder, manifest, snapshot, &target).await?;
    if manifest.key.is_some() {
        files::copy(&folder.join(KEY), &runtime::secret_file(&settings.data_dir)).await?;
    }
    // The database last, under its name only when it is whole: without it nothing starts as this installation.
    let mut aside = database.as_os_str().to_owned();
    aside.push(".restoring");
    let aside = Path::new(&aside);
    let copied = files::copy(&folder.join(DATABASE), aside).await?;
    if copied != manifest.database {
        return Err(BackupError::Damaged(format!("{DATABASE} changed while it was copied")));
    }
    files::rename(aside, database).await
}

/// Puts the files that the database names into the store, except those that are there already.
async fn blobs(
    folder: &Path,
    manifest: &BackupManifest,
    snapshot: &db::Db,
    target: &BlobStore,
) -> Result<(), BackupError> {
    let missing: BTreeSet<DocumentId> = manifest.blobs.missing.iter().copied().collect();
    let source = BlobStore::open_read_only(&folder.join(BLOBS));
    let mut after = checkup::beginning();
    loop {
        let page = checkup::uploads(snapshot, after).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id;
        for upload in page.iter().filter(|upload| !missing.contains(&upload.id)) {
            let bytes = u64::try_from(upload.source_bytes).unwrap_or(0);
            if target.size(&upload.blob_key).await? == Some(bytes) {
                continue;
            }
            let reader = source.get(&upload.blob_key).await?;
            let stored = target.put_as(&upload.blob_key, ReaderStream::new(reader), bytes).await?;
            if stored.sha256 != *upload.source_sha256 {
                let what = format!("the file of document {} changed while it was copied", upload.id);
                return Err(BackupError::Damaged(what));
            }
        }
    }
}
