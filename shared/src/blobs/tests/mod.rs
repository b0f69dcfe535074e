//! What every store must do, on a folder and on S3; what only one of them can do wrong is in files of their own.

mod folder;
mod listing;
mod s3;
mod server;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use futures::{StreamExt, stream};
use server::Server;
use tempfile::TempDir;

use super::*;

/// A store that is nobody's yet, and what is behind it.
struct Place {
    blobs: BlobStore,
    location: BlobLocation,
    dir: TempDir,
    server: Option<Server>,
}

impl Place {
    async fn folder() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let location = BlobLocation::Folder(dir.path().join("blobs"));
        Self { blobs: BlobStore::open(&location).await.unwrap(), location, dir, server: None }
    }

    async fn s3() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start(dir.path()).await;
        let location = BlobLocation::S3(server.location());
        Self { blobs: BlobStore::open(&location).await.unwrap(), location, dir, server: Some(server) }
    }

    async fn each() -> [Self; 2] {
        [Self::folder().await, Self::s3().await]
    }

    /// The files that the store consists of: blobs, the marker, and what is unfinished.
    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(self.dir.path(), &mut found);
        // The test server keeps notes on objects, also on those that are gone.
        let note = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".bucket-"))
        };
        found.retain(|path| !note(path));
        found
    }

    /// Waits until there is no file left.
    async fn is_cleared(&self) {
        let cleared = async {
            while !self.files().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), cleared).await.expect("it stays behind");
    }
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), found);
        } else {
            found.push(entry.path());
        }
    }
}

