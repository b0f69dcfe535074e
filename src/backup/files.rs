//! Files and folders that are on the disk when a call returns, and that nobody else may read.

use std::{
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

use lectern_shared::secrets::{Sha256Hasher, hex};
use serde::{Deserialize, Serialize};
use tokio::fs::{self, File};

use super::BackupError;

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackupFile {
    /// Its length.
    pub(crate) bytes: u64,
    /// SHA-256 of it, in hexadecimal digits.
    pub(crate) sha256: String,
}

/// The rights of files.
pub(super) const PRIVATE: u32 = 0o600;
/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// Makes a folder, and those above it.
pub(super) async fn make_folder(path: &Path) -> Result<(), BackupError> {
    let folder = path.to_owned();
    off_thread(path, move || std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)).await
}

/// Writes a new file.
pub(super) async fn write(path: &Path, bytes: Vec<u8>) -> Result<(), BackupError> {
    let target = path.to_owned();
    let write = move || {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.create_new(true).write(true).mode(PRIVATE).open(target)?;
        file.write_all(&bytes)?;
        file.sync_all()
    };
    off_thread(path, write).await
}

/// Copies a file to a new one; what was copied.
pub(super) async fn copy(from: &Path, to: &Path) -> Result<BackupFile, BackupError> {
    let (source, target) = (from.to_owned(), to.to_owned());
    let mut source = off_thread(from, move || std::fs::File::open(source)).await?;
    let copy = move || {
        let mut options = std::fs::OpenOptions::new();
        let mut target = options.create_new(true).write(true).mode(PRIVATE).open(target)?;
        let stored = pass(&mut source, |some| target.write_all(some))?;
        target.sync_all()?;
        Ok(stored)
    };
    off_thread(to, copy).await
}

/// What a file is; none when there is no such file.
pub(super) async fn read(path: &Path) -> Result<Option<BackupFile>, BackupError> {
    let file = path.to_owned();
    let read = move || match std::fs::File::open(file) {
        Ok(mut file) => pass(&mut file, |_| Ok(())).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    off_thread(path, read).await
}

/// Reads a file to its end, and shows it to `take` piece by piece. Blocks.
fn pass(source: &mut std::fs::File, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<BackupFile> {
    let (mut hasher, mut bytes) = (Sha256Hasher::default(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        let read = source.read(&mut piece)?;
        if read == 0 {
            return Ok(BackupFile { bytes, sha256: hex(&hasher.finish()) });
        }
        let some = piece.get(..read).unwrap_or_default();
        take(some)?;
        hasher.update(some);
        bytes += read as u64;
    }
}

async fn off_thread<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, BackupError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(io::Error::other);
    done.and_then(|done| done).map_err(BackupError::io(path))
}

/// Puts a file, or what a folder holds by name, on the disk.
pub(super) async fn sync(path: &Path) -> Result<(), BackupError> {
    let synced = async { File::open(path).await?.sync_all().await };
    synced.await.map_err(BackupError::io(path))
}

/// Gives a file its place, and puts that on the disk.
pub(super) async fn rename(from: &Path, to: &Path) -> Result<(), BackupError> {
    fs::rename(from, to).await.map_err(BackupError::io(to))?;
    sync(to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))).await
}
