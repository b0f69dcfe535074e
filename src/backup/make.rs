//! Making a backup.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use lectern_db::{
    self as db, Db,
    checkup::{self, UploadRecord},
    migrate::{self, SchemaStatus},
    singletons,
};
use lectern_runtime as runtime;
use lectern_shared::{
    blobs::{BlobError, BlobLocation, BlobStore, ListedBlob},
    clock::Clock,
    config::{DatabaseLocation, Settings},
    ids::DocumentId,
};
use tokio_util::io::ReaderStream;

use super::{
    BLOBS, BackupError, DATABASE, KEY,
    files::{self, BackupFile},
    manifest::{BackupBlobs, BackupManifest},
};

/// How often the database is copied because documents were deleted, or got other files, meanwhile.
const ROUNDS: usize = 10;

/// Makes a backup of the installation in a new folder, with or without the file of the key. The service may run meanwhile: what
/// is in the backup is what was there at one moment. Memory does not grow with it.
///
/// # Errors
/// [`BackupError`]; nothing is left behind then.
pub(crate) async fn make(
    settings: &Settings,
    folder: &Path,
    with_key: bool,
) -> Result<BackupManifest, BackupError> {
    let DatabaseLocation::Sqlite(database) = &settings.database else { return Err(BackupError::Postgres) };
    let is_there = |file: &Path| file.try_exists().map_err(BackupError::io(file));
    if !is_there(database)? {
        return Err(BackupError::Nothing(runtime::whole_path(database)));
    }
    let key = runtime::secret_file(&settings.data_dir);
    if with_key && settings.secret_key.is_none() && !is_there(&key)? {
        return Err(BackupError::NoKey(key.display().to_string()));
    }
    if folder.exists() {
        return Err(BackupError::Exists(folder.display().to_string()));
    }
    let mut partial = folder.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    if partial.exists() {
        return Err(BackupError::Unfinished(partial.display().to_string()));
    }
    files::make_folder(&partial).await?;
    let end = match fill(settings, database, &partial, with_key).await {
        Ok(manifest) => files::rename(&partial, folder).await.map(|()| manifest),
        // Nothing is written anywhere else.
        Err(error) if error.is_full() => Err(BackupError::NoRoom(folder.display().to_string())),
        Err(error) => Err(error),
    };
    if end.is_err() {
        // The first failure is the one to tell.
        let _ = tokio::fs::remove_dir_all(&partial).await;
    }
    end
}

async fn fill(
    settings: &Settings,
    database: &Path,
    folder: &Path,
    with_key: bool,
) -> Result<BackupManifest, BackupError> {
    if let BlobLocation::Folder(place) = &settings.blobs
        && !place.is_dir()
    {
        return Err(BackupError::BlobsNotHere(settings.blobs.to_string()));
    }
    let source = BlobStore::open(&settings.blobs).await?;
    let target = BlobStore::open(&BlobLocation::Folder(folder.join(BLOBS))).await?;
    let copy = folder.join(DATABASE);
    let mut missing = BTreeSet::new();
    for _ in 0..ROUNDS {
        match tokio::fs::remove_file(&copy).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(BackupError::io(&copy)(error));
            }
            Ok(()) | Err(_) => {}
        }
        db::copy::snapshot(database, &copy).await?;
        let snapshot = db::open_read_only(&copy).await?;
        let copied = BlobCopier { settings, snapshot: &snapshot, source: &source, target: &target };
        let copied = copied.run(&mut missing).await;
        snapshot.close().await;
        if let Some((blobs, instance)) = copied? {
            // It is empty by now, and means nothing in a backup.
            let _ = tokio::fs::remove_dir(folder.join(BLOBS).join("incoming")).await;
            return seal(settings, folder, with_key, blobs, instance).await;
        }
        tracing::info!("files went meanwhile; the database is copied again");
    }
    Err(BackupError::TooBusy)
}

/// The files that a copy of the database names.
struct BlobCopier<'a> {
    settings: &'a Settings,
    snapshot: &'a Db,
    source: &'a BlobStore,
    target: &'a BlobStore,
}