fn parts(parts: &[&'static [u8]]) -> impl Stream<Item = io::Result<Bytes>> + Unpin {
    stream::iter(parts.iter().map(|part| Ok(Bytes::from_static(part))).collect::<Vec<_>>())
}

/// `megabytes` MiB in pieces of 64 KiB, of which each begins differently.
fn long(megabytes: u32) -> impl Stream<Item = io::Result<Bytes>> + Unpin + Send {
    stream::iter(0..megabytes * 16).map(|index| {
        let mut piece = vec![b'x'; 1 << 16];
        piece[..4].copy_from_slice(&index.to_be_bytes());
        Ok(Bytes::from(piece))
    })
}

async fn text(blobs: &BlobStore, key: &str) -> String {
    let mut text = String::new();
    blobs.get(key).await.unwrap().read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_blob_is_read_back_whole() {
    for Place { blobs, location, dir: _dir, server: _server } in Place::each().await {
        let document = DocumentId::generate();
        let stored = blobs.put(document, parts(&[b"hello ", b"", b"world"]), 11).await.unwrap();
        assert_eq!((stored.bytes, stored.sha256), (11, crate::secrets::sha256(b"hello world")));
        assert!(stored.key.starts_with(&document.to_string()), "{}", stored.key);
        assert_eq!(text(&blobs, &stored.key).await, "hello world");
        // Another process finds it too.
        assert_eq!(text(&BlobStore::open(&location).await.unwrap(), &stored.key).await, "hello world");
    }
}

#[tokio::test]
async fn an_empty_blob_is_a_blob() {
    for Place { blobs, dir: _dir, server: _server, .. } in Place::each().await {
        let stored = blobs.put(DocumentId::generate(), parts(&[]), 0).await.unwrap();
        assert_eq!((stored.bytes, stored.sha256), (0, crate::secrets::sha256(b"")));
        assert_eq!(text(&blobs, &stored.key).await, "");
    }
}

#[tokio::test]
async fn a_long_blob_is_read_back_as_it_was() {
    for Place { blobs, dir: _dir, server: _server, .. } in Place::each().await {
        let stored = blobs.put(DocumentId::generate(), long(20), 20 << 20).await.unwrap();
        assert_eq!(stored.bytes, 20 << 20);
        let mut reader = blobs.get(&stored.key).await.unwrap();
        let (mut hash, mut buffer, mut bytes) = (Sha256::new(), vec![0; 1 << 16], 0_u64);
        loop {
            let read = reader.read(&mut buffer).await.unwrap();
            if read == 0 {
                break;
            }
            hash.update(&buffer[..read]);
            bytes += read as u64;
        }
        let back: [u8; 32] = hash.finalize().into();
        assert_eq!((bytes, back), (stored.bytes, stored.sha256), "{}", blobs.kind());
    }
}

#[tokio::test]
async fn a_blob_over_the_limit_leaves_nothing_behind() {
    for place in Place::each().await {
        let document = DocumentId::generate();
        let error = place.blobs.put(document, parts(&[b"hello ", b"world"]), 10).await.unwrap_err();
        assert!(matches!(error, BlobError::TooLarge { limit: 10 }), "{error}");
        let error = place.blobs.put(document, long(18), 17 << 20).await.unwrap_err();
        assert!(matches!(error, BlobError::TooLarge { .. }), "{error}");
        assert_eq!(place.files(), Vec::<PathBuf>::new());
    }
}

#[tokio::test]
async fn a_body_that_fails_leaves_nothing_behind() {
    for place in Place::each().await {
        let document = DocumentId::generate();
        for megabytes in [0, 1, 18] {
            let broken = long(megabytes).chain(stream::iter([Err(io::Error::other("the sender is gone"))]));
            let error = place.blobs.put(document, broken, u64::MAX).await.unwrap_err();
            assert!(error.to_string().contains("the sender is gone"), "{error}");
            assert_eq!(place.files(), Vec::<PathBuf>::new());
        }
    }
}

#[tokio::test]
async fn an_upload_dropped_half_way_is_cleared_away() {
    for place in Place::each().await {
        let (sent, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let body = long(18)
            .map(Some)
            .chain(stream::iter([None]))
            .filter_map(move |piece| {
                // After the last piece the sender says nothing more.
                let sent = sent.clone();
                async move {
                    if piece.is_none() {
                        sent.send(()).unwrap();
                        std::future::pending::<()>().await;
                    }
                    piece
                }
            })
            .boxed();
        let blobs = place.blobs.clone();
        let upload = tokio::spawn(async move { blobs.put(DocumentId::generate(), body, u64::MAX).await });
        seen.recv().await.unwrap();
        assert_ne!(place.files(), Vec::<PathBuf>::new());
        upload.abort();
        assert!(upload.await.unwrap_err().is_cancelled());
        place.is_cleared().await;
    }
}

#[tokio::test]
async fn the_blobs_of_a_document_go_with_it_and_no_others() {
    for Place { blobs, dir: _dir, server: _server, .. } in Place::each().await {
        let (one, other) = (DocumentId::generate(), DocumentId::generate());
        let first = blobs.put(one, parts(&[b"1"]), 100).await.unwrap();
        let second = blobs.put(one, parts(&[b"2"]), 100).await.unwrap();
        let kept = blobs.put(other, parts(&[b"3"]), 100).await.unwrap();
        blobs.remove_document(one).await.unwrap();
        for key in [&first.key, &second.key] {
            assert!(matches!(blobs.get(key).await, Err(BlobError::NotFound)), "{key}");
        }
        assert_eq!(text(&blobs, &kept.key).await, "3");
        // Once more, and where there never was one.
        blobs.remove_document(one).await.unwrap();
        blobs.remove_document(DocumentId::generate()).await.unwrap();
    }
}

#[tokio::test]
async fn a_key_leads_to_a_blob_or_nowhere() {
    for Place { blobs, dir, server: _server, .. } in Place::each().await {
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        blobs.claim("here").await.unwrap();
        let id = DocumentId::generate();
        let name = "0".repeat(32);
        for key in [
            "",
            "/",
            "instance",
            "../secret",
            "/etc/passwd",
            &format!("{id}/"),
            &format!("{id}/{name}"),
            &format!("{id}/{name}/"),
            &format!("{id}/../../../secret"),
            &format!("{id}/..%2f..%2fsecret"),
            &format!("../{id}/{name}"),
            &format!("{name}/{name}"),
        ] {
            assert!(matches!(blobs.get(key).await, Err(BlobError::NotFound)), "{} {key}", blobs.kind());
        }
    }
}

#[tokio::test]
async fn a_store_is_nobodys_until_it_is_taken_and_then_no_one_elses() {
    for Place { blobs, location, dir: _dir, server: _server } in Place::each().await {
        assert_eq!(blobs.owner().await.unwrap(), None);
        assert!(matches!(blobs.ping().await, Err(BlobError::Unavailable { .. })));
        blobs.claim("here").await.unwrap();
        blobs.claim("here").await.unwrap();
        blobs.ping().await.unwrap();
        let again = BlobStore::open(&location).await.unwrap();
        assert_eq!(again.owner().await.unwrap().as_deref(), Some("here"));
        let error = again.claim("there").await.unwrap_err();
        assert!(matches!(error, BlobError::Foreign(_)), "{error}");
        let message = error.to_string();
        assert!(message.contains(&location.to_string()) && message.contains("LECTERN_BLOBS"), "{message}");
        assert_eq!(again.owner().await.unwrap().as_deref(), Some("here"));
    }
}

#[tokio::test]
async fn one_of_many_that_take_a_store_at_once_gets_it() {
    // The test server looks whether an object is there before it writes it, which is not at once.
    let Place { blobs, dir: _dir, .. } = Place::folder().await;
    let takes = (0..20).map(|index| {
        let blobs = blobs.clone();
        tokio::spawn(async move { blobs.claim(&format!("number {index}")).await.is_ok() })
    });
    let taken = futures::future::join_all(takes).await;
    assert_eq!(taken.into_iter().filter(|taken| *taken.as_ref().unwrap()).count(), 1);
}

#[tokio::test]
async fn nothing_that_is_shown_has_a_secret_in_it() {
    for Place { blobs, location, dir: _dir, server: _server } in Place::each().await {
        let shown = format!("{blobs:?} {location:?} {location}");
        assert!(shown.contains("blobs"), "{shown}");
        for secret in [server::SECRET, server::KEY_ID] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
