//! Blobs in a folder, which several processes may share.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use rustix::fs::{Access, access};
use tokio::{
    fs::{self, File},
    io::AsyncWriteExt,
    runtime::Handle,
};

use super::{BlobError, BlobMeter, BlobReader, LISTED, ListedBlob, MARKER, read_marker};
use crate::{clock::Timestamp, ids::DocumentId};

/// Where files are until they are whole.
const INCOMING: &str = "incoming";

/// A folder of blobs.
pub(super) struct BlobFolder {
    root: PathBuf,
}

impl BlobFolder {
    pub(super) async fn open(root: &Path) -> Result<Self, BlobError> {
        fs::create_dir_all(root.join(INCOMING)).await.map_err(|error| unusable(root, &error))?;
        Ok(Self::at(root))
    }

    pub(super) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(super) fn place(&self) -> String {
        self.root.display().to_string()
    }

    /// Fails when nothing can be stored for want of a right.
    pub(super) async fn check_rights(&self) -> Result<(), BlobError> {
        let folders = [self.root.clone(), self.root.join(INCOMING)];
        let rights = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        let looked =
            tokio::task::spawn_blocking(move || folders.iter().try_for_each(|folder| access(folder, rights)));
        Ok(looked.await.map_err(io::Error::other)?.map_err(io::Error::from)?)
    }

