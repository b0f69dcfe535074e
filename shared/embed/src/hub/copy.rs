//! Copies of models in the cache. A copy is a folder; its manifest is written last, so that a folder without one is not
//! complete.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use lectern_shared::secrets::{Sha256Hasher, hex};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use super::download::{PARTIAL, sync_folder};

const MANIFEST: &str = "manifest.json";
const LOCK: &str = ".lock";
/// Far more than a manifest has, in bytes.
const MAX_MANIFEST: u64 = 1024 * 1024;
/// Bytes that are hashed at a time.
const PIECE: usize = 256 << 10;
/// The form of manifests that this version writes and reads.
const FORMAT: u32 = 1;

/// What a complete copy holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ModelManifest {
    format: u32,
    /// As it was asked for.
    pub(super) model: String,
    /// What it was at that time.
    pub(super) commit: String,
    pub(super) files: Vec<ManifestFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ManifestFile {
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) sha256: String,
}

impl ModelManifest {
    pub(super) fn new(model: String, commit: String, files: Vec<ManifestFile>) -> Self {
        Self { format: FORMAT, model, commit, files }
    }

    /// The manifest of a folder, whatever became of its files since.
    pub(super) fn read(folder: &Path) -> io::Result<Option<Self>> {
        let path = folder.join(MANIFEST);
        match fs::metadata(&path) {
            Ok(there) if there.len() <= MAX_MANIFEST => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        let manifest = serde_json::from_slice::<Self>(&fs::read(&path)?);
        Ok(manifest.ok().filter(|manifest| manifest.format == FORMAT))
    }

    /// Whether the folder has all files in the sizes that they had.
    pub(super) fn is_whole(&self, folder: &Path) -> bool {
        self.files.iter().all(|file| {
            fs::metadata(folder.join(&file.path))
                .is_ok_and(|there| there.is_file() && there.len() == file.size)
        })
    }

    /// Makes a folder complete: what is left over from unfinished files goes, the manifest is put on the disk.
    pub(super) async fn write(&self, folder: &Path) -> io::Result<()> {
        forget_partials(folder).await?;
        let aside = folder.join(format!("{MANIFEST}.{PARTIAL}"));
        let mut file = tokio::fs::File::create(&aside).await?;
        file.write_all(&serde_json::to_vec_pretty(self)?).await?;
        file.sync_all().await?;
        drop(file);
        tokio::fs::rename(&aside, folder.join(MANIFEST)).await?;
        sync_folder(folder).await
    }
}

/// SHA-256 of a file, in hexadecimal digits.
pub(super) fn sha256(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Sha256Hasher::default();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&hasher.finish())),
            read => hasher.update(piece.get(..read).unwrap_or_default()),
        }
    }
}

/// Removes what was begun of files, at other commits too.
async fn forget_partials(folder: &Path) -> io::Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries = tokio::fs::read_dir(&folder).await?;
        while let Some(entry) = entries.next_entry().await? {
            let path = entry.path();
            if entry.file_type().await?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == PARTIAL) {
                tokio::fs::remove_file(&path).await?;
            }
        }
    }
    Ok(())
}

/// The only one that writes to a folder, of all processes, until it is dropped.
pub(super) struct FolderLock {
    _file: fs::File,
}

impl FolderLock {
    /// The lock, unless another one has it.
    pub(super) fn try_take(folder: &Path) -> io::Result<Option<Self>> {
        let path = folder.join(LOCK);
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                tracing::warn!(
                    "the file system has no locks: only one process may fetch a model into it at a time"
                );
                Ok(Some(Self { _file: file }))
            }
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Every folder below `cache` that is, or becomes, the copy of a model: owner, name, revision.
pub(super) fn folders(cache: &Path) -> io::Result<Vec<PathBuf>> {
    let mut level = vec![cache.to_owned()];
    for _ in 0..3 {
        let mut below = Vec::new();
        for folder in level {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for entry in entries {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    below.push(entry.path());
                }
            }
        }
        level = below;
    }
    level.sort();
    Ok(level)
}
