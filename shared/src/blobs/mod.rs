//! The blob store: bytes under a key, in a folder or in a bucket of any S3-compatible store. A key belongs to one document,
//! so that no two share a blob.
//!
//! Both places are shared by every process of an installation, and a wrong one must be noticed at the start rather than as
//! documents that cannot be found. So a store carries a marker, `instance`: [`BlobStore::owner`] reads it, [`BlobStore::take`]
//! writes it where there is none, and whoever starts the service decides what a marker means.
//!
//! An S3 account needs `s3:GetObject`, `s3:PutObject`, `s3:DeleteObject`, `s3:AbortMultipartUpload` on the objects, and
//! `s3:ListBucket` on the bucket: without the last, S3 answers "access denied" for what is not there.

mod folder;
mod location;
mod s3;
#[cfg(test)]
mod tests;
mod upload;

use std::{fmt, io, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::Stream;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt};

pub use self::location::{BlobLocation, S3Location, bucket_address};
use self::{folder::BlobFolder, s3::S3Bucket};
use crate::{clock::Timestamp, ids::DocumentId};

/// What a store is marked with, and how many bytes of it are read: a marker is an id, whatever else is there.
const MARKER: &str = "instance";
const MARKER_BYTES: u64 = 1024;
/// The most blobs that a listing shows at once.
pub const LISTED: usize = 500;

/// Why a blob could not be kept or read. None carries a key, a signature or an address with a query.
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
    /// The place, as [`BlobLocation`] shows it, belongs to another installation.
    #[error(
        "the blob store {0} belongs to another installation: set LECTERN_BLOBS to the folder or bucket of this one, or to an empty one"
    )]
    Foreign(String),
    /// The disk, or the sender, failed.
    #[error("the blob store failed: {0}")]
    Io(#[from] io::Error),
    /// The store is away, or refuses. It may be there again later, or need the operator.
    #[error("the blob store cannot be used: {what}")]
    Unavailable {
        /// The place and what is wrong with it, in a few words.
        what: String,
    },
}

/// What was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlob {
    /// Where to find it.
    pub key: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of it.
    pub sha256: [u8; 32],
}

/// A blob that a listing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedBlob {
    /// Where it is.
    pub key: String,
    /// The document whose it is.
    pub document: DocumentId,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was stored, by the clock of the place.
    pub modified: Timestamp,
}

/// The bytes of a blob, as they come. An error in the middle never looks like the end.
pub type BlobReader = Box<dyn AsyncRead + Send + Unpin>;

/// A store of blobs. Cheap to clone.
#[derive(Clone)]
pub struct BlobStore {
    store: BlobBackend,
}

#[derive(Clone)]
enum BlobBackend {
    Folder(Arc<BlobFolder>),
    S3(Arc<S3Bucket>),
}

impl BlobStore {
    /// Opens the store; a folder is made when it is missing. Whose it is, is not looked at (see [`BlobStore::owner`]), and a
    /// bucket is not spoken to yet.
    ///
    /// # Errors
    /// [`BlobError::Io`] when the folder cannot be made, [`BlobError::Unavailable`] when what is set for S3 makes no sense.
    pub async fn open(location: &BlobLocation) -> Result<Self, BlobError> {
        let store = match location {
            BlobLocation::Folder(root) => BlobBackend::Folder(Arc::new(BlobFolder::open(root).await?)),
            BlobLocation::S3(s3) => {
                BlobBackend::S3(Arc::new(S3Bucket::open(s3, &s3::S3Timeouts::default())?))
            }
        };
        Ok(Self { store })
    }

    /// A folder that is only read, such as a copy: nothing is made in it.
    pub fn open_read_only(folder: &Path) -> Self {
        Self { store: BlobBackend::Folder(Arc::new(BlobFolder::at(folder))) }
    }