    pub(super) async fn owner(&self) -> Result<Option<String>, BlobError> {
        match File::open(self.root.join(MARKER)).await {
            Ok(marker) => Ok(Some(read_marker(marker).await?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the marker unless there is one.
    pub(super) async fn mark(&self, instance: &str) -> Result<(), BlobError> {
        // Written aside and linked, so that nobody reads half of it and the first one wins.
        let name = format!("{MARKER}-{}", uuid::Uuid::now_v7().simple());
        let (mut fresh, mut file) = TemporaryFile::create(self.root.join(INCOMING).join(name)).await?;
        file.write_all(instance.as_bytes()).await?;
        file.sync_all().await?;
        drop(file);
        let marker = self.root.join(MARKER);
        match fs::hard_link(&fresh.path, &marker).await {
            Ok(()) => fresh.remove().await,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fresh.remove().await;
                return Ok(());
            }
            // Some shared file systems have no hard links; on them the last one wins, and reads its own mark back.
            Err(error) => {
                tracing::debug!(%error, "the blob folder has no hard links");
                fresh.rename(&marker).await?;
            }
        }
        sync_folder(&self.root).await
    }

    pub(super) async fn put<E: Into<io::Error>>(
        &self,
        document: DocumentId,
        name: &str,
        mut body: impl Stream<Item = Result<Bytes, E>> + Unpin,
        meter: &mut BlobMeter,
    ) -> Result<(), BlobError> {
        let (mut incoming, mut file) = TemporaryFile::create(self.root.join(INCOMING).join(name)).await?;
        let written: Result<(), BlobError> = async {
            while let Some(part) = body.next().await {
                let part = part.map_err(Into::into)?;
                meter.add(&part)?;
                file.write_all(&part).await?;
            }
            file.sync_all().await?;
            drop(file);
            let folder = self.folder(document);
            fs::create_dir_all(&folder).await?;
            incoming.rename(&folder.join(name)).await?;
            // The names must be on disk before a row points to them: the file's, the folder's and its shard's.
            for folder in folder.ancestors().take(3) {
                sync_folder(folder).await?;
            }
            Ok(())
        }
        .await;
        if written.is_err() {
            incoming.remove().await;
        }
        written
    }

    pub(super) async fn get(&self, document: DocumentId, name: &str) -> Result<BlobReader, BlobError> {
        match File::open(self.folder(document).join(name)).await {
            Ok(file) => Ok(Box::new(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(BlobError::NotFound),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn size(&self, document: DocumentId, name: &str) -> Result<Option<u64>, BlobError> {
        match fs::metadata(self.folder(document).join(name)).await {
            Ok(there) => Ok(there.is_file().then_some(there.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn remove(&self, document: DocumentId, name: &str) -> Result<(), BlobError> {
        let folder = self.folder(document);
        match fs::remove_file(folder.join(name)).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        // It stays while there are others.
        let _ = fs::remove_dir(&folder).await;
        Ok(())
    }

    pub(super) async fn list<E: From<BlobError>>(
        &self,
        mut visit: impl AsyncFnMut(Vec<ListedBlob>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut found = Vec::new();
        let mut shards = entries(&self.root).await?;
        while let Some((_, shard)) = next(&mut shards).await? {
            let mut folders = entries(&shard).await?;
            while let Some((id, folder)) = next(&mut folders).await? {
                let Ok(document) = id.parse::<DocumentId>() else { continue };
                let mut files = entries(&folder).await?;
                while let Some((name, path)) = next(&mut files).await? {
                    // It may have been removed since it was listed.
                    let Ok(there) = fs::metadata(&path).await else { continue };
                    if !there.is_file() {
                        continue;
                    }
                    let modified = there.modified().ok().map_or(0, micros);
                    found.push(ListedBlob {
                        key: format!("{document}/{name}"),
                        document,
                        bytes: there.len(),
                        modified: Timestamp::from_micros(modified),
                    });
                    if found.len() == LISTED {
                        visit(std::mem::take(&mut found)).await?;
                    }
                }
            }
        }
        if found.is_empty() { Ok(()) } else { visit(found).await }
    }

    pub(super) async fn remove_document(&self, document: DocumentId) -> Result<(), BlobError> {
        match fs::remove_dir_all(self.folder(document)).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(super) async fn forget_unfinished(&self, older_than: Duration) -> Result<(), BlobError> {
        let mut unfinished = fs::read_dir(self.root.join(INCOMING)).await?;
        while let Some(entry) = unfinished.next_entry().await? {
            // It may be finished, or removed by another process, at any moment.
            match forget(&entry, older_than).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Ids made in the same hour share their first characters; the last ones spread the folders evenly.
    fn folder(&self, document: DocumentId) -> PathBuf {
        let id = document.to_string();
        let (_, shard) = id.split_at(id.len() - 2);
        self.root.join(shard).join(&id)
    }
}

/// The system's error says neither which folder it is about nor what names it.
fn unusable(root: &Path, error: &io::Error) -> io::Error {
    let what = format!("the folder {} (LECTERN_BLOBS) cannot be made: {error}", root.display());
    io::Error::new(error.kind(), what)
}

/// What is in a folder; nothing when it is none, or gone by now.
async fn entries(folder: &Path) -> Result<Option<fs::ReadDir>, BlobError> {
    match fs::read_dir(folder).await {
        Ok(entries) => Ok(Some(entries)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

async fn next(entries: &mut Option<fs::ReadDir>) -> Result<Option<(String, PathBuf)>, BlobError> {
    let Some(entries) = entries else { return Ok(None) };
    let entry = entries.next_entry().await?;
    Ok(entry.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())))
}

/// Microseconds since 1970.
fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

async fn forget(entry: &fs::DirEntry, older_than: Duration) -> io::Result<()> {
    let metadata = entry.metadata().await?;
    // The time comes from the file system, so it is the machine's clock that it is compared with. One in the future is new.
    let age = metadata.modified()?.elapsed().unwrap_or_default();
    if metadata.is_file() && age > older_than {
        fs::remove_file(entry.path()).await?;
    }
    Ok(())
}

async fn sync_folder(folder: &Path) -> Result<(), BlobError> {
    Ok(File::open(folder).await?.sync_all().await?)
}

/// A file that is removed unless it is moved to its place.
struct TemporaryFile {
    path: PathBuf,
    gone: bool,
}

impl TemporaryFile {
    async fn create(path: PathBuf) -> io::Result<(Self, File)> {
        // Guarded before it is made: making it goes on when this is dropped.
        let incoming = Self { path, gone: false };
        let file = File::create(&incoming.path).await?;
        Ok((incoming, file))
    }

    async fn rename(&mut self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to).await?;
        self.gone = true;
        Ok(())
    }

    async fn remove(&mut self) {
        if !self.gone {
            self.gone = fs::remove_file(&self.path).await.is_ok();
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let (false, Ok(runtime)) = (self.gone, Handle::try_current()) {
            let path = std::mem::take(&mut self.path);
            runtime.spawn_blocking(move || std::fs::remove_file(path));
        }
    }
}
