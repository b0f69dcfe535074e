//! One file, from the hub to its place: aside first, resumed where an earlier try ended, checked, then renamed.

use std::{
    io::{self, Read, SeekFrom},
    path::{Path, PathBuf},
};

use lectern_shared::secrets::{Sha256Hasher, hex};
use reqwest::{
    StatusCode,
    header::{CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE},
};
use sha1::{Digest, Sha1};
use tokio::{
    fs::{File, OpenOptions},
    io::{AsyncSeekExt, AsyncWriteExt},
};

use super::{
    HubError, ModelId,
    client::{self, HubClient},
    error::HubFailure,
    listing::{IntegrityCheck, RemoteFile},
};

/// What files are called until they are whole.
pub(super) const PARTIAL: &str = "partial";
/// Bytes read at once when a file is hashed.
const PIECE: usize = 1024 * 1024;

/// A file of one model at one commit.
pub(super) struct FileDownload<'a> {
    pub(super) client: &'a HubClient,
    pub(super) model: &'a ModelId,
    pub(super) commit: &'a str,
    pub(super) file: &'a RemoteFile,
    /// The folder of the copy.
    pub(super) folder: &'a Path,
    /// Told how many bytes of the file are there.
    pub(super) report: &'a (dyn Fn(u64) + Send + Sync),
}

impl FileDownload<'_> {
    /// Makes sure that the file is at its place, and returns its SHA-256.
    pub(super) async fn run(&self) -> Result<String, HubError> {
        let place = self.folder.join(self.file.path);
        if let Some(hash) = self.checked(&place).await? {
            // An earlier pull was stopped after this file.
            (self.report)(self.file.size);
            return Ok(hash);
        }
        if let Some(parent) = place.parent() {
            tokio::fs::create_dir_all(parent).await.map_err(|error| self.disk(error))?;
        }
        let partial = self.partial();
        let mut started_over = false;
        loop {
            let fetched = self.fetch(&partial).await;
            if let Err(HubError::Damaged { .. }) = fetched {
                self.forget(&partial).await?;
            }
            let pieced = fetched?;
            let Some(hash) = self.checked(&partial).await? else {
                self.forget(&partial).await?;
                // Its first part may be of a machine that went down while it wrote.
                if pieced && !started_over {
                    tracing::warn!(model = %self.model, file = self.file.path, "what was resumed is damaged; the file is fetched anew");
                    started_over = true;
                    continue;
                }
                return Err(self.damaged("its content is not what its hash says"));
            };
            tokio::fs::rename(&partial, &place).await.map_err(|error| self.disk(error))?;
            if let Some(parent) = place.parent() {
                sync_folder(parent).await.map_err(|error| self.disk(error))?;
            }
            return Ok(hash);
        }
    }

    /// Of this commit only: what was begun of another one is not gone on with.
    fn partial(&self) -> PathBuf {
        let commit = self.commit.get(..12).unwrap_or(self.commit);
        self.folder.join(format!("{}.{commit}.{PARTIAL}", self.file.path))
    }

    /// Fetches what is missing of the file; returns whether it was put together from several answers.
    async fn fetch(&self, path: &Path) -> Result<bool, HubError> {
        let mut partial = PartialFile::open(path, self.file.size).await.map_err(|error| self.disk(error))?;
        let mut tries = self.client.tries();
        // A server that sends from the start every time does not get further by sending the start again.
        let mut furthest = partial.there;
        while partial.there < self.file.size {
            (self.report)(partial.there);
            let came = self.receive(&mut partial).await;
            if partial.there > furthest {
                furthest = partial.there;
                tries.progressed();
            }
            if let Err(failure) = came {
                tries.again(failure).await?;
            }
        }
        partial.file.sync_all().await.map_err(|error| self.disk(error))?;
        (self.report)(partial.there);
        Ok(partial.pieced)
    }

    /// One request, and what comes of it.
    async fn receive(&self, partial: &mut PartialFile) -> Result<(), HubFailure> {
        let repository = [self.model.owner(), self.model.name(), "resolve", self.commit];
        let url = self.client.url(repository.into_iter().chain(self.file.path.split('/')));
        let mut response = self.client.get(self.model, url, partial.range_headers()).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT if partial.continues_with(response.headers(), self.file.size) => {
                partial.pieced = true;
            }
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                partial.start_over().await.map_err(|error| self.disk(error))?;
                return Err(self.away(&response, "it has not the part of the file that is missing"));
            }
            _ => partial.start_over().await.map_err(|error| self.disk(error))?,
        }
        let missing = self.file.size - partial.there;
        if response.content_length().is_some_and(|length| length != missing) {
            return Err(self.damaged("it has another size than the hub lists").into());
        }
        // A weak tag says nothing about bytes.
        let etag = response.headers().get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/")).cloned();
        partial.etag = etag;
        self.copy(&mut response, partial).await?;
        if partial.there < self.file.size {
            return Err(self.away(&response, "the connection to it broke"));
        }
        Ok(())
    }

    async fn copy(
        &self,
        response: &mut reqwest::Response,
        partial: &mut PartialFile,
    ) -> Result<(), HubFailure> {
        loop {
            let part = match response.chunk().await {
                Ok(Some(part)) => part,
                Ok(None) => return Ok(()),
                Err(error) => return Err(client::broken(response.url(), &error)),
            };
            let there = partial.there + part.len() as u64;
            if there > self.file.size {
                return Err(self.damaged("it is longer than the hub lists").into());
            }
            partial.write(&part).await.map_err(|error| self.disk(error))?;
            (self.report)(there);
        }
    }

    /// The SHA-256 of a file that is whole and as the hub describes it.
    async fn checked(&self, path: &Path) -> Result<Option<String>, HubError> {
        let (path, size, check) = (path.to_owned(), self.file.size, self.file.check.clone());
        let hashed = tokio::task::spawn_blocking(move || hash_checked(&path, size, &check)).await;
        match hashed {
            Ok(Ok(hash)) => Ok(hash),
            Ok(Err(error)) => Err(self.disk(error)),
            Err(_) => Err(self.disk(io::Error::other("hashing was stopped"))),
        }
    }

    async fn forget(&self, path: &Path) -> Result<(), HubError> {
        tokio::fs::remove_file(path).await.map_err(|error| self.disk(error))
    }

    fn damaged(&self, problem: &'static str) -> HubError {
        HubError::Damaged { model: self.model.clone(), file: self.file.path.to_owned(), problem }
    }

    fn disk(&self, error: io::Error) -> HubError {
        HubError::disk(self.folder, error)
    }

    fn away(&self, response: &reqwest::Response, problem: &str) -> HubFailure {
        let host = response.url().host_str().map_or_else(|| self.client.host(), str::to_owned);
        HubError::Away { host, problem: problem.to_owned() }.into()
    }
}