    /// What kind of store it is: `folder` or `s3`.
    pub fn kind(&self) -> &'static str {
        match &self.store {
            BlobBackend::Folder(_) => "folder",
            BlobBackend::S3(_) => "s3",
        }
    }

    /// What the store is marked with, if it is.
    pub async fn owner(&self) -> Result<Option<String>, BlobError> {
        match &self.store {
            BlobBackend::Folder(folder) => folder.owner().await,
            BlobBackend::S3(bucket) => bucket.owner().await,
        }
    }

    /// Marks the store as `instance`'s, unless it is so already. Of several processes that try at once, one wins and the
    /// others get [`BlobError::Foreign`], except where neither the file system knows hard links nor the S3 store conditional
    /// writes: there, two that begin in the same moment may both believe that they have won.
    ///
    /// # Errors
    /// [`BlobError::Foreign`] when it carries another mark.
    pub async fn claim(&self, instance: &str) -> Result<(), BlobError> {
        if self.owner().await?.is_none() {
            match &self.store {
                BlobBackend::Folder(folder) => folder.mark(instance).await?,
                BlobBackend::S3(bucket) => bucket.mark(instance).await?,
            }
        }
        // Read back: somebody else may have been quicker.
        match self.owner().await? {
            Some(owner) if owner == instance => Ok(()),
            Some(_) => Err(BlobError::Foreign(self.place())),
            None => Err(self.unmarked()),
        }
    }

    /// Whether the store is there and still marked, and, of a folder, whether it may be written.
    pub async fn ping(&self) -> Result<(), BlobError> {
        self.owner().await?.ok_or_else(|| self.unmarked())?;
        match &self.store {
            BlobBackend::Folder(folder) => folder.check_rights().await,
            BlobBackend::S3(_) => Ok(()),
        }
    }

    /// Stores a stream of bytes as a blob of `document`, in memory that does not grow with it. When it fails, nothing is left
    /// behind. When it is dropped half-way, what was begun is cleared away in the background as well as can be: what a crash
    /// leaves in a folder goes with [`BlobStore::forget_unfinished`], and in a bucket with a lifecycle rule for incomplete
    /// multipart uploads, which every bucket should have.
    ///
    /// # Errors
    /// [`BlobError::TooLarge`] over `limit` bytes; [`BlobError::Io`] also when `body` fails.
    pub async fn put<E: Into<io::Error>>(
        &self,
        document: DocumentId,
        body: impl Stream<Item = Result<Bytes, E>> + Unpin,
        limit: u64,
    ) -> Result<StoredBlob, BlobError> {
        self.put_as(&Self::new_key(document), body, limit).await
    }

    /// A key for another blob of `document`, under which nothing is stored yet.
    pub fn new_key(document: DocumentId) -> String {
        format!("{document}/{}", uuid::Uuid::now_v7().simple())
    }

    /// Stores a stream of bytes under a [new key](BlobStore::new_key), or one that another store gave out, as [`BlobStore::put`] does. What
    /// was there is replaced.
    ///
    /// # Errors
    /// As [`BlobStore::put`]; [`BlobError::NotFound`] when `key` is no key.
    pub async fn put_as<E: Into<io::Error>>(
        &self,
        key: &str,
        body: impl Stream<Item = Result<Bytes, E>> + Unpin,
        limit: u64,
    ) -> Result<StoredBlob, BlobError> {
        let (document, name) = parse_key(key).ok_or(BlobError::NotFound)?;
        self.put_at(document, name, body, limit).await
    }

    async fn put_at<E: Into<io::Error>>(
        &self,
        document: DocumentId,
        name: &str,
        body: impl Stream<Item = Result<Bytes, E>> + Unpin,
        limit: u64,
    ) -> Result<StoredBlob, BlobError> {
        let mut meter = BlobMeter { bytes: 0, hash: Sha256::new(), limit };
        match &self.store {
            BlobBackend::Folder(folder) => folder.put(document, name, body, &mut meter).await?,
            BlobBackend::S3(bucket) => bucket.put(document, name, body, &mut meter).await?,
        }
        Ok(StoredBlob {
            key: format!("{document}/{name}"),
            bytes: meter.bytes,
            sha256: meter.hash.finalize().into(),
        })
    }

    /// The size of a blob in bytes; none when there is no such blob.
    pub async fn size(&self, key: &str) -> Result<Option<u64>, BlobError> {
        let Some((document, name)) = parse_key(key) else { return Ok(None) };
        match &self.store {
            BlobBackend::Folder(folder) => folder.size(document, name).await,
            BlobBackend::S3(bucket) => bucket.size(document, name).await,
        }
    }

    /// Goes through all blobs, in no order, and shows them to `visit` some at a time ([`LISTED`] at most). What is stored or removed
    /// meanwhile may be among them or not.
    ///
    /// # Errors
    /// Those of the store, and what `visit` fails with.
    pub async fn list<E: From<BlobError>>(
        &self,
        visit: impl AsyncFnMut(Vec<ListedBlob>) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.store {
            BlobBackend::Folder(folder) => folder.list(visit).await,
            BlobBackend::S3(bucket) => bucket.list(visit).await,
        }
    }

    /// Removes one blob; that there is none is fine.
    pub async fn remove(&self, key: &str) -> Result<(), BlobError> {
        let Some((document, name)) = parse_key(key) else { return Ok(()) };
        match &self.store {
            BlobBackend::Folder(folder) => folder.remove(document, name).await,
            BlobBackend::S3(bucket) => bucket.remove(document, name).await,
        }
    }

    /// Opens a blob for reading.
    ///
    /// # Errors
    /// [`BlobError::NotFound`] also when `key` is none that [`BlobStore::put`] could have given out.
    pub async fn get(&self, key: &str) -> Result<BlobReader, BlobError> {
        let (document, name) = parse_key(key).ok_or(BlobError::NotFound)?;
        match &self.store {
            BlobBackend::Folder(folder) => folder.get(document, name).await,
            BlobBackend::S3(bucket) => bucket.get(document, name).await,
        }
    }

    /// Removes every blob of a document; that there is none is fine. A bucket that keeps versions keeps them.
    pub async fn remove_document(&self, document: DocumentId) -> Result<(), BlobError> {
        match &self.store {
            BlobBackend::Folder(folder) => folder.remove_document(document).await,
            BlobBackend::S3(bucket) => bucket.remove_document(document).await,
        }
    }

    /// Removes what uploads that never ended have left, when nothing was written to it for `older_than`: younger ones may
    /// still be going on, in any process. Does nothing for S3, where that is the task of a lifecycle rule of the bucket
    /// (`AbortIncompleteMultipartUpload`).
    pub async fn forget_unfinished(&self, older_than: Duration) -> Result<(), BlobError> {
        match &self.store {
            BlobBackend::Folder(folder) => folder.forget_unfinished(older_than).await,
            BlobBackend::S3(_) => Ok(()),
        }
    }

    fn place(&self) -> String {
        match &self.store {
            BlobBackend::Folder(folder) => folder.place(),
            BlobBackend::S3(bucket) => bucket.place().to_owned(),
        }
    }

    fn unmarked(&self) -> BlobError {
        BlobError::Unavailable { what: format!("{}: its marker, `{MARKER}`, is gone", self.place()) }
    }
}

impl fmt::Debug for BlobStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Blobs").field(&self.place()).finish()
    }
}

/// Counts and hashes what passes, up to the limit.
struct BlobMeter {
    bytes: u64,
    hash: Sha256,
    limit: u64,
}

impl BlobMeter {
    fn add(&mut self, part: &[u8]) -> Result<(), BlobError> {
        self.bytes = self.bytes.saturating_add(part.len() as u64);
        if self.bytes > self.limit {
            return Err(BlobError::TooLarge { limit: self.limit });
        }
        self.hash.update(part);
        Ok(())
    }
}

/// The two parts of a key, if it is one: anything else might lead out of the store.
fn parse_key(key: &str) -> Option<(DocumentId, &str)> {
    let (document, name) = key.split_once('/')?;
    let hex = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some((document.parse().ok().filter(|_| hex)?, name))
}

async fn read_marker(reader: impl AsyncRead + Unpin) -> io::Result<String> {
    let mut text = Vec::new();
    reader.take(MARKER_BYTES).read_to_end(&mut text).await?;
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}
