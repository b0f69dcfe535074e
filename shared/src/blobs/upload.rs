//! One upload to a bucket: in one request when it is small, else in parts, a few at a time.

use std::{io, mem};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};
use object_store::{Error, MultipartUpload, ObjectStoreExt, PutPayload, aws::AmazonS3, path::Path};
use tokio::{
    runtime::Handle,
    task::{JoinHandle, JoinSet},
};

use super::{BlobError, BlobMeter};

/// The size of a part in bytes. S3 wants 5 MiB at least, some stores parts of one size, and none more than 10,000 of them,
/// so that a blob can have 78 GiB.
pub(super) const PART: usize = 8 << 20;
/// How many parts are on their way while the next one is gathered.
pub(super) const IN_FLIGHT: usize = 2;

/// An upload. Until it is [kept](Self::keep), dropping it clears away in the background what it has left in the store.
pub(super) struct BlobUpload<F> {
    store: AmazonS3,
    path: Path,
    explain: F,
    buffer: BytesMut,
    multipart: Option<Box<dyn MultipartUpload>>,
    parts: JoinSet<Result<(), Error>>,
    /// Whether the whole object may be there.
    written: bool,
}

impl<F: Fn(&Error) -> BlobError> BlobUpload<F> {
    /// `explain` is what the library's errors become.
    pub(super) fn new(store: AmazonS3, path: Path, explain: F) -> Self {
        let (buffer, parts) = (BytesMut::new(), JoinSet::new());
        Self { store, path, explain, buffer, multipart: None, parts, written: false }
    }

    /// Sends everything.
    pub(super) async fn run<E: Into<io::Error>>(
        &mut self,
        mut body: impl Stream<Item = Result<Bytes, E>> + Unpin,
        meter: &mut BlobMeter,
    ) -> Result<(), BlobError> {
        while let Some(piece) = body.next().await {
            let mut piece = piece.map_err(Into::into)?;
            meter.add(&piece)?;
            while !piece.is_empty() {
                // Only when there is more: the last part is sent in another way.
                if self.buffer.len() == PART {
                    self.send_part(BytesMut::with_capacity(PART)).await?;
                }
                let fits = piece.len().min(PART - self.buffer.len());
                self.buffer.extend_from_slice(&piece.split_to(fits));
            }
        }
        if self.multipart.is_none() {
            let whole = PutPayload::from(mem::take(&mut self.buffer).freeze());
            self.written = true;
            self.store.put(&self.path, whole).await.map_err(|error| (self.explain)(&error))?;
            return Ok(());
        }
        self.send_part(BytesMut::new()).await?;
        self.wait_until_fewer_than(1).await?;
        if let Some(multipart) = &mut self.multipart {
            self.written = true;
            multipart.complete().await.map_err(|error| (self.explain)(&error))?;
        }
        Ok(())
    }

    /// Sends what was gathered as the next part, and goes on with `next`.
    async fn send_part(&mut self, next: BytesMut) -> Result<(), BlobError> {
        self.wait_until_fewer_than(IN_FLIGHT).await?;
        let multipart = match &mut self.multipart {
            Some(multipart) => multipart,
            none => {
                let begun = self.store.put_multipart(&self.path).await;
                none.insert(begun.map_err(|error| (self.explain)(&error))?)
            }
        };
        let part = mem::replace(&mut self.buffer, next).freeze();
        self.parts.spawn(multipart.put_part(part.into()));
        Ok(())
    }

    async fn wait_until_fewer_than(&mut self, count: usize) -> Result<(), BlobError> {
        while self.parts.len() >= count {
            match self.parts.join_next().await {
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(error))) => return Err((self.explain)(&error)),
                Some(Err(panicked)) => return Err(io::Error::other(panicked).into()),
                None => break,
            }
        }
        Ok(())
    }
}

impl<F> BlobUpload<F> {
    /// Lets what was sent stand.
    pub(super) fn keep(&mut self) {
        self.multipart = None;
        self.written = false;
    }

    /// Clears away what was sent, in a task of its own; best effort.
    pub(super) fn abandon(&mut self) -> Option<JoinHandle<()>> {
        let (multipart, mut parts) = (self.multipart.take(), mem::take(&mut self.parts));
        let written = mem::take(&mut self.written);
        let runtime = Handle::try_current().ok().filter(|_| written || multipart.is_some())?;
        let (store, path) = (self.store.clone(), self.path.clone());
        Some(runtime.spawn(async move {
            // A part that arrives after the end would stay for good.
            while parts.join_next().await.is_some() {}
            let aborted = match multipart {
                Some(mut multipart) => multipart.abort().await,
                None => Ok(()),
            };
            let removed = if written { store.delete(&path).await } else { Ok(()) };
            for end in [aborted, removed] {
                if !matches!(end, Ok(()) | Err(Error::NotFound { .. })) {
                    tracing::warn!(%path, "an unfinished upload could not be cleared away");
                }
            }
        }))
    }
}

impl<F> Drop for BlobUpload<F> {
    fn drop(&mut self) {
        drop(self.abandon());
    }
}
