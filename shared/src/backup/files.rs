//! Files and folders that are on the disk when a call returns, and that nobody else may read.

use std::{os::unix::fs::DirBuilderExt as _, path::Path};

use tokio::{
    fs::{self, File, OpenOptions},
    io::{AsyncReadExt as _, AsyncWriteExt as _},
};

use super::{BackupError, manifest::Stored};
use crate::secrets::{Hasher, hex};

/// The rights of files.
pub(super) const PRIVATE: u32 = 0o600;
/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// Makes a folder, and those above it.
pub(super) async fn make_folder(path: &Path) -> Result<(), BackupError> {
    let folder = path.to_owned();
    let make = move || std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    let made = tokio::task::spawn_blocking(make).await.map_err(std::io::Error::other);
    made.and_then(|made| made).map_err(BackupError::io(path))
}

/// Writes a new file.
pub(super) async fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), BackupError> {
    let written = async {
        let mut file = OpenOptions::new().create_new(true).write(true).mode(mode).open(path).await?;
        file.write_all(bytes).await?;
        file.sync_all().await
    };
    written.await.map_err(BackupError::io(path))
}

/// Copies a file to a new one; what was copied.
pub(super) async fn copy(from: &Path, to: &Path) -> Result<Stored, BackupError> {
    let mut source = File::open(from).await.map_err(BackupError::io(from))?;
    let written = async {
        let mut target = OpenOptions::new().create_new(true).write(true).mode(PRIVATE).open(to).await?;
        let (mut hasher, mut bytes) = (Hasher::default(), 0);
        let mut piece = vec![0; PIECE];
        loop {
            let read = source.read(&mut piece).await?;
            if read == 0 {
                break;
            }
            let some = piece.get(..read).unwrap_or_default();
            target.write_all(some).await?;
            hasher.update(some);
            bytes += read as u64;
        }
        target.sync_all().await?;
        Ok(Stored { bytes, sha256: hex(&hasher.finish()) })
    };
    written.await.map_err(BackupError::io(to))
}

/// What a file is; none when there is no such file.
pub(super) async fn read(path: &Path) -> Result<Option<Stored>, BackupError> {
    let mut file = match File::open(path).await {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(BackupError::io(path)(error)),
    };
    let (mut hasher, mut bytes) = (Hasher::default(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).await.map_err(BackupError::io(path))? {
            0 => break,
            read => {
                hasher.update(piece.get(..read).unwrap_or_default());
                bytes += read as u64;
            }
        }
    }
    Ok(Some(Stored { bytes, sha256: hex(&hasher.finish()) }))
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
