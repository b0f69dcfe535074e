//! The blob store: bytes under a key, in a folder. A key belongs to one document, so that no two share a blob.

use std::{
    io,
    path::{Path, PathBuf},
};

use futures::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use tokio::{
    fs::{self, File},
    io::AsyncWriteExt,
};

use crate::ids::DocumentId;

/// Why a blob could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// There is nothing under this key.
    #[error("there is no such blob")]
    NotFound,
    /// The bytes are more than was allowed.
    #[error("the blob is larger than {limit} bytes")]
    TooLarge {
        /// The most that was allowed.
        limit: u64,
    },
    /// The folder belongs to another installation.
    #[error("the blob folder {} belongs to another installation: share the right folder, or set LECTERN_BLOBS", .0.display())]
    Foreign(PathBuf),
    /// The disk, or the sender, failed.
    #[error("the blob store failed: {0}")]
    Io(#[from] io::Error),
}

/// What was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Where to find it.
    pub key: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of it.
    pub sha256: [u8; 32],
}

/// A folder of blobs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Blobs {
    root: PathBuf,
}

const INSTANCE: &str = "instance";
const INCOMING: &str = "incoming";

impl Blobs {
    /// Opens the folder, made when it is missing. It must belong to the installation `instance`; an empty one is taken.
    pub async fn open(root: &Path, instance: &str) -> Result<Self, BlobError> {
        fs::create_dir_all(root.join(INCOMING)).await?;
        let marker = root.join(INSTANCE);
        match fs::read_to_string(&marker).await {
            Ok(owner) if owner.trim() == instance => {}
            Ok(_) => return Err(BlobError::Foreign(root.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::write(&marker, instance).await?,
            Err(error) => return Err(error.into()),
        }
        let blobs = Self { root: root.to_owned() };
        blobs.forget_unfinished().await?;
        Ok(blobs)
    }

    /// Stores a stream of bytes as a blob of `document`; nothing is left behind when it fails or is dropped half-way, but
    /// for a file that the next start removes.
    pub async fn put<E: Into<io::Error>>(
        &self,
        document: DocumentId,
        mut body: impl Stream<Item = Result<bytes::Bytes, E>> + Unpin,
        limit: u64,
    ) -> Result<Stored, BlobError> {
        let name = uuid::Uuid::now_v7().simple().to_string();
        let incoming = self.root.join(INCOMING).join(&name);
        let mut file = File::create(&incoming).await?;
        let written: Result<_, BlobError> = async {
            let (mut bytes, mut hash) = (0_u64, Sha256::new());
            while let Some(part) = body.next().await {
                let part = part.map_err(Into::into)?;
                bytes = bytes.saturating_add(part.len() as u64);
                if bytes > limit {
                    return Err(BlobError::TooLarge { limit });
                }
                hash.update(&part);
                file.write_all(&part).await?;
            }
            file.sync_all().await?;
            Ok((bytes, hash.finalize().into()))
        }
        .await;
        drop(file);
        let (bytes, sha256) = match written {
            Ok(written) => written,
            Err(error) => {
                let _ = fs::remove_file(&incoming).await;
                return Err(error);
            }
        };
        let folder = self.folder(document);
        fs::create_dir_all(&folder).await?;
        fs::rename(&incoming, folder.join(&name)).await?;
        // The names must be on disk before a row points to them.
        File::open(&folder).await?.sync_all().await?;
        Ok(Stored { key: format!("{document}/{name}"), bytes, sha256 })
    }

    /// Opens a blob for reading.
    pub async fn get(&self, key: &str) -> Result<File, BlobError> {
        let mut parts = key.split('/');
        let (Some(document), Some(name), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(BlobError::NotFound);
        };
        let document: DocumentId = document.parse().map_err(|_| BlobError::NotFound)?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(BlobError::NotFound);
        }
        match File::open(self.folder(document).join(name)).await {
            Ok(file) => Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(BlobError::NotFound),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes every blob of a document.
    pub async fn remove_document(&self, document: DocumentId) -> Result<(), BlobError> {
        match fs::remove_dir_all(self.folder(document)).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Whether the folder is there and still this installation's.
    pub async fn ping(&self) -> Result<(), BlobError> {
        fs::metadata(self.root.join(INSTANCE)).await?;
        Ok(())
    }

    async fn forget_unfinished(&self) -> Result<(), BlobError> {
        let mut unfinished = fs::read_dir(self.root.join(INCOMING)).await?;
        while let Some(entry) = unfinished.next_entry().await? {
            fs::remove_file(entry.path()).await?;
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::stream;
    use tokio::io::AsyncReadExt;

    use super::*;

    fn parts(parts: &[&'static [u8]]) -> impl Stream<Item = Result<Bytes, io::Error>> + Unpin {
        stream::iter(parts.iter().map(|part| Ok(Bytes::from_static(part))).collect::<Vec<_>>())
    }

    #[tokio::test]
    async fn a_blob_is_read_back_whole_and_goes_with_its_document() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(dir.path(), "here").await.unwrap();
        let document = DocumentId::generate();
        let stored = blobs.put(document, parts(&[b"hello ", b"world"]), 100).await.unwrap();
        assert_eq!((stored.bytes, stored.sha256), (11, crate::secrets::sha256(b"hello world")));
        let mut text = String::new();
        blobs.get(&stored.key).await.unwrap().read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello world");
        blobs.remove_document(document).await.unwrap();
        assert!(matches!(blobs.get(&stored.key).await, Err(BlobError::NotFound)));
        blobs.remove_document(document).await.unwrap();
    }

    #[tokio::test]
    async fn a_blob_over_the_limit_or_cut_off_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(dir.path(), "here").await.unwrap();
        let document = DocumentId::generate();
        let error = blobs.put(document, parts(&[b"hello ", b"world"]), 10).await.unwrap_err();
        assert!(matches!(error, BlobError::TooLarge { limit: 10 }));
        let broken = stream::iter([Ok(Bytes::from_static(b"hel")), Err(io::Error::other("gone"))]);
        assert!(blobs.put(document, broken, 10).await.is_err());
        assert_eq!(std::fs::read_dir(dir.path().join(INCOMING)).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_key_cannot_lead_out_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&dir.path().join("blobs"), "here").await.unwrap();
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        let id = DocumentId::generate();
        for key in ["../secret", &format!("{id}/../../../secret"), &format!("{id}/"), "/etc/passwd", ""] {
            assert!(matches!(blobs.get(key).await, Err(BlobError::NotFound)), "{key}");
        }
    }

    #[tokio::test]
    async fn the_folder_of_another_installation_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        Blobs::open(dir.path(), "here").await.unwrap();
        assert!(matches!(Blobs::open(dir.path(), "there").await, Err(BlobError::Foreign(_))));
        Blobs::open(dir.path(), "here").await.unwrap();
    }
}