/// What is there of a file.
struct PartialFile {
    file: File,
    /// Bytes.
    there: u64,
    /// What the server called the content when it sent the last part.
    etag: Option<HeaderValue>,
    /// Put together from several answers.
    pieced: bool,
}

impl PartialFile {
    async fn open(path: &Path, size: u64) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path).await?;
        let there = file.seek(SeekFrom::End(0)).await?;
        let mut partial = Self { file, there, etag: None, pieced: there > 0 };
        if there > size {
            partial.start_over().await?;
        }
        Ok(partial)
    }

    /// The headers that ask for what is missing.
    fn range_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if self.there > 0 {
            if let Ok(range) = HeaderValue::from_str(&format!("bytes={}-", self.there)) {
                headers.insert(RANGE, range);
            }
            if let Some(etag) = &self.etag {
                headers.insert(IF_RANGE, etag.clone());
            }
        }
        headers
    }

    /// Whether the answer begins where this ends, and is of the same content.
    fn continues_with(&self, headers: &HeaderMap, size: u64) -> bool {
        let range = headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok()).unwrap_or_default();
        let begins = range.strip_prefix("bytes ").and_then(|range| {
            let (span, total) = range.split_once('/')?;
            let (start, _) = span.split_once('-')?;
            let known = total == "*" || total.parse() == Ok(size);
            Some(known && start.trim().parse() == Ok(self.there))
        });
        let same = match (&self.etag, headers.get(ETAG)) {
            (Some(before), Some(now)) => before == now,
            _ => true,
        };
        begins == Some(true) && same
    }

    /// Waits until the system has it: what has come stays, however the answer ends and whenever this is dropped.
    async fn write(&mut self, part: &[u8]) -> io::Result<()> {
        self.file.write_all(part).await?;
        self.file.flush().await?;
        self.there += part.len() as u64;
        Ok(())
    }

    async fn start_over(&mut self) -> io::Result<()> {
        self.file.set_len(0).await?;
        self.file.rewind().await?;
        (self.there, self.etag, self.pieced) = (0, None, false);
        Ok(())
    }
}

/// The SHA-256 of a file that has the size and hash that it must have; none when it is not there or another.
fn hash_checked(path: &Path, size: u64, check: &IntegrityCheck) -> io::Result<Option<String>> {
    let mut file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() != size {
        return Ok(None);
    }
    let mut sha256 = Sha256Hasher::default();
    let mut git =
        matches!(check, IntegrityCheck::GitBlob(_)).then(|| Sha1::new_with_prefix(format!("blob {size}\0")));
    let mut piece = vec![0; PIECE];
    loop {
        let read = match file.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = piece.get(..read).unwrap_or_default();
        sha256.update(bytes);
        if let Some(git) = &mut git {
            git.update(bytes);
        }
    }
    let hash = hex(&sha256.finish());
    let matches = match (check, git) {
        (IntegrityCheck::Sha256(wanted), _) => *wanted == hash,
        (IntegrityCheck::GitBlob(wanted), Some(git)) => *wanted == hex(&git.finalize()),
        (IntegrityCheck::GitBlob(_), None) => false,
        (IntegrityCheck::Size, _) => true,
    };
    Ok(matches.then_some(hash))
}

/// Puts the names in a folder on the disk.
pub(super) async fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder).await?.sync_all().await
}
