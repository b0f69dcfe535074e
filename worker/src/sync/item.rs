//! Bytes that were found, in a temporary file: their size does not matter to memory.

use std::io;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use lectern_shared::{file_name::extension, format::SNIFFED, secrets::Sha256Hasher};
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt},
};
use url::Url;

use super::{failure::RunFailure, vanished::MoveRule};
use crate::source::temporary_file;

/// Ends of names of files in which there is no text to read: pictures, sound, films, archives, programs.
const WITHOUT_TEXT: [&str; 28] = [
    "7z", "avi", "bmp", "dmg", "exe", "flac", "gif", "gz", "ico", "iso", "jpeg", "jpg", "mov", "mp3", "mp4",
    "mpeg", "ogg", "png", "rar", "tar", "tgz", "tif", "tiff", "ttf", "wav", "webm", "webp", "woff",
];

/// Whether the end of a name tells that there is nothing to read.
pub(super) fn is_unreadable(name: &str) -> bool {
    extension(name).is_some_and(|end| WITHOUT_TEXT.contains(&end.as_str()))
}

/// Bytes in a temporary file.
pub(super) struct StagedFile {
    pub(super) file: File,
    pub(super) bytes: u64,
    /// SHA-256 of them.
    pub(super) sha256: [u8; 32],
    /// The first of them, by which it is told what they are.
    pub(super) head: Vec<u8>,
}

/// Why bytes could not be staged.
#[derive(Debug)]
pub(super) enum StagingFailure<E> {
    /// They did not come.
    Source(E),
    /// The temporary file failed.
    Here(RunFailure),
}

impl StagedFile {
    /// Takes bytes in as they come.
    pub(super) async fn of<E>(
        mut stream: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<Self, StagingFailure<E>> {
        let here = |error: io::Error| StagingFailure::Here(error.into());
        let mut file = temporary_file().await.map_err(|error| StagingFailure::Here(error.into()))?;
        let (mut bytes, mut hasher, mut head) = (0, Sha256Hasher::default(), Vec::new());
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(StagingFailure::Source)?;
            let wanted = SNIFFED.saturating_sub(head.len()).min(piece.len());
            head.extend_from_slice(piece.get(..wanted).unwrap_or_default());
            hasher.update(&piece);
            bytes += piece.len() as u64;
            file.write_all(&piece).await.map_err(here)?;
        }
        file.flush().await.map_err(here)?;
        file.rewind().await.map_err(here)?;
        Ok(Self { file, bytes, sha256: hasher.finish(), head })
    }

    /// All of it, which stays as it is.
    pub(super) async fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut raw = Vec::new();
        self.file.read_to_end(&mut raw).await?;
        self.file.rewind().await?;
        Ok(raw)
    }
}

/// Something that was found, with its content.
pub(super) struct FoundItem<'a> {
    /// Its address, or its path.
    pub(super) key: &'a str,
    /// What its document is called.
    pub(super) name: String,
    /// Where people find it.
    pub(super) url: Option<&'a Url>,
    /// How its file is called.
    pub(super) file_name: Option<String>,
    /// Its media type, as far as somebody says so.
    pub(super) content_type: Option<&'a str>,
    /// Its encoding, as far as somebody says so.
    pub(super) charset: Option<&'a str>,
    pub(super) staged: StagedFile,
    pub(super) validators: ItemValidators<'a>,
    /// Where it is new, what it may be that was elsewhere.
    pub(super) moves: MoveRule,
}

/// By what it is told the next time whether something has changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ItemValidators<'a> {
    pub(super) etag: Option<&'a str>,
    pub(super) last_modified: Option<&'a str>,
    /// In place of the hash of its bytes.
    pub(super) version: Option<&'a str>,
    pub(super) links: Option<&'a [String]>,
    /// What a feed calls it.
    pub(super) entry_id: Option<&'a str>,
}