impl BlobCopier<'_> {
    /// Copies them, and says what there is of them and whose they are. None when some are gone and it is not known yet whether for
    /// good: in the next copy of the database those that were deleted or replaced are not named any more. `missing` are files that were
    /// not there the last time, with their documents.
    async fn run(
        &self,
        missing: &mut BTreeSet<(DocumentId, String)>,
    ) -> Result<Option<(BackupBlobs, String)>, BackupError> {
        let Self { settings, snapshot, source, target } = *self;
        if migrate::standing(snapshot).await? != SchemaStatus::Current {
            return Err(BackupError::OtherSchema);
        }
        let known = singletons::get(snapshot, runtime::BLOBS).await?;
        if known.is_none() || known != source.owner().await? {
            return Err(BackupError::BlobsNotHere(settings.blobs.to_string()));
        }
        let mut files = BackupBlobs::default();
        let mut gone = BTreeSet::new();
        let mut after = checkup::beginning();
        loop {
            let page = checkup::uploads(snapshot, after).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            for upload in &page {
                if copy(upload, source, target).await? {
                    files.count += 1;
                    files.bytes += u64::try_from(upload.source_bytes).unwrap_or(0);
                } else {
                    gone.insert((upload.id, upload.blob_key.clone()));
                }
            }
        }
        let is_known = gone.is_subset(missing);
        *missing = gone;
        if !is_known {
            return Ok(None);
        }
        files.missing = missing.iter().map(|(document, _)| *document).collect();
        self.reconcile().await?;
        let instance = singletons::get(snapshot, runtime::INSTANCE).await?.unwrap_or_default();
        Ok(Some((files, instance)))
    }

    /// Removes what earlier copies of the database named and the last one does not.
    async fn reconcile(&self) -> Result<(), BackupError> {
        let visit = async |listed: Vec<ListedBlob>| {
            let ids: Vec<DocumentId> = listed.iter().map(|blob| blob.document).collect();
            let holders = checkup::holders(self.snapshot, &ids).await?;
            let holders: HashMap<DocumentId, _> =
                holders.into_iter().map(|holder| (holder.id, holder)).collect();
            for blob in listed {
                let holder = holders.get(&blob.document).filter(|holder| !holder.tombstone);
                if holder.and_then(|holder| holder.blob_key.as_ref()) != Some(&blob.key) {
                    self.target.remove(&blob.key).await?;
                }
            }
            Ok::<(), BackupError>(())
        };
        self.target.list(visit).await
    }
}

/// Copies a document's file, unless an earlier round did; false when it is not there, or is not what was uploaded.
async fn copy(upload: &UploadRecord, source: &BlobStore, target: &BlobStore) -> Result<bool, BackupError> {
    let bytes = u64::try_from(upload.source_bytes).unwrap_or(0);
    if target.size(&upload.blob_key).await? == Some(bytes) {
        return Ok(true);
    }
    let reader = match source.get(&upload.blob_key).await {
        Ok(reader) => reader,
        Err(BlobError::NotFound) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    // A file that has grown is not what was uploaded, and need not be read to its end.
    let stored = match target.put_as(&upload.blob_key, ReaderStream::new(reader), bytes).await {
        Ok(stored) => stored,
        Err(BlobError::TooLarge { .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let is_right = stored.bytes == bytes && stored.sha256 == *upload.source_sha256;
    if !is_right {
        target.remove(&upload.blob_key).await?;
    }
    Ok(is_right)
}

/// Adds what is besides the database and the files, and puts all of it on the disk.
async fn seal(
    settings: &Settings,
    folder: &Path,
    with_key: bool,
    blobs: BackupBlobs,
    instance: String,
) -> Result<BackupManifest, BackupError> {
    let copy = folder.join(DATABASE);
    let private = std::fs::Permissions::from_mode(files::PRIVATE);
    tokio::fs::set_permissions(&copy, private).await.map_err(BackupError::io(&copy))?;
    files::sync(&copy).await?;
    let database = files::read(&copy).await?;
    let database = database.ok_or_else(|| BackupError::Nothing(copy.display().to_string()))?;
    let (key, not_included) = key(settings, folder, with_key).await?;
    let manifest = BackupManifest::new(instance, Clock::system().now(), database, key, blobs, not_included);
    manifest.write(folder).await?;
    files::sync(&folder.join(BLOBS)).await?;
    files::sync(folder).await?;
    Ok(manifest)
}

/// The file of the key, if it is to be in the backup; and what is not in it.
async fn key(
    settings: &Settings,
    folder: &Path,
    with_key: bool,
) -> Result<(Option<BackupFile>, Vec<String>), BackupError> {
    let mut not_included = Vec::new();
    let file = runtime::secret_file(&settings.data_dir);
    let key = if settings.secret_key.is_some() {
        not_included.push("the key, which is the setting LECTERN_SECRET_KEY".to_owned());
        None
    } else if with_key {
        Some(files::copy(&file, &folder.join(KEY)).await?)
    } else {
        not_included.push("the key, which is the file secret.key".to_owned());
        None
    };
    if settings.secret_key_previous.is_some() {
        not_included.push("the key before it, which is the setting LECTERN_SECRET_KEY_PREVIOUS".to_owned());
    }
    if settings.qdrant.is_some() {
        not_included.push("the index, which is in Qdrant: `lectern reindex` makes it again".to_owned());
    }
    Ok((key, not_included))
}
